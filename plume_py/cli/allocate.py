"""``isocheck allocate``: find the weakest safe level for each transaction of a workload."""

from typing import Any

import click

from plume_py.base.errors import ExitCode, IsocheckError, LimitError
from plume_py.base.text import one_line
from plume_py.cli.allocate_options import (
    drawing_of,
    level_in,
    level_pairs,
    read_workload,
    reading_workloads,
    write_critical_cycles,
)
from plume_py.cli.common_options import limits_of, picture_formats, picture_option, tell_written, timeout_option

RULES = ("refined", "repaired", "paper")


@click.command("allocate")
@reading_workloads
@click.option("--rules", type=click.Choice(RULES), default="refined", show_default=True)
@click.option("--pin", "pins", multiple=True, metavar="NAME=LEVEL", help="Keep a program or instance at a level.")
@click.option("--weights", metavar="LEVEL=COST,...", help="What a level costs; of safe levels the cheapest is taken.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the workload with its levels to this file.")
@click.option("--brief", is_flag=True, help="The levels only, without reasons.")
@click.option("--out", type=click.Path(file_okay=False), help="Write and draw the histories into this folder.")
@picture_option
@timeout_option()
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    pins: tuple[str, ...],
    weights: str | None,
    save: str | None,
    brief: bool,
    out: str | None,
    pictures: tuple[str, ...],
    timeout: float | None,
    output: str,
    rules: str,
    **params: Any,
) -> None:
    """The weakest level for each transaction at which every run is still serializable.

    WORKLOAD is a JSON file of programs or instances, an .sql file, or smallbank, courseware, tpcc; --from-log takes
    the programs from a log of statements. Programs get a level that is safe in every workload, unless --instances draws
    one.

    Exit code: 0 done, 2 wrong usage, 3 the time was up before all was decided and explained, 4 a file cannot be read.

    \b
    Examples:
      isocheck allocate smallbank
      isocheck allocate app.sql --catalogue mysql --save levels.json
      isocheck allocate smallbank --pin Balance=SER --brief
      isocheck allocate --from-log postgresql.log --schema schema.sql --catalogue postgresql
    """
    from plume_py.reasoning.allocate.driver import answer_allocation
    from plume_py.reasoning.allocate.report import allocation_document, allocation_text
    from plume_py.report.json import signed

    pinned = [pair for pin in pins for pair in level_pairs("--pin", pin, params["catalogue"]).items()]
    if len(dict(pinned)) < len(pinned):
        raise IsocheckError("--pin: one name has two levels")
    formats = picture_formats(pictures, out)
    drawing, options = drawing_of(params)
    costs = _costs(weights, params["catalogue"])
    try:
        limits = limits_of(timeout)
        with limits.enforced():
            workload, programs = read_workload(params, numbered=output == "text")
            answer = answer_allocation(
                workload, drawing=drawing, rules=rules, pins=dict(pinned), costs=costs, explain=not brief,
                limits=limits, **options,
            )  # fmt: skip
            text = allocation_document(answer, programs) if output == "json" else "\n".join(allocation_text(answer))
    except LimitError as error:
        nothing = {"workload": params["source"] or params["log"], "groups": None, "reason": str(error)}
        click.echo(signed(nothing) if output == "json" else one_line(f"undecided: {error}"))
        ctx.exit(ExitCode.UNDECIDED)
    if programs and output == "text":
        click.echo(f"{programs}\n")
    click.echo(text)
    if save is not None:
        _save(answer, save)
        tell_written(save)
    if out is not None:
        write_critical_cycles(answer.critical.values(), out, formats)
    ctx.exit(ExitCode.UNDECIDED if answer.stopped else ExitCode.HOLDS)


def _costs(weights: str | None, catalogue: str) -> dict[str, float]:
    costs = {}
    for pair in weights.split(",") if weights else ():
        name, _, cost = pair.partition("=")
        level = level_in(catalogue, name, "--weights")
        try:
            number = float(cost)
        except ValueError:
            number = float("nan")
        if not 0 <= number < float("inf"):
            raise IsocheckError(one_line(f"--weights: {pair[:40]!r} is not of the form LEVEL=COST, as in PSI=2.5"))
        costs[level] = number
    return costs


def _save(answer: Any, target: str) -> None:
    from plume_py.reasoning.allocate.workload_files import encode_programs, encode_workload, save

    if answer.space.of_workload:
        case = answer.space.cases[0]
        save(target, encode_workload(case.workload, [answer.levels[g] for g in case.group]))
    else:
        levels = dict(zip(answer.space.groups, answer.levels, strict=True))
        save(target, encode_programs(answer.templates, levels))
