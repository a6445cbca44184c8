"""A growing formula in front of an incremental SAT solver.

A literal is a number other than 0, and ``-a`` is the opposite of ``a``. Variable 1 is true, so constants are literals
like all others; gates fold them away, which lets definitions be written as they are in the papers, without care for
the cases that a fixed order or a fixed history decides beforehand. Equal gates are made once.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Protocol

from plume_py.base.limits import Limits
from plume_py.base.logic.sat import Solver

Literal = int

TRUE: Literal = 1
FALSE: Literal = -1

# Clauses that are added between two looks at the limits.
CLAUSES = 10_000
# Steps of work that a clause counts for.
STEPS_PER_CLAUSE = 200


class ChosenOrder(Protocol):
    """A total order that the solver chooses, of ``size`` things."""

    size: int

    def before(self, a: int, b: int) -> Literal:
        """Does a come before b?"""
        ...


class Formula:
    """Variables, gates over them, and what is required of them."""

    def __init__(self, limits: Limits | None = None) -> None:
        """``limits`` are looked at while it grows; a formula can be too large to be written down in time."""
        self._solver = Solver()
        self._limits = limits or Limits()
        self._gates: dict[tuple[Literal, ...], Literal] = {}
        # by relation: a literal for "it has no cycle", and an order that then contains it
        self.orders: dict[tuple[tuple[Literal, ...], ...], tuple[Literal, ChosenOrder]] = {}
        # by literal, what it says, for explanations; nothing is noted where nobody asks for one
        self.notes: dict[Literal, object] | None = None
        self._model: list[int] = []
        self._failed: frozenset[Literal] = frozenset()
        self.variables, self.clauses = 1, 0
        self._solver.add([TRUE])

    def variable(self) -> Literal:
        """A new variable."""
        self.variables += 1
        return self.variables

    def require(self, *literals: Literal) -> None:
        """One of ``literals`` must be true."""
        if TRUE in literals:
            return
        for literal in literals:  # a loop, as this is called millions of times
            if -literal in literals:
                return
        self.clauses += 1
        if self.clauses % CLAUSES == 0:
            self._limits.check()
            self._limits.spend(CLAUSES * STEPS_PER_CLAUSE)
        if FALSE in literals:
            literals = tuple(literal for literal in literals if literal != FALSE) or (FALSE,)
        self._solver.add(literals)

    def all_of(self, literals: Iterable[Literal]) -> Literal:
        """A literal that is true exactly when all of ``literals`` are."""
        distinct = {literal for literal in literals if literal != TRUE}
        if FALSE in distinct or any(-literal in distinct for literal in distinct):
            return FALSE
        parts = sorted(distinct)
        if len(parts) < 2:
            return parts[0] if parts else TRUE
        known = self._gates.get(key := tuple(parts))
        if known is not None:
            return known
        gate = self._gates[key] = self.variable()
        for part in parts:
            self.require(-gate, part)
        self.require(gate, *(-part for part in parts))
        return gate

    def conjuncts(self, literal: Literal) -> list[Literal]:
        """What has to be true for this to be true, as long as all of it has to be."""
        parts_of = {gate: parts for parts, gate in self._gates.items()}
        found, left = dict[Literal, None](), [literal]
        while left:
            part = left.pop()
            if part in parts_of:
                left += parts_of[part]
            elif part != TRUE:
                found[part] = None
        return list(found)

    def any_of(self, literals: Iterable[Literal]) -> Literal:
        """A literal that is true exactly when one of ``literals`` is."""
        return -self.all_of(-literal for literal in literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        """A literal for "if a then b"."""
        return self.any_of((-a, b))

    def same(self, a: Literal, b: Literal) -> Literal:
        """A literal for "a exactly when b"."""
        return self.all_of((self.implies(a, b), self.implies(b, a)))

    def at_most_one(self, literals: Sequence[Literal]) -> None:
        """No two of ``literals`` may be true."""
        for a, b in combinations(literals, 2):
            self.require(-a, -b)

    def at_least(self, most: int, literals: Iterable[Literal]) -> list[Literal]:
        """For each k up to ``most``, a literal for "at least k of ``literals`` are true"; counted from the left."""
        counts = [TRUE] + [FALSE] * most
        for literal in literals:
            counts = [TRUE] + [
                self.any_of((counts[k], self.all_of((counts[k - 1], literal)))) for k in range(1, most + 1)
            ]
        return counts

    def at_most(self, bound: int, literals: Sequence[Literal]) -> None:
        """At most ``bound`` of ``literals`` may be true."""
        self.require(-self.at_least(bound + 1, literals)[-1])

    def solve(self, assumptions: Sequence[Literal] = (), limits: Limits | None = None) -> bool:
        """Can all requirements be met, and the assumptions too? LimitError when the limits end it."""
        limits = limits or self._limits
        limits.check()
        answer = self._solver.solve(limits, assumptions)
        self._model = self._solver.model() if answer else []
        self._failed = frozenset() if answer else self._solver.core()
        return answer

    def value(self, literal: Literal) -> bool:
        """Of a literal in the last solution; what the solver never saw is false."""
        positive = abs(literal) <= len(self._model) and self._model[abs(literal) - 1] > 0
        return positive == (literal > 0)

    def core(self) -> frozenset[Literal]:
        """Assumptions that could not be met together, after ``solve`` said no."""
        return self._failed

    def close(self) -> None:
        """Free the solver."""
        self._solver.close()

    def __enter__(self) -> "Formula":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# From order.py: Strict total orders of n things: one to be found, or one that is given.
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
