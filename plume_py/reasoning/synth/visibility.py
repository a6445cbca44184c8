"""The least visibility that levels require under a commit order, as literals.

Each transaction has its own level, given as visibility bits (``levels/table.py``). ``levels/visibility.py`` computes
the same for given histories with sets. Here the order, the history and even the levels may be solver variables.

Callers: the levels in ``formulas.py``, and the axioms of ``predict``.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS

WriterPairs = Callable[[int, int], Literal]


class Sees(NamedTuple):
    """The visibility rules of one transaction t, as literals; a stronger rule makes the weaker ones false.

    ``writers``: t sees the earlier writers of the keys that it writes.
    ``closed``: t sees everything that is visible to a transaction that it sees.
    ``prefix``: t sees everything that commits before a transaction that it sees.
    ``everything``: t sees everything that commits before t.
    """

    writers: Literal
    closed: Literal
    prefix: Literal
    everything: Literal

    @classmethod
    def of(cls, bits: int) -> "Sees":
        """Return the rules of a known level from its bits, as constants."""
        rules = (
            bits & (WRITERS | EVERYTHING) == WRITERS,
            bits & (TRANSITIVE | PREFIX) == TRANSITIVE,
            bits & (PREFIX | EVERYTHING) == PREFIX,
            bits & EVERYTHING == EVERYTHING,
        )
        return cls(*(TRUE if rule else FALSE for rule in rules))


class Visibility:
    """The least visibility relation that satisfies the rules ``levels[t]`` of every transaction t.

    The callbacks map a pair (a, b) to a literal: ``before``: a precedes b in the commit order; ``direct``: b follows a
    in its session or reads from it; ``conflict``: both write a common key.
    """

    def __init__(
        self, formula: Formula, levels: Sequence[Sees], before: WriterPairs, direct: WriterPairs, conflict: WriterPairs
    ) -> None:
        self.formula, self.levels, self.before = formula, levels, before
        self._direct, self._conflict = direct, conflict
        self._nearest: dict[int, dict[int, Literal]] = {}
        self._seen: dict[tuple[int, int], Literal] = {}

    def near(self, b: int) -> dict[int, Literal]:
        """Return the transactions that b can see without an intermediate one, each with the literal for that."""
        cached = self._nearest.get(b)
        if cached is None:
            others = (a for a in range(len(self.levels)) if a != b)
            cached = {a: literal for a in others if (literal := self._sees_directly(a, b)) != FALSE}
            self._nearest[b] = cached
        return cached

    def _sees_directly(self, a: int, b: int) -> Literal:
        direct, writers = self._direct(a, b), self.levels[b].writers
        conflict = FALSE if writers == FALSE else self._conflict(a, b)
        if conflict == FALSE:
            return direct
        return self.formula.any_of((direct, self.formula.all_of((writers, conflict, self.before(a, b)))))

    def sees(self, a: int, b: int) -> Literal:
        """Return a literal: a is visible to b."""
        if a == b:
            return FALSE
        if self.levels[b].everything == TRUE:
            return self.before(a, b)
        cached = self._seen.get((a, b))
        if cached is None:
            cached = self._seen[a, b] = self.formula.any_of(self._reasons(a, b))
        return cached

    def _reasons(self, a: int, b: int) -> list[Literal]:
        both, level, near = self.formula.all_of, self.levels[b], self.near(b)
        reasons = [near.get(a, FALSE)]
        if level.everything != FALSE:
            reasons.append(both((level.everything, self.before(a, b))))
        if level.prefix != FALSE:
            reasons += [both((level.prefix, self.before(a, s), literal)) for s, literal in near.items() if s != a]
        if level.closed != FALSE:
            reasons += [both((level.closed, self.sees(a, s), self.sees(s, b))) for s in self._between(a, b)]
        return reasons

    def _between(self, a: int, b: int) -> Sequence[int]:
        """Return the transactions that can be between a and b. The base class requires the numbering as order."""
        return range(a + 1, b)
