"""``synthesize``: histories that some levels allow and others forbid, within a scope."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import permutations

from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import Literal
from plume_py.levels.orders import TIMED
from plume_py.reasoning.synth.concrete_history import Concrete
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.problem import ConcreteWitness, Problem, Tricks
from plume_py.reasoning.synth.recheck import Rechecked, recheck
from plume_py.reasoning.synth.registry import definitions
from plume_py.reasoning.synth.renaming import require_equal_treatment
from plume_py.reasoning.synth.scope import MOST_TXNS, MOST_VALUES, Program, Scope, check_programs


@dataclass(frozen=True)
class SeparatingHistory:
    """A history, and how each allowed level shows itself in it."""

    concrete: Concrete
    witnesses: tuple[ConcreteWitness, ...]
    rechecked: Rechecked


@dataclass(frozen=True)
class Beyond:
    """A larger scope, and whether there is something in it; None if that was not searched for, or not decided."""

    scope: Scope
    found: bool | None = None

    @property
    def options(self) -> str:
        """How to ask for it."""
        return f"--txns {self.scope.txns} --values {self.scope.values}"


# Transactions up to which the next scope is searched, too; beyond, it is only named.
MOST_BEYOND = 5


@dataclass
class SynthesisResult:
    """What a search came to. ``found`` is empty if there is no such history within ``scope``."""

    allow: tuple[str, ...]
    forbid: tuple[str, ...]
    scope: Scope
    up_to: bool = False  # were smaller numbers of transactions tried as well?
    minimal: bool = False  # only smallest ones?
    complete: bool = False  # are there no others?
    stopped: str | None = None  # what ended the search before as many as were asked for had been found
    smaller: int | None = None  # with so many transactions there is one, though that was not asked for
    beyond: "Beyond | None" = None  # if there is nothing: the next scope
    found: list[SeparatingHistory] = field(default_factory=list)
    candidates: int = 0
    variables: int = 0  # of the formula, for the last number of transactions
    clauses: int = 0
    initial_clauses: int = 0  # before the first candidate
    seconds: float = 0.0


@dataclass(frozen=True)
class Progress:
    """How far a search has come: there is nothing with up to ``none`` transactions, and ``now`` is being looked at.

    ``smaller``: a number of transactions with which there is something, if that is not what was asked for.
    """

    none: int
    now: int
    smaller: int | None = None

    def __str__(self) -> str:
        if self.smaller is not None:
            return f"with {self.smaller} transactions there is one; {self.now} undecided"
        first = self.none + 1
        unsettled = f"{self.now}" if first == self.now else f"{first} to {self.now}"
        return f"none up to {self.none} transactions; {unsettled} undecided" if self.none else f"{unsettled} undecided"


Told = Callable[[Progress], None]
# The work (see ``Limits``) that may be spent on fewer transactions than were asked for, and the share of a time limit.
SETTLING_STEPS, SETTLING_SHARE = 500_000_000, 0.25


def synthesize(
    allow: Iterable[str | Definition] = (),
    forbid: Iterable[str | Definition] = (),
    scope: Scope | None = None,
    *,
    fixed: Sequence[Program] | None = None,
    count: int = 1,
    minimal: bool = False,
    up_to: bool = False,
    tricks: Tricks | None = None,
    limits: Limits | None = None,
    settle: bool = False,
    told: Told | None = None,
) -> SynthesisResult:
    """Search for ``count`` histories, no two of them isomorphic, that ``allow`` allow and ``forbid`` forbid.

    ``up_to``: with as few transactions as possible, at most those of the scope, instead of exactly so many.
    ``minimal``: besides, with as few keys, then operations, then pairs of session order and of real time as possible.
    ``fixed``: what is given of each transaction: keys read and written, session, level (for the level "declared").
    ``settle``: where exactly so many transactions are asked for, first look at fewer of them, as long as that is quick:
    it says more if time runs out. ``told`` is told how far it has come.
    Each history was checked again, by other means, before it is returned; LimitError when the limits end the search
    before any was found; it says what is settled by then, unless ``told`` was told.

    >>> from plume_py.reasoning.synth import Scope, synthesize
    >>> outcome = synthesize(["SI"], ["SER"], Scope(txns=2), minimal=True)
    >>> outcome.found[0].concrete.short()
    'r(y,0) w(x,1) | r(x,0) w(y,1)'
    """
    start = time.perf_counter()
    scope, tricks = scope or Scope(), tricks or Tricks()
    allowed, forbidden = definitions(allow), definitions(forbid)
    for level in (*allowed, *forbidden):
        require_equal_treatment(level)
    if fixed is not None:
        check_programs(fixed, scope)
    if not tricks.incremental and (minimal or count > 1):
        raise IsocheckError("without the trick 'incremental' neither minimal nor several histories can be searched for")
    smallest = 1 if (up_to or minimal) and fixed is None else scope.txns
    outcome = SynthesisResult(
        tuple(d.name for d in allowed), tuple(d.name for d in forbidden), scope, smallest < scope.txns, minimal
    )
    search = _Search(Question(allowed, forbidden, scope, fixed, tricks), limits or Limits(), told)
    try:
        if settle and smallest == scope.txns and fixed is None:
            search.settle()
        for txns in range(smallest, scope.txns + 1):
            search.run(txns, outcome, count, minimal)
            if len(outcome.found) >= count or (minimal and outcome.found) or outcome.stopped:
                break
    except LimitError as error:
        if told is not None:  # who was told knows
            raise
        raise LimitError(f"{error}; {search.progress}") from None
    outcome.smaller = search.progress.smaller
    outcome.seconds = time.perf_counter() - start
    outcome.complete = len(outcome.found) < count and not outcome.stopped
    return outcome


def beyond(outcome: SynthesisResult, search: Callable[[Scope], SynthesisResult]) -> Beyond | None:
    """After "none": the scope with one transaction and one value more; ``search`` looks into it if it is small."""
    scope = outcome.scope
    if outcome.found or outcome.smaller is not None or scope.txns >= MOST_TXNS:
        return None
    larger = replace(scope, txns=scope.txns + 1, values=min(scope.values + 1, MOST_VALUES))
    if larger.txns > MOST_BEYOND:
        return Beyond(larger)
    try:
        return Beyond(larger, bool(search(larger).found))
    except LimitError:
        return Beyond(larger)


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    allow: Sequence[Definition]
    forbid: Sequence[Definition]
    scope: Scope
    fixed: Sequence[Program] | None
    tricks: Tricks

    def problem(self, txns: int, limits: Limits) -> Problem:
        """With exactly so many transactions."""
        return Problem(self.allow, self.forbid, replace(self.scope, txns=txns), self.fixed, self.tricks, limits)


class _Search:
    """One question for several numbers of transactions, one after the other."""

    def __init__(self, question: Question, limits: Limits, told: Told | None) -> None:
        self.question, self.limits, self.told = question, limits, told
        self.progress = Progress(0, question.scope.txns)

    def _begin(self, txns: int) -> None:
        self.progress = replace(self.progress, now=txns)
        if self.told is not None:
            self.told(self.progress)

    def _none(self, txns: int) -> None:
        """There is nothing with so many; that counts if there is nothing with fewer, either."""
        if self.progress.none == txns - 1:
            self.progress = replace(self.progress, none=txns)

    def settle(self) -> None:
        """Look at fewer transactions, until something is found or it takes long."""
        left, asked = self.limits.seconds_left, self.question.scope.txns
        limits = self.limits.of_work(SETTLING_STEPS)
        limits = limits if left is None else limits.at_most(left * SETTLING_SHARE)
        for txns in range(1, asked):
            self._begin(txns)
            try:
                with closing(self.question.problem(txns, limits)) as problem:
                    if problem.next() is not None:
                        self.progress = replace(self.progress, smaller=txns)
                        return
            except LimitError:
                self.limits.check()
                return
            self._none(txns)

    def run(self, txns: int, outcome: SynthesisResult, count: int, minimal: bool) -> None:
        """Histories with exactly so many."""
        self._begin(txns)
        try:
            with closing(self.question.problem(txns, self.limits)) as problem:
                try:
                    self._collect(problem, outcome, count, minimal)
                finally:
                    outcome.candidates += problem.candidates
                    outcome.variables, outcome.clauses = problem.formula.variables, problem.formula.clauses
                    outcome.initial_clauses = problem.initial_clauses
        except LimitError as error:
            if not outcome.found:
                raise
            outcome.stopped = str(error)
        if not outcome.found:
            self._none(txns)

    def _collect(self, problem: Problem, outcome: SynthesisResult, count: int, minimal: bool) -> None:
        for concrete, witnesses in _distinct(problem, count - len(outcome.found), minimal):
            checked = recheck(concrete, self.question.allow, self.question.forbid, witnesses, self.limits)
            outcome.found.append(SeparatingHistory(concrete, tuple(witnesses), checked))


def _distinct(problem: Problem, count: int, minimal: bool) -> Iterator[tuple[Concrete, list[ConcreteWitness]]]:
    """At most ``count`` histories of a problem, no two of them isomorphic."""
    found = problem.next()
    assumptions: list[Literal] = []
    if found is not None and minimal:
        found, assumptions = _minimised(problem, found)
    seen: set[object] = set()
    while found is not None:
        concrete, witnesses = found
        if count == 1:
            yield concrete, witnesses
            return
        form = concrete.canonical()
        if form not in seen:
            seen.add(form)
            yield concrete, witnesses
            if len(seen) == count:
                return
        problem.exclude(concrete)
        found = problem.next(assumptions)


def _minimised(
    problem: Problem, solution: tuple[Concrete, list[ConcreteWitness]]
) -> tuple[tuple[Concrete, list[ConcreteWitness]], list[Literal]]:
    """A smallest history: by keys, operations, pairs of session order and of real time; what keeps others as small."""
    h = problem.history
    keys = [h.any(h.operations(x)) for x in h.keys]
    pairs = list(permutations(h.txns, 2))
    measures: list[tuple[list[Literal], Callable[[Concrete], int]]] = [
        (keys, lambda concrete: len(concrete.keys)),
        (h.operations(), lambda concrete: concrete.operations),
        ([h.so[a, b] for a, b in pairs], lambda concrete: concrete.session_pairs),
    ]
    if not TIMED.isdisjoint(problem.orders):
        measures.append(([h.realtime(a, b) for a, b in pairs], lambda concrete: concrete.realtime_pairs))
    kept: list[Literal] = []
    for literals, measure in measures:
        size = measure(solution[0])
        at_least = problem.formula.at_least(size + 1, literals)
        while size > 0:
            smaller = problem.next([*kept, -at_least[size]])
            if smaller is None:
                break
            solution, size = smaller, measure(smaller[0])
        kept.append(-at_least[size + 1])
    return solution, kept
