"""Questions about statements of SQL that the translation into cells asks."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from plume_py.base.sql import (
    Assign,
    Attempt,
    Change,
    If,
    Loop,
    Repeat,
    RollbackStatement,
    Select,
    Statement,
    Update,
    access,
)
from plume_py.base.sql.syntax import engine


def has_value(value: Any, filled: Collection[str]) -> bool:
    """Is an expression surely not NULL? It is not if it only computes with what is not; the rest is not known."""
    exp = engine().exp
    known = (
        exp.Column | exp.Placeholder | exp.Parameter | exp.Literal | exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Paren
    )
    leaves = exp.Column | exp.Placeholder | exp.Parameter
    for node in value.walk():
        if not isinstance(node, known | exp.Identifier | exp.Var):
            return False
        if isinstance(node, leaves) and str(node.name).lower() not in filled:
            return False
    return True


def made_up(text: str, table: str) -> str:
    """The parameter that stands for a key which the database makes up."""
    _, line, number, column = text.split(" ")
    return f"{table}_{column}_of_line_{line}" + (f"_{number}" if number != "0" else "")


def asks(stmt: Change) -> bool:
    """Has it subqueries?"""
    return stmt.tree.find(engine().exp.Select) is not None


def assigned(body: Sequence[Statement]) -> Iterator[str]:
    """The variables that are set, each as often as it is; in a loop, twice."""
    for stmt in body:
        if isinstance(stmt, Select | Change):
            yield from (name.lower() for name in stmt.into)
        elif isinstance(stmt, Assign) and stmt.name:
            yield stmt.name.lower()
        elif isinstance(stmt, If):
            yield from assigned((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop):
            yield from 2 * [stmt.row.lower(), *assigned(stmt.body)]
        elif isinstance(stmt, Repeat):
            yield from 2 * [stmt.name.lower(), *assigned(stmt.body)]
        elif isinstance(stmt, Attempt):
            yield from assigned((*stmt.body, *stmt.otherwise))


def locks_one_row(stmt: Statement, found: Sequence[access.TableAccess]) -> bool:
    """Is it an UPDATE or a SELECT … FOR UPDATE of one table, which asks no other?"""
    if isinstance(stmt, Update):
        return all(a.kind in ("read", "update") for a in found) and not stmt.others and not asks(stmt)
    return isinstance(stmt, Select) and len(found) == 1 and found[0].lock not in ("", "share", "skip")


def gives_up_unless_found(stmt: If, before: Statement | None) -> bool:
    """IF NOT FOUND THEN ROLLBACK: the statement before has found its row, or nothing is left of all this."""
    asked = stmt.condition.tree.sql().upper()
    told = asked == "NOT FOUND" or (asked == "ROW_COUNT() = 0" and isinstance(before, Update))
    return told and rolls_back(stmt.then)


def rolls_back(body: Sequence[Statement]) -> bool:
    """Does it give up?"""
    return any(isinstance(stmt, RollbackStatement) for stmt in body)
