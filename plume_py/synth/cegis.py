"""Search by proposal and refutation: for "there is an x such that no y spoils it".

A solver proposes an x. If some y spoils it, what was learnt from that y goes back to the solver, and holds of every x:
"y does not spoil x, either because it is no longer a proper y, or because it fails". Without the first case, solutions
would be lost. The search ends with an x that nothing spoils, or when the solver has nothing left to propose.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from plume_py.strong.limits import Limits

X = TypeVar("X")
Lesson = TypeVar("Lesson")


def search(
    propose: Callable[[], X | None],
    spoil: Callable[[X], Sequence[Lesson]],
    learn: Callable[[Sequence[Lesson]], None],
    limits: Limits,
) -> tuple[X | None, int]:
    """The first proposal that is not spoilt, or None; and how many there were. LimitError when the limits end it."""
    proposals = 0
    while True:
        limits.check(lambda: f"{proposals} candidates tried")
        x = propose()
        if x is None:
            return None, proposals
        proposals += 1
        lessons = spoil(x)
        if not lessons:
            return x, proposals
        learn(lessons)
