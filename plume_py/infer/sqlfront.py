"""From SQL files to the intermediate form."""

from dataclasses import dataclass, field, replace
from typing import Any

from plume_py import sql
from plume_py.infer import language as ir
from plume_py.infer.language import Const, Expr, Field, Op
from plume_py.sql.statements import source
from plume_py.sql.syntax import engine, wrong

HINT = "use columns, arguments, numbers, + - *, comparisons, AND OR NOT, EXISTS, COUNT, SUM, MIN, MAX, CASE"


def translate(file: sql.File) -> ir.Program:
    """The program of a SQL file."""
    tables = tuple(_table(table, file) for table in file.tables)
    enforced = tuple(clause for table in file.tables for clause in _enforced(table, file))
    invariant = tuple(
        ir.Clause(
            item.name,
            _Translator(file, item.condition.line).expr(item.condition.tree),
            item.condition.line,
            item.condition.text,
        )
        for item in file.invariants
    )
    transactions = tuple(_Body(file, txn).transaction() for txn in file.transactions)
    rows = tuple(row for insert in file.rows for row in _rows(file, insert))
    return ir.Program(file.name, tables, transactions, invariant, enforced, rows=rows)


def _rows(file: sql.File, insert: sql.Insert) -> list[tuple[str, tuple[ir.Value, ...]]]:
    """The rows of an INSERT beside the tables: constants only."""
    found = []
    empty = sql.SqlTransaction("", (), (), (), insert.line)
    for stmt in _Body(file, empty).insert(insert):
        assert isinstance(stmt, ir.Insert)
        values = [value.args[0] if isinstance(value, Op) and value.op == "neg" else value for value in stmt.values]
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
        same = ir.conjunction([Op("=", (Field("b", c), Field("a", c))) for c in columns])
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
        match = [Op("=", (Field("p", b), Field("c", a))) for a, b in zip(key.columns, to, strict=True)]
        there = ir.Query("exists", parent.name, "p", ir.conjunction(match))
        name = f"foreign key {table.name}({', '.join(key.columns)})"
        ddl = ((table.name, f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {parent.name} ({', '.join(to)})"),)
        found.append(ir.Clause(name, ir.Query("forall", table.name, "c", ir.TRUE, there), key.line, ddl=ddl))
    for number, check in enumerate(table.checks, 1):
        translator = _Translator(file, check.line, [("", table, "r")])
        condition = ir.Query("forall", table.name, "r", ir.TRUE, translator.expr(check.tree))
        ddl = ((table.name, f"CHECK ({check.text})"),)
        found.append(ir.Clause(f"check {number} of {table.name}", condition, check.line, ddl=ddl))
    return found


@dataclass
class _Aggregates:
    """A SELECT whose aggregates are being translated: its table, row and condition."""

    table: str
    var: str
    where: Expr


@dataclass
class _Translator:
    """Translates expressions; ``scopes`` are the rows that can be named, the innermost last."""

    file: sql.File
    line: int
    scopes: list[tuple[str, sql.SqlTable, str]] = field(default_factory=list)
    params: tuple[str, ...] = ()
    known: set[str] = field(default_factory=set)
    loops: dict[str, tuple[str, sql.SqlTable]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    aggregates: _Aggregates | None = None
    placeholders: frozenset[str] = frozenset()

    def unsupported(self, node: Any) -> Any:
        """Always an error."""
        raise wrong(f"not supported: {node.sql()[:80]}", self.line, HINT)

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        name, number = stem, 1
        while name in self.names or name in self.params or name in self.known:
            number += 1
            name = f"{stem}{number}"
        self.names.add(name)
        return name

    def expr(self, node: Any) -> Expr:
        """The expression of a sqlglot tree."""
        exp = engine().exp
        simple = {
            exp.Add: "+",
            exp.Sub: "-",
            exp.Mul: "*",
            exp.LT: "<",
            exp.LTE: "<=",
            exp.EQ: "=",
            exp.NEQ: "<>",
            exp.And: "and",
            exp.Or: "or",
        }
        if type(node) in simple:
            return Op(simple[type(node)], (self.expr(node.this), self.expr(node.expression)))
        if isinstance(node, exp.GT | exp.GTE):
            op = "<" if isinstance(node, exp.GT) else "<="
            return Op(op, (self.expr(node.expression), self.expr(node.this)))
        if isinstance(node, exp.Not | exp.Neg):
            return Op("not" if isinstance(node, exp.Not) else "neg", (self.expr(node.this),))
        if isinstance(node, exp.Paren):
            return self.expr(node.this)
        if isinstance(node, exp.Literal | exp.Boolean):
            return self._literal(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return self._variable(str(node.name).lower(), node)
        return self._larger(node)

    def _larger(self, node: Any) -> Expr:
        exp = engine().exp
        if isinstance(node, exp.Exists):
            return self._exists(node.this)
        if isinstance(node, exp.Subquery):
            return self._scalar(node.this)
        if isinstance(node, exp.Between):
            value = self.expr(node.this)
            low, high = self.expr(node.args["low"]), self.expr(node.args["high"])
            return Op("and", (Op("<=", (low, value)), Op("<=", (value, high))))
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce(node)
        if isinstance(node, exp.Count | exp.Sum | exp.Min | exp.Max):
            return self._aggregate(node, None)
        if isinstance(node, exp.Null | exp.Is):
            raise wrong("NULL is not supported", self.line, "use a value of its own, such as 0, for what is not there")
        return self.unsupported(node)  # type: ignore[no-any-return]

    def _literal(self, node: Any) -> Expr:
        exp = engine().exp
        if isinstance(node, exp.Boolean):
            return Const(bool(node.this))
        if node.is_string:
            return Const(str(node.this))
        try:
            return Const(int(node.this))
        except ValueError:
            raise wrong(
                f"{node.this} is no whole number", self.line, "count in the smallest unit, such as cents"
            ) from None

    def _column(self, node: Any) -> Expr:
        name, owner = str(node.name).lower(), str(node.table).lower()
        if owner:
            if owner in self.loops:
                var, table = self.loops[owner]
                return self._of(var, table, name)
            for alias, table, var in reversed(self.scopes):
                if owner in (alias, table.name if not alias else ""):
                    return self._of(var, table, name)
            raise wrong(f"there is no row {owner} here", self.line)
        for _, table, var in reversed(self.scopes):
            if name in table.names:
                # Who writes :k for the variable means the column by k.
                if (name in self.params or name in self.known) and name not in self.placeholders:
                    hint = f"write :{name} for the variable, {table.name}.{name} for the column"
                    raise wrong(f"{name} is a column of {table.name} and also a variable", self.line, hint)
                return Field(var, name)
        return self._variable(name, node)

    def _of(self, var: str, table: sql.SqlTable, name: str) -> Expr:
        if name not in table.names:
            raise wrong(f"{table.name} has no column {name}", self.line, f"it has {', '.join(table.names)}")
        return Field(var, name)

    def _variable(self, name: str, node: Any) -> Expr:
        if name in self.known:
            return ir.Local(name)
        if name in self.params:
            return ir.Arg(name)
        columns = "; ".join(f"{table.name} has {', '.join(table.names)}" for _, table, _ in self.scopes)
        raise wrong(f"{name} is neither a column nor a variable with a value here", self.line, columns)

    def inner(self, select: Any) -> tuple["_Translator", _Aggregates]:
        """The translator for what is inside a SELECT, and its table, row and condition."""
        exp = engine().exp
        if not isinstance(select, exp.Select):
            self.unsupported(select)
        name = source(select, self.line)
        table = self.file.table(name)
        if table is None:
            raise wrong(
                f"there is no table {name}", self.line, f"there is {', '.join(t.name for t in self.file.tables)}"
            )
        if select.args.get("limit") or select.args.get("order"):
            raise wrong("ORDER BY and LIMIT are not supported", self.line, "use MIN or MAX to choose a row")
        origin = select.args.get("from_") or select.args.get("from")
        var = self.fresh(name[:1])
        scope = str(origin.this.alias or "").lower(), table, var
        below = replace(self, scopes=[*self.scopes, scope], aggregates=None)
        where = select.args.get("where")
        condition = below.expr(where.this) if where else ir.TRUE
        return below, _Aggregates(name, var, condition)

    def _exists(self, select: Any) -> Expr:
        exp = engine().exp
        select = select.this if isinstance(select, exp.Subquery) else select
        _, rows = self.inner(select)
        return ir.Query("exists", rows.table, rows.var, rows.where)

    def _scalar(self, select: Any) -> Expr:
        below, rows = self.inner(select)
        if len(select.expressions) != 1 or not is_aggregate(select):
            raise wrong("a SELECT inside an expression must have one COUNT, SUM, MIN or MAX", self.line)
        below.aggregates = rows
        return below.expr(select.expressions[0])

    def _aggregate(self, node: Any, default: Expr | None) -> Expr:
        exp = engine().exp
        rows = self.aggregates
        if rows is None:
            raise wrong(f"{node.sql()[:40]} outside a SELECT", self.line)
        if isinstance(node, exp.Count):
            if isinstance(node.this, exp.Distinct):
                raise wrong("COUNT(DISTINCT …) is not supported", self.line)
            return ir.Query("count", rows.table, rows.var, rows.where)
        kind = type(node).__name__.lower()
        if kind in ("min", "max") and default is None:
            hint = f"write COALESCE({node.sql()}, 0), or what you mean"
            raise wrong(f"{kind.upper()} of no rows is NULL, which is not supported", self.line, hint)
        self.aggregates = None
        value = self.expr(node.this)
        self.aggregates = rows
        return ir.Query(kind, rows.table, rows.var, rows.where, value, default if kind != "sum" else None)

    def _coalesce(self, node: Any) -> Expr:
        exp = engine().exp
        first, rest = node.this, node.expressions
        if isinstance(first, exp.Subquery) and len(first.this.expressions) == 1:
            below, rows = self.inner(first.this)
            below.aggregates = rows
            return below._with_default(first.this.expressions[0], rest)
        return self._with_default(first, rest)

    def _with_default(self, node: Any, rest: list[Any]) -> Expr:
        exp = engine().exp
        if not isinstance(node, exp.Sum | exp.Min | exp.Max) or len(rest) != 1:
            raise wrong("COALESCE is for SUM, MIN or MAX and a value", self.line)
        default = self.expr(rest[0])
        if isinstance(node, exp.Sum) and default != Const(0):
            raise wrong("COALESCE(SUM(…), x) is supported for x = 0", self.line)
        return self._aggregate(node, default)

    def _in(self, node: Any) -> Expr:
        value = self.expr(node.this)
        if node.args.get("query") is not None:
            select = node.args["query"].this
            below, rows = self.inner(select)
            match = Op("=", (below.expr(select.expressions[0]), value))
            return ir.Query("exists", rows.table, rows.var, ir.conjunction([rows.where, match]))
        return Op("or", tuple(Op("=", (value, self.expr(item))) for item in node.expressions))

    def _case(self, node: Any) -> Expr:
        if node.args.get("default") is None:
            raise wrong("CASE without ELSE gives NULL, which is not supported", self.line)
        result = self.expr(node.args["default"])
        for branch in reversed(node.args["ifs"]):
            test = self.expr(branch.this)
            if node.this is not None:
                test = Op("=", (self.expr(node.this), test))
            result = Op("ite", (test, self.expr(branch.args["true"]), result))
        return result


def is_aggregate(select: Any) -> bool:
    """Does a SELECT give one row because all its values are aggregates?"""
    exp = engine().exp
    return bool(select.expressions) and all(
        isinstance(part.unalias(), exp.AggFunc | exp.Coalesce) or part.find(exp.AggFunc) for part in select.expressions
    )


class _Body:
    """Translates a transaction."""

    def __init__(self, file: sql.File, txn: sql.SqlTransaction) -> None:
        self.file, self.txn = file, txn
        self.params = tuple(param.name for param in txn.params)
        self.known: set[str] = set()
        self.loops: dict[str, tuple[str, sql.SqlTable]] = {}
        self.names = _assigned(txn.body)

    def transaction(self) -> ir.Transaction:
        """The transaction in the intermediate form."""
        assume = tuple(self.at(item.line).expr(item.tree) for item in self.txn.assume)
        params = tuple(ir.Param(param.name, _sort(param.type)) for param in self.txn.params)
        return ir.Transaction(self.txn.name, params, self.block(self.txn.body), assume, self.txn.line)

    def at(self, line: int, scopes: list[tuple[str, sql.SqlTable, str]] | None = None) -> _Translator:
        """A translator for a statement."""
        return _Translator(
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
        if isinstance(stmt, sql.Rollback):
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
            inside._of(var, table, column)
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
                raise wrong(f"INSERT has {len(row)} values for {len(columns)} columns", stmt.line)
            values = dict(zip(columns, (self.at(stmt.line).expr(value) for value in row), strict=True))
            found.append(ir.Insert(stmt.line, table.name, tuple(values[name] for name in table.names)))
        return found


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
    return any(isinstance(stmt, sql.Rollback) for stmt in body)


def _sort(kind: str) -> ir.Sort:
    return "bool" if kind == "bool" else "text" if kind == "text" else "int"
