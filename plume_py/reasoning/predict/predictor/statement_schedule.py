"""Require that a database could run the predicted run: that each statement has a point in time.

A level's axioms do not say how transactions come to see each other. A database runs one statement after the other. Each
statement comes after some commits and before the others, later statements of its session after no fewer, and a
statement sees what is committed. So the formula has a literal for each statement and transaction: has it committed by
then?

The commit order here may differ from the one that shows that the level is satisfied. Statements need no order among
themselves, because they only observe commits, and locks end with commits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, Literal, TotalOrder
from plume_py.history.model import INITIAL, History
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl
from plume_py.reasoning.predict.confirm.interleaving import Interleavings
from plume_py.reasoning.predict.confirm.script import rest_of, script
from plume_py.reasoning.predict.predictor.observed_run import Observed, Read
from plume_py.reasoning.predict.predictor.prediction import Run
from plume_py.reasoning.predict.predictor.run_encoding import RunView

Clause = tuple[Literal, ...]

# Beyond this size, the formula would fill the memory: transactions squared times relevant statements.
MAX_CLAUSES = 20_000_000


@dataclass(frozen=True)
class SchedulePoint:
    """A point in time: a statement of a node, or its snapshot, by an operation of the history."""

    node: int
    op: int


class Schedule:
    """Literals for the transactions committed at each point in time, and the requirements on them."""

    def __init__(self, view: RunView, concurrency_control: ConcurrencyControl) -> None:
        """``view``: participating transactions commit all that they wrote."""
        self._view, self._control = view, concurrency_control
        self._observed: Observed = view.observed
        self._committed: dict[tuple[int, SchedulePoint], Literal] = {}
        self._points = [self._points_of(session) for session in self._observed.sessions]
        size, points = self._observed.size, sum(map(len, self._points))
        if size * size * points > MAX_CLAUSES:
            raise LimitError(f"too large to predict from as a database runs it: {size:,} transactions matter")
        self._order = TotalOrder(view.formula, size)

    def _points_of(self, session: list[int]) -> list[SchedulePoint]:
        """Return the points in time of a session, in program order."""
        found: set[tuple[int, int]] = set()
        for node in session:
            reads = [self._reading(read) for read in self._observed.reads_of[node]]
            writes = [self._writing(node, key) for key in self._observed.first_writes[node]]
            snapshot = [self._snapshot(node)] if self._control.snapshot else []
            found |= {(point.op, node) for point in (*reads, *writes, *snapshot)}
        return [SchedulePoint(node, op) for op, node in sorted(found)]

    def _reading(self, read: Read) -> SchedulePoint:
        return self._snapshot(read.node) if self._control.snapshot else SchedulePoint(read.node, read.op)

    def _writing(self, node: int, key: int) -> SchedulePoint:
        return SchedulePoint(node, self._observed.first_writes[node][key])

    def _snapshot(self, node: int) -> SchedulePoint:
        """Return the snapshot's point in time: the first statement, or the first read.

        A transaction without reads takes a late snapshot with its last statement.
        """
        history, t = self._observed.history, self._observed.txns[node]
        start, stop = int(history.txn_start[t]), int(history.txn_start[t + 1])
        if not self._control.late_snapshot:
            return SchedulePoint(node, start)
        return SchedulePoint(node, next((o for o in range(start, stop) if not history.op_kind[o] & 1), stop - 1))

    def committed(self, other: int, point: SchedulePoint) -> Literal:
        """Return whether ``other`` has committed at this point in time."""
        node = point.node
        if other == node or self._observed.precedes(node, other):
            return FALSE
        if self._observed.precedes(other, node):
            return TRUE
        if (other, point) not in self._committed:
            self._committed[other, point] = self._view.formula.variable()
        return self._committed[other, point]

    def require(self) -> None:
        """Add the requirements to the formula."""
        for clause in self._clauses():
            self._view.formula.require(*clause)

    def _clauses(self) -> Iterator[Clause]:
        for points in self._points:
            for point in points:
                yield from self._respects_commit_order(point)
            for earlier, later in pairwise(points):
                for other in range(self._observed.size):
                    yield -self.committed(other, earlier), self.committed(other, later)
        for read in self._observed.reads:
            for writer in read.writers:
                yield from self._sees(read, writer)
        yield from self._writes_in_turn()

    def _respects_commit_order(self, point: SchedulePoint) -> Iterator[Clause]:
        """Yield clauses: the committed transactions precede the node and are a prefix of the commit order."""
        size, before = self._observed.size, self._order.before
        for a in range(size):
            has = self.committed(a, point)
            if has == FALSE:
                continue
            yield -has, before(a, point.node)
            for c in range(size):
                if c not in (a, point.node):
                    yield -has, -before(c, a), self.committed(c, point)

    def _sees(self, read: Read, writer: int) -> Iterator[Clause]:
        """Yield clauses: a read returns the newest committed version."""
        chosen, point = self._view.selects(read, writer), self._reading(read)
        if writer != INITIAL:
            yield -chosen, self.committed(writer, point)
        for other in self._observed.writers[read.key]:
            if other not in (writer, read.node):
                older = FALSE if writer == INITIAL else self._order.before(other, writer)
                written = self._view.writes(other, read.key)
                yield -chosen, -written, -self.committed(other, point), older

    def _writes_in_turn(self) -> Iterator[Clause]:
        """Yield clauses: a writer waits for the commit of earlier writers of the key, or has it in its snapshot."""
        for key, writers in self._observed.writers.items():
            for a in writers:
                for b in writers:
                    if a != b:
                        parts = self._view.takes_part(a), self._view.takes_part(b), self._order.before(a, b)
                        yield *(-part for part in parts), self.committed(a, self._writing(b, key))
                        if self._control.first_committer_wins:
                            yield *(-part for part in parts), self.committed(a, self._snapshot(b))


def is_scheduled(
    history: History, observed: History, run: Run, concurrency_control: ConcurrencyControl, limits: Limits
) -> bool:
    """Return whether an order of statements yields the predicted history, computed independently of the formula."""
    made = script(history, rest_of(observed, run), lists=observed.lists is not None)
    with Interleavings(made, concurrency_control, limits) as orders:
        return orders.find() is not None
