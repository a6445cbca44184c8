"""Elle's world: what it calls our patterns, and which consistency models they rule out.

The names are those of elle.consistency-model (0.2). Two of Elle's habits matter. Its plain models know no sessions: a
violation that rests on session order rules out a ``strong-session-`` model only, and its anomaly ends in ``-process``;
one that rests on real time a ``strong-`` one, and it ends in ``-realtime``.
And its read committed is Adya's PL-2, weaker than RC here: what only RC's rule about several reads forbids (TAP-h,
TAP-i) is allowed there, and forbidden from monotonic atomic view on.
"""

from collections.abc import Iterable, Iterator

from plume_py.checking.result import Ends, Step, Violation
from plume_py.levels import LEVELS, visibility_bits
from plume_py.levels.orders import NONE, PER_KEY, REALTIME
from plume_py.levels.patterns import TORN, Kind
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS
from plume_py.report.anomaly_names import aliases

# Patterns that are no cycles, and how Elle spells our other names for those that are.
_NO_CYCLES = frozenset((Kind.READ, Kind.REREAD, Kind.LIST))
_SPELLED = {"G-single": "G-single-item", "G-nonadjacent": "G-nonadjacent-item"}

_LOST_UPDATE = "lost-update"

# The weakest of Elle's models that an anomaly rules out by itself; cycles are judged by our level instead.
_MODELS_OF_TYPE: dict[str, tuple[str, ...]] = {
    "G0": ("read-uncommitted",),
    "duplicate-elements": ("read-uncommitted",),
    "garbage-read": ("read-committed",),
    "G1a": ("read-committed",),
    "G1b": ("read-committed",),
    "G1c": ("read-committed",),
    "incompatible-order": ("read-committed",),
    "future-read": ("read-committed", "read-atomic"),
    "internal": ("read-atomic",),
    "lost-update": ("cursor-stability", "update-atomic"),
    "G-single-item": ("consistent-view", "repeatable-read"),
    "G-nonadjacent-item": ("snapshot-isolation", "repeatable-read"),
    "G2-item": ("repeatable-read",),
    "G0-process": ("strong-session-read-uncommitted",),
    "G1c-process": ("strong-session-read-committed",),
    "G-single-item-process": ("strong-session-snapshot-isolation",),
    "G-nonadjacent-item-process": ("strong-session-snapshot-isolation",),
    "G2-item-process": ("strong-session-serializable",),
    "G0-realtime": ("strong-read-uncommitted",),
    "G1c-realtime": ("strong-read-committed",),
    "G-single-item-realtime": ("strong-snapshot-isolation",),
    "G-nonadjacent-item-realtime": ("strong-snapshot-isolation",),
    "G2-item-realtime": ("strong-serializable",),
}

# Cycles without rw: RC forbids them, and so does Elle's weaker read committed, or even less.
_BELOW_ALL = ("g", "version-order-cycle")

# Who is directly above whom: a history that is not the first is none of the others.
_STRONGER: dict[str, tuple[str, ...]] = {
    "read-uncommitted": ("read-committed", "strong-session-read-uncommitted"),
    "read-committed": (
        "cursor-stability",
        "monotonic-atomic-view",
        "monotonic-snapshot-read",
        "monotonic-view",
        "strong-session-read-committed",
    ),
    "monotonic-atomic-view": ("read-atomic", "repeatable-read", "snapshot-isolation"),
    "monotonic-snapshot-read": ("snapshot-isolation",),
    "monotonic-view": ("consistent-view",),
    "cursor-stability": ("consistent-view", "repeatable-read"),
    "consistent-view": ("forward-consistent-view",),
    "forward-consistent-view": ("snapshot-isolation", "update-serializable"),
    "read-atomic": ("causal-cerone", "update-atomic"),
    "causal-cerone": ("parallel-snapshot-isolation", "prefix"),
    "update-atomic": ("parallel-snapshot-isolation",),
    "prefix": ("snapshot-isolation",),
    "parallel-snapshot-isolation": ("snapshot-isolation",),
    "repeatable-read": ("serializable",),
    "update-serializable": ("serializable",),
    "snapshot-isolation": ("serializable", "strong-session-snapshot-isolation"),
    "serializable": ("strong-session-serializable",),
    "strong-session-read-uncommitted": ("strong-read-uncommitted", "strong-session-read-committed"),
    "strong-session-read-committed": ("strong-read-committed", "strong-session-snapshot-isolation"),
    "strong-session-snapshot-isolation": ("strong-session-serializable", "strong-snapshot-isolation"),
    "strong-session-serializable": ("strong-serializable",),
    "strong-read-uncommitted": ("strong-read-committed",),
    "strong-read-committed": ("strong-snapshot-isolation",),
    "strong-snapshot-isolation": ("strong-serializable",),
    "strong-serializable": (),
}


def elle_types(violation: Violation) -> list[str]:
    """What Elle calls ``violation``, the most telling name first."""
    if violation.tap == TORN:
        return ["incompatible-order"]  # no order of appends shows such a list; to Elle it is G-single, G0 or nothing
    names = [name for name in map(_spelled, aliases(violation)) if name in _MODELS_OF_TYPE]
    if violation.pattern.kind in _NO_CYCLES or any(name != _LOST_UPDATE for name in names):
        return names
    return [*names, _cycle_at(violation.level) + _by(violation)]


def _by(violation: Violation) -> str:
    """What else than reads and writes an argument rests on; one that is not told rests on all that counts."""
    relations = {step.relation for step in violation.all_steps()}
    if "RT" in relations or (not relations and violation.order in (REALTIME, PER_KEY)):
        return "-realtime"
    return "-process" if "SO" in relations or (not relations and violation.order != NONE) else ""


def _cycle_at(level: str) -> str:
    """What a history that breaks a level shows, whatever the order of its writes, or worse."""
    bits = LEVELS[level].visibility or 0 if level in LEVELS else 0
    if bits & (PREFIX | EVERYTHING) == PREFIX:
        return "G-nonadjacent-item"
    return "G-single-item" if bits & (WRITERS | EVERYTHING) == WRITERS else "G2-item"


def _spelled(name: str) -> str:
    cycle = name.removesuffix("-process").removesuffix("-realtime")
    return _SPELLED.get(cycle, cycle) + name[len(cycle) :]


def elle_cycle(violation: Violation) -> tuple[Step, ...]:
    """The steps of a violation as Elle would walk them; empty if they are no cycle."""
    if violation.ends is Ends.OPEN:
        return ()
    last = violation.steps[-1]
    only_forced = all(step.relation != "CM" for step in violation.steps[:-1])
    if violation.pattern.kind is Kind.TRIPLE and only_forced and last.reader is not None and last.evidence:
        # Who read from t1 although it had seen t2, which came after t1: it comes before t2, and after it.
        missed = Step(last.reader, last.source, "RW", last.key, last.because)
        return missed, *last.evidence
    return violation.steps


def ruled_out(violations: Iterable[Violation]) -> tuple[set[str], set[str]]:
    """Elle's ``:not``, the weakest models that do not hold, and ``:also-not``, those above them."""
    broken = {model for violation in violations for model in _models(violation)}
    above = {model for weaker in broken for model in _above(weaker)}
    return broken - above, above


def _models(violation: Violation) -> Iterator[str]:
    """The weakest models that one violation rules out."""
    if violation.level not in LEVELS:  # levels per transaction: Elle has no such model
        return
    by_order = violation.pattern.kind not in _NO_CYCLES and bool(_by(violation))
    for name in elle_types(violation):
        # A lost update that needs sessions is none to Elle; its cycle speaks for it.
        if name != _LOST_UPDATE or not (by_order or visibility_bits(violation.level) & EVERYTHING):
            yield from _MODELS_OF_TYPE[name]
    if not by_order and violation.pattern.kind not in _NO_CYCLES and violation.tap not in _BELOW_ALL:
        yield LEVELS[violation.level].jepsen


def _above(model: str) -> set[str]:
    found: set[str] = set()
    waiting = list(_STRONGER[model])
    while waiting:
        stronger = waiting.pop()
        if stronger not in found:
            found.add(stronger)
            waiting += _STRONGER[stronger]
    return found
