"""``isocheck check``: the default command."""

import time
from typing import TYPE_CHECKING

import click

from plume_py.cli.contract import ExitCode, LevelChoice, combined, reading_options
from plume_py.errors import InputError
from plume_py.text import one_line

if TYPE_CHECKING:
    from plume_py.report.verdict import Result

# Renderers that exist so far; the contract names them all.
FORMATS = ("text", "json", "jsonl")


def _taps(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    if not value:
        return ()
    letters = tuple(letter.strip().lower().removeprefix("tap-") for letter in value.split(","))
    known = "abcdefghijklmn"
    wrong = [letter for letter in letters if len(letter) != 1 or letter not in known]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not a pattern; use letters a to n, as in --tap a,h,m")
    return letters


@click.command("check")
@click.argument("histories", metavar="HISTORY...", nargs=-1, required=True)
@click.option(
    "--level", "-l", "levels", type=LevelChoice(), multiple=True,
    help="CI RC RA TCC PC PSI SI SER, all, weak, declared; may be given several times.  [default: TCC]",
)  # fmt: skip
@click.option("--tap", "taps", callback=_taps, help="Check only these patterns, for example a,h,m.")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--max-examples", default=1, show_default=True, type=click.IntRange(0), help="Per pattern.")
@click.option("--witness", type=click.Path(dir_okay=False), help="Write the commit order of a level that holds.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing for histories that hold.")
@click.option("--verbose", "-v", is_flag=True, help="Print times as well.")
@reading_options
@click.pass_context
def command(
    ctx: click.Context,
    histories: tuple[str, ...],
    levels: tuple[tuple[str, ...], ...],
    taps: tuple[str, ...],
    output: str,
    max_examples: int,
    witness: str | None,
    color: str,
    quiet: bool,
    verbose: bool,
    input_format: str | None,
    init_txn: str,
) -> None:
    """Check whether histories keep an isolation level ("-" reads standard input).

    Exit code: 0 every level holds for every history, 1 some violation, 2 wrong usage, 3 undecided, 4 some input could
    not be read.
    """
    wanted = [level for group in levels for level in group] or ["TCC"]
    if witness is not None and (len(histories) != 1 or len(wanted) != 1):
        raise click.UsageError("--witness needs exactly one history and one level")
    ctx.color = {"always": True, "never": False}.get(color, ctx.color)
    results = []
    for path in histories:
        result = _check(path, wanted, taps, max_examples, input_format, init_txn, witness)
        results.append(result)
        if output == "jsonl":
            from plume_py.report.json import line

            click.echo(line(result))
        elif output == "text" and result.error is None and not (quiet and result.ok):
            from plume_py.report.text import render

            click.echo(render(result, verbose=verbose), color=ctx.color)
    if output == "json":
        from plume_py.report.json import document

        click.echo(document(results))
    ctx.exit(combined(_code(result) for result in results))


def _check(
    path: str,
    levels: list[str],
    taps: tuple[str, ...],
    max_examples: int,
    input_format: str | None,
    init_txn: str,
    witness: str | None,
) -> "Result":
    """Load and check one history; what goes wrong with its input is told on standard error at once."""
    from dataclasses import replace

    from plume_py.checking import check
    from plume_py.history.load import load
    from plume_py.report.verdict import Result

    start = time.perf_counter()
    try:
        history = load(path, format=input_format, init_txn=init_txn)  # type: ignore[arg-type]
    except InputError as error:
        click.echo(one_line(f"isocheck: {error}"), err=True)
        return Result(history=path, error=str(error))
    loaded = time.perf_counter() - start
    result = check(history, levels, taps=taps, max_examples=max_examples, name=path)
    if witness is not None and result.ok:
        from plume_py.witness import write_witness

        write_witness(history, levels[0], witness)
    return replace(result, seconds={"load": loaded, **result.seconds})


def _code(result: "Result") -> ExitCode:
    if result.error is not None:
        return ExitCode.BAD_INPUT
    return {True: ExitCode.HOLDS, False: ExitCode.VIOLATION, None: ExitCode.UNDECIDED}[result.ok]
