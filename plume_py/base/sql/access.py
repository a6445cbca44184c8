"""Determine which tables, columns and rows a statement reads and writes, for analyses of conflicts.

``accesses`` walks a statement and yields a ``TableAccess`` for each table. ``FixedColumns`` derives from the conditions
which columns have a fixed value; if they contain the primary key, at most one row is accessed. A query with clauses
that are not analysed counts as a read of all rows and columns of its tables.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
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
from plume_py.base.sql.syntax import engine, origin_of, wrong
from plume_py.base.text import nearest

READ, INSERT, UPDATE, DELETE = "read", "insert", "update", "delete"
# Value of a key that the database generates; line, row and column are appended, so that the values differ.
GENERATED = "generated"

Scope = dict[str, SqlTable]  # the tables of a statement, by alias


@dataclass(frozen=True)
class TableAccess:
    """One access to a table.

    - ``columns``: the columns read or written; ``tested``: the columns in the condition.
    - ``equal``: the columns that the condition fixes, each with the text of its value.
    - ``by_key``: ``equal`` contains the primary key, so at most one row is accessed, and no predicate.
    - ``exact``: the condition has no other part, so the row is found if it exists.
    - ``sure``: the row is written in any case.
    - ``in_place``: columns that are written, and read at the version that is overwritten.
    - ``lock``: as of ``Select``.
    - ``unbounded``: part of a query with conditions that were not analysed.
    - ``cascade``: caused by a foreign key.
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
    """Return the accesses of a statement in order, including its subqueries and inner statements."""
    return list(_Accesses(file, stmt.line).of(stmt))


class _Accesses:
    def __init__(self, file: File, line: int) -> None:
        self.file, self.line = file, line

    def of(self, stmt: Statement) -> Iterator[TableAccess]:
        """Yield the accesses of any statement."""
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
        for inner in body:
            yield from self.of(inner)

    def table(self, name: str) -> SqlTable:
        """Return a table by name; raise an error if it does not exist or reads of it have side effects."""
        table = self.file.table(name)
        if table is None:
            hint = "give its CREATE TABLE, here or with --schema"
            raise wrong(f"no table {name:.60}", self.line, hint)
        reject_side_effects(table, self.line, writes=False)
        return table

    # -- reading --

    def inside(self, *trees: Any) -> Iterator[TableAccess]:
        """Yield the accesses of the subqueries of expressions."""
        exp = engine().exp
        for tree in trees:
            if tree is not None:
                for inner in outermost(tree, (exp.Select, exp.SetOperation)):
                    yield from self.query(inner)

    def query(self, tree: Any, lock: str = "") -> Iterator[TableAccess]:
        """Yield the reads of a SELECT: rows by its conditions, or all rows of its tables."""
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
        """Yield a read of all rows and columns of each table that occurs anywhere in a query."""
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
    ) -> TableAccess:
        """Return the access to the table ``alias`` of ``scope`` under these conditions."""
        table = scope[alias]
        equal = FixedColumns(conditions, scope, outer_columns(tree, self.file)).of(alias)
        by_key = _by_key(table, equal)
        exact = by_key and len(scope) == 1 and len(conditions) == len(table.primary_key)
        tested = mentioned(conditions, table)
        return TableAccess(kind, table.name, columns, tested, equal, by_key, self.line, lock, exact)

    # -- writing --

    def change(self, stmt: Change) -> Iterator[TableAccess]:
        """Yield the accesses of INSERT, UPDATE or DELETE."""
        reject_side_effects(self.table(stmt.table), self.line, writes=True)
        if isinstance(stmt, Insert):
            yield from self.insert(stmt)
        elif isinstance(stmt, Update):
            yield from self.update(stmt)
        elif isinstance(stmt, Delete):
            yield from self.delete(stmt)

    def target(self, stmt: Update | Delete) -> tuple[Scope, str, list[Any]]:
        """Return the tables of a statement, the alias of the written one, and the conditions."""
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
        """Yield the reads of other tables, the reads of the row, and last the write of the row."""
        scope, alias, conditions = self.target(stmt)
        table = scope[alias]
        values = [value for _, value in stmt.sets]
        written = tuple(name for name, _ in stmt.sets)
        self.require_columns(table, written)
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
        yield replace(self.access(UPDATE, written, conditions, scope, alias, stmt.where), in_place=in_place)
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
        """Yield the reads, the deletion of the row, and the cascades."""
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
        """Yield writes to any row of the tables that refer to this one, as their foreign keys demand."""
        seen.add(table.name)
        for child in self.file.tables:
            for key in child.foreign_keys:
                if key.table != table.name or event not in key.cascades or child.name in seen:
                    continue
                reject_side_effects(child, self.line, writes=True)
                deletes = event == "ON DELETE" and "ON DELETE CASCADE" in key.cascades
                columns = child.names if deletes else key.columns
                kind = DELETE if deletes else UPDATE
                yield TableAccess(kind, child.name, columns, key.columns, (), False, self.line, cascade=True)
                if deletes:
                    yield from self.cascade(child, event, seen)

    def insert(self, stmt: Insert) -> Iterator[TableAccess]:
        """Yield the insertion of each row, and with ON CONFLICT the accesses to the existing row."""
        table = self.table(stmt.table)
        names = stmt.columns or table.names
        self.require_columns(table, names)
        if stmt.query is not None:
            yield from self.query(stmt.query)
            values = list(getattr(stmt.query, "expressions", ())) if not _is_complex(stmt.query) else []
            rows: tuple[tuple[Any, ...], ...] = (tuple(values),)
            self.require_width(values, names, any(v.is_star for v in values) or not values)
        else:
            rows = stmt.rows
        for number, row in enumerate(rows):
            if stmt.query is None:
                self.require_width(row, names, not row)
            yield from self.inside(*row)
            yield from self.row(stmt, table, dict(zip(names, row, strict=False)), number)

    def row(self, stmt: Insert, table: SqlTable, values: dict[str, Any], number: int) -> Iterator[TableAccess]:
        """Yield the accesses for one new row, or for the rows of a query."""
        outside = () if stmt.query is None else {name for t in self.file.tables for name in t.names}
        equal = [(name, value.sql()) for name, value in values.items() if _is_value(value, outside)]
        missing = [c for c in table.columns if c.name not in dict(equal) and c.name not in values and c.generated]
        if stmt.query is None:
            equal += [(c.name, f"{GENERATED} {self.line} {number} {c.name}") for c in missing]
        by_key = _by_key(table, tuple(equal))
        plain = stmt.query is None and stmt.conflict is None
        yield from self.conflict_reads(stmt, table, by_key)
        yield TableAccess(INSERT, table.name, table.names, (), tuple(equal), by_key, self.line, exact=by_key and plain)
        if stmt.conflict is not None and stmt.conflict.sets:
            yield from self.update_existing(stmt, table, tuple(equal), by_key)

    def conflict_reads(self, stmt: Insert, table: SqlTable, by_key: bool) -> Iterator[TableAccess]:
        """Yield the read of rows that decide about a conflict, other than the row with the same primary key."""
        if stmt.conflict is None:
            return
        target = stmt.conflict.target
        by_others = _has_other_keys(table) if not target else set(target) != set(table.primary_key)
        if by_others or not by_key:
            unique = (table.names,) if table.partly_unique else table.unique
            columns = tuple(dict.fromkeys(target or (c for group in (table.primary_key, *unique) for c in group)))
            self.require_columns(table, columns)
            yield TableAccess(READ, table.name, columns, columns, (), False, self.line)

    def update_existing(
        self, stmt: Insert, table: SqlTable, equal: tuple[tuple[str, str], ...], by_key: bool
    ) -> Iterator[TableAccess]:
        """Yield the accesses of ON CONFLICT DO UPDATE to the newest version of the existing row."""
        conflict = stmt.conflict
        assert conflict is not None
        values = [value for _, value in conflict.sets]
        written = tuple(name for name, _ in conflict.sets)
        self.require_columns(table, written)
        yield from self.inside(*values, conflict.where)
        target = set(conflict.target or table.primary_key)
        by_primary = target == set(table.primary_key) and (bool(conflict.target) or not _has_other_keys(table))
        fixed = equal if by_primary else ()
        nested = any(tree is not None and tree.find(engine().exp.Select) for tree in (*values, conflict.where))
        seen = _existing_row_columns(values, table)
        in_place = tuple(name for name in seen if name in written and not nested)
        read = tuple(name for name in seen if name not in in_place)
        tested = _existing_row_columns([conflict.where], table)
        key = by_key and by_primary
        if read:
            yield TableAccess(READ, table.name, read, tested, fixed, key, self.line)
        sure = key and conflict.where is None and stmt.query is None
        yield TableAccess(
            UPDATE, table.name, written, tested, fixed, key, self.line, exact=sure, sure=sure, in_place=in_place
        )

    def require_columns(self, table: SqlTable, names: Sequence[str]) -> None:
        """Raise an error for a column that the table does not have."""
        for name in names:
            if name not in table.names:
                raise wrong(f"{table.name} has no column {name:.60}", self.line, nearest(name, table.names))

    def require_width(self, row: Sequence[Any], names: Sequence[str], unknown: bool) -> None:
        """Raise an error if a row has another number of values; ``unknown``: the number is unknown."""
        if not unknown and len(row) != len(names):
            hint = f"the columns are {', '.join(names)}"
            raise wrong(f"INSERT has {len(row)} values for {len(names)} columns", self.line, hint)  # noqa: S608 - no SQL


def reject_side_effects(table: SqlTable, line: int, writes: bool) -> None:
    """Raise an error if an access triggers statements outside of the transaction."""
    side_effect = table.side_effect
    if side_effect is not None and (writes or side_effect.of_reads):
        said = f"{side_effect.what} on {table.name} (line {side_effect.line} of the schema) is not supported"
        raise wrong(said, line, "leave it out, and write what it does into the transaction")


def _tables(origin: Any) -> list[Any]:
    return [] if origin is None else [origin.this]


def _is_complex(tree: Any) -> bool:
    """Return whether a query has clauses other than values, tables, conditions and order."""
    exp = engine().exp
    parts = ("laterals", "group", "having", "distinct", "with_", "with", "windows", "qualify", "offset")
    origin = None if not isinstance(tree, exp.Select) else origin_of(tree)
    return (
        not isinstance(tree, exp.Select)
        or any(tree.args.get(part) for part in parts)
        or (origin is not None and not is_plain(origin.this))
    )


def _locks(tree: Any, alias: str, lock: str) -> str:
    """Return ``lock`` if the query locks the table ``alias``; FOR UPDATE OF lists the locked tables."""
    locks = tree.args.get("locks") or ()
    named = {str(table.alias_or_name).lower() for part in locks for table in part.expressions}
    return lock if locks and (not named or alias in named) else ""


def _existing_row_columns(trees: Sequence[Any], table: SqlTable) -> tuple[str, ...]:
    """Return the columns of the existing row in ``trees``; EXCLUDED and VALUES(…) mean the new row."""
    exp = engine().exp
    found: dict[str, None] = {}
    for tree in trees:
        for node in tree.find_all(exp.Column) if tree is not None else ():
            call = node.find_ancestor(exp.Anonymous)
            if node.table.lower() != "excluded" and not (call is not None and call.name.upper() == "VALUES"):
                found[node.name.lower()] = None
    return tuple(name for name in found if name in table.names)


def _has_other_keys(table: SqlTable) -> bool:
    """Return whether a new row can conflict with a row that has another primary key."""
    return bool(table.unique) or table.partly_unique


def _is_value(node: Any, outside: Any) -> bool:
    """Return whether an expression is a fixed value: no subquery, no DEFAULT, no column."""
    exp = engine().exp
    if node.find(exp.Select) or isinstance(node, exp.Var) or node.is_star:
        return False
    return not any(column.name.lower() in outside for column in node.find_all(exp.Column))


def _by_key(table: SqlTable, equal: tuple[tuple[str, str], ...]) -> bool:
    return bool(table.primary_key) and {name for name, _ in equal} >= set(table.primary_key)


def conjuncts(where: Any) -> list[Any]:
    """Return the parts of a conjunction."""
    parts = where.flatten() if isinstance(where, engine().exp.And) else (where,)
    return [] if where is None else [part.unnest() for part in parts]


def is_plain(node: Any) -> bool:
    """Return whether a node is a table by its name, without joins."""
    exp = engine().exp
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("joins")


def joined(joins: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """Return the tables of inner joins and the join conditions; None for other joins."""
    exp = engine().exp
    tables, conditions = [], []
    for join in joins:
        if not isinstance(join, exp.Join):
            tables.append(join)
            continue
        if (
            join.args.get("side")
            or join.args.get("method")
            or str(join.args.get("kind") or "INNER") not in ("INNER", "CROSS")
        ):
            return None
        tables.append(join.this)
        conditions += conjuncts(join.args.get("on"))
        if join.args.get("using"):
            conditions += [exp.EQ(this=exp.column(c.name), expression=exp.column(c.name)) for c in join.args["using"]]
    return (tables, conditions) if all(is_plain(table) for table in tables) else None


def outer_columns(tree: Any, file: File) -> set[str]:
    """Return the columns of the statements around a subquery, to which its condition may refer."""
    exp = engine().exp
    query = None if tree is None else tree if isinstance(tree, exp.Select) else tree.find_ancestor(exp.Select)
    outer = None if query is None else query.parent
    while outer is not None:
        if isinstance(outer, exp.Select | exp.Update | exp.Delete):
            # of all tables: with more names, fewer columns count as fixed, which is safe
            return {name for table in file.tables for name in table.names}
        outer = outer.parent
    return set()


class FixedColumns:
    """The columns that conditions fix, also through other columns: with ``a.x = :v AND b.y = a.x``, both."""

    def __init__(self, conditions: Sequence[Any], scope: Scope, outside: Collection[str]) -> None:
        self.scope, self.outside = scope, outside
        self.columns = {name for table in scope.values() for name in table.names}
        self.values: dict[tuple[str, str], list[str]] = {}
        pairs: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for part in conditions:
            if isinstance(part, engine().exp.EQ):
                self._equality(part, pairs)
        for _ in pairs:  # until nothing changes
            for left, right in pairs:
                for one, other in ((left, right), (right, left)):
                    known = self.values.setdefault(one, [])
                    known += [text for text in self.values.get(other, ()) if text not in known]

    def _equality(self, part: Any, pairs: list[tuple[tuple[str, str], tuple[str, str]]]) -> None:
        sides = [self._column(side) for side in (part.this, part.expression)]
        for place, other in zip(sides, (part.expression, part.this), strict=True):
            if place is not None and self._is_constant(other):
                self.values.setdefault(place, []).append(other.sql())
        left, right = sides
        if left is not None and right is not None and self._type(left) == self._type(right):
            pairs.append((left, right))

    def _column(self, node: Any) -> tuple[str, str] | None:
        """Return the alias and name of the column that a node is; None for other nodes and for ambiguous columns."""
        if not isinstance(node, engine().exp.Column):
            return None
        name, owner = str(node.name).lower(), str(node.table).lower()
        owners = [alias for alias, table in self.scope.items() if name in table.names and owner in ("", alias)]
        return (owners[0], name) if len(owners) == 1 else None

    def _type(self, place: tuple[str, str]) -> str:
        return next(column.type for column in self.scope[place[0]].columns if column.name == place[1])

    def _is_constant(self, node: Any) -> bool:
        exp = engine().exp
        names = [column.name.lower() for column in node.find_all(exp.Column)]
        return node.find(exp.Select) is None and not any(name in self.columns or name in self.outside for name in names)

    def of(self, alias: str) -> tuple[tuple[str, str], ...]:
        """Return the fixed columns of a table, each with the text of its value."""
        return tuple(
            (column, text) for (owner, column), texts in self.values.items() if owner == alias for text in texts
        )


def mentioned(trees: Sequence[Any], table: SqlTable) -> tuple[str, ...]:
    """Return the columns of this table that expressions mention, also in subqueries, which may refer to it."""
    exp = engine().exp
    names = [node.name.lower() for tree in trees if tree is not None for node in tree.find_all(exp.Column)]
    return tuple(dict.fromkeys(name for name in names if name in table.names))


def outermost(tree: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Yield the nodes of these kinds that are not inside another such node."""
    if isinstance(tree, kinds):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from outermost(child, kinds)
