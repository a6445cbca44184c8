"""``check``: levels in, verdicts and counterexamples out."""

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
from plume_py.checking.verdicts import CheckOptions, OrderVerdicts, judge
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
    level_requests,
    strong_name,
    unknown_level,
)
from plume_py.levels.patterns import TAPS
from plume_py.levels.table import PREFIX, WRITERS

# The levels that databases provide in real time, too: SI and SER, which implies all others.
ALSO_IN_REAL_TIME = levels_that_see(PREFIX | WRITERS)
# Transactions of a history of which all are kept beside its counterexamples.
SEEN_WHOLE = 60
# A violated level is also judged in weaker orders if the history has at most so many transactions, with so much work
# (see ``Limits``). Work and not time, so that the answer is the same on every machine.
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
    """Does ``history`` keep ``levels``? With counterexamples for every pattern that says no.

    The level "declared" judges each transaction by the level that ``level_map`` says or else the history; ``assume`` is
    for those that have none. Where ``limits`` are reached a level stays undecided.
    ``max_examples`` is per pattern; with 0, strong patterns are not looked for beyond what decides the levels.
    ``order`` between transactions counts for every level whose name says no other (SSER: real time). If all levels are
    asked for in session order and the history has times, StrongSI and SSER are checked where SI and SER hold.
    ``taps`` asks for single patterns instead of levels: each gets a verdict of its own ("TAP-m"), ok if it is absent.

    >>> from plume_py import HistoryBuilder, check
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("s", [("w", "x", 1)])
    >>> builder.add("s", [("r", "x", 0)])
    >>> check(builder.build(), "RA").levels["RA"].taps
    ('k',)
    """
    question = CheckOptions(
        frozenset(taps), max_examples, clock, progress, assume, level_map, limits if limits is not None else Limits()
    )
    wanted = _wanted(levels, order)
    if not history.init_guessed:
        return _checked(history, wanted, question, name)
    seconds, kept = 0.0, dict[str, LevelVerdict]()
    if not taps:  # a pattern has the name that it has among the violations of a level
        guessed = _checked(history, wanted, replace(question, max_examples=0), name)
        if guessed.ok is not False:
            return guessed
        kept = {level: verdict for level, verdict in guessed.levels.items() if verdict.ok is not False}
        seconds = guessed.seconds["check"]
    ordinary = as_ordinary(history, any(level.name == DECLARED and level.name not in kept for level in wanted))
    result = _checked(ordinary, wanted, question, name, kept)
    label = display(history.txn_label[history.init_txn])
    return replace(
        result,
        seconds={**result.seconds, "check": seconds + result.seconds["check"]},
        notes=(*result.notes, f"{label} may have set up the initial state, and is judged like any other transaction"),
    )


def _checked(
    history: History,
    wanted: list[LevelRequest],
    question: CheckOptions,
    name: str,
    known: dict[str, LevelVerdict] | None = None,
) -> Result:
    """Check a history of which the initial state is certain; the verdicts in ``known`` are taken as they are."""
    start = time.perf_counter()
    found = dict(known or {})
    parts: list[OrderVerdicts] = []

    def add(mine: list[LevelRequest], order: str) -> None:
        judged = _judged(history, [level.level for level in mine], order, question)
        parts.append(judged)
        found.update(judged.verdicts if question.taps else {level.name: judged.verdicts[level.level] for level in mine})

    for each in sorted(ORDERS, key=lambda order: len(WEAKER[order])):  # the weaker first
        mine = [level for level in wanted if level.order == each and level.name not in found]
        if mine:
            add(mine, each)
    if history.times is not None and not question.taps:
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
        levels=found if question.taps else {level.name: found[level.name] for level in wanted},
        violations=tuple(shown),
        counts=_counts(parts),
        counts_exact=all(part.counts_exact for part in parts),
        seconds={**_seconds(parts), "check": time.perf_counter() - start},
        lanes=_lanes(history) if shown and history.transactions <= SEEN_WHOLE else (),
    )


def verdict(
    history: History, level: str, *, order: str = DEFAULT_ORDER, assume: str | None = None, limits: Limits | None = None
) -> LevelVerdict:
    """Return the verdict on one level and nothing else: faster than ``check``, for searches that ask often."""
    question = CheckOptions(max_examples=0, assume=assume, limits=limits or Limits(), weaker_orders=False)
    (wanted,) = _wanted(level, order)
    return _judged(history, [wanted.level], wanted.order, question).verdicts[wanted.level]


def described(history: History, name: str = "") -> Result:
    """What can be said of a history without judging it."""
    return Result(
        history=name,
        format=history.format,
        sessions=history.sessions,
        transactions=history.transactions,
        operations=history.operations,
        notes=_notes(history),
    )


def _wanted(levels: str | Sequence[str], order: str) -> list[LevelRequest]:
    """Each once, in the order of the lattice; those whose names say their order come last."""
    if order not in ORDERS:
        raise ValueError(f"not an order: {order!r}; use one of {' '.join(ORDERS)}")
    spelled = [levels] if isinstance(levels, str) else list(levels)
    found: dict[str, LevelRequest] = {}
    for spelling in spelled:
        for name in GROUPS.get(spelling.strip().lower(), (spelling,)):
            is_declared = name.strip().lower() == DECLARED
            meant = LevelRequest(DECLARED, DECLARED, order) if is_declared else level_requests(name, order)
            if meant is None:
                raise ValueError(unknown_level(name, (*NAMES, *GROUPS, DECLARED, "SSER", "StrongSI")))
            found[meant.name] = meant
    if not found:
        raise ValueError("no level to check")
    return [found[name] for name in in_lattice_order(found)]


def _in_real_time(wanted: list[LevelRequest], found: dict[str, LevelVerdict]) -> list[LevelRequest]:
    """Return what "all levels" also means for a history with times: StrongSI if SI holds, SSER if SER holds.

    A level that is violated in session order is violated in real time anyway.
    """
    names = {level.name: level for level in wanted}
    if not all(name in names and names[name].order == SESSION for name in NAMES):
        return []
    asked_for = [LevelRequest(strong_name(level, REALTIME), level, REALTIME) for level in ALSO_IN_REAL_TIME]
    return [level for level in asked_for if level.name not in names and found[level.level].ok]


# One order


def _judged(history: History, levels: list[str], order: str, question: CheckOptions) -> OrderVerdicts:
    if order in (REALTIME, PER_KEY) and history.times is None:
        reason = LevelVerdict(None, reason=NO_TIMES, order=order)
        names = [TAPS[letter].label for letter in TAPS if letter in question.taps] or levels
        return OrderVerdicts(dict.fromkeys(names, reason), [], {}, True, {})
    if order == NONE and not question.taps:
        return _without_order(history, levels, question)
    judged = judge(history, levels, order, question)
    return judged if question.taps else _with_weaker_orders(history, judged, order, question)


def _without_order(history: History, levels: list[str], question: CheckOptions) -> OrderVerdicts:
    """What holds with sessions in their order holds without; mostly that is all, and clocks are for few sessions."""
    first = judge(history, levels, SESSION, replace(question, max_examples=0))
    holds = {level: replace(verdict, order=NONE) for level, verdict in first.verdicts.items() if verdict.ok}
    rest = [level for level in levels if level not in holds]
    if not rest:
        return replace(first, verdicts=holds)
    again = judge(history, rest, NONE, question)
    return replace(again, verdicts={level: (holds | again.verdicts)[level] for level in levels})


def _with_weaker_orders(history: History, judged: OrderVerdicts, order: str, question: CheckOptions) -> OrderVerdicts:
    """Add to each violated level the weaker order in which it holds, if there is one."""
    broken = [level for level, verdict in judged.verdicts.items() if verdict.ok is False]
    in_doubt = [level for level in broken if _rests_on_order(judged, level)]
    if not in_doubt or history.transactions > JUDGED_AGAIN or not question.weaker_orders:
        return judged
    verdicts = dict(judged.verdicts)
    less_asked = replace(
        question, max_examples=0, progress=None, limits=question.limits.of_work(STEPS_OF_WEAKER_ORDERS)
    )
    for weaker in WEAKER[order]:
        if not in_doubt:
            break
        less = judge(history, in_doubt, weaker, less_asked)
        for level in in_doubt:
            if less.verdicts[level].ok:
                verdicts[level] = replace(verdicts[level], holds_in=weaker)
        in_doubt = [level for level in in_doubt if not less.verdicts[level].ok]
    return replace(judged, verdicts=verdicts)


def _rests_on_order(judged: OrderVerdicts, level: str) -> bool:
    """Does every counterexample that was found speak of an order between transactions?"""
    taps = judged.verdicts[level].taps
    against = [violation for violation in judged.violations if violation.tap in taps]
    return all(any(step.is_given for step in violation.all_steps()) for violation in against)


# Several orders in one answer


def distinct(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Each once; what is one in a weaker order is one in this, too."""
    seen: dict[tuple[object, ...], set[str]] = {}
    for violation in violations:
        orders = seen.setdefault((violation.tap, violation.level, violation.steps, violation.explanation), set())
        if orders.isdisjoint({violation.order, *WEAKER[violation.order]}):
            yield violation
        orders.add(violation.order)


def _counts(parts: list[OrderVerdicts]) -> dict[str, int]:
    """How often each pattern occurs: in the order in which it does most."""
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


# The rest of the answer


def _lanes(history: History) -> tuple[Lane, ...]:
    """All of a small history, beside which its counterexamples can be seen."""
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
