"""Levels as definitions: a formula over a history and, mostly, a witness.

A history satisfies a level if there is a witness for which the formula is true. There are four forms:

``co``       the witness is a commit order ``w.co``, a total order that contains session order and reads-from;
``vis``      the witness is an arbitration order ``w.ar``, a total order, and a visibility ``w.vis`` within it, which
             contains session order and reads-from; every read returns the last visible write by ``w.ar``;
``history``  no witness: the formula is about the history alone;
``own``      the level declares what its witness consists of, and says all that is asked of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Literal
from plume_py.history.model import INITIAL
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.structures import Declared, Structure

Form = OneOf["co", "vis", "history", "own"]


@dataclass(frozen=True)
class Witness:
    """What shows a level: a commit order, or arbitration (``co`` and ``ar`` are the same) and visibility."""

    order: Relation | None
    visibility: Relation | None = None
    declared: Mapping[str, Declared] = field(default_factory=dict)  # by name, of a level that declares its witness

    def __getattr__(self, name: str) -> "Relation | tuple[Relation, ...]":
        """What a level has declared under this name."""
        if name.startswith("_") or name not in self.declared:
            raise AttributeError(f"w.{name} is not declared: name it, as in @level(witness={{{name!r}: 'order'}})")
        return self.declared[name].seen()

    @property
    def co(self) -> Relation:
        """The commit order."""
        if self.order is None:
            raise TypeError('a level that uses w.co needs @level without form="history"')
        return self.order

    @property
    def ar(self) -> Relation:
        """Arbitration: the total order of a witness."""
        return self.co

    @property
    def vis(self) -> Relation:
        """Who is seen by whom."""
        if self.visibility is None:
            raise TypeError('a level that uses w.vis needs @level(form="vis")')
        return self.visibility


Body = Callable[[View, Witness], Literal]
# Does the axiom of a weak level ask for t2 before t1? Of (t1, t2, t3, x), by the history alone.
Premise = Callable[[int, int, int, int], Literal]


class Written(NamedTuple):
    """Where a user's level stands."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True)
class Definition:
    """A level.

    ``premise`` is there if it is an axiom whose premise is about the history alone, ``side`` if such a level also asks
    for something without an axiom. Wherever it speaks of session order, ``order`` between transactions is meant.
    """

    name: str
    form: Form
    body: Body
    text: str = ""
    premise: Callable[[View], Premise] | None = None
    side: Callable[[View], Literal] | None = None
    ordered: bool = False  # does it look at the order of reads, or at reads of one key from several transactions?
    external: bool = True  # form vis: does every read return the last visible write?
    atomic: bool = False  # form co: does it imply read atomic?
    structure: Structure = ()  # form own: what its witness consists of
    order: str = DEFAULT_ORDER
    of: str | None = None  # what it is called without its order, if its name says one
    written: Written | None = None  # where, if it is a user's own

    @property
    def level(self) -> str:
        """Its name without an order."""
        return self.of or self.name

    @property
    def one_source(self) -> bool:
        """Is it broken whenever a transaction reads a key from two others? Of two that are visible only one is last."""
        return self.atomic or (self.form == "vis" and self.external)

    def in_order(self, order: str, name: str) -> "Definition":
        """The same with another order between transactions."""
        return replace(self, name=name, order=order, of=self.level)

    def holds(self, h: View, w: Witness) -> Literal:
        """Does the witness show the level? It must be well-formed, too."""
        return self.shown(h.in_order(self.order), w)

    def shown(self, h: View, w: Witness) -> Literal:
        """As ``holds``, of a history in which session order is the order that counts."""
        if self.form == "history":
            return self.body(h, Witness(None))  # whichever order it looked at, another would do as well
        if self.form == "own":
            return self.body(h, w)
        contained = h.base.inside(w.vis if self.form == "vis" else w.co)
        if self.form == "vis" and self.external:
            return h.all((contained, w.vis.inside(w.ar), last_visible(h, w), self.body(h, w)))
        if self.form == "vis":
            return h.all((contained, w.vis.inside(w.ar), self.body(h, w)))
        return h.all((contained, self.body(h, w)))


def axiom(h: View, co: Relation, premise: Premise) -> Literal:
    """If t3 reads x from t1, t2 writes x too, and the premise holds, then t2 comes before t1."""
    parts, notes = [], h.formula.notes
    for t1, t2, t3, x, read in h.triples:
        early = FALSE if t1 == INITIAL else co[t2, t1]
        if early != TRUE:
            asked = premise(t1, t2, t3, x)
            parts.append(h.any((-h.all((read, asked)), early)))
            if notes is not None:
                relation = getattr(premise, "relation", None)
                notes.setdefault(parts[-1], Obeyed(t1, t2, t3, x, asked, relation, co))
    return h.all(parts)


class Obeyed(NamedTuple):
    """What is noted of a literal: t3 read x from t1, t2 wrote x, and if that is related to t3, it precedes t1."""

    t1: int
    t2: int
    t3: int
    x: int
    premise: Literal
    relation: Relation | None  # if the premise is that t2 is related to t3
    co: Relation


class seen_by:  # noqa: N801 - a premise is a function
    """The premise that t2 is related to t3."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def __call__(self, t1: int, t2: int, t3: int, x: int) -> Literal:
        """Of t1, t2, t3 and x."""
        return self.relation[t2, t3]


def last_visible(h: View, w: Witness) -> Literal:
    """Every read returns the last visible write."""
    return axiom(h, w.ar, seen_by(w.vis))


def forced(h: View, premise: Premise) -> tuple[Relation, Literal]:
    """The edges t2 -> t1 that an axiom forces, and whether it asks for one that comes before the initial state."""
    edges: dict[tuple[int, int], list[Literal]] = {}
    impossible = []
    for t1, t2, t3, x, read in h.triples:
        demand = h.all((read, premise(t1, t2, t3, x)))
        if t1 == INITIAL:
            impossible.append(demand)
        elif demand != FALSE:
            edges.setdefault((t2, t1), []).append(demand)
    return h.relation({pair: h.any(demands) for pair, demands in edges.items()}), h.any(impossible)
