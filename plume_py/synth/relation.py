"""Binary relations between transactions whose pairs are literals: the algebra in which levels are written."""

from collections.abc import Callable, Sequence

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, Order


class Relation:
    """A square matrix of literals: ``r[a, b]`` is true if a is related to b."""

    def __init__(self, formula: Formula, rows: Sequence[Sequence[Literal]]) -> None:
        self.formula, self.rows, self.size = formula, rows, len(rows)

    @classmethod
    def where(cls, formula: Formula, size: int, holds: Callable[[int, int], Literal]) -> "Relation":
        """The relation that ``holds`` describes, pair by pair."""
        return cls(formula, [[holds(a, b) for b in range(size)] for a in range(size)])

    @classmethod
    def of_order(cls, formula: Formula, size: int, order: Order) -> "Relation":
        """A total order as a relation."""
        return cls.where(formula, size, order.before)

    def __getitem__(self, pair: tuple[int, int]) -> Literal:
        a, b = pair
        if a < 0 or b < 0:  # for a list, -1 would be the last transaction
            raise IndexError("relations are between transactions, and INITIAL is none: it precedes everyone")
        return self.rows[a][b]

    def _pairwise(self, combine: Callable[[int, int], Literal]) -> "Relation":
        return Relation.where(self.formula, self.size, combine)

    def __or__(self, other: "Relation") -> "Relation":
        """In one or the other."""
        return self._pairwise(lambda a, b: self.formula.any_of((self[a, b], other[a, b])))

    def __and__(self, other: "Relation") -> "Relation":
        """In both."""
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], other[a, b])))

    def __sub__(self, other: "Relation") -> "Relation":
        """In this one, but not in the other."""
        return self._pairwise(lambda a, b: self.formula.all_of((self[a, b], -other[a, b])))

    def then(self, other: "Relation") -> "Relation":
        """From a to c, if this goes from a to some b and the other from there to c."""

        def joined(a: int, c: int) -> Literal:
            return self.formula.any_of(
                self.formula.all_of((self[a, b], other[b, c]))
                for b in range(self.size)
                if self[a, b] != FALSE and other[b, c] != FALSE
            )

        return self._pairwise(joined)

    def closure(self) -> "Relation":
        """The least transitive relation that contains this one."""
        if all(self[a, b] == FALSE for a in range(self.size) for b in range(a + 1)):
            return self._closure_upwards()
        found, steps = self, 1
        while steps < self.size:  # paths of up to 2, 4, 8, … steps
            found, steps = found | found.then(found), 2 * steps
        return found

    def _closure_upwards(self) -> "Relation":
        """As ``closure``, if no pair goes back in the numbering: each path is its beginning and a last step."""
        rows = [[FALSE] * self.size for _ in range(self.size)]
        for a in range(self.size):
            for c in range(a + 1, self.size):
                longer = (self.formula.all_of((rows[a][b], self[b, c])) for b in range(a + 1, c))
                rows[a][c] = self.formula.any_of((self[a, c], *longer))
        return Relation(self.formula, rows)

    def inverse(self) -> "Relation":
        """From b to a where this one goes from a to b."""
        return self._pairwise(lambda a, b: self[b, a])

    def inside(self, other: "Relation") -> Literal:
        """Is every pair of this one in the other?"""
        everyone = range(self.size)
        return self.formula.all_of(self.formula.implies(self[a, b], other[a, b]) for a in everyone for b in everyone)

    def irreflexive(self) -> Literal:
        """Is nobody related to itself?"""
        return self.formula.all_of(-self[a, a] for a in range(self.size))

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
