"""Search by proposal and refutation: for "there is an x such that no y refutes it".

A solver proposes an x. If some y refutes it, what was learnt from that y goes back to the solver, and holds of every x:
"y does not refute x, either because it is no longer a proper y, or because it fails". Without the first case, solutions
would be lost. The search ends with an x that nothing refutes, or when the solver has nothing left to propose.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from plume_py.base.limits import Limits

X = TypeVar("X")
Lesson = TypeVar("Lesson")


@dataclass
class RefutationSearch(Generic[X, Lesson]):
    """``propose`` an x, ``refute`` it (what that teaches; nothing if it is good), ``learn`` from that."""

    propose: Callable[[], X | None]
    refute: Callable[[X], Sequence[Lesson]]
    learn: Callable[[Sequence[Lesson]], None]
    proposals: int = 0

    def run(self, limits: Limits) -> X | None:
        """The first proposal that is not refuted, or None. LimitError when the limits end it."""
        while True:
            limits.check(lambda: f"{self.proposals} candidates tried")
            x = self.propose()
            if x is None:
                return None
            self.proposals += 1
            lessons = self.refute(x)
            if not lessons:
                return x
            self.learn(lessons)
