"""``isocheck confirm``: run a prediction on a real database, and check what happens."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import ExitCode, InputError
from plume_py.base.temp_folder import TempFolder
from plume_py.cli.collect import sigterm_as_interrupt
from plume_py.cli.collect_options import options
from plume_py.cli.common_options import (
    LevelName,
    draw_counterexamples,
    limits_of,
    picture_formats,
    picture_option,
    tell,
    tell_written,
    timeout_option,
)
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict import TARGETS

if TYPE_CHECKING:
    from plume_py.reasoning.predict.confirm.confirmation import Confirmation
    from plume_py.reasoning.predict.confirm.database_run import PreparedPrediction

# Servers that can be started. Clusters are missing: there the order of statements does not determine what reads see.
MANAGED = ("postgresql", "mariadb", "sqlite")


@click.command("confirm")
@click.argument("prediction", type=click.Path(exists=True, dir_okay=False))
@click.argument("url", required=False, metavar="[URL]")
@click.option("--managed", type=click.Choice(MANAGED), help="Start a private server instead of using one at URL.")
@click.option("--isolation", metavar="LEVEL", help="As the database calls it.  [default: what fits the prediction]")
@click.option(
    "--target", type=LevelName(TARGETS), help=f"What the run breaks.  [default: as predicted, else {STRONGEST}]"
)
@click.option("--attempts", default=5, show_default=True, type=click.IntRange(1, 1000), help="Orders of statements.")
@click.option("--program", metavar="APP", help="Whose transactions run, as file.py:Class.  [default: as predicted]")
@options("--operation-timeout", "--set")
@timeout_option()
@click.option("--history", type=click.Path(dir_okay=False), help="Keep what happened here.")
@click.option("--out", type=click.Path(file_okay=False), help="Draw the counterexample into this folder.")
@picture_option
@click.option("--report", type=click.Path(dir_okay=False), help="Write a report to read in a browser.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(ctx: click.Context, /, prediction: str, url: str | None, managed: str | None, **params: Any) -> None:
    """Does PREDICTION, as predict --out wrote it, come true on the database at URL?

    Its statements are sent again, a connection per session, in an order in which every read should see what was
    predicted; what happens is recorded, and checked. PREDICTION may be any history. Exit code: 0 the database refused,
    or did something else, 1 confirmed, 2 wrong usage, 3 undecided, 4 the prediction cannot be read, or the database not
    be reached.

    \b
    Examples:
      isocheck confirm predicted.json --managed postgresql
      isocheck confirm predicted.json postgresql://user:password@host/db --isolation "repeatable read"
    """
    formats = picture_formats(params["pictures"], params["out"])
    if (url is None) == (managed is None):
        raise click.UsageError("give the URL of a database, or --managed to have one started: one of the two")
    from plume_py.reasoning.predict.confirm.database_run import DatabaseAddress, DatabaseRun
    from plume_py.reasoning.predict.report import confirmation_data, render_confirmation
    from plume_py.report.json import encode

    prepared = _read(prediction, params["program"])
    limits = limits_of(params["timeout"])
    address = DatabaseAddress(url or str(managed), params["operation_timeout"], params["settings"])
    with (
        TempFolder() as folder,
        sigterm_as_interrupt(),
        address.opened(prepared.script.lists) as adapter,
        limits.enforced(),
    ):
        run = DatabaseRun(adapter, folder.path, limits, params["isolation"], params["attempts"], params["target"])
        found = run.confirm(prepared)
        _name_result(found, prediction, params["history"])
    if params["output"] == "json":
        click.echo(encode(confirmation_data(prediction, found)))
    else:
        for line in render_confirmation(prediction, found):
            click.echo(line)
    result = found.attempt.result
    if params["out"] is not None and result.violations:
        draw_counterexamples(result, params["out"], formats)
    if params["report"] is not None:
        from plume_py.api import page

        page(result, params["report"])
        tell_written(params["report"])
    ctx.exit(exit_code_of(found))


def _read(path: str, program: str | None) -> "PreparedPrediction":
    """Read a prediction. It may name a built-in program; code of users runs only with --program."""
    from plume_py.reasoning.predict.confirm.database_run import prepare
    from plume_py.reasoning.predict.prediction_files import read_prediction
    from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram
    from plume_py.reasoning.predict.store.program import program as find

    history, about = read_prediction(path)
    run = about.program
    workload = None
    if run is None and program is not None:
        raise click.UsageError("--program is for the predictions of a program, and this is none")
    if run is not None and program is None and run.name not in PROGRAMS:
        tell([f"only what was recorded is sent; to run the program itself: --program {run.name[:80]}"])
    elif run is not None:
        workload = SeededProgram(find(program or run.name), run.seed, run.sessions, run.transactions)
    try:
        return prepare(history, about, workload)
    except InputError as error:
        raise error.in_source(path) from None


def _name_result(found: "Confirmation", prediction: str, history: str | None) -> None:
    """Keep the recorded history in the user's file, if given; name the result after that file or the prediction."""
    attempt = found.attempt
    name = Path(prediction).stem
    if history is not None:
        write_atomically(history, [Path(attempt.path).read_bytes()])
        tell_written(history)
        name = history
    attempt.result = replace(attempt.result, history=name)


def exit_code_of(found: "Confirmation") -> ExitCode:
    """Return 1 only if the violation really happened."""
    codes = {"confirmed": ExitCode.VIOLATION, "undecided": ExitCode.UNDECIDED}
    return codes.get(found.verdict, ExitCode.HOLDS)
