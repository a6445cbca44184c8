"""Tests of base/logic: gates agree with Python, orders with permutations, and limits end the search."""

from itertools import pairwise, permutations, product

import pytest

from plume_py.base import limits
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, FixedOrder, Formula, TotalOrder, sat


def models(formula: Formula, variables: list[int]) -> set[tuple[bool, ...]]:
    found = set()
    while formula.solve():
        model = tuple(formula.value(v) for v in variables)
        assert model not in found
        found.add(model)
        formula.require(*(-v if value else v for v, value in zip(variables, model, strict=True)))
    return found


@pytest.mark.parametrize(
    ("gate", "meaning"),
    [
        (lambda f, a, b, c: f.all_of((a, -b, c)), lambda a, b, c: a and not b and c),
        (lambda f, a, b, c: f.any_of((a, -b, c)), lambda a, b, c: a or not b or c),
        (lambda f, a, b, c: f.implies(a, f.same(b, c)), lambda a, b, c: not a or b == c),
        (lambda f, a, b, c: f.all_of((a, b, -a)), lambda a, b, c: False),
        (lambda f, a, b, c: f.any_of((a, TRUE)), lambda a, b, c: True),
        (lambda f, a, b, c: f.all_of((a, FALSE, c)), lambda a, b, c: False),
        (lambda f, a, b, c: f.all_of(()), lambda a, b, c: True),
        (lambda f, a, b, c: f.any_of(()), lambda a, b, c: False),
    ],
)
def test_gates_agree_with_python(gate, meaning) -> None:
    with Formula() as formula:
        variables = [formula.variable() for _ in range(3)]
        formula.require(gate(formula, *variables))
        expected = {values for values in product((False, True), repeat=3) if meaning(*values)}
        assert models(formula, variables) == expected


def test_equal_gates_are_one() -> None:
    with Formula() as formula:
        a, b = formula.variable(), formula.variable()
        assert formula.all_of((a, b)) == formula.all_of((b, a, TRUE))
        assert formula.any_of((a, b)) == -formula.all_of((-a, -b))


@pytest.mark.parametrize("bound", range(6))
def test_at_most(bound: int) -> None:
    with Formula() as formula:
        variables = [formula.variable() for _ in range(5)]
        formula.at_most(bound, variables)
        expected = {values for values in product((False, True), repeat=5) if sum(values) <= bound}
        assert models(formula, variables) == expected


def test_orders_are_the_permutations() -> None:
    with Formula() as formula:
        order = TotalOrder(formula, 4)
        found = set()
        while formula.solve():
            found.add(sequence := tuple(order.solution()))
            formula.require(*(-order.before(a, b) for a, b in pairwise(sequence)))
        assert found == set(permutations(range(4)))


def test_a_fixed_order_is_made_of_constants() -> None:
    order = FixedOrder([2, 0, 1])
    assert [order.before(2, 1), order.before(1, 0), order.before(0, 0)] == [TRUE, FALSE, FALSE]


def test_assumptions_and_their_core() -> None:
    with Formula() as formula:
        a, b, c = (formula.variable() for _ in range(3))
        formula.require(-a, -b)
        assert not formula.solve([a, b, c])
        assert formula.core() <= {a, b}
        assert formula.solve([a, c]) and formula.value(a) and not formula.value(b)


def test_limits_end_the_search() -> None:
    with Formula() as formula, pytest.raises(LimitError):
        formula.solve(limits=Limits(timeout=0))


def test_counts_of_true_literals() -> None:
    with Formula() as formula:
        variables = [formula.variable() for _ in range(4)]
        counts = formula.at_least(3, variables)
        for values in product((False, True), repeat=4):
            chosen = [v if value else -v for v, value in zip(variables, values, strict=True)]
            assert formula.solve(chosen)
            assert [formula.value(count) for count in counts] == [sum(values) >= k for k in range(4)]


def test_a_growing_formula_checks_its_limits() -> None:
    with Formula(Limits(timeout=1e-9)) as formula, pytest.raises(LimitError):
        for _ in range(20_000):
            formula.require(formula.variable())


class SlowSolver:
    """Stands in for the solver: a conflict takes many propagations, and these take time by the clock of the test."""

    def __init__(self, clock, propagations_per_conflict: int) -> None:
        self.clock, self.each, self.slices = clock, propagations_per_conflict, []

    def conf_budget(self, conflicts: int) -> None:
        self.slices.append(conflicts)

    def solve_limited(self, assumptions) -> None:
        self.clock.now += self.slices[-1] * self.each * 1e-7

    def accum_stats(self) -> dict[str, int]:
        return {"conflicts": sum(self.slices), "propagations": sum(self.slices) * self.each}


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("propagations", [100, 10_000, 500_000])
def test_a_solver_keeps_to_a_time_limit(monkeypatch, propagations: int) -> None:
    """However hard its conflicts are: after the first slice it is over by less than one slice, or by one conflict."""
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    solver = sat.Solver()
    solver._solver = SlowSolver(clock, propagations)
    a_slice = max(sat.SLICE_PROPAGATIONS, propagations, sat.FIRST_SLICE * propagations) * 1e-7
    with pytest.raises(LimitError, match="stopped after 3 s"):
        solver.solve(Limits(3.0))
    assert clock.now < 3 + a_slice + 0.01


def test_slices_do_not_depend_on_limits(monkeypatch) -> None:
    """The answers of the solver depend on where it is stopped, so that must not depend on the clock."""
    found = []
    for limit in (None, 3600.0):
        clock = Clock()
        monkeypatch.setattr(limits, "time", clock)
        solver = sat.Solver()
        solver._solver = slow = SlowSolver(clock, 7_000)
        with pytest.raises(LimitError, match="work"):
            solver.solve(Limits(limit).of_work(1_000_000_000))
        found.append(slow.slices)
        clock.now = 17.0
    assert found[0] == found[1] and len(found[0]) > 5
