"""Decide strong and declared levels for ``verdicts``, after the weak levels.

``StrongEngine`` decides each level, ``counterexample`` explains violations, ``further_violations`` adds more.
"""

from dataclasses import dataclass, field

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.declared import DECLARED
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import NOT_EXPLAINED, LevelVerdict, Violation
from plume_py.checking.strong.counterexample import Explained, explain
from plume_py.checking.strong.further_violations import ConsistentPart, FurtherViolations
from plume_py.checking.strong.solver.engine import Decision, StrongEngine
from plume_py.history.model import Int8s
from plume_py.levels import STRONG, weaker_levels


@dataclass
class StrongVerdicts:
    """Verdicts, counterexamples and pattern counts of strong levels."""

    verdicts: dict[str, LevelVerdict] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    complete: bool = True  # False if ``counts`` may lack a strong pattern
    stopped: str = ""  # the time or memory limit that ended the explanation, if any


def strong_verdicts(analysis: Analysis, levels: list[str], limits: Limits, examples: int) -> StrongVerdicts:
    """Return the verdicts on the strong levels among ``levels``; TCC holds."""
    decisions: dict[str, Decision] = {}
    for level in STRONG:
        if level in levels:
            above = [other for other in decisions if level in weaker_levels(other) and decisions[other].ok]
            decisions[level] = decisions[above[0]] if above else _decide(analysis, level, limits)
    found: list[Explained] = []
    stopped = ""
    for level in reversed(STRONG):
        # A counterexample of a weaker level also violates this one.
        if level in levels and not any(_counts_against(level, each.violation) for each in found):
            new, reason = _explained(analysis, decisions[level], level)
            found, stopped = found + new, stopped or reason
    more = _with_more(analysis, tuple(levels), found, limits, examples)
    more.stopped = stopped or more.stopped
    return _verdicts({level: decisions[level] for level in levels}, found, more)


def _decide(analysis: Analysis, level: str, limits: Limits) -> Decision:
    return StrongEngine(analysis, level, limits=limits.for_level()).decide()


def first_violation(analysis: Analysis, level: str, limits: Limits) -> Violation | None:
    """Return one violation of PC, PSI, SI or SER, reported at a weakest level that it violates; TCC holds."""
    found, _ = _explained(analysis, StrongEngine(analysis, level, limits=limits).decide(), level)
    return found[0].violation if found else None


def declared_verdict(analysis: Analysis, codes: Int8s, limits: Limits, examples: int) -> StrongVerdicts:
    """Return the verdict on declared levels. No read may be wrong without a cycle, and causality must be acyclic."""
    decision = StrongEngine(analysis, codes, limits=limits).decide()
    found, stopped = _explained(analysis, decision, codes)
    more = _with_more(analysis, codes, found, limits, examples)
    more.stopped = stopped or more.stopped
    return _verdicts({DECLARED: decision}, found, more)


def further_violations(
    analysis: Analysis,
    verdicts: dict[str, LevelVerdict],
    levels: tuple[str, ...] | Int8s,
    consistent_part: ConsistentPart,
    limits: Limits,
    examples: int,
) -> StrongVerdicts:
    """Add the strong patterns of a history that violates a weak level.

    ``verdicts`` already say "violated". The search examines the part that ``consistent_part`` returns.
    """
    more = FurtherViolations(analysis, levels, examples)
    if examples:
        with analysis.timed("besides"):
            more.search([], limits, consistent_part)
    told = {
        level: LevelVerdict(False, (*verdict.taps, *_taps(level, more.violations)), verdict.reason)
        for level, verdict in verdicts.items()
    }
    return StrongVerdicts(told, more.violations, dict(more.counts), bool(examples) and more.complete, more.stopped)


def _explained(analysis: Analysis, decision: Decision, level: str | Int8s) -> tuple[list[Explained], str]:
    if decision.ok is not False:
        return [], ""
    try:
        with analysis.timed("explain"):
            return explain(analysis, decision, level), decision.reason
    except LimitError as error:  # the verdict remains valid
        return [], str(error)


def _with_more(
    analysis: Analysis, levels: tuple[str, ...] | Int8s, explained: list[Explained], limits: Limits, examples: int
) -> FurtherViolations:
    """Return the first violations and the ones that the search adds."""
    more = FurtherViolations(analysis, levels, examples)
    for each in explained:
        more.add(each)
    if explained and examples:
        with analysis.timed("besides"):
            more.search(explained, limits)
    return more


def _verdicts(decisions: dict[str, Decision], explained: list[Explained], more: FurtherViolations) -> StrongVerdicts:
    violations = [*(each.violation for each in explained), *more.violations]
    verdicts = {}
    for level, decision in decisions.items():
        taps = () if decision.ok is not False else _taps(level, violations)
        reason = decision.reason if decision.ok is None else None
        verdicts[level] = LevelVerdict(decision.ok, taps, reason if taps or decision.ok is not False else NOT_EXPLAINED)
    return StrongVerdicts(verdicts, more.violations, dict(more.counts), more.complete, more.stopped)


def _taps(level: str, violations: list[Violation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.tap for each in violations if _counts_against(level, each)))


def _counts_against(level: str, violation: Violation) -> bool:
    return violation.level == level or (level != DECLARED and violation.level in weaker_levels(level))
