"""What the bits of a level mean, over literals: who sees whom under a commit order, each transaction by its own bits.

``levels/visibility.py`` says the same of sets. Here an order, a history and even the levels may be still to be found.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS

WriterPairs = Callable[[int, int], Literal]


class Sees(NamedTuple):
    """What a transaction sees, as literals; of ``closed``, ``prefix`` and ``everything`` at most one is true."""

    writers: Literal  # earlier writers of what it writes
    closed: Literal  # what those see whom it sees
    prefix: Literal  # what commits before those whom it sees
    everything: Literal  # what commits before it

    @classmethod
    def of(cls, bits: int) -> "Sees":
        """By the bits of a level that is known."""
        return cls(
            _constant(bits & (WRITERS | EVERYTHING) == WRITERS),
            _constant(bits & (TRANSITIVE | PREFIX) == TRANSITIVE),
            _constant(bits & (PREFIX | EVERYTHING) == PREFIX),
            _constant(bits & EVERYTHING == EVERYTHING),
        )


def _constant(value: bool) -> Literal:
    return TRUE if value else FALSE


class Visibility:
    """The least that everyone sees.

    ``direct``: does b follow a in its session, or read from it? ``conflict``: do they write a common key?
    """

    def __init__(
        self, formula: Formula, levels: Sequence[Sees], before: WriterPairs, direct: WriterPairs, conflict: WriterPairs
    ) -> None:
        self.formula, self.levels, self.before = formula, levels, before
        self._direct, self._conflict = direct, conflict
        self._nearest: dict[int, dict[int, Literal]] = {}
        self._seen: dict[tuple[int, int], Literal] = {}

    def near(self, b: int) -> dict[int, Literal]:
        """Whom b may see without anyone in between, and when."""
        known = self._nearest.get(b)
        if known is None:
            others = (a for a in range(len(self.levels)) if a != b)
            known = {a: literal for a in others if (literal := self._at_once(a, b)) != FALSE}
            self._nearest[b] = known
        return known

    def _at_once(self, a: int, b: int) -> Literal:
        direct, writers = self._direct(a, b), self.levels[b].writers
        conflict = FALSE if writers == FALSE else self._conflict(a, b)
        if conflict == FALSE:
            return direct
        return self.formula.any_of((direct, self.formula.all_of((writers, conflict, self.before(a, b)))))

    def sees(self, a: int, b: int) -> Literal:
        """Does b see a?"""
        if a == b:
            return FALSE
        if self.levels[b].everything == TRUE:
            return self.before(a, b)
        known = self._seen.get((a, b))
        if known is None:
            known = self._seen[a, b] = self.formula.any_of(self._reasons(a, b))
        return known

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
        """Who may stand between a and b; in general that needs an order that is given, here the numbering."""
        return range(a + 1, b)
