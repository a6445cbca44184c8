"""From SQL files to the intermediate form."""

from typing import Any

from plume_py.base import sql
from plume_py.base.sql import access
from plume_py.base.sql.names import names_read, resolve_statement
from plume_py.base.sql.syntax import engine, wrong
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.inserts import Inserting
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation
from plume_py.reasoning.infer.program.joins import in_any_order, is_join, join, some_row
from plume_py.reasoning.infer.program.queries import (
    arguments_of,
    asks_for_count,
    chosen_row,
    dialects,
    insert_select,
    is_more,
    locks,
    require_one_row,
    rows_meant,
    update_from,
)
from plume_py.reasoning.infer.program.sql_constraints import enforced, table_of
from plume_py.reasoning.infer.program.sql_expressions import Aggregates, Translator, is_aggregate


def translate(file: sql.File) -> ir.Application:
    """The program of a SQL file."""
    tables = tuple(table_of(table) for table in file.tables)
    notes = list(file.notes)
    clauses = tuple(clause for table in file.tables for clause in enforced(table, file, notes))
    invariant = tuple(
        ir.Clause(
            item.name,
            Translator(file, item.condition.line).expr(item.condition.tree),
            item.condition.line,
            item.condition.text,
        )
        for item in file.invariants
    )
    transactions = tuple(Body(file, txn).transaction() for txn in file.transactions)
    rows = tuple(row for insert in file.rows for row in _rows(file, insert))
    return ir.Application(
        file.name, tables, transactions, invariant, clauses, rows=rows, dialects=dialects(file), notes=tuple(notes)
    )


def _rows(file: sql.File, insert: sql.Insert) -> list[tuple[str, tuple[ir.Value, ...]]]:
    """The rows of an INSERT beside the tables: constants only."""
    found = []
    empty = sql.SqlTransaction("", (), (), (), insert.line)
    for stmt in Inserting(Body(file, empty), insert).statements():
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


class Body:
    """Translates a transaction."""

    def __init__(self, file: sql.File, txn: sql.SqlTransaction) -> None:
        self.file, self.txn = file, txn
        self.params = tuple(param.name for param in txn.params)
        self.known: set[str] = set()
        self.loops: dict[str, tuple[str, sql.SqlTable]] = {}
        self.names = _assigned(txn.body)
        self.seen = names_read(file)
        self.made_up: list[ir.Param] = []
        self.in_loop = False
        self.count: str | None = None  # the variable with the number of rows of the last statement
        self.first: list[ir.Stmt] = []  # what is to be read before the statement at hand
        self.chosen: dict[int, tuple[Expr, Expr]] = {}

    def transaction(self) -> ir.TransactionProgram:
        """The transaction in the intermediate form."""
        assume = tuple(self.at(item.line).expr(item.tree) for item in self.txn.assume)
        texts = arguments_of("text", self.txn, self.file)
        # a log has the texts 't' and 'f' for them
        bools = {p.name for p in self.txn.params if p.type == "text"} & arguments_of("bool", self.txn, self.file)
        sorts = {**dict.fromkeys(bools, "bool"), **dict.fromkeys(texts, "text")}
        params = tuple(ir.Param(p.name, _sort(sorts.get(p.name, p.type))) for p in self.txn.params)
        body = self.block(self.txn.body)
        return ir.TransactionProgram(self.txn.name, (*params, *self.made_up), body, assume, self.txn.line)

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
            count=self.count,
            unknown=self.unknown,
            choose=self.choose,
        )

    def table(self, name: str, line: int) -> sql.SqlTable:
        """A table that exists."""
        table = self.file.table(name)
        if table is None:
            raise wrong(f"there is no table {name}", line, f"there is {', '.join(t.name for t in self.file.tables)}")
        access.reject_side_effects(table, line, writes=False)
        return table

    def block(self, body: tuple[sql.Statement, ...]) -> tuple[ir.Stmt, ...]:
        """Statements."""
        found: list[ir.Stmt] = []
        for i, stmt in enumerate(body):
            counted = i + 1 < len(body) and asks_for_count(body[i + 1])
            if not isinstance(stmt, sql.Assign | sql.If):  # FOUND speaks of the last statement, and of no other
                self.count = None
            made = self.counted(stmt) if counted else self.statement(stmt)
            found += [*self.first, *made]
            self.first = []
        return tuple(found)

    def statement(self, stmt: sql.Statement) -> list[ir.Stmt]:
        """The statements that one SQL statement becomes."""
        if isinstance(stmt, sql.Select):
            return self.select(stmt)
        if isinstance(stmt, sql.Assign):
            value = self.at(stmt.line).expr(stmt.value)
            name = stmt.name or self.at(stmt.line).fresh("unused")
            self.learn((name,), stmt.line)
            return [ir.Let(stmt.line, (name,), (value,))]
        if isinstance(stmt, sql.RollbackStatement):
            return [ir.Require(stmt.line, Const(False))]
        if isinstance(stmt, sql.If):
            return [self.choice(stmt)]
        if isinstance(stmt, sql.Loop):
            return self.loop(stmt)
        if isinstance(stmt, sql.Repeat):
            raise wrong(f"{stmt.text:.40} is not supported", stmt.line, "use FOR row IN SELECT … LOOP … END LOOP")
        if isinstance(stmt, sql.Attempt):
            hint = "test before, with IF, or let the handler roll back"
            raise wrong("a block whose handler goes on is not supported", stmt.line, hint)
        assert isinstance(stmt, sql.Change)
        return self.change(stmt)

    def no_value(self, table: sql.SqlTable, column: sql.SqlColumn, line: int) -> Expr:
        """NULL in a column that no condition and no value is made of: any value will do, since none is ever seen."""
        if not column.nullable or column.name in self.seen or any(column.name in key for key in table.unique):
            said = f"NULL in the column {column.name}, which is read, is not supported"
            raise wrong(said, line, "use a value of its own, such as 0, for what is not there, and declare NOT NULL")
        return Const({"int": 0, "bool": False}.get(column.type, ""))

    def unknown(self, stem: str, sort: ir.Sort, line: int) -> Expr:
        """A value that the database makes up, as a number or the time: it may be any, so it is an argument."""
        if self.in_loop:
            raise wrong(f"{stem} inside a loop is not supported: each round makes up another value", line)
        name = self.at(line).fresh(stem)
        self.made_up.append(ir.Param(name, sort))
        return ir.Arg(name)

    def choose(self, select: Any, line: int) -> tuple[Expr, Expr]:
        """A subquery of one row (LIMIT 1) is read before its statement: whether there is one, and its value."""
        if id(select) not in self.chosen:
            first, names, self.chosen[id(select)] = chosen_row(self, select, line)
            self.first += first
            self.known |= names
        return self.chosen[id(select)]

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
        self.count = None
        return ir.If(stmt.line, condition, then, otherwise)

    def loop(self, stmt: sql.Loop) -> list[ir.Stmt]:
        """FOR row IN SELECT."""
        below, rows = self.at(stmt.line).inner(stmt.query.tree)
        lock = locks(stmt.query.tree, rows.table, stmt.line, self.file)
        require_one_row(stmt.query, rows.where, rows.var, below.ir_table(self.table(rows.table, stmt.line)))
        found, var = below.fresh("rows"), below.fresh(stmt.row)
        before, outer, table = set(self.known), dict(self.loops), self.table(rows.table, stmt.line)
        self.loops[stmt.row] = var, table
        inside, self.in_loop = self.in_loop, True
        body = self.block(stmt.body)
        self.known, self.loops, self.in_loop = before, outer, inside
        read = ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where, lock)
        return [read, in_any_order(ir.ForEach(stmt.line, var, found, body), table, below, self.made_up)]

    def select(self, stmt: sql.Select) -> list[ir.Stmt]:
        """SELECT … INTO: aggregates, or one row; without INTO, rows that are only looked at."""
        if not stmt.into:
            resolve_statement(stmt, self.txn, self.file)
            if is_more(stmt.tree):
                return self.glance(stmt)
        if is_join(stmt.tree):
            if stmt.lock not in ("", "update"):
                raise wrong("a join can be FOR UPDATE, and nothing else", stmt.line, "write a SELECT for each table")
            return join(self, stmt)
        below, rows = rows_meant(self, self.at(stmt.line), stmt.tree, stmt.line)
        lock = locks(stmt.tree, rows.table, stmt.line, self.file)
        require_one_row(stmt, rows.where, rows.var, below.ir_table(self.table(rows.table, stmt.line)))
        if is_aggregate(stmt.tree):
            below.aggregates = rows
            values = tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
            names = stmt.into or tuple(below.fresh("unused") for _ in values)
            self.learn(names, stmt.line)
            return [ir.Let(stmt.line, names, values)]
        if not stmt.into:
            return [ir.SelectAll(stmt.line, below.fresh("rows"), rows.table, rows.var, rows.where, lock)]
        seen = None if stmt.tree.is_star else tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
        read = some_row(self, rows, seen, lock, stmt.line)
        if seen is None:
            self.record(stmt.into, rows.var, self.table(rows.table, stmt.line), stmt.line)
            return [read]
        self.learn(stmt.into, stmt.line)
        return [read, ir.Let(stmt.line, stmt.into, seen)]

    def glance(self, stmt: sql.Select) -> list[ir.Stmt]:
        """A query of any form whose rows nobody uses: a statement that reads, of which no row matters."""
        read = next(iter(access.accesses(stmt, self.file)), None)
        if read is None:
            return []
        at = self.at(stmt.line)
        lock = bool(stmt.lock)
        return [ir.SelectAll(stmt.line, at.fresh("rows"), read.table, at.fresh(read.table[:1]), Const(False), lock)]

    def record(self, into: tuple[str, ...], row: str, table: sql.SqlTable, line: int) -> None:
        """A variable for a whole row."""
        if len(into) != 1 or into[0] in self.params:
            raise wrong("SELECT * goes into one variable", line, "list the columns, and a variable for each")
        self.loops[into[0]] = row, table

    def counted(self, stmt: sql.Statement) -> list[ir.Stmt]:
        """A statement whose number of rows is asked for next, by FOUND or ROW_COUNT: rows are locked, then counted."""
        if isinstance(stmt, sql.Insert) and len(stmt.rows) == 1 and (stmt.conflict is None or not stmt.conflict.sets):
            self.count = self.at(stmt.line).fresh("row_count")
            self.known.add(self.count)
            return Inserting(self, stmt, self.count).statements()
        if not isinstance(stmt, sql.Select | sql.Update | sql.Delete) or (
            isinstance(stmt, sql.Select) and is_aggregate(stmt.tree)
        ):
            raise wrong("FOUND and ROW_COUNT are understood after SELECT, UPDATE and DELETE of one row", stmt.line)
        below, rows = self.rows_of(stmt)
        table = self.table(rows.table, stmt.line)
        if not ir.pinned(rows.where, rows.var, below.ir_table(table)):
            raise wrong("FOUND and ROW_COUNT need a row by its primary key", stmt.line, "use COUNT, or EXISTS")
        found, count = below.fresh("rows"), below.fresh("row_count")
        lock = locks(stmt.tree, rows.table, stmt.line, self.file) if isinstance(stmt, sql.Select) else True
        read = ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where, lock)
        number = ir.Query("count", found, below.fresh("row"), ir.TRUE, is_local=True)
        names: list[str] = [count]
        values: list[Expr] = [number]
        if isinstance(stmt, sql.Select):
            self.learn(stmt.into, stmt.line)
            names += stmt.into
            values += [below.of_the_row(part.unalias(), found, rows.var) for part in stmt.tree.expressions if stmt.into]
        result: list[ir.Stmt] = [read, ir.Let(stmt.line, tuple(names), tuple(values))]
        self.count = count
        self.known.add(count)
        if not isinstance(stmt, sql.Select):
            some = Operation("<", (Const(0), ir.Local(count)))
            result.append(ir.If(stmt.line, some, tuple(self.change(stmt))))
        return result

    def rows_of(self, stmt: sql.Select | sql.Update | sql.Delete) -> tuple[Translator, Aggregates]:
        """A translator for what is said about the rows that a statement looks for, and these rows."""
        if isinstance(stmt, sql.Select):
            return rows_meant(self, self.at(stmt.line), stmt.tree, stmt.line)
        table = self.table(stmt.table, stmt.line)
        var = self.at(stmt.line).fresh(table.name[:1])
        below = self.at(stmt.line, [(_alias(stmt), table, var)])
        return below, Aggregates(table.name, var, below.where(stmt.where) if stmt.where is not None else ir.TRUE)

    def change(self, stmt: sql.Change) -> list[ir.Stmt]:
        """INSERT, UPDATE, DELETE."""
        access.reject_side_effects(self.table(stmt.table, stmt.line), stmt.line, writes=True)
        if stmt.returning:
            resolve_statement(stmt, self.txn, self.file)
        if isinstance(stmt, sql.Insert):
            return Inserting(self, stmt).statements() if stmt.query is None else insert_select(self, stmt)
        assert isinstance(stmt, sql.Update | sql.Delete)
        if isinstance(stmt, sql.Update) and stmt.others:
            return update_from(self, stmt, _alias(stmt))
        inside, rows = self.rows_of(stmt)
        table, var, where = self.table(stmt.table, stmt.line), rows.var, rows.where
        if isinstance(stmt, sql.Delete):
            self.no_cascade(table, stmt.line)
            if stmt.returning:
                return self.returned(stmt, table, ())
            return [ir.Delete(stmt.line, table.name, var, where)]
        for column, _ in stmt.sets:
            inside.of(var, table, column)
        if stmt.returning:
            return self.returned(stmt, table, stmt.sets)
        return [ir.Update(stmt.line, table.name, var, where, self.sets(stmt, inside, table))]

    def sets(self, stmt: sql.Update, inside: Translator, table: sql.SqlTable) -> tuple[tuple[str, Expr], ...]:
        """The new values, those of columns that every UPDATE sets included."""
        kinds = {column.name: column for column in table.columns}
        sets = [
            (
                name,
                self.no_value(table, kinds[name], stmt.line)
                if isinstance(value, engine().exp.Null)
                else inside.expr(value),
            )
            for name, value in stmt.sets
        ]
        touched = [c for c in table.columns if c.touched and c.name not in dict(sets)]
        return (*sets, *((c.name, self.unknown(f"new_{c.name}", _sort(c.type), stmt.line)) for c in touched))

    def returned(
        self, stmt: sql.Update | sql.Delete, table: sql.SqlTable, sets: tuple[tuple[str, Any], ...]
    ) -> list[ir.Stmt]:
        """RETURNING: the row is locked as the statement would, then changed; the values are those it has then."""
        below, rows = self.rows_of(stmt)
        if not ir.pinned(rows.where, rows.var, below.ir_table(table)):
            raise wrong("RETURNING needs a row by its primary key", stmt.line, "lock and read the rows before")
        read = ir.SelectOne(stmt.line, rows.var, table.name, rows.where, True)
        new = {column: below.expr(value) for column, value in sets}
        var = below.fresh(table.name[:1])
        same = ir.conjunction([Operation("=", (Field(var, key), Field(rows.var, key))) for key in table.primary_key])
        if isinstance(stmt, sql.Delete):
            write: ir.Stmt = ir.Delete(stmt.line, table.name, var, same)
        else:
            inside = self.at(stmt.line, [(_alias(stmt), table, var)])
            write = ir.Update(stmt.line, table.name, var, same, self.sets(stmt, inside, table))
        values = tuple(self.column_of(part, new, rows.var, table, stmt.line) for part in stmt.returning)
        names = stmt.into or tuple(below.fresh("unused") for _ in values)
        self.learn(names, stmt.line)
        return [read, ir.Let(stmt.line, names, values), write]

    def column_of(self, part: Any, new: dict[str, Expr], row: str, table: sql.SqlTable, line: int) -> Expr:
        """A column that RETURNING names, as it is after the statement."""
        node = part.unalias()
        name = str(node.name).lower()
        if name not in table.names or part.find(engine().exp.Func, engine().exp.Binary):
            hint = "list columns, and compute with the variables afterwards"
            raise wrong(f"RETURNING {part.sql():.40} is not supported", line, hint)
        return new.get(name, Field(row, name))

    def no_cascade(self, table: sql.SqlTable, line: int) -> None:
        """Foreign keys that would delete or change other rows are not modelled."""
        for child in self.file.tables:
            for key in child.foreign_keys:
                if key.table == table.name and "ON DELETE" in key.cascades:
                    hint = f"delete the rows of {child.name} by a statement of its own, and leave it out"
                    raise wrong(f"{key.cascades} of {child.name} is not supported", line, hint)


def _alias(stmt: sql.Update | sql.Delete) -> str:
    return str(stmt.tree.this.alias or "").lower()


def _assigned(body: tuple[sql.Statement, ...]) -> set[str]:
    """The variables that a transaction assigns anywhere."""
    found: set[str] = set()
    for stmt in body:
        if isinstance(stmt, sql.Select | sql.Change):
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
