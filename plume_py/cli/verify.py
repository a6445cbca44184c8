"""``isocheck verify``: re-check a witness or a report by the definitions alone."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, InputError, IsocheckError, LimitError
from plume_py.base.text import counted, encodable, one_line
from plume_py.cli.common_options import bytes_of_memory, limits_of, reading_options, timeout_option

if TYPE_CHECKING:
    from plume_py.verify import HistoryClaim, WitnessClaim

# The number of problems that are printed. A wrong order can have a problem for each read.
PRINTED = 20


@click.command("verify")
@click.argument("history", metavar="HISTORY")
@click.argument("file", metavar="FILE")
@timeout_option()
@click.option(
    "--max-memory", metavar="SIZE", callback=bytes_of_memory, help="Such as 4G; undecided if it does not suffice."
)
@reading_options
@click.pass_context
def command(ctx: click.Context, /, history: str, file: str, **params: Any) -> None:
    """Re-check FILE, which a check of HISTORY wrote ("-" reads standard input).

    FILE is a commit order (check --witness FILE) or a report (check --format json or jsonl), whose violations of
    HISTORY are proved again, one by one. The code that does so shares nothing with the checker.

    Exit code: 0 confirmed, 1 refuted, 2 wrong usage, 3 undecided (a violation of too many transactions, or a limit was
    reached), 4 some input could not be read.

    \b
    Examples:
      isocheck h.json --level SI --witness order.json; isocheck verify h.json order.json
      isocheck h.json --format json > report.json;   isocheck verify h.json report.json
    """
    if history == file == "-":
        raise click.UsageError("only one of HISTORY and FILE can be standard input")
    try:
        with limits_of(params["timeout"], params["max_memory"]).enforced():
            what, refuted, undecided = _judge(history, file, params)
    except LimitError as error:
        what, refuted, undecided = "", [], [str(error)]
    if not refuted and not undecided:
        click.echo(one_line(f"confirmed: {what}"))
        return
    _print("refuted", refuted)
    _print("undecided", undecided)
    ctx.exit(ExitCode.VIOLATION if refuted else ExitCode.UNDECIDED)


def _judge(history: str, file: str, params: dict[str, Any]) -> tuple[str, list[str], list[str]]:
    """Return the claim in words, the problems that refute it, and the reasons why parts are undecided."""
    from plume_py.history.load import load
    from plume_py.verify import WitnessClaim, judge_entry, verify_witness

    claim = _read(file)
    entry = claim if isinstance(claim, WitnessClaim) else _choose(claim, history, file)
    loaded = load(history, format=params["input_format"], init_txn=params["init_txn"])
    if isinstance(entry, WitnessClaim):
        what = f"the order of {counted(len(entry.order), 'transaction')} shows {entry.level}"
        what += f" (order: {entry.between})" if entry.between != "session" else ""
        return what, verify_witness(loaded, entry), []
    verdict = judge_entry(loaded, entry)
    count = len(entry.violations)
    return f"{count:,} violation{'s' if count > 1 else ''} proved again", verdict.refuted, verdict.undecided


def _print(answer: str, problems: list[str]) -> None:
    for problem in problems[:PRINTED]:
        click.echo(one_line(f"{answer}: {problem}"))
    if len(problems) > PRINTED:
        click.echo(f"{answer}: {len(problems) - PRINTED:,} more problems")


def _read(file: str) -> "WitnessClaim | list[HistoryClaim]":
    from plume_py.verify import read_claim

    try:
        return read_claim(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(file) from None
    except InputError as error:
        raise error.in_source(file) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"neither a witness nor a report: {error}", hint="use a file of check --witness, or --format json or jsonl"
        ).in_source(file) from None


def _choose(entries: "list[HistoryClaim]", history: str, file: str) -> "HistoryClaim":
    """Return the entry with the path of this history, or the only entry."""
    named = [entry for entry in entries if entry.history == encodable(history)] or entries
    if not named or (named is entries and len(entries) > 1):
        problem = InputError(f"says nothing about {history}", hint="give the history by the path in the report")
        raise problem.in_source(file)
    entry = named[0]
    if entry.error is not None:
        raise InputError(f"has no verdict on {history}: {entry.error}").in_source(file)
    if not entry.violations:
        violated = any(level.ok is False for level in entry.levels.values())
        hint = "check with --max-examples 1" if violated else "that a level holds is shown by check --witness"
        raise IsocheckError(f"{file} shows no violation of {history}; {hint}")
    return entry
