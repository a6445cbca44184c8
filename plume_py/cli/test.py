"""``isocheck test``: run a workload on a database, and check the level that the database promises."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.errors import ExitCode, IsocheckError, LimitError, exit_code
from plume_py.base.temp_folder import TempFolder
from plume_py.base.text import one_line
from plume_py.cli.collect import INTERRUPTED, exit_code_of, run, summary
from plume_py.cli.collect_options import collecting_options
from plume_py.cli.common_options import (
    OUTPUT_FORMATS,
    LevelChoice,
    draw_counterexamples,
    limits_of,
    order_option,
    picture_formats,
    picture_option,
    tell_written,
    timeout_option,
)

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected

# Seconds that a check may take after Ctrl-C.
AFTER_INTERRUPT = 0.3


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
    keep = False
    try:
        collected, isolations = run(params, path, lambda isolations: None if expected else _promised(isolations))
        keep = True  # until the verdict is known: another run may not reproduce this history
        for line in (*summary(collected), *([] if expected else _remarks(isolations))):
            click.echo(one_line(line), err=output != "text")
        timeout = check_timeout
        if collected.interrupted:
            timeout = min(AFTER_INTERRUPT, check_timeout or AFTER_INTERRUPT)
        limits = limits_of(timeout, params["max_memory"])
        result = _check(path, expected or _promised(isolations), order, limits)
        keep = result.ok is not True or exit_code_of(collected) == ExitCode.VIOLATION
        result = replace(result, history=collected.database, speed=collected.speed)
        _print(ctx, result, output)
        if report is not None:
            from plume_py.api import page

            page(result, report)
            tell_written(report)
        if out is not None and result.violations:
            draw_counterexamples(result, out, formats)
    finally:
        if scratch is not None:
            _keep_or_remove(scratch, path, keep)
    ctx.exit(_exit_code(collected, result))


def _keep_or_remove(scratch: TempFolder, path: str, keep: bool) -> None:
    """Keep the history of a run without --history, or remove it."""
    if keep:
        scratch.keep()
        click.echo(f"isocheck: the history is kept in {path}", err=True)
    else:
        scratch.remove()


def _promised(isolations: "list[Isolation]") -> list[str]:
    """Return the level that the database promises; "declared" if transactions run at several levels."""
    for isolation in isolations:
        if isolation.level is None:
            raise IsocheckError(f"nothing is promised at {isolation.name}: say what to check with --expect")
    return [str(isolations[0].level) if len(isolations) == 1 else "declared"]


def _remarks(isolations: "list[Isolation]") -> list[str]:
    """Return the remarks on what the database promises."""
    return [f"  promise   {isolation.remark}" for isolation in isolations if isolation.remark]


def _check(path: str, levels: list[str], order: str, limits: "Limits") -> "Result":
    from plume_py.checking.check import check
    from plume_py.checking.result import LevelVerdict, Result
    from plume_py.cli.check import with_evidence
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


def _print(ctx: click.Context, result: "Result", output: str) -> None:
    from plume_py.report.output import STREAMED, one, whole

    click.echo(one(output, result) if output in STREAMED else whole(output, [result]), color=ctx.color)


def _exit_code(collected: "Collected", result: "Result") -> int:
    """Return the worse exit code of the run and the check; an interrupted run that holds so far is not a pass."""
    verdict, run_code = exit_code(result.ok, result.error), exit_code_of(collected)
    if ExitCode.VIOLATION in (verdict, run_code):
        return ExitCode.VIOLATION
    return INTERRUPTED if run_code == INTERRUPTED else max(verdict, run_code)
