"""Strict total orders of n things: one to be found, or one that is given."""

from collections.abc import Sequence
from typing import Protocol

from plume_py.base.logic.formula import FALSE, TRUE, Formula, Literal


class Order(Protocol):
    """Who comes before whom, as literals."""

    def before(self, a: int, b: int) -> Literal:
        """Does a come before b? Never before itself."""
        ...


class FixedOrder:
    """A given order: its literals are constants."""

    def __init__(self, sequence: Sequence[int]) -> None:
        self.sequence = list(sequence)
        self._place = {thing: place for place, thing in enumerate(self.sequence)}

    def before(self, a: int, b: int) -> Literal:
        """By the places in the sequence."""
        return TRUE if self._place[a] < self._place[b] else FALSE


class TotalOrder:
    """An order that the solver chooses: a variable for each pair, and no cycle of three."""

    def __init__(self, formula: Formula, size: int) -> None:
        self.formula, self.size = formula, size
        self._pairs = {(a, b): formula.variable() for b in range(size) for a in range(b)}
        for a in range(size):
            for b in range(a + 1, size):
                for c in range(a + 1, size):
                    if b != c:  # each cycle once: from its smallest member
                        formula.require(-self.before(a, b), -self.before(b, c), -self.before(c, a))

    def before(self, a: int, b: int) -> Literal:
        """The variable of the pair, or its opposite."""
        if a == b:
            return FALSE
        return self._pairs[a, b] if a < b else -self._pairs[b, a]

    def solution(self) -> list[int]:
        """The order in the last solution."""
        ahead = [sum(self.formula.value(self.before(b, a)) for b in range(self.size)) for a in range(self.size)]
        return sorted(range(self.size), key=ahead.__getitem__)
