"""``isocheck confirm``: does a prediction come true on a real database?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import InputError
from plume_py.base.exits import ExitCode
from plume_py.base.temp_folder import TempFolder
from plume_py.cli.collect import chosen_isolations, sigterm_as_interrupt
from plume_py.cli.collect_options import options
from plume_py.cli.common_options import LevelName, picture_formats, picture_option, tell, tell_written, timeout_option
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict import TARGETS

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.collect.adapter import Adapter
    from plume_py.history.model import History
    from plume_py.reasoning.predict.confirm.confirmation import Confirmation
    from plume_py.reasoning.predict.confirm.script import Script
    from plume_py.reasoning.predict.prediction_files import About
    from plume_py.reasoning.predict.store.program import SeededProgram


# Servers that can be started; of one with several nodes, no order of statements says what is seen.
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
    from plume_py.base.limits import Limits
    from plume_py.base.memory import share_of_machine
    from plume_py.reasoning.predict.report import confirmation_data, render_confirmation
    from plume_py.report.json import encode

    case = read_case(prediction, params["program"])
    limits = Limits(params["timeout"], share_of_machine(1))
    server = Server(url or str(managed), params["operation_timeout"], params["settings"])
    with (
        TempFolder() as scratch,
        sigterm_as_interrupt(),
        server.opened(case.script.lists) as adapter,
        limits.enforced(),
    ):
        trial = Trial(adapter, scratch.path, limits, params["isolation"], params["attempts"], params["target"])
        found = _kept(trial.of(case), prediction, params["history"])
    if params["output"] == "json":
        click.echo(encode(confirmation_data(prediction, found)))
    else:
        for line in render_confirmation(prediction, found):
            click.echo(line)
    _draw(found, params["out"], formats, params["report"])
    ctx.exit(exit_of(found))


@dataclass(frozen=True)
class Server:
    """Where to confirm: an address, or the name of a server to start."""

    where: str
    timeout: float = 10.0
    settings: dict[str, str] | None = None

    @contextmanager
    def opened(self, lists: bool) -> "Iterator[Adapter]":
        """Its adapter, for a table of lists, or registers."""
        from plume_py.collect.adapter import Setup
        from plume_py.collect.managed import SERVERS
        from plume_py.collect.registry import open_adapter
        from plume_py.collect.table_setup import new_name

        setup = Setup(self.where, new_name(), lists, self.timeout, self.settings or {})
        if self.where not in MANAGED:
            yield open_adapter(setup)
            return
        with SERVERS[self.where]() as server:
            yield open_adapter(replace(setup, url=server.url))


@dataclass(frozen=True)
class Case:
    """A prediction, ready to be sent."""

    script: "Script"
    about: "About"
    workload: "SeededProgram | None" = None


def make_case(history: "History", about: "About", workload: "SeededProgram | None" = None) -> Case:
    """Of a program, its own transactions run; they may come to all keys that they came to when they were observed."""
    from plume_py.reasoning.predict.confirm.script import script
    from plume_py.reasoning.predict.store.program import observed_run

    keys: list[Any] = []
    if workload is not None:
        observed = observed_run(workload)
        keys = [observed.key(key) for key in range(len(observed.key_code))]
    made = script(history, about.rest, lists=about.lists, keys=keys, late=about.changed)
    return Case(made, about, workload)


def read_case(path: str, program: str | None) -> Case:
    """From the file of a prediction. It may name a program that we have; code of others is run only if asked for."""
    from plume_py.reasoning.predict.prediction_files import read_prediction
    from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram
    from plume_py.reasoning.predict.store.program import program as find

    history, about = read_prediction(path)
    run = about.program
    if run is None or (program is None and run.name not in PROGRAMS):
        if program is not None:
            raise click.UsageError("--program is for the predictions of a program, and this is none")
        if run is not None:
            tell([f"only what was recorded is sent; to run the program itself: --program {run.name[:80]}"])
        workload = None
    else:
        workload = SeededProgram(find(program or run.name), run.seed, run.sessions, run.transactions)
    try:
        return make_case(history, about, workload)
    except InputError as error:
        raise error.in_source(path) from None


@dataclass(frozen=True)
class Trial:
    """One database, on which predictions are tried."""

    adapter: "Adapter"
    folder: str
    limits: "Limits"
    isolation: str | None = None
    attempts: int = 5
    target: str | None = None

    def of(self, case: Case) -> "Confirmation":
        """Try this one."""
        from plume_py.reasoning.predict.confirm.confirmation import ConfirmOptions, confirm, fitting_isolation

        if self.isolation is None:
            isolation = fitting_isolation(self.adapter, case.about.level, case.about.database, case.about.isolation)
        else:
            isolation = chosen_isolations(self.adapter, self.isolation, {})[0].name
        target = self.target or case.about.target or STRONGEST
        options = ConfirmOptions(isolation, target, self.folder, self.attempts, self.limits)
        return confirm(self.adapter, case.script, options, case.workload)


def _kept(found: "Confirmation", prediction: str, history: str | None) -> "Confirmation":
    """What happened, in the user's file if one is named, reports and pictures are called so, or as the prediction."""
    from pathlib import Path

    from plume_py.base.atomic_files import write_atomically

    attempt = found.attempt
    name = Path(prediction).stem
    if history is not None:
        write_atomically(history, [Path(attempt.path).read_bytes()])
        tell_written(history)
        name = history
    attempt.result = replace(attempt.result, history=name)
    return found


def _draw(found: "Confirmation", out: str | None, formats: tuple[str, ...], report: str | None) -> None:
    from pathlib import Path

    from plume_py.base.text import counted

    result = found.attempt.result
    if out is not None and result.violations:
        from plume_py.report.dot import write_pictures
        from plume_py.report.graphviz import Album

        album = Album(Path(out), formats)
        write_pictures(result, album)
        tell(album.notes)
        tell_written(out, counted(len(result.violations), "counterexample"))
    if report is not None:
        from plume_py.base.atomic_files import write_atomically
        from plume_py.report.html import document

        write_atomically(report, [document([result]).encode("utf-8", "backslashreplace")])
        tell_written(report)


def exit_of(found: "Confirmation") -> ExitCode:
    """1 only if it really happened."""
    codes = {"confirmed": ExitCode.VIOLATION, "undecided": ExitCode.UNDECIDED}
    return codes.get(found.verdict, ExitCode.HOLDS)
