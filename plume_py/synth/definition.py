"""Levels as definitions: a formula over a history and, mostly, a witness.

A history satisfies a level if there is a witness for which the formula is true. There are three forms:

``co``       the witness is a commit order ``w.co``, a total order that contains session order and reads-from;
``vis``      the witness is an arbitration order ``w.ar``, a total order, and a visibility ``w.vis`` within it, which
             contains session order and reads-from; every read returns the last visible write by ``w.ar``;
``history``  no witness: the formula is about the history alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast, overload
from typing import Literal as OneOf

from plume_py.base.errors import IsocheckError
from plume_py.base.logic import FALSE, TRUE, Literal
from plume_py.history.model import INITIAL
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.synth.relation import Relation
from plume_py.synth.view import View

Form = OneOf["co", "vis", "history"]


@dataclass(frozen=True)
class Witness:
    """What shows a level: a commit order, or arbitration (``co`` and ``ar`` are the same) and visibility."""

    order: Relation | None
    visibility: Relation | None = None

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
    order: str = DEFAULT_ORDER
    of: str | None = None  # what it is called without its order, if its name says one

    @property
    def level(self) -> str:
        """Its name without an order."""
        return self.of or self.name

    def in_order(self, order: str, name: str) -> "Definition":
        """The same with another order between transactions."""
        return replace(self, name=name, order=order, of=self.level)

    def holds(self, h: View, w: Witness) -> Literal:
        """Does the witness show the level? It must be well-formed, too."""
        h = h.in_order(self.order)
        if self.form == "history":
            return self.body(h, Witness(None))  # whichever order it looked at, another would do as well
        contained = h.base.inside(w.vis if self.form == "vis" else w.co)
        if self.form == "vis" and self.external:
            return h.all((contained, w.vis.inside(w.ar), last_visible(h, w), self.body(h, w)))
        if self.form == "vis":
            return h.all((contained, w.vis.inside(w.ar), self.body(h, w)))
        return h.all((contained, self.body(h, w)))


def describe_error(error: BaseException) -> str:
    """Kind and message of what code of a user's raised; even its message may fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


@overload
def level(body: Body) -> Definition: ...
@overload
def level(*, form: Form = "co", name: str | None = None) -> Callable[[Body], Definition]: ...


def level(
    body: Body | None = None, *, form: Form = "co", name: str | None = None
) -> Definition | Callable[[Body], Definition]:
    """Make a level of a function of a history ``h`` and a witness ``w``; its name is the function's, unless given."""
    if form not in ("co", "vis", "history"):
        raise ValueError(f"form={form!r} is not a form of levels; use co, vis or history")

    def define(body: Body) -> Definition:
        text = " ".join((body.__doc__ or "").split())
        return Definition(name or body.__name__, form, _guarded(body), text, ordered=True)

    return define if body is None else define(body)


class _Careful:
    """A view for definitions that come from outside: Python's own "and", "or", "not" are no use on literals."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def all(self, literals: Iterable[Literal]) -> Literal:
        """As of the view."""
        return self._view.all(_literal(literal, self._view) for literal in literals)

    def any(self, literals: Iterable[Literal]) -> Literal:
        """As of the view."""
        return self._view.any(_literal(literal, self._view) for literal in literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        """As of the view."""
        return self._view.implies(_literal(a, self._view), _literal(b, self._view))


def _literal(value: Literal, h: View) -> Literal:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < abs(value) <= h.formula.variables:
        raise TypeError(f"{value!r:.40} is no formula: use h.all, h.any, h.implies and -a for and, or, if and not")
    return value


def _guarded(body: Body) -> Body:
    """What goes wrong in a user's definition is told in one line, with its name."""

    def guarded(h: View, w: Witness) -> Literal:
        try:
            return _literal(body(cast(View, _Careful(h)), w), h)
        except IsocheckError:
            raise
        except (Exception, SystemExit) as error:  # a level that exits would pass for an answer
            raise IsocheckError(f"level {body.__name__}: {describe_error(error)}") from error

    return guarded


def axiom(h: View, co: Relation, premise: Premise) -> Literal:
    """If t3 reads x from t1, t2 writes x too, and the premise holds, then t2 comes before t1."""
    parts = []
    for t1, t2, t3, x, read in h.triples:
        early = FALSE if t1 == INITIAL else co[t2, t1]
        if early != TRUE:
            parts.append(h.any((-h.all((read, premise(t1, t2, t3, x))), early)))
    return h.all(parts)


def seen_by(premise: Relation) -> Premise:
    """The premise that t2 is related to t3."""
    return lambda t1, t2, t3, x: premise[t2, t3]


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
