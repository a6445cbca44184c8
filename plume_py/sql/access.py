"""Which tables, columns and rows a statement reads and writes: what analyses of conflicts need to know."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plume_py.sql.model import Assign, Delete, File, If, Insert, Loop, Select, SqlTable, Statement, Update
from plume_py.sql.syntax import engine

READ, INSERT, UPDATE, DELETE = "read", "insert", "update", "delete"


@dataclass(frozen=True)
class Access:
    """One access to a table.

    ``equal`` are the columns that the condition fixes, each with the text of its value; ``by_key`` says that these
    include the whole primary key, so that at most one row is meant and no predicate. ``columns`` are those that are
    read or written; those of the condition are in ``tested``.
    """

    kind: str
    table: str
    columns: tuple[str, ...]
    tested: tuple[str, ...]
    equal: tuple[tuple[str, str], ...]
    by_key: bool
    line: int
    for_update: bool = False


def accesses(stmt: Statement, file: File) -> list[Access]:
    """The accesses of a statement in order, those of its subqueries and of blocks inside it included."""
    return list(_accesses(stmt, file))


def _accesses(stmt: Statement, file: File) -> Iterator[Access]:
    if isinstance(stmt, Select):
        yield from _selects(stmt.tree, file, stmt.line, stmt.for_update)
    elif isinstance(stmt, Assign):
        yield from _inside(stmt.value, file, stmt.line)
    elif isinstance(stmt, If):
        yield from _inside(stmt.condition.tree, file, stmt.line)
        for inner in (*stmt.then, *stmt.otherwise):
            yield from _accesses(inner, file)
    elif isinstance(stmt, Loop):
        yield from _accesses(stmt.query, file)
        for inner in stmt.body:
            yield from _accesses(inner, file)
    elif isinstance(stmt, Insert):
        yield from _insert(stmt, file)
    elif isinstance(stmt, Update):
        read = [value for _, value in stmt.sets]
        yield from _inside([*read, stmt.where], file, stmt.line)
        seen = _columns(read, file.table(stmt.table))
        if seen:
            yield _access(READ, stmt.table, seen, stmt.where, file, stmt.line)
        yield _access(UPDATE, stmt.table, tuple(name for name, _ in stmt.sets), stmt.where, file, stmt.line)
    elif isinstance(stmt, Delete):
        yield from _inside(stmt.where, file, stmt.line)
        yield _access(DELETE, stmt.table, _names(file.table(stmt.table)), stmt.where, file, stmt.line)


def _insert(stmt: Insert, file: File) -> Iterator[Access]:
    table = file.table(stmt.table)
    names = stmt.columns or _names(table)
    for row in stmt.rows:
        yield from _inside(list(row), file, stmt.line)
        equal = tuple((name, value.sql()) for name, value in zip(names, row, strict=False))
        yield Access(INSERT, stmt.table, _names(table) or names, (), equal, _by_key(table, equal), stmt.line)


def _access(
    kind: str, name: str, columns: tuple[str, ...], where: Any, file: File, line: int, lock: bool = False
) -> Access:
    table = file.table(name)
    equal = equalities(where, table)
    return Access(kind, name, columns, _columns([where], table), equal, _by_key(table, equal), line, lock)


def _selects(tree: Any, file: File, line: int, lock: bool = False) -> Iterator[Access]:
    origin = tree.args.get("from_") or tree.args.get("from")
    where = tree.args.get("where")
    if origin is not None:
        name = str(origin.this.name).lower()
        table = file.table(name)
        stars = any(part.is_star for part in tree.expressions)
        read = _names(table) if stars and not _is_aggregate(tree) else _columns(list(tree.expressions), table)
        yield _access(READ, name, read, where.this if where else None, file, line, lock)
    yield from _inside([*tree.expressions, where.this if where else None], file, line)


def _is_aggregate(tree: Any) -> bool:
    exp = engine().exp
    return any(part.find(exp.AggFunc) is not None for part in tree.expressions)


def _inside(trees: Any, file: File, line: int) -> Iterator[Access]:
    """The subqueries of expressions."""
    exp = engine().exp
    for tree in trees if isinstance(trees, list) else [trees]:
        if tree is not None:
            for inner in _outermost(tree, exp.Select):
                yield from _selects(inner, file, line)


def _outermost(tree: Any, kind: type) -> Iterator[Any]:
    if isinstance(tree, kind):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from _outermost(child, kind)


def equalities(where: Any, table: SqlTable | None) -> tuple[tuple[str, str], ...]:
    """The columns that a conjunction fixes to a value without columns, and the text of that value.

    A name that is no column of the table is a variable or argument.
    """
    exp = engine().exp
    if where is None:
        return ()
    names = _names(table)

    def is_column(node: Any) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in names

    found = []
    for part in where.flatten() if isinstance(where, exp.And) else (where,):
        part = part.unnest()
        if isinstance(part, exp.EQ):
            for side, other in ((part.this, part.expression), (part.expression, part.this)):
                constant = other.find(exp.Select) is None and not any(map(is_column, other.find_all(exp.Column)))
                if is_column(side) and constant:
                    found.append((side.name.lower(), other.sql()))
    return tuple(found)


def _columns(trees: list[Any], table: SqlTable | None) -> tuple[str, ...]:
    """The columns of this table that expressions mention outside subqueries."""
    exp = engine().exp
    names = [
        node.name.lower()
        for tree in trees
        if tree is not None
        for node in tree.find_all(exp.Column)
        if node.find_ancestor(exp.Select) is tree.find_ancestor(exp.Select)
    ]
    known = _names(table)
    return tuple(dict.fromkeys(name for name in names if name in known))


def _names(table: SqlTable | None) -> tuple[str, ...]:
    return table.names if table else ()


def _by_key(table: SqlTable | None, equal: tuple[tuple[str, str], ...]) -> bool:
    return table is not None and bool(table.primary_key) and {name for name, _ in equal} >= set(table.primary_key)
