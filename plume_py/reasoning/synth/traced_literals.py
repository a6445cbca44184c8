"""A given history whose facts are variables, and a formula that notes what its literals say: for explanations.

A search for a witness may take facts as constants, and what is impossible then folds away to "false". Here they stay,
so that a contradiction can be traced back to the instances of axioms, and the sessions and times, that it needs.
"""

from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import NamedTuple

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.override import override
from plume_py.reasoning.synth.concrete_history import Concrete, ConcreteView


class TxnNumber(int):
    """A transaction by number: so that an explanation can tell it from a key."""


class KeyNumber(int):
    """A key by number."""


class Said(NamedTuple):
    """What is noted of a literal that a definition puts into words of its own: where, and of whom."""

    file: str
    line: int
    txns: tuple[tuple[str, int], ...]  # the variables of the definition, and what they stand for
    keys: tuple[tuple[str, int], ...]


class TracedView(ConcreteView):
    """A history that is known, in variables. Those of sessions and times are assumed one by one, all others hold."""

    def __init__(self, formula: Formula, concrete: Concrete) -> None:
        super().__init__(formula, concrete)
        formula.notes = {}
        self.txns = tuple(map(TxnNumber, self.txns))  # type: ignore[assignment]  # a range as far as anyone asks
        self.keys = tuple(map(KeyNumber, self.keys))  # type: ignore[assignment]
        self._facts: dict[tuple[object, ...], Literal] = {}
        self.before: dict[Literal, tuple[str, int, int]] = {}  # literals for a before b, by session or time

    def _fact(self, holds: Literal, *what: object) -> Literal:
        """A variable that is true, once for each fact; what does not hold is false all the same."""
        if holds == FALSE:
            return FALSE
        if what not in self._facts:
            self._facts[what] = self.formula.variable()
            if what[0] not in ("SO", "RT"):
                self.formula.require(self._facts[what])
        return self._facts[what]

    def _order_fact(self, holds: Literal, kind: str, a: int, b: int) -> Literal:
        literal = self._fact(holds, kind, a, b)
        if literal != FALSE:
            self.before[literal] = kind, a, b
        return literal

    @override
    def writes(self, t: int, x: int) -> Literal:
        return self._fact(super().writes(t, x), "w", t, x)

    @override
    def reads(self, t: int, x: int, source: int) -> Literal:
        return self._fact(super().reads(t, x, source), "r", t, x, source)

    @override
    def session(self, a: int, b: int) -> Literal:
        return self._order_fact(super().session(a, b), "SO", a, b)

    @override
    def realtime(self, a: int, b: int) -> Literal:
        return self._order_fact(super().realtime(a, b), "RT", a, b)

    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """A fact like others."""
        return self._fact(super().read_earlier(t, y, u, x, source), "rr", t, y, u, x, source)

    @override
    def noted(self, literals: Iterable[Literal]) -> Iterator[Literal]:
        notes = self.formula.notes
        for literal in literals:
            frame = literals.gi_frame if isinstance(literals, GeneratorType) else None
            if notes is not None and frame is not None and literal not in (TRUE, FALSE):
                bound = {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}
                txns = tuple((name, int(v)) for name, v in bound.items() if isinstance(v, TxnNumber))
                keys = tuple((name, int(v)) for name, v in bound.items() if isinstance(v, KeyNumber))
                notes.setdefault(literal, Said(frame.f_code.co_filename, frame.f_lineno, txns, keys))
            yield literal
