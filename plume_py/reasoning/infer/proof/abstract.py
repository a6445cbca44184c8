"""Abstract database states for proofs: tables of any size, as uninterpreted z3 functions of row identities.

A row's identity is its primary key, or its hidden row number. A state is a ``BaseState``, of which only assumptions are
known, or a state with one write applied (``OverlaidState``). Aggregates over a base are uninterpreted functions of the
query's free variables. A write to a single row changes sums and counts by the contribution of that row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import z3

from plume_py.base.override import override
from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, equal, ite, not_, operator, or_
from plume_py.reasoning.infer.execution.evaluate import TableShape
from plume_py.reasoning.infer.program import ir

RowId = tuple[Term, ...]
_numbers = count()


def fresh(stem: str, sort: str) -> Any:
    name = f"{stem}?{next(_numbers)}"
    return z3.Bool(name) if sort == "bool" else z3.Int(name)


def same(left: RowId, right: RowId) -> Term:
    return and_(*(equal(a, b) for a, b in zip(left, right, strict=True)))


def new_function(stem: str, arity: int, sort: str) -> Any:
    result = z3.BoolSort() if sort == "bool" else z3.IntSort()
    return z3.Function(f"{stem}?{next(_numbers)}", *([z3.IntSort()] * arity), result)


def applied(function: Any, params: list[Term]) -> Term:
    """Return the function applied to values of any sort; Booleans become 0 and 1."""
    return function(*(ite(p, 1, 0) if isinstance(p, bool) or z3.is_bool(p) else p for p in params))


@dataclass(frozen=True)
class AbstractRow:
    """The value of a row variable: an identity, and the columns as the statement saw them."""

    id: RowId
    columns: dict[str, Term]


class AbstractState:
    """A state of the database."""

    def __init__(self, program: ir.Application) -> None:
        self.program = program

    def present(self, table: ir.Table, row: RowId) -> Term:
        """Return the condition that the table has this row."""
        raise NotImplementedError

    def column(self, table: ir.Table, row: RowId, name: str) -> Term:
        """Return the value of a column of the row."""
        raise NotImplementedError

    def aggregate(self, query: ir.Query, outer: "AggregateContext") -> Term:
        """Return the value of a sum, count, min or max."""
        raise NotImplementedError

    def bound(self, table: ir.Table, row: RowId) -> AbstractRow:
        """Return a row variable's value for this row."""
        return AbstractRow(row, {name: self.column(table, row, name) for name in table.names})


class BaseState(AbstractState):
    """A state of which only assumptions are known. ``axioms`` holds the facts about its counts."""

    def __init__(self, program: ir.Application, name: str) -> None:
        super().__init__(program)
        self.name = name
        self._present = {t.name: new_function(f"{name}.{t.name}", arity(t), "bool") for t in program.tables}
        self._columns = {
            (t.name, c): new_function(f"{name}.{t.name}.{c}", arity(t), sort)
            for t in program.tables
            for c, sort in t.columns
        }
        self._aggregates: dict[str, Any] = {}
        self.axioms: list[Any] = []

    @override
    def present(self, table: ir.Table, row: RowId) -> Term:
        return self._present[table.name](*row)

    @override
    def column(self, table: ir.Table, row: RowId, name: str) -> Term:
        if name in table.key:
            return row[table.key.index(name)]
        return self._columns[table.name, name](*row)

    @override
    def aggregate(self, query: ir.Query, outer: "AggregateContext") -> Term:
        name, params = outer.canonical(query)
        if name not in self._aggregates:
            self._aggregates[name] = new_function(f"{self.name}.{query.kind}", len(params), "int")
            if query.kind == "count" and is_plain(query):
                self.axioms.append(outer.counted(query, self, self._aggregates[name]))
        return applied(self._aggregates[name], params)


def arity(table: ir.Table) -> int:
    """Return the number of integers in a row's identity."""
    return len(table.key) or 1


@dataclass
class RowChange:
    """A write: the rows that it hits, and their presence and columns afterwards.

    ``single`` is the identity if the write hits at most one row. ``affects`` holds the columns that may change; it is
    None if rows may also appear or disappear.
    """

    table: ir.Table
    hits: Callable[[RowId], Term]
    present: Callable[[RowId], Term]
    columns: dict[str, Callable[[RowId], Term]]
    single: RowId | None
    guard: Term
    affects: frozenset[str] | None
    times: Term = None  # for INSERT in a loop: the number of new rows, which all have the values ``alike``
    alike: dict[str, Term] = field(default_factory=dict)


class OverlaidState(AbstractState):
    """A state with one write applied."""

    def __init__(self, below: AbstractState, change: RowChange) -> None:
        super().__init__(below.program)
        self.below, self.change = below, change
        self._unknown: dict[str, Any] = {}

    @override
    def present(self, table: ir.Table, row: RowId) -> Term:
        before = self.below.present(table, row)
        if table.name != self.change.table.name:
            return before
        return ite(self.change.hits(row), self.change.present(row), before)

    @override
    def column(self, table: ir.Table, row: RowId, name: str) -> Term:
        before = self.below.column(table, row, name)
        if table.name != self.change.table.name or name not in self.change.columns or name in table.key:
            return before
        return ite(self.change.hits(row), self.change.columns[name](row), before)

    @override
    def aggregate(self, query: ir.Query, outer: "AggregateContext") -> Term:
        change = self.change
        before = self.below.aggregate(query, outer)
        if not _depends(query, change):
            return before
        if change.times is not None and query.source == change.table.name and query.kind == "count" and is_plain(query):
            used = {node.column for node in ir.walk(query) if isinstance(node, ir.Field) and node.row == query.var}
            if used <= change.alike.keys():
                inner = {**outer.frame, query.var: AbstractRow((), change.alike)}
                counts = and_(change.guard, outer.evaluate(query.where, None, inner))
                return before + ite(counts, change.times, 0)
        nested = [node for node in ir.queries(query) if node is not query]
        simple = query.source == change.table.name and not nested and query.kind in ("sum", "count")
        if change.single is None or not simple:
            name, params = outer.canonical(query)
            if name not in self._unknown:
                self._unknown[name] = new_function("unknown", len(params), "int")
            return applied(self._unknown[name], params)
        row = change.single
        delta = outer.contribution(query, self, row) - outer.contribution(query, self.below, row)
        return before + ite(change.guard, delta, 0)


def _depends(query: ir.Query, change: RowChange) -> bool:
    sources = {node.source for node in ir.queries(query)}
    if change.table.name not in sources:
        return False
    if change.affects is None:
        return True
    used = {node.column for node in ir.walk(query) if isinstance(node, ir.Field)}
    return bool(used & change.affects)


def is_plain(query: ir.Query) -> bool:
    """Return whether the query's condition has no inner query and no comparison of identities."""
    return not any(isinstance(node, ir.Query | ir.Same) and node is not query for node in ir.walk(query))


@dataclass
class AggregateContext:
    """The context of an aggregate: an evaluator and a frame. The aggregate's free names are its parameters."""

    evaluate: "AbstractEvaluator"
    frame: dict[str, Any]

    def canonical(self, query: ir.Query) -> tuple[str, list[Term]]:
        """Return a name that does not depend on variable names, and the values of the free names, its parameters.

        Equal queries share the name.
        """
        bound: dict[str, str] = {}
        params: list[Term] = []
        places: dict[str, int] = {}

        def free(expr: ir.Expr) -> str:
            text = repr(expr)
            if text not in places:
                places[text] = len(params)
                params.append(self.evaluate(expr, None, self.frame))
            return f"#{places[text]}"

        def spelled(node: Any) -> str:
            if isinstance(node, ir.Query):
                bound[node.var] = f"@{len(bound)}"
                parts = [spelled(part) for part in (node.where, node.value, node.default) if part is not None]
                # Two sets that were read are never assumed to be equal.
                source = f"set {next(_numbers)}" if node.is_local else node.source
                return f"{node.kind}({source},{bound[node.var]},{','.join(parts)})"
            if isinstance(node, ir.Field):
                return f"{bound[node.row]}.{node.column}" if node.row in bound else free(node)
            if isinstance(node, ir.Arg | ir.Local):
                return free(node)
            if isinstance(node, ir.Operation):
                return f"{node.op}({','.join(spelled(arg) for arg in node.args)})"
            if isinstance(node, ir.Same):
                return f"same({','.join(identity(row) for row in (node.left, node.right))})"
            return repr(node)

        def identity(row: str) -> str:
            if row in bound:
                return bound[row]
            params.extend(self.frame[row].id)
            return f"#{len(params)}"

        return spelled(query), params

    def unknown(self, query: ir.Query) -> Term:
        """Return a fresh uninterpreted function of the query's free names, since the query may be evaluated per row."""
        _, params = self.canonical(query)
        sort = "bool" if query.kind in ("exists", "forall") else "int"
        return applied(new_function("unknown", len(params), sort), params)

    def counted(self, query: ir.Query, view: AbstractState, function: Any) -> Any:
        """Return the axiom of a count, for all parameters: it is at least 0, and if it is positive some row matches."""
        free = {
            repr(node): node
            for node in ir.walk(query)
            if isinstance(node, ir.Arg | ir.Local) or (isinstance(node, ir.Field) and node.row != query.var)
        }
        _, params = self.canonical(query)
        if any(isinstance(p, bool) or z3.is_bool(p) for p in params):
            return z3.BoolVal(True)
        places = [fresh("p", "int") for _ in params]
        # ``canonical`` orders the parameters as the condition mentions them.
        given = AbstractEvaluator(self.evaluate.shape, self.evaluate.texts, dict(zip(free, places, strict=True)))
        table = view.program.table(query.source)
        row = tuple(fresh("r", "int") for _ in range(arity(table)))
        where = given(query.where, view, {query.var: view.bound(table, row)})
        some = z3.Exists(list(row), formula(and_(view.present(table, row), where)))
        total = function(*places)
        fact = z3.And(total >= 0, z3.Implies(total >= 1, some))
        return z3.ForAll(places, fact, patterns=[total]) if places else fact

    def contribution(self, query: ir.Query, view: AbstractState, row: RowId) -> Term:
        """Return the amount that one row adds to a sum or count."""
        table = view.program.table(query.source)
        inner = {**self.frame, query.var: view.bound(table, row)}
        counts = and_(view.present(table, row), self.evaluate(query.where, view, inner))
        value = 1 if query.value is None else self.evaluate(query.value, view, inner)
        return ite(counts, value, 0)


@dataclass
class RowSet:
    """A set of rows that a statement read: its condition, and the view and frame at that time."""

    view: AbstractState
    table: ir.Table
    var: str
    where: ir.Expr
    frame: dict[str, Any]


class AbstractEvaluator:
    """Translates expressions to formulas. Queries over tables become quantifiers over row identities."""

    def __init__(self, shape: TableShape, texts: Texts, constants: dict[str, Term] | None = None) -> None:
        self.shape, self.texts, self.constants = shape, texts, constants or {}

    def __call__(self, expr: ir.Expr, view: AbstractState | None, frame: dict[str, Any]) -> Term:
        if self.constants and repr(expr) in self.constants:
            return self.constants[repr(expr)]
        if isinstance(expr, ir.Const):
            return self.texts.number(expr.value) if isinstance(expr.value, str) else expr.value
        if isinstance(expr, ir.Arg | ir.Local):
            return frame[expr.name]
        if isinstance(expr, ir.Field):
            return frame[expr.row].columns[expr.column]
        if isinstance(expr, ir.Same):
            return same(frame[expr.left].id, frame[expr.right].id)
        if isinstance(expr, ir.Query):
            return self._query(expr, view, frame)
        assert isinstance(expr, ir.Operation)
        return operator(expr.op, [self(arg, view, frame) for arg in expr.args])

    def member(
        self, query: ir.Query, view: AbstractState | None, frame: dict[str, Any], row: RowId
    ) -> tuple[Term, dict[str, Any]]:
        """Return the condition that the query ranges over this row, and the frame with the row bound."""
        if query.is_local:
            rows = frame[query.source]
            seen = rows.view.bound(rows.table, row)
            there = and_(
                rows.view.present(rows.table, row), self(rows.where, rows.view, {**rows.frame, rows.var: seen})
            )
        else:
            assert view is not None
            table = self.shape.program.table(query.source)
            seen, there = view.bound(table, row), view.present(table, row)
        inner = {**frame, query.var: seen}
        return and_(there, self(query.where, view, inner)), inner

    def _query(self, query: ir.Query, view: AbstractState | None, frame: dict[str, Any]) -> Term:
        if query.is_local and not isinstance(frame[query.source], RowSet):
            if query.kind == "count" and query.where == ir.TRUE:
                return frame[query.source].count  # the size of a list argument
            return AggregateContext(self, frame).unknown(query)
        if query.kind not in ("exists", "forall"):
            if query.is_local:
                return AggregateContext(self, frame).unknown(query)
            assert view is not None
            return view.aggregate(query, AggregateContext(self, frame))
        table = frame[query.source].table if query.is_local else self.shape.program.table(query.source)
        row = tuple(fresh(query.var, "int") for _ in range(arity(table)))
        counts, inner = self.member(query, view, frame, row)
        if query.kind == "exists":
            return z3.Exists(list(row), formula(counts))
        assert query.value is not None
        return z3.ForAll(list(row), formula(or_(not_(counts), self(query.value, view, inner))))


def formula(term: Term) -> Any:
    """Return a condition as a z3 formula, even if it is a Python constant."""
    return z3.BoolVal(term) if isinstance(term, bool) else term
