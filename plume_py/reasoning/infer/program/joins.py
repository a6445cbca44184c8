"""SELECT over several tables, and which of several rows it means, or in which order.

A join is row after row, each by its primary key. One statement becomes several. Between them others may commit, so
more can happen than with one statement, never less.
"""

from dataclasses import replace
from typing import Any

from plume_py.base import sql
from plume_py.base.sql.access import conjuncts, joined
from plume_py.base.sql.syntax import origin_of, wrong
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.inserts import Around
from plume_py.reasoning.infer.program.sql_constraints import table_of
from plume_py.reasoning.infer.program.sql_expressions import Aggregates, Translator

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


def some_row(
    body: Around, rows: Aggregates, values: tuple[ir.Expr, ...] | None, locks: bool, line: int
) -> ir.SelectOne:
    """SELECT of one row: where several match the database takes any of them, as its scan comes by.

    So what is seen of the row, or locked, is an argument more; without ``values`` all of it is seen.
    """
    table, known = body.table(rows.table, line), ir.fixed(rows.where, rows.var)
    where = rows.where
    if not any(known.keys() >= set(key) for key in (table.primary_key, *table.unique) if key):
        nodes = [node for value in values or () for node in ir.walk(value)]
        seen = {node.column for node in nodes if isinstance(node, ir.Field) and node.row == rows.var}
        seen |= set(table.names) if values is None else set(table.primary_key or table.names) if locks else set()
        picked = [(name, sort) for name, sort in table_of(table).columns if name in seen - known.keys()]
        same = [(ir.Field(rows.var, name), body.unknown(f"some_{name}", sort, line)) for name, sort in picked]
        where = ir.conjunction([where, *(ir.Operation("=", pair) for pair in same)])
    return ir.SelectOne(line, rows.var, rows.table, where, locks)


def in_any_order(loop: ir.ForEach, table: sql.SqlTable, below: Translator, made_up: list[ir.Param]) -> ir.ForEach:
    """The rows of a loop come in whatever order the scan meets them: an argument says from which end.

    Unless each round is about a row of its own.
    """
    (stmt, *more) = loop.body or (ir.Stmt(loop.line),)
    asks = more or any(isinstance(node, ir.Query) for node in ir.walk(stmt))
    own = {ir.Field(loop.var, column) for column in table.primary_key}
    if not asks and (
        isinstance(stmt, ir.Insert)
        or (isinstance(stmt, ir.Update | ir.Delete) and own and own <= {*ir.fixed(stmt.where, stmt.var).values()})
    ):
        return loop
    made_up.append(ir.Param(below.fresh("backwards"), "bool"))
    return replace(loop, backwards=made_up[-1].name)


def is_join(tree: Any) -> bool:
    """Is it from several tables?"""
    return bool(tree.args.get("joins"))
