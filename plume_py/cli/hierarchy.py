"""``isocheck hierarchy``: order levels by strength, with a separating history for each step."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, LimitError
from plume_py.base.text import one_line
from plume_py.cli.common_options import PICTURE_FORMATS, complete_levels, limits_of, tell, tell_written
from plume_py.cli.synth_options import Search, chosen, defined_in, scope_of, scope_options

if TYPE_CHECKING:
    from plume_py.reasoning.synth.comparison import PartialComparison

SUFFIXES = (".dot", *(f".{form}" for form in PICTURE_FORMATS))


@click.command("hierarchy")
@click.argument("names", metavar="[LEVEL]...", nargs=-1, shell_complete=complete_levels)
@scope_options(txns=4, keys=2, values=4)
@click.option("--orders", is_flag=True, help="Each level also with no order between transactions, and in real time.")
@click.option("--out", type=click.Path(dir_okay=False), help="Draw it: .dot, or .svg, .png, .pdf by Graphviz.")
@click.option("--format", "output", type=click.Choice(["text", "json", "dot"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    files: tuple[str, ...],
    timeout: float | None,
    max_memory: int | None,
    orders: bool,
    out: str | None,
    output: str,
    **sizes: Any,
) -> None:
    """Order levels by strength, as far as the histories of up to the scope can tell.

    Between neighbours, a smallest history is shown that only the weaker one allows. Levels are named as for synth;
    without any, the usual ones are compared, and those of --define.

    Exit code: 0 decided, 2 wrong usage, 3 undecided, 4 a file could not be read.

    \b
    Examples:
      isocheck hierarchy RC RA TCC PC PSI SI SER
      isocheck hierarchy --out levels.svg
      isocheck hierarchy SI SER --orders
    """
    from plume_py.reasoning.synth.comparison import USUAL, USUAL_IN_ORDERS, hierarchy, in_all_orders
    from plume_py.reasoning.synth.picture import hierarchy_picture
    from plume_py.reasoning.synth.report import hierarchy_lines, hierarchy_plain
    from plume_py.report.json import signed

    if out is not None and Path(out).suffix not in SUFFIXES:
        raise click.UsageError(f"--out {out}: the name of a picture ends in {', '.join(SUFFIXES)}")
    defined = defined_in(files)
    (levels,) = chosen(defined, names or (*(USUAL_IN_ORDERS if orders else USUAL), *defined))
    if orders:
        levels = in_all_orders(levels)
    scope, search = scope_of(**sizes), Search(limits_of(timeout, max_memory))
    try:
        found = search.run(lambda send: hierarchy(levels, scope, search.limits, send))
    except LimitError as error:
        _print_settled(search.news, str(error), output)
        ctx.exit(ExitCode.UNDECIDED)
    if output == "json":
        click.echo(signed(hierarchy_plain(found)))
    else:
        click.echo(hierarchy_picture(found) if output == "dot" else "\n".join(hierarchy_lines(found)))
    if out is not None:
        _write(hierarchy_picture(found), Path(out))
    ctx.exit(ExitCode.HOLDS)


def _print_settled(settled: "PartialComparison | str", reason: str, output: str) -> None:
    """Print the relations that were decided before the search stopped."""
    from plume_py.reasoning.synth.comparison import PartialComparison
    from plume_py.report.json import signed

    known = settled if isinstance(settled, PartialComparison) else None
    if output == "json":
        click.echo(signed({"classes": None, "reason": reason} | (known.plain() if known else {})))
        return
    click.echo(one_line(f"undecided: {reason}" + (f"; {known}" if known else "")))
    for line in known.lines() if known and output == "text" else ():
        click.echo(line)


def _write(graph: str, target: Path) -> None:
    """Draw the picture, or write the .dot file if it cannot be drawn."""
    from plume_py.base.atomic_files import write_atomically
    from plume_py.report.graphviz import draw

    note = "" if target.suffix == ".dot" else draw(graph, target)
    if note or target.suffix == ".dot":
        target = target.with_suffix(".dot")
        write_atomically(str(target), [graph.encode()])
    tell([note] if note else [])
    tell_written(str(target))
