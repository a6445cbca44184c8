"""From SQL files to the intermediate form."""

from typing import Any

from plume_py.base import sql
from plume_py.base.sql.syntax import wrong
from plume_py.infer.language import ir
from plume_py.infer.language.ir import Const, Field, Operation
from plume_py.infer.language.sql_expressions import Translator, is_aggregate


def translate(file: sql.File) -> ir.Application:
    """The program of a SQL file."""
    tables = tuple(_table(table, file) for table in file.tables)
    enforced = tuple(clause for table in file.tables for clause in _enforced(table, file))
    invariant = tuple(
        ir.Clause(
            item.name,
            Translator(file, item.condition.line).expr(item.condition.tree),
            item.condition.line,
            item.condition.text,
        )
        for item in file.invariants
    )
    transactions = tuple(_Body(file, txn).transaction() for txn in file.transactions)
    rows = tuple(row for insert in file.rows for row in _rows(file, insert))
    return ir.Application(file.name, tables, transactions, invariant, enforced, rows=rows)


def _rows(file: sql.File, insert: sql.Insert) -> list[tuple[str, tuple[ir.Value, ...]]]:
    """The rows of an INSERT beside the tables: constants only."""
    found = []
    empty = sql.SqlTransaction("", (), (), (), insert.line)
    for stmt in _Body(file, empty).insert(insert):
        assert isinstance(stmt, ir.Insert)
        values = [
            value.args[0] if isinstance(value, Operation) and value.op == "neg" else value for value in stmt.values
        ]
        row = []
        for value, inner in zip(stmt.values, values, strict=True):
            if not isinstance(inner, Const):
                raise wrong("an INSERT beside the tables can have constants only", insert.line)
            row.append(inner.value if inner is value else -int(inner.value))
        found.append((stmt.table, tuple(row)))
    return found


def _table(table: sql.SqlTable, file: sql.File) -> ir.Table:
    ids = {*table.primary_key, *(column for key in table.foreign_keys for column in key.columns)}
    columns: list[tuple[str, ir.Sort]] = []
    for column in table.columns:
        kind: Any = "id" if column.name in ids and column.type == "int" else column.type
        columns.append((column.name, kind))
    return ir.Table(table.name, tuple(columns), table.primary_key, table.line)


def _enforced(table: sql.SqlTable, file: sql.File) -> list[ir.Clause]:
    """UNIQUE, FOREIGN KEY and CHECK: what the database sees to."""
    found = []
    for columns in table.unique:
        same = ir.conjunction([Operation("=", (Field("b", c), Field("a", c))) for c in columns])
        alone = ir.Query("forall", table.name, "b", same, ir.Same("b", "a"))
        name = f"unique {table.name}({', '.join(columns)})"
        ddl = ((table.name, f"UNIQUE ({', '.join(columns)})"),)
        found.append(ir.Clause(name, ir.Query("forall", table.name, "a", ir.TRUE, alone), table.line, ddl=ddl))
    for key in table.foreign_keys:
        parent = file.table(key.table)
        if parent is None:
            raise wrong(f"there is no table {key.table}", key.line)
        to = key.to or parent.primary_key
        if len(to) != len(key.columns):
            raise wrong(f"the foreign key to {key.table} has {len(key.columns)} columns for {len(to)}", key.line)
        match = [Operation("=", (Field("p", b), Field("c", a))) for a, b in zip(key.columns, to, strict=True)]
        there = ir.Query("exists", parent.name, "p", ir.conjunction(match))
        name = f"foreign key {table.name}({', '.join(key.columns)})"
        ddl = ((table.name, f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {parent.name} ({', '.join(to)})"),)
        found.append(ir.Clause(name, ir.Query("forall", table.name, "c", ir.TRUE, there), key.line, ddl=ddl))
    for number, check in enumerate(table.checks, 1):
        translator = Translator(file, check.line, [("", table, "r")])
        condition = ir.Query("forall", table.name, "r", ir.TRUE, translator.expr(check.tree))
        ddl = ((table.name, f"CHECK ({check.text})"),)
        found.append(ir.Clause(f"check {number} of {table.name}", condition, check.line, ddl=ddl))
    return found


class _Body:
    """Translates a transaction."""

    def __init__(self, file: sql.File, txn: sql.SqlTransaction) -> None:
        self.file, self.txn = file, txn
        self.params = tuple(param.name for param in txn.params)
        self.known: set[str] = set()
        self.loops: dict[str, tuple[str, sql.SqlTable]] = {}
        self.names = _assigned(txn.body)

    def transaction(self) -> ir.TransactionProgram:
        """The transaction in the intermediate form."""
        assume = tuple(self.at(item.line).expr(item.tree) for item in self.txn.assume)
        params = tuple(ir.Param(param.name, _sort(param.type)) for param in self.txn.params)
        return ir.TransactionProgram(self.txn.name, params, self.block(self.txn.body), assume, self.txn.line)

    def at(self, line: int, scopes: list[tuple[str, sql.SqlTable, str]] | None = None) -> Translator:
        """A translator for a statement."""
        return Translator(
            self.file,
            line,
            scopes or [],
            self.params,
            set(self.known),
            dict(self.loops),
            self.names,
            placeholders=self.txn.placeholders,
        )

    def table(self, name: str, line: int) -> sql.SqlTable:
        """A table that exists."""
        table = self.file.table(name)
        if table is None:
            raise wrong(f"there is no table {name}", line, f"there is {', '.join(t.name for t in self.file.tables)}")
        return table

    def block(self, body: tuple[sql.Statement, ...]) -> tuple[ir.Stmt, ...]:
        """Statements."""
        return tuple(part for stmt in body for part in self.statement(stmt))

    def statement(self, stmt: sql.Statement) -> list[ir.Stmt]:
        """The statements that one SQL statement becomes."""
        if isinstance(stmt, sql.Select):
            return self.select(stmt)
        if isinstance(stmt, sql.Assign):
            value = self.at(stmt.line).expr(stmt.value)
            self.learn((stmt.name,), stmt.line)
            return [ir.Let(stmt.line, (stmt.name,), (value,))]
        if isinstance(stmt, sql.RollbackStatement):
            return [ir.Require(stmt.line, Const(False))]
        if isinstance(stmt, sql.If):
            return [self.choice(stmt)]
        if isinstance(stmt, sql.Loop):
            return self.loop(stmt)
        return self.change(stmt)

    def learn(self, names: tuple[str, ...], line: int) -> None:
        """These variables have values from here on."""
        for name in names:
            if name in self.params:
                raise wrong(f"{name} is an argument and cannot be assigned", line, "use another name")
            self.known.add(name)

    def choice(self, stmt: sql.If) -> ir.If:
        """Afterwards, only those variables have values that have them on both ways."""
        condition = self.at(stmt.condition.line).expr(stmt.condition.tree)
        before = set(self.known)
        then = self.block(stmt.then)
        after = self.known if not _ends(stmt.then) else None
        self.known = set(before)
        otherwise = self.block(stmt.otherwise)
        if after is not None:
            self.known = after if _ends(stmt.otherwise) else self.known & after
        return ir.If(stmt.line, condition, then, otherwise)

    def loop(self, stmt: sql.Loop) -> list[ir.Stmt]:
        """FOR row IN SELECT."""
        _check_lock(stmt.query)
        below, rows = self.at(stmt.line).inner(stmt.query.tree)
        found, var = below.fresh("rows"), below.fresh(stmt.row)
        before, outer = set(self.known), dict(self.loops)
        self.loops[stmt.row] = var, self.table(rows.table, stmt.line)
        body = self.block(stmt.body)
        self.known, self.loops = before, outer
        return [
            ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where, stmt.query.for_update),
            ir.ForEach(stmt.line, var, found, body),
        ]

    def select(self, stmt: sql.Select) -> list[ir.Stmt]:
        """SELECT … INTO: aggregates, or one row; without INTO, rows that are only looked at."""
        _check_lock(stmt)
        below, rows = self.at(stmt.line).inner(stmt.tree)
        if is_aggregate(stmt.tree):
            below.aggregates = rows
            values = tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
            names = stmt.into or tuple(below.fresh("unused") for _ in values)
            self.learn(names, stmt.line)
            return [ir.Let(stmt.line, names, values)]
        if not stmt.into:
            return [ir.SelectAll(stmt.line, below.fresh("rows"), rows.table, rows.var, rows.where, stmt.for_update)]
        values = tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
        self.learn(stmt.into, stmt.line)
        read = ir.SelectOne(stmt.line, rows.var, rows.table, rows.where, stmt.for_update)
        return [read, ir.Let(stmt.line, stmt.into, values)]

    def change(self, stmt: sql.Statement) -> list[ir.Stmt]:
        """INSERT, UPDATE, DELETE."""
        if isinstance(stmt, sql.Insert):
            return self.insert(stmt)
        assert isinstance(stmt, sql.Update | sql.Delete)
        table = self.table(stmt.table, stmt.line)
        var = self.at(stmt.line).fresh(table.name[:1])
        inside = self.at(stmt.line, [("", table, var)])
        where = inside.expr(stmt.where) if stmt.where is not None else ir.TRUE
        if isinstance(stmt, sql.Delete):
            return [ir.Delete(stmt.line, table.name, var, where)]
        for column, _ in stmt.sets:
            inside.of(var, table, column)
        sets = tuple((column, inside.expr(value)) for column, value in stmt.sets)
        return [ir.Update(stmt.line, table.name, var, where, sets)]

    def insert(self, stmt: sql.Insert) -> list[ir.Stmt]:
        """A row each; every column needs a value."""
        table = self.table(stmt.table, stmt.line)
        columns = stmt.columns or table.names
        missing = [name for name in table.names if name not in columns]
        extra = [name for name in columns if name not in table.names]
        if extra:
            raise wrong(f"{table.name} has no column {extra[0]}", stmt.line, f"it has {', '.join(table.names)}")
        if missing:
            raise wrong(f"INSERT gives no value for {missing[0]}", stmt.line, "give every column a value")
        found: list[ir.Stmt] = []
        for row in stmt.rows:
            if len(row) != len(columns):
                raise wrong(f"INSERT has {len(row)} values for {len(columns)} columns", stmt.line)  # noqa: S608 - no SQL
            values = dict(zip(columns, (self.at(stmt.line).expr(value) for value in row), strict=True))
            found.append(ir.Insert(stmt.line, table.name, tuple(values[name] for name in table.names)))
        return found


def _check_lock(stmt: sql.Select) -> None:
    """FOR UPDATE is the only lock that the levels know, and only rows can be locked."""
    for lock in stmt.tree.args.get("locks") or ():
        if not lock.args.get("update") or lock.args.get("key"):
            kind = "FOR NO KEY UPDATE" if lock.args.get("update") else "FOR SHARE"
            raise wrong(f"{kind} is not supported", stmt.line, "use FOR UPDATE")
        if lock.args.get("wait") is not None:
            raise wrong("NOWAIT and SKIP LOCKED are not supported", stmt.line, "use FOR UPDATE alone")
        if is_aggregate(stmt.tree):
            raise wrong("an aggregate cannot be FOR UPDATE", stmt.line, "lock the rows with a SELECT of their columns")


def _assigned(body: tuple[sql.Statement, ...]) -> set[str]:
    """The variables that a transaction assigns anywhere."""
    found: set[str] = set()
    for stmt in body:
        if isinstance(stmt, sql.Select):
            found.update(stmt.into)
        elif isinstance(stmt, sql.Assign):
            found.add(stmt.name)
        elif isinstance(stmt, sql.If):
            found |= _assigned(stmt.then) | _assigned(stmt.otherwise)
        elif isinstance(stmt, sql.Loop):
            found |= _assigned(stmt.body)
    return found


def _ends(body: tuple[sql.Statement, ...]) -> bool:
    return any(isinstance(stmt, sql.RollbackStatement) for stmt in body)


def _sort(kind: str) -> ir.Sort:
    return "bool" if kind == "bool" else "text" if kind == "text" else "int"
