"""Check a history at levels by their definitions: levels that only ``synth`` has, and levels from a user's file.

``isocheck check`` calls this module and adds the verdicts to the result of the checker.
"""

from dataclasses import replace

from plume_py.base.limits import Limits
from plume_py.checking.check import check, distinct
from plume_py.checking.result import Result
from plume_py.history.model import History
from plume_py.levels import WEAKEST
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.reasoning.synth import Definition
from plume_py.reasoning.synth.judge import Judgement, judge
from plume_py.reasoning.synth.picture import judgement_picture
from plume_py.reasoning.synth.report import verdict
from plume_py.report.graphviz import Album, slug


def in_order(level: Definition, order: str) -> Definition:
    """Return the level with this order between transactions, unless the name of the level contains an order."""
    if order == DEFAULT_ORDER or level.level != level.name:
        return level
    return replace(level, order=order)


def judged(history: History, levels: dict[str, Definition], limits: Limits) -> list[Judgement]:
    """Return a judgement for each level."""
    return [judge(history, level, limits) for level in levels.values()]


def with_verdicts(result: Result, history: History, found: list[Judgement]) -> Result:
    """Return the result with the verdicts of the judgements; the checker explains aborted and unreadable reads."""
    if any(judgement.flaws for judgement in found):
        flawed = check(history, WEAKEST, name=result.history)
        violations = tuple(distinct((*result.violations, *flawed.violations)))
        result = replace(result, violations=violations, counts=flawed.counts | result.counts, lanes=flawed.lanes)
    return replace(result, levels=result.levels | {judgement.level: verdict(judgement) for judgement in found})


def draw(album: Album, history: str, found: list[Judgement]) -> int:
    """Draw the witnesses and contradictions that can be drawn; return their number."""
    drawn = [(judgement.level, source) for judgement in found if (source := judgement_picture(judgement)) is not None]
    for level, source in drawn:
        album.add(f"{slug(history)}-{level}", source)
    return len(drawn)
