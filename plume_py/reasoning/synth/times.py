"""Real time that is still to be found: who had ended before whom began, and intervals of a clock that make it so.

Of two pairs a before b and c before d, one of the two that ended ended first, and so before both b and d. A relation
that keeps this rule, nobody being before himself, is an interval order: there are intervals for it. So no variables are
needed for times, only one for each pair.
"""

from collections.abc import Collection, Sequence
from itertools import combinations, permutations

from plume_py.base.logic import FALSE, Formula, Literal


class UnknownTimes:
    """An interval order that the solver chooses."""

    def __init__(self, formula: Formula, size: int) -> None:
        self.formula = formula
        self._pairs = {pair: formula.variable() for pair in permutations(range(size), 2)}
        for (a, b), (c, d) in combinations(self._pairs, 2):
            formula.require(-self._pairs[a, b], -self._pairs[c, d], self.before(a, d), self.before(c, b))

    def before(self, a: int, b: int) -> Literal:
        """Had a ended before b began?"""
        return self._pairs.get((a, b), FALSE)

    def solution(self) -> list[tuple[int, int]]:
        """The pairs in the last solution."""
        return [pair for pair, literal in self._pairs.items() if self.formula.value(literal)]


def spans(size: int, before: Collection[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Begin and end of each, as small as can be, such that exactly these pairs are one before the other.

    In an interval order, of two sets of those who had ended before someone began one contains the other.
    """
    ended = [frozenset(a for a, later in before if later == b) for b in range(size)]
    moments = {earlier: at for at, earlier in enumerate(sorted(set(ended), key=len))}
    begin = [moments[earlier] for earlier in ended]
    end = [min((begin[b] for first, b in before if first == a), default=len(moments)) - 1 for a in range(size)]
    return [(2 * first, 2 * last + 1) for first, last in zip(begin, end, strict=True)]
