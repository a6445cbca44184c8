"""Questions to the solver, within limits."""

import z3

from plume_py.base.limits import Limits

# More milliseconds than this the solver cannot count; and 0 would mean for ever.
MOST, LEAST = 1 << 31, 1


def solve(solver: z3.Solver, limits: Limits) -> z3.CheckSatResult:
    """The solver's answer to all that it was told so far; unknown if there is no time left."""
    left = limits.seconds_left
    solver.set("timeout", MOST if left is None else int(min(max(left * 1000, LEAST), MOST)))
    return solver.check()
