"""``isocheck test``: collect from a database, and check what it promises."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.cli.collect import INTERRUPTED, collecting_options, ending, run, summary
from plume_py.cli.contract import OUTPUT_FORMATS, ExitCode, LevelChoice, exit_code, seconds
from plume_py.errors import IsocheckError
from plume_py.text import one_line

if TYPE_CHECKING:
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected
    from plume_py.report.verdict import Result


@click.command("test")
@collecting_options
@click.option("--expect", type=LevelChoice(), multiple=True, help="Check this instead of what the database promises.")
@click.option("--history", type=click.Path(dir_okay=False), help="Keep the history here; else only if it breaks.")
@click.option("--out", type=click.Path(file_okay=False), help="Draw the counterexamples into this folder.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write a report to read in a browser.")
@click.option("--format", "output", type=click.Choice(OUTPUT_FORMATS), default="text", show_default=True)
@click.option(
    "--timeout", "check_timeout", type=click.FloatRange(0, min_open=True), callback=seconds,
    help="Seconds for the check, then undecided.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    /,
    expect: tuple[tuple[str, ...], ...],
    history: str | None,
    out: str | None,
    report: str | None,
    output: str,
    check_timeout: float | None,
    **given: Any,
) -> None:
    """Run a workload on the database at URL, and check whether it keeps what it promises.

    Without URL, SQLite is tested. Exit code: 0 it holds, 1 a violation, or the table does not agree with the history,
    2 wrong usage, 3 undecided, nothing committed, or not brought to its end, 4 the database cannot be reached, 130
    interrupted, and what was recorded up to there holds.
    """
    if given["url"] is None and given["managed"] is None:
        given["managed"] = "sqlite"
    if history == "-":
        raise click.UsageError("--history needs a file: standard output has the results")
    path, is_temporary = _place(history)
    keep = not is_temporary
    try:
        collected, isolations = run(given, path)
        for line in summary(collected):
            click.echo(one_line(line), err=output != "text")
        levels = [level for group in expect for level in group] or _promised(given, isolations, output)
        result = _check(path, levels, check_timeout)
        keep = keep or result.ok is not True or ending(collected) == ExitCode.VIOLATION
        _show(ctx, result, output, out, report)
    finally:
        if not keep:
            with suppress(OSError):
                os.unlink(path)
    if is_temporary and keep:
        click.echo(f"isocheck: the history is kept in {path}", err=True)
    ctx.exit(_exit_code(collected, result))


def _place(history: str | None) -> tuple[str, bool]:
    if history is not None:
        return history, False
    handle, path = tempfile.mkstemp(prefix="isocheck-", suffix=".jsonl")
    os.close(handle)
    return path, True


def _promised(given: dict[str, Any], isolations: "list[Isolation]", output: str) -> list[str]:
    """The level to check, and why, where that needs a word."""
    if len(isolations) > 1:
        return ["declared"]
    isolation = isolations[0]
    if isolation.remark:
        click.echo(one_line(f"  promise   {isolation.remark}"), err=output != "text")
    if isolation.level is None:
        raise IsocheckError(f"nothing is promised at {isolation.name}: say what to check with --expect")
    return [isolation.level]


def _check(path: str, levels: list[str], timeout: float | None) -> "Result":
    from plume_py.checking import check
    from plume_py.history.load import load
    from plume_py.strong.limits import Limits

    return check(load(path, init_txn="none"), levels, name=path, limits=Limits(timeout))


def _show(ctx: click.Context, result: "Result", output: str, out: str | None, report: str | None) -> None:
    from plume_py.report.output import STREAMED, one, whole

    click.echo(one(output, result) if output in STREAMED else whole(output, [result]), color=ctx.color)
    if out is not None and result.violations:
        from plume_py.report.dot import write_pictures

        for note in write_pictures(result, Path(out)):
            click.echo(one_line(f"isocheck: {note}"), err=True)
    if report is not None:
        from plume_py.files import write_atomically
        from plume_py.report.html import document

        write_atomically(report, [document([result]).encode("utf-8", "backslashreplace")])


def _exit_code(collected: "Collected", result: "Result") -> int:
    """The worst of both; an interrupted run that holds so far is not a pass."""
    verdict, run_ended = exit_code(result.ok, result.error), ending(collected)
    if ExitCode.VIOLATION in (verdict, run_ended):
        return ExitCode.VIOLATION
    return INTERRUPTED if run_ended == INTERRUPTED else max(verdict, run_ended)
