"""Symbolic execution of a transaction on all its paths at once, over tables with a fixed number of slots.

A slot is a potential row: a z3 condition states whether the row is present, and each column is a z3 term. Every INSERT
has slots reserved for it, so two rows never compete for a slot and the slot number identifies the row. Statements
execute under a guard, the condition of their path. ``bounded_search`` builds its formulas with this module.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, equal, ite, not_, operator, or_, sum_
from plume_py.reasoning.infer.execution.evaluate import TableShape
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import LevelModel


@dataclass(frozen=True)
class Slot:
    """A potential row: the condition that it is present, and its columns."""

    present: Term
    columns: tuple[Term, ...]


SymbolicState = tuple[tuple[Slot, ...], ...]


@dataclass(frozen=True)
class SymbolicRow:
    """The value of a row variable: a slot number, and the columns as the statement saw them."""

    slot: Term
    columns: tuple[Term, ...]


@dataclass(frozen=True)
class SymbolicRowSet:
    """A set of rows that a statement read: for each slot the condition of membership, and its columns."""

    members: tuple[tuple[Term, SymbolicRow], ...]


Frame = dict[str, Any]


class Evaluator:
    """Translates expressions of the intermediate form to terms."""

    def __init__(self, shape: TableShape, texts: Texts) -> None:
        self.shape, self.texts = shape, texts

    def __call__(self, expr: ir.Expr, view: SymbolicState, frame: Frame) -> Term:
        """Return the value of an expression in a view of the database."""
        if isinstance(expr, ir.Const):
            return self.texts.number(expr.value) if isinstance(expr.value, str) else expr.value
        if isinstance(expr, ir.Arg | ir.Local):
            return frame[expr.name]
        if isinstance(expr, ir.Field):
            return frame[expr.row].columns[self.shape.columns[expr.row].index(expr.column)]
        if isinstance(expr, ir.Same):
            return equal(frame[expr.left].slot, frame[expr.right].slot)
        if isinstance(expr, ir.Query):
            return self._query(expr, view, frame)
        assert isinstance(expr, ir.Operation)
        return operator(expr.op, [self(arg, view, frame) for arg in expr.args])

    def rows(self, query: ir.Query, view: SymbolicState, frame: Frame) -> Iterator[tuple[Term, Frame]]:
        """Yield each row that may satisfy the query's condition: the condition, and the frame with the row bound."""
        members = frame[query.source].members if query.is_local else all_rows(view[self.shape.index[query.source]])
        for there, bound in members:
            inner = {**frame, query.var: bound}
            counts = and_(there, self(query.where, view, inner)) if there is not False else False
            if counts is not False:
                yield counts, inner

    def _query(self, query: ir.Query, view: SymbolicState, frame: Frame) -> Term:
        rows = list(self.rows(query, view, frame))
        if query.kind == "exists":
            return or_(*(counts for counts, _ in rows))
        if query.kind == "count":
            return sum_([ite(counts, 1, 0) for counts, _ in rows])
        assert query.value is not None
        if query.kind == "forall":
            return and_(*(or_(not_(counts), self(query.value, view, inner)) for counts, inner in rows))
        values = [(counts, self(query.value, view, inner)) for counts, inner in rows]
        if query.kind == "sum":
            return sum_([ite(counts, value, 0) for counts, value in values])
        assert query.default is not None
        best, some = self(query.default, view, frame), False
        for counts, value in values:
            better = value < best if query.kind == "min" else value > best
            best = ite(and_(counts, or_(not_(some), better)), value, best)
            some = or_(some, counts)
        return best


def all_rows(slots: tuple[Slot, ...]) -> tuple[tuple[Term, SymbolicRow], ...]:
    """Return all slots of a table as row variables with their presence."""
    return tuple((slot.present, SymbolicRow(number, slot.columns)) for number, slot in enumerate(slots))


@dataclass(frozen=True)
class SymbolicWrite:
    """A slot as the transaction left it, and the condition that the transaction wrote it."""

    happened: Term
    after: Slot


SymbolicWrites = dict[tuple[int, int], SymbolicWrite]


def overlay(base: SymbolicState, writes: SymbolicWrites) -> SymbolicState:
    if not writes:
        return base
    tables = [list(slots) for slots in base]
    for (table, number), write in writes.items():
        old = tables[table][number]
        columns = tuple(
            ite(write.happened, new, was) for new, was in zip(write.after.columns, old.columns, strict=True)
        )
        tables[table][number] = Slot(ite(write.happened, write.after.present, old.present), columns)
    return tuple(tuple(slots) for slots in tables)


@dataclass
class SymbolicStatement:
    """An executed statement: path condition, number of commits before it, and the slots that it read and wrote."""

    stmt: ir.Stmt
    guard: Term
    moment: Term
    writes: dict[tuple[int, int], tuple[Term, Slot]] = field(default_factory=dict)
    reads: dict[tuple[int, int], Term] = field(default_factory=dict)


# Chooses the state on which a statement is evaluated. Arguments: whether it writes, its path condition, and whether it
# reads the newest state at every level. Result: the state, and the number of commits before the statement.
ChooseState = Callable[[bool, Term, bool], tuple[SymbolicState, Term]]


class Snapshot:
    """The moment of a snapshot that the first SELECT takes. Which SELECT is first may depend on the path."""

    def __init__(self, unknown: Term, add: Callable[[Term], None]) -> None:
        self.moment, self._add = unknown, add
        self.taken: Term = False

    def moment_seen(self, now: Term, guard: Term) -> Term:
        """Return the moment that a SELECT sees if it is executed at ``now``."""
        if self.taken is False and guard is True:
            self.moment = now
        else:
            self._add(or_(not_(guard), self.taken, equal(self.moment, now)))
        self.taken = or_(self.taken, guard)
        return self.moment


class Execution:
    """One transaction, executed symbolically on all paths at once.

    ``live`` is the condition that it has not rolled back. ``writes`` holds its last write to each slot, ``inserted``
    the slots of its new rows, and ``points`` its statements that access the database.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        frame: Frame,
        base: ChooseState,
        slots: dict[int, list[int]],
        level: LevelModel,
    ) -> None:
        self.evaluate, self.frame, self.base = evaluate, dict(frame), base
        self.program = evaluate.shape.program
        self.tracks_reads = level.locks_reads
        self.looks_back = level.write == "snapshot"
        # InnoDB: its own version of a row hides the snapshot's row of the same key.
        self.one_record = level.late_snapshot
        self._slots = {table: list(numbers) for table, numbers in slots.items()}
        self.live: Term = True
        self.writes: SymbolicWrites = {}
        self.inserted: dict[tuple[int, int], Term] = {}
        self.before: dict[tuple[int, int], SymbolicWrites] = {}  # the writes that preceded the insertion into a slot
        self.points: list[SymbolicStatement] = []
        self.is_short = False  # whether a new row found no slot

    def block(self, body: tuple[ir.Stmt, ...], guard: Term) -> None:
        for stmt in body:
            runs = and_(guard, self.live)
            if runs is False:
                return
            _HANDLERS[type(stmt)](self, stmt, runs)

    def add_statement(
        self, stmt: ir.Stmt, guard: Term, writing: bool = False
    ) -> tuple[SymbolicState, SymbolicStatement]:
        """Add a point to the schedule; return the view that the statement sees, and the point."""
        state, moment = self.base(writing, guard, getattr(stmt, "newest", False))
        point = SymbolicStatement(stmt, guard, moment)
        self.points.append(point)
        view = overlay(state, self.writes)
        return (self._records(view) if self.one_record and not writing else view), point

    def _records(self, view: SymbolicState) -> SymbolicState:
        """Return the view without older rows whose keys the transaction has written."""
        tables = [list(slots) for slots in view]
        for (table, number), write in self.writes.items():
            for place, slot in enumerate(view[table]) if self.program.tables[table].key else ():
                if slot.present is not False and place != number and (table, place) not in self.writes:
                    same = and_(write.happened, self.key_equal(table, write.after.columns, slot.columns))
                    old = tables[table][place]
                    tables[table][place] = Slot(and_(old.present, not_(same)), old.columns)
        return tuple(tuple(slots) for slots in tables)

    def value(self, stmt: ir.Stmt, expr: ir.Expr, guard: Term) -> Term:
        """Return the value of an expression. If it queries the database, this adds a point to the schedule."""
        return self.values(stmt, (expr,), guard)[0]

    def values(self, stmt: ir.Stmt, exprs: tuple[ir.Expr, ...], guard: Term) -> list[Term]:
        """Return the values of expressions, all evaluated at the same moment."""
        asked = [query for expr in exprs for query in ir.queries(expr)]
        if not asked:
            return [self.evaluate(expr, (), self.frame) for expr in exprs]
        view, point = self.add_statement(stmt, guard)
        if self.tracks_reads:
            for query in asked:
                self._track(query, view, point)
        return [self.evaluate(expr, view, self.frame) for expr in exprs]

    def _track(self, query: ir.Query, view: SymbolicState, point: SymbolicStatement) -> None:
        table = self.evaluate.shape.index[query.source]
        for number, slot in enumerate(view[table]):
            try:
                match = self.evaluate(query.where, view, {**self.frame, query.var: SymbolicRow(number, slot.columns)})
            except KeyError:  # a nested query whose outer row is not bound here: assume that any row matches
                match = True
            point.reads[table, number] = or_(point.reads.get((table, number), False), and_(slot.present, match))

    def write(
        self, point: SymbolicStatement, table: int, number: int, happened: Term, after: Slot, changed: Term = True
    ) -> None:
        """Record a write. Where ``changed`` is false, the row keeps its version and is only locked."""
        if happened is False:
            return
        point.writes[table, number] = happened, after
        happened = and_(happened, changed)
        old = self.writes.get((table, number))
        if old is None:
            self.writes[table, number] = SymbolicWrite(happened, after)
            return
        columns = tuple(ite(happened, new, was) for new, was in zip(after.columns, old.after.columns, strict=True))
        present = ite(happened, after.present, old.after.present)
        self.writes[table, number] = SymbolicWrite(or_(old.happened, happened), Slot(present, columns))

    def slot(self, table: int) -> int | None:
        return self._slots[table].pop(0) if self._slots.get(table) else None

    def key_equal(self, table: int, left: tuple[Term, ...], right: tuple[Term, ...]) -> Term:
        declared = self.program.tables[table]
        return and_(*(equal(left[declared.index(c)], right[declared.index(c)]) for c in declared.key))


def _matches(
    run: Execution, stmt: Any, var: str, table: int, view: SymbolicState, guard: Term
) -> list[tuple[Term, SymbolicRow]]:
    found = []
    for there, bound in all_rows(view[table]):
        match = and_(there, run.evaluate(stmt.where, view, {**run.frame, var: bound})) if there is not False else False
        if match is not False:
            found.append((match, bound))
    return found


def _select_one(run: Execution, stmt: ir.SelectOne, guard: Term) -> None:
    table = run.evaluate.shape.index[stmt.table]
    view, point = run.add_statement(stmt, guard, writing=stmt.lock)
    found = _restricted(run, stmt.within, _matches(run, stmt, stmt.row, table, view, guard))
    run.live = and_(run.live, or_(not_(guard), or_(*(match for match, _ in found))))
    if not found:
        nothing = tuple(False if sort == "bool" else 0 for _, sort in run.program.tables[table].columns)
        run.frame[stmt.row] = SymbolicRow(-1, nothing)
        return
    slot: Term = found[-1][1].slot
    columns = found[-1][1].columns
    first: Term = True
    for match, bound in found:
        point.reads[table, bound.slot] = and_(match, first)
        first = and_(first, not_(match))
    for match, bound in reversed(found[:-1]):
        slot = ite(match, bound.slot, slot)
        columns = tuple(ite(match, a, b) for a, b in zip(bound.columns, columns, strict=True))
    run.frame[stmt.row] = SymbolicRow(slot, columns)


def _select_all(run: Execution, stmt: ir.SelectAll, guard: Term) -> None:
    table = run.evaluate.shape.index[stmt.table]
    view, point = run.add_statement(stmt, guard, writing=stmt.lock)
    found = _restricted(run, stmt.within, _matches(run, stmt, stmt.var, table, view, guard))
    point.reads.update({(table, bound.slot): match for match, bound in found})
    run.frame[stmt.rows] = SymbolicRowSet(tuple(found))


def _let(run: Execution, stmt: ir.Let, guard: Term) -> None:
    for name, value in zip(stmt.names, run.values(stmt, stmt.values, guard), strict=True):
        # On other paths, a local keeps the value that it has.
        run.frame[name] = ite(guard, value, run.frame[name]) if name in run.frame else value


def _require(run: Execution, stmt: ir.Require, guard: Term) -> None:
    run.live = and_(run.live, or_(not_(guard), run.value(stmt, stmt.condition, guard)))


def _if(run: Execution, stmt: ir.If, guard: Term) -> None:
    condition = run.value(stmt, stmt.condition, guard)
    run.block(stmt.then, and_(guard, condition))
    run.block(stmt.otherwise, and_(guard, not_(condition)))


def _for_each(run: Execution, stmt: ir.ForEach, guard: Term) -> None:
    members = run.frame[stmt.source].members
    for member, bound in _maybe_reversed(members, run.frame[stmt.backwards]) if stmt.backwards else members:
        run.frame[stmt.var] = bound
        run.block(stmt.body, and_(guard, member))


def _maybe_reversed(
    members: tuple[tuple[Term, SymbolicRow], ...], backwards: Term
) -> Iterator[tuple[Term, SymbolicRow]]:
    """Yield the rows of a set in order, or in reverse where ``backwards`` holds."""
    for (there, row), (other_there, other) in zip(members, reversed(members), strict=True):
        columns = tuple(ite(backwards, b, a) for a, b in zip(row.columns, other.columns, strict=True))
        yield ite(backwards, other_there, there), SymbolicRow(ite(backwards, other.slot, row.slot), columns)


def _insert(run: Execution, stmt: ir.Insert, guard: Term) -> None:
    table = run.evaluate.shape.index[stmt.table]
    view, point = run.add_statement(stmt, guard, writing=True)
    row = tuple(run.evaluate(value, view, run.frame) for value in stmt.values)
    if run.program.tables[table].key:
        # An old snapshot may show deleted rows, so conflicts with other transactions' keys are checked at commit.
        asked = [slot for n, slot in enumerate(view[table]) if not run.looks_back or (table, n) in run.inserted]
        taken = or_(*(and_(slot.present, run.key_equal(table, row, slot.columns)) for slot in asked))
        run.live = and_(run.live, or_(not_(guard), not_(taken)))
    number = run.slot(table)
    if number is None:
        run.is_short = True
        return
    happened = and_(guard, run.live)
    if happened is not False:
        run.before[table, number] = dict(run.writes)
        run.write(point, table, number, happened, Slot(True, row))
        run.inserted[table, number] = happened


def _update(run: Execution, stmt: ir.Update, guard: Term) -> None:
    table = run.evaluate.shape.index[stmt.table]
    declared = run.program.tables[table]
    view, point = run.add_statement(stmt, guard, writing=True)
    for match, bound in _restricted(run, stmt.within, _matches(run, stmt, stmt.var, table, view, guard)):
        columns = list(bound.columns)
        for column, value in stmt.sets:
            columns[declared.index(column)] = run.evaluate(value, view, {**run.frame, stmt.var: bound})
        changed = not_(and_(*map(equal, columns, bound.columns))) if run.one_record else True
        run.write(point, table, bound.slot, and_(guard, match), Slot(True, tuple(columns)), changed)


def _delete(run: Execution, stmt: ir.Delete, guard: Term) -> None:
    table = run.evaluate.shape.index[stmt.table]
    view, point = run.add_statement(stmt, guard, writing=True)
    for match, bound in _restricted(run, stmt.within, _matches(run, stmt, stmt.var, table, view, guard)):
        run.write(point, table, bound.slot, and_(guard, match), Slot(False, bound.columns))


def _restricted(run: Execution, name: str, matches: list[tuple[Term, SymbolicRow]]) -> list[tuple[Term, SymbolicRow]]:
    if not name:
        return matches
    members = {bound.slot: member for member, bound in run.frame[name].members}
    return [(and_(match, members.get(bound.slot, False)), bound) for match, bound in matches]


_HANDLERS: dict[type, Callable[[Execution, Any, Term], None]] = {
    ir.SelectOne: _select_one,
    ir.SelectAll: _select_all,
    ir.Let: _let,
    ir.Require: _require,
    ir.If: _if,
    ir.ForEach: _for_each,
    ir.Insert: _insert,
    ir.Update: _update,
    ir.Delete: _delete,
}
