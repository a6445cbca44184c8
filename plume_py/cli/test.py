"""``isocheck test``: collect from a database, and check what it promises."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.errors import ExitCode, IsocheckError, LimitError, exit_code
from plume_py.base.temp_folder import TempFolder
from plume_py.base.text import one_line
from plume_py.cli.collect import INTERRUPTED, ending, run, summary
from plume_py.cli.collect_options import collecting_options
from plume_py.cli.common_options import (
    OUTPUT_FORMATS,
    LevelChoice,
    order_option,
    picture_formats,
    picture_option,
    tell,
    tell_written,
    timeout_option,
)

# Seconds that a check may take after Ctrl-C.
AFTER_INTERRUPT = 0.3

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected


@click.command("test")
@collecting_options
@click.option("--expect", type=LevelChoice(), multiple=True, help="Check this instead of what the database promises.")
@order_option
@click.option("--history", type=click.Path(dir_okay=False), help="Keep the history here; else only if it breaks.")
@click.option("--out", type=click.Path(file_okay=False), help="Draw the counterexamples into this folder.")
@picture_option
@click.option("--report", type=click.Path(dir_okay=False), help="Write a report to read in a browser.")
@click.option("--format", "output", type=click.Choice(OUTPUT_FORMATS), default="text", show_default=True)
@timeout_option("Seconds for the check, then undecided.", "check_timeout")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    expect: tuple[tuple[str, ...], ...],
    order: str,
    history: str | None,
    out: str | None,
    pictures: tuple[str, ...],
    report: str | None,
    output: str,
    check_timeout: float | None,
    **params: Any,
) -> None:
    """Run a workload on the database at URL, and check whether it keeps what it promises.

    Without URL, SQLite is tested. Several URLs, or one with several hosts, are nodes of one database. Exit code: 0 it
    holds, 1 a violation, or the table does not agree with the history, 2 wrong usage, 3 undecided, nothing committed,
    or not brought to its end, 4 the database cannot be reached, 130 interrupted, and what was recorded up to there
    holds.

    \b
    Examples:
      isocheck test --managed mariadb --isolation "repeatable read" --workload smallbank
      isocheck test postgresql://user:password@host/db --isolation SER --report page.html
      isocheck test --managed postgresql --faults kill-connection,restart
    """
    formats = picture_formats(pictures, out)
    if not params["urls"] and params["managed"] is None:
        params["managed"] = "sqlite"
    if history is not None and is_stream(history):
        raise click.UsageError("--history needs a file: it is read again, and standard output has the results")
    scratch = TempFolder() if history is None else None
    path = os.path.join(scratch.path, "history.jsonl") if scratch is not None else str(history)
    expected = [level for group in expect for level in group]
    is_needed = False
    try:
        collected, isolations = run(params, path, lambda isolations: None if expected else _promised(isolations))
        is_needed = True  # what was collected may not come again
        for line in (*summary(collected), *([] if expected else _remarks(isolations))):
            click.echo(one_line(line), err=output != "text")
        limits = _limits(collected, check_timeout, params["max_memory"])
        result = replace(_check(path, expected or _promised(isolations), order, limits), speed=collected.speed)
        is_needed = result.ok is not True or ending(collected) == ExitCode.VIOLATION
        if scratch is not None and not is_needed:  # its file will be gone
            limits = _limits(collected, check_timeout, params["max_memory"])
        result = replace(result, history=collected.database)
        _show(ctx, result, output, report)
        if out is not None and result.violations:
            _draw(result, Path(out), formats)
    finally:
        if scratch is not None:
            _tidy(scratch, path, is_needed)
    ctx.exit(_exit_code(collected, result))


def _tidy(scratch: TempFolder, path: str, is_needed: bool) -> None:
    """A history that the user has not named: kept if it is worth a second look."""
    if is_needed:
        scratch.keep()
        click.echo(f"isocheck: the history is kept in {path}", err=True)
    else:
        scratch.remove()


def _promised(isolations: "list[Isolation]") -> list[str]:
    """The level to check; of a mixture, for each transaction its own."""
    for isolation in isolations:
        if isolation.level is None:
            raise IsocheckError(f"nothing is promised at {isolation.name}: say what to check with --expect")
    return [str(isolations[0].level) if len(isolations) == 1 else "declared"]


def _remarks(isolations: "list[Isolation]") -> list[str]:
    """Why that is checked, where it needs a word."""
    return [f"  promise   {isolation.remark}" for isolation in isolations if isolation.remark]


def _limits(collected: "Collected", timeout: float | None, max_memory: int | None) -> "Limits":
    """Return the limits of the check; after Ctrl-C little time is left for it."""
    from plume_py.base.limits import Limits
    from plume_py.base.memory import share_of_machine

    if collected.interrupted:
        timeout = min(AFTER_INTERRUPT, timeout or AFTER_INTERRUPT)
    return Limits(timeout, max_memory or share_of_machine(1))


def _check(path: str, levels: list[str], order: str, limits: "Limits") -> "Result":
    from plume_py.checking.check import check
    from plume_py.checking.result import LevelVerdict, Result
    from plume_py.cli.evidence_option import with_evidence
    from plume_py.history.load import load
    from plume_py.report.recording_metadata import with_run

    try:
        with limits.enforced():
            history = load(path, init_txn="none")
            result = with_evidence(
                check(history, levels, order=order, name=path, limits=limits), history, order, limits
            )
            return with_run(result, path)
    except LimitError as error:
        return Result(history=path, levels=dict.fromkeys(levels, LevelVerdict(None, reason=str(error))))


def _show(ctx: click.Context, result: "Result", output: str, report: str | None) -> None:
    from plume_py.report.output import STREAMED, one, whole

    click.echo(one(output, result) if output in STREAMED else whole(output, [result]), color=ctx.color)
    if report is not None:
        from plume_py.base.atomic_files import write_atomically
        from plume_py.report.html import document

        write_atomically(report, [document([result]).encode("utf-8", "backslashreplace")])
        tell_written(report)


def _draw(result: "Result", folder: Path, formats: tuple[str, ...]) -> None:
    from plume_py.base.text import counted
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album

    album = Album(folder, formats)
    write_pictures(result, album)
    tell(album.notes)
    tell_written(str(folder), counted(len(result.violations), "counterexample"))


def _exit_code(collected: "Collected", result: "Result") -> int:
    """The worst of both; an interrupted run that holds so far is not a pass."""
    verdict, run_ended = exit_code(result.ok, result.error), ending(collected)
    if ExitCode.VIOLATION in (verdict, run_ended):
        return ExitCode.VIOLATION
    return INTERRUPTED if run_ended == INTERRUPTED else max(verdict, run_ended)
