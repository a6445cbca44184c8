"""Execute a transaction symbolically for a proof, on all paths at once, over tables of any size.

Each statement is evaluated on a state of which only the invariant is known. Its writes are applied to all later states.
``prove`` relates the states and uses the recorded locks and new rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, ite, not_, or_
from plume_py.reasoning.infer.execution.evaluate import TableShape
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.proof.abstract import (
    AbstractEvaluator,
    AbstractState,
    BaseState,
    OverlaidState,
    RowChange,
    RowId,
    RowSet,
    arity,
    formula,
    fresh,
    new_function,
    same,
)
from plume_py.reasoning.infer.statement_models import LevelModel


class OutOfReach(Exception):  # noqa: N818
    """The program does something that these proofs do not cover."""


@dataclass
class AbstractList:
    """A list argument. Only its number of elements is known."""

    count: Any


@dataclass
class RowLock:
    """A lock: from state number ``state`` on, no other transaction can change these rows.

    ``rows(identity)`` is the condition under which a row is locked.
    """

    state: int
    table: ir.Table
    rows: Any
    is_write: bool


@dataclass
class NewRow:
    """A new row, or the new rows of a loop: identity, path condition, and the number of writes before it."""

    table: ir.Table
    row: RowId
    guard: Term
    after: int
    is_many: bool = False  # in a loop: ``row`` is a variable, and ``guard`` is the condition that it is new


class TransactionEffects:
    """The effects of one transaction at one level: states, writes, locks and new rows."""

    def __init__(self, program: ir.Application, txn: ir.TransactionProgram, level: LevelModel) -> None:
        self.program, self.txn, self.level = program, txn, level
        self.texts = Texts()
        self.shape = TableShape(program).of_transaction(txn)
        self.evaluate = AbstractEvaluator(self.shape, self.texts)
        self.facts: list[Any] = []
        self.states = [self._state()]
        self.live: Term = True
        self.changes: list[RowChange] = []
        self.locks: list[RowLock] = []
        self.frame: dict[str, Any] = {}
        self.inserted: list[NewRow] = []

    def _state(self) -> BaseState:
        number = len(getattr(self, "states", []))
        state = BaseState(self.program, f"D{number}")
        for clause in (*self.program.invariant, *self.program.enforced):
            self.add(self._clause(clause, state))
        return state

    def _clause(self, clause: ir.Clause, view: AbstractState) -> Term:
        shape = TableShape(self.program).of_expression(clause.condition)
        return AbstractEvaluator(shape, self.texts)(clause.condition, view, {})

    def add(self, fact: Term) -> None:
        if fact is not True:
            self.facts.append(z3.BoolVal(False) if fact is False else fact)

    def _overlaid(self, state: AbstractState, writes: int) -> AbstractState:
        for change in self.changes[:writes]:
            state = OverlaidState(state, change)
        return state

    def statement_state(self, writing: bool, guard: Term, newest: bool = False) -> BaseState:
        """Return the state on which a statement is evaluated. Other transactions may have committed before it."""
        if self.level.late_snapshot and not writing and not newest:
            return self._first_select_snapshot(guard)
        which = "current" if newest else self.level.write if writing else self.level.select
        return self._next_state(stays=self.level.is_serial or which == "snapshot")

    def _next_state(self, stays: bool = False) -> BaseState:
        if stays or not self._begun:
            self._begun = True
            return self.states[0]
        self.states.append(self._state())
        return self.states[-1]

    def _first_select_snapshot(self, guard: Term) -> BaseState:
        """Return the snapshot of the first SELECT. Raise OutOfReach if paths may have different snapshots."""
        if self._snapshot is None:
            self._snapshot = self._next_state()
            self._snapshot_is_certain = guard is True
        elif not self._snapshot_is_certain:
            raise OutOfReach
        return self._snapshot

    _begun = False
    _snapshot: BaseState | None = None
    _snapshot_is_certain = False

    def view(self, guard: Term, writing: bool = False, newest: bool = False) -> AbstractState:
        """Return the state that a statement sees: with the transaction's own writes."""
        return self._overlaid(self.statement_state(writing, guard, newest), len(self.changes))

    def block(self, body: tuple[ir.Stmt, ...], guard: Term) -> None:
        for stmt in body:
            self.statement(stmt, guard)

    def statement(self, stmt: ir.Stmt, guard: Term) -> None:
        try:
            self._statement(stmt, guard)
        except KeyError:  # a name that is assigned only inside a loop
            raise OutOfReach from None

    def _statement(self, stmt: ir.Stmt, guard: Term) -> None:
        if isinstance(stmt, ir.SelectOne):
            self.select_one(stmt, guard)
        elif isinstance(stmt, ir.SelectAll):
            table = self.program.table(stmt.table)
            rows = RowSet(self.view(guard, stmt.lock, stmt.newest), table, stmt.var, stmt.where, dict(self.frame))
            self.frame[stmt.rows] = rows
            self.lock(table, lambda row: and_(guard, self.matches(rows, row)), stmt.lock, reading=True)
        elif isinstance(stmt, ir.Let):
            view = self.view(guard) if ir.reads_database(stmt) else None
            for name, value in zip(stmt.names, stmt.values, strict=True):
                self.frame[name] = self.value(value, view, guard, self.frame.get(name))
        elif isinstance(stmt, ir.Require):
            view = self.view(guard) if ir.reads_database(stmt) else None
            self.live = and_(self.live, or_(not_(guard), self.value(stmt.condition, view, guard)))
        elif isinstance(stmt, ir.If):
            view = self.view(guard) if ir.reads_database(stmt) else None
            condition = self.value(stmt.condition, view, guard)
            self.block(stmt.then, and_(guard, condition))
            self.block(stmt.otherwise, and_(guard, not_(condition)))
        elif isinstance(stmt, ir.ForEach):
            self.loop(stmt, guard)
        else:
            self.change(stmt, guard)

    def value(self, expr: ir.Expr, view: AbstractState | None, guard: Term, before: Term = None) -> Term:
        """Return the value of an expression, and assume facts about its aggregates."""
        for query in ir.queries(expr):
            if query.kind in ("count", "min", "max") and view is not None:
                self.assume_aggregate(query, view)
        found = self.evaluate(expr, view, self.frame)
        return found if before is None else ite(guard, found, before)

    def assume_aggregate(self, query: ir.Query, view: AbstractState) -> None:
        """Assume that a count is positive iff a row matches, or that a minimum or maximum is attained and extreme."""
        names = {node.row for node in ir.walk(query) if isinstance(node, ir.Field)} - {query.var}
        if any(name not in self.frame for name in names) or [q for q in ir.queries(query) if q is not query]:
            return
        total = self.evaluate(query, view, self.frame)
        some = self.evaluate(ir.Query("exists", query.source, query.var, query.where), view, self.frame)
        if query.kind == "count":
            self.add(z3.And(total >= 0, some == (total >= 1)))
            return
        assert query.value is not None and query.default is not None
        least = query.kind == "min"
        order = ir.Operation("<=", (ir.Local("?"), query.value) if least else (query.value, ir.Local("?")))
        frame = {**self.frame, "?": total}
        self.add(self.evaluate(ir.Query("forall", query.source, query.var, query.where, order), view, frame))
        attained = ir.conjunction([query.where, ir.Operation("=", (query.value, ir.Local("?")))])
        self.add(
            z3.Implies(
                formula(some),
                formula(self.evaluate(ir.Query("exists", query.source, query.var, attained), view, frame)),
            )
        )
        default = self.evaluate(query.default, view, self.frame)
        self.add(z3.Implies(z3.Not(formula(some)), total == default))

    def matches(self, rows: RowSet, row: RowId) -> Term:
        """Return the condition that a row is in a set that was read."""
        frame = {**rows.frame, rows.var: rows.view.bound(rows.table, row)}
        return and_(rows.view.present(rows.table, row), self.evaluate(rows.where, rows.view, frame))

    def lock(self, table: ir.Table, rows: Any, write: bool, reading: bool = False) -> None:
        """Record that rows are locked from the current state on, if the level locks them."""
        if self.level.write == "snapshot" and not self.level.first_committer_wins:
            return  # the lock is taken now, but the rows may have changed since the snapshot
        holds = write or (reading and self.level.locks_reads)
        if holds and (self.level.locks_writes or reading):
            self.locks.append(RowLock(len(self.states) - 1, table, rows, write))

    def identity(self, table: ir.Table, var: str, where: ir.Expr) -> RowId | None:
        """Return the identity of the only row that a condition can match, if it fixes the primary key, else None."""
        if not ir.fixes_key(where, var, table):
            return None
        values = ir.fixed_columns(where, var)
        if any(ir.queries(values[column]) for column in table.key):
            return None
        return tuple(self.evaluate(values[column], None, self.frame) for column in table.key)

    def select_one(self, stmt: ir.SelectOne, guard: Term) -> None:
        """Bind some row that matches. Without a match the transaction rolls back."""
        table, view = self.program.table(stmt.table), self.view(guard, stmt.lock)
        row = self.identity(table, stmt.row, stmt.where) or tuple(fresh(stmt.row, "int") for _ in range(arity(table)))
        self.frame[stmt.row] = view.bound(table, row)
        found = and_(view.present(table, row), self.evaluate(stmt.where, view, self.frame))
        self.live = and_(self.live, or_(not_(guard), found))
        self.lock(table, lambda other: and_(guard, same(other, row)), stmt.lock, reading=True)

    def change(self, stmt: ir.Stmt, guard: Term) -> None:
        if isinstance(stmt, ir.Insert):
            self.insert(stmt, guard)
            return
        assert isinstance(stmt, ir.Update | ir.Delete)
        table, view, frame = self.program.table(stmt.table), self.view(guard, writing=True), dict(self.frame)
        only = self.identity(table, stmt.var, stmt.where)

        def hits(row: RowId) -> Term:
            inner = {**frame, stmt.var: view.bound(table, row)}
            found = and_(guard, view.present(table, row), self.evaluate(stmt.where, view, inner))
            return and_(found, self.matches(frame[stmt.within], row)) if stmt.within else found

        def new(value: ir.Expr) -> Any:
            return lambda row: self.evaluate(value, view, {**frame, stmt.var: view.bound(table, row)})

        if isinstance(stmt, ir.Delete):
            change = RowChange(table, hits, lambda row: False, {}, only, hits(only) if only else guard, None)
        else:
            columns = {column: new(value) for column, value in stmt.sets}
            affects = self._affected(table, columns)
            if affects is None or len(affects) > len(columns):  # the UPDATE writes back all columns as it saw them
                for column in table.names:
                    columns.setdefault(column, lambda row, c=column: view.column(table, row, c))
            change = RowChange(table, hits, lambda row: True, columns, only, hits(only) if only else guard, affects)
        self.lock(table, hits, True)
        self.changes.append(change)

    def _affected(self, table: ir.Table, columns: dict[str, Any]) -> frozenset[str] | None:
        """Return the columns in which an UPDATE may differ from a state that it is applied to; None if rows may differ.

        With write locks, and reads and writes evaluated on the same state, only the assigned columns differ. Without
        locks the row itself may be deleted by then.
        """
        if not self.level.locks_writes:
            return None
        return frozenset(columns) if self.level.select == self.level.write else frozenset(table.names)

    def insert(self, stmt: ir.Insert, guard: Term) -> None:
        """Insert a row whose primary key is free, or that has a fresh hidden number."""
        table, view = self.program.table(stmt.table), self.view(guard, writing=True)
        values = dict(zip(table.names, (self.evaluate(v, view, self.frame) for v in stmt.values), strict=True))
        if table.key:
            row: RowId = tuple(values[column] for column in table.key)
            if self.level.write == "current":  # an old snapshot may show deleted rows: ``prove`` checks at commit
                self.live = and_(self.live, or_(not_(guard), not_(view.present(table, row))))
        else:
            row = (fresh("new", "int"),)
            for state in self.states:
                self.add(not_(state.present(table, row)))
            for new in self.inserted:
                if new.table.name == table.name and not new.is_many:
                    self.add(not_(same(new.row, row)))
        self.inserted.append(NewRow(table, row, guard, len(self.changes)))
        if self.level.write == "current":
            self.lock(table, lambda other: and_(guard, same(other, row)), True)
        columns = {name: _constant(value) for name, value in values.items()}
        change = RowChange(
            table, lambda other: and_(guard, same(other, row)), lambda _: True, columns, row, guard, None
        )
        self.changes.append(change)

    def loop(self, stmt: ir.ForEach, guard: Term) -> None:
        """Approximate a loop: each write of its body may hit any rows, with any values that its text allows."""
        if not self.level.locks_writes:
            raise OutOfReach
        inside = [inner for inner in ir.statements(stmt.body) if isinstance(inner, ir.Let)]
        if any(name in self.frame for inner in inside for name in inner.names):
            raise OutOfReach  # a value may pass from one iteration to the next
        if self._inserts_and_changes(stmt.body):
            raise OutOfReach  # an iteration may write a row that an earlier one inserted
        if any(ir.reads_database(inner) for inner in ir.statements(stmt.body)):
            if self.level.late_snapshot and self._snapshot is None:
                # Some iteration may take it, so ``_snapshot_is_certain`` remains false.
                self._snapshot = self._next_state()
            self._begun = True
        for inner in ir.statements(stmt.body):
            if isinstance(inner, ir.Insert):
                source = self.frame[stmt.source]
                # Compare by identity: an equal INSERT may also be inside a condition.
                always = any(inner is direct for direct in stmt.body) and isinstance(source, AbstractList)
                self._loop_inserts(inner, guard, set(self.frame), source.count if always else None)
            elif isinstance(inner, ir.Update | ir.Delete):
                self._loop_changes(inner, guard)

    def _inserts_and_changes(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Return whether a loop both inserts into a table and updates or deletes its rows."""
        inside = list(ir.statements(body))
        new = {stmt.table for stmt in inside if isinstance(stmt, ir.Insert)}
        return any(isinstance(stmt, ir.Update | ir.Delete) and stmt.table in new for stmt in inside)

    def _loop_inserts(self, stmt: ir.Insert, guard: Term, outside: set[str], times: Term) -> None:
        table = self.program.table(stmt.table)
        touched = new_function("touched", arity(table), "bool")
        columns: dict[str, Any] = {}
        alike: dict[str, Term] = {}
        for (name, sort), value in zip(table.columns, stmt.values, strict=True):
            if _names(value) <= outside and not ir.queries(value):
                alike[name] = self.evaluate(value, None, self.frame)
                columns[name] = _constant(alike[name])
            else:
                unknown = new_function(name, arity(table), sort)
                columns[name] = _applied(unknown)
        row = tuple(fresh("r", "int") for _ in range(arity(table)))
        self.inserted.append(NewRow(table, row, touched(*row), len(self.changes), is_many=True))
        self.changes.append(
            RowChange(
                table, lambda r: and_(guard, touched(*r)), lambda _: True, columns, None, guard, None, times, alike
            )
        )

    def _loop_changes(self, stmt: ir.Update | ir.Delete, guard: Term) -> None:
        table = self.program.table(stmt.table)
        touched = new_function("touched", arity(table), "bool")
        written = [column for column, _ in stmt.sets] if isinstance(stmt, ir.Update) else []
        columns = {}
        for name in written:
            unknown = new_function(name, arity(table), table.sort(name))
            columns[name] = _applied(unknown)
        below = len(self.changes)

        def there(row: RowId) -> Term:
            return self._overlaid(self.states[-1], below).present(table, row)

        stays = isinstance(stmt, ir.Update)
        self.changes.append(
            RowChange(
                table,
                lambda row: and_(guard, touched(*row), there(row)),
                lambda _: stays,
                columns,
                None,
                guard,
                self._affected(table, columns) if stays else None,
            )
        )


def _names(expr: ir.Expr) -> set[str]:
    found = set()
    for node in ir.walk(expr):
        if isinstance(node, ir.Arg | ir.Local):
            found.add(node.name)
        elif isinstance(node, ir.Field):
            found.add(node.row)
        elif isinstance(node, ir.Query):
            found.add(node.source)
    return found


def _constant(value: Term) -> Callable[[RowId], Term]:
    return lambda _: value


def _applied(function: Any) -> Callable[[RowId], Term]:
    return lambda row: function(*row)
