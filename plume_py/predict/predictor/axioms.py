"""The axioms of the levels over literals: what a transaction sees, and which reads that contradicts.

Every level says the same thing: of the writers of a key that a transaction sees, it reads from the one that commits
last. They differ in what is seen (docs/levels.md, "a level per transaction"), so one definition serves them all, one
level for everyone or a level for each, and an order that is to be found as well as one that is given.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, Order
from plume_py.levels import sees
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.predict.predictor.model import View, direct
from plume_py.predict.predictor.observed import INITIAL, Read


class Sight:
    """Who sees whom under a commit order, each node by its own level."""

    def __init__(self, view: View, levels: Sequence[str], order: Order) -> None:
        self.view, self.order = view, order
        self.bits = [sees(level) for level in levels]
        self._formula: Formula = view.formula
        size = view.observed.size
        # Without AT_COMMIT it matters to others only: what such a transaction saw is passed on like all that is seen.
        asked = AT_COMMIT if not any(map(_closed, self.bits)) else 0
        self._direct = {
            (a, b): literal
            for b in range(size)
            if self.bits[b] & (asked | EVERYTHING) == asked
            for a in range(size)
            if a != b and (literal := direct(view, a, b)) != FALSE
        }
        self._sources: list[list[int]] = [[] for _ in range(size)]
        self._seen: dict[tuple[int, int], Literal] = {}
        for a, b in self._direct:
            self._sources[b].append(a)
        if any(map(_closed, self.bits)):
            self._close()

    def sees(self, a: int, b: int) -> Literal:
        """Does b see a?"""
        if a == b:
            return FALSE
        if self.bits[b] & EVERYTHING:
            return self.order.before(a, b)
        if _closed(self.bits[b]):
            return self._seen[a, b]
        known = self._seen.get((a, b))
        if known is None:
            reasons = [self._sees_at_once(a, b)]
            if self.bits[b] & PREFIX:
                reasons += [
                    self._formula.all_of((self.order.before(a, s), self._sees_at_once(s, b)))
                    for s in self._candidates(b)
                    if s != a
                ]
            known = self._seen[a, b] = self._formula.any_of(reasons)
        return known

    def _candidates(self, b: int) -> Sequence[int]:
        """Whom b may see without anyone in between."""
        return range(len(self.bits)) if self.bits[b] & WRITERS else self._sources[b]

    def _sees_at_once(self, a: int, b: int) -> Literal:
        known = self._direct.get((a, b), FALSE)
        if a == b or not self.bits[b] & WRITERS:
            return known
        conflict = self._formula.all_of((self._both_write(a, b), self.order.before(a, b)))
        return self._formula.any_of((known, conflict))

    def _both_write(self, a: int, b: int) -> Literal:
        writes = self.view.observed.writes
        shared = writes[a].keys() & writes[b].keys()
        return self._formula.any_of(
            self._formula.all_of((self.view.writes(a, key), self.view.writes(b, key))) for key in sorted(shared)
        )

    def _close(self) -> None:
        """Sight of transitive levels: variables that are true at least where they must be, which is all that counts."""
        size, formula = len(self.bits), self._formula
        transitive = [b for b in range(size) if _closed(self.bits[b])]
        for b in transitive:
            self._seen |= {(a, b): formula.variable() for a in range(size) if a != b}
        uniform = len(transitive) == size
        for b in transitive:
            for s in self._candidates(b):
                near = self._sees_at_once(s, b) if s != b else FALSE
                if near == FALSE:
                    continue
                formula.require(-near, self._seen[s, b])
                if uniform:
                    self._pass_on(near, s, b)
            if not uniform:
                for s in range(size):
                    if s != b:
                        self._pass_on(self._seen[s, b], s, b)

    def _pass_on(self, sees: Literal, s: int, b: int) -> None:
        """If b sees s, it sees what s sees."""
        for a in range(len(self.bits)):
            if a not in (s, b):
                self._formula.require(-sees, -self.sees(a, s), self._seen[a, b])


def _closed(bits: int) -> bool:
    """Is what those see seen that are seen, but no prefix?"""
    return bits & (TRANSITIVE | PREFIX) == TRANSITIVE


def contradictions(view: View, levels: Sequence[str], order: Order) -> Iterator[tuple[Literal, ...]]:
    """Every way to break the levels: literals that must not all be true."""
    observed = view.observed
    sight = Sight(view, levels, order)
    for nodes in observed.sessions:
        for a, b in combinations(nodes, 2):
            yield (-order.before(a, b),)
    for read in observed.reads:
        for writer in read.writers:
            if writer != INITIAL:
                yield (view.selects(read, writer), -order.before(writer, read.node))
            yield from _stale(view, sight, read, writer)


def _stale(view: View, sight: Sight, read: Read, writer: int) -> Iterator[tuple[Literal, ...]]:
    """The read sees ``writer`` although its transaction sees a later one."""
    for other in view.observed.writers[read.key]:
        if other in (writer, read.node):
            continue
        earlier = FALSE if writer == INITIAL else sight.order.before(other, writer)
        if earlier == TRUE:
            continue
        seen = (
            _read_before(view, read, other) if not sight.bits[read.node] & AT_COMMIT else sight.sees(other, read.node)
        )
        if seen != FALSE:
            yield view.selects(read, writer), view.writes(other, read.key), seen, -earlier


def _read_before(view: View, read: Read, other: int) -> Literal:
    """RC: has the transaction read from ``other`` before this read?"""
    earlier = (r for r in view.observed.reads_of[read.node] if r.op < read.op and other in r.writers)
    return view.formula.any_of(view.selects(r, other) for r in earlier)
