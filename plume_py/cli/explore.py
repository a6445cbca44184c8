"""``isocheck explore``: run a program many times on a store with random legal reads."""

from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode
from plume_py.base.text import one_line
from plume_py.cli.common_options import (
    LevelName,
    complete_levels,
    limits_of,
    tell_written,
    timeout_option,
    write_history,
)
from plume_py.cli.predict import complete_programs, level_option, workload_options
from plume_py.levels import DEFAULT, STRONGEST
from plume_py.reasoning.predict import LEVELS, TARGETS

if TYPE_CHECKING:
    from plume_py.reasoning.predict.store.exploration import Exploration


@click.command("explore")
@click.argument("program", metavar="APP", shell_complete=complete_programs)
@click.option(
    "--level",
    "-l",
    callback=level_option,
    shell_complete=complete_levels,
    default=DEFAULT,
    show_default=True,
    help=f"Of the store: {' '.join(LEVELS)}.",
)
@click.option("--runs", default=100, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option("--target", type=LevelName(TARGETS), default=STRONGEST, show_default=True, help="What runs may break.")
@workload_options
@click.option("--same-plan", is_flag=True, help="The same transactions in every run, instead of new ones.")
@timeout_option("Seconds in all.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write the first run that breaks the target here.")
@click.pass_context
def command(ctx: click.Context, /, program: str, level: str, out: str | None, **params: Any) -> None:
    """Run APP (smallbank, voter, tpcc, wikipedia, or your own as file.py:Class) on a store where each read sees any
    version that the level allows.

    Exit code: 0 no run broke the target, or failed an assertion of the program, 1 some did, 3 the time was up before
    all runs and none had, 2 wrong usage.

    \b
    Examples:
      isocheck explore smallbank --level TCC --runs 200
      isocheck explore tpcc --level RC --out broken.json
    """
    if level == "declared":
        raise click.UsageError("the programs declare no levels: choose one")
    from plume_py.reasoning.predict.store.exploration import explore
    from plume_py.reasoning.predict.store.program import program as find

    limits = limits_of(params.pop("timeout"))
    with limits.enforced():
        found = explore(find(program), level, limits=limits, **params)
    for line in _lines(program, found):
        click.echo(line)
    if out is not None and found.first_history is not None:
        write_history(out, found.first_history)
        tell_written(out)
    if found.broken or found.failed:
        ctx.exit(ExitCode.VIOLATION)
    ctx.exit(ExitCode.HOLDS if found.reason is None and not found.undecided else ExitCode.UNDECIDED)


def _lines(program: str, exploration: "Exploration") -> "list[str]":
    share = f"{exploration.broken} of {exploration.runs} runs at {exploration.level} break {exploration.target}"
    lines = [f"{one_line(program)}: {share}, {exploration.per_second:.1f} per second, {exploration.seconds:.1f} s"]
    lines += [f"  {name}: {count}" for name, count in exploration.anomalies.most_common()]
    if exploration.failed:
        lines.append(f"  assertions fail in {exploration.failed} of {exploration.runs} runs")
        lines += [one_line(f"    {name}: {count}") for name, count in exploration.failures.most_common(5)]
    if exploration.undecided:
        lines.append(f"  undecided: {exploration.undecided}")
    if exploration.reason is not None:
        lines.append(f"  {exploration.reason}")
    if exploration.first is not None:
        from plume_py.report.text import render

        lines += ["", render(exploration.first)]
    return lines
