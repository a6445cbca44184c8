"""Decide levels in one order between transactions, and collect counterexamples.

``check`` calls ``judge_order`` once per order; ``stream.monitor`` calls it to explain a violation. The weak levels are
decided first. If the strongest weak level below a strong one holds, ``strong.verdicts`` decides the strong level. If it
is violated, so is the strong level, and ``strong.verdicts`` only adds patterns.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.declared import DECLARED, LevelMap, missing_levels, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.causal import ClockKind
from plume_py.checking.result import NOT_EXPLAINED, LevelVerdict, Violation
from plume_py.checking.weak.classify import PatternCounts, name_patterns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.checking.weak.explain import examples
from plume_py.history.model import History, Int8s
from plume_py.levels import LEVELS, NAMES, RUNNABLE, WEAK, strongest_weak_level_below
from plume_py.levels.patterns import ORDERED, TAPS, forbidden_at

if TYPE_CHECKING:
    from plume_py.checking.strong.verdicts import StrongVerdicts


@dataclass(frozen=True)
class CheckOptions:
    """Options of ``check`` other than levels and order."""

    taps: frozenset[str] = frozenset()
    max_examples: int = 1
    clock: ClockKind = "auto"
    progress: Callable[[str], None] | None = None
    assume: str | None = None
    level_map: LevelMap | None = None
    limits: Limits = field(default_factory=Limits)
    weaker_orders: bool = True  # also search for a weaker order in which a violated level holds


@dataclass(frozen=True)
class OrderVerdicts:
    """Verdicts, counterexamples and pattern counts in one order."""

    verdicts: dict[str, LevelVerdict]
    violations: list[Violation]
    counts: dict[str, int]
    counts_exact: bool
    seconds: dict[str, float]
    stopped: str = ""  # the limit of time or memory that ended the explanation, if any


def judge_order(history: History, levels: list[str], order: str, options: CheckOptions) -> OrderVerdicts:
    """Decide ``levels``, or the patterns of ``options``, in ``order``."""
    limits, max_examples = options.limits, options.max_examples
    request = _Request(levels, limits, max_examples, options.level_map, options.assume)
    analysis = Analysis(history, options.clock, options.progress, order)
    weak = WeakLevels(analysis)
    if options.taps:
        found, named = _check_patterns(weak, set(options.taps), limits)
    else:
        found, named = _check_levels(weak, request)
    patterns = [letter for letter in TAPS if any(letter in verdict.taps for verdict in found.values())]
    strong = {tap: request.counts[tap] for verdict in found.values() for tap in verdict.taps if tap not in TAPS}
    start_examples = time.perf_counter()
    shown: list[Violation] = []
    try:
        for pattern in patterns:
            shown += examples(weak, named, pattern, max_examples)
    except LimitError as error:  # the verdicts remain valid
        request.stopped = str(error)
    return OrderVerdicts(
        {level: replace(verdict, order=order) for level, verdict in found.items()},
        [replace(violation, order=order) for violation in (*shown, *request.violations)],
        {pattern: named.counts[pattern] for pattern in patterns} | strong,
        named.exact and not strong and request.complete,
        {**analysis.seconds, "explain": time.perf_counter() - start_examples},
        request.stopped or named.stopped,
    )


def _name(weak: WeakLevels, levels: list[str], broken: list[str]) -> PatternCounts:
    """Return the patterns that occur, up to the strongest level requested. Return none if no level is ``broken``."""
    strongest = [level for level in ORDERED if level in levels]
    if not broken:
        return PatternCounts({}, {}, True)
    if not strongest:  # only cut isolation
        return PatternCounts({"j": weak.analysis.reads.counts["j"]}, {}, True)
    try:
        with weak.analysis.timed("name"):
            return name_patterns(weak, strongest[-1])
    except LimitError as error:
        return PatternCounts({}, {}, False, str(error))


@dataclass
class _Request:
    """The requested levels, and the counterexamples of strong levels found so far."""

    levels: list[str]
    limits: Limits
    examples: int
    level_map: LevelMap | None
    assume: str | None
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    complete: bool = True  # False if ``counts`` may lack a strong pattern
    stopped: str = ""  # the limit of time or memory that ended the explanation, if any


def _check_levels(weak: WeakLevels, request: _Request) -> tuple[dict[str, LevelVerdict], PatternCounts]:
    declared = _declared_levels(weak, request) if DECLARED in request.levels else None
    wanted = {*request.levels, *([declared.common] if declared is not None else [])}
    strong = [level for level in NAMES if level in wanted and LEVELS[level].needs_search]
    floors = {level: strongest_weak_level_below([level]) for level in strong}
    needed = {*wanted, *floors.values(), *([declared.strongest_weak_level_below] if declared is not None else [])}
    holds, undecided = _weak_levels(weak, [level for level in WEAK if level in needed], request.limits)
    named = _name(weak, list(holds), [level for level, ok in holds.items() if not ok])
    found = {level: _weak_verdict(level, ok, named) for level, ok in holds.items()}
    found |= dict.fromkeys(needed - holds.keys() - set(strong), LevelVerdict(None, reason=undecided))
    for base in dict.fromkeys(floors.values()):
        _add_strong(weak, base, [level for level in strong if floors[level] == base], found, named, request)
    if declared is not None:
        found[DECLARED] = _declared_verdict(weak, declared, found, named, request)
    return {level: found[level] for level in request.levels}, named


def _weak_levels(weak: WeakLevels, levels: list[str], limits: Limits) -> tuple[dict[str, bool], str | None]:
    """Decide weak levels until a limit is reached; return the verdicts, and the limit."""
    holds: dict[str, bool] = {}
    try:
        for level in levels:
            limits.check()
            holds[level] = weak.holds(level)
    except LimitError as error:
        return holds, str(error)
    return holds, None


def _weak_verdict(level: str, ok: bool, named: PatternCounts) -> LevelVerdict:
    if ok:
        return LevelVerdict(True)
    taps = tuple(tap for tap in forbidden_at(level) if tap in named.counts)
    return LevelVerdict(False, taps, None if taps else NOT_EXPLAINED)


def _add_strong(
    weak: WeakLevels,
    base: str,
    strong: list[str],
    verdicts: dict[str, LevelVerdict],
    named: PatternCounts,
    request: _Request,
) -> None:
    """Add the verdicts on the strong levels above ``base``, whose verdict is known.

    The imports are local: checks of weak levels do not load the strong engine.
    """
    from plume_py.checking.strong.further_violations import consistent_part
    from plume_py.checking.strong.verdicts import further_violations, strong_verdicts

    if verdicts[base].ok:
        _add(strong_verdicts(weak.analysis, strong, request.limits, request.examples), verdicts, request)
        return
    verdicts |= dict.fromkeys(strong, verdicts[base])
    if verdicts[base].ok is False:
        broken = {level: verdicts[level] for level in strong}
        part = partial(consistent_part, weak, base, named)
        more = further_violations(weak.analysis, broken, tuple(strong), part, request.limits, request.examples)
        _add(more, verdicts, request)


def _add(strong: "StrongVerdicts", verdicts: dict[str, LevelVerdict], request: _Request) -> None:
    verdicts |= strong.verdicts
    request.violations += strong.violations
    request.counts.update(strong.counts)
    request.complete = request.complete and strong.complete
    request.stopped = request.stopped or strong.stopped


@dataclass(frozen=True)
class _Declared:
    """Levels per transaction. ``common`` is the level that all transactions have, if it is one level.

    ``strongest_weak_level_below`` is the strongest weak level that all of them imply. ``missing`` is the reason why the
    levels cannot be decided, if any.
    """

    codes: Int8s
    missing: str | None
    common: str
    strongest_weak_level_below: str


def _declared_levels(weak: WeakLevels, request: _Request) -> _Declared:
    history = weak.analysis.given
    participates = weak.analysis.reads.participates[: history.transactions]
    codes = transaction_levels(history, request.level_map, request.assume)
    present = {NAMES[code - 1] for code in set(codes[participates == 1].tolist()) if code}
    missing = missing_levels(history, codes, participates)
    common = next(iter(present)) if len(present) == 1 and missing is None else ""
    return _Declared(codes, missing, common, strongest_weak_level_below(present & set(RUNNABLE)))


def _declared_verdict(
    weak: WeakLevels, declared: _Declared, verdicts: dict[str, LevelVerdict], named: PatternCounts, request: _Request
) -> LevelVerdict:
    if declared.missing is not None:
        return LevelVerdict(None, reason=declared.missing)
    if declared.common:
        return verdicts[declared.common]
    from plume_py.checking.strong.further_violations import consistent_part
    from plume_py.checking.strong.verdicts import declared_verdict, further_violations

    base, limits = verdicts[declared.strongest_weak_level_below], (request.limits, request.examples)
    if base.ok is False:
        part = partial(consistent_part, weak, declared.strongest_weak_level_below, named)
        _add(further_violations(weak.analysis, {DECLARED: base}, declared.codes, part, *limits), verdicts, request)
    elif base.ok:
        _add(declared_verdict(weak.analysis, declared.codes, *limits), verdicts, request)
    return verdicts.get(DECLARED, base)


def _check_patterns(
    weak: WeakLevels, letters: set[str], limits: Limits
) -> tuple[dict[str, LevelVerdict], PatternCounts]:
    """Decide single patterns: compute only the levels up to the strongest one that a requested pattern belongs to."""
    strongest = max(ORDERED.index(TAPS[letter].level) if letter != "j" else 0 for letter in letters)
    levels = [level for level in WEAK if level not in ORDERED[strongest + 1 :]]
    holds, undecided = _weak_levels(weak, levels, limits)
    request = [letter for letter in TAPS if letter in letters]
    if undecided is not None:
        return {TAPS[letter].label: LevelVerdict(None, reason=undecided) for letter in request}, PatternCounts(
            {}, {}, True
        )
    named = _name(weak, levels, [level for level, ok in holds.items() if not ok])
    return {
        TAPS[letter].label: LevelVerdict(False, (letter,)) if letter in named.counts else LevelVerdict(True)
        for letter in request
    }, named
