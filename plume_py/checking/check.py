"""Check a history: take levels, return verdicts and counterexamples.

``check`` serves the API, the command line and the other packages; ``verdict`` is its fast variant for searches. The
levels are grouped by the order between transactions that they assume (session order, real time, ...), and ``verdicts``
decides each group. This module parses the request, combines the orders into one ``Result``, and finds for a violated
level the weaker order in which it holds.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from plume_py.base.limits import Limits
from plume_py.base.text import display
from plume_py.checking.declared import DECLARED, LevelMap
from plume_py.checking.graph.causal import ClockKind
from plume_py.checking.result import Lane, LevelVerdict, Result, Violation
from plume_py.checking.verdicts import CheckOptions, OrderVerdicts, judge_order
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import NOBODY, STATUS_NAMES, History
from plume_py.levels import GROUPS, NAMES, levels_that_see
from plume_py.levels.orders import (
    DEFAULT_ORDER,
    NONE,
    ORDERS,
    PER_KEY,
    REALTIME,
    SESSION,
    WEAKER,
    LevelRequest,
    in_lattice_order,
    level_request,
    strong_name,
    unknown_level,
)
from plume_py.levels.patterns import TAPS
from plume_py.levels.table import PREFIX, WRITERS

# The levels that databases also provide in real time: SI and SER, which implies all others.
ALSO_IN_REAL_TIME = levels_that_see(PREFIX | WRITERS)
# If the history has at most this many transactions, the result lists all of them.
SEEN_WHOLE = 60
# A violated level is also decided in weaker orders, in histories of at most this many transactions and with at most
# this much work (see ``Limits``). The bound counts work instead of time, so that the answer is the same on every
# machine.
JUDGED_AGAIN = 2_000
STEPS_OF_WEAKER_ORDERS = 200_000_000

NO_TIMES = "the history does not say when its transactions began and ended"


def check(
    history: History,
    levels: str | Sequence[str] = NAMES,
    *,
    order: str = DEFAULT_ORDER,
    taps: Iterable[str] = (),
    max_examples: int = 1,
    name: str = "",
    clock: ClockKind = "auto",
    progress: Callable[[str], None] | None = None,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    limits: Limits | None = None,
) -> Result:
    """Check whether ``history`` satisfies ``levels``, and return a counterexample for each pattern that violates one.

    ``levels`` may include "declared": it judges each transaction by its own level, from ``level_map`` or else from the
    history. ``assume`` is the level of transactions without one. ``max_examples`` counts per pattern; with 0, strong
    patterns are searched only as far as the verdicts need. A level remains undecided if a limit of ``limits`` is
    reached.

    ``order`` between transactions applies to each level whose name does not imply one (SSER implies real time). If all
    levels are requested in session order and the history has times, StrongSI and SSER are also checked where SI and SER
    hold. ``taps`` requests single patterns instead of levels: each gets its own verdict ("TAP-m"), ok if the pattern is
    absent.

    >>> from plume_py import HistoryBuilder, check
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("s", [("w", "x", 1)])
    >>> builder.add("s", [("r", "x", 0)])
    >>> check(builder.build(), "RA").levels["RA"].taps
    ('k',)
    """
    options = CheckOptions(
        frozenset(taps), max_examples, clock, progress, assume, level_map, limits if limits is not None else Limits()
    )
    wanted = _wanted(levels, order)
    if not history.init_guessed:
        return _checked(history, wanted, options, name)
    seconds, kept = 0.0, dict[str, LevelVerdict]()
    if not taps:  # patterns are named as in the violations of a level: on the ordinary history
        guessed = _checked(history, wanted, replace(options, max_examples=0), name)
        if guessed.ok is not False:
            return guessed
        kept = {level: verdict for level, verdict in guessed.levels.items() if verdict.ok is not False}
        seconds = guessed.seconds["check"]
    ordinary = as_ordinary(history, any(level.name == DECLARED and level.name not in kept for level in wanted))
    result = _checked(ordinary, wanted, options, name, kept)
    label = display(history.txn_label[history.init_txn])
    return replace(
        result,
        seconds={**result.seconds, "check": seconds + result.seconds["check"]},
        notes=(*result.notes, f"{label} may have set up the initial state, and is judged like any other transaction"),
    )


def _checked(
    history: History,
    wanted: list[LevelRequest],
    options: CheckOptions,
    name: str,
    known: dict[str, LevelVerdict] | None = None,
) -> Result:
    """Check a history whose initial state is certain; levels with a ``known`` verdict are not decided again."""
    start = time.perf_counter()
    found = dict(known or {})
    parts: list[OrderVerdicts] = []

    def add(mine: list[LevelRequest], order: str) -> None:
        judged = _judged(history, [level.level for level in mine], order, options)
        parts.append(judged)
        found.update(judged.verdicts if options.taps else {level.name: judged.verdicts[level.level] for level in mine})

    for each in sorted(ORDERS, key=lambda order: len(WEAKER[order])):  # weaker orders first
        mine = [level for level in wanted if level.order == each and level.name not in found]
        if mine:
            add(mine, each)
    if history.times is not None and not options.taps:
        in_time = _in_real_time(wanted, found)
        new = [level for level in in_time if level.name not in found]
        if new:
            add(new, REALTIME)
        wanted = [*wanted, *in_time]
    shown = list(distinct(violation for part in parts for violation in part.violations))
    about = described(history, name)
    stopped = list(dict.fromkeys(part.stopped for part in parts if part.stopped))
    return replace(
        about,
        notes=(*about.notes, *(f"some explanations and counts are missing: {reason}" for reason in stopped)),
        levels=found if options.taps else {level.name: found[level.name] for level in wanted},
        violations=tuple(shown),
        counts=_counts(parts),
        counts_exact=all(part.counts_exact for part in parts),
        seconds={**_seconds(parts), "check": time.perf_counter() - start},
        lanes=_lanes(history) if shown and history.transactions <= SEEN_WHOLE else (),
    )


def verdict(
    history: History, level: str, *, order: str = DEFAULT_ORDER, assume: str | None = None, limits: Limits | None = None
) -> LevelVerdict:
    """Return the verdict on one level, without counterexamples.

    Faster than ``check``, for searches that call it often.
    """
    options = CheckOptions(max_examples=0, assume=assume, limits=limits or Limits(), weaker_orders=False)
    (wanted,) = _wanted(level, order)
    return _judged(history, [wanted.level], wanted.order, options).verdicts[wanted.level]


def described(history: History, name: str = "") -> Result:
    """Return a result with the size and the notes of a history, without verdicts."""
    return Result(
        history=name,
        format=history.format,
        sessions=history.sessions,
        transactions=history.transactions,
        operations=history.operations,
        notes=_notes(history),
    )


def _wanted(levels: str | Sequence[str], order: str) -> list[LevelRequest]:
    """Return the requested levels, each once, in lattice order; levels whose names imply an order come last."""
    if order not in ORDERS:
        raise ValueError(f"not an order: {order!r}; use one of {' '.join(ORDERS)}")
    spelled = [levels] if isinstance(levels, str) else list(levels)
    found: dict[str, LevelRequest] = {}
    for spelling in spelled:
        for name in GROUPS.get(spelling.strip().lower(), (spelling,)):
            is_declared = name.strip().lower() == DECLARED
            meant = LevelRequest(DECLARED, DECLARED, order) if is_declared else level_request(name, order)
            if meant is None:
                raise ValueError(unknown_level(name, (*NAMES, *GROUPS, DECLARED, "SSER", "StrongSI")))
            found[meant.name] = meant
    if not found:
        raise ValueError("no level to check")
    return [found[name] for name in in_lattice_order(found)]


def _in_real_time(wanted: list[LevelRequest], found: dict[str, LevelVerdict]) -> list[LevelRequest]:
    """Return the levels that "all levels" adds if the history has times: StrongSI if SI holds, SSER if SER holds.

    A level that is violated in session order is also violated in real time.
    """
    names = {level.name: level for level in wanted}
    if not all(name in names and names[name].order == SESSION for name in NAMES):
        return []
    asked_for = [LevelRequest(strong_name(level, REALTIME), level, REALTIME) for level in ALSO_IN_REAL_TIME]
    return [level for level in asked_for if level.name not in names and found[level.level].ok]


# One order


def _judged(history: History, levels: list[str], order: str, options: CheckOptions) -> OrderVerdicts:
    if order in (REALTIME, PER_KEY) and history.times is None:
        reason = LevelVerdict(None, reason=NO_TIMES, order=order)
        names = [TAPS[letter].label for letter in TAPS if letter in options.taps] or levels
        return OrderVerdicts(dict.fromkeys(names, reason), [], {}, True, {})
    if order == NONE and not options.taps:
        return _without_order(history, levels, options)
    judged = judge_order(history, levels, order, options)
    return judged if options.taps else _with_weaker_orders(history, judged, order, options)


def _without_order(history: History, levels: list[str], options: CheckOptions) -> OrderVerdicts:
    """Decide the levels without session order.

    A level that holds in session order also holds without it. Usually that decides all of them, and clocks are fast
    only with few sessions.
    """
    first = judge_order(history, levels, SESSION, replace(options, max_examples=0))
    holds = {level: replace(verdict, order=NONE) for level, verdict in first.verdicts.items() if verdict.ok}
    rest = [level for level in levels if level not in holds]
    if not rest:
        return replace(first, verdicts=holds)
    again = judge_order(history, rest, NONE, options)
    return replace(again, verdicts={level: (holds | again.verdicts)[level] for level in levels})


def _with_weaker_orders(history: History, judged: OrderVerdicts, order: str, options: CheckOptions) -> OrderVerdicts:
    """Add to each violated level the weaker order in which it holds, if there is one."""
    broken = [level for level, verdict in judged.verdicts.items() if verdict.ok is False]
    in_doubt = [level for level in broken if _rests_on_order(judged, level)]
    if not in_doubt or history.transactions > JUDGED_AGAIN or not options.weaker_orders:
        return judged
    verdicts = dict(judged.verdicts)
    less_asked = replace(options, max_examples=0, progress=None, limits=options.limits.of_work(STEPS_OF_WEAKER_ORDERS))
    for weaker in WEAKER[order]:
        if not in_doubt:
            break
        less = judge_order(history, in_doubt, weaker, less_asked)
        for level in in_doubt:
            if less.verdicts[level].ok:
                verdicts[level] = replace(verdicts[level], holds_in=weaker)
        in_doubt = [level for level in in_doubt if not less.verdicts[level].ok]
    return replace(judged, verdicts=verdicts)


def _rests_on_order(judged: OrderVerdicts, level: str) -> bool:
    """Return whether every counterexample at ``level`` uses session order or real time."""
    taps = judged.verdicts[level].taps
    against = [violation for violation in judged.violations if violation.tap in taps]
    return all(any(step.is_given for step in violation.all_steps()) for violation in against)


# Several orders in one result


def distinct(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Yield each violation once. A violation in a weaker order is also one in the stronger orders."""
    seen: dict[tuple[object, ...], set[str]] = {}
    for violation in violations:
        orders = seen.setdefault((violation.tap, violation.level, violation.steps, violation.explanation), set())
        if orders.isdisjoint({violation.order, *WEAKER[violation.order]}):
            yield violation
        orders.add(violation.order)


def _counts(parts: list[OrderVerdicts]) -> dict[str, int]:
    """Return the number of occurrences per pattern: its maximum over the orders."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts |= Counter(part.counts)
    return dict(counts)


def _seconds(parts: list[OrderVerdicts]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for part in parts:
        for phase, taken in part.seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + taken
    return seconds


# The other fields of the result


def _lanes(history: History) -> tuple[Lane, ...]:
    """Return all sessions of a small history, for pictures beside its counterexamples."""
    starts = history.session_start.tolist()
    return tuple(
        Lane(history.session_label[s], tuple((history.txn_label[t], STATUS_NAMES[history.txn_status[t]]) for t in own))
        for s, own in enumerate(range(*pair) for pair in pairwise(starts))
    )


def _notes(history: History) -> tuple[str, ...]:
    notes = list(history.warnings)
    if history.init_txn != NOBODY:
        notes.append(f"transaction {history.txn_label[history.init_txn]} is taken as the initial state")
    return tuple(notes)
