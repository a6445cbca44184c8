"""Translate SQL files to the intermediate form.

``translate`` is the entry. ``TransactionTranslator`` translates one transaction statement by statement; ``inserts`` and
``sql_expressions`` do INSERT and expressions. Joins, LIMIT 1, INSERT … SELECT and UPDATE … FROM become several
statements. Other transactions may then commit in between, so the translation allows more executions than the database,
never fewer.
"""

from dataclasses import replace
from typing import Any

from plume_py.base import sql
from plume_py.base.sql import access
from plume_py.base.sql.access import conjuncts, joined
from plume_py.base.sql.model import all_statements
from plume_py.base.sql.names import names_read, resolve_statement
from plume_py.base.sql.syntax import engine, origin_of, wrong
from plume_py.base.text import nearest
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.inserts import InsertTranslator
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation
from plume_py.reasoning.infer.program.sql_expressions import (
    ExpressionTranslator,
    SelectedRows,
    enforced,
    has_limit_one,
    is_aggregate,
    table_of,
)


def translate(file: sql.File) -> ir.Application:
    tables = tuple(table_of(table) for table in file.tables)
    notes = list(file.notes)
    clauses = tuple(clause for table in file.tables for clause in enforced(table, file, notes))
    invariant = tuple(
        ir.Clause(
            item.name,
            ExpressionTranslator(file, item.condition.line).expr(item.condition.tree),
            item.condition.line,
            item.condition.text,
        )
        for item in file.invariants
    )
    transactions = tuple(TransactionTranslator(file, txn).transaction() for txn in file.transactions)
    rows = tuple(row for insert in file.rows for row in _rows(file, insert))
    return ir.Application(
        file.name,
        tables,
        transactions,
        invariant,
        clauses,
        rows=rows,
        dialects=dialect_statements(file),
        notes=tuple(notes),
    )


def _rows(file: sql.File, insert: sql.Insert) -> list[tuple[str, tuple[ir.Value, ...]]]:
    """Return the (table, row) pairs of an INSERT outside all transactions. Its values must be constants."""
    found = []
    empty = sql.SqlTransaction("", (), (), (), insert.line)
    for stmt in InsertTranslator(TransactionTranslator(file, empty), insert).statements():
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


class TransactionTranslator:
    """Translates one transaction.

    ``known`` holds the variables that have a value, ``loops`` the row variables of loops and of SELECT * with their
    tables. Values that the database chooses become additional arguments (``generated_arguments``).
    """

    def __init__(self, file: sql.File, txn: sql.SqlTransaction) -> None:
        self.file, self.txn = file, txn
        self.params = tuple(param.name for param in txn.params)
        self.known: set[str] = set()
        self.loops: dict[str, tuple[str, sql.SqlTable]] = {}
        self.names = _assigned(txn.body)
        self.seen = names_read(file)
        self.generated_arguments: list[ir.Param] = []
        self.in_loop = False
        self.count: str | None = None  # the variable with the row count of the previous statement
        self.first: list[ir.Stmt] = []  # reads that must precede the current statement
        self.chosen: dict[int, tuple[Expr, Expr]] = {}

    def transaction(self) -> ir.TransactionProgram:
        assume = tuple(self.at(item.line).expr(item.tree) for item in self.txn.assume)
        texts = arguments_of_type("text", self.txn, self.file)
        # In a log, Boolean arguments are the texts 't' and 'f'.
        bools = {p.name for p in self.txn.params if p.type == "text"} & arguments_of_type("bool", self.txn, self.file)
        sorts = {**dict.fromkeys(bools, "bool"), **dict.fromkeys(texts, "text")}
        params = tuple(ir.Param(p.name, _sort(sorts.get(p.name, p.type))) for p in self.txn.params)
        body = self.block(self.txn.body)
        return ir.TransactionProgram(self.txn.name, (*params, *self.generated_arguments), body, assume, self.txn.line)

    def at(self, line: int, scopes: list[tuple[str, sql.SqlTable, str]] | None = None) -> ExpressionTranslator:
        return ExpressionTranslator(
            self.file,
            line,
            scopes or [],
            self.params,
            set(self.known),
            dict(self.loops),
            self.names,
            placeholders=self.txn.placeholders,
            count=self.count,
            generated_value=self.generated_value,
            choose=self.choose,
        )

    def table(self, name: str, line: int) -> sql.SqlTable:
        """Return the table, or raise InputError if it does not exist."""
        table = self.file.table(name)
        if table is None:
            raise wrong(f"there is no table {name}", line, f"there is {', '.join(t.name for t in self.file.tables)}")
        access.reject_side_effects(table, line, writes=False)
        return table

    def block(self, body: tuple[sql.Statement, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for i, stmt in enumerate(body):
            counted = i + 1 < len(body) and uses_row_count(body[i + 1])
            if not isinstance(stmt, sql.Assign | sql.If):  # FOUND refers to the previous statement only
                self.count = None
            made = self.translate_counted(stmt) if counted else self.statement(stmt)
            found += [*self.first, *made]
            self.first = []
        return tuple(found)

    def statement(self, stmt: sql.Statement) -> list[ir.Stmt]:
        if isinstance(stmt, sql.Select):
            return self.translate_select(stmt)
        if isinstance(stmt, sql.Assign):
            value = self.at(stmt.line).expr(stmt.value)
            name = stmt.name or self.at(stmt.line).fresh("unused")
            self.define((name,), stmt.line)
            return [ir.Let(stmt.line, (name,), (value,))]
        if isinstance(stmt, sql.RollbackStatement):
            return [ir.Require(stmt.line, Const(False))]
        if isinstance(stmt, sql.If):
            return [self.translate_if(stmt)]
        if isinstance(stmt, sql.Loop):
            return self.translate_loop(stmt)
        if isinstance(stmt, sql.Repeat):
            raise wrong(f"{stmt.text:.40} is not supported", stmt.line, "use FOR row IN SELECT … LOOP … END LOOP")
        if isinstance(stmt, sql.Attempt):
            hint = "test before, with IF, or let the handler roll back"
            raise wrong("a block whose handler goes on is not supported", stmt.line, hint)
        assert isinstance(stmt, sql.Change)
        return self.translate_change(stmt)

    def null_value(self, table: sql.SqlTable, column: sql.SqlColumn, line: int) -> Expr:
        """Return a value for NULL in a column that no statement reads. Any value will do."""
        if not column.nullable or column.name in self.seen or any(column.name in key for key in table.unique):
            said = f"NULL in the column {column.name}, which is read, is not supported"
            raise wrong(said, line, "use a value of its own, such as 0, for what is not there, and declare NOT NULL")
        return Const({"int": 0, "bool": False}.get(column.type, ""))

    def generated_value(self, stem: str, sort: ir.Sort, line: int) -> Expr:
        """Return an additional argument for a value that the database generates, such as a number or the time."""
        if self.in_loop:
            raise wrong(f"{stem} inside a loop is not supported: each round makes up another value", line)
        name = self.at(line).fresh(stem)
        self.generated_arguments.append(ir.Param(name, sort))
        return ir.Arg(name)

    def choose(self, select: Any, line: int) -> tuple[Expr, Expr]:
        """Return existence and value of a subquery with LIMIT 1, which is read before its statement."""
        if id(select) not in self.chosen:
            first, names, self.chosen[id(select)] = read_limit_one(self, select, line)
            self.first += first
            self.known |= names
        return self.chosen[id(select)]

    def define(self, names: tuple[str, ...], line: int) -> None:
        """Record that these variables have values from here on."""
        for name in names:
            if name in self.params:
                raise wrong(f"{name} is an argument and cannot be assigned", line, "use another name")
            self.known.add(name)

    def translate_if(self, stmt: sql.If) -> ir.If:
        """Translate IF. Afterwards the variables known in both branches are known."""
        condition = self.at(stmt.condition.line).expr(stmt.condition.tree)
        before = set(self.known)
        then = self.block(stmt.then)
        after = self.known if not _rolls_back(stmt.then) else None
        self.known = set(before)
        otherwise = self.block(stmt.otherwise)
        if after is not None:
            self.known = after if _rolls_back(stmt.otherwise) else self.known & after
        self.count = None
        return ir.If(stmt.line, condition, then, otherwise)

    def translate_loop(self, stmt: sql.Loop) -> list[ir.Stmt]:
        below, rows = self.at(stmt.line).inner(stmt.query.tree)
        lock = is_locking(stmt.query.tree, rows.table, stmt.line, self.file)
        require_one_row(stmt.query, rows.where, rows.var, below.ir_table(self.table(rows.table, stmt.line)))
        found, var = below.fresh("rows"), below.fresh(stmt.row)
        before, outer, table = set(self.known), dict(self.loops), self.table(rows.table, stmt.line)
        self.loops[stmt.row] = var, table
        inside, self.in_loop = self.in_loop, True
        body = self.block(stmt.body)
        self.known, self.loops, self.in_loop = before, outer, inside
        read = ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where, lock)
        return [read, with_scan_order(ir.ForEach(stmt.line, var, found, body), table, below, self.generated_arguments)]

    def translate_select(self, stmt: sql.Select) -> list[ir.Stmt]:
        """Translate SELECT … INTO of aggregates or of one row, or a SELECT whose rows are not used."""
        if not stmt.into:
            resolve_statement(stmt, self.txn, self.file)
            if is_complex(stmt.tree):
                return self.unused_query(stmt)
        if is_join(stmt.tree):
            if stmt.lock not in ("", "update"):
                raise wrong("a join can be FOR UPDATE, and nothing else", stmt.line, "write a SELECT for each table")
            return join(self, stmt)
        below, rows = selected_rows(self, self.at(stmt.line), stmt.tree, stmt.line)
        lock = is_locking(stmt.tree, rows.table, stmt.line, self.file)
        require_one_row(stmt, rows.where, rows.var, below.ir_table(self.table(rows.table, stmt.line)))
        if is_aggregate(stmt.tree):
            below.aggregates = rows
            values = tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
            names = stmt.into or tuple(below.fresh("unused") for _ in values)
            self.define(names, stmt.line)
            return [ir.Let(stmt.line, names, values)]
        if not stmt.into:
            return [ir.SelectAll(stmt.line, below.fresh("rows"), rows.table, rows.var, rows.where, lock)]
        seen = None if stmt.tree.is_star else tuple(below.expr(part.unalias()) for part in stmt.tree.expressions)
        read = select_any_row(self, rows, seen, lock, stmt.line)
        if seen is None:
            self.bind_row(stmt.into, rows.var, self.table(rows.table, stmt.line), stmt.line)
            return [read]
        self.define(stmt.into, stmt.line)
        return [read, ir.Let(stmt.line, stmt.into, seen)]

    def unused_query(self, stmt: sql.Select) -> list[ir.Stmt]:
        """Translate a query of any form whose rows are not used: a read of a table, of which no row matters."""
        read = next(iter(access.accesses(stmt, self.file)), None)
        if read is None:
            return []
        at = self.at(stmt.line)
        lock = bool(stmt.lock)
        return [ir.SelectAll(stmt.line, at.fresh("rows"), read.table, at.fresh(read.table[:1]), Const(False), lock)]

    def bind_row(self, into: tuple[str, ...], row: str, table: sql.SqlTable, line: int) -> None:
        """Declare a variable for a whole row."""
        if len(into) != 1 or into[0] in self.params:
            raise wrong("SELECT * goes into one variable", line, "list the columns, and a variable for each")
        self.loops[into[0]] = row, table

    def translate_counted(self, stmt: sql.Statement) -> list[ir.Stmt]:
        """Translate a statement before FOUND or ROW_COUNT: rows are read with locks, counted, then changed."""
        if isinstance(stmt, sql.Insert) and len(stmt.rows) == 1 and (stmt.conflict is None or not stmt.conflict.sets):
            self.count = self.at(stmt.line).fresh("row_count")
            self.known.add(self.count)
            return InsertTranslator(self, stmt, self.count).statements()
        if not isinstance(stmt, sql.Select | sql.Update | sql.Delete) or (
            isinstance(stmt, sql.Select) and is_aggregate(stmt.tree)
        ):
            raise wrong("FOUND and ROW_COUNT are understood after SELECT, UPDATE and DELETE of one row", stmt.line)
        below, rows = self.rows_of(stmt)
        table = self.table(rows.table, stmt.line)
        if not ir.fixes_key(rows.where, rows.var, below.ir_table(table)):
            raise wrong("FOUND and ROW_COUNT need a row by its primary key", stmt.line, "use COUNT, or EXISTS")
        found, count = below.fresh("rows"), below.fresh("row_count")
        lock = is_locking(stmt.tree, rows.table, stmt.line, self.file) if isinstance(stmt, sql.Select) else True
        read = ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where, lock)
        number = ir.Query("count", found, below.fresh("row"), ir.TRUE, is_local=True)
        names: list[str] = [count]
        values: list[Expr] = [number]
        if isinstance(stmt, sql.Select):
            self.define(stmt.into, stmt.line)
            names += stmt.into
            values += [
                below.value_of_only_row(part.unalias(), found, rows.var) for part in stmt.tree.expressions if stmt.into
            ]
        result: list[ir.Stmt] = [read, ir.Let(stmt.line, tuple(names), tuple(values))]
        self.count = count
        self.known.add(count)
        if not isinstance(stmt, sql.Select):
            some = Operation("<", (Const(0), ir.Local(count)))
            result.append(ir.If(stmt.line, some, tuple(self.translate_change(stmt))))
        return result

    def rows_of(self, stmt: sql.Select | sql.Update | sql.Delete) -> tuple[ExpressionTranslator, SelectedRows]:
        """Return the rows that a statement looks for, and a translator that knows them."""
        if isinstance(stmt, sql.Select):
            return selected_rows(self, self.at(stmt.line), stmt.tree, stmt.line)
        table = self.table(stmt.table, stmt.line)
        var = self.at(stmt.line).fresh(table.name[:1])
        below = self.at(stmt.line, [(_alias(stmt), table, var)])
        return below, SelectedRows(table.name, var, below.where(stmt.where) if stmt.where is not None else ir.TRUE)

    def translate_change(self, stmt: sql.Change) -> list[ir.Stmt]:
        access.reject_side_effects(self.table(stmt.table, stmt.line), stmt.line, writes=True)
        if stmt.returning:
            resolve_statement(stmt, self.txn, self.file)
        if isinstance(stmt, sql.Insert):
            return InsertTranslator(self, stmt).statements() if stmt.query is None else insert_select(self, stmt)
        assert isinstance(stmt, sql.Update | sql.Delete)
        if isinstance(stmt, sql.Update) and stmt.others:
            return update_from(self, stmt, _alias(stmt))
        inside, rows = self.rows_of(stmt)
        table, var, where = self.table(stmt.table, stmt.line), rows.var, rows.where
        if isinstance(stmt, sql.Delete):
            self.no_cascade(table, stmt.line)
            if stmt.returning:
                return self.translate_returning(stmt, table, ())
            return [ir.Delete(stmt.line, table.name, var, where)]
        for column, _ in stmt.sets:
            inside.of(var, table, column)
        if stmt.returning:
            return self.translate_returning(stmt, table, stmt.sets)
        return [ir.Update(stmt.line, table.name, var, where, self.assignments(stmt, inside, table))]

    def assignments(
        self, stmt: sql.Update, inside: ExpressionTranslator, table: sql.SqlTable
    ) -> tuple[tuple[str, Expr], ...]:
        """Return the assignments of an UPDATE, including columns that every UPDATE sets (ON UPDATE)."""
        kinds = {column.name: column for column in table.columns}
        sets = [
            (
                name,
                self.null_value(table, kinds[name], stmt.line)
                if isinstance(value, engine().exp.Null)
                else inside.expr(value),
            )
            for name, value in stmt.sets
        ]
        touched = [c for c in table.columns if c.touched and c.name not in dict(sets)]
        return (*sets, *((c.name, self.generated_value(f"new_{c.name}", _sort(c.type), stmt.line)) for c in touched))

    def translate_returning(
        self, stmt: sql.Update | sql.Delete, table: sql.SqlTable, sets: tuple[tuple[str, Any], ...]
    ) -> list[ir.Stmt]:
        """Translate UPDATE or DELETE with RETURNING: lock the row, bind its new values, then change it."""
        below, rows = self.rows_of(stmt)
        if not ir.fixes_key(rows.where, rows.var, below.ir_table(table)):
            raise wrong("RETURNING needs a row by its primary key", stmt.line, "lock and read the rows before")
        read = ir.SelectOne(stmt.line, rows.var, table.name, rows.where, True)
        new = {column: below.expr(value) for column, value in sets}
        var = below.fresh(table.name[:1])
        same = ir.conjunction([Operation("=", (Field(var, key), Field(rows.var, key))) for key in table.primary_key])
        if isinstance(stmt, sql.Delete):
            write: ir.Stmt = ir.Delete(stmt.line, table.name, var, same)
        else:
            inside = self.at(stmt.line, [(_alias(stmt), table, var)])
            write = ir.Update(stmt.line, table.name, var, same, self.assignments(stmt, inside, table))
        values = tuple(self.column_of(part, new, rows.var, table, stmt.line) for part in stmt.returning)
        names = stmt.into or tuple(below.fresh("unused") for _ in values)
        self.define(names, stmt.line)
        return [read, ir.Let(stmt.line, names, values), write]

    def column_of(self, part: Any, new: dict[str, Expr], row: str, table: sql.SqlTable, line: int) -> Expr:
        """Return a column that RETURNING names, with its value after the statement."""
        node = part.unalias()
        name = str(node.name).lower()
        if name not in table.names or part.find(engine().exp.Func, engine().exp.Binary):
            hint = "list columns, and compute with the variables afterwards"
            raise wrong(f"RETURNING {part.sql():.40} is not supported", line, hint)
        return new.get(name, Field(row, name))

    def no_cascade(self, table: sql.SqlTable, line: int) -> None:
        """Raise InputError if a DELETE would cascade; only the statement's own rows are modelled."""
        for child in self.file.tables:
            for key in child.foreign_keys:
                if key.table == table.name and "ON DELETE" in key.cascades:
                    hint = f"delete the rows of {child.name} by a statement of its own, and leave it out"
                    raise wrong(f"{key.cascades} of {child.name} is not supported", line, hint)


def _alias(stmt: sql.Update | sql.Delete) -> str:
    return str(stmt.tree.this.alias or "").lower()


def _assigned(body: tuple[sql.Statement, ...]) -> set[str]:
    """Return the variables that a transaction assigns anywhere."""
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


def _rolls_back(body: tuple[sql.Statement, ...]) -> bool:
    return any(isinstance(stmt, sql.RollbackStatement) for stmt in body)


def _sort(kind: str) -> ir.Sort:
    return "bool" if kind == "bool" else "text" if kind == "text" else "int"


HINT = "join tables by their whole primary keys, or write a SELECT for each"


def join(body: TransactionTranslator, stmt: sql.Select) -> list[ir.Stmt]:
    """Translate a SELECT over several tables to one SELECT per table, each by primary key."""
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
    found = _ordered_by_key(below, scopes, parts, stmt)
    values = tuple(below.expr(part.unalias()) for part in tree.expressions)
    body.define(stmt.into, line)
    return [*found, ir.Let(line, stmt.into, values)]


def _ordered_by_key(
    below: ExpressionTranslator, scopes: list[tuple[str, sql.SqlTable, str]], parts: list[ir.Expr], stmt: sql.Select
) -> list[ir.Stmt]:
    """Return the SELECTs in an order in which the earlier rows fix the key of the next row."""
    found: list[ir.Stmt] = []
    own = {var for _, _, var in scopes}
    bound: set[str] = set()
    waiting = list(scopes)
    while waiting:
        for scope in waiting:
            _, table, var = scope
            ready = [part for part in parts if _referenced_rows(part) & own <= bound | {var}]
            condition = ir.conjunction(ready)
            if ir.fixes_key(condition, var, below.ir_table(table)):
                break
        else:
            raise wrong("this join is not supported", stmt.line, HINT)
        found.append(ir.SelectOne(stmt.line, var, table.name, condition, bool(stmt.lock)))
        bound.add(var)
        parts = [part for part in parts if part not in ready]
        waiting.remove(scope)
    return found


def _referenced_rows(part: ir.Expr) -> set[str]:
    return {node.row for node in ir.walk(part) if isinstance(node, ir.Field)}


def select_any_row(
    body: TransactionTranslator, rows: SelectedRows, values: tuple[ir.Expr, ...] | None, lock: bool, line: int
) -> ir.SelectOne:
    """Return a SELECT of one row. If several rows match, the database may choose any of them.

    The choice becomes additional arguments: one per column that is read or locked. Without ``values`` all columns are
    read.
    """
    table, known = body.table(rows.table, line), ir.fixed_columns(rows.where, rows.var)
    where = rows.where
    if not any(known.keys() >= set(key) for key in (table.primary_key, *table.unique) if key):
        nodes = [node for value in values or () for node in ir.walk(value)]
        seen = {node.column for node in nodes if isinstance(node, ir.Field) and node.row == rows.var}
        seen |= set(table.names) if values is None else set(table.primary_key or table.names) if lock else set()
        picked = [(name, sort) for name, sort in table_of(table).columns if name in seen - known.keys()]
        same = [(ir.Field(rows.var, name), body.generated_value(f"some_{name}", sort, line)) for name, sort in picked]
        where = ir.conjunction([where, *(ir.Operation("=", pair) for pair in same)])
    return ir.SelectOne(line, rows.var, rows.table, where, lock)


def with_scan_order(
    loop: ir.ForEach, table: sql.SqlTable, below: ExpressionTranslator, arguments: list[ir.Param]
) -> ir.ForEach:
    """Return the loop with an additional argument that reverses its order, since a scan may return rows in any order.

    A loop stays as it is if each of its rounds only inserts a row, or changes the loop's own row.
    """
    (stmt, *more) = loop.body or (ir.Stmt(loop.line),)
    asks = more or any(isinstance(node, ir.Query) for node in ir.walk(stmt))
    own = {ir.Field(loop.var, column) for column in table.primary_key}
    if not asks and (
        isinstance(stmt, ir.Insert)
        or (
            isinstance(stmt, ir.Update | ir.Delete)
            and own
            and own <= {*ir.fixed_columns(stmt.where, stmt.var).values()}
        )
    ):
        return loop
    arguments.append(ir.Param(below.fresh("backwards"), "bool"))
    return replace(loop, backwards=arguments[-1].name)


def is_join(tree: Any) -> bool:
    return bool(tree.args.get("joins"))


def selected_rows(
    body: TransactionTranslator, at: ExpressionTranslator, tree: Any, line: int
) -> tuple[ExpressionTranslator, SelectedRows]:
    """Return the rows of a SELECT, with a translator that knows them.

    LIMIT 1 may return any row: its key is an additional argument, which the database chooses. This allows more rows
    than ORDER BY or SKIP LOCKED would.
    """
    if not has_limit_one(tree) or is_aggregate(tree):
        return at.inner(tree)
    plain = tree.copy()
    plain.set("limit", None)
    plain.set("order", None)
    below, rows = at.inner(plain)
    table = body.table(rows.table, line)
    if not table.primary_key:
        raise wrong("LIMIT 1 of a table without primary key is not supported", line, "give it one")
    order = tree.args.get("order")
    for column in order.find_all(engine().exp.Column) if order else ():
        if column.name.lower() not in table.names:
            raise wrong(f"{table.name} has no column {column.name:.60}", line, nearest(column.name, table.names))
    kinds = {column.name: column.type for column in table.columns}
    chosen = [
        Operation("=", (Field(rows.var, name), body.generated_value(f"any_{name}", _key_sort(kinds[name]), line)))
        for name in table.primary_key
    ]
    return below, SelectedRows(rows.table, rows.var, ir.conjunction([*chosen, rows.where]))


def _key_sort(kind: str) -> ir.Sort:
    return "text" if kind == "text" else "bool" if kind == "bool" else "id"


def is_locking(tree: Any, table: str, line: int, file: sql.File) -> bool:
    """Return whether a SELECT locks its rows. FOR SHARE of one row counts as a read, which blocks nothing."""
    found = False
    for lock in tree.args.get("locks") or ():
        if lock.args.get("update") and lock.args.get("key"):
            raise wrong("FOR NO KEY UPDATE is not supported", line, "use FOR UPDATE")
        if lock.args.get("wait") is False and not (has_limit_one(tree) and lock.args.get("update")):
            raise wrong("SKIP LOCKED is not supported here", line, "use FOR UPDATE alone, or with LIMIT 1")
        # NOWAIT aborts where FOR UPDATE waits. Otherwise both do the same.
        if is_aggregate(tree):
            raise wrong("an aggregate cannot be FOR UPDATE", line, "lock the rows with a SELECT of their columns")
        if not lock.args.get("update") and _deletes_and_inserts(table, file):
            said = f"FOR SHARE is not supported where rows of {table} are deleted and inserted"
            raise wrong(said, line, "use FOR UPDATE")
        found = found or bool(lock.args.get("update"))
    return found


def read_limit_one(
    body: TransactionTranslator, select: Any, line: int
) -> tuple[list[ir.Stmt], set[str], tuple[Expr, Expr]]:
    """Return how to read a subquery of one row: the statements, their variables, and (exists, value)."""
    at = body.at(line)
    below, rows = selected_rows(body, at, select, line)
    lock = is_locking(select, rows.table, line, body.file)
    if select.args.get("locks") and not lock:
        raise wrong("FOR SHARE in a subquery is not supported", line, "use FOR UPDATE")
    found, count, value = (at.fresh(stem) for stem in ("rows", "row_count", "selected"))
    number = ir.Query("count", found, at.fresh("row"), ir.TRUE, is_local=True)
    read = below.value_of_only_row(select.expressions[0].unalias(), found, rows.var)
    first: list[ir.Stmt] = [
        ir.SelectAll(line, found, rows.table, rows.var, rows.where, lock),
        ir.Let(line, (count, value), (number, read)),
    ]
    return first, {count, value}, (Operation("<", (Const(0), ir.Local(count))), ir.Local(value))


def require_one_row(stmt: sql.Select, where: Expr, var: str, table: ir.Table) -> None:
    """Raise InputError for FOR SHARE of several rows, which would see several moments."""
    if stmt.lock == "share" and not ir.fixes_key(where, var, table):
        raise wrong("FOR SHARE needs a row by its primary key", stmt.line, "use FOR UPDATE")


def _deletes_and_inserts(table: str, file: sql.File) -> bool:
    changes = [stmt for txn in file.transactions for stmt in all_statements(txn.body) if isinstance(stmt, sql.Change)]
    own = [stmt for stmt in changes if stmt.table == table]
    return any(isinstance(s, sql.Delete) for s in own) and any(isinstance(s, sql.Insert) for s in own)


def insert_select(body: TransactionTranslator, stmt: sql.Insert) -> list[ir.Stmt]:
    """Translate INSERT … SELECT: the rows are read, then inserted one after the other."""
    if stmt.conflict is not None or stmt.returning or has_limit_one(stmt.query):
        raise wrong(
            "this INSERT … SELECT is not supported", stmt.line, "use FOR row IN SELECT … LOOP INSERT … END LOOP"
        )
    inserting = InsertTranslator(body, stmt)
    query: Any = stmt.query
    below, rows = body.at(stmt.line).inner(query)
    given = list(query.expressions)
    if any(part.is_star for part in given):
        raise wrong("INSERT … SELECT * is not supported", stmt.line, "list the columns")
    inserting.require_width(given)
    if _is_one_row(given):
        below.aggregates = rows
        names = tuple(below.fresh("selected") for _ in given)
        body.define(names, stmt.line)
        read: ir.Stmt = ir.Let(stmt.line, names, tuple(below.expr(part.unalias()) for part in given))
        local = [engine().exp.column(name) for name in names]
        return [read, *inserting.row(inserting.values(dict(zip(inserting.columns, local, strict=True))))]
    found, var = below.fresh("rows"), below.fresh(rows.table[:1])
    alias, table, _ = below.scopes[-1]
    inserting.scopes = [(alias, table, var)]
    inside, body.in_loop = body.in_loop, True
    values = inserting.values(dict(zip(inserting.columns, (part.unalias() for part in given), strict=True)))
    body.in_loop = inside
    return [
        ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where),
        ir.ForEach(stmt.line, var, found, tuple(inserting.row(values))),
    ]


def _is_one_row(values: list[Any]) -> bool:
    """Return whether the values have an aggregate and no column outside aggregates."""
    exp = engine().exp
    columns = [column for value in values for column in value.find_all(exp.Column)]
    inside = [column for column in columns if column.find_ancestor(exp.AggFunc)]
    return any(value.find(exp.AggFunc) for value in values) and len(inside) == len(columns)


_FROM = "fix the other table's row by its whole primary key, or read the value first"


def update_from(body: TransactionTranslator, stmt: sql.Update, alias: str) -> list[ir.Stmt]:
    """Translate UPDATE … FROM one row of another table. That row is read first, by its key, and not again."""
    line = stmt.line
    ties = joined(stmt.others)
    if ties is None or len(ties[0]) != 1 or stmt.returning:
        raise wrong("this UPDATE … FROM is not supported", line, _FROM)
    (node,), conditions = ties
    table, other = body.table(stmt.table, line), body.table(str(node.name), line)
    names = body.at(line)
    var, row, found, count = (names.fresh(stem) for stem in (table.name[:1], other.name[:1], "rows", "row_count"))
    inside = body.at(line, [(alias, table, var), (str(node.alias or "").lower(), other, row)])
    parts = [inside.expr(part) for part in (*conditions, *conjuncts(stmt.where))]
    own = ir.fixed_columns(ir.conjunction([part for part in parts if not _mentions(part, row)]), var)

    def known(part: Expr) -> Expr | None:
        return own.get(part.column) if isinstance(part, Field) and part.row == var else None

    asked = [ir.rewritten(part, known) for part in parts if _mentions(part, row)]
    about = ir.conjunction([part for part in asked if not _mentions(part, var)])
    if not ir.fixes_key(about, row, names.ir_table(other)):
        raise wrong("this UPDATE … FROM is not supported", line, _FROM)
    texts = {column.name for column in other.columns if column.type == "text"}

    def read(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.row != row:
            return None
        if part.column in texts:
            raise wrong(f"{part.column} is a text, which UPDATE … FROM cannot take", line, "read the value first")
        each = names.fresh("row")
        return ir.Query("max", found, each, ir.TRUE, Field(each, part.column), Const(0), is_local=True)

    number = ir.Query("count", found, names.fresh("row"), ir.TRUE, is_local=True)
    some = Operation("<", (Const(0), ir.Local(count)))
    where = ir.conjunction([*(ir.rewritten(part, read) for part in parts), some])
    sets = tuple((column, ir.rewritten(value, read)) for column, value in body.assignments(stmt, inside, table))
    return [
        ir.SelectAll(line, found, other.name, row, about),
        ir.Let(line, (count,), (number,)),
        ir.Update(line, table.name, var, where, sets),
    ]


def _mentions(part: Expr, row: str) -> bool:
    return any(isinstance(node, Field) and node.row == row for node in ir.walk(part))


def arguments_of_type(kind: str, txn: sql.SqlTransaction, file: sql.File) -> set[str]:
    """Return the arguments that are stored in columns of this type, or compared with them; they have the type too."""
    exp = engine().exp
    named = {column.name for table in file.tables for column in table.columns if column.type == kind}
    found: set[str] = set()
    for stmt in all_statements(txn.body):
        pairs: list[tuple[str, Any]] = []
        if isinstance(stmt, sql.Insert) and (table := file.table(stmt.table)) is not None:
            kinds = {column.name: column.type for column in table.columns}
            for values in stmt.rows:
                given = zip(stmt.columns or table.names, values, strict=False)
                pairs += [(name, value) for name, value in given if kinds.get(name) == kind]
        if isinstance(stmt, sql.Update):
            pairs += [(name, value) for name, value in stmt.sets if name in named]
        pairs += _compared(stmt, named)
        found |= {str(v.name).lower() for _, v in pairs if isinstance(v, exp.Placeholder | exp.Parameter | exp.Column)}
    return found


def _compared(stmt: sql.Statement, named: set[str]) -> list[tuple[str, Any]]:
    exp = engine().exp
    trees = [stmt.tree] if isinstance(stmt, sql.Select | sql.Change) else []
    found = []
    for node in (node for tree in trees for node in tree.find_all(exp.EQ, exp.NEQ)):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(one, exp.Column) and one.name.lower() in named and not isinstance(other, exp.Column):
                found.append((one.name.lower(), other))
    for node in (node for tree in trees for node in tree.find_all(exp.In)):
        if isinstance(node.this, exp.Column) and node.this.name.lower() in named:
            found += [(node.this.name.lower(), value) for value in node.expressions]
    return found


def is_complex(tree: Any) -> bool:
    """Return whether a query is more than a condition on the rows of one table, or aggregates over them."""
    exp = engine().exp
    parts = ("joins", "group", "having", "distinct", "with_", "with", "windows", "offset", "order", "limit", "laterals")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in parts):
        return True
    origin = tree.args.get("from_") or tree.args.get("from")
    return origin is None or not isinstance(origin.this, exp.Table)


def uses_row_count(stmt: sql.Statement) -> bool:
    """Return whether the statement uses FOUND or ROW_COUNT of the previous statement."""
    exp = engine().exp
    tree = stmt.condition.tree if isinstance(stmt, sql.If) else stmt.value if isinstance(stmt, sql.Assign) else None
    if tree is None:
        return False
    called = [str(node.name).lower() for node in tree.find_all(exp.Anonymous)]
    return "row_count" in called or any(c.name.lower() == "found" and not c.table for c in tree.find_all(exp.Column))


def dialect_statements(file: sql.File) -> tuple[tuple[str, int], ...]:
    """Return the statements that not all databases have, or that they execute differently, with their lines."""
    found = []
    for stmt in (stmt for txn in file.transactions for stmt in all_statements(txn.body)):
        if isinstance(stmt, sql.Insert) and stmt.conflict is not None:
            found.append((stmt.conflict.spelled, stmt.line))
        elif isinstance(stmt, sql.Insert) and stmt.query is not None:
            found.append(("INSERT … SELECT", stmt.line))
        elif isinstance(stmt, sql.Update) and stmt.others:
            found.append(("UPDATE … FROM", stmt.line))
        elif isinstance(stmt, sql.Select) and stmt.lock == "share":
            found.append(("FOR SHARE", stmt.line))
    return tuple(found)
