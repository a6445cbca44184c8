"""A SAT solver that works in slices, so that limits are looked at while it thinks."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from plume_py.base.limits import Limits, Progress

# Conflicts that the solver may meet before it is asked whether there is time left.
SLICE = 2000
# Where there is a time limit, a slice may take so many seconds, by the pace of those before; the first one is short.
SLICE_SECONDS, FIRST_PACE = 0.2, 50.0


class Solver:
    """Clauses, and an incremental solver (CaDiCaL) that keeps what it has learnt from one question to the next."""

    def __init__(self) -> None:
        from pysat.solvers import Cadical195

        self._solver: Any = Cadical195()
        self._pace = FIRST_PACE  # conflicts per second

    def add(self, clause: Iterable[int]) -> None:
        """One of its literals must be true."""
        self._solver.add_clause(clause)

    def prefer(self, literals: Sequence[int]) -> None:
        """Where it is free to choose, these are to be true."""
        self._solver.set_phases(literals)

    def solve(self, limits: Limits, assumptions: Sequence[int] = (), progress: Progress = str) -> bool:
        """Can all clauses be met, and the assumptions too? LimitError when the limits end it."""
        while (answer := self._limited(assumptions, self._slice(limits))) is None:
            limits.check(progress)
        return answer

    def attempt(self, assumptions: Sequence[int] = (), slices: int = 1) -> bool | None:
        """As ``solve``, but it gives up after so many slices; None if it does."""
        return self._limited(assumptions, slices * SLICE)

    def _slice(self, limits: Limits) -> int:
        """Always the same without a time limit, so that what is found is the same, too."""
        left = limits.seconds_left
        if left is None:
            return SLICE
        return max(1, min(SLICE, int(self._pace * min(left, SLICE_SECONDS))))

    def _limited(self, assumptions: Sequence[int], conflicts: int) -> bool | None:
        start = time.monotonic()
        self._solver.conf_budget(conflicts)
        answer: bool | None = self._solver.solve_limited(assumptions=list(assumptions))
        if answer is None:
            self._pace = conflicts / max(time.monotonic() - start, 1e-6)
        return answer

    def model(self) -> list[int]:
        """The literals that are true, after "yes"; the variable v stands at v - 1."""
        return self._solver.get_model() or []

    def core(self) -> frozenset[int]:
        """Assumptions that could not be met together, after "no"."""
        return frozenset(self._solver.get_core() or ())

    def close(self) -> None:
        """Free its memory."""
        self._solver.delete()
