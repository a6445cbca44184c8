"""Why a history breaks a level: instances of its axioms that no witness keeps at once, as few as can be.

The conjunction that a definition is falls apart into instances. A solver names some of them that contradict each other,
and each of these is left out on trial: what cannot be left out is told.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import Formula, Literal
from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.definition import Definition, Obeyed, Witness
from plume_py.reasoning.synth.from_file import Given, kept_order
from plume_py.reasoning.synth.problem import Block
from plume_py.reasoning.synth.relation import Implies, NoCycle, Relation
from plume_py.reasoning.synth.traced_literals import Said, TracedView

# Contradictions that are looked for, each in another order; the shortest is told.
ATTEMPTS = 5


@dataclass(frozen=True)
class Reason:
    """One of the things that contradict each other; ``arrow`` draws it, as (from, to, its words, is it forbidden)."""

    words: str
    txns: tuple[int, ...]
    arrow: tuple[int, int, str, bool] | None = None


@dataclass(frozen=True)
class _Version:
    """What is noted of a literal: lists show a before b."""

    a: int
    b: int


@dataclass(frozen=True)
class _Edge:
    """What is noted of a literal: a step of a graph without a cycle."""

    a: int
    b: int
    part: Relation


class Explanation:
    """The search for a smallest contradiction, and its words."""

    def __init__(self, definition: Definition, given: Given, limits: Limits) -> None:
        self.definition, self.given, self.limits = definition, given, limits

    def reasons(self) -> tuple[Reason, ...]:
        """What contradicts each other; not everything of it may be needed if a limit ends the search."""
        with Formula(self.limits) as formula:
            self.formula, self.view = formula, TracedView(formula, self.given.concrete)
            core = self._core(self._instances())
            self.assumed = [literal for literal in core if literal in self.view.before]
            before = {self.view.before[literal] for literal in self.assumed}
            told = [self._reason(literal, before) for literal in core if literal not in self.view.before]
            pairs = {reason.arrow[:2] for reason in told if reason.arrow is not None}
            told += [self._before(*fact) for fact in sorted(before) if fact[1:] not in pairs]
            return tuple(dict.fromkeys(sorted(told, key=lambda reason: (reason.arrow is None, reason.txns))))

    def _instances(self) -> list[Literal]:
        """Literals that would all have to be true."""
        if self.definition.form == "history":
            return self._single(self.definition.holds(self.view, Witness(None)))
        block = Block(self.definition, self.view)
        found = self._single(self.definition.holds(self.view, block.witness))
        assert self.formula.notes is not None
        for a, b, x in sorted(self.given.versions):
            for literal in kept_order(block.witness, a, b, x):
                self.formula.notes.setdefault(literal, _Version(a, b))
                found.append(literal)
        return found

    def _single(self, literal: Literal) -> list[Literal]:
        """The instances of a conjunction; what only says that visibility is within arbitration is always required."""
        formula, found = self.formula, list[Literal]()
        assert formula.notes is not None
        for part in formula.conjuncts(literal):
            note = formula.notes.get(part)
            if isinstance(note, NoCycle):
                found += self._steps(note)
            elif isinstance(note, Implies) and (note.one.name, note.other.name) == ("VIS", "AR"):
                formula.require(part)
            else:
                found.append(part)
        return found

    def _steps(self, note: NoCycle) -> Iterator[Literal]:
        assert self.formula.notes is not None
        everyone = range(note.graph.size)
        for part in note.graph.parts:
            for a in everyone:
                for b in everyone:
                    literal = self.formula.implies(part[a, b], note.order.before(a, b))
                    if self.formula.conjuncts(literal):
                        self.formula.notes.setdefault(literal, _Edge(a, b, part))
                        yield literal

    def _core(self, instances: Sequence[Literal]) -> list[Literal]:
        """A contradiction of which nothing can be left out, as far as the limits allow; of several, a short one."""
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
        assert self.formula.notes is not None
        note, name = self.formula.notes.get(literal), self.given.txn
        match note:
            case Implies(a, b, one, other) if one.name == "SO or WR" and other.name in ("VIS", "AR", "CM"):
                so = f"it sees {name(a)}" if other.name == "VIS" else f"{name(a)} comes before it"
                return Reason(f"{self._follows(a, b, before)}, so {so}", (a, b), (a, b, other.name, False))
            case Implies(a, b, one, other):
                words = f"{self._arrow(a, one, b)} asks for {self._arrow(a, other, b)}"
                return Reason(words, (a, b), (a, b, f"{one.name}: {other.name}", False))
            case Obeyed():
                return self._obeyed(note)
            case _Version(a, b):
                words = f"{name(a)} comes before {name(b)}, as lists show"
                return Reason(words, (a, b), (a, b, "WW", False))
            case _Edge(a, b, part):
                words = f"{self._arrow(a, part, b)}: without a cycle, {name(a)} comes before {name(b)}"
                return Reason(words, (a, b), (a, b, part.name, False))
            case Said(file, line, txns, keys):
                where = self._where(file, line)
                of = [f"{v} = {name(t)}" for v, t in txns] + [f"{v} = {self.given.key(x)}" for v, x in keys]
                return Reason(f"{where}: {', '.join(of)}", tuple(t for _, t in txns))
        return Reason(f"what {self.definition.name} says as a whole", ())

    def _where(self, file: str, line: int) -> str:
        """Which part of a definition it is: a line of the user's, or what a level of ours says."""
        if self.definition.written is None:
            return self.definition.text
        return f"line {line}" if file == self.definition.written.file else "a level that it builds on"

    def _arrow(self, a: int, relation: Relation, b: int) -> str:
        return f"{self.given.txn(a)} -{relation.name or 'related'}-> {self.given.txn(b)}"

    def _obeyed(self, note: Obeyed) -> Reason:
        """Of a premise that is no relation, all that can be said is that by it t3 sees t2."""
        t1, t2, t3, x, premise, relation, co = note
        name, key = self.given.txn, self.given.key(x)
        overwritten = f"{name(t3)} read the initial {key}, which {name(t2)} overwrote"
        both = f"{name(t3)} read {key} from {name(t1)}, and {name(t2)} wrote {key}, too"
        if relation is None:
            seen, certain = f"the level has {name(t3)} see {name(t2)}", self._certain(premise)
            never = f", though {seen}" if certain else f", so it must not be that {seen}"
            follows = f", and {seen}: so" if certain else f": if {seen}, then"
        elif relation.name == "VIS":
            never, follows = f", so it does not see {name(t2)}", f": if it sees {name(t2)}, then"
        else:
            arrow = self._arrow(t2, relation, t3)
            never, follows = f", so not {arrow}", f": if {arrow}, then"
        if t1 == INITIAL:
            called = "seen" if relation is None else relation.name
            return Reason(f"{overwritten}{never}", (t2, t3), (t2, t3, called, True))
        return Reason(f"{both}{follows} {name(t2)} comes before {name(t1)}", (t1, t2, t3), (t2, t1, co.name, False))

    def _certain(self, premise: Literal) -> bool:
        """Does it follow from the history, whatever the witness? From what is told of sessions and times alone."""
        with suppress(LimitError):
            return not self.formula.solve([*self.assumed, -premise], self.limits)
        return False

    def _follows(self, a: int, b: int, before: Iterable[tuple[str, int, int]]) -> str:
        """How b follows a: in its session, in time, or because it read from it."""
        name = self.given.txn
        kinds = {kind for kind, first, second in before if (first, second) == (a, b)}
        if "SO" in kinds:
            return f"{name(b)} comes after {name(a)} in its session"
        if "RT" in kinds:
            return f"{name(b)} began when {name(a)} had ended"
        keys = sorted({self.given.key(x) for x, u in self.given.concrete.txns[b].reads if u == a})
        return f"{name(b)} read {', '.join(keys)} from {name(a)}"

    def _before(self, kind: str, a: int, b: int) -> Reason:
        words = "comes after {} in its session" if kind == "SO" else "began when {} had ended"
        return Reason(f"{self.given.txn(b)} {words.format(self.given.txn(a))}", (a, b), (a, b, kind, False))


def involved(reasons: Iterable[Reason]) -> list[int]:
    """The transactions that they speak of, in their order."""
    return [t for t, _ in groupby(sorted(t for reason in reasons for t in reason.txns if t != INITIAL))]
