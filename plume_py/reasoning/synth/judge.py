"""``judge``: decide whether a history satisfies a level, given only the level's definition.

A solver searches for a witness, so only small histories can be decided. "Holds" is reported only after the definition
was evaluated for the witness. "Violated" comes with reasons: instances of axioms that contradict each other.

Explanations work as follows. The definition is a conjunction of instances, and notes on its literals record what each
instance says. The history is given as variables (``TracedView``), because constants would fold an impossible definition
to "false". The solver names a contradictory subset of instances (an unsatisfiable core), from which instances are
removed one by one as long as the others still contradict each other.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import GeneratorType
from typing import NamedTuple

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.override import override
from plume_py.checking.result import NOT_EXPLAINED
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import INITIAL, History
from plume_py.levels.orders import TIMED
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteView, LabeledHistory
from plume_py.reasoning.synth.definition import (
    AxiomInstance,
    ConcreteWitness,
    Definition,
    Witness,
    WitnessVariables,
    version_order,
)
from plume_py.reasoning.synth.formulas import definition
from plume_py.reasoning.synth.problem import witness_of
from plume_py.reasoning.synth.recheck import DefectError
from plume_py.reasoning.synth.relation import Implies, NoCycle, Relation
from plume_py.reasoning.synth.user_levels import require_equal_treatment

# The largest number of transactions. The size of the formula grows with its third power.
MOST_JUDGED = 200
# Contradictions are minimized in this many random orders, and the shortest one is reported.
ATTEMPTS = 5

UNREADABLE = "some reads are wrong by themselves (TAP a to f), and its definition cannot speak of them"
UNTIMED = "the history does not say when its transactions began and ended"


@dataclass(frozen=True)
class Reason:
    """One of the statements that contradict each other. ``edge`` draws it: (from, to, name, whether forbidden)."""

    words: str
    txns: tuple[int, ...]
    edge: tuple[int, int, str, bool] | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict on one level: ``ok`` is None if undecided.

    ``why``: the reason why the level is undecided, or why a violation is not explained. ``flaws``: the patterns of
    flawed single reads (TAP a to f) and lists, which violate every level.
    """

    level: str
    form: str
    order: str
    ok: bool | None
    history: LabeledHistory | None = None
    witness: ConcreteWitness | None = None
    reasons: tuple[Reason, ...] = ()
    flaws: tuple[str, ...] = ()
    why: str = ""


def judge(
    history: History, level: str | Definition, limits: Limits | None = None, *, explain: bool = True
) -> Judgement:
    """Decide whether the history satisfies the level. With ``explain``, also search for reasons, which takes longer.

    >>> from plume_py import HistoryBuilder
    >>> from plume_py.reasoning.synth.judge import judge
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("a", [("r", "x", 0), ("w", "x", 1)])
    >>> builder.add("b", [("r", "x", 0), ("w", "x", 2)])
    >>> judge(builder.build(), "NLU").ok
    False
    """
    found, limits = level if isinstance(level, Definition) else definition(level), limits or Limits()
    require_equal_treatment(found)
    undecided = partial(Judgement, found.name, found.form, found.order, None)
    if history.transactions > MOST_JUDGED:
        size = f"{history.transactions:,} transactions; levels by their definitions are decided up to {MOST_JUDGED}"
        return undecided(why=size)
    if found.order in TIMED and history.times is None:
        return undecided(why=UNTIMED)
    try:
        judged = _judged(found, LabeledHistory.of_history(history), limits, explain)
        if judged.ok is False and history.init_guessed:
            return _judged(found, LabeledHistory.of_history(as_ordinary(history, declared=True)), limits, explain)
        return judged
    except LimitError as error:
        return undecided(why=str(error))


def _judged(level: Definition, history: LabeledHistory, limits: Limits, explain: bool) -> Judgement:
    def judgement(ok: bool | None, **details: object) -> Judgement:
        return Judgement(level.name, level.form, level.order, ok, history, **details)  # type: ignore[arg-type]

    if history.flaws and level.form == "own":
        return judgement(None, why=UNREADABLE)
    if history.flaws:
        return judgement(False, flaws=history.flaws)
    witness = _witness(level, history, limits)
    if witness is not None:
        _confirm(level, history, witness)
        return judgement(True, witness=witness)
    if not explain:
        return judgement(False)
    try:
        return judgement(False, reasons=Explanation(level, history, limits).reasons())
    except LimitError:
        return judgement(False, why=NOT_EXPLAINED)


def _witness(level: Definition, history: LabeledHistory, limits: Limits) -> ConcreteWitness | None:
    """Return a witness that satisfies the level and agrees with the order of appends that lists show, or None."""
    if not history.versions or level.form == "history":
        return witness_of(level, history.concrete, limits=limits)
    with Formula(limits) as formula:
        h = ConcreteView(formula, history.concrete)
        variables = WitnessVariables(level, h)
        formula.require(level.holds(h, variables.witness))
        for version in history.versions:
            for literal in version_order(variables.witness, *version):
                formula.require(literal)
        return variables.solution() if formula.solve(limits=limits) else None


def _confirm(level: Definition, history: LabeledHistory, found: ConcreteWitness) -> None:
    """Raise DefectError unless the definition is true for the witness."""
    with Formula() as formula:
        witness = found.witness(formula) if level.form != "history" else Witness(None)
        agrees = all(literal == TRUE for version in history.versions for literal in version_order(witness, *version))
        if level.holds(ConcreteView(formula, history.concrete), witness) != TRUE or not agrees:
            raise DefectError(f"{level.name}: the witness does not show it")


# -- explanations ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ListOrder:
    """Note on a literal: lists show a before b."""

    a: int
    b: int


@dataclass(frozen=True)
class _GraphEdge:
    """Note on a literal: the edge (a, b) of a relation within an acyclic graph."""

    a: int
    b: int
    relation: Relation


class Explanation:
    """The search for a small contradiction, and its words."""

    def __init__(self, definition: Definition, history: LabeledHistory, limits: Limits) -> None:
        self.definition, self.history, self.limits = definition, history, limits

    def reasons(self) -> tuple[Reason, ...]:
        """Return statements that contradict each other. If a limit ends the search, some may be superfluous."""
        with Formula(self.limits) as formula:
            self.formula, self.view = formula, TracedView(formula, self.history.concrete)
            core = self._core(self._instances())
            self.assumed = [literal for literal in core if literal in self.view.before]
            before = {self.view.before[literal] for literal in self.assumed}
            reasons = [self._reason(literal, before) for literal in core if literal not in self.view.before]
            edges = {reason.edge[:2] for reason in reasons if reason.edge is not None}
            reasons += [self._before(*fact) for fact in sorted(before) if fact[1:] not in edges]
            return tuple(dict.fromkeys(sorted(reasons, key=lambda reason: (reason.edge is None, reason.txns))))

    # -- the contradiction -----------------------------------------------------------------------------------------

    def _instances(self) -> list[Literal]:
        """Return literals that would all have to be true if the history satisfied the level."""
        if self.definition.form == "history":
            return self._conjuncts(self.definition.holds(self.view, Witness(None)))
        variables = WitnessVariables(self.definition, self.view)
        found = self._conjuncts(self.definition.holds(self.view, variables.witness))
        for a, b, x in sorted(self.history.versions):
            for literal in version_order(variables.witness, a, b, x):
                self._notes.setdefault(literal, _ListOrder(a, b))
                found.append(literal)
        return found

    @property
    def _notes(self) -> dict[Literal, object]:
        assert self.formula.notes is not None
        return self.formula.notes

    def _conjuncts(self, literal: Literal) -> list[Literal]:
        """Return the instances of a conjunction. "Visibility is within arbitration" is required, not an instance."""
        formula, found = self.formula, list[Literal]()
        for part in formula.conjuncts(literal):
            note = self._notes.get(part)
            if isinstance(note, NoCycle):
                found += self._graph_edges(note)
            elif isinstance(note, Implies) and (note.one.name, note.other.name) == ("VIS", "AR"):
                formula.require(part)
            else:
                found.append(part)
        return found

    def _graph_edges(self, note: NoCycle) -> Iterator[Literal]:
        """Yield an instance per edge of an acyclic graph: the order contains it."""
        everyone = range(note.graph.size)
        for relation in note.graph.parts:
            for a in everyone:
                for b in everyone:
                    literal = self.formula.implies(relation[a, b], note.order.before(a, b))
                    if self.formula.conjuncts(literal):
                        self._notes.setdefault(literal, _GraphEdge(a, b, relation))
                        yield literal

    def _core(self, instances: Sequence[Literal]) -> list[Literal]:
        """Return a contradictory subset from which no literal can be removed, as far as the limits allow."""
        assumed = [*self.view.before, *instances]
        rng, best = random.Random(0), self._contradiction(assumed)
        with suppress(LimitError):
            for _ in range(ATTEMPTS):
                best = min(best, self._minimal(self._contradiction(assumed)), key=len)
                rng.shuffle(assumed)
        return best

    def _contradiction(self, assumed: Sequence[Literal]) -> list[Literal]:
        if self.formula.solve(assumed, self.limits):
            raise AssertionError(f"{self.definition.name}: there is a witness after all")
        needed = self.formula.core()
        return [literal for literal in assumed if literal in needed]

    def _minimal(self, core: list[Literal]) -> list[Literal]:
        for literal in core[::-1]:
            others = [other for other in core if other != literal]
            if literal in core and not self.formula.solve(others, self.limits):
                needed = self.formula.core()
                core = [other for other in others if other in needed]
        return core

    # -- words -----------------------------------------------------------------------------------------------------

    def _reason(self, literal: Literal, before: Iterable[tuple[str, int, int]]) -> Reason:
        note, name = self._notes.get(literal), self.history.txn
        match note:
            case Implies(a, b, one, other) if one.name == "SO or WR" and other.name in ("VIS", "AR", "CM"):
                so = f"it sees {name(a)}" if other.name == "VIS" else f"{name(a)} comes before it"
                return Reason(f"{self._follows(a, b, before)}, so {so}", (a, b), (a, b, other.name, False))
            case Implies(a, b, one, other):
                words = f"{self._arrow(a, one, b)} asks for {self._arrow(a, other, b)}"
                return Reason(words, (a, b), (a, b, f"{one.name}: {other.name}", False))
            case AxiomInstance():
                return self._axiom_instance(note)
            case _ListOrder(a, b):
                words = f"{name(a)} comes before {name(b)}, as lists show"
                return Reason(words, (a, b), (a, b, "WW", False))
            case _GraphEdge(a, b, relation):
                words = f"{self._arrow(a, relation, b)}: without a cycle, {name(a)} comes before {name(b)}"
                return Reason(words, (a, b), (a, b, relation.name, False))
            case DefinitionLine(file, line, txns, keys):
                where = self._where(file, line)
                of = [f"{v} = {name(t)}" for v, t in txns] + [f"{v} = {self.history.key(x)}" for v, x in keys]
                return Reason(f"{where}: {', '.join(of)}", tuple(t for _, t in txns))
        return Reason(f"what {self.definition.name} says as a whole", ())

    def _where(self, file: str, line: int) -> str:
        """Return the position in a user's file, or the text of a built-in level."""
        if self.definition.defined_at is None:
            return self.definition.text
        return f"line {line}" if file == self.definition.defined_at.file else "a level that it builds on"

    def _arrow(self, a: int, relation: Relation, b: int) -> str:
        return f"{self.history.txn(a)} -{relation.name or 'related'}-> {self.history.txn(b)}"

    def _axiom_instance(self, note: AxiomInstance) -> Reason:
        """Return the words for an instance of an axiom. A premise without a relation is reported as visibility."""
        t1, t2, t3, x, premise, relation, co = note
        name, key = self.history.txn, self.history.key(x)
        overwritten = f"{name(t3)} read the initial {key}, which {name(t2)} overwrote"
        both = f"{name(t3)} read {key} from {name(t1)}, and {name(t2)} wrote {key}, too"
        if relation is None:
            visible, certain = f"the level has {name(t3)} see {name(t2)}", self._is_certain(premise)
            never = f", though {visible}" if certain else f", so it must not be that {visible}"
            follows = f", and {visible}: so" if certain else f": if {visible}, then"
        elif relation.name == "VIS":
            never, follows = f", so it does not see {name(t2)}", f": if it sees {name(t2)}, then"
        else:
            arrow = self._arrow(t2, relation, t3)
            never, follows = f", so not {arrow}", f": if {arrow}, then"
        if t1 == INITIAL:
            edge_name = "seen" if relation is None else relation.name
            return Reason(f"{overwritten}{never}", (t2, t3), (t2, t3, edge_name, True))
        return Reason(f"{both}{follows} {name(t2)} comes before {name(t1)}", (t1, t2, t3), (t2, t1, co.name, False))

    def _is_certain(self, premise: Literal) -> bool:
        """Return whether the premise follows from the history and from those session and time edges that the report
        shows. Return False if a limit is reached.
        """
        with suppress(LimitError):
            return not self.formula.solve([*self.assumed, -premise], self.limits)
        return False

    def _follows(self, a: int, b: int, before: Iterable[tuple[str, int, int]]) -> str:
        """Return the reason why b follows a: session, real time, or a read."""
        name = self.history.txn
        kinds = {kind for kind, first, second in before if (first, second) == (a, b)}
        for kind in ("SO", "RT"):
            if kind in kinds:
                return self._before(kind, a, b).words
        keys = sorted({self.history.key(x) for x, u in self.history.concrete.txns[b].reads if u == a})
        return f"{name(b)} read {', '.join(keys)} from {name(a)}"

    def _before(self, kind: str, a: int, b: int) -> Reason:
        words = "comes after {} in its session" if kind == "SO" else "began when {} had ended"
        return Reason(f"{self.history.txn(b)} {words.format(self.history.txn(a))}", (a, b), (a, b, kind, False))


def involved(reasons: Iterable[Reason]) -> list[int]:
    return [t for t, _ in groupby(sorted(t for reason in reasons for t in reason.txns if t != INITIAL))]


# -- a given history as variables --------------------------------------------------------------------------------


class TxnNumber(int):
    """The number of a transaction, with a type by which ``TracedView.noted`` distinguishes it from a key."""


class KeyNumber(int):
    """The number of a key."""


class DefinitionLine(NamedTuple):
    """Note on a literal: the line of the definition that built it, and the values of the variables there."""

    file: str
    line: int
    txns: tuple[tuple[str, int], ...]
    keys: tuple[tuple[str, int], ...]


class TracedView(ConcreteView):
    """The terms of a given history as variables.

    Facts about reads and writes are required to be true. Facts about sessions and times are not: they are in
    ``before``, as (kind, a, b), and are assumed one by one, so that a contradiction names the facts that it needs.
    """

    def __init__(self, formula: Formula, concrete: ConcreteHistory) -> None:
        super().__init__(formula, concrete)
        formula.notes = {}
        self.txns = tuple(map(TxnNumber, self.txns))  # type: ignore[assignment]  # used like a range
        self.keys = tuple(map(KeyNumber, self.keys))  # type: ignore[assignment]
        self._facts: dict[tuple[object, ...], Literal] = {}
        self.before: dict[Literal, tuple[str, int, int]] = {}

    def _fact(self, holds: Literal, *fact: object) -> Literal:
        """Return the variable of a fact that holds; facts that do not hold stay constant."""
        if holds == FALSE:
            return FALSE
        if fact not in self._facts:
            self._facts[fact] = self.formula.variable()
            if fact[0] not in ("SO", "RT"):
                self.formula.require(self._facts[fact])
        return self._facts[fact]

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

    @override
    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        return self._fact(super().read_earlier(t, y, u, x, source), "rr", t, y, u, x, source)

    @override
    def noted(self, literals: Iterable[Literal]) -> Iterator[Literal]:
        """Yield the literals; note where the definition's generator expression built each one, and for which values."""
        notes = self.formula.notes
        for literal in literals:
            frame = literals.gi_frame if isinstance(literals, GeneratorType) else None
            if notes is not None and frame is not None and literal not in (TRUE, FALSE):
                bound = {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}
                txns = tuple((name, int(v)) for name, v in bound.items() if isinstance(v, TxnNumber))
                keys = tuple((name, int(v)) for name, v in bound.items() if isinstance(v, KeyNumber))
                notes.setdefault(literal, DefinitionLine(frame.f_code.co_filename, frame.f_lineno, txns, keys))
            yield literal
