"""Render statements and conditions as SQL: for reports, and with values in place of names for a server."""

from collections.abc import Callable

from plume_py.reasoning.infer.execution.evaluate import Frame, TableShape, compiled
from plume_py.reasoning.infer.program import ir

# On a server, the column with the row numbers of a table without primary key.
HIDDEN = "isocheck_row"

_INFIX = {"+": "+", "-": "-", "*": "*", "<": "<", "<=": "<=", "=": "=", "<>": "<>"}


def literal(value: ir.Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"


class Sql:
    """Renders expressions. ``value`` returns the text for a name or column, or None to write the name itself."""

    def __init__(
        self, program: ir.Application, value: Callable[[ir.Expr], str | None] = lambda _: None, server: bool = False
    ) -> None:
        self.program, self.value, self.server = program, value, server
        self._tables: dict[str, ir.Table] = {}

    def expr(self, expr: ir.Expr, alias: dict[str, str]) -> str:
        """Return the text of an expression; ``alias`` holds the prefixes of the statement's own row variables."""
        if isinstance(expr, ir.Const):
            return literal(expr.value)
        if isinstance(expr, ir.Field) and expr.row in alias:
            return f"{alias[expr.row]}{expr.column}"
        if isinstance(expr, ir.Arg | ir.Local | ir.Field):
            return self.value(expr) or _name_text(expr)
        if isinstance(expr, ir.Same):
            return self._same(expr) if self.server else f"{expr.left} IS {expr.right}"
        if isinstance(expr, ir.Query):
            return self.query(expr, alias)
        assert isinstance(expr, ir.Operation)
        return self._operator(expr, [self.expr(arg, alias) for arg in expr.args])

    def _same(self, expr: ir.Same) -> str:
        names = self._tables[expr.left].key or (HIDDEN,)
        return " AND ".join(f"{expr.left}.{name} = {expr.right}.{name}" for name in names)

    def _columns(self, name: str) -> str:
        table = self.program.table(name)
        return ", ".join([*table.names, *([] if table.key else [HIDDEN])]) if self.server else "*"

    def _operator(self, expr: ir.Operation, args: list[str]) -> str:
        if expr.op == "not":
            return f"NOT {args[0]}" if args[0].startswith(("(", "EXISTS")) else f"NOT ({args[0]})"
        if expr.op == "neg":
            return f"-({args[0]})"
        if expr.op == "ite":
            return f"CASE WHEN {args[0]} THEN {args[1]} ELSE {args[2]} END"
        if expr.op in ("and", "or"):
            weaker = {"and": ("or",), "or": ()}[expr.op]
            parts = [
                f"({text})" if isinstance(arg, ir.Operation) and arg.op in weaker else text
                for arg, text in zip(expr.args, args, strict=True)
            ]
            return f" {expr.op.upper()} ".join(parts)
        parts = [
            f"({text})" if isinstance(arg, ir.Operation) and arg.op not in ("*", "neg") and arg.op in _INFIX else text
            for arg, text in zip(expr.args, args, strict=True)
        ]
        if expr.op in ("+", "-") and isinstance(expr.args[0], ir.Operation) and expr.args[0].op in ("+", "-"):
            parts[0] = args[0]
        elif expr.op in ("<", "<=", "=", "<>"):
            parts = [
                f"({text})" if isinstance(arg, ir.Operation) and arg.op in ("and", "or", "<", "<=", "=", "<>") else text
                for arg, text in zip(expr.args, args, strict=True)
            ]
        return f"{parts[0]} {_INFIX[expr.op]} {parts[1]}"

    def query(self, query: ir.Query, alias: dict[str, str]) -> str:
        """Return the text of a subquery. Its row variable becomes an alias."""
        inner = {**alias, query.var: f"{query.var}."}
        if not query.is_local:
            self._tables[query.var] = self.program.table(query.source)
        known = self.value(query) if query.is_local else None
        if known is not None:
            return known
        where = self.expr(query.where, inner)
        if query.is_local and query.where == ir.TRUE and query.value is None:
            return f"{query.kind.upper()}({query.source})"
        if query.kind == "forall":
            assert query.value is not None
            broken = f"NOT ({self.expr(query.value, inner)})"
            where = broken if query.where == ir.TRUE else f"({where}) AND {broken}"
            return f"NOT EXISTS (SELECT 1 FROM {query.source} {query.var} WHERE {where})"
        rest = f"FROM {query.source} {query.var}" + ("" if query.where == ir.TRUE else f" WHERE {where}")
        if query.kind == "exists":
            return f"EXISTS (SELECT 1 {rest})"
        if query.kind == "count":
            return f"(SELECT COUNT(*) {rest})"
        assert query.value is not None
        value = self.expr(query.value, inner)
        default = "0" if query.default is None else self.expr(query.default, alias)
        return f"(SELECT COALESCE({query.kind.upper()}({value}), {default}) {rest})"

    def statement(self, stmt: ir.Stmt) -> str:
        if isinstance(stmt, ir.SelectOne):
            return self._select(stmt, stmt.row)
        if isinstance(stmt, ir.SelectAll):
            return self._select(stmt, stmt.var)
        if isinstance(stmt, ir.Insert):
            names = ", ".join(self.program.table(stmt.table).names)
            return f"INSERT INTO {stmt.table} ({names}) VALUES ({', '.join(self.expr(v, {}) for v in stmt.values)})"
        if isinstance(stmt, ir.Update):
            own = {stmt.var: "" if not _nested(stmt) else f"{stmt.table}."}
            sets = ", ".join(f"{column} = {self.expr(value, own)}" for column, value in stmt.sets)
            return f"UPDATE {stmt.table} SET {sets}{self._where(stmt.where, own)}"
        if isinstance(stmt, ir.Delete):
            own = {stmt.var: "" if not _nested(stmt) else f"{stmt.table}."}
            return f"DELETE FROM {stmt.table}{self._where(stmt.where, own)}"
        return self._local(stmt)

    def _select(self, stmt: ir.SelectOne | ir.SelectAll, var: str) -> str:
        where = self._where(stmt.where, {var: ""})
        return f"SELECT {self._columns(stmt.table)} FROM {stmt.table}{where}{' FOR UPDATE' if stmt.lock else ''}"

    def _local(self, stmt: ir.Stmt) -> str:
        if isinstance(stmt, ir.Let):
            texts = [self.expr(value, {}) for value in stmt.values]
            return f"SELECT {_unwrapped(texts[0]) if len(texts) == 1 else ', '.join(texts)}"
        if isinstance(stmt, ir.If):
            return f"IF {self.expr(stmt.condition, {})}"
        if isinstance(stmt, ir.Require):
            return f"REQUIRE {self.expr(stmt.condition, {})}"
        assert isinstance(stmt, ir.ForEach)
        return f"FOR EACH {stmt.var} IN {stmt.source}"

    def _where(self, where: ir.Expr, own: dict[str, str]) -> str:
        return "" if where == ir.TRUE else f" WHERE {self.expr(where, own)}"


def _nested(stmt: ir.Update | ir.Delete) -> bool:
    return any(isinstance(node, ir.Query) for node in ir.walk(stmt))


def _unwrapped(text: str) -> str:
    """Return ``SELECT x FROM t`` for ``(SELECT x FROM t)``, and any other text unchanged."""
    if not text.startswith("(SELECT "):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[len("(SELECT ") : -1] if place == len(text) - 1 else text
    return text


def _name_text(expr: ir.Expr) -> str:
    if isinstance(expr, ir.Arg):
        return f":{expr.name}"
    if isinstance(expr, ir.Local):
        return expr.name
    assert isinstance(expr, ir.Field)
    return f"{expr.row}.{expr.column}"


def sql_with_values(shape: TableShape, frame: Frame, server: bool = False) -> Sql:
    """Return a renderer that replaces arguments, locals and columns of earlier rows by their values in ``frame``."""

    def value(expr: ir.Expr) -> str | None:
        try:
            return literal(compiled(expr, shape)((), frame))
        except KeyError:  # a column of the statement's own row
            return None

    return Sql(shape.program, value, server)
