"""Compile expressions to Python functions of a view and a frame, for concrete execution."""

from collections.abc import Callable, Iterable
from typing import Any

from plume_py.reasoning.infer.program import ir

Row = tuple[Any, tuple[ir.Value, ...]]  # (key, columns)
State = tuple[tuple[Row, ...], ...]
Frame = dict[str, Any]
Evaluate = Callable[[State, Frame], Any]
RowKeys = frozenset[tuple[int, Any]]  # (table, key) of each row
Writes = dict[tuple[int, Any], tuple[ir.Value, ...] | None]  # (table, key) -> new row, or None where deleted


class TableShape:
    """The columns of each row variable and row set."""

    def __init__(self, program: ir.Application) -> None:
        self.program = program
        self.columns: dict[str, tuple[str, ...]] = {}
        self.index = {table.name: i for i, table in enumerate(program.tables)}

    def of_transaction(self, txn: ir.TransactionProgram) -> "TableShape":
        """Add the variables of a transaction."""
        for param in txn.params:
            if param.fields:
                self.columns[param.name] = tuple(name for name, _ in param.fields)
        body = list(ir.statements(txn.body))
        for stmt in body:
            if isinstance(stmt, ir.SelectOne):
                self.columns[stmt.row] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.SelectAll):
                self.columns[stmt.var] = self.columns[stmt.rows] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.Update | ir.Delete):
                self.columns[stmt.var] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.ForEach):
                self.columns[stmt.var] = self.columns[stmt.source]
        for stmt in body:
            for node in ir.walk(stmt):
                if isinstance(node, ir.Expr):
                    self.of_expression(node)
        return self

    def of_expression(self, expr: ir.Expr) -> "TableShape":
        """Add the variables of the expression's queries."""
        for node in ir.walk(expr):
            if isinstance(node, ir.Query):
                local = node.is_local
                self.columns[node.var] = self.columns[node.source] if local else self.program.table(node.source).names
        return self


_OPS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "not": lambda a: not a,
}


def compiled(expr: ir.Expr, shape: TableShape) -> Evaluate:
    """Return the expression as a function of a view and a frame."""
    if isinstance(expr, ir.Const):
        value = expr.value
        return lambda view, frame: value
    if isinstance(expr, ir.Arg | ir.Local):
        name = expr.name
        return lambda view, frame: frame[name]
    if isinstance(expr, ir.Field):
        row, place = expr.row, shape.columns[expr.row].index(expr.column)
        return lambda view, frame: frame[row][1][place]
    if isinstance(expr, ir.Same):
        left, right = expr.left, expr.right
        return lambda view, frame: frame[left][0] == frame[right][0]
    if isinstance(expr, ir.Query):
        return _query(expr, shape)
    assert isinstance(expr, ir.Operation)
    return _operator(expr, [compiled(arg, shape) for arg in expr.args])


def _operator(expr: ir.Operation, args: list[Evaluate]) -> Evaluate:
    if expr.op == "and":
        return lambda view, frame: all(arg(view, frame) for arg in args)
    if expr.op == "or":
        return lambda view, frame: any(arg(view, frame) for arg in args)
    if expr.op == "ite":
        test, then, other = args
        return lambda view, frame: then(view, frame) if test(view, frame) else other(view, frame)
    function = _OPS[expr.op]
    if len(args) == 1:
        (only,) = args
        return lambda view, frame: function(only(view, frame))
    left, right = args
    return lambda view, frame: function(left(view, frame), right(view, frame))


def _query(query: ir.Query, shape: TableShape) -> Evaluate:
    where = compiled(query.where, shape)
    value = compiled(query.value, shape) if query.value is not None else None
    default = compiled(query.default, shape) if query.default is not None else None
    var, kind, source = query.var, query.kind, query.source
    table = -1 if query.is_local else shape.index[source]

    def chosen(view: State, frame: Frame) -> Iterable[Frame]:
        inner = dict(frame)
        for row in frame[source] if table < 0 else view[table]:
            inner[var] = row
            if where(view, inner):
                yield inner

    if kind == "exists":
        return lambda view, frame: any(True for _ in chosen(view, frame))
    if kind == "count":
        return lambda view, frame: sum(1 for _ in chosen(view, frame))
    assert value is not None
    if kind == "forall":
        return lambda view, frame: all(value(view, inner) for inner in chosen(view, frame))
    if kind == "sum":
        return lambda view, frame: sum(value(view, inner) for inner in chosen(view, frame))
    pick, nothing = (min if kind == "min" else max), default
    assert nothing is not None

    def extreme(view: State, frame: Frame) -> Any:
        values = [value(view, inner) for inner in chosen(view, frame)]
        return pick(values) if values else nothing(view, frame)

    return extreme


def overlay(base: State, writes: Writes) -> State:
    if not writes:
        return base
    touched = {table for table, _ in writes}
    return tuple(_overlaid(i, rows, writes) if i in touched else rows for i, rows in enumerate(base))


def _overlaid(table: int, rows: tuple[Row, ...], writes: Writes) -> tuple[Row, ...]:
    merged: dict[Any, Any] = dict(rows)
    for (i, key), row in writes.items():
        if i == table:
            if row is None:
                merged.pop(key, None)
            else:
                merged[key] = row
    return tuple(sorted(merged.items()))
