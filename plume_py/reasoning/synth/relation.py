"""Binary relations between transactions, with a literal per pair: the algebra in which levels are written.

``r[a, b]`` is a literal that is true if a is related to b. Transactions are numbers from 0; the initial state is not in
any relation. Constants fold, so the same code builds formulas for a solver and evaluates given histories.

Relations have names ("SO", "AR and conflict"), which appear in explanations.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, Order, TotalOrder
from plume_py.base.override import override

Rows = Sequence[Sequence[Literal]]


class Relation:
    """A square matrix of literals. ``parts`` are the relations whose union it is, by default itself alone."""

    def __init__(self, formula: Formula, rows: Rows, name: str = "") -> None:
        self.formula, self._rows, self.size, self.name = formula, rows, len(rows), name
        self.parts: tuple[Relation, ...] = (self,)

    @property
    def rows(self) -> Rows:
        return self._rows

    @classmethod
    def where(cls, formula: Formula, size: int, holds: Callable[[int, int], Literal], name: str = "") -> "Relation":
        """Return the relation with the literal ``holds(a, b)`` for each pair."""
        return cls(formula, [[holds(a, b) for b in range(size)] for a in range(size)], name)

    @classmethod
    def of_order(cls, formula: Formula, size: int, order: Order, name: str = "") -> "Relation":
        return cls.where(formula, size, order.before, name)

    def __getitem__(self, pair: tuple[int, int]) -> Literal:
        a, b = pair
        if a < 0 or b < 0:  # INITIAL is -1, which would index the last transaction
            raise IndexError("relations are between transactions, and INITIAL is none: it precedes everyone")
        return self.rows[a][b]

    def _pairwise(self, combine: Callable[[int, int], Literal], name: str) -> "Relation":
        return Relation.where(self.formula, self.size, combine, name)

    def __or__(self, other: "Relation") -> "Relation":
        name = f"{self.name} or {other.name}"
        union = self._pairwise(lambda a, b: self.formula.any_of((self[a, b], other[a, b])), name)
        union.parts = (*self.parts, *other.parts)
        return union

    def __and__(self, other: "Relation") -> "Relation":
        name = f"{_bracketed(self)} and {_bracketed(other)}"
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], other[a, b])), name)

    def __sub__(self, other: "Relation") -> "Relation":
        name = f"{_bracketed(self)} and not {_bracketed(other)}"
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], -other[a, b])), name)

    def then(self, other: "Relation") -> "Relation":
        """Return the composition: (a, c) if (a, b) is in this relation and (b, c) in the other, for some b."""

        def joined(a: int, c: int) -> Literal:
            return self.formula.any_of(
                self.formula.all_of((self[a, b], other[b, c]))
                for b in range(self.size)
                if self[a, b] != FALSE and other[b, c] != FALSE
            )

        return self._pairwise(joined, f"{_bracketed(self)} then {_bracketed(other)}")

    def closure(self) -> "Relation":
        return _Closure(self)

    def _is_ascending(self) -> bool:
        """Return whether a < b for every pair (a, b)."""
        return all(self[a, b] == FALSE for a in range(self.size) for b in range(a + 1))

    def _is_constant(self) -> bool:
        return all(literal in (TRUE, FALSE) for row in self.rows for literal in row)

    def inverse(self) -> "Relation":
        return self._pairwise(lambda a, b: self[b, a], f"{_bracketed(self)} backwards")

    def inside(self, other: "Relation") -> Literal:
        """Return a literal: every pair of this relation is in the other."""
        notes = self.formula.notes
        implications = []
        for a in range(self.size):
            for b in range(self.size):
                if self[a, b] != FALSE:
                    implications.append(self.formula.implies(self[a, b], other[a, b]))
                    if notes is not None:
                        notes.setdefault(implications[-1], Implies(a, b, self, other))
        return self.formula.all_of(implications)

    def irreflexive(self) -> Literal:
        """Return a literal: no transaction is related to itself."""
        return self.formula.all_of(-self[a, a] for a in range(self.size))

    def acyclic(self) -> Literal:
        """Return a literal: the relation has no cycle.

        The literal is equivalent to it: if it is true, a total order contains the relation; if false, the relation is
        ``cyclic``. Both requirements are added to the formula, and the result is cached by the matrix.
        """
        if self._is_ascending():
            return TRUE
        if self._is_constant():
            return FALSE if self.sequence() is None else TRUE
        key = tuple(map(tuple, self.rows))
        cached = self.formula.orders.get(key)
        if cached is None:
            gate, order = self.formula.variable(), TotalOrder(self.formula, self.size)
            for a in range(self.size):
                for b in range(self.size):
                    self.formula.require(-gate, -self[a, b], order.before(a, b))
            self.formula.require(gate, self.cyclic())
            cached = self.formula.orders[key] = gate, order
            if self.formula.notes is not None:
                self.formula.notes[gate] = NoCycle(self, order)
        return cached[0]

    def cyclic(self) -> Literal:
        """Return a literal that the solver can make true exactly if there is a cycle. Use it as a requirement only.

        A cycle exists exactly if some nonempty set contains a successor of each of its members. The set is chosen by
        the solver, so the negation of the literal says nothing.
        """
        members = [self.formula.variable() for _ in range(self.size)]
        stays = [
            self.formula.implies(
                members[a],
                self.formula.any_of(self.formula.all_of((members[b], self[a, b])) for b in range(self.size)),
            )
            for a in range(self.size)
        ]
        return self.formula.all_of((self.formula.any_of(members), *stays))

    def sequence(self) -> list[int] | None:
        """Return all transactions in an order that extends a constant relation, or None if it has a cycle."""
        left, order = list(range(self.size)), list[int]()
        while left:
            first = next((b for b in left if all(self[a, b] != TRUE for a in left)), None)
            if first is None:
                return None
            left.remove(first)
            order.append(first)
        return order


class Implies(NamedTuple):
    """Note on a literal: (a, b) in relation ``one`` implies (a, b) in relation ``other``."""

    a: int
    b: int
    one: Relation
    other: Relation


class NoCycle(NamedTuple):
    """Note on a literal: ``order`` contains ``graph``, which is therefore acyclic."""

    graph: Relation
    order: TotalOrder


def _bracketed(relation: Relation) -> str:
    return f"({relation.name})" if " " in relation.name else relation.name


class _Closure(Relation):
    """The transitive closure. Its matrix is built on demand, because ``irreflexive`` needs only ``acyclic``."""

    def __init__(self, of: Relation) -> None:
        self.formula, self.size, self._of, self.name = of.formula, of.size, of, f"{_bracketed(of)}+"
        self.parts = (self,)
        self._matrix: Rows | None = None

    @property
    @override
    def rows(self) -> Rows:
        if self._matrix is None:
            if self._of._is_constant():
                self._matrix = self._of_constants()
            else:
                self._matrix = self._of_ascending() if self._of._is_ascending() else self._by_squaring()
        return self._matrix

    def _of_constants(self) -> Rows:
        """Warshall's algorithm on bit sets: a transaction that reaches b reaches everything that b reaches."""
        everyone = range(self.size)
        reached = [sum(1 << b for b in everyone if self._of[a, b] == TRUE) for a in everyone]
        for b in everyone:
            for a in everyone:
                if reached[a] >> b & 1:
                    reached[a] |= reached[b]
        return [[TRUE if reached[a] >> b & 1 else FALSE for b in everyone] for a in everyone]

    def _by_squaring(self) -> Rows:
        found, steps = self._of, 1
        while steps < self.size:  # paths of up to 2, 4, 8, … steps
            found, steps = found | found.then(found), 2 * steps
        return found.rows

    def _of_ascending(self) -> Rows:
        """Return the closure of a relation in which a < b for every pair: each path is a shorter path and a step."""
        rows = [[FALSE] * self.size for _ in range(self.size)]
        for a in range(self.size):
            for c in range(a + 1, self.size):
                longer = (self.formula.all_of((rows[a][b], self._of[b, c])) for b in range(a + 1, c))
                rows[a][c] = self.formula.any_of((self._of[a, c], *longer))
        return rows

    @override
    def closure(self) -> Relation:
        return self

    @override
    def irreflexive(self) -> Literal:
        return self._of.acyclic()
