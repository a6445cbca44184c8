"""A sufficient condition for a run to violate the target: a cycle of edges that every commit order must obey.

If a writer is visible to a reader, it precedes the writer that was read from; a reader precedes the transactions that
overwrite its read. Visibility here is session order, reads-from, and for SI two steps of these; the exact search does
without this restriction. Each literal is true only if one of its reasons is true, so that no edge justifies itself.
"""

from collections.abc import Iterable

from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.history.model import INITIAL
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.predictor.run_encoding import Runs, direct

Relation = dict[tuple[int, int], Literal]
Reasons = dict[tuple[int, int], list[Literal]]


class ForcedCycle:
    """The edges that a run forces. Assuming ``literal`` asks for a run with a cycle of them."""

    def __init__(self, runs: Runs, target: str, limits: Limits) -> None:
        limits.check()
        self.runs = runs
        self.formula: Formula = runs.formula
        self._size = runs.observed.size
        self._pairs = [(a, b) for a in range(self._size) for b in range(self._size) if a != b]
        self._direct = {pair: lit for pair in self._pairs if (lit := direct(runs, *pair)) != FALSE}
        self._loops: list[Literal] = []  # each is true only if some node precedes itself
        limits.check()
        edges = self._serial_edges() if target == STRONGEST else self._snapshot_edges()
        self.literal = self._cycle(edges)

    def _before(self, a: int, b: int) -> Literal:
        return self._direct.get((a, b), FALSE)

    def _reasoned(self, reasons: Iterable[Literal]) -> Literal:
        """Return a literal that is true only if one of the reasons is."""
        distinct = {reason for reason in reasons if reason != FALSE}
        if TRUE in distinct:
            return TRUE
        if len(distinct) < 2:
            return next(iter(distinct), FALSE)
        literal = self.formula.variable()
        self.formula.require(-literal, *sorted(distinct))
        return literal

    def _both(self, *literals: Literal) -> Literal:
        """Return a literal that is true only if all of these are. Usually one of them is FALSE."""
        return FALSE if FALSE in literals else self.formula.all_of(literals)

    def _overwrites(self) -> Relation:
        """Return the edges (a, b): b overwrote a version that a read."""
        reasons: Reasons = {}
        for read, writer, _ in self.runs.choices():
            for other in self.runs.observed.writers[read.key]:
                later = TRUE if writer == INITIAL else self._before(writer, other)
                if other not in (read.node, writer) and later != FALSE:
                    parts = self.runs.selects(read, writer), self.runs.writes(other, read.key), later
                    reasons.setdefault((read.node, other), []).append(self._both(*parts))
        return {pair: self._reasoned(found) for pair, found in reasons.items()}

    def _overwritten(self, sees: Relation) -> Reasons:
        """Return reasons for (a, b): some transaction read from b and sees a, which wrote the key, too."""
        reasons: Reasons = {}
        for read, writer, _ in self.runs.choices():
            for other in self.runs.observed.writers[read.key]:
                seen = sees.get((other, read.node), FALSE)
                if writer != INITIAL and other not in (read.node, writer) and seen != FALSE:
                    parts = self.runs.selects(read, writer), self.runs.writes(other, read.key), seen
                    reasons.setdefault((other, writer), []).append(self._both(*parts))
        return reasons

    def _serial_edges(self) -> Relation:
        reasons = self._overwritten(self._direct)
        for relation in (self._direct, self._overwrites()):
            for pair, literal in relation.items():
                reasons.setdefault(pair, []).append(literal)
        return {pair: self._reasoned(found) for pair, found in reasons.items()}

    def _snapshot_edges(self) -> Relation:
        """Return the edges for SI.

        A reader may commit after a writer that it does not see. The transactions that it sees precede that writer.
        """
        unseen, conflict = self._overwrites(), self._conflicts()
        sees = self._seen_in_two_steps()
        edges = self._overwritten(sees)
        for (t, b), misses in unseen.items():
            edges.setdefault((t, b), []).append(self._both(conflict.get((t, b), FALSE), misses))
            for a in range(self._size):
                if a not in (t, b):
                    edges.setdefault((a, b), []).append(self._both(sees.get((a, t), FALSE), misses))
        # If t sees a and also does not, a precedes itself.
        self._loops = [self._both(sees.get((a, t), FALSE), misses) for (t, a), misses in unseen.items()]
        for pair, literal in self._direct.items():
            edges.setdefault(pair, []).append(literal)
        return {pair: self._reasoned(found) for pair, found in edges.items()}

    def _seen_in_two_steps(self) -> Relation:
        sources: list[list[int]] = [[] for _ in range(self._size)]
        for a, b in self._direct:
            sources[b].append(a)
        reasons: Reasons = {}
        for (s, b), literal in self._direct.items():
            reasons.setdefault((s, b), []).append(literal)
            for a in sources[s]:
                if a != b:
                    reasons.setdefault((a, b), []).append(self._both(self._direct[a, s], literal))
        return {pair: self._reasoned(found) for pair, found in reasons.items()}

    def _conflicts(self) -> Relation:
        runs, writes = self.runs, self.runs.observed.writes
        return {
            (a, b): self._reasoned(
                self._both(runs.writes(a, key), runs.writes(b, key))
                for key in sorted(writes[a].keys() & writes[b].keys())
            )
            for a, b in self._pairs
            if writes[a].keys() & writes[b].keys()
        }

    def _cycle(self, edges: Relation) -> Literal:
        """Return an assumption: some set of nodes has, for each member, an edge to a member of the set."""
        formula = self.formula
        assumed = formula.variable()
        member = [formula.variable() for _ in range(self._size)]
        formula.require(-assumed, *member, *self._loops)
        onward: list[list[Literal]] = [[] for _ in range(self._size)]
        for (a, b), edge in edges.items():
            onward[a].append(self._both(member[b], edge))
        for a, reasons in enumerate(onward):
            formula.require(-member[a], *reasons)
        return assumed
