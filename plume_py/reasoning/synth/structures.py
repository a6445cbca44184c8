"""Witness structures that a level declares: what it looks for besides the history.

``order``     a total order of the transactions; it need not contain anything
``versions``  for each key, a total order of the transactions, of which only those that write the key matter
``relation``  any pairs of transactions
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from plume_py.base.logic import FALSE, TRUE, FixedOrder, Formula, Literal, TotalOrder
from plume_py.reasoning.synth.relation import Relation

KINDS = ("order", "versions", "relation")

# By the names of its parts, of which kind each is.
Structure = tuple[tuple[str, str], ...]
# An order and one per key as sequences, any other relation as pairs.
Value = tuple[int, ...] | tuple[tuple[int, ...], ...] | frozenset[tuple[int, int]]


class Declared(NamedTuple):
    """A part of a witness: an order or a relation, or an order for each key."""

    kind: str
    parts: tuple[Relation, ...]

    def seen(self) -> "Relation | tuple[Relation, ...]":
        """As definitions use it."""
        return self.parts if self.kind == "versions" else self.parts[0]


class Variables:
    """A structure that the solver chooses."""

    def __init__(self, formula: Formula, size: int, keys: int, structure: Structure) -> None:
        self.formula, self.size = formula, size
        self.orders: dict[str, list[TotalOrder]] = {}
        self.declared: dict[str, Declared] = {}
        for name, kind in structure:
            if kind == "relation":
                pairs = [[formula.variable() for _ in range(size)] for _ in range(size)]
                self.declared[name] = Declared(kind, (Relation(formula, pairs, name),))
                continue
            orders = self.orders[name] = [TotalOrder(formula, size) for _ in range(keys if kind == "versions" else 1)]
            names = [f"{name}[{x}]" for x in range(keys)] if kind == "versions" else [name]
            found = (Relation.of_order(formula, size, order, of) for order, of in zip(orders, names, strict=True))
            self.declared[name] = Declared(kind, tuple(found))

    def solution(self) -> tuple[tuple[str, str, Value], ...]:
        """In the last solution: name, kind and value of each part."""
        return tuple((name, part.kind, self._value(name, part)) for name, part in self.declared.items())

    def _value(self, name: str, part: Declared) -> Value:
        if part.kind == "relation":
            everyone, (pairs,) = range(self.size), part.parts
            return frozenset((a, b) for a in everyone for b in everyone if self.formula.value(pairs[a, b]))
        found = tuple(tuple(order.solution()) for order in self.orders[name])
        return found if part.kind == "versions" else found[0]


def constants(formula: Formula, size: int, values: Sequence[tuple[str, str, Value]]) -> dict[str, Declared]:
    """A structure that is given."""
    found = {}
    for name, kind, value in values:
        if isinstance(value, frozenset):
            holds: Callable[[int, int], Literal] = _among(value)
            found[name] = Declared(kind, (Relation.where(formula, size, holds, name),))
        else:
            parts = (Relation.of_order(formula, size, FixedOrder(order), name) for order in orders(value, kind))
            found[name] = Declared(kind, tuple(parts))
    return found


def _among(pairs: frozenset[tuple[int, int]]) -> Callable[[int, int], Literal]:
    return lambda a, b: TRUE if (a, b) in pairs else FALSE


def from_order(structure: Structure, keys: int, co: Relation, pairs: Relation) -> dict[str, Declared]:
    """A structure that can be read off a commit order: every order is that one, every relation is ``pairs``."""
    sizes = {"order": (co,), "versions": (co,) * keys, "relation": (pairs,)}
    return {name: Declared(kind, sizes[kind]) for name, kind in structure}


def kept(declared: Mapping[str, Declared], a: int, b: int, x: int) -> Iterator[Literal]:
    """Literals for a before b, both writers of x, in every order that is declared."""
    for part in declared.values():
        if part.kind == "order":
            yield part.parts[0][a, b]
        elif part.kind == "versions":
            yield part.parts[x][a, b]


def edges(value: Value, kind: str, writers: Callable[[int], Sequence[int]]) -> Iterator[tuple[int, int, int | None]]:
    """What there is to draw: pairs, and neighbours in an order; with the key, if there is an order for each."""
    if isinstance(value, frozenset):
        yield from ((a, b, None) for a, b in sorted(value))
    else:
        for x, order in enumerate(orders(value, kind)):
            shown = [t for t in order if t in writers(x)] if kind == "versions" else order
            yield from ((a, b, x if kind == "versions" else None) for a, b in pairwise(shown))


def orders(value: Value, kind: str) -> Sequence[Sequence[int]]:
    """The orders of a part that consists of orders: one, or one for each key."""
    return cast("Sequence[Sequence[int]]", value if kind == "versions" else (value,))


def renumbered(value: Value, kind: str, place: Mapping[int, int]) -> Value:
    """The same of transactions with other numbers."""
    if isinstance(value, frozenset):
        return frozenset((place[a], place[b]) for a, b in value)
    found = tuple(tuple(place[t] for t in order) for order in orders(value, kind))
    return found if kind == "versions" else found[0]


def with_keys(value: Value, kind: str, place: Mapping[int, int]) -> Value:
    """The same of keys with other numbers."""
    if kind != "versions":
        return value
    given = orders(value, kind)
    back = {new: old for old, new in place.items()}
    return tuple(tuple(given[back[x]]) for x in range(len(given)))


def at_random(rng: random.Random, size: int, keys: int, structure: Structure) -> tuple[tuple[str, str, Value], ...]:
    """Any structure; often one that goes by the numbers, as what is well-formed often does."""

    def order() -> tuple[int, ...]:
        found = list(range(size))
        if rng.random() < 0.3:
            rng.shuffle(found)
        return tuple(found)

    def value(kind: str) -> Value:
        if kind == "order":
            return order()
        if kind == "versions":
            return tuple(order() for _ in range(keys))
        share, forward = rng.choice((0.0, 0.3, 0.7, 1.0)), rng.random() < 0.7
        pairs = ((a, b) for a in range(size) for b in range(size) if a < b or not forward)
        return frozenset(pair for pair in pairs if rng.random() < share)

    return tuple((name, kind, value(kind)) for name, kind in structure)
