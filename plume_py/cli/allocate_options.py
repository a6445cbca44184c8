"""What ``allocate`` and ``robust`` have in common."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.errors import IsocheckError
from plume_py.base.text import display, one_line
from plume_py.cli.common_options import tell, tell_written
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


def read_workload(
    source: str | None, schema: str | None, log: str | None, exclude: tuple[str, ...] = (), numbered: bool = True
) -> "tuple[Workload, str]":
    """The workload without some of its programs, and what was understood of a log, if it comes from one."""
    from plume_py.reasoning.allocate.driver import open_log, open_workload

    if (source is None) == (log is None):
        raise click.UsageError("give a WORKLOAD, or --from-log FILE")
    if log is None:
        assert source is not None
        return open_workload(source, schema, exclude), ""
    workload, found = open_log(log, schema, exclude)
    return workload, log_text(found) if numbered else "\n".join(found.listing)


def log_text(log: "LogFile") -> str:
    """What was read from a log: the programs, with the numbers of their lines."""
    width = len(str(len(log.listing)))
    lines = [f"  {n:>{width}}  {display(line, 400)}".rstrip() for n, line in enumerate(log.listing, 1)]
    return "\n".join([f"{display(log.path, 200)}: {log.summary}", *lines])


def reading_workloads(command: F) -> F:
    """The workload, and what is to be known about it."""
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
    """The options that say what to draw, and the others."""
    from plume_py.reasoning.allocate.driver import Drawing

    rest = {
        name: value for name, value in params.items() if name not in ("instances", "largest", "seed", "no_sessions")
    }
    rest["sessions"] = not params["no_sessions"]
    return Drawing(params["instances"], params["largest"], params["seed"]), rest


def level_in(catalogue: str, text: str, option: str) -> str:
    """Return the level that a name means in a catalogue: a setting of the engine, or a level of ours."""
    from plume_py.reasoning.allocate.catalogue import CATALOGUES

    own = {normalized(spelled): level for level, spelled in CATALOGUES[catalogue].levels.items()}
    level = own.get(normalized(text)) or parse_level(text)
    if level is None:
        usable = [*CATALOGUES[catalogue].levels.values(), *RUNNABLE]
        raise IsocheckError(one_line(f"{option}: {unknown_level(text.strip(), usable)}"))
    return level


def level_pairs(option: str, text: str, catalogue: str = "mixiso") -> dict[str, str]:
    """``Balance=PC,WriteCheck=SER``, or as an engine says, ``Balance=REPEATABLE READ``; names may hold commas within
    parentheses, so levels end a piece."""
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
    """Each history as a native file, and the picture of what it breaks."""
    from pathlib import Path

    from plume_py.base.atomic_files import write_atomically
    from plume_py.checking.check import check
    from plume_py.history.formats.json_writer import write_json
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album, slug

    album = Album(Path(out), formats)
    for critical in cycles:
        if critical.history is None:
            continue
        pivot = critical.workload.instances[critical.cycle.pivot]
        name = slug(f"{pivot.program}-at-{critical.level}")
        write_pictures(check(critical.history, STRONGEST, name=name), album)
        write_atomically(str(album.folder / f"{name}.json"), write_json(critical.history).chunks)
    tell(album.notes)
    if album.folder.exists():
        tell_written(out)
