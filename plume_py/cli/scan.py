"""``isocheck scan``: check an archive of histories; ``isocheck scan diff``: compare the results of two scans."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.errors import ExitCode, combined
from plume_py.base.memory import SMALLEST
from plume_py.base.terminal import StatusLine, clock
from plume_py.base.text import counted
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
    from plume_py.scan.run import Engine
    from plume_py.scan.summary import Summary, Tally

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?", re.I)

# Exit codes by outcome.
_CODES = {
    "holds": ExitCode.HOLDS,
    "violated": ExitCode.VIOLATION,
    "undecided": ExitCode.UNDECIDED,
    "unreadable": ExitCode.BAD_INPUT,
}


class _Size(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A number of bytes such as 500M or 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size; write 500M or 2G", param, ctx)
        size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
        if size < SMALLEST:
            self.fail(f"{value!r} is too little to check anything in; give at least 64M", param, ctx)
        return size


class _Scan(click.Command):
    """A command with one subcommand, ``scan diff OLD NEW``. A folder named diff is reached as ./diff."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
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

    chosen = {level for group in levels for level in group} or set(NAMES)
    params["per_level"] = None if levels else PER_LEVEL
    settings = Settings(levels=tuple(in_lattice_order(chosen)), **params)
    with _results_file(results) as target, _resume_hint(results):
        from plume_py.scan.results import Writer
        from plume_py.scan.run import engine_for, scan

        with Writer(target, resume=resume, force=force) as writer, progress_line() as on_progress:
            if writer.damaged:
                _print_damage(writer.path, writer.damaged)

            def open_engine(tasks: int) -> "Engine":
                return engine_for(scheduler, jobs, settings, tasks)

            written = [report] if report else []
            summary, tally, aliases = scan(paths, settings, open_engine, writer, written, on_progress)
    try:
        if report is not None:
            from plume_py.scan.page import draw_shapes, write_page

            drawn: dict[str, str] = {}
            if out is not None:
                drawn, notes = draw_shapes(summary, settings, out, formats, aliases)
                tell(notes)
            write_page(report, summary, tally, drawn)
            beside = f", {counted(len(drawn), 'picture')} beside it" if drawn else ""
            tell([f"the page is {report}{beside}"])
            tell_written(report, quiet=quiet)
    finally:
        if not quiet:
            click.echo(_rendered(output, summary, tally))
    ctx.exit(_exit_code(summary))


def _reject_bad_report(paths: tuple[str, ...], report: str | None, results: str | None) -> None:
    """Reject a path of the page that would overwrite an input, or that cannot be written."""
    if report == "-":
        raise click.UsageError("--report needs a file: standard output has the summary")
    others = {os.path.realpath(path) for path in (*paths, *([results] if results else []))}
    if report is not None and os.path.realpath(report) in others:
        raise click.UsageError(f"--report would overwrite {report}")
    # Now, not after hours of checking.
    if (
        report is not None
        and not is_stream(report)
        and not os.access(os.path.dirname(os.path.realpath(report)), os.W_OK)
    ):
        raise click.UsageError(f"cannot write {report}: the folder does not exist or is closed")


@contextmanager
def _results_file(path: str | None) -> Iterator[str]:
    """Yield the path of the results, or of a temporary file."""
    if path is not None:
        yield path
        return
    from plume_py.base.temp_folder import TempFolder

    with TempFolder() as scratch:
        yield os.path.join(scratch.path, "results.jsonl")


@contextmanager
def _resume_hint(results: str | None) -> Iterator[None]:
    """After Ctrl-C, print how to resume the scan."""
    try:
        yield
    except KeyboardInterrupt:
        if results is not None:
            tell([f"what is done is in {results}; go on with --resume"])
        raise


def _print_damage(path: str, lines: int) -> None:
    tell([f"{path}: {counted(lines, 'damaged line')} left out"])


def status_text(tally: "Tally") -> str:
    """Return the status line: how many tasks are done, the speed, the time left, and the outcomes."""
    parts = [f"{tally.done:,}/{tally.tasks:,} ({tally.work_done / max(1, tally.work):.0%})", f"{tally.rate:,.0f}/s"]
    left = tally.seconds_left
    if left is not None:
        parts.append(f"{clock(left)} left")
    counts = {**tally.outcomes, "as before": tally.same, "skipped": sum(tuple(tally.skipped.values()))}
    parts.append(", ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "at work")
    return "  ".join(parts)


@contextmanager
def progress_line() -> "Iterator[Callable[[Tally], None]]":
    """Yield a function that gets the counts so far; on a terminal they are drawn a few times a second."""
    latest: list[Tally] = []

    def on_progress(tally: "Tally") -> None:
        latest[:] = [tally]

    with StatusLine().redrawn(lambda: status_text(latest[0]) if latest else ""):
        yield on_progress


def _rendered(output: str, summary: "Summary", tally: "Tally") -> str:
    from plume_py.scan.summary import plain, render

    if output == "json":
        from plume_py.report.json import signed

        run = {"files": tally.tasks, "checked": tally.checked, "same": tally.same, "skipped": tally.skipped}
        return signed({"run": {**run, "skipped_names": tally.skipped_names}, "summary": plain(summary)})
    return render(summary, tally)


def _make_folder(path: str) -> None:
    """Create the folder now, so that an error does not come after hours of checking."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None


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
            _print_damage(reader.path, reader.damaged)
    found = compare(*readers, relative)
    click.echo(encode(plain(found)) if output == "json" else render(found))
    ctx.exit(ExitCode.VIOLATION if found.worse else ExitCode.HOLDS)
