"""A SAT solver that works in slices, so that limits are looked at while it thinks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from plume_py.base.limits import Limits, Progress

# Conflicts that the solver may meet between two looks at the limits: in the first slice, and at most.
FIRST_SLICE, SLICE = 100, 2000
# Propagations that a slice should take, about 0.2 s. Slices must not depend on time: the solver's answers depend on
# where it was stopped and resumed.
SLICE_PROPAGATIONS = 2_000_000
# Steps of work (see ``Limits``) that a question, a conflict and a propagation count for.
STEPS_PER_QUESTION, STEPS_PER_CONFLICT, STEPS_PER_PROPAGATION = 10_000, 1_000, 10


class Solver:
    """Clauses, and an incremental solver (CaDiCaL) that keeps what it has learnt from one question to the next."""

    def __init__(self) -> None:
        from pysat.solvers import Cadical195

        self._solver: Any = Cadical195()
        self._slice = FIRST_SLICE
        self._conflicts = self._propagations = 0  # so far

    def add(self, clause: Iterable[int]) -> None:
        """One of its literals must be true."""
        self._solver.add_clause(clause)

    def prefer(self, literals: Sequence[int]) -> None:
        """Where it is free to choose, these are to be true."""
        self._solver.set_phases(literals)

    def solve(self, limits: Limits, assumptions: Sequence[int] = (), progress: Progress = str) -> bool:
        """Can all clauses be met, and the assumptions too? LimitError when the limits end it."""
        while True:
            answer, propagations = self._limited(limits, assumptions, self._slice)
            if answer is not None:
                return answer
            self._slice = max(1, min(SLICE, self._slice * SLICE_PROPAGATIONS // max(1, propagations)))
            limits.check(progress)

    def attempt(self, limits: Limits, assumptions: Sequence[int] = (), slices: int = 1) -> bool | None:
        """As ``solve``, but it gives up after so many slices; None if it does."""
        return self._limited(limits, assumptions, slices * SLICE)[0]

    def _limited(self, limits: Limits, assumptions: Sequence[int], conflicts: int) -> tuple[bool | None, int]:
        """Return the answer, None after so many ``conflicts``, and how many propagations it took."""
        self._solver.conf_budget(conflicts)
        answer: bool | None = self._solver.solve_limited(assumptions=list(assumptions))
        stats = self._solver.accum_stats()
        met, propagations = stats["conflicts"] - self._conflicts, stats["propagations"] - self._propagations
        self._conflicts, self._propagations = stats["conflicts"], stats["propagations"]
        limits.spend(STEPS_PER_QUESTION + STEPS_PER_CONFLICT * met + STEPS_PER_PROPAGATION * propagations)
        return answer, propagations

    def model(self) -> list[int]:
        """The literals that are true, after "yes"; the variable v stands at v - 1."""
        return self._solver.get_model() or []

    def core(self) -> frozenset[int]:
        """Assumptions that could not be met together, after "no"."""
        return frozenset(self._solver.get_core() or ())

    def close(self) -> None:
        """Free its memory."""
        self._solver.delete()


# From cegis.py: Search by proposal and refutation: for "there is an x such that no y refutes it". A solver proposes an x. If some y refutes it, what was learnt from that y goes back to the solver, and holds of every x: "y does not refute x, either because it is no longer a proper y, or because it fails". Without the first case, solutions would be lost. The search ends with an x that nothing refutes, or when the solver has nothing left to propose.
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
