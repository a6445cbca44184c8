"""INSERT in the intermediate form: defaults, values that the database makes up, ON CONFLICT and RETURNING."""

from collections.abc import Sequence
from typing import Any, Protocol

from plume_py.base import sql
from plume_py.base.sql.syntax import engine, wrong
from plume_py.base.text import nearest
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation
from plume_py.reasoning.infer.program.sql_expressions import Translator


class Around(Protocol):
    """The transaction that the statement is in."""

    def at(self, line: int, scopes: list[tuple[str, sql.SqlTable, str]] | None = None) -> Translator:
        """A translator for a statement."""

    def table(self, name: str, line: int) -> sql.SqlTable:
        """A table that exists."""

    def learn(self, names: tuple[str, ...], line: int) -> None:
        """These variables have values from here on."""

    def no_value(self, table: sql.SqlTable, column: sql.SqlColumn, line: int) -> Expr:
        """NULL, in a column that nobody reads."""

    def unknown(self, stem: str, sort: ir.Sort, line: int) -> Expr:
        """A value that the database makes up."""


class Inserting:
    """One INSERT statement."""

    def __init__(self, body: Around, stmt: sql.Insert, count: str = "") -> None:
        self.body, self.stmt, self.line, self.count = body, stmt, stmt.line, count
        self.table = body.table(stmt.table, stmt.line)
        self.columns = stmt.columns or self.table.names
        self.scopes: list[tuple[str, sql.SqlTable, str]] = []  # the row of a query that the values are made of
        for name in self.columns:
            if name not in self.table.names:
                raise wrong(f"{self.table.name} has no column {name:.60}", self.line, nearest(name, self.table.names))

    def statements(self) -> list[ir.Stmt]:
        """A row each; every column needs a value."""
        found: list[ir.Stmt] = []
        for row in self.stmt.rows:
            if row:
                self.fits(row)
            values = self.values(dict(zip(self.columns, row, strict=False)))
            found += self.row(values)
        return found

    def fits(self, row: Sequence[Any]) -> None:
        """An error for a row of another width."""
        if len(row) != len(self.columns):
            said = f"INSERT has {len(row)} values for {len(self.columns)} columns"  # noqa: S608 - no SQL
            raise wrong(said, self.line, f"the columns are {', '.join(self.columns)}")

    def values(self, given: dict[str, Any]) -> dict[str, Expr]:
        """A value for each column: given, made up by the database, or its default."""
        found: dict[str, Expr] = {}
        for column in self.table.columns:
            node = given.get(column.name)
            if isinstance(node, engine().exp.Var) and node.name.upper() == "DEFAULT":
                node = None
            if isinstance(node, engine().exp.Null) or (node is None and column.default is None and column.nullable):
                found[column.name] = self.body.no_value(self.table, column, self.line)
            elif node is not None:
                found[column.name] = self.body.at(self.line, self.scopes).expr(node)
            elif column.generated:
                sort: ir.Sort = "text" if column.type == "text" else "id"
                found[column.name] = self.body.unknown(f"new_{column.name}", sort, self.line)
            elif column.default is not None:
                found[column.name] = self.body.at(self.line).expr(column.default)
            else:
                raise wrong(f"INSERT gives no value for {column.name}", self.line, "give every column a value")
        return found

    def row(self, values: dict[str, Expr]) -> list[ir.Stmt]:
        """One row, or what is done in place of it."""
        insert = ir.Insert(self.line, self.table.name, tuple(values[name] for name in self.table.names))
        conflict = self.stmt.conflict
        if conflict is None:
            return [*self.returned(values), insert, *self.counted(1)]
        if conflict.spelled == "INSERT IGNORE":
            raise wrong("INSERT IGNORE is not supported", self.line, "write INSERT … ON DUPLICATE KEY UPDATE")
        if self.stmt.returning:
            raise wrong("ON CONFLICT with RETURNING is not supported", self.line, "read the row afterwards")
        if any(ir.queries(value) for value in values.values()):
            raise wrong("ON CONFLICT with a subquery is not supported", self.line, "read the value before")
        return self.unless_there(insert, values, conflict)

    def returned(self, values: dict[str, Expr]) -> list[ir.Stmt]:
        """RETURNING column INTO variable: the values are known before."""
        if not self.stmt.into:
            return []
        found = []
        for part in self.stmt.returning:
            name = str(part.unalias().name).lower()
            if name not in values or part.find(engine().exp.Func, engine().exp.Binary):
                raise wrong(f"RETURNING {part.sql():.40} is not supported", self.line, "list columns")
            if ir.queries(values[name]):
                raise wrong("RETURNING of a subquery's value is not supported", self.line, "read the value before")
            found.append(values[name])
        self.body.learn(self.stmt.into, self.line)
        return [ir.Let(self.line, self.stmt.into, tuple(found))]

    def unless_there(self, insert: ir.Insert, values: dict[str, Expr], conflict: sql.Conflict) -> list[ir.Stmt]:
        """ON CONFLICT: look for the row, then insert or change it.

        Who looks too early meets the primary key, and rolls back; who looks later does what the database would have
        done. DO UPDATE locks the row as an UPDATE does; DO NOTHING looks at it and goes on. Both look at what is there
        now, at every level: what a snapshot shows may be gone.
        """
        at = self.body.at(self.line)
        var, rows = at.fresh(self.table.name[:1]), at.fresh("rows")
        where = self.same_key(values, conflict, var)
        lock = bool(conflict.sets)
        look = ir.SelectAll(self.line, rows, self.table.name, var, where, lock, newest=True)
        none = Operation("=", (ir.Query("count", rows, at.fresh("row"), ir.TRUE, is_local=True), Const(0)))
        done = (insert, *self.counted(1))
        return [look, ir.If(self.line, none, done, (*self.instead(values, conflict, where, var), *self.counted(0)))]

    def counted(self, number: int) -> tuple[ir.Stmt, ...]:
        """How many rows there are now that were not there before, for who asks next."""
        return (ir.Let(self.line, (self.count,), (Const(number),)),) if self.count else ()

    def same_key(self, values: dict[str, Expr], conflict: sql.Conflict, var: str) -> Expr:
        """Which rows are in conflict: those that agree on the columns named, or on any unique ones."""
        keys = [key for key in (self.table.primary_key, *self.table.unique) if key]
        if conflict.target:
            keys = [key for key in keys if set(key) == set(conflict.target)]
        of_others = self.table.partly_unique and not conflict.target
        if not keys or of_others or (conflict.sets and len(keys) > 1):
            hint = "name the columns of the primary key, or of a UNIQUE constraint, after ON CONFLICT"
            raise wrong("ON CONFLICT does not say which key it means", self.line, hint)
        ways = [ir.conjunction([Operation("=", (Field(var, c), values[c])) for c in key]) for key in keys]
        return ways[0] if len(ways) == 1 else Operation("or", tuple(ways))

    def instead(self, values: dict[str, Expr], conflict: sql.Conflict, same: Expr, var: str) -> tuple[ir.Stmt, ...]:
        """DO UPDATE SET …: EXCLUDED, and VALUES(…) of MySQL, is the row that was to be."""
        if not conflict.sets:
            return ()
        inside = self.body.at(self.line, [("", self.table, var)])
        inside.excluded = values
        sets = tuple((column, inside.expr(value)) for column, value in conflict.sets)
        for column, _ in sets:
            inside.of(var, self.table, column)
        where = [same] if conflict.where is None else [same, inside.expr(conflict.where)]
        return (ir.Update(self.line, self.table.name, var, ir.conjunction(where), sets),)
