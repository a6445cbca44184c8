"""Phrases that several reports share, and the names of a violation in Adya's and Jepsen's (Elle's) terms.

Most of these names belong to a pattern, in ``levels.patterns``. The name of a cycle depends on the number of its RW
steps, and on whether two of them are adjacent. As in Elle, a cycle with a step of session order ends in ``-process``,
and one with a step of real time in ``-realtime``.
"""

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

# Times below this, in seconds, are not wall-clock times since 1970.
LONG_AGO = 1e8

# Names of cycles, the weakest first.
CYCLES = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")


def forbidden(violation: Violation) -> str:
    """Return a phrase for the weakest level that forbids the example: 'forbidden by snapshot isolation (SI) and every
    stronger level'.
    """
    if violation.level not in LEVELS:
        return "forbidden by the levels that these transactions run at"
    stronger = "" if violation.level == STRONGEST else " and every stronger level"
    in_time = " in real time" if any(step.relation == "RT" for step in violation.all_steps()) else ""
    return f"forbidden by {LEVELS[violation.level].title} ({violation.level}){in_time}{stronger}"


def strongest_kept(result: Result) -> str | None:
    """Return the strongest levels that hold, and the others, in one line; None unless all levels were requested."""
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


def size_of(result: Result) -> str:
    """Return the size of the history: ``4 transactions, 7 operations, 3 sessions``."""
    sizes = (result.transactions, "transaction"), (result.operations, "operation"), (result.sessions, "session")
    return ", ".join(counted(number, what) for number, what in sizes)


def order_of(name: str, verdict: LevelVerdict) -> str:
    """Return the order of a verdict, as a suffix; "" for the usual order or if the level's name states it."""
    usual = verdict.order == DEFAULT_ORDER or order_in(name) is not None
    return "" if usual else f" (order: {verdict.order})"


def _usual_names(violation: Violation) -> Iterator[str]:
    """Yield the common names of a violation: its own if it is one, and Adya's or Jepsen's."""
    if not violation.pattern.has_letter:
        yield violation.tap.replace("-", " ")
    yield from (alias for alias in aliases(violation)[-1:] if alias != violation.tap)


def counts_against(violation: Violation, level: str) -> bool:
    """Return whether the violation violates ``level``. All violate a level outside the lattice."""
    plain = level_of(level)
    return plain not in LEVELS or violation.level in {plain, *weaker_levels(plain)}


def weaker_order(verdict: LevelVerdict) -> str | None:
    """Return the weaker order in which a violated level holds, as a phrase, or None."""
    return None if verdict.holds_in is None else f"holds if {IF[verdict.holds_in]}"


def argument(violation: Violation) -> str:
    """Return the whole argument as sentences, for reports without separate steps."""
    by_steps = violation.pattern.kind in (
        Kind.REREAD,
        Kind.CYCLE,
        Kind.TRIPLE,
    )  # else the conclusion is the whole argument
    return f"{violation.explanation}. {violation.conclusion}" if by_steps else violation.conclusion


def place(transaction: ShownTransaction) -> str:
    """Return the position of a transaction in its file, and its declared level if there is one."""
    return f"{transaction.place}, at {transaction.level}" if transaction.level else transaction.place


def session_node(transactions: Iterable[ShownTransaction]) -> str:
    """Return the node that all transactions ran on, or ""."""
    nodes = {transaction.node for transaction in transactions}
    return nodes.pop() if len(nodes) == 1 else ""


def session_sort_key(session: Id) -> list[tuple[int, str]]:
    """Return a sort key for sessions by which s2 precedes s10."""
    parts = _NUMBER.split(str(session)[:200])  # every second part is a number
    return [(int(part) if at % 2 else -1, part) for at, part in enumerate(parts)]


def clock(seconds: float) -> str:
    """Return a wall-clock time to the microsecond, or the number itself if it is not one."""
    if abs(seconds) < LONG_AGO:
        return f"{seconds:.9g}"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def evidence_sentences(evidence: Evidence) -> Iterator[str]:
    """Yield the evidence behind a passing check, as sentences."""
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
    known = violation.pattern.aliases
    fixed = tuple(name for name in known if name not in CYCLES)
    cycle = _cycle_name(violation) if len(fixed) < len(known) else None
    return fixed if cycle is None else (*fixed, cycle)


def bracketed(violation: Violation) -> str:
    """Return the other names as a suffix such as `` [write-skew, G2-item]``, or ""."""
    names = aliases(violation)
    return f" [{', '.join(names)}]" if names else ""


def _cycle_name(violation: Violation) -> str | None:
    if violation.pattern.kind is Kind.TRIPLE:
        # t3 read a version that t2 overwrote, and saw t2: one RW in either order of t1 and t2
        name: str | None = "G-single"
    else:
        names = [_name(cycle) for cycle in _cycles(violation.steps)]
        # Each order of the writers gives one of these cycles. The strongest one names the violation.
        name = None if not names or None in names else max((n for n in names if n), key=CYCLES.index)
    relations = {step.relation for step in violation.all_steps()}
    by = "-realtime" if "RT" in relations else "-process" if "SO" in relations else ""
    return f"{name}{by}" if name else None


def _name(cycle: Sequence[Step]) -> str | None:
    relations = [step.relation for step in cycle]
    if not set(relations) <= {"SO", "RT", "WR", "WW", "RW"}:
        return None  # a commit order involves no key
    missed = relations.count("RW")
    if not missed:
        return "G1c" if "WR" in relations else "G0"
    if missed == 1:
        return "G-single"
    adjacent = any(a == b == "RW" for a, b in pairwise([relations[-1], *relations]))
    return "G2-item" if adjacent else "G-nonadjacent"


def _cycles(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """Yield the cycle of an argument, and the cycles in its evidence, which exclude other orders."""
    if steps:
        yield steps
    for step in steps:
        for order in (step, *step.evidence[1:]) if step.relation == "RW" else (step,):
            if order.is_proved:
                yield from _cycles(order.evidence)
