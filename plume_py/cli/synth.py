"""``isocheck synth``: find a history that some levels allow and others forbid."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from plume_py.base.errors import ExitCode, IsocheckError, LimitError
from plume_py.base.text import one_line
from plume_py.cli.common_options import (
    complete_levels,
    limits_of,
    picture_formats,
    picture_option,
    tell,
    tell_written,
    write_history,
)
from plume_py.cli.synth_options import Search, chosen, defined_in, scope_of, scope_options

if TYPE_CHECKING:
    from plume_py.reasoning.synth import Program, SynthesisResult


@click.command("synth")
@click.option(
    "--allow",
    "-a",
    multiple=True,
    metavar="LEVEL",
    shell_complete=complete_levels,
    help="A level that allows it; repeatable.",
)
@click.option(
    "--forbid",
    "-f",
    multiple=True,
    metavar="LEVEL",
    shell_complete=complete_levels,
    help="A level that forbids it; repeatable.",
)
@scope_options(txns=3, keys=2, values=3)
@click.option("--up-to", is_flag=True, help="At most --txns transactions, as few as possible, instead of exactly.")
@click.option("--minimal", is_flag=True, help="A smallest one: transactions, then keys, then operations.")
@click.option("--count", type=click.IntRange(1, 10_000), default=1, show_default=True, help="No two isomorphic.")
@click.option("--levels", metavar="LEVEL,...", help="For --allow declared: a level for each transaction.")
@click.option("--out", type=click.Path(), help="Write the history to this .json file, or with pictures to this folder.")
@picture_option
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--without", "switched_off", multiple=True, metavar="TRICK", help="For the curious: search without it.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    allow: tuple[str, ...],
    forbid: tuple[str, ...],
    files: tuple[str, ...],
    timeout: float | None,
    max_memory: int | None,
    out: str | None,
    pictures: tuple[str, ...],
    output: str,
    levels: str | None,
    switched_off: tuple[str, ...],
    up_to: bool,
    minimal: bool,
    count: int,
    **sizes: Any,
) -> None:
    """Find a history that some levels allow and others forbid, or show that there is none within the scope.

    Levels are those of check (SI is short for SI@co, its commit-order form), SI@vis and so on for the form with
    visibility, UA, NLU, UpdateSer, declared, patterns (TapRA for Plume's, RA@tap for ours), or yours (--define).
    Which order between transactions counts may be part of a name: SSER, StrongSI, or any with @none, @session,
    @realtime or @realtime-per-key. Where real time counts, what is found has times.

    Exit code: 0 found, 1 none within the scope, 2 wrong usage, 3 undecided, 4 a file could not be read.

    \b
    Examples:
      isocheck synth --allow SI --forbid SER --txns 3
      isocheck synth --allow TCC --forbid PC --minimal --out fork.json
      isocheck synth --allow SER --forbid SSER --minimal
    """
    formats = picture_formats(pictures, out)
    if not allow and not forbid:
        raise click.UsageError("give at least one level with --allow or --forbid")
    if out == "-":
        raise click.UsageError("--out needs a file or a folder; --format json prints the history")
    if count > 1 and out is not None and out.endswith(".json"):
        raise click.UsageError("several histories need a folder for --out")
    from plume_py.reasoning.synth import SynthesisResult, synthesize
    from plume_py.reasoning.synth.report import plain, text
    from plume_py.reasoning.synth.synthesis import Progress, beyond
    from plume_py.report.json import signed

    allowed, forbidden = chosen(defined_in(files), allow, forbid)
    programs = None
    if levels is not None:
        if all(level.level != "declared" for level in (*allowed, *forbidden)):
            raise click.UsageError("--levels is for --allow declared or --forbid declared")
        programs = _programs(levels)
        if ctx.get_parameter_source("txns") != ParameterSource.DEFAULT and sizes["txns"] != len(programs):
            raise click.UsageError(f"--levels names {len(programs)} transactions, --txns {sizes['txns']}")
        sizes["txns"] = len(programs)
    scope, tricks = scope_of(**sizes), _tricks(switched_off)
    search = Search(limits_of(timeout, max_memory), Progress(0, scope.txns))
    try:
        outcome = search.run(
            lambda send: synthesize(
                allowed, forbidden, scope, fixed=programs, count=count, minimal=minimal, up_to=up_to,
                tricks=tricks, limits=search.limits, smaller_first=True, on_progress=send,
            )
        )  # fmt: skip
    except LimitError as error:
        nothing = SynthesisResult(tuple(d.name for d in allowed), tuple(d.name for d in forbidden), scope)
        reason = f"{error}; {search.news}"
        click.echo(signed(plain(nothing, reason)) if output == "json" else one_line(f"undecided: {reason}"))
        ctx.exit(ExitCode.UNDECIDED)
    if programs is None:
        outcome.beyond = beyond(
            outcome,
            lambda larger: search.run(
                lambda _: synthesize(allowed, forbidden, larger, tricks=tricks, limits=search.limits)
            ),
        )
    click.echo(signed(plain(outcome)) if output == "json" else text(outcome))
    if out is not None:
        _write(outcome, out, formats)
    if outcome.stopped:
        ctx.exit(ExitCode.UNDECIDED)
    ctx.exit(ExitCode.HOLDS if outcome.found else ExitCode.VIOLATION)


def _programs(levels: str) -> "list[Program]":
    """Return a program for each level of ``SI,SER`` or ``T1=SI,T2=SER``."""
    from plume_py.levels import RUNNABLE, parse_level
    from plume_py.levels.orders import unknown_level
    from plume_py.reasoning.synth import Program

    programs = []
    for number, part in enumerate(levels.split(","), 1):
        name, equals, text = part.rpartition("=")
        level = parse_level(text)
        if level not in RUNNABLE:
            raise IsocheckError(one_line(f"--levels: {unknown_level(text.strip(), RUNNABLE)}"))
        if equals and name.strip() != f"T{number}":
            form = f"SI,SER or T1=SI,T2=SER with levels {' '.join(RUNNABLE)}"
            raise IsocheckError(one_line(f"--levels: {part.strip()[:40]!r} is not of the form {form}"))
        programs.append(Program(level=level))
    return programs


def _tricks(names: tuple[str, ...]) -> Any:
    from plume_py.reasoning.synth.problem import TRICKS, without

    wrong = [name for name in names if name not in TRICKS]
    if wrong:
        raise click.UsageError(f"{wrong[0]!r} is not a trick; use {', '.join(TRICKS)}")
    return without(*names)


def _write(outcome: "SynthesisResult", out: str, formats: tuple[str, ...]) -> None:
    """Write one native file, or a folder with a file and pictures for each history."""
    from plume_py.base.atomic_files import is_stream

    if not outcome.found:
        return
    if out.endswith(".json") or is_stream(out):
        write_history(out, outcome.found[0].concrete.history())
        tell_written(out)
        return
    from dataclasses import replace

    from plume_py.reasoning.synth.picture import history_picture, witness_pictures
    from plume_py.reasoning.synth.report import title
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album

    album = Album(Path(out), formats)
    for number, found in enumerate(outcome.found, 1):
        name = f"history-{number}"
        album.add(name, history_picture(found.concrete, title(outcome)))
        for level, drawn in witness_pictures(found):
            album.add(f"{name}-{level}", drawn)
        write_history(str(album.folder / f"{name}.json"), found.concrete.history())
        if found.rechecked.result is not None:  # the counterexamples of forbidden levels that the checker explains
            write_pictures(replace(found.rechecked.result, history=name), album)
    tell(album.notes)
    tell_written(out)
