"""Translate expressions and table constraints of SQL files to the intermediate form.

``from_sql`` uses a ``ExpressionTranslator`` for the expressions of each statement. Expressions arrive as sqlglot trees.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from plume_py.base import sql
from plume_py.base.errors import InputError
from plume_py.base.sql.access import conjuncts
from plume_py.base.sql.statements import source
from plume_py.base.sql.syntax import engine, wrong
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation

_READ = ("kind", "expressions", "from_", "from", "where", "locks")  # supported parts of a SELECT
# All numbers are integers, so a cast to one of these types does not change a value.
_SAME_VALUE = ("INT", "BIGINT", "SMALLINT", "DECIMAL", "TEXT", "VARCHAR", "BOOLEAN")
HINT = "use columns, arguments, numbers, + - *, comparisons, AND OR NOT, EXISTS, COUNT, SUM, MIN, MAX, CASE"


@dataclass
class SelectedRows:
    """The SELECT whose aggregates are being translated: table, row variable and condition."""

    table: str
    var: str
    where: Expr


@dataclass
class ExpressionTranslator:
    """Translates expressions of one statement. ``scopes``: visible rows (alias, table, variable), innermost last."""

    file: sql.File
    line: int
    scopes: list[tuple[str, sql.SqlTable, str]] = field(default_factory=list)
    params: tuple[str, ...] = ()
    known: set[str] = field(default_factory=set)
    loops: dict[str, tuple[str, sql.SqlTable]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    aggregates: SelectedRows | None = None
    placeholders: frozenset[str] = frozenset()
    count: str | None = None  # the variable with the row count of the previous statement
    excluded: dict[str, Expr] | None = None  # in ON CONFLICT: the row that could not be inserted
    generated_value: Callable[[str, ir.Sort, int], Expr] | None = None  # makes a value that the database generates
    choose: Callable[[Any, int], tuple[Expr, Expr]] | None = None  # reads a subquery of one row: (exists, value)

    def unsupported(self, node: Any) -> Any:
        raise wrong(f"not supported: {node.sql()[:80]}", self.line, HINT)

    def fresh(self, stem: str) -> str:
        """Return an unused name."""
        name, number = stem, 1
        while name in self.names or name in self.params or name in self.known:
            number += 1
            name = f"{stem}{number}"
        self.names.add(name)
        return name

    def expr(self, node: Any) -> Expr:
        """Return the expression of a sqlglot tree."""
        exp = engine().exp
        simple = {
            exp.Add: "+",
            exp.Sub: "-",
            exp.Mul: "*",
            exp.LT: "<",
            exp.LTE: "<=",
            exp.EQ: "=",
            exp.NEQ: "<>",
        }
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self.expr(part) for part in node.flatten())
            return Operation("and" if isinstance(node, exp.And) else "or", parts)
        if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            return self._time_offset(node)
        if type(node) in simple:
            return Operation(simple[type(node)], (self.expr(node.this), self.expr(node.expression)))
        if isinstance(node, exp.GT | exp.GTE):
            op = "<" if isinstance(node, exp.GT) else "<="
            return Operation(op, (self.expr(node.expression), self.expr(node.this)))
        if isinstance(node, exp.Not | exp.Neg):
            return Operation("not" if isinstance(node, exp.Not) else "neg", (self.expr(node.this),))
        if isinstance(node, exp.Paren):
            return self.expr(node.this)
        if isinstance(node, exp.Literal | exp.Boolean):
            return self._literal(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return self._variable(str(node.name).lower(), node)
        return self._other_expression(node)

    def where(self, node: Any) -> Expr:
        """Return a condition on rows. SQL drops a row whose condition is NULL, so such a conjunct is false."""
        return ir.conjunction([self._conjunct(part) for part in conjuncts(node)])

    def _conjunct(self, node: Any) -> Expr:
        """Return a conjunct. A comparison with a subquery that may have no row also requires that the row exists."""
        exp = engine().exp
        if not isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
            return self.expr(node)
        sides = [self._nullable(side) for side in (node.this, node.expression)]
        if all(some is None for some, _ in sides):
            return self.expr(node)
        (some, left), (other, right) = sides
        op = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: "<", exp.GTE: "<="}[type(node)]
        turned = isinstance(node, exp.GT | exp.GTE)
        compared = Operation(op, (right, left) if turned else (left, right))
        return ir.conjunction([*(part for part in (some, other) if part is not None), compared])

    def _nullable(self, node: Any) -> tuple[Expr | None, Expr]:
        """Return a value, and the condition that it is not NULL if it is a subquery that may have no row."""
        exp = engine().exp
        select = node.this if isinstance(node, exp.Subquery) else None
        if isinstance(select, exp.Select) and len(select.expressions) == 1:
            value = select.expressions[0].unalias()
            if isinstance(value, exp.Min | exp.Max):
                _, rows = self.inner(select)
                below, again = self.inner(select)
                below.aggregates = again
                some = ir.Query("exists", rows.table, rows.var, rows.where)
                return some, below._aggregate(value, Const(0))
            if has_limit_one(select) and not is_aggregate(select) and self.choose is not None:
                return self.choose(select, self.line)
        return None, self.expr(node)

    def _other_expression(self, node: Any) -> Expr:
        exp = engine().exp
        if isinstance(node, exp.Cast) and node.to.sql(dialect="").upper() in _SAME_VALUE:
            return self.expr(node.this)  # ``load.validate`` checks that the sort fits
        if isinstance(node, exp.Cast) and self._is_of_enum(node):
            return self.expr(node.this)
        if isinstance(node, exp.Exists):
            return self._exists(node.this)
        if isinstance(node, exp.Subquery):
            return self._scalar(node.this)
        if isinstance(node, exp.Between):
            value = self.expr(node.this)
            low, high = self.expr(node.args["low"]), self.expr(node.args["high"])
            return Operation("and", (Operation("<=", (low, value)), Operation("<=", (value, high))))
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce(node)
        if isinstance(node, exp.Count | exp.Sum | exp.Min | exp.Max):
            return self._aggregate(node, None)
        if isinstance(node, exp.CurrentTimestamp | exp.CurrentDate | exp.Localtimestamp | exp.Rand):
            return self._generated("now", node)
        if isinstance(node, exp.Anonymous) and node.name.upper() == "ROW_COUNT" and self.count:
            return ir.Local(self.count)
        if isinstance(node, exp.Anonymous) and node.name.upper() == "VALUES" and self.excluded is not None:
            name = str(node.expressions[0].name).lower() if len(node.expressions) == 1 else ""
            return self.excluded[name] if name in self.excluded else self.unsupported(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            value = self.expr(node.this)
            return value if node.expression.this else Operation("not", (value,))
        if isinstance(node, exp.Null | exp.Is):
            raise wrong("NULL is not supported", self.line, "use a value of its own, such as 0, for what is not there")
        return self.unsupported(node)  # type: ignore[no-any-return]

    def _is_of_enum(self, node: Any) -> bool:
        name = str(node.to.args.get("kind") or "").lower().split(".")[-1].strip('"')
        return isinstance(node.this, engine().exp.Literal) and node.this.is_string and name in self.file.enums

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
        if owner == "excluded" and self.excluded is not None and name in self.excluded:
            return self.excluded[name]
        if owner:
            if owner in self.loops:
                var, table = self.loops[owner]
                return self.of(var, table, name)
            for alias, table, var in reversed(self.scopes):
                if owner in (alias, table.name if not alias else ""):
                    return self.of(var, table, name)
            raise wrong(f"there is no row {owner} here", self.line)
        for _, table, var in reversed(self.scopes):
            if name in table.names:
                # In a transaction that writes :k for the variable, a bare k is the column.
                if (name in self.params or name in self.known) and name not in self.placeholders:
                    hint = f"write :{name} for the variable, {table.name}.{name} for the column"
                    raise wrong(f"{name} is a column of {table.name} and also a variable", self.line, hint)
                return Field(var, name)
        return self._variable(name, node)

    def of(self, var: str, table: sql.SqlTable, name: str) -> Expr:
        if name not in table.names:
            raise wrong(f"{table.name} has no column {name}", self.line, f"it has {', '.join(table.names)}")
        return Field(var, name)

    def _time_offset(self, node: Any) -> Expr:
        """Return an argument for a time before or after now; the time itself is unknown too."""
        exp = engine().exp
        if isinstance(node.this, exp.CurrentTimestamp | exp.CurrentDate | exp.Localtimestamp):
            return self._generated("then", node)
        self.unsupported(node)
        raise AssertionError

    def _generated(self, stem: str, node: Any) -> Expr:
        if self.generated_value is None:
            self.unsupported(node)
        assert self.generated_value is not None
        return self.generated_value(stem, "int", self.line)

    def ir_table(self, table: sql.SqlTable) -> ir.Table:
        """Return the table with its primary key only, as ``ir.fixes_key`` needs it."""
        return ir.Table(table.name, (), table.primary_key)

    def value_of_only_row(self, node: Any, rows: str, var: str) -> Expr:
        """Return a value of the only row of a set. If the set is empty the value is 0, and is not used."""
        return ir.Query("max", rows, var, ir.TRUE, self.expr(node), Const(0), is_local=True)

    def _variable(self, name: str, node: Any) -> Expr:
        if name == "found" and self.count and name not in self.known:
            return Operation("<", (Const(0), ir.Local(self.count)))
        if name in self.known:
            return ir.Local(name)
        if name in self.params:
            return ir.Arg(name)
        columns = "; ".join(f"{table.name} has {', '.join(table.names)}" for _, table, _ in self.scopes)
        raise wrong(f"{name} is neither a column nor a variable with a value here", self.line, columns)

    def inner(self, select: Any) -> tuple["ExpressionTranslator", SelectedRows]:
        """Return the translator for the inside of a SELECT, and the SELECT's table, row and condition."""
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
        unread = [part for part, value in select.args.items() if value and part not in _READ]
        if unread:
            raise wrong(f"a SELECT with {unread[0].strip('_')} is not supported", self.line, HINT)
        origin = select.args.get("from_") or select.args.get("from")
        var = self.fresh(name[:1])
        scope = str(origin.this.alias or "").lower(), table, var
        below = replace(self, scopes=[*self.scopes, scope], aggregates=None)
        where = select.args.get("where")
        condition = below.where(where.this) if where else ir.TRUE
        return below, SelectedRows(name, var, condition)

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
            if len(select.expressions) != 1 or is_aggregate(select):
                raise wrong("a SELECT after IN must have one column", self.line)
            match = Operation("=", (below.expr(select.expressions[0]), value))
            return ir.Query("exists", rows.table, rows.var, ir.conjunction([rows.where, match]))
        return Operation("or", tuple(Operation("=", (value, self.expr(item))) for item in node.expressions))

    def _case(self, node: Any) -> Expr:
        if node.args.get("default") is None:
            raise wrong("CASE without ELSE gives NULL, which is not supported", self.line)
        result = self.expr(node.args["default"])
        for branch in reversed(node.args["ifs"]):
            test = self.expr(branch.this)
            if node.this is not None:
                test = Operation("=", (self.expr(node.this), test))
            result = Operation("ite", (test, self.expr(branch.args["true"]), result))
        return result


def has_limit_one(select: Any) -> bool:
    limit = select.args.get("limit") if isinstance(select, engine().exp.Select) else None
    number = getattr(limit, "expression", None)
    return number is not None and number.sql() == "1" and not select.args.get("offset")


def is_aggregate(select: Any) -> bool:
    """Return whether a SELECT returns one row because all its values are aggregates."""
    exp = engine().exp
    return bool(select.expressions) and all(
        isinstance(part.unalias(), exp.AggFunc | exp.Coalesce) or part.find(exp.AggFunc) for part in select.expressions
    )


def table_of(table: sql.SqlTable) -> ir.Table:
    """Return the table with the sorts of its columns. Integer keys and foreign keys have the sort "id"."""
    ids = {*table.primary_key, *(column for key in table.foreign_keys for column in key.columns)}
    columns: list[tuple[str, ir.Sort]] = []
    for column in table.columns:
        kind: Any = "id" if column.name in ids and column.type == "int" else column.type
        columns.append((column.name, kind))
    return ir.Table(table.name, tuple(columns), table.primary_key, table.line)


def enforced(table: sql.SqlTable, file: sql.File, notes: list[str]) -> list[ir.Clause]:
    """Return UNIQUE, FOREIGN KEY and CHECK constraints as clauses; unsupported CHECKs become ``notes``."""
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
        translator = ExpressionTranslator(file, check.line, [("", table, "r")])
        try:
            condition = ir.Query("forall", table.name, "r", ir.TRUE, translator.expr(check.tree))
        except InputError:  # fewer constraints allow more executions, never fewer
            notes.append(f"CHECK ({check.text:.60}) of {table.name} is ignored: the answer does not count on it")
            continue
        ddl = ((table.name, f"CHECK ({check.text})"),)
        found.append(ir.Clause(f"check {number} of {table.name}", condition, check.line, ddl=ddl))
    return found
