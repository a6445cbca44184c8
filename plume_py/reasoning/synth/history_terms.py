"""The vocabulary of definitions: the terms in which a level speaks about a history (``h`` in a definition).

Every term is a literal, or a relation of literals. The same definition therefore serves three purposes:

- In ``SymbolicHistory`` the literals are solver variables: the search looks for a history.
- In ``ConcreteView`` they are constants: the history is given, and the formula folds to true or false.
- In ``TracedView`` (judge.py) the history is given as variables, so that a contradiction names the facts it needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.override import override
from plume_py.history.model import INITIAL
from plume_py.levels.orders import DEFAULT_ORDER, NONE, PER_KEY
from plume_py.reasoning.synth.relation import Relation

NO_TIMES = "a history without times has no real time"


class View(ABC):
    """A history over the transactions ``txns`` and the keys ``keys``, both numbered from 0."""

    def __init__(self, formula: Formula, txns: int, keys: int) -> None:
        self.formula = formula
        self.txns, self.keys = range(txns), range(keys)
        self._in_order: dict[str, View] = {DEFAULT_ORDER: self}

    @abstractmethod
    def writes(self, t: int, x: int) -> Literal:
        """Return a literal: t writes x."""

    @abstractmethod
    def reads(self, t: int, x: int, source: int) -> Literal:
        """Return a literal: t reads x from ``source``, which is another transaction or INITIAL."""

    @abstractmethod
    def session(self, a: int, b: int) -> Literal:
        """Return a literal: a precedes b in one session."""

    @abstractmethod
    def realtime(self, a: int, b: int) -> Literal:
        """Return a literal: a ended before b began."""

    @abstractmethod
    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """Return a literal: t read y from u, and later x from ``source``."""

    @abstractmethod
    def at(self, t: int, level: str) -> Literal:
        """Return a literal: t runs at this level."""

    def in_order(self, order: str) -> "View":
        """Return this history with another order between transactions in place of session order."""
        if order not in self._in_order:
            self._in_order[order] = _ReorderedView(self, order)
        return self._in_order[order]

    # -- logic ---------------------------------------------------------------------------------------------------

    def noted(self, literals: Iterable[Literal]) -> Iterable[Literal]:
        """Return the literals. ``TracedView`` also notes the origin of each one, for explanations."""
        return literals

    def all(self, literals: Iterable[Literal]) -> Literal:
        return self.formula.all_of(self.noted(literals))

    def any(self, literals: Iterable[Literal]) -> Literal:
        return self.formula.any_of(literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        return self.formula.implies(a, b)

    def relation(self, holds: "dict[tuple[int, int], Literal]", name: str = "") -> Relation:
        """Return the relation with these literals; all other pairs are false."""
        return Relation.where(self.formula, len(self.txns), lambda a, b: holds.get((a, b), FALSE), name)

    # -- what follows --------------------------------------------------------------------------------------------

    @cached_property
    def so(self) -> Relation:
        return Relation.where(self.formula, len(self.txns), self.session, "SO")

    @cached_property
    def wr(self) -> Relation:
        """Reads-from: a -> b if b read some key from a."""

        def read(a: int, b: int) -> Literal:
            return FALSE if a == b else self.any(self.reads(b, x, a) for x in self.keys)

        return Relation.where(self.formula, len(self.txns), read, "WR")

    @cached_property
    def base(self) -> Relation:
        return self.so | self.wr

    @cached_property
    def causal(self) -> Relation:
        """CO: the transitive closure of session order and reads-from."""
        closure = self.base.closure()
        closure.name = "CO"
        return closure

    @cached_property
    def conflict(self) -> Relation:
        """Pairs of transactions that write a common key."""

        def both(a: int, b: int) -> Literal:
            return FALSE if a == b else self.any(self.all((self.writes(a, x), self.writes(b, x))) for x in self.keys)

        return Relation.where(self.formula, len(self.txns), both, "conflict")

    def versions(self, orders: "Relation | Sequence[Relation]") -> Relation:
        """Return WW: a -> b if both write a key and a precedes b in ``orders``: one order, or one per key."""

        def written(a: int, b: int) -> Literal:
            return FALSE if a == b else self.any(self._written(a, b, x, orders) for x in self.keys)

        return Relation.where(self.formula, len(self.txns), written, "WW")

    def _written(self, a: int, b: int, x: int, orders: "Relation | Sequence[Relation]") -> Literal:
        order = orders if isinstance(orders, Relation) else orders[x]
        return self.all((self.writes(a, x), self.writes(b, x), order[a, b]))

    def overwrites(self, orders: "Relation | Sequence[Relation]") -> Relation:
        """Return RW: a -> b if a read a version of a key that precedes the one by b in ``orders``."""
        pairs: dict[tuple[int, int], list[Literal]] = {}
        for t1, b, a, x, read in self.triples:
            order = orders if isinstance(orders, Relation) else orders[x]
            later = TRUE if t1 == INITIAL else order[t1, b]
            pairs.setdefault((a, b), []).append(self.all((read, later)))
        return self.relation({pair: self.any(ways) for pair, ways in pairs.items()}, "RW")

    def updates(self, t: int) -> Literal:
        return self.any(self.writes(t, x) for x in self.keys)

    def touches(self, t: int, x: int) -> Literal:
        return self.any((self.writes(t, x), *(self.reads(t, x, source) for source in self.sources(t))))

    def read_before(self, t: int, u: int, x: int, source: int) -> Literal:
        """Return a literal: t read any key from u, and later x from ``source``."""
        return self.any(self.read_earlier(t, y, u, x, source) for y in self.keys)

    def sources(self, t: int) -> list[int]:
        """Return the possible writers of what t reads."""
        return [INITIAL, *(u for u in self.txns if u != t)]

    @cached_property
    def triples(self) -> "list[tuple[int, int, int, int, Literal]]":
        """All possible (t1, t2, t3, x, literal), where the literal says: t3 reads x from t1, and t2 also writes x."""
        found = []
        for t3 in self.txns:
            for x in self.keys:
                for t1 in self.sources(t3):
                    read = self.reads(t3, x, t1)
                    if read == FALSE:
                        continue
                    for t2 in self.txns:
                        if t2 not in (t1, t3) and self.writes(t2, x) != FALSE:
                            found.append((t1, t2, t3, x, self.all((read, self.writes(t2, x)))))
        return found


class _ReorderedView(View):
    """A view with another session order: no order, or session order extended by real time (for all or per key)."""

    def __init__(self, given: View, order: str) -> None:
        super().__init__(given.formula, len(given.txns), len(given.keys))
        self._given, self._order = given, order
        self.txns, self.keys = given.txns, given.keys

    @override
    def noted(self, literals: Iterable[Literal]) -> Iterable[Literal]:
        return self._given.noted(literals)

    @override
    def session(self, a: int, b: int) -> Literal:
        if self._order == NONE:
            return FALSE
        early = self._given.realtime(a, b)
        if self._order == PER_KEY and early != FALSE:
            early = self.all((early, self.any(self.all((self.touches(a, x), self.touches(b, x))) for x in self.keys)))
        return self.any((self._given.session(a, b), early))

    @override
    def in_order(self, order: str) -> View:
        return self._given.in_order(order)

    @override
    def writes(self, t: int, x: int) -> Literal:
        return self._given.writes(t, x)

    @override
    def reads(self, t: int, x: int, source: int) -> Literal:
        return self._given.reads(t, x, source)

    @override
    def realtime(self, a: int, b: int) -> Literal:
        return self._given.realtime(a, b)

    @override
    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        return self._given.read_earlier(t, y, u, x, source)

    @override
    def at(self, t: int, level: str) -> Literal:
        return self._given.at(t, level)
