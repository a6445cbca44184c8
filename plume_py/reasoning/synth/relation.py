"""Binary relations between transactions whose pairs are literals: the algebra in which levels are written."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, Order, TotalOrder
from plume_py.base.override import override

Rows = Sequence[Sequence[Literal]]


class Relation:
    """A square matrix of literals: ``r[a, b]`` is true if a is related to b. Its name is for explanations."""

    def __init__(self, formula: Formula, rows: Rows, name: str = "") -> None:
        self.formula, self._rows, self.size, self.name = formula, rows, len(rows), name
        self.parts: tuple[Relation, ...] = (self,)  # whose union it is

    @property
    def rows(self) -> Rows:
        """The matrix."""
        return self._rows

    @classmethod
    def where(cls, formula: Formula, size: int, holds: Callable[[int, int], Literal], name: str = "") -> "Relation":
        """The relation that ``holds`` describes, pair by pair."""
        return cls(formula, [[holds(a, b) for b in range(size)] for a in range(size)], name)

    @classmethod
    def of_order(cls, formula: Formula, size: int, order: Order, name: str = "") -> "Relation":
        """A total order as a relation."""
        return cls.where(formula, size, order.before, name)

    def __getitem__(self, pair: tuple[int, int]) -> Literal:
        a, b = pair
        if a < 0 or b < 0:  # for a list, -1 would be the last transaction
            raise IndexError("relations are between transactions, and INITIAL is none: it precedes everyone")
        return self.rows[a][b]

    def _pairwise(self, combine: Callable[[int, int], Literal], name: str) -> "Relation":
        return Relation.where(self.formula, self.size, combine, name)

    def __or__(self, other: "Relation") -> "Relation":
        """In one or the other."""
        name = f"{self.name} or {other.name}"
        union = self._pairwise(lambda a, b: self.formula.any_of((self[a, b], other[a, b])), name)
        union.parts = (*self.parts, *other.parts)
        return union

    def __and__(self, other: "Relation") -> "Relation":
        """In both."""
        name = f"{_bracketed(self)} and {_bracketed(other)}"
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], other[a, b])), name)

    def __sub__(self, other: "Relation") -> "Relation":
        """In this one, but not in the other."""
        name = f"{_bracketed(self)} and not {_bracketed(other)}"
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], -other[a, b])), name)

    def then(self, other: "Relation") -> "Relation":
        """From a to c, if this goes from a to some b and the other from there to c."""

        def joined(a: int, c: int) -> Literal:
            return self.formula.any_of(
                self.formula.all_of((self[a, b], other[b, c]))
                for b in range(self.size)
                if self[a, b] != FALSE and other[b, c] != FALSE
            )

        return self._pairwise(joined, f"{_bracketed(self)} then {_bracketed(other)}")

    def closure(self) -> "Relation":
        """The least transitive relation that contains this one."""
        return _Closure(self)

    def _goes_up(self) -> bool:
        """Does no pair go back in the numbering?"""
        return all(self[a, b] == FALSE for a in range(self.size) for b in range(a + 1))

    def _is_constant(self) -> bool:
        return all(literal in (TRUE, FALSE) for row in self.rows for literal in row)

    def inverse(self) -> "Relation":
        """From b to a where this one goes from a to b."""
        return self._pairwise(lambda a, b: self[b, a], f"{_bracketed(self)} backwards")

    def inside(self, other: "Relation") -> Literal:
        """Is every pair of this one in the other?"""
        notes = self.formula.notes
        asked = []
        for a in range(self.size):
            for b in range(self.size):
                if self[a, b] != FALSE:
                    asked.append(self.formula.implies(self[a, b], other[a, b]))
                    if notes is not None:
                        notes.setdefault(asked[-1], Implies(a, b, self, other))
        return self.formula.all_of(asked)

    def irreflexive(self) -> Literal:
        """Is nobody related to itself?"""
        return self.formula.all_of(-self[a, a] for a in range(self.size))

    def acyclic(self) -> Literal:
        """Is there no cycle? If so, some total order contains this; if not, some set has no way out of it."""
        if self._goes_up():
            return TRUE
        if self._is_constant():
            return FALSE if self.sequence() is None else TRUE
        key = tuple(map(tuple, self.rows))
        known = self.formula.orders.get(key)
        if known is None:
            gate, order = self.formula.variable(), TotalOrder(self.formula, self.size)
            for a in range(self.size):
                for b in range(self.size):
                    self.formula.require(-gate, -self[a, b], order.before(a, b))
            self.formula.require(gate, self.cyclic())
            known = self.formula.orders[key] = gate, order
            if self.formula.notes is not None:
                self.formula.notes[gate] = NoCycle(self, order)
        return known[0]

    def cyclic(self) -> Literal:
        """A literal that can be made true exactly if there is a cycle; for use as a requirement, not its opposite.

        A cycle exists if and only if some set, not empty, has a successor within it for each of its members.
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
        """Of a relation between constants: everyone, in an order that extends it; None if it has a cycle."""
        left, order = list(range(self.size)), list[int]()
        while left:
            first = next((b for b in left if all(self[a, b] != TRUE for a in left)), None)
            if first is None:
                return None
            left.remove(first)
            order.append(first)
        return order


class Implies(NamedTuple):
    """What is noted of a literal: if a is related to b by the one, then by the other."""

    a: int
    b: int
    one: Relation
    other: Relation


class NoCycle(NamedTuple):
    """What is noted of a literal: the graph has no cycle, since the order contains it."""

    graph: Relation
    order: TotalOrder


def _bracketed(relation: Relation) -> str:
    return f"({relation.name})" if " " in relation.name else relation.name


class _Closure(Relation):
    """The closure of a relation. Its pairs are made when they are asked for: whether it has a cycle is simpler."""

    def __init__(self, of: Relation) -> None:
        self.formula, self.size, self._of, self.name = of.formula, of.size, of, f"{_bracketed(of)}+"
        self.parts = (self,)
        self._made: Rows | None = None

    @property
    @override
    def rows(self) -> Rows:
        if self._made is None:
            if self._of._is_constant():
                self._made = self._of_constants()
            else:
                self._made = self._upwards() if self._of._goes_up() else self._by_squares()
        return self._made

    def _of_constants(self) -> Rows:
        """What can be reached, as bits: whoever reaches b reaches all that b does."""
        everyone = range(self.size)
        reached = [sum(1 << b for b in everyone if self._of[a, b] == TRUE) for a in everyone]
        for b in everyone:
            for a in everyone:
                if reached[a] >> b & 1:
                    reached[a] |= reached[b]
        return [[TRUE if reached[a] >> b & 1 else FALSE for b in everyone] for a in everyone]

    def _by_squares(self) -> Rows:
        found, steps = self._of, 1
        while steps < self.size:  # paths of up to 2, 4, 8, … steps
            found, steps = found | found.then(found), 2 * steps
        return found.rows

    def _upwards(self) -> Rows:
        """If no pair goes back in the numbering, each path is its beginning and a last step."""
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
