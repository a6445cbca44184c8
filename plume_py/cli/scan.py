"""``isocheck scan``: a whole archive of histories; ``isocheck scan diff``: what changed since."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.errors import ExitCode, combined
from plume_py.base.memory import SMALLEST
from plume_py.base.text import counted, one_line
from plume_py.cli.common_options import (
    PER_LEVEL,
    PICTURE_FORMATS,
    LevelChoice,
    order_option,
    picture_formats,
    reading_options,
    seconds,
    tell,
    tell_written,
)
from plume_py.levels import NAMES
from plume_py.levels.orders import in_lattice_order

if TYPE_CHECKING:
    from plume_py.scan.results import Writer
    from plume_py.scan.run import Engine, Tally
    from plume_py.scan.settings import Settings
    from plume_py.scan.summary import Summary

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?", re.I)

# What an outcome stands for.
_CODES = {
    "holds": ExitCode.HOLDS,
    "violated": ExitCode.VIOLATION,
    "undecided": ExitCode.UNDECIDED,
    "unreadable": ExitCode.BAD_INPUT,
}


class _Size(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A number of bytes: 500M, 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """In powers of 1024."""
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size; write 500M or 2G", param, ctx)
        size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
        if size < SMALLEST:
            self.fail(f"{value!r} is too little to check anything in; give at least 64M", param, ctx)
        return size


class _Scan(click.Command):
    """``scan diff OLD NEW`` is a command of its own; a folder of that name is reached as ./diff."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that is meant."""
        if args and args[0] == "diff":
            return diff.make_context(f"{info_name} diff", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("scan", cls=_Scan)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--level", "-l", "levels", type=LevelChoice(), multiple=True,
    help="CI RC RA TCC PC PSI SI SER SSER, all, weak, declared; may be given several times.  [default: all]",
)  # fmt: skip
@order_option
@click.option("--jobs", "-j", type=click.IntRange(1, 1024), help="Worker processes.  [default: one per core]")
@click.option("--results", type=click.Path(dir_okay=False), help="Append a JSON line per history to this file.")
@click.option("--resume", is_flag=True, help="Go on with --results: check what is missing there or has changed.")
@click.option("--force", is_flag=True, help="Overwrite --results if it has something in it.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write the summary as a page for a browser.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="Draw each distinct violation into this folder; without --report the page is its index.html.",
)
@click.option(
    "--picture",
    "pictures",
    type=click.Choice(PICTURE_FORMATS),
    multiple=True,
    help="How --out draws; may be given several times.  [default: svg]",
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), callback=seconds, default=600.0, show_default=True,
    help="Seconds that one history may take.",
)  # fmt: skip
@click.option("--max-memory", type=_Size(), help="Memory that one history may take, such as 2G.  [default: a share]")
@click.option("--max-examples", default=1, show_default=True, type=click.IntRange(0, 1000), help="Per pattern.")
@click.option("--times/--no-times", default=True, help="Keep in the results how long each took.  [default: times]")
@click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True)
@click.option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster, such as tcp://10.0.0.1:8786.")
@click.option("--quiet", "-q", is_flag=True, help="Print no summary.")
@reading_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    levels: tuple[tuple[str, ...], ...],
    jobs: int | None,
    results: str | None,
    resume: bool,
    force: bool,
    report: str | None,
    out: str | None,
    pictures: tuple[str, ...],
    output: str,
    engine: str,
    scheduler: str | None,
    quiet: bool,
    **params: Any,
) -> None:
    """Check all histories below PATH: files, folders, globs, URLs, or @LIST for a file with a path per line.

    Histories are recognised by content; a Cobra or Viper log folder and a Jepsen run count as one. What is not a
    history is skipped. "isocheck scan diff OLD NEW" compares the results of two scans.

    Exit code: as for check; 4 also if there is no history at all.

    \b
    Examples:
      isocheck scan archive/ --report scan.html
      isocheck scan archive/ --results r.jsonl --resume
      isocheck scan diff old.jsonl new.jsonl         what changed since
    """
    if resume and results is None:
        raise click.UsageError("--resume needs --results: the file to go on with")
    if resume and force:
        raise click.UsageError("--resume goes on with what is there, --force overwrites it: one of the two")
    if (engine == "dask") != (scheduler is not None):
        raise click.UsageError("--engine dask and --scheduler ADDRESS belong together")
    if engine == "dask" and jobs is not None:
        raise click.UsageError("--jobs is for the local engine; a cluster has the workers it has")
    if scheduler is not None:
        from plume_py.scan.cluster import check_address

        check_address(scheduler)
    formats = picture_formats(pictures, out)
    if out is not None:
        _make_folder(out)
        report = report or os.path.join(out, "index.html")
    _reject_bad_report(paths, report, results)
    from plume_py.scan.settings import Settings

    asked = {level for group in levels for level in group} or set(NAMES)
    params["per_level"] = None if levels else PER_LEVEL
    settings = Settings(levels=tuple(in_lattice_order(asked)), **params)
    with _results_file(results) as target, _how_to_go_on(results):
        from plume_py.scan.results import Writer

        with Writer(target, resume=resume, force=force) as writer:
            summary, tally, places = _scan(
                paths, settings, lambda tasks: _engine(scheduler, jobs, settings, tasks), writer, report
            )
    try:
        if report is not None:
            drawn = {} if out is None else _draw(out, formats, summary, settings, places)
            _write_report(report, summary, tally, drawn)
            tell_written(report, quiet=quiet)
    finally:
        if not quiet:
            click.echo(_rendered(output, summary, tally))
    ctx.exit(_exit_code(summary))


def _engine(scheduler: str | None, jobs: int | None, settings: "Settings", tasks: int) -> "Engine":
    if scheduler is not None:
        from plume_py.scan.cluster import DaskEngine

        return DaskEngine(scheduler, settings)
    from plume_py.scan.local import LocalEngine

    return LocalEngine(max(1, min(jobs or _cores(), tasks)), settings)  # they share the memory


def _cores() -> int:
    """Those that this process may use, where the system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _reject_bad_report(paths: tuple[str, ...], report: str | None, results: str | None) -> None:
    """The page must not be in the way of anything."""
    if report == "-":
        raise click.UsageError("--report needs a file: standard output has the summary")
    others = {os.path.realpath(path) for path in (*paths, *([results] if results else []))}
    if report is not None and os.path.realpath(report) in others:
        raise click.UsageError(f"--report would overwrite {report}")
    # Better now than after hours of checking.
    if (
        report is not None
        and not is_stream(report)
        and not os.access(os.path.dirname(os.path.realpath(report)), os.W_OK)
    ):
        raise click.UsageError(f"cannot write {report}: the folder does not exist or is closed")


@contextmanager
def _results_file(path: str | None) -> Iterator[str]:
    """The file of results; one for the time being if none was asked for."""
    if path is not None:
        yield path
        return
    from plume_py.base.temp_folder import TempFolder

    with TempFolder() as scratch:
        yield os.path.join(scratch.path, "results.jsonl")


@contextmanager
def _how_to_go_on(results: str | None) -> Iterator[None]:
    """An interrupted scan is not lost."""
    try:
        yield
    except KeyboardInterrupt:
        if results is not None:
            click.echo(one_line(f"isocheck: what is done is in {results}; go on with --resume"), err=True)
        raise


def _scan(
    paths: tuple[str, ...],
    settings: "Settings",
    engine: "Callable[[int], Engine]",
    writer: "Writer",
    report: str | None,
) -> "tuple[Summary, Tally, dict[str, str]]":
    """What came of it; and where the histories are whose names are not their paths."""
    from plume_py.cli.scan_progress import progress_line
    from plume_py.scan.find import find
    from plume_py.scan.results import read_lines
    from plume_py.scan.run import run, with_known
    from plume_py.scan.summary import summed_up

    if writer.damaged:
        _note_damage(writer.path, writer.damaged)
    tasks = with_known(find(paths, leave_out=[path for path in (writer.path, report) if path]), writer, settings)
    with progress_line() as watch:
        tally = run(tasks, engine(len(tasks)), writer, watch)
    return summed_up(read_lines(writer.path)), tally, {task.alias: task.path for task in tasks if task.alias}


def _note_damage(path: str, lines: int) -> None:
    click.echo(one_line(f"isocheck: {path}: {counted(lines, 'damaged line')} left out"), err=True)


def _rendered(output: str, summary: "Summary", tally: "Tally") -> str:
    if output == "json":
        from plume_py.report.json import signed
        from plume_py.scan.summary import plain

        run = {"files": tally.tasks, "checked": tally.checked, "same": tally.same, "skipped": tally.skipped}
        return signed({"run": {**run, "skipped_names": tally.skipped_names}, "summary": plain(summary)})
    from plume_py.scan.report import render

    return render(summary, tally)


def _make_folder(path: str) -> None:
    """Better now than after hours of checking."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None


def _draw(
    out: str, formats: tuple[str, ...], summary: "Summary", settings: "Settings", paths: dict[str, str]
) -> dict[str, str]:
    """Pictures of the shapes; of each the file to look at."""
    from plume_py.report.graphviz import Album
    from plume_py.scan.pictures import DRAWN, draw

    album = Album(Path(out), formats)
    names = draw(summary.groups.values(), settings, album, paths)
    missing = min(DRAWN, len(summary.groups)) - len(names)
    tell(album.notes)
    if missing:
        tell([f"{missing:,} shapes have no picture: their histories are gone, have changed, or took too long again"])
    if len(summary.groups) > DRAWN:
        tell([f"the {DRAWN} most frequent of {len(summary.groups):,} shapes are drawn"])
    files = {shape: os.path.join(out, f"{name}.{formats[0]}") for shape, name in names.items()}
    return {
        shape: path if os.path.exists(path) else os.path.splitext(path)[0] + ".dot" for shape, path in files.items()
    }


def _write_report(target: str, summary: "Summary", tally: "Tally", drawn: dict[str, str]) -> None:
    from plume_py.base.atomic_files import write_atomically
    from plume_py.scan.page import Links, document

    page = document(summary, tally, Links(target, drawn))
    write_atomically(target, [page.encode("utf-8", "backslashreplace")])
    pictures = f", {counted(len(drawn), 'picture')} beside it" if drawn else ""
    click.echo(one_line(f"isocheck: the page is {target}{pictures}"), err=True)


def _exit_code(summary: "Summary") -> ExitCode:
    if not summary.histories:
        click.echo("isocheck: no history found", err=True)
        return ExitCode.BAD_INPUT
    return combined(_CODES[outcome] for outcome, count in summary.outcomes.items() if count)


@click.command("diff")
@click.argument("old", type=click.Path(dir_okay=False))
@click.argument("new", type=click.Path(dir_okay=False))
@click.option("--relative", is_flag=True, help="Match histories by their place below each scan's common folder.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def diff(ctx: click.Context, old: str, new: str, relative: bool, output: str) -> None:
    """Compare two files of results: what is fixed, new, changed.

    Exit code: 1 if a history is violated now that was not before, else 0; 4 if a file could not be read.

    \b
    Examples:
      isocheck scan diff yesterday.jsonl today.jsonl
      isocheck scan diff main.jsonl branch.jsonl --relative --format json
    """
    from plume_py.report.json import encode
    from plume_py.scan.diff import compare, plain, render
    from plume_py.scan.results import open_results

    readers = open_results(old), open_results(new)
    for reader in readers:
        if reader.damaged:
            _note_damage(reader.path, reader.damaged)
    found = compare(*readers, relative)
    click.echo(encode(plain(found)) if output == "json" else render(found))
    ctx.exit(ExitCode.VIOLATION if found.worse else ExitCode.HOLDS)
