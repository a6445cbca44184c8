"""``synthesize``: histories that some levels allow and others forbid, within a scope."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import Literal
from plume_py.levels.orders import TIMED
from plume_py.synth.concrete import Concrete
from plume_py.synth.definition import Definition
from plume_py.synth.problem import ConcreteWitness, Problem, Tricks
from plume_py.synth.recheck import Rechecked, recheck
from plume_py.synth.registry import definitions
from plume_py.synth.renaming import require_equal_treatment
from plume_py.synth.scope import Program, Scope, check_programs


@dataclass(frozen=True)
class SeparatingHistory:
    """A history, and how each allowed level shows itself in it."""

    concrete: Concrete
    witnesses: tuple[ConcreteWitness, ...]
    rechecked: Rechecked


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
    found: list[SeparatingHistory] = field(default_factory=list)
    candidates: int = 0
    clauses: int = 0
    seconds: float = 0.0


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
) -> SynthesisResult:
    """Search for ``count`` histories, no two of them isomorphic, that ``allow`` allow and ``forbid`` forbid.

    ``up_to``: with as few transactions as possible, at most those of the scope, instead of exactly so many.
    ``minimal``: besides, with as few keys, then operations, then pairs of session order and of real time as possible.
    ``fixed``: what is given of each transaction: keys read and written, session, level (for the level "declared").
    Each history was checked again, by other means, before it is returned; LimitError when the limits end the search
    before any was found.

    >>> from plume_py.synth import Scope, synthesize
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
    for txns in range(smallest, scope.txns + 1):
        problem = Problem(allowed, forbidden, replace(scope, txns=txns), fixed, tricks, limits)
        try:
            for concrete, witnesses in _distinct(problem, count - len(outcome.found), minimal):
                checked = recheck(concrete, allowed, forbidden, witnesses, limits)
                outcome.found.append(SeparatingHistory(concrete, tuple(witnesses), checked))
        except LimitError as error:
            if not outcome.found:
                raise
            outcome.stopped = str(error)
        finally:
            outcome.candidates += problem.candidates
            outcome.clauses = problem.formula.clauses
            outcome.seconds = time.perf_counter() - start
            problem.close()
        if len(outcome.found) >= count or (minimal and outcome.found) or outcome.stopped:
            break
    outcome.complete = len(outcome.found) < count and not outcome.stopped
    return outcome


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
