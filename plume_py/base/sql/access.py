"""Which tables, columns and rows a statement reads and writes: what analyses of conflicts need to know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plume_py.base.sql.model import (
    Assign,
    Attempt,
    Change,
    Delete,
    File,
    If,
    Insert,
    Loop,
    Repeat,
    Select,
    SqlTable,
    Statement,
    Update,
)
from plume_py.base.sql.scopes import Fixed, Scope, around, conjuncts, is_plain, joined, mentioned, origin_of, outermost
from plume_py.base.sql.syntax import engine, wrong
from plume_py.base.text import nearest

READ, INSERT, UPDATE, DELETE = "read", "insert", "update", "delete"
# In place of the value of a key: one that the database makes up. The line and a number tell several apart.
GENERATED = "generated"


@dataclass(frozen=True)
class TableAccess:
    """One access to a table.

    ``equal`` are the columns that the condition fixes, each with the text of its value; ``by_key`` says that these
    include the whole primary key, so that at most one row is meant and no predicate; ``exact`` says that the condition
    asks for nothing else, so that the row is found if it is there, and ``sure`` that it is written in any case.
    ``columns`` are those that are read or written; those of the condition are in ``tested``. ``in_place``: columns that
    are written, and read at the version that is overwritten. ``lock`` as of Select. ``unbounded``: of a query whose
    rows were not looked into; ``cascade``: what a foreign key brings about.
    """

    kind: str
    table: str
    columns: tuple[str, ...]
    tested: tuple[str, ...]
    equal: tuple[tuple[str, str], ...]
    by_key: bool
    line: int
    lock: str = ""
    exact: bool = False
    sure: bool = False
    in_place: tuple[str, ...] = ()
    unbounded: bool = False
    cascade: bool = False


def accesses(stmt: Statement, file: File) -> list[TableAccess]:
    """The accesses of a statement in order, those of its subqueries and of blocks inside it included."""
    return list(_Accesses(file, stmt.line).of(stmt))


class _Accesses:
    def __init__(self, file: File, line: int) -> None:
        self.file, self.line = file, line

    def of(self, stmt: Statement) -> Iterator[TableAccess]:
        """Those of any statement."""
        self.line = stmt.line
        if isinstance(stmt, Select):
            yield from self.query(stmt.tree, stmt.lock)
        elif isinstance(stmt, Assign):
            yield from self.inside(stmt.value)
        elif isinstance(stmt, If):
            yield from self.inside(stmt.condition.tree)
            yield from self.block((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop):
            yield from self.of(stmt.query)
            yield from self.block(stmt.body)
        elif isinstance(stmt, Repeat):
            yield from self.inside(stmt.condition)
            yield from self.block(stmt.body)
        elif isinstance(stmt, Attempt):
            yield from self.block((*stmt.body, *stmt.otherwise))
        elif isinstance(stmt, Change):
            yield from self.change(stmt)

    def block(self, body: Sequence[Statement]) -> Iterator[TableAccess]:
        """Those of statements inside another."""
        for inner in body:
            yield from self.of(inner)

    def table(self, name: str) -> SqlTable:
        """A table that exists."""
        table = self.file.table(name)
        if table is None:
            hint = "give its CREATE TABLE, here or with --schema"
            raise wrong(f"no table {name:.60}", self.line, hint)
        require_seen(table, self.line, writes=False)
        return table

    # -- reading --

    def inside(self, *trees: Any) -> Iterator[TableAccess]:
        """The subqueries of expressions."""
        exp = engine().exp
        for tree in trees:
            if tree is not None:
                for inner in outermost(tree, (exp.Select, exp.SetOperation)):
                    yield from self.query(inner)

    def query(self, tree: Any, lock: str = "") -> Iterator[TableAccess]:
        """The rows of a SELECT: those that its conditions fix by key, or else all of its tables."""
        origin = origin_of(tree)
        ties = None if _is_complex(tree) else joined([*_tables(origin), *(tree.args.get("joins") or ())])
        if ties is None:
            yield from self.everything(tree, lock)
            return
        tables, conditions = ties
        where, order = tree.args.get("where"), tree.args.get("order")
        scope = {str(node.alias_or_name).lower(): self.table(str(node.name)) for node in tables}
        if len(scope) < len(tables):
            yield from self.everything(tree, lock)
            return
        conditions = [*conditions, *conjuncts(where.this if where else None)]
        stars = any(part.is_star for part in tree.expressions)
        for alias, table in scope.items():
            read = table.names if stars else mentioned([*tree.expressions, order], table)
            yield self.access(READ, read, conditions, scope, alias, tree, _locks(tree, alias, lock))
        yield from self.inside(*tree.expressions, *conditions, order)

    def everything(self, tree: Any, lock: str) -> Iterator[TableAccess]:
        """Every table that occurs anywhere in a query, with all its rows and columns."""
        exp = engine().exp
        views = {str(view.alias).lower() for view in tree.find_all(exp.CTE)}
        names: dict[str, None] = {}
        for node in tree.find_all(exp.Table):
            if not isinstance(node.this, exp.Identifier):
                raise wrong("a function in FROM is not supported", self.line, "use a table")
            names[str(node.name).lower()] = None
        for name in sorted(names):
            if name not in views or self.file.table(name) is not None:
                columns = self.table(name).names
                yield TableAccess(READ, name, columns, columns, (), False, self.line, lock, unbounded=True)

    def access(
        self,
        kind: str,
        columns: tuple[str, ...],
        conditions: Sequence[Any],
        scope: Scope,
        alias: str,
        tree: Any,
        lock: str = "",
        in_place: tuple[str, ...] = (),
    ) -> TableAccess:
        """An access to one of the tables in ``scope`` under these conditions."""
        table = scope[alias]
        equal = Fixed(conditions, scope, around(tree, self.file)).of(alias)
        by_key = _by_key(table, equal)
        exact = by_key and len(scope) == 1 and len(conditions) == len(table.primary_key)
        tested = mentioned(conditions, table)
        return TableAccess(kind, table.name, columns, tested, equal, by_key, self.line, lock, exact, False, in_place)

    # -- writing --

    def change(self, stmt: Change) -> Iterator[TableAccess]:
        """INSERT, UPDATE, DELETE."""
        require_seen(self.table(stmt.table), self.line, writes=True)
        if isinstance(stmt, Insert):
            yield from self.insert(stmt)
        elif isinstance(stmt, Update):
            yield from self.update(stmt)
        elif isinstance(stmt, Delete):
            yield from self.delete(stmt)

    def target(self, stmt: Update | Delete) -> tuple[Scope, str, list[Any]]:
        """The tables of a statement, the alias of the one that is written, and its conditions."""
        alias = str(stmt.tree.this.alias_or_name).lower()
        ties = joined(stmt.others)
        if ties is None:
            hint = "join tables by their names, or read what is needed with SELECT … INTO before"
            raise wrong("this kind of join in a statement that writes is not supported", self.line, hint)
        tables, conditions = ties
        scope = {alias: self.table(stmt.table)}
        scope |= {str(node.alias_or_name).lower(): self.table(str(node.name)) for node in tables}
        if len(scope) < 1 + len(tables):
            raise wrong("two tables have the same name here", self.line, "give one of them an alias")
        return scope, alias, [*conditions, *conjuncts(stmt.where)]

    def update(self, stmt: Update) -> Iterator[TableAccess]:
        """What the other tables give, what the values are made of, and last the row itself."""
        scope, alias, conditions = self.target(stmt)
        table = scope[alias]
        values = [value for _, value in stmt.sets]
        written = tuple(name for name, _ in stmt.sets)
        self.known(table, written)
        for other in scope:
            if other != alias:
                read = mentioned([*values, *stmt.returning], scope[other])
                yield self.access(READ, read, conditions, scope, other, stmt.where)
        yield from self.inside(*values, *conditions, *stmt.returning)
        seen = mentioned(values, table)
        nested = any(tree.find(engine().exp.Select) for tree in (*values, *conditions))
        in_place = tuple(name for name in seen if name in written and not nested and not stmt.others)
        also = table.names if any(part.is_star for part in stmt.returning) else mentioned(stmt.returning, table)
        read = tuple(
            name
            for name in dict.fromkeys((*seen, *also))
            if name not in in_place and (name in seen or name not in written)
        )
        if read:
            yield self.access(READ, read, conditions, scope, alias, stmt.where)
        yield self.access(UPDATE, written, conditions, scope, alias, stmt.where, in_place=in_place)
        touched = tuple(c.name for c in table.columns if c.touched and c.name not in written)
        if touched:
            yield TableAccess(
                UPDATE,
                table.name,
                touched,
                (),
                self.access(READ, (), conditions, scope, alias, stmt.where).equal,
                False,
                self.line,
            )
        if any(name in table.primary_key for name in written):
            yield from self.cascade(table, "ON UPDATE", set())

    def delete(self, stmt: Delete) -> Iterator[TableAccess]:
        """The row, and those that go with it."""
        scope, alias, conditions = self.target(stmt)
        for other in scope:
            if other != alias:
                yield self.access(READ, mentioned(stmt.returning, scope[other]), conditions, scope, other, stmt.where)
        yield from self.inside(*conditions, *stmt.returning)
        table = scope[alias]
        if stmt.returning:
            star = any(part.is_star for part in stmt.returning)
            read = table.names if star else mentioned(stmt.returning, table)
            yield self.access(READ, read, conditions, scope, alias, stmt.where)
        yield self.access(DELETE, table.names, conditions, scope, alias, stmt.where)
        yield from self.cascade(table, "ON DELETE", set())

    def cascade(self, table: SqlTable, event: str, seen: set[str]) -> Iterator[TableAccess]:
        """What foreign keys do to the tables that refer to this one: to any of their rows."""
        seen.add(table.name)
        for child in self.file.tables:
            for key in child.foreign_keys:
                if key.table != table.name or event not in key.cascades or child.name in seen:
                    continue
                require_seen(child, self.line, writes=True)
                deletes = event == "ON DELETE" and "ON DELETE CASCADE" in key.cascades
                columns = child.names if deletes else key.columns
                kind = DELETE if deletes else UPDATE
                yield TableAccess(kind, child.name, columns, key.columns, (), False, self.line, cascade=True)
                if deletes:
                    yield from self.cascade(child, event, seen)

    def insert(self, stmt: Insert) -> Iterator[TableAccess]:
        """A row each; with ON CONFLICT, also what is done to the row that is there."""
        table = self.table(stmt.table)
        names = stmt.columns or table.names
        self.known(table, names)
        if stmt.query is not None:
            yield from self.query(stmt.query)
            values = list(getattr(stmt.query, "expressions", ())) if not _is_complex(stmt.query) else []
            rows: tuple[tuple[Any, ...], ...] = (tuple(values),)
            self.fits(values, names, any(v.is_star for v in values) or not values)
        else:
            rows = stmt.rows
        for number, row in enumerate(rows):
            if stmt.query is None:
                self.fits(row, names, not row)
            yield from self.inside(*row)
            yield from self.row(stmt, table, dict(zip(names, row, strict=False)), number)

    def row(self, stmt: Insert, table: SqlTable, values: dict[str, Any], number: int) -> Iterator[TableAccess]:
        """One new row, or several of a query."""
        outside = () if stmt.query is None else {name for t in self.file.tables for name in t.names}
        equal = [(name, value.sql()) for name, value in values.items() if _is_value(value, outside)]
        missing = [c for c in table.columns if c.name not in dict(equal) and c.name not in values and c.generated]
        if stmt.query is None:
            equal += [(c.name, f"{GENERATED} {self.line} {number} {c.name}") for c in missing]
        by_key = _by_key(table, tuple(equal))
        plain = stmt.query is None and stmt.conflict is None
        yield from self.looked_for(stmt, table, by_key)
        yield TableAccess(INSERT, table.name, table.names, (), tuple(equal), by_key, self.line, exact=by_key and plain)
        if stmt.conflict is not None and stmt.conflict.sets:
            yield from self.instead(stmt, table, tuple(equal), by_key)

    def looked_for(self, stmt: Insert, table: SqlTable, by_key: bool) -> Iterator[TableAccess]:
        """Which rows decide whether there is a conflict, besides the one with the same primary key."""
        if stmt.conflict is None:
            return
        target = stmt.conflict.target
        by_others = _has_other_keys(table) if not target else set(target) != set(table.primary_key)
        if by_others or not by_key:
            unique = (table.names,) if table.partly_unique else table.unique
            columns = tuple(dict.fromkeys(target or (c for group in (table.primary_key, *unique) for c in group)))
            self.known(table, columns)
            yield TableAccess(READ, table.name, columns, columns, (), False, self.line)

    def instead(
        self, stmt: Insert, table: SqlTable, equal: tuple[tuple[str, str], ...], by_key: bool
    ) -> Iterator[TableAccess]:
        """ON CONFLICT DO UPDATE: the newest version of the row that is there."""
        conflict = stmt.conflict
        assert conflict is not None
        values = [value for _, value in conflict.sets]
        written = tuple(name for name, _ in conflict.sets)
        self.known(table, written)
        yield from self.inside(*values, conflict.where)
        target = set(conflict.target or table.primary_key)
        by_primary = target == set(table.primary_key) and (bool(conflict.target) or not _has_other_keys(table))
        fixed = equal if by_primary else ()
        nested = any(tree is not None and tree.find(engine().exp.Select) for tree in (*values, conflict.where))
        seen = _besides_excluded(values, table)
        in_place = tuple(name for name in seen if name in written and not nested)
        read = tuple(name for name in seen if name not in in_place)
        tested = _besides_excluded([conflict.where], table)
        key = by_key and by_primary
        if read:
            yield TableAccess(READ, table.name, read, tested, fixed, key, self.line)
        sure = key and conflict.where is None and stmt.query is None
        yield TableAccess(
            UPDATE, table.name, written, tested, fixed, key, self.line, exact=sure, sure=sure, in_place=in_place
        )

    def known(self, table: SqlTable, names: Sequence[str]) -> None:
        """An error for a column that the table does not have."""
        for name in names:
            if name not in table.names:
                raise wrong(f"{table.name} has no column {name:.60}", self.line, nearest(name, table.names))

    def fits(self, row: Sequence[Any], names: Sequence[str], unknown: bool) -> None:
        """An error for a row of another width."""
        if not unknown and len(row) != len(names):
            hint = f"the columns are {', '.join(names)}"
            raise wrong(f"INSERT has {len(row)} values for {len(names)} columns", self.line, hint)  # noqa: S608 - no SQL


def require_seen(table: SqlTable, line: int, writes: bool) -> None:
    """An error if an access starts something that reads and writes beside the transaction."""
    unseen = table.unseen
    if unseen is not None and (writes or unseen.of_reads):
        said = f"{unseen.what} on {table.name} (line {unseen.line} of the schema) is not supported"
        raise wrong(said, line, "leave it out, and write what it does into the transaction")


def _tables(origin: Any) -> list[Any]:
    return [] if origin is None else [origin.this]


def _is_complex(tree: Any) -> bool:
    """Is it more than some values of tables' rows under a condition?"""
    exp = engine().exp
    parts = ("laterals", "group", "having", "distinct", "with_", "with", "windows", "qualify", "offset")
    origin = None if not isinstance(tree, exp.Select) else origin_of(tree)
    return (
        not isinstance(tree, exp.Select)
        or any(tree.args.get(part) for part in parts)
        or (origin is not None and not is_plain(origin.this))
    )


def _locks(tree: Any, alias: str, lock: str) -> str:
    """FOR UPDATE OF names the tables that are locked."""
    locks = tree.args.get("locks") or ()
    named = {str(table.alias_or_name).lower() for part in locks for table in part.expressions}
    return lock if locks and (not named or alias in named) else ""


def _besides_excluded(trees: Sequence[Any], table: SqlTable) -> tuple[str, ...]:
    """The columns of the row that is there; EXCLUDED and VALUES(…) are those of the row that was to be."""
    exp = engine().exp
    found: dict[str, None] = {}
    for tree in trees:
        for node in tree.find_all(exp.Column) if tree is not None else ():
            call = node.find_ancestor(exp.Anonymous)
            if node.table.lower() != "excluded" and not (call is not None and call.name.upper() == "VALUES"):
                found[node.name.lower()] = None
    return tuple(name for name in found if name in table.names)


def _has_other_keys(table: SqlTable) -> bool:
    """Can a row be in conflict with one of another primary key?"""
    return bool(table.unique) or table.partly_unique


def _is_value(node: Any, outside: Any) -> bool:
    """Can this stand for the value of a column: no subquery, no DEFAULT, nothing of a row?"""
    exp = engine().exp
    if node.find(exp.Select) or isinstance(node, exp.Var) or node.is_star:
        return False
    return not any(column.name.lower() in outside for column in node.find_all(exp.Column))


def _by_key(table: SqlTable, equal: tuple[tuple[str, str], ...]) -> bool:
    return bool(table.primary_key) and {name for name, _ in equal} >= set(table.primary_key)
