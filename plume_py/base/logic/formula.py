"""Build formulas, gates and total orders on top of an incremental SAT solver.

A literal is a number other than 0, and ``-a`` is the negation of ``a``. Variable 1 is true, so constants are ordinary
literals. Gates simplify constants away and equal gates share a variable. Definitions can therefore be written as in the
papers, also if a fixed order or a fixed history decides some of their cases.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Protocol

from plume_py.base.limits import Limits
from plume_py.base.logic.sat import Solver

Literal = int

TRUE: Literal = 1
FALSE: Literal = -1

# Clauses that are added between two checks of the limits.
CLAUSES = 10_000
# Steps of work (see ``Limits``) that a clause counts for.
STEPS_PER_CLAUSE = 200


class Formula:
    """Variables, gates over them, and clauses. ``limits`` apply to ``solve`` and to the growth of the formula."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._solver = Solver()
        self._limits = limits or Limits()
        self._gates: dict[tuple[Literal, ...], Literal] = {}
        # by relation: the literal for "it is acyclic", and the order that contains it if so
        self.orders: dict[tuple[tuple[Literal, ...], ...], tuple[Literal, TotalOrder]] = {}
        # by literal: its meaning, for explanations; None if no explanation is wanted
        self.notes: dict[Literal, object] | None = None
        self._model: list[int] = []
        self._failed: frozenset[Literal] = frozenset()
        self.variables, self.clauses = 1, 0
        self._solver.add([TRUE])

    def variable(self) -> Literal:
        self.variables += 1
        return self.variables

    def require(self, *literals: Literal) -> None:
        """Add the clause of these literals."""
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
        """Return a literal for "all of ``literals`` are true"."""
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
        """Return the conjuncts of ``literal``, with nested conjunctions expanded."""
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
        """Return a literal for "one of ``literals`` is true"."""
        return -self.all_of(-literal for literal in literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        """Return a literal for "if a then b"."""
        return self.any_of((-a, b))

    def same(self, a: Literal, b: Literal) -> Literal:
        """Return a literal for "a if and only if b"."""
        return self.all_of((self.implies(a, b), self.implies(b, a)))

    def at_most_one(self, literals: Sequence[Literal]) -> None:
        """Require that at most one of ``literals`` is true."""
        for a, b in combinations(literals, 2):
            self.require(-a, -b)

    def at_least(self, most: int, literals: Iterable[Literal]) -> list[Literal]:
        """Return for each k from 0 to ``most`` a literal for "at least k of ``literals`` are true"."""
        counts = [TRUE] + [FALSE] * most
        for literal in literals:
            counts = [TRUE] + [
                self.any_of((counts[k], self.all_of((counts[k - 1], literal)))) for k in range(1, most + 1)
            ]
        return counts

    def at_most(self, bound: int, literals: Sequence[Literal]) -> None:
        """Require that at most ``bound`` of ``literals`` are true."""
        self.require(-self.at_least(bound + 1, literals)[-1])

    def solve(self, assumptions: Sequence[Literal] = (), limits: Limits | None = None) -> bool:
        """Return whether formula and assumptions are satisfiable; raise LimitError if a limit is reached."""
        limits = limits or self._limits
        limits.check()
        answer = self._solver.solve(limits, assumptions)
        self._model = self._solver.model() if answer else []
        self._failed = frozenset() if answer else self._solver.core()
        return answer

    def value(self, literal: Literal) -> bool:
        """Return the value of a literal in the last model; variables that are in no clause are false."""
        positive = abs(literal) <= len(self._model) and self._model[abs(literal) - 1] > 0
        return positive == (literal > 0)

    def core(self) -> frozenset[Literal]:
        """Return the assumptions of an unsatisfiable core after ``solve`` returned False."""
        return self._failed

    def close(self) -> None:
        self._solver.close()

    def __enter__(self) -> "Formula":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Order(Protocol):
    """A strict total order with a literal for each pair."""

    def before(self, a: int, b: int) -> Literal:
        """Return the literal for "a comes before b"; FALSE if a is b."""
        ...


class FixedOrder:
    """A given order: its literals are constants."""

    def __init__(self, sequence: Sequence[int]) -> None:
        self.sequence = list(sequence)
        self._position = {element: position for position, element in enumerate(self.sequence)}

    def before(self, a: int, b: int) -> Literal:
        return TRUE if self._position[a] < self._position[b] else FALSE


class TotalOrder:
    """An order of 0 to size - 1 that the solver chooses: a variable for each pair, and no cycle of three."""

    def __init__(self, formula: Formula, size: int) -> None:
        self.formula, self.size = formula, size
        self._pairs = {(a, b): formula.variable() for b in range(size) for a in range(b)}
        for a in range(size):
            for b in range(a + 1, size):
                for c in range(a + 1, size):
                    if b != c:  # each cycle once: from its smallest member
                        formula.require(-self.before(a, b), -self.before(b, c), -self.before(c, a))

    def before(self, a: int, b: int) -> Literal:
        if a == b:
            return FALSE
        return self._pairs[a, b] if a < b else -self._pairs[b, a]

    def solution(self) -> list[int]:
        """Return the elements in the order of the last model."""
        ahead = [sum(self.formula.value(self.before(b, a)) for b in range(self.size)) for a in range(self.size)]
        return sorted(range(self.size), key=ahead.__getitem__)
