"""``isocheck check``: check histories at isolation levels. The default command."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, InputError, IsocheckError, LimitError, TooLargeError, combined, exit_code
from plume_py.base.passwords import redacted
from plume_py.base.text import counted, one_line
from plume_py.cli.common_options import (
    OUTPUT_FORMATS,
    PER_LEVEL,
    LevelChoice,
    assumed_level,
    bytes_of_memory,
    complete_levels,
    limits_of,
    order_option,
    picture_formats,
    picture_option,
    reading_options,
    seconds,
    tell,
    tell_written,
    write_history,
)
from plume_py.levels import NAMES, STRONGEST_FIRST
from plume_py.levels.orders import in_lattice_order, level_of, level_request

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.history.model import History
    from plume_py.reasoning.synth import Definition
    from plume_py.reasoning.synth.judge import Judgement

PATTERNS = "abcdefghijklmn"
CLOCKS = ("auto", "vector", "tree", "none")


@dataclass(frozen=True)
class CommandOptions:
    """The options of one run."""

    levels: list[str]
    defined: "dict[str, Definition]"  # levels by their definitions
    order: str
    taps: tuple[str, ...]
    clock: Any
    max_examples: int
    input_format: str | None
    init_txn: Any
    witness: str | None
    minimize: str | None
    out: str | None
    pictures: tuple[str, ...]
    assume: str | None
    levels_file: str | None
    timeout: float | None
    max_memory: int | None
    evidence: bool
    patient: bool = True  # no limit per level, because the user named the levels

    @property
    def per_level(self) -> float | None:
        """The limit in seconds for each level that needs a search."""
        return None if self.patient or self.timeout is not None else PER_LEVEL


class AnyLevelChoice(LevelChoice):
    """As LevelChoice, but unknown names stay as they are: a file of ``--define`` may define them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            return (str(value).strip(),)


def _taps(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    letters = tuple(letter.strip().lower().removeprefix("tap-") for letter in value.split(","))
    wrong = [letter for letter in letters if len(letter) != 1 or letter not in PATTERNS]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not a pattern; use letters a to n, as in --tap a,h,m")
    return letters


@click.command("check")
@click.argument("histories", metavar="HISTORY...", nargs=-1, required=True)
@click.option(
    "--level", "-l", "levels", type=AnyLevelChoice(), multiple=True,
    help="CI RC RA TCC PC PSI SI SER SSER, all, weak, declared, or by its definition UA NLU UpdateSer and more"
    " (isocheck levels); may be given several times. With all, StrongSI and SSER are also checked if the history has"
    " times.  [default: all]",
)  # fmt: skip
@click.option(
    "--define", "files", multiple=True, type=click.Path(dir_okay=False),
    help="A Python file that defines levels; it is run.",
)  # fmt: skip
@order_option
@click.option(
    "--assume",
    metavar="LEVEL",
    callback=assumed_level,
    shell_complete=complete_levels,
    help="For declared: the level of those that carry none.",
)
@click.option(
    "--levels-file", type=click.Path(dir_okay=False),
    help='For declared: {"transactions": {"ID": "LEVEL"}, "sessions": {"NAME": "LEVEL"}}.',
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), callback=seconds, help="Seconds per history, then undecided."
)
@click.option(
    "--max-memory", metavar="SIZE", callback=bytes_of_memory, help="Such as 4G; undecided if it does not suffice."
)
@click.option("--tap", "taps", callback=_taps, help="Look for these patterns instead, for example a,h,m.")
@click.option("--format", "output", type=click.Choice(OUTPUT_FORMATS), default="text", show_default=True)
@click.option("--out", type=click.Path(file_okay=False), help="Draw the counterexamples into this folder.")
@picture_option
@click.option("--report", type=click.Path(dir_okay=False), help="Write a report to read in a browser.")
@click.option("--max-examples", default=1, show_default=True, type=click.IntRange(0, 1000), help="Per pattern.")
@click.option("--minimize", type=click.Path(dir_okay=False), help="Write a smallest sub-history that fails likewise.")
@click.option("--witness", type=click.Path(dir_okay=False), help="Write the commit order of a level that holds.")
@click.option("--evidence", is_flag=True, help="Say what a pass is worth: which errors would have been noticed.")
@click.option("--clock", type=click.Choice(CLOCKS), default="auto", help="For the curious.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing for histories that hold.")
@click.option("--verbose", "-v", is_flag=True, help="Print times as well.")
@reading_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    histories: tuple[str, ...],
    levels: tuple[tuple[str, ...], ...],
    files: tuple[str, ...],
    output: str,
    pictures: tuple[str, ...],
    report: str | None,
    color: str,
    quiet: bool,
    verbose: bool,
    **params: Any,
) -> None:
    """Check whether histories keep an isolation level ("-" reads standard input).

    Exit code: 0 every level holds for every history, 1 some violation, 2 wrong usage, 3 undecided, 4 some input could
    not be read.

    \b
    Examples:
      isocheck history.json                          every level
      isocheck run/history.edn --level SI --timeout 60
      isocheck history.json --define my_levels.py --level MyLevel
      isocheck *.txt --format junit > results.xml    for a CI system
    """
    params["pictures"] = picture_formats(pictures, params["out"])
    builtin, defined = split_builtin_levels(ctx, [level for group in levels for level in group], files, params["order"])
    options = CommandOptions(
        levels=builtin or ([] if levels else list(NAMES)), defined=defined, patient=bool(levels), **params
    )
    if options.taps and levels:
        raise click.UsageError("give --level or --tap, not both: a pattern has a verdict of its own")
    _reject_bad_targets(histories, options, report)
    if (options.assume or options.levels_file) and "declared" not in options.levels:
        raise click.UsageError("--assume and --levels-file are for --level declared")
    ctx.color = {"always": True, "never": False}.get(color, ctx.color)
    from plume_py.report.output import STREAMED, one, whole

    results, codes = [], []
    for path in histories:
        result, written = _check(path, options, quiet)
        results.append(result)
        codes += [exit_code(result.ok, result.error), written]
        if output in STREAMED and not (quiet and result.ok):
            printed = one(output, result, verbose=verbose)
            if printed:
                click.echo(printed, color=ctx.color)
    if output not in STREAMED:
        click.echo(whole(output, results))
    if output == "text" and len(results) > 1 and not quiet:
        click.echo(f"\n{_sum_up(results)}")
    if report is not None:
        from plume_py.api import page

        page(results, report)
        tell_written(report, quiet=quiet)
    ctx.exit(combined(codes))


def _sum_up(results: "list[Result]") -> str:
    """Return a line such as "3 histories: 1 holds, 2 violated"."""
    outcomes = {
        ("holds", "hold"): [r for r in results if r.ok and not r.error],
        ("violated",) * 2: [r for r in results if r.ok is False and not r.error],
        ("undecided",) * 2: [r for r in results if r.ok is None and not r.error],
        ("unreadable",) * 2: [r for r in results if r.error],
    }
    counts = (f"{len(which):,} {names[len(which) > 1]}" for names, which in outcomes.items() if which)
    return f"{len(results):,} histories: {', '.join(counts)}"


def _reject_bad_targets(histories: tuple[str, ...], options: CommandOptions, report: str | None) -> None:
    """Reject output files that would overwrite a history, mix with the results, or have no single meaning."""
    targets = {"--witness": options.witness, "--minimize": options.minimize, "--report": report}
    inputs = {os.path.realpath(path) for path in histories}
    for name, target in targets.items():
        if target == "-":
            raise click.UsageError(f"{name} needs a file: standard output has the results")
        if target is not None and os.path.realpath(target) in inputs:
            raise click.UsageError(f"{name} would overwrite the history {target}")
    if options.defined and (options.witness or options.minimize):
        raise click.UsageError("--witness and --minimize are for levels that are not judged by their definitions")
    one_level = (
        len(options.levels) == 1 or not options.patient
    )  # by default: the strongest that holds, the weakest that is violated
    for name in ("--witness", "--minimize"):
        if targets[name] is not None and (len(histories) != 1 or not one_level or options.taps):
            raise click.UsageError(f"{name} needs exactly one history and one level")


def split_builtin_levels(
    ctx: click.Context, names: list[str], files: tuple[str, ...], order: str
) -> "tuple[list[str], dict[str, Definition]]":
    """Split level names into levels that the checker decides and levels by their definitions.

    If no level is named, the second part has all levels that the files of ``--define`` define.
    """
    others = [name for name in names if name != "declared" and level_request(name) is None]
    if not others and not files:
        return names, {}
    from plume_py.cli.synth_options import chosen, defined_in
    from plume_py.reasoning.synth.check_definitions import in_order

    defined = defined_in(files)
    wanted = others or ([] if names else list(defined))
    try:
        (levels,) = chosen(defined, tuple(wanted)) if wanted else [[]]
    except IsocheckError as error:
        param = next(param for param in ctx.command.params if param.name == "levels")
        raise click.BadParameter(str(error), ctx, param) from None
    builtin = [name for name in names if name not in others]
    return builtin, {level.name: in_order(level, order) for level in levels}


def _check(path: str, options: CommandOptions, quiet: bool) -> "tuple[Result, ExitCode]":
    """Load and check one history, and write the files for it; print an input error on standard error at once.

    The exit code is only for the files; the caller derives that of the verdict.
    """
    from plume_py.checking.check import check, described
    from plume_py.checking.declared import read_level_map
    from plume_py.checking.precompile import compiled_ahead
    from plume_py.checking.result import LevelVerdict, Result
    from plume_py.cli.progress import progress
    from plume_py.history.load import load
    from plume_py.levels.patterns import PATTERNS

    start = time.perf_counter()
    limits = limits_of(options.timeout, options.max_memory, options.per_level)
    how: dict[str, Any] = {"assume": options.assume, "limits": limits}
    found: list[Judgement] = []
    with compiled_ahead(path, options.levels), progress(path, quiet) as tick:
        tick("load")
        try:
            with limits.enforced():
                history = load(path, format=options.input_format, init_txn=options.init_txn)
                loaded = time.perf_counter() - start
                how["level_map"] = None if options.levels_file is None else read_level_map(options.levels_file)
                if options.levels:
                    result = check(
                        history,
                        options.levels,
                        order=options.order,
                        taps=options.taps,
                        max_examples=options.max_examples,
                        name=path,
                        clock=options.clock,
                        progress=tick,
                        **how,
                    )
                    if options.evidence and not options.taps:
                        tick("evidence")
                        result = with_evidence(result, history, options.order, limits)
                else:
                    result = described(history, path)
                if options.defined:
                    from plume_py.reasoning.synth.check_definitions import judged, with_verdicts

                    found = judged(history, options.defined, limits)
                    result = with_verdicts(result, history, found)
        except (TooLargeError, LimitError, MemoryError) as error:
            # The history may be a good one: more memory or time would decide it.
            reason = str(error) or "it does not fit in memory"
            asked = [PATTERNS[tap].label for tap in options.taps] or [*options.levels, *options.defined]
            return Result(history=path, levels=dict.fromkeys(asked, LevelVerdict(None, reason=reason))), ExitCode.HOLDS
        except InputError as error:
            error.in_source(path)
            click.echo(one_line(f"isocheck: {error}"), err=True)
            # A path that names no file may be the address of a database, with a password.
            return Result(history=redacted(path), error=redacted(str(error))), ExitCode.HOLDS
    written = _write_files(history, result, options, how, quiet)
    # Only these formats record their run; for others the time to read the metadata would be lost.
    if result.format == "jsonl" or (result.format == "json" and result.violations):
        from plume_py.report.recording_metadata import with_run

        result = with_run(result, path)
    if options.out is not None:
        _draw(result, found, options.out, options.pictures, quiet)
    return replace(result, seconds={"load": loaded, **result.seconds}), written


def with_evidence(result: "Result", history: "History", order: str, limits: "Limits") -> "Result":
    """Return the result with its evidence, or with a note if a limit is reached; the verdicts stay the same."""
    from plume_py.checking.evidence import evidence_of

    try:
        return replace(result, evidence=evidence_of(history, result.levels, order=order, limits=limits))
    except LimitError as error:
        return replace(result, notes=(*result.notes, f"no evidence: {error}"))


def _write_files(
    history: "History", result: "Result", options: CommandOptions, how: "dict[str, Any]", quiet: bool
) -> ExitCode:
    """Write the files of ``--witness`` and ``--minimize``; ``how`` has the arguments of the check, with its limits."""
    try:
        holding = in_lattice_order(level for level, verdict in result.levels.items() if verdict.ok)[::-1]
        holding = [level for level in holding if level_of(level) in STRONGEST_FIRST]
        violated = [level for level, verdict in result.levels.items() if verdict.ok is False]
        if options.witness is not None and (holding or result.ok):
            from plume_py.base.limits import Limits
            from plume_py.checking.witness import write_witness

            # The decision ended within the limits, and the witness takes as long again.
            again = Limits(how["limits"].timeout, how["limits"].max_memory)
            with again.enforced():
                how = {**how, "limits": again, "order": options.order}
                write_witness(history, [*holding, *options.levels][0], options.witness, **how)
            tell_written(options.witness, quiet=quiet)
        if options.minimize is not None and violated:
            with how["limits"].enforced():
                how = {**how, "order": options.order}
                _minimize(history, result.history, violated[0], options.minimize, how, quiet)
    except LimitError as error:
        click.echo(one_line(f"isocheck: {options.witness or options.minimize} was not written: {error}"), err=True)
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS


def _draw(result: "Result", found: "list[Judgement]", out: str, pictures: tuple[str, ...], quiet: bool) -> None:
    """Draw the counterexamples. For levels judged by definition, also draw the witness or the contradiction."""
    if not result.violations and not found:
        return
    from plume_py.reasoning.synth.check_definitions import draw
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album

    album = Album(Path(out), pictures)
    write_pictures(result, album)
    drawn = [counted(len(result.violations), "counterexample")] if result.violations else []
    if definitions := draw(album, result.history, found):
        drawn.append(counted(definitions, "picture") + " of definitions")
    tell(album.notes)
    if drawn:
        tell_written(out, ", ".join(drawn), quiet=quiet)


def _minimize(history: "History", path: str, level: str, target: str, how: "dict[str, Any]", quiet: bool) -> None:
    from plume_py.checking.minimize import minimize
    from plume_py.history.nodes import placed_as, with_nodes
    from plume_py.levels import patterns

    small = minimize(history, level, **how)
    if small is not None:
        write_history(target, placed_as(small.history, with_nodes(history, path)))
        made = small.history
        size = f"{counted(made.transactions, 'transaction')}, {counted(made.operations, 'operation')}"
        cut = "" if small.complete else ", perhaps not the smallest because a limit was reached"
        tell_written(target, f"{size}, {patterns.PATTERNS[small.tap].label}{cut}", quiet=quiet)
