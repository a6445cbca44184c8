"""An incremental SAT solver that checks limits while it runs, and counterexample-guided search (CEGIS) on top of it.

``Solver`` stops CaDiCaL after a number of conflicts, checks the limits and resumes it.

``RefutationSearch`` looks for an x that no y refutes. A solver proposes an x. If some y refutes it, the caller adds to
the solver what that y teaches about every x: "y does not refute x, either because y is not admissible for x, or because
it fails". Without the first case, solutions would be lost.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from plume_py.base.limits import Limits, Progress

# Conflicts between two checks of the limits: in the first slice, and at most in later ones.
FIRST_SLICE, SLICE = 100, 2000
# Propagations that a slice should take, about 0.2 s. Slices must not depend on time, because the answers of the solver
# depend on where it was stopped and resumed.
SLICE_PROPAGATIONS = 2_000_000
# Steps of work (see ``Limits``) that a call, a conflict and a propagation count for.
STEPS_PER_QUESTION, STEPS_PER_CONFLICT, STEPS_PER_PROPAGATION = 10_000, 1_000, 10


class Solver:
    """An incremental SAT solver (CaDiCaL): it keeps the clauses that it has learnt for later calls."""

    def __init__(self) -> None:
        from pysat.solvers import Cadical195

        self._solver: Any = Cadical195()
        self._slice = FIRST_SLICE
        self._conflicts = self._propagations = 0  # so far

    def add(self, clause: Iterable[int]) -> None:
        """Require that one of the literals is true."""
        self._solver.add_clause(clause)

    def prefer(self, literals: Sequence[int]) -> None:
        """Make the solver try these literals as true first."""
        self._solver.set_phases(literals)

    def solve(self, limits: Limits, assumptions: Sequence[int] = (), progress: Progress = str) -> bool:
        """Return whether clauses and assumptions are satisfiable; raise LimitError if a limit is reached."""
        while True:
            answer, propagations = self._limited(limits, assumptions, self._slice)
            if answer is not None:
                return answer
            self._slice = max(1, min(SLICE, self._slice * SLICE_PROPAGATIONS // max(1, propagations)))
            limits.check(progress)

    def attempt(self, limits: Limits, assumptions: Sequence[int] = (), slices: int = 1) -> bool | None:
        """Do the same as ``solve``, but return None after this number of slices."""
        return self._limited(limits, assumptions, slices * SLICE)[0]

    def _limited(self, limits: Limits, assumptions: Sequence[int], conflicts: int) -> tuple[bool | None, int]:
        """Return the answer, or None after this number of conflicts, and the number of propagations."""
        self._solver.conf_budget(conflicts)
        answer: bool | None = self._solver.solve_limited(assumptions=list(assumptions))
        stats = self._solver.accum_stats()
        met, propagations = stats["conflicts"] - self._conflicts, stats["propagations"] - self._propagations
        self._conflicts, self._propagations = stats["conflicts"], stats["propagations"]
        limits.spend(STEPS_PER_QUESTION + STEPS_PER_CONFLICT * met + STEPS_PER_PROPAGATION * propagations)
        return answer, propagations

    def model(self) -> list[int]:
        """Return the literals of the model after ``solve`` returned True; index v - 1 holds variable v."""
        return self._solver.get_model() or []

    def core(self) -> frozenset[int]:
        """Return the assumptions of an unsatisfiable core after ``solve`` returned False."""
        return frozenset(self._solver.get_core() or ())

    def close(self) -> None:
        self._solver.delete()


X = TypeVar("X")
Lesson = TypeVar("Lesson")


@dataclass
class RefutationSearch(Generic[X, Lesson]):
    """A search for a proposal that is not refuted.

    ``propose`` returns a candidate, or None if there is none left. ``refute`` returns the lessons of its refutations,
    empty if there are none. ``learn`` adds lessons to the solver behind ``propose``.
    """

    propose: Callable[[], X | None]
    refute: Callable[[X], Sequence[Lesson]]
    learn: Callable[[Sequence[Lesson]], None]
    proposals: int = 0

    def run(self, limits: Limits) -> X | None:
        """Return the first proposal that is not refuted, or None; raise LimitError if a limit is reached."""
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
