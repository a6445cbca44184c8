"""SELECT … INTO over several tables: row after row, each by its primary key.

One statement becomes several. Between them others may commit, so more can happen than with one statement, never less.
"""

from typing import Any

from plume_py.base import sql
from plume_py.base.sql.scopes import conjuncts, joined, origin_of
from plume_py.base.sql.syntax import wrong
from plume_py.infer.language import ir
from plume_py.infer.language.inserts import Around
from plume_py.infer.language.sql_expressions import Translator

HINT = "join tables by their whole primary keys, or write a SELECT for each"


def join(body: Around, stmt: sql.Select) -> list[ir.Stmt]:
    """The rows in an order in which each is found by its key."""
    tree, line = stmt.tree, stmt.line
    ties = joined([origin_of(tree).this, *(tree.args.get("joins") or ())])
    unread = [
        part
        for part in ("group", "having", "distinct", "order", "limit", "offset", "with_", "with")
        if tree.args.get(part)
    ]
    if ties is None or unread or any(part.is_star for part in tree.expressions):
        raise wrong("this join is not supported", line, HINT)
    nodes, conditions = ties
    scopes: list[tuple[str, sql.SqlTable, str]] = []
    for node in nodes:
        table = body.table(str(node.name), line)
        scopes.append((str(node.alias_or_name).lower(), table, body.at(line).fresh(table.name[:1])))
    below = body.at(line, scopes)
    where = tree.args.get("where")
    parts = [below.expr(part) for part in [*conditions, *conjuncts(where.this if where else None)]]
    found = _in_order(below, scopes, parts, stmt)
    values = tuple(below.expr(part.unalias()) for part in tree.expressions)
    body.learn(stmt.into, line)
    return [*found, ir.Let(line, stmt.into, values)]


def _in_order(
    below: Translator, scopes: list[tuple[str, sql.SqlTable, str]], parts: list[ir.Expr], stmt: sql.Select
) -> list[ir.Stmt]:
    found: list[ir.Stmt] = []
    own = {var for _, _, var in scopes}
    bound: set[str] = set()
    waiting = list(scopes)
    while waiting:
        for scope in waiting:
            _, table, var = scope
            ready = [part for part in parts if _rows(part) & own <= bound | {var}]
            condition = ir.conjunction(ready)
            if ir.pinned(condition, var, below.ir_table(table)):
                break
        else:
            raise wrong("this join is not supported", stmt.line, HINT)
        found.append(ir.SelectOne(stmt.line, var, table.name, condition, bool(stmt.lock)))
        bound.add(var)
        parts = [part for part in parts if part not in ready]
        waiting.remove(scope)
    return found


def _rows(part: ir.Expr) -> set[str]:
    return {node.row for node in ir.walk(part) if isinstance(node, ir.Field)}


def is_join(tree: Any) -> bool:
    """Is it from several tables?"""
    return bool(tree.args.get("joins"))
