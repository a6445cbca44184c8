"""``check``: levels in, verdicts and counterexamples out."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.declared import DECLARED, LevelMap, missing_levels, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.causal import ClockKind
from plume_py.checking.result import NOT_EXPLAINED, Lane, LevelVerdict, Result, Violation
from plume_py.checking.weak.decide import WeakLevels
from plume_py.checking.weak.explain import examples
from plume_py.checking.weak.naming import Named, name_patterns
from plume_py.history.model import NOBODY, STATUS_NAMES, History, Int8s
from plume_py.levels import GROUPS, LEVELS, NAMES, RUNNABLE, WEAK, floor, parse_level
from plume_py.levels.patterns import ORDERED, TAPS, forbidden_at

if TYPE_CHECKING:
    from plume_py.checking.strong.checks import StrongVerdicts

# Transactions of a history of which all are kept beside its counterexamples.
SEEN_WHOLE = 60


def check(
    history: History,
    levels: str | Sequence[str] = NAMES,
    *,
    taps: Iterable[str] = (),
    max_examples: int = 1,
    name: str = "",
    clock: ClockKind = "auto",
    progress: Callable[[str], None] | None = None,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    limits: Limits | None = None,
) -> Result:
    """Does ``history`` keep ``levels``? With counterexamples for every pattern that says no.

    The level "declared" judges each transaction by the level that ``level_map`` says or else the history; ``assume`` is
    for those that have none. Where ``limits`` are reached a level stays undecided.
    ``max_examples`` is per pattern; with 0, strong patterns are not looked for beyond what decides the levels.
    ``taps`` asks for single patterns instead of levels: each gets a verdict of its own ("TAP-m"), ok if it is absent.

    >>> from plume_py import HistoryBuilder, check
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("s", [("w", "x", 1)])
    >>> builder.add("s", [("r", "x", 0)])
    >>> check(builder.build(), "RA").levels["RA"].taps
    ('k',)
    """
    start = time.perf_counter()
    limits = limits or Limits()
    asked = _Asked(_levels(levels), limits, max_examples, level_map, assume)
    analysis = Analysis(history, clock, progress)
    weak = WeakLevels(analysis)
    if taps:
        found, named = _check_patterns(weak, set(taps), limits)
    else:
        found, named = _check_levels(weak, asked)
    patterns = [letter for letter in TAPS if any(letter in verdict.taps for verdict in found.values())]
    strong = {tap: asked.counts[tap] for verdict in found.values() for tap in verdict.taps if tap not in TAPS}
    start_examples = time.perf_counter()
    shown: list[Violation] = []
    try:
        for pattern in patterns:
            shown += examples(weak, named, pattern, max_examples)
    except LimitError:  # the verdicts stand
        pass
    shown += asked.violations
    seconds = {**analysis.seconds, "explain": time.perf_counter() - start_examples}
    return Result(
        history=name,
        format=history.format,
        sessions=history.sessions,
        transactions=history.transactions,
        operations=history.operations,
        levels=found,
        violations=tuple(shown),
        counts={pattern: named.counts[pattern] for pattern in patterns} | strong,
        counts_exact=named.exact and not strong,
        notes=_notes(history),
        seconds={**seconds, "check": time.perf_counter() - start},
        lanes=_lanes(history) if shown and history.transactions <= SEEN_WHOLE else (),
    )


def _lanes(history: History) -> tuple[Lane, ...]:
    """All of a small history, beside which its counterexamples can be seen."""
    starts = history.session_start.tolist()
    return tuple(
        Lane(history.session_label[s], tuple((history.txn_label[t], STATUS_NAMES[history.txn_status[t]]) for t in own))
        for s, own in enumerate(range(*pair) for pair in pairwise(starts))
    )


def _levels(levels: str | Sequence[str]) -> list[str]:
    """Canonical names, each once, in the order of the lattice."""
    spelled = [levels] if isinstance(levels, str) else list(levels)
    names = {name for level in spelled for name in GROUPS.get(level.lower(), (parse_level(level) or level,))}
    if not names:
        raise ValueError("no level to check")
    unknown = sorted(names - {*NAMES, DECLARED})
    if unknown:
        raise ValueError(f"not an isolation level: {unknown[0]!r}; use one of {' '.join(NAMES)}")
    return [level for level in (*NAMES, DECLARED) if level in names]


def _name(weak: WeakLevels, levels: list[str], broken: list[str]) -> Named:
    """Name what is there, up to the strongest level asked, if anything is."""
    strongest = [level for level in ORDERED if level in levels]
    if not broken:
        return Named({}, {}, True)
    if not strongest:  # only cut isolation
        return Named({"j": weak.analysis.reads.counts["j"]}, {}, True)
    try:
        with weak.analysis.timed("name"):
            return name_patterns(weak, strongest[-1])
    except LimitError:
        return Named({}, {}, False)


@dataclass
class _Asked:
    """What ``check`` was asked for besides single patterns, and the counterexamples of strong levels found so far."""

    levels: list[str]
    limits: Limits
    examples: int
    level_map: LevelMap | None
    assume: str | None
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def _check_levels(weak: WeakLevels, asked: _Asked) -> tuple[dict[str, LevelVerdict], Named]:
    declared = _declared_levels(weak, asked) if DECLARED in asked.levels else None
    wanted = {*asked.levels, *([declared.common] if declared is not None else [])}
    strong = [level for level in NAMES if level in wanted and LEVELS[level].needs_search]
    floors = {level: floor([level]) for level in strong}
    needed = {*wanted, *floors.values(), *([declared.floor] if declared is not None else [])}
    holds, undecided = _weak_levels(weak, [level for level in WEAK if level in needed], asked.limits)
    named = _name(weak, list(holds), [level for level, ok in holds.items() if not ok])
    found = {level: _weak_verdict(level, ok, named) for level, ok in holds.items()}
    found |= dict.fromkeys(needed - holds.keys() - set(strong), LevelVerdict(None, reason=undecided))
    for base in dict.fromkeys(floors.values()):
        _add_strong(weak, base, [level for level in strong if floors[level] == base], found, named, asked)
    if declared is not None:
        found[DECLARED] = _declared_verdict(weak, declared, found, named, asked)
    return {level: found[level] for level in asked.levels}, named


def _weak_levels(weak: WeakLevels, levels: list[str], limits: Limits) -> tuple[dict[str, bool], str | None]:
    """Which weak levels hold, as far as the limits allow, and why it is not all of them."""
    holds: dict[str, bool] = {}
    try:
        for level in levels:
            limits.check()
            holds[level] = weak.holds(level)
    except LimitError as error:
        return holds, str(error)
    return holds, None


def _weak_verdict(level: str, ok: bool, named: Named) -> LevelVerdict:
    if ok:
        return LevelVerdict(True)
    taps = tuple(tap for tap in forbidden_at(level) if tap in named.counts)
    return LevelVerdict(False, taps, None if taps else NOT_EXPLAINED)


def _add_strong(
    weak: WeakLevels, base: str, strong: list[str], found: dict[str, LevelVerdict], named: Named, asked: _Asked
) -> None:
    """The verdicts on strong levels, given that on ``base`` below them; who asks for weak ones does not import this."""
    from plume_py.checking.strong.checks import besides_weak, strong_verdicts
    from plume_py.checking.weak.rest import healthy_part

    if found[base].ok:
        _add(strong_verdicts(weak.analysis, strong, asked.limits, asked.examples), found, asked)
        return
    found |= dict.fromkeys(strong, found[base])
    if found[base].ok is False:
        verdicts = {level: found[level] for level in strong}
        healthy = partial(healthy_part, weak, base, named)
        more = besides_weak(weak.analysis, verdicts, tuple(strong), healthy, asked.limits, asked.examples)
        _add(more, found, asked)


def _add(strong: "StrongVerdicts", found: dict[str, LevelVerdict], asked: _Asked) -> None:
    found |= strong.verdicts
    asked.violations += strong.violations
    asked.counts.update(strong.counts)


@dataclass(frozen=True)
class _Declared:
    """A level per transaction; ``common`` to all if there is one, and ``floor``, the weak level that all imply."""

    codes: Int8s
    missing: str | None
    common: str
    floor: str


def _declared_levels(weak: WeakLevels, asked: _Asked) -> _Declared:
    live = weak.analysis.reads.live
    codes = transaction_levels(weak.analysis.history, asked.level_map, asked.assume)
    present = {NAMES[code - 1] for code in set(codes[live == 1].tolist()) if code}
    missing = missing_levels(weak.analysis.history, codes, live)
    common = next(iter(present)) if len(present) == 1 and missing is None else ""
    return _Declared(codes, missing, common, floor(present & set(RUNNABLE)))


def _declared_verdict(
    weak: WeakLevels, declared: _Declared, found: dict[str, LevelVerdict], named: Named, asked: _Asked
) -> LevelVerdict:
    if declared.missing is not None:
        return LevelVerdict(None, reason=declared.missing)
    if declared.common:
        return found[declared.common]
    from plume_py.checking.strong.checks import besides_weak, declared_verdict
    from plume_py.checking.weak.rest import healthy_part

    base, limits = found[declared.floor], (asked.limits, asked.examples)
    if base.ok is False:
        healthy = partial(healthy_part, weak, declared.floor, named)
        _add(besides_weak(weak.analysis, {DECLARED: base}, declared.codes, healthy, *limits), found, asked)
    elif base.ok:
        _add(declared_verdict(weak.analysis, declared.codes, *limits), found, asked)
    return found.get(DECLARED, base)


def _check_patterns(weak: WeakLevels, letters: set[str], limits: Limits) -> tuple[dict[str, LevelVerdict], Named]:
    """Only as much is computed as the strongest level needs to which one of the patterns belongs."""
    strongest = max(ORDERED.index(TAPS[letter].level) if letter != "j" else 0 for letter in letters)
    levels = [level for level in WEAK if level not in ORDERED[strongest + 1 :]]
    holds, undecided = _weak_levels(weak, levels, limits)
    asked = [letter for letter in TAPS if letter in letters]
    if undecided is not None:
        return {TAPS[letter].label: LevelVerdict(None, reason=undecided) for letter in asked}, Named({}, {}, True)
    named = _name(weak, levels, [level for level, ok in holds.items() if not ok])
    return {
        TAPS[letter].label: LevelVerdict(False, (letter,)) if letter in named.counts else LevelVerdict(True)
        for letter in asked
    }, named


def _notes(history: History) -> tuple[str, ...]:
    notes = list(history.warnings)
    if history.init_txn != NOBODY:
        notes.append(f"transaction {history.txn_label[history.init_txn]} is taken as the initial state")
    return tuple(notes)
