"""A sufficient condition for a run to break the target: orders that every commit order must obey form a cycle.

A writer that comes before a reader comes before what was read, and a reader comes before whoever overwrote what it
read. "Comes before" is, in the first layer, session order and reads-from; in the second one causality; in further ones
paths of what the layer before derived. Literals are true only where they have a reason in the layer below, so no order
can justify itself.
"""

from collections.abc import Iterable

from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.history.model import INITIAL
from plume_py.levels import STRONGEST
from plume_py.predict.predictor.runs import Runs, direct

Relation = dict[tuple[int, int], Literal]

# How often paths are doubled between two layers.
DOUBLINGS = 2


class Layers:
    """Derived orders, layer by layer; ``cycle`` asks for a contradiction among those derived so far."""

    def __init__(self, runs: Runs, target: str, limits: Limits) -> None:
        self.runs, self.target, self._limits = runs, target, limits
        self.formula: Formula = runs.formula
        self._size = runs.observed.size
        self._pairs = [(a, b) for a in range(self._size) for b in range(self._size) if a != b]
        self._direct = {pair: lit for pair in self._pairs if (lit := direct(runs, *pair)) != FALSE}
        self._known = {pair: self._direct.get(pair, FALSE) for pair in self._pairs}
        self._edges: Relation = {}
        self._loops: list[Literal] = []  # each true only if some node would come before itself
        self.depth = 0

    def _reasoned(self, reasons: Iterable[Literal]) -> Literal:
        """A literal that is true only if one of the reasons is."""
        distinct = {reason for reason in reasons if reason != FALSE}
        if TRUE in distinct:
            return TRUE
        if len(distinct) < 2:
            return next(iter(distinct), FALSE)
        literal = self.formula.variable()
        self.formula.require(-literal, *sorted(distinct))
        return literal

    def _both(self, *literals: Literal) -> Literal:
        """A literal that is true only if all of these are; most often one of them is known to be false."""
        return FALSE if FALSE in literals else self.formula.all_of(literals)

    def _causality(self) -> Relation:
        """Who is causally before whom. Direct steps follow an order, so going back along them comes to an end."""
        known = {pair: self.formula.variable() for pair in self._pairs}
        sources: list[list[int]] = [[] for _ in range(self._size)]
        for a, b in self._direct:
            sources[b].append(a)
        for (a, c), literal in known.items():
            if c == 0:
                self._limits.check()
            reasons = [self._direct.get((a, c), FALSE)]
            reasons += [self._both(known[a, b], self._direct[b, c]) for b in sources[c] if b != a]
            self.formula.require(-literal, *reasons)
        return known

    def deepen(self) -> None:
        """One more layer."""
        self._limits.check()
        if self.depth:
            self._known = self._causality() if self.depth == 1 else self._closed(self._edges)
        self._edges = self._serial_edges() if self.target == STRONGEST else self._snapshot_edges()
        self.depth += 1

    def _closed(self, edges: Relation) -> Relation:
        """Paths of up to 2 ** DOUBLINGS edges."""
        known = edges
        for _ in range(DOUBLINGS):
            self._limits.check()
            known = {
                (a, b): self._reasoned(
                    [
                        known[a, b],
                        *(self._both(known[a, c], known[c, b]) for c in range(self._size) if c not in (a, b)),
                    ]
                )
                for a, b in self._pairs
            }
        return known

    def _overwrites(self) -> Relation:
        """(a, b): a read what b overwrote."""
        reasons: dict[tuple[int, int], list[Literal]] = {}
        for read, writer, _ in self.runs.choices():
            for other in self.runs.observed.writers[read.key]:
                if other not in (read.node, writer):
                    later = TRUE if writer == INITIAL else self._known[writer, other]
                    parts = self.runs.selects(read, writer), self.runs.writes(other, read.key), later
                    reasons.setdefault((read.node, other), []).append(self._both(*parts))
        return {pair: self._reasoned(found) for pair, found in reasons.items()}

    def _overwritten(self, sees: Relation) -> dict[tuple[int, int], list[Literal]]:
        """(a, b): some reader of b's write sees a's as well, so a comes before b."""
        reasons: dict[tuple[int, int], list[Literal]] = {}
        for read, writer, _ in self.runs.choices():
            for other in self.runs.observed.writers[read.key]:
                if writer != INITIAL and other not in (read.node, writer):
                    parts = self.runs.selects(read, writer), self.runs.writes(other, read.key), sees[other, read.node]
                    reasons.setdefault((other, writer), []).append(self._both(*parts))
        return reasons

    def _serial_edges(self) -> Relation:
        reasons = self._overwritten(self._known)
        unseen = self._overwrites()
        return {
            pair: self._reasoned([self._known[pair], unseen.get(pair, FALSE), *reasons.get(pair, ())])
            for pair in self._pairs
        }

    def _snapshot_edges(self) -> Relation:
        """For SI a reader may commit after what it does not see; but whatever it sees commits before that."""
        unseen, conflict = self._overwrites(), self._conflicts()
        sees: Relation = {}
        for a, b in self._pairs:
            near = [s for s in range(self._size) if s not in (a, b) and (s, b) in self._direct]
            reasons = [self._direct.get((a, b), FALSE), self._both(conflict.get((a, b), FALSE), self._known[a, b])]
            reasons += [self._both(self._known[a, s], self._direct[s, b]) for s in near]
            sees[a, b] = self._reasoned(reasons)
        edges = self._overwritten(sees)
        for (t, b), misses in unseen.items():
            edges.setdefault((t, b), []).append(self._both(conflict.get((t, b), FALSE), misses))
            for a in range(self._size):
                if a not in (t, b):
                    edges.setdefault((a, b), []).append(self._both(sees[a, t], misses))
        # whoever is seen by someone that misses it would come before itself
        self._loops = [self._both(sees[a, t], misses) for (t, a), misses in unseen.items()]
        return {pair: self._reasoned([self._known[pair], *edges.get(pair, ())]) for pair in self._pairs}

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

    def cycle(self) -> Literal:
        """An assumption: there is a set of nodes of which each has an edge into the set."""
        formula = self.formula
        asked = formula.variable()
        member = [formula.variable() for _ in range(self._size)]
        formula.require(-asked, *member, *self._loops)
        for a in range(self._size):
            onward = [self._both(member[b], self._edges[a, b]) for b in range(self._size) if b != a]
            formula.require(-member[a], *onward)
        return asked
