"""Options and files that ``allocate``, ``robust`` and ``infer`` share: workloads, logs, names of levels."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.errors import IsocheckError
from plume_py.base.text import display, one_line
from plume_py.cli.common_options import tell, tell_written, write_history
from plume_py.levels import RUNNABLE, STRONGEST, parse_level
from plume_py.levels.databases import DATABASES
from plume_py.levels.orders import unknown_level
from plume_py.levels.table import normalized

if TYPE_CHECKING:
    from plume_py.base.sql.log_programs import LogFile
    from plume_py.reasoning.allocate.critical_cycle import CriticalCycle
    from plume_py.reasoning.allocate.driver import Drawing
    from plume_py.reasoning.allocate.workload import Workload

F = TypeVar("F", bound=Callable[..., Any])

CATALOGUES = tuple(database.name for database in DATABASES.values() if database.note)


exclude_option = click.option(
    "--exclude",
    metavar="NAME",
    multiple=True,
    help="Leave out a transaction, as one that only fills tables. Repeatable.",
)
log_option = click.option(
    "--from-log",
    "log",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Transactions from a log of PostgreSQL (log_statement = 'all').",
)


def read_workload(params: dict[str, Any], numbered: bool = True) -> "tuple[Workload, str]":
    """Return the workload without the excluded programs, and the text of the programs found in a log, or ""."""
    from plume_py.reasoning.allocate.driver import open_log, open_workload

    source, log = params["source"], params["log"]
    if (source is None) == (log is None):
        raise click.UsageError("give a WORKLOAD, or --from-log FILE")
    if log is None:
        return open_workload(source, params["schema"], params["exclude"]), ""
    workload, found = open_log(log, params["schema"], params["exclude"])
    return workload, log_text(found) if numbered else "\n".join(found.listing)


def log_text(log: "LogFile") -> str:
    """Return the programs found in a log, with line numbers."""
    width = len(str(len(log.listing)))
    lines = [f"  {n:>{width}}  {display(line, 400)}".rstrip() for n, line in enumerate(log.listing, 1)]
    return "\n".join([f"{display(log.path, 200)}: {log.summary}", *lines])


def reading_workloads(command: F) -> F:
    """Add the arguments and options that describe a workload."""
    for option in (
        click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of --instances."),
        click.option("--largest", type=click.IntRange(min=1), default=500, show_default=True, help="Parameter value."),
        click.option("--instances", type=click.IntRange(1, 10_000_000), help="Draw so many from the programs."),
        click.option("--no-sessions", is_flag=True, help="Each transaction runs in a session of its own."),
        click.option("--per", type=click.Choice(["instance", "program"]), default="instance", show_default=True),
        click.option("--catalogue", type=click.Choice(CATALOGUES), default="mixiso", show_default=True),
        click.option(
            "--schema", type=click.Path(dir_okay=False), help="CREATE TABLE statements, for an .sql workload or a log."
        ),
        exclude_option,
        log_option,
        click.argument("source", metavar="WORKLOAD", required=False),
    ):
        command = option(command)
    return command


def drawing_of(params: dict[str, Any]) -> "tuple[Drawing, dict[str, Any]]":
    """Return which instances to draw from programs, and the other options about the workload."""
    from plume_py.reasoning.allocate.driver import Drawing

    others = {"per": params["per"], "catalogue": params["catalogue"], "sessions": not params["no_sessions"]}
    return Drawing(params["instances"], params["largest"], params["seed"]), others


def level_in(catalogue: str, text: str, option: str) -> str:
    """Return the level that a name means in a catalogue: a setting of the engine, or a level of isocheck."""
    from plume_py.reasoning.allocate.catalogue import CATALOGUES

    settings = {normalized(setting): level for level, setting in CATALOGUES[catalogue].levels.items()}
    level = settings.get(normalized(text)) or parse_level(text)
    if level is None:
        usable = [*CATALOGUES[catalogue].levels.values(), *RUNNABLE]
        raise IsocheckError(one_line(f"{option}: {unknown_level(text.strip(), usable)}"))
    return level


def level_pairs(option: str, text: str, catalogue: str = "mixiso") -> dict[str, str]:
    """Return the levels by name of ``Balance=PC,WriteCheck=SER`` or ``Balance=REPEATABLE READ``.

    A name may contain commas within parentheses, so a pair ends only after its level.
    """
    levels: dict[str, str] = {}
    name = ""
    for piece in text.split(","):
        before, equals, after = piece.rpartition("=")
        if not equals:
            name += piece + ","
            continue
        level = level_in(catalogue, after, option)
        name = (name + before).strip()
        if not name or name in levels:
            raise IsocheckError(one_line(f"{option}: {piece[:60]!r} is not of the form NAME=LEVEL"))
        levels[name] = level
        name = ""
    if name:
        raise IsocheckError(one_line(f"{option}: {name[:60]!r} has no level; write NAME=LEVEL"))
    return levels


def write_critical_cycles(cycles: "Iterable[CriticalCycle]", out: str, formats: tuple[str, ...]) -> None:
    """Write the history of each cycle as a native file, and draw its violation."""
    from pathlib import Path

    from plume_py.checking.check import check
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album, slug

    album = Album(Path(out), formats)
    for critical in cycles:
        if critical.history is None:
            continue
        pivot = critical.workload.instances[critical.cycle.pivot]
        name = slug(f"{pivot.program}-at-{critical.level}")
        write_pictures(check(critical.history, STRONGEST, name=name), album)
        write_history(str(album.folder / f"{name}.json"), critical.history)
    tell(album.notes)
    if album.folder.exists():
        tell_written(out)
