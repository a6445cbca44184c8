"""Levels by their definitions, for ``isocheck check``: those of synth that the checker does not have, and one's own."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import IsocheckError
from plume_py.cli.common_options import LevelChoice
from plume_py.levels import WEAKEST
from plume_py.levels.orders import DEFAULT_ORDER, level_request

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.history.model import History
    from plume_py.reasoning.synth import Definition
    from plume_py.reasoning.synth.judge import Judgement
    from plume_py.report.graphviz import Album


class AnyLevelChoice(LevelChoice):
    """As LevelChoice; other names stay as they are until the files that may define them have been read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """A tuple of names."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            return (str(value).strip(),)


def apart(
    ctx: click.Context, names: list[str], files: tuple[str, ...], order: str
) -> "tuple[list[str], dict[str, Definition]]":
    """Levels that the checker decides, and those by their definitions: all of the files' if no level is named."""
    others = [name for name in names if name != "declared" and level_request(name) is None]
    if not others and not files:
        return names, {}
    from plume_py.cli.synth_options import chosen, defined_in

    defined = defined_in(files)
    wanted = others or ([] if names else list(defined))
    try:
        (levels,) = chosen(defined, tuple(wanted)) if wanted else [[]]
    except IsocheckError as error:
        param = next(param for param in ctx.command.params if param.name == "levels")
        raise click.BadParameter(str(error), ctx, param) from None
    kept = [name for name in names if name not in others]
    return kept, {level.name: _in_order(level, order) for level in levels}


def _in_order(level: "Definition", order: str) -> "Definition":
    """With the order of --order, unless its name says one."""
    if order == DEFAULT_ORDER or level.level != level.name:
        return level
    return replace(level, order=order)


def judged(history: "History", levels: "dict[str, Definition]", limits: "Limits") -> "list[Judgement]":
    """Each level by its definition."""
    from plume_py.reasoning.synth.judge import judge

    return [judge(history, level, limits) for level in levels.values()]


def with_verdicts(result: "Result", history: "History", found: "list[Judgement]") -> "Result":
    """The result with these verdicts, too; reads that are wrong by themselves are explained as the checker does."""
    from plume_py.checking.check import check, distinct
    from plume_py.reasoning.synth.judged_report import verdict

    if any(judgement.flaws for judgement in found):
        flawed = check(history, WEAKEST, name=result.history)
        violations = tuple(distinct((*result.violations, *flawed.violations)))
        result = replace(result, violations=violations, counts=flawed.counts | result.counts, lanes=flawed.lanes)
    return replace(result, levels=result.levels | {judgement.level: verdict(judgement) for judgement in found})


def draw(album: "Album", history: str, found: "list[Judgement]") -> int:
    """Pictures of witnesses and of contradictions; how many."""
    from plume_py.reasoning.synth.judged_report import picture
    from plume_py.report.graphviz import slug

    drawn = [(judgement.level, source) for judgement in found if (source := picture(judgement)) is not None]
    for level, source in drawn:
        album.add(f"{slug(history)}-{level}", source)
    return len(drawn)
