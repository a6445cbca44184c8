"""Encode all runs within a boundary as a formula: where each session ends, and from which writer each read reads.

The rules are in docs/predict.md, in the same order. Literals of reads and writes refer to the predicted run, in which
transactions that happen after a boundary transaction do not take part.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.history.model import INITIAL, NOBODY
from plume_py.reasoning.predict.predictor.observed_run import Observed, Read


class RunView(Protocol):
    """Reads-from and writes of runs, as literals."""

    observed: Observed
    formula: Formula

    def selects(self, read: Read, writer: int) -> Literal:
        """Return whether the read takes part and reads from ``writer``."""
        ...

    def writes(self, node: int, key: int) -> Literal:
        """Return whether the node's write of ``key`` takes part."""
        ...

    def takes_part(self, node: int) -> Literal:
        """Return whether the node takes part."""
        ...


def direct(view: RunView, a: int, b: int) -> Literal:
    """Return whether b follows a in its session, or reads from it."""
    if view.observed.precedes(a, b):
        return view.takes_part(b)
    reads = view.observed.reads_of[b]
    return view.formula.any_of(view.selects(read, a) for read in reads if a in read.writers)


class Runs:
    """The formula of all runs within a boundary, without requirements on levels."""

    def __init__(self, observed: Observed, formula: Formula) -> None:
        self.observed, self.formula = observed, formula
        self._past = [[formula.variable() for _ in cuts] for cuts in observed.cuts]
        self._require_ladders()
        self._choices = {
            (read.number, writer): formula.variable() for read in observed.reads for writer in read.writers
        }
        for read in observed.reads:
            self._require_choice(read)
        self._late = [formula.variable() for _ in observed.txns]
        for node in range(observed.size):
            self._define_late(node)

    def beyond(self, session: int, place: int) -> Literal:
        """Return whether the session continues after cut number ``place``; -1 is its start, where it always does."""
        return TRUE if place < 0 else self._past[session][place]

    def _require_ladders(self) -> None:
        for past in self._past:
            for nearer, farther in pairwise(past):
                self.formula.require(-farther, nearer)

    def inside(self, node: int, op: int) -> Literal:
        """Return whether this operation is before or at the boundary."""
        session = self.observed.session_of[node]
        return self.beyond(session, self.observed.cuts_before(session, op) - 1)

    def before_boundary(self, read: Read) -> Literal:
        """Return whether the read (relaxed: its transaction) is strictly before the boundary."""
        session = self.observed.session_of[read.node]
        return self.beyond(session, self.observed.cuts_before(session, read.op))

    def chooses(self, read: Read, writer: int) -> Literal:
        """Return whether the read is inside the boundary and reads from ``writer``."""
        return self._choices[read.number, writer]

    def _require_choice(self, read: Read) -> None:
        formula, inside = self.formula, self.inside(read.node, read.op)
        choices = [self.chooses(read, writer) for writer in read.writers]
        if read.observed is None:  # a writer is chosen only at the boundary, where the read is free
            inside = formula.all_of((inside, -self.before_boundary(read)))
        formula.require(-inside, *choices)
        formula.at_most_one(choices)
        for choice, writer in zip(choices, read.writers, strict=True):
            formula.require(-choice, inside)
            if writer != INITIAL:
                formula.require(-choice, self.inside(writer, self.observed.writes[writer][read.key]))
        if read.observed is not None:
            formula.require(-self.before_boundary(read), self.chooses(read, read.observed))

    def on_boundary(self, node: int) -> Literal:
        """Return whether the node's session ends in this transaction."""
        session = self.observed.session_of[node]
        places = [i for i, cut in enumerate(self.observed.cuts[session]) if cut.node == node]
        if not places:
            return FALSE
        return self.formula.all_of((self.beyond(session, places[0] - 1), -self.beyond(session, places[-1])))

    def late(self, node: int) -> Literal:
        """Return whether the node happens after a boundary transaction.

        The definition is sound because reads-from follows the commit order, so no node is its own reason.
        """
        return self._late[node]

    def _define_late(self, node: int) -> None:
        formula, reasons = self.formula, []
        before = [other for other in self.observed.sessions[self.observed.session_of[node]] if other < node]
        if before:
            reasons.append(self.late(before[-1]))
        for read in self.observed.reads_of[node]:
            for writer in read.writers:
                if writer != INITIAL and not self.observed.precedes(writer, node):
                    cause = formula.any_of((self.on_boundary(writer), self.late(writer)))
                    reasons.append(formula.all_of((self.chooses(read, writer), cause)))
        for reason in reasons:
            formula.require(-reason, self.late(node))
        formula.require(-self.late(node), *reasons)

    def selects(self, read: Read, writer: int) -> Literal:
        return self.formula.all_of((self.chooses(read, writer), -self.late(read.node)))

    def writes(self, node: int, key: int) -> Literal:
        op = self.observed.first_writes[node].get(key)
        return FALSE if op is None else self.formula.all_of((self.inside(node, op), -self.late(node)))

    def takes_part(self, node: int) -> Literal:
        return self.formula.all_of((self.inside(node, self.observed.first_op[node]), -self.late(node)))

    def changes(self, read: Read) -> Literal:
        """Return whether the read takes part with another writer than observed, or with any if that is unknown."""
        if read.observed is None:
            return self.formula.any_of(self.selects(read, writer) for writer in read.writers)
        return self.formula.all_of(
            (self.inside(read.node, read.op), -self.chooses(read, read.observed), -self.late(read.node))
        )

    def choices(self) -> Iterator[tuple[Read, int, Literal]]:
        """Yield every read, each of its possible writers, and the literal of this choice."""
        for read in self.observed.reads:
            for writer in read.writers:
                yield read, writer, self.chooses(read, writer)

    def as_committed(self) -> RunView:
        """Return the same runs with all writes of their boundary transactions, as a level must accept them."""
        return AsCommitted(self)

    def session_ends(self) -> list[int]:
        """Return for each session the number of its cut in the last solution; NOBODY if it runs to its end."""
        return [next((i for i, lit in enumerate(past) if not self.formula.value(lit)), NOBODY) for past in self._past]


class AsCommitted:
    """A view in which participating transactions commit with all their observed writes, even after a strict boundary.

    No transaction reads the later writes, but a level may reject them: PSI and SI reject the second of two writers of a
    key.
    """

    def __init__(self, runs: Runs) -> None:
        self.observed, self.formula, self._runs = runs.observed, runs.formula, runs

    def selects(self, read: Read, writer: int) -> Literal:
        return self._runs.selects(read, writer)

    def writes(self, node: int, key: int) -> Literal:
        """Return whether the node takes part, if it wrote ``key`` when observed."""
        return self._runs.takes_part(node) if key in self.observed.writes[node] else FALSE

    def takes_part(self, node: int) -> Literal:
        return self._runs.takes_part(node)
