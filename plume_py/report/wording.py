"""Words that several reports share."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from plume_py.base.text import counted
from plume_py.checking.result import Evidence, Id, LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.levels import LEVELS, STRONGEST, weaker_levels
from plume_py.levels.orders import DEFAULT_ORDER, IF, REALTIME, level_of, order_in
from plume_py.levels.patterns import Kind

_NUMBER = re.compile("([0-9]{1,18})")

# Seconds since 1970 that no clock of today shows: such times are counted from another moment.
LONG_AGO = 1e8

# By what they need, the least first.
CYCLES = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")


def forbidden(violation: Violation) -> str:
    """From which level on the example is a violation."""
    if violation.level not in LEVELS:
        return "forbidden by the levels that these transactions run at"
    stronger = "" if violation.level == STRONGEST else " and every stronger level"
    in_time = " in real time" if any(step.relation == "RT" for step in violation.all_steps()) else ""
    return f"forbidden by {LEVELS[violation.level].title} ({violation.level}){in_time}{stronger}"


def strongest_kept(result: Result) -> str | None:
    """How far it holds, in a line, where every level was asked for."""
    verdicts = {name: verdict.ok for name, verdict in result.levels.items() if name in LEVELS}
    if set(verdicts) != set(LEVELS):
        return None
    kept = [name for name, ok in verdicts.items() if ok]
    top = [name for name in kept if not any(name in weaker_levels(other) for other in kept)]
    in_time = [name for name, verdict in result.levels.items() if name not in LEVELS and verdict.order == REALTIME]
    broken = [name for name in (*verdicts, *in_time) if result.levels[name].ok is False]
    open_ = [name for name in (*verdicts, *in_time) if result.levels[name].ok is None]
    if not broken and not open_:
        also = ", also in real time" if in_time else ""
        return f"every level holds, up to {LEVELS[STRONGEST].title} ({STRONGEST}){also}"
    levels = "level" if len(top) == 1 else "levels"
    parts = [f"strongest {levels} kept: {', '.join(top)}"] if top else ["no level is kept"] if broken else []
    if broken:
        why = dict.fromkeys(name for violation in result.violations for name in _usual_names(violation))
        parts.append(f"broken: {', '.join(broken)}" + (f" ({', '.join(why)})" if why else ""))
    if open_:
        parts.append(f"undecided: {', '.join(open_)}")
    order = next(iter(result.levels.values())).order
    return "; ".join(parts) + (f" (order: {order})" if order != DEFAULT_ORDER else "")


def order_of(name: str, verdict: LevelVerdict) -> str:
    """Which order counted, behind a verdict, unless it is the usual one or the name of the level says so."""
    usual = verdict.order == DEFAULT_ORDER or order_in(name) is not None
    return "" if usual else f" (order: {verdict.order})"


def _usual_names(violation: Violation) -> Iterator[str]:
    """What people call it: its own name, where that is one, and Adya's or Jepsen's."""
    if not violation.pattern.has_letter:
        yield violation.tap.replace("-", " ")
    yield from (alias for alias in aliases(violation)[-1:] if alias != violation.tap)


def counts_against(violation: Violation, level: str) -> bool:
    """Does it break ``level``? Of what is no level of the lattice, every violation is."""
    plain = level_of(level)
    return plain not in LEVELS or violation.level in {plain, *weaker_levels(plain)}


def weaker_order(verdict: LevelVerdict) -> str | None:
    """In what weaker order a broken level holds, in words."""
    return None if verdict.holds_in is None else f"holds if {IF[verdict.holds_in]}"


def argument(violation: Violation) -> str:
    """The whole argument in sentences, where there is no room for its steps one by one."""
    by_steps = violation.pattern.kind in (Kind.REREAD, Kind.CYCLE, Kind.TRIPLE)  # else the conclusion says it all
    return f"{violation.explanation}. {violation.conclusion}" if by_steps else violation.conclusion


def place(transaction: ShownTransaction) -> str:
    """Where it stands in its file, and its level if it was judged by one of its own."""
    return f"{transaction.place}, at {transaction.level}" if transaction.level else transaction.place


def home(transactions: Iterable[ShownTransaction]) -> str:
    """The node that all of them ran on, for the head of a session's lane; "" if there is none."""
    nodes = {transaction.node for transaction in transactions}
    return nodes.pop() if len(nodes) == 1 else ""


def by_name(session: Id) -> list[tuple[int, str]]:
    """What to sort sessions by, so that s2 comes before s10."""
    parts = _NUMBER.split(str(session)[:200])  # every second one is a number
    return [(int(part) if at % 2 else -1, part) for at, part in enumerate(parts)]


def clock(seconds: float) -> str:
    """A time of the wall clock, for people, to the microsecond; the number itself if it is none."""
    if abs(seconds) < LONG_AGO:
        return f"{seconds:.9g}"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def evidence_sentences(evidence: Evidence) -> Iterator[str]:
    """What a pass is worth, a sentence each."""
    if evidence.tried:
        shares = ", ".join(f"{level} {100 * n // evidence.tried} %" for level, n in evidence.levels_detecting.items())
        yield (
            f"had one read been one version stale, at least these would have noticed: {shares} "
            f"({counted(evidence.tried, 'read')} tried, seed {evidence.seed})"
        )
    else:
        yield "no read saw a version that had overwritten another: nothing stale could have been noticed"
    if evidence.conflicts is not None:
        number = f"{'' if evidence.conflicts_exact else 'at least '}{counted(evidence.conflicts, 'pair')}"
        yield f"{number} of overlapping transactions touched the same key, one of them writing"
    if evidence.unseen:
        yield "it could not have shown: " + "; ".join(f"{name} ({advice})" for name, advice in evidence.unseen)


def aliases(violation: Violation) -> tuple[str, ...]:
    """Other names of this violation; none where none fits."""
    known = violation.pattern.aliases
    fixed = tuple(name for name in known if name not in CYCLES)
    cycle = _cycle_name(violation) if len(fixed) < len(known) else None
    return fixed if cycle is None else (*fixed, cycle)


def bracketed(violation: Violation) -> str:
    """`` [write-skew, G2-item]``, to stand behind a name; nothing if there are no other names."""
    names = aliases(violation)
    return f" [{', '.join(names)}]" if names else ""


def _cycle_name(violation: Violation) -> str | None:
    if violation.pattern.kind is Kind.TRIPLE:
        # t3 read what t2 overwrote, and saw t2: one RW, whichever of the orders of t1 and t2 one looks at
        name: str | None = "G-single"
    else:
        names = [_name(cycle) for cycle in _cycles(violation.steps)]
        # Whatever the order of the writers, there is one of these cycles: none needs more than this one.
        name = None if not names or None in names else max((n for n in names if n), key=CYCLES.index)
    relations = {step.relation for step in violation.all_steps()}
    by = "-realtime" if "RT" in relations else "-process" if "SO" in relations else ""
    return f"{name}{by}" if name else None


def _name(cycle: Sequence[Step]) -> str | None:
    relations = [step.relation for step in cycle]
    if not set(relations) <= {"SO", "RT", "WR", "WW", "RW"}:
        return None  # a commit order says nothing of a key
    missed = relations.count("RW")
    if not missed:
        return "G1c" if "WR" in relations else "G0"
    if missed == 1:
        return "G-single"
    adjacent = any(a == b == "RW" for a, b in pairwise([relations[-1], *relations]))
    return "G2-item" if adjacent else "G-nonadjacent"


def _cycles(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """The cycle of an argument, and those that exclude other orders."""
    if steps:
        yield steps
    for step in steps:
        for order in (step, *step.evidence[1:]) if step.relation == "RW" else (step,):
            if order.is_proved:
                yield from _cycles(order.evidence)
