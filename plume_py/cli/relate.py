"""``isocheck relate``: compare the strength of two levels."""

from typing import Any

import click

from plume_py.base.errors import ExitCode, LimitError
from plume_py.base.text import one_line
from plume_py.cli.common_options import complete_levels, limits_of
from plume_py.cli.synth_options import Search, chosen, defined_in, scope_of, scope_options


@click.command("relate")
@click.argument("a", metavar="LEVEL", shell_complete=complete_levels)
@click.argument("b", metavar="LEVEL", shell_complete=complete_levels)
@scope_options(txns=4, keys=2, values=4)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    a: str,
    b: str,
    files: tuple[str, ...],
    timeout: float | None,
    max_memory: int | None,
    output: str,
    **sizes: Any,
) -> None:
    """Compare two levels on all histories of up to the scope: equivalent, stronger, weaker or incomparable.

    A smallest history is shown for each direction in which they differ. Levels are named as for synth.

    Exit code: 0 decided, 2 wrong usage, 3 undecided, 4 a file could not be read.

    \b
    Examples:
      isocheck relate PSI PC
      isocheck relate SI SER --txns 3 --format json
      isocheck relate SER@none StrongSI
    """
    from plume_py.reasoning.synth.comparison import relate
    from plume_py.reasoning.synth.report import plain, text
    from plume_py.report.json import signed

    for name in (a, b):
        if "," in name:
            raise click.UsageError(f"{name!r} is not one level; relate compares two, hierarchy several")
    (first,), (second,) = chosen(defined_in(files), (a,), (b,))
    scope, search = scope_of(**sizes), Search(limits_of(timeout, max_memory), "nothing settled")
    try:
        found = search.run(lambda send: relate(first, second, scope, search.limits, send))
    except LimitError as error:
        reason = f"{error}; {search.news}"
        undecided = {"a": first.name, "b": second.name, "relation": None, "reason": reason}
        click.echo(signed(undecided) if output == "json" else one_line(f"undecided: {reason}"))
        ctx.exit(ExitCode.UNDECIDED)
    if output == "json":
        separating = {"only_a": plain(found.only_a), "only_b": plain(found.only_b)}
        click.echo(signed({"a": found.a, "b": found.b, "relation": found.word, **separating}))
    else:
        click.echo(found.sentence)
        for outcome in (found.only_a, found.only_b):
            click.echo()
            click.echo(text(outcome, explain=False))
    ctx.exit(ExitCode.HOLDS)
