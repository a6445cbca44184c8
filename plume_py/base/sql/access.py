"""Which tables, columns and rows a statement reads and writes: what analyses of conflicts need to know."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from plume_py.base.sql.model import Assign, Delete, File, If, Insert, Loop, Select, SqlTable, Statement, Update
from plume_py.base.sql.syntax import engine, wrong

READ, INSERT, UPDATE, DELETE = "read", "insert", "update", "delete"


@dataclass(frozen=True)
class TableAccess:
    """One access to a table.

    ``equal`` are the columns that the condition fixes, each with the text of its value; ``by_key`` says that these
    include the whole primary key, so that at most one row is meant and no predicate; ``exact`` says that the condition
    asks for nothing else, so that the row is found if it is there. ``columns`` are those that are read or written;
    those of the condition are in ``tested``. ``unbounded``: of a query whose rows were not looked into.
    """

    kind: str
    table: str
    columns: tuple[str, ...]
    tested: tuple[str, ...]
    equal: tuple[tuple[str, str], ...]
    by_key: bool
    line: int
    for_update: bool = False
    exact: bool = False
    unbounded: bool = False


def accesses(stmt: Statement, file: File) -> list[TableAccess]:
    """The accesses of a statement in order, those of its subqueries and of blocks inside it included."""
    return list(_accesses(stmt, file))


def _accesses(stmt: Statement, file: File) -> Iterator[TableAccess]:
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
        if seen:  # last, just before the write: it is the same row
            yield _access(READ, stmt.table, seen, stmt.where, file, stmt.line)
        yield _access(UPDATE, stmt.table, tuple(name for name, _ in stmt.sets), stmt.where, file, stmt.line)
    elif isinstance(stmt, Delete):
        yield from _inside(stmt.where, file, stmt.line)
        yield _access(DELETE, stmt.table, _names(file.table(stmt.table)), stmt.where, file, stmt.line)


def _insert(stmt: Insert, file: File) -> Iterator[TableAccess]:
    table = file.table(stmt.table)
    names = stmt.columns or _names(table)
    for row in stmt.rows:
        yield from _inside(list(row), file, stmt.line)
        equal = tuple((name, value.sql()) for name, value in zip(names, row, strict=False))
        by_key = _by_key(table, equal)
        yield TableAccess(INSERT, stmt.table, _names(table) or names, (), equal, by_key, stmt.line, exact=by_key)


def _access(
    kind: str, name: str, columns: tuple[str, ...], where: Any, file: File, line: int, lock: bool = False
) -> TableAccess:
    table = file.table(name)
    equal = equalities(where, table, _outside(where, file))
    by_key = _by_key(table, equal)
    exact = by_key and table is not None and len(_conjuncts(where)) == len(table.primary_key)
    return TableAccess(kind, name, columns, _columns([where], table), equal, by_key, line, lock, exact)


def _selects(tree: Any, file: File, line: int, lock: bool = False) -> Iterator[TableAccess]:
    if _complex(tree):
        yield from _mentioned(tree, file, line, lock)
        return
    origin = tree.args.get("from_") or tree.args.get("from")
    where, order = tree.args.get("where"), tree.args.get("order")
    if origin is not None:
        name = str(origin.this.name).lower()
        table = file.table(name)
        stars = any(part.is_star for part in tree.expressions)
        read = _names(table) if stars else _columns([*tree.expressions, order], table)
        yield _access(READ, name, read, where.this if where else None, file, line, lock)
    yield from _inside([*tree.expressions, where.this if where else None, order], file, line)


def _complex(tree: Any) -> bool:
    """Is it more than some values of one table's rows under a condition?"""
    exp = engine().exp
    origin = tree.args.get("from_") or tree.args.get("from")
    parts = ("joins", "laterals", "group", "having", "distinct", "with_", "with", "windows", "qualify", "offset")
    return (
        not isinstance(tree, exp.Select)
        or any(tree.args.get(part) for part in parts)
        or (origin is not None and not _is_plain(origin.this))
    )


def _is_plain(node: Any) -> bool:
    exp = engine().exp
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("joins")


def _mentioned(tree: Any, file: File, line: int, lock: bool) -> Iterator[TableAccess]:
    """Every table that occurs anywhere in a query, with all its rows and columns."""
    exp = engine().exp
    views = {str(view.alias).lower() for view in tree.find_all(exp.CTE)}
    names = dict.fromkeys(str(node.name).lower() for node in tree.find_all(exp.Table) if _is_plain_name(node, line))
    for name in sorted(names):
        if name not in views or file.table(name) is not None:
            columns = _names(file.table(name))
            yield TableAccess(READ, name, columns, columns, (), False, line, lock, unbounded=True)


def _is_plain_name(node: Any, line: int) -> bool:
    if not isinstance(node.this, engine().exp.Identifier):
        raise wrong("a function in FROM is not supported", line)
    return True


def _inside(trees: Any, file: File, line: int) -> Iterator[TableAccess]:
    """The subqueries of expressions."""
    exp = engine().exp
    for tree in trees if isinstance(trees, list) else [trees]:
        if tree is not None:
            for inner in _outermost(tree, (exp.Select, exp.SetOperation)):
                yield from _selects(inner, file, line)


def _outermost(tree: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(tree, kinds):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from _outermost(child, kinds)


def _outside(where: Any, file: File) -> set[str]:
    """The columns of the statements around a subquery, which its condition may mean."""
    exp = engine().exp
    found: set[str] = set()
    query = None if where is None else where.find_ancestor(exp.Select)
    around = None if query is None else query.parent
    while around is not None:
        if isinstance(around, exp.Select | exp.Update | exp.Delete):
            # of every table: a name too many only makes the answer more careful
            found = {name for table in file.tables for name in table.names}
        around = around.parent
    return found


def _aliases(where: Any) -> set[str]:
    """What the table of this condition is called in it, the empty name included."""
    exp = engine().exp
    query = None if where is None else where.find_ancestor(exp.Select, exp.Update, exp.Delete)
    if query is None:
        return {""}
    origin = query.args.get("from_") or query.args.get("from") or query
    return {"", str(origin.this.alias_or_name).lower()}


def _conjuncts(where: Any) -> list[Any]:
    parts = where.flatten() if isinstance(where, engine().exp.And) else (where,)
    return [] if where is None else [part.unnest() for part in parts]


def equalities(where: Any, table: SqlTable | None, outside: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """The columns that a conjunction fixes to a value without columns, and the text of that value.

    A name that is no column of the table, nor of those ``outside`` a subquery, is a variable or argument.
    """
    exp = engine().exp
    names = _names(table)
    own = _aliases(where)

    def is_column(node: Any) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in names and node.table.lower() in own

    def is_constant(node: Any) -> bool:
        columns = [column.name.lower() for column in node.find_all(exp.Column)]
        return node.find(exp.Select) is None and not any(name in names or name in outside for name in columns)

    found = []
    for part in _conjuncts(where):
        if isinstance(part, exp.EQ):
            for side, other in ((part.this, part.expression), (part.expression, part.this)):
                if is_column(side) and is_constant(other):
                    found.append((side.name.lower(), other.sql()))
    return tuple(found)


def _columns(trees: list[Any], table: SqlTable | None) -> tuple[str, ...]:
    """The columns of this table that expressions mention, also in subqueries, which may mean the row outside."""
    exp = engine().exp
    names = [node.name.lower() for tree in trees if tree is not None for node in tree.find_all(exp.Column)]
    known = _names(table)
    return tuple(dict.fromkeys(name for name in names if name in known))


def _names(table: SqlTable | None) -> tuple[str, ...]:
    return table.names if table else ()


def _by_key(table: SqlTable | None, equal: tuple[tuple[str, str], ...]) -> bool:
    return table is not None and bool(table.primary_key) and {name for name, _ in equal} >= set(table.primary_key)
