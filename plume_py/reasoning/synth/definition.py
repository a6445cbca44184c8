"""Isolation levels as formulas over a history and a witness.

A history satisfies a level if some witness makes the level's formula true. A definition has one of four forms:

``co``       the witness is a commit order ``w.co``: a total order that contains session order and reads-from;
``vis``      the witness is an arbitration order ``w.ar`` (total) and a visibility relation ``w.vis`` within it.
             Visibility contains session order and reads-from, and every read returns the last visible write;
``history``  there is no witness: the formula is about the history alone;
``own``      the level declares the parts of its witness (orders and relations), and its formula is the only
             requirement.

The module also holds the two other representations of a witness: solver variables (``WitnessVariables``, for a search)
and plain data (``ConcreteWitness``, a solution).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import NamedTuple, cast

from plume_py.base.logic import FALSE, TRUE, FixedOrder, Formula, Literal, TotalOrder
from plume_py.history.model import INITIAL
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation

Form = OneOf["co", "vis", "history", "own"]

# Kinds of witness parts that a level of form ``own`` can declare:
# "order":    a total order of the transactions; it need not contain session order or reads-from;
# "versions": a total order of the transactions per key, of which only the writers of the key matter;
# "relation": any set of pairs of transactions.
KINDS = ("order", "versions", "relation")

# Name and kind of each declared part.
Structure = tuple[tuple[str, str], ...]
# A part as plain data: one sequence for an order, one per key for versions, the pairs of a relation.
PartValue = tuple[int, ...] | tuple[tuple[int, ...], ...] | frozenset[tuple[int, int]]


class WitnessPart(NamedTuple):
    """A declared part of a witness. ``relations`` has one relation, or one per key for the kind "versions"."""

    kind: str
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Witness:
    """The ``w`` of a definition: a commit or arbitration order, a visibility relation, or declared parts by name."""

    order: Relation | None
    visibility: Relation | None = None
    declared: Mapping[str, WitnessPart] = field(default_factory=dict)

    def __getattr__(self, name: str) -> "Relation | tuple[Relation, ...]":
        """Return the declared part of this name: a relation, or one per key."""
        if name.startswith("_") or name not in self.declared:
            raise AttributeError(f"w.{name} is not declared: name it, as in @level(witness={{{name!r}: 'order'}})")
        part = self.declared[name]
        return part.relations if part.kind == "versions" else part.relations[0]

    @property
    def co(self) -> Relation:
        if self.order is None:
            raise TypeError('a level that uses w.co needs @level without form="history"')
        return self.order

    @property
    def ar(self) -> Relation:
        """The arbitration order, which is stored as the commit order."""
        return self.co

    @property
    def vis(self) -> Relation:
        """The visibility relation: (a, b) if a is visible to b."""
        if self.visibility is None:
            raise TypeError('a level that uses w.vis needs @level(form="vis")')
        return self.visibility


Body = Callable[[View, Witness], Literal]
# The condition of an axiom: maps (t1, t2, t3, x) to a literal, see ``axiom``.
Premise = Callable[[int, int, int, int], Literal]


class SourceLine(NamedTuple):
    """The position of a user-defined level in its file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True)
class Definition:
    """The definition of an isolation level.

    ``premise`` is set if the level is an axiom whose premise depends on the history alone, as for RC, RA and TCC.
    ``side`` is a further condition of such a level, also on the history alone. Session order in the formula means
    ``order``, the order between transactions that the level respects.
    """

    name: str
    form: Form
    body: Body
    text: str = ""
    premise: Callable[[View], Premise] | None = None
    side: Callable[[View], Literal] | None = None
    uses_read_order: bool = False  # whether the order of reads, or reading one key twice, can make a difference
    reads_last_visible: bool = True  # form vis: whether every read must return the last visible write
    atomic: bool = False  # form co: whether the level implies RA
    structure: Structure = ()  # form own: the declared parts of the witness
    order: str = DEFAULT_ORDER
    base_name: str | None = None  # the name without its order, if the name includes one
    defined_at: SourceLine | None = None  # set for user-defined levels only

    @property
    def level(self) -> str:
        return self.base_name or self.name

    @property
    def forbids_two_sources(self) -> bool:
        """Whether the level forbids a transaction to read one key from two others.

        Such a level returns the last visible write, of which there is only one.
        """
        return self.atomic or (self.form == "vis" and self.reads_last_visible)

    def in_order(self, order: str, name: str) -> "Definition":
        """Return this level with another order between transactions, under another name."""
        return replace(self, name=name, order=order, base_name=self.level)

    def holds(self, h: View, w: Witness) -> Literal:
        """Return a literal: the witness is well-formed and satisfies the level."""
        return self.holds_in_view(h.in_order(self.order), w)

    def holds_in_view(self, h: View, w: Witness) -> Literal:
        """Return the same as ``holds`` for a view whose session order already is the level's order."""
        if self.form == "history":
            return self.body(h, Witness(None))
        if self.form == "own":
            return self.body(h, w)
        contained = h.base.inside(w.vis if self.form == "vis" else w.co)
        if self.form == "vis" and self.reads_last_visible:
            return h.all((contained, w.vis.inside(w.ar), last_visible(h, w), self.body(h, w)))
        if self.form == "vis":
            return h.all((contained, w.vis.inside(w.ar), self.body(h, w)))
        return h.all((contained, self.body(h, w)))


# -- axioms ------------------------------------------------------------------------------------------------------


def axiom(h: View, co: Relation, premise: Premise) -> Literal:
    """Return the axiom: if t3 reads x from t1, t2 also writes x, and the premise holds, then t2 precedes t1 in co."""
    parts, notes = [], h.formula.notes
    for t1, t2, t3, x, read in h.triples:
        early = FALSE if t1 == INITIAL else co[t2, t1]
        if early != TRUE:
            condition = premise(t1, t2, t3, x)
            parts.append(h.any((-h.all((read, condition)), early)))
            if notes is not None:
                relation = getattr(premise, "relation", None)
                notes.setdefault(parts[-1], AxiomInstance(t1, t2, t3, x, condition, relation, co))
    return h.all(parts)


class AxiomInstance(NamedTuple):
    """Note on a literal: an instance of ``axiom`` for these transactions and this key.

    ``relation`` is set if the premise is that t2 is related to t3.
    """

    t1: int
    t2: int
    t3: int
    x: int
    premise: Literal
    relation: Relation | None
    co: Relation


class seen_by:  # noqa: N801 - definitions call it like a function
    """The premise that t2 is related to t3."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def __call__(self, t1: int, t2: int, t3: int, x: int) -> Literal:
        return self.relation[t2, t3]


def last_visible(h: View, w: Witness) -> Literal:
    """Return a literal: every read returns the last visible write."""
    return axiom(h, w.ar, seen_by(w.vis))


def forced(h: View, premise: Premise) -> tuple[Relation, Literal]:
    """Return the edges t2 -> t1 that an axiom forces, and whether it forces one before the initial state."""
    edges: dict[tuple[int, int], list[Literal]] = {}
    impossible = []
    for t1, t2, t3, x, read in h.triples:
        condition = h.all((read, premise(t1, t2, t3, x)))
        if t1 == INITIAL:
            impossible.append(condition)
        elif condition != FALSE:
            edges.setdefault((t2, t1), []).append(condition)
    return h.relation({pair: h.any(conditions) for pair, conditions in edges.items()}), h.any(impossible)


# -- witnesses as data and as variables --------------------------------------------------------------------------


@dataclass(frozen=True)
class ConcreteWitness:
    """A witness as plain data: transactions in commit or arbitration order, and the visible pairs (form ``vis``).

    For a level that declares its witness, ``declared`` has name, kind and value of each part, and ``order`` is the
    numbering.
    """

    level: str
    order: tuple[int, ...]
    visible_pairs: frozenset[tuple[int, int]] | None = None
    declared: tuple[tuple[str, str, PartValue], ...] = ()

    def for_keys(self, keys: int) -> "ConcreteWitness":
        """Return the witness for a history with more keys, whose versions it orders by number."""
        declared = []
        for name, kind, value in self.declared:
            if kind == "versions":
                orders = tuple(map(tuple, sequences(value, kind)))
                value = orders + (self.order,) * (keys - len(orders))
            declared.append((name, kind, value))
        return replace(self, declared=tuple(declared))

    def witness(self, formula: Formula) -> Witness:
        """Return the witness as relations between constants."""
        size = len(self.order)

        def pairs_relation(pairs: frozenset[tuple[int, int]], name: str = "") -> Relation:
            return Relation.where(formula, size, lambda a, b: TRUE if (a, b) in pairs else FALSE, name)

        if self.declared:
            parts = {}
            for name, kind, value in self.declared:
                if isinstance(value, frozenset):
                    relations = [pairs_relation(value, name)]
                else:
                    orders = map(FixedOrder, sequences(value, kind))
                    relations = [Relation.of_order(formula, size, order, name) for order in orders]
                parts[name] = WitnessPart(kind, tuple(relations))
            return Witness(None, declared=parts)
        co = Relation.of_order(formula, size, FixedOrder(self.order))
        return Witness(co) if self.visible_pairs is None else Witness(co, pairs_relation(self.visible_pairs))


def sequences(value: PartValue, kind: str) -> Sequence[Sequence[int]]:
    """Return the orders of a part of kind "order" (one) or "versions" (one per key)."""
    return cast("Sequence[Sequence[int]]", value if kind == "versions" else (value,))


class WitnessVariables:
    """A witness of a level that the solver chooses. With ``fixed``, its order is the numbering of transactions."""

    def __init__(self, definition: Definition, h: View, fixed: bool = False) -> None:
        formula, size = h.formula, len(h.txns)
        self.definition, self.formula, self.fixed, self.size = definition, formula, fixed, size
        self._orders: dict[str, list[TotalOrder]] = {}  # of the declared parts
        if definition.form == "own":
            parts = {name: self._part(name, kind, len(h.keys)) for name, kind in definition.structure}
            self.witness = Witness(None, declared=parts)
            return
        self.order: FixedOrder | TotalOrder = FixedOrder(range(size)) if fixed else TotalOrder(formula, size)
        co = Relation.of_order(formula, size, self.order, "AR" if definition.form == "vis" else "CM")
        self.witness = Witness(co)
        if definition.form == "vis":
            visible = [[FALSE if co[a, b] == FALSE else formula.variable() for b in range(size)] for a in range(size)]
            self.witness = Witness(co, Relation(formula, visible, "VIS"))

    def _part(self, name: str, kind: str, keys: int) -> WitnessPart:
        formula, size = self.formula, self.size
        if kind == "relation":
            pairs = [[formula.variable() for _ in range(size)] for _ in range(size)]
            return WitnessPart(kind, (Relation(formula, pairs, name),))
        names = [f"{name}[{x}]" for x in range(keys)] if kind == "versions" else [name]
        orders = self._orders[name] = [TotalOrder(formula, size) for _ in names]
        relations = (Relation.of_order(formula, size, order, of) for order, of in zip(orders, names, strict=True))
        return WitnessPart(kind, tuple(relations))

    def solution(self) -> ConcreteWitness:
        """Return the witness in the last solution."""
        name = self.definition.name
        if self.definition.form == "own":
            parts = self.witness.declared.items()
            values = tuple((part_name, part.kind, self._value(part_name, part)) for part_name, part in parts)
            return ConcreteWitness(name, tuple(range(self.size)), declared=values)
        order = self.order.sequence if isinstance(self.order, FixedOrder) else self.order.solution()
        visible = None
        if self.definition.form == "vis":
            visible = self._pairs(self.witness.vis)
        return ConcreteWitness(name, tuple(order), visible)

    def _value(self, name: str, part: WitnessPart) -> PartValue:
        if part.kind == "relation":
            return self._pairs(part.relations[0])
        found = tuple(tuple(order.solution()) for order in self._orders[name])
        return found if part.kind == "versions" else found[0]

    def _pairs(self, relation: Relation) -> frozenset[tuple[int, int]]:
        everyone = range(self.size)
        return frozenset((a, b) for a in everyone for b in everyone if self.formula.value(relation[a, b]))


def version_order(witness: Witness, a: int, b: int, x: int) -> Iterator[Literal]:
    """Yield "a before b" in every order of a witness that orders the writers a and b of key x."""
    if witness.order is not None:
        yield witness.order[a, b]
    for part in witness.declared.values():
        if part.kind == "order":
            yield part.relations[0][a, b]
        elif part.kind == "versions":
            yield part.relations[x][a, b]
