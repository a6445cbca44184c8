"""``isocheck robust``: check whether every run of a workload at given levels is serializable."""

from typing import Any

import click

from plume_py.base.errors import ExitCode, LimitError, exit_code
from plume_py.base.text import one_line
from plume_py.cli.allocate_options import (
    drawing_of,
    level_pairs,
    read_workload,
    reading_workloads,
    write_critical_cycles,
)
from plume_py.cli.common_options import limits_of, picture_formats, picture_option, timeout_option


@click.command("robust")
@reading_workloads
@click.option("--levels", metavar="NAME=LEVEL,...", help="By program or instance, *=LEVEL for the rest; else declared.")
@click.option("--out", type=click.Path(file_okay=False), help="Write and draw the history into this folder.")
@picture_option
@timeout_option()
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    levels: str | None,
    out: str | None,
    pictures: tuple[str, ...],
    timeout: float | None,
    output: str,
    **params: Any,
) -> None:
    """Is every run of a workload at these levels serializable?

    Exit code: 0 yes, 1 no, with a history that shows it, 2 wrong usage, 3 undecided, 4 the input could not be read.

    \b
    Examples:
      isocheck robust smallbank --levels '*=SI'
      isocheck robust app.sql --catalogue postgresql --out pictures/
    """
    from plume_py.reasoning.allocate.driver import answer_robustness
    from plume_py.reasoning.allocate.report import robust_document, robust_text
    from plume_py.reasoning.allocate.robust import Robustness

    formats = picture_formats(pictures, out)
    drawing, options = drawing_of(params)
    chosen = None if levels is None else level_pairs("--levels", levels, params["catalogue"])
    try:
        limits = limits_of(timeout)
        with limits.enforced():
            workload, programs = read_workload(params)
            found = answer_robustness(workload, chosen, drawing=drawing, limits=limits, **options)
            if output == "json":
                text = robust_document(found.source, found.scope, found.levels, found.answer)
            else:
                text = "\n".join([f"{found.source}: {found.scope}", *robust_text(found.answer)])
    except LimitError as error:
        nothing = Robustness(None, str(error))
        click.echo(
            robust_document(params["source"] or params["log"] or "", "", {}, nothing)
            if output == "json"
            else one_line(f"undecided: {error}")
        )
        ctx.exit(ExitCode.UNDECIDED)
    if programs and output == "text":
        click.echo(f"{programs}\n")
    click.echo(text)
    if out is not None and found.answer.critical is not None:
        write_critical_cycles([found.answer.critical], out, formats)
    ctx.exit(exit_code(found.answer.ok, None))
