"""``synthesize``: search for histories that some levels allow and others forbid, within a scope.

A ``Problem`` has a fixed number of transactions, so the search solves one problem per number, from the smallest on if
asked to. Minimal histories are found by adding bounds (keys, operations, ordered pairs) until the solver finds nothing
smaller. Every history is checked again by independent code before it is returned (recheck.py).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import permutations

from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import Literal
from plume_py.levels.orders import TIMED
from plume_py.reasoning.synth.concrete_history import ConcreteHistory
from plume_py.reasoning.synth.definition import ConcreteWitness, Definition
from plume_py.reasoning.synth.formulas import definitions
from plume_py.reasoning.synth.problem import Problem, Tricks
from plume_py.reasoning.synth.recheck import RecheckResult, recheck
from plume_py.reasoning.synth.scope import MOST_TXNS, MOST_VALUES, Program, Scope, check_programs
from plume_py.reasoning.synth.user_levels import require_equal_treatment

# After "none": search the next larger scope up to this number of transactions; beyond it, only print the options.
MOST_BEYOND = 5
# With ``smaller_first``: the work (see ``Limits``) and the share of the time limit for smaller numbers of transactions.
SMALLER_STEPS, SMALLER_SHARE = 500_000_000, 0.25


@dataclass(frozen=True)
class SeparatingHistory:
    """A history, a witness for each allowed level, and the result of the re-check."""

    concrete: ConcreteHistory
    witnesses: tuple[ConcreteWitness, ...]
    rechecked: RecheckResult


@dataclass(frozen=True)
class Beyond:
    """The next larger scope. ``found``: whether it contains such a history, or None if that is unknown."""

    scope: Scope
    found: bool | None = None

    @property
    def options(self) -> str:
        """The options of ``isocheck synth`` that search this scope."""
        return f"--txns {self.scope.txns} --values {self.scope.values}"


@dataclass
class SynthesisResult:
    """The result of a search within ``scope``. ``found`` is empty if no history was found."""

    allow: tuple[str, ...]
    forbid: tuple[str, ...]
    scope: Scope
    up_to: bool = False  # whether smaller numbers of transactions were searched first
    minimal: bool = False  # whether only smallest histories were searched for
    complete: bool = False  # whether all histories were found
    stopped: str | None = None  # the limit that ended the search for further histories
    smaller: int | None = None  # a number of transactions below the requested one with which there is a history
    beyond: Beyond | None = None  # the next larger scope, if nothing was found
    found: list[SeparatingHistory] = field(default_factory=list)
    candidates: int = 0
    variables: int = 0  # of the last formula
    clauses: int = 0  # of the last formula
    initial_clauses: int = 0  # of the last formula, before the first candidate
    seconds: float = 0.0


@dataclass(frozen=True)
class Progress:
    """The state of a search: no history has up to ``none`` transactions, and ``now`` transactions are searched.

    ``smaller``: a number of transactions below the requested one with which there is a history.
    """

    none: int
    now: int
    smaller: int | None = None

    def __str__(self) -> str:
        if self.smaller is not None:
            return f"with {self.smaller} transactions there is one; {self.now} undecided"
        first = self.none + 1
        undecided = f"{self.now}" if first == self.now else f"{first} to {self.now}"
        return f"none up to {self.none} transactions; {undecided} undecided" if self.none else f"{undecided} undecided"


OnProgress = Callable[[Progress], None]


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
    smaller_first: bool = False,
    on_progress: OnProgress | None = None,
) -> SynthesisResult:
    """Search for ``count`` histories, no two of them isomorphic, that ``allow`` allow and ``forbid`` forbid.

    ``fixed``: given properties of each transaction: keys read and written, session, level (for the level "declared").
    ``minimal``: as few transactions as possible, then keys, operations, session pairs and real-time pairs.
    ``up_to``: as few transactions as possible, instead of exactly the number of the scope.
    ``smaller_first``: search smaller numbers of transactions briefly first, so that a timeout can report more.
    ``on_progress``: called with the state of the search.

    Raise LimitError if a limit ends the search before any history is found. Its message includes the state of the
    search, unless ``on_progress`` received it.

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

    def problem_of(txns: int, limits: Limits) -> Problem:
        return Problem(allowed, forbidden, replace(scope, txns=txns), fixed, tricks, limits)

    search = _SearchBySize(problem_of, scope.txns, limits or Limits(), on_progress)
    try:
        if smaller_first and smallest == scope.txns and fixed is None:
            search.search_smaller()
        for txns in range(smallest, scope.txns + 1):
            search.run(txns, outcome, count)
            if len(outcome.found) >= count or (minimal and outcome.found) or outcome.stopped:
                break
    except LimitError as error:
        if on_progress is not None:
            raise
        raise LimitError(f"{error}; {search.progress}") from None
    outcome.smaller = search.progress.smaller
    outcome.seconds = time.perf_counter() - start
    outcome.complete = len(outcome.found) < count and not outcome.stopped
    return outcome


def beyond(outcome: SynthesisResult, search: Callable[[Scope], SynthesisResult]) -> Beyond | None:
    """Return the next larger scope after an empty search: one transaction and one value more. Return None otherwise.

    ``search`` is called for this scope if it is small.
    """
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


class _SearchBySize:
    """The search for several numbers of transactions, one after the other."""

    def __init__(
        self, problem_of: Callable[[int, Limits], Problem], txns: int, limits: Limits, on_progress: OnProgress | None
    ) -> None:
        self.problem_of, self.txns, self.limits, self.on_progress = problem_of, txns, limits, on_progress
        self.progress = Progress(0, txns)

    def _begin(self, txns: int) -> None:
        self.progress = replace(self.progress, now=txns)
        if self.on_progress is not None:
            self.on_progress(self.progress)

    def _found_none(self, txns: int) -> None:
        """Record that no history has ``txns`` transactions, if all smaller numbers are decided as well."""
        if self.progress.none == txns - 1:
            self.progress = replace(self.progress, none=txns)

    def search_smaller(self) -> None:
        """Search smaller numbers of transactions until a history is found or the budget for it is spent."""
        left = self.limits.seconds_left
        limits = self.limits.of_work(SMALLER_STEPS)
        limits = limits if left is None else limits.at_most(left * SMALLER_SHARE)
        for txns in range(1, self.txns):
            self._begin(txns)
            try:
                with closing(self.problem_of(txns, limits)) as problem:
                    if problem.next() is not None:
                        self.progress = replace(self.progress, smaller=txns)
                        return
            except LimitError:
                self.limits.check()
                return
            self._found_none(txns)

    def run(self, txns: int, outcome: SynthesisResult, count: int) -> None:
        """Add the histories with exactly so many transactions to the outcome, at most ``count`` in all."""
        self._begin(txns)
        try:
            with closing(self.problem_of(txns, self.limits)) as problem:
                try:
                    self._collect(problem, outcome, count)
                finally:
                    outcome.candidates += problem.candidates
                    outcome.variables, outcome.clauses = problem.formula.variables, problem.formula.clauses
                    outcome.initial_clauses = problem.initial_clauses
        except LimitError as error:
            if not outcome.found:
                raise
            outcome.stopped = str(error)
        if not outcome.found:
            self._found_none(txns)

    def _collect(self, problem: Problem, outcome: SynthesisResult, count: int) -> None:
        for concrete, witnesses in _distinct(problem, count - len(outcome.found), outcome.minimal):
            checked = recheck(concrete, problem.allow, problem.forbid, witnesses, self.limits)
            outcome.found.append(SeparatingHistory(concrete, tuple(witnesses), checked))


def _distinct(problem: Problem, count: int, minimal: bool) -> Iterator[tuple[ConcreteHistory, list[ConcreteWitness]]]:
    """Yield at most ``count`` histories of a problem, no two of them isomorphic."""
    found = problem.next()
    assumptions: list[Literal] = []
    if found is not None and minimal:
        found, assumptions = _minimized(problem, found)
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


def _minimized(
    problem: Problem, solution: tuple[ConcreteHistory, list[ConcreteWitness]]
) -> tuple[tuple[ConcreteHistory, list[ConcreteWitness]], list[Literal]]:
    """Return a smallest solution, and the assumptions that keep further solutions as small.

    The measures, in this order: keys, operations, pairs in session order, pairs in real-time order.
    """
    h = problem.history
    keys = [h.any(h.operations(x)) for x in h.keys]
    pairs = list(permutations(h.txns, 2))
    measures: list[tuple[list[Literal], Callable[[ConcreteHistory], int]]] = [
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
