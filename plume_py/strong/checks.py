"""Verdicts on strong and declared levels, for ``check``: the weak levels have been looked at already."""

from dataclasses import dataclass, field

from plume_py.history.model import Int8s
from plume_py.levels import weaker_levels
from plume_py.report.verdict import LevelVerdict, Violation
from plume_py.strong.decision import Decision
from plume_py.strong.engine import StrongEngine
from plume_py.strong.explain import explain
from plume_py.strong.limits import Limits
from plume_py.weak.engine import WeakEngine

STRONGEST_FIRST = ("SER", "SI", "PSI", "PC")
DECLARED = "declared"


@dataclass
class StrongVerdicts:
    """What was found, level by level, with a counterexample of each that is broken."""

    verdicts: dict[str, LevelVerdict] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)


def strong_verdicts(weak: WeakEngine, wanted: list[str], limits: Limits, examples: int) -> StrongVerdicts:
    """Verdicts on PC, PSI, SI, SER, as far as wanted; TCC holds."""
    found = StrongVerdicts()
    for level in STRONGEST_FIRST:
        if level in wanted:
            above = [other for other in found.decisions if level in weaker_levels(other) and found.decisions[other].ok]
            found.decisions[level] = (
                found.decisions[above[0]] if above else StrongEngine(weak, level, limits=limits).decide()
            )
    for level in reversed(STRONGEST_FIRST):
        if level in wanted:
            # A counterexample of a weaker level speaks for this one, too.
            below = [other for other in found.verdicts if other in weaker_levels(level) and found.verdicts[other].taps]
            taps = tuple(dict.fromkeys(tap for other in below for tap in found.verdicts[other].taps))
            found.verdicts[level] = _verdict(weak, found, level, level, taps, examples)
    return found


def declared_verdict(weak: WeakEngine, codes: Int8s, limits: Limits, examples: int) -> StrongVerdicts:
    """The verdict on a level per transaction; no read is wrong in itself, and causality has no cycle."""
    found = StrongVerdicts()
    found.decisions[DECLARED] = StrongEngine(weak, codes, limits=limits).decide()
    found.verdicts[DECLARED] = _verdict(weak, found, DECLARED, codes, (), examples)
    return found


def _verdict(
    weak: WeakEngine, found: StrongVerdicts, name: str, level: str | Int8s, taps: tuple[str, ...], examples: int
) -> LevelVerdict:
    decision = found.decisions[name]
    if decision.ok is None:
        return LevelVerdict(None, reason=decision.reason)
    if decision.ok:
        return LevelVerdict(True)
    if not taps:
        with weak.timed("explain"):
            violations = explain(weak, decision, level)
        found.violations += violations[:examples]
        taps = tuple(dict.fromkeys(violation.tap for violation in violations))
    return LevelVerdict(False, taps)
