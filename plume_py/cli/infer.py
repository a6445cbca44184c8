"""``isocheck infer``: find the weakest level of each transaction that preserves an application's invariant."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, IsocheckError
from plume_py.base.text import nearest, one_line
from plume_py.cli.allocate_options import exclude_option, log_option, log_text
from plume_py.cli.common_options import picture_formats, picture_option, tell, tell_written, timeout_option

if TYPE_CHECKING:
    from plume_py.reasoning.infer.driver import InferenceResult, InferOptions
    from plume_py.reasoning.infer.joint_levels import JointLevels

SERVERS = ("postgresql", "mariadb")
# The time of ``allocate`` grows exponentially with the parameters of a program. Above this number it is not called.
MOST_PARAMETERS = 4
STORES = ("postgresql", "mysql", "ansi", "mixiso-levels", "literal")


@click.command("infer")
@click.argument("app", metavar="APP")
@click.option("--store", type=click.Choice(STORES), help="Whose levels [default: postgresql, or those of --run].")
@click.option("--txn", "names", metavar="NAME", multiple=True, help="Only this transaction. Repeatable.")
@exclude_option
@click.option(
    "--rows",
    type=click.IntRange(1, 12),
    help="Rows per table at the start.  [default: as many as APP counts, from 3 to 8]",
)
@click.option("--steps", type=click.IntRange(0, 4), default=2, show_default=True, help="Commits of others in between.")
@click.option("--prove", is_flag=True, help="Try to prove what no violation was found for, without bounds.")
@click.option("--serializability", is_flag=True, help="Without invariant: the effect must equal a serial one.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "z3", "explore"]),
    default="auto",
    show_default=True,
    help="Symbolic search, or every state of a small scope.",
)
@timeout_option("Seconds for all levels of all transactions, then undecided.  [default: 60 for each question]")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--out", "folder", metavar="DIR", help="Draw each counterexample into this folder.")
@picture_option
@click.option("--partners", is_flag=True, help="Tell how all fare together, each at its own level.")
@click.option("--run", "server", type=click.Choice(SERVERS), help="Then run it on a private server, under contention.")
@click.option("--all-vectors", "every", is_flag=True, help="With --run: every assignment of levels.")
@click.option(
    "--run-seconds", type=click.FloatRange(0.1, 600), default=1.0, show_default=True, help="With --run: per assignment."
)
@click.option("--clients", type=click.IntRange(1, 100), default=6, show_default=True, help="With --run: connections.")
@log_option
@click.option("--brief", is_flag=True, help="The levels only, without counterexamples.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    app: str,
    folder: str | None,
    pictures: tuple[str, ...],
    style: str,
    brief: bool,
    server: str | None,
    every: bool,
    run_seconds: float,
    clients: int,
    partners: bool,
    log: str | None,
    exclude: tuple[str, ...],
    **params: Any,
) -> None:
    """Find the weakest isolation level of each transaction of APP that keeps its invariant.

    APP is a SQL file, a Python file (which is executed), or the name of an example: courseware, tpcc, tpcc_lite, bank,
    withdrawal, savings, add_interest, doctors, unique_ids, counters. With --from-log it is a SQL file with the tables
    and the invariant.

    Exit code: 0 every transaction has such a level, and with --prove it is proved; 1 some has none, or with --run the
    server broke the invariant at levels found safe; 2 wrong usage; 3 undecided, with --prove also where some level is a
    candidate only, with --run where the server did not run the statements; 4 APP cannot be read.

    \b
    Examples:
      isocheck infer app.sql --store postgresql
      isocheck infer doctors --prove --out pictures/
      isocheck infer doctors --run mariadb
    """
    from plume_py.base.limits import Limits
    from plume_py.reasoning.infer.program.load import require_dialect

    formats = picture_formats(pictures, folder)
    params["store"] = store = _store(params["store"], server)
    params["limits"] = Limits(params["timeout"])
    with params["limits"].enforced():
        program, programs = _program(app, log, style == "text")
        program = _without(program, exclude)
        require_dialect(program, store)
        result = _infer(program, **params)
        together = _together(result, partners, params)
    extra: dict[str, Any] = {}
    if style == "text":
        from plume_py.reasoning.infer.joint_levels import mixes_serializable
        from plume_py.reasoning.infer.report import joint_levels_text, serializable_text, text

        if programs:
            click.echo(f"{programs}\n")
        click.echo(text(result, examples=not brief))
        if together is not None and (partners or together.raised or mixes_serializable(result)):
            click.echo(joint_levels_text(result, together, not brief))
        if not params["serializability"]:
            serializable = _serializable(app, log, exclude, store, params["limits"])
            for line in serializable_text(result, serializable):
                click.echo(line)
    if folder:
        _draw(result, folder, formats)
    code = _exit_code(result)
    if server:
        extra["run"], ran = _run(result, together, server, every, run_seconds, clients, style == "text")
        code = code if ran == ExitCode.HOLDS or code == ExitCode.VIOLATION else ran
    if together is not None:
        code = _with_partners(code, together)
    if style == "json" and programs:
        extra["programs"] = programs
    if style == "json":
        _print_json(result, together, extra)
    ctx.exit(code)


def _program(app: str, log: str | None, numbered: bool) -> tuple[Any, str]:
    """Return the program, and the text of the transactions found in a log, or ""."""
    from plume_py.reasoning.infer.program.load import load, load_with_log

    if log is None:
        return load(app), ""
    program, found = load_with_log(app, log)
    return program, log_text(found) if numbered else "\n".join(found.listing)


def _without(program: Any, exclude: tuple[str, ...]) -> Any:
    """Return the program without the transactions that --exclude names."""
    known = [txn.name for txn in program.transactions]
    for name in exclude:
        if name not in known:
            raise IsocheckError(
                one_line(f"--exclude: {program.name} has no transaction {name}; {nearest(name, known)}")
            )
    if exclude and {*known} <= {*exclude}:
        raise IsocheckError("--exclude leaves out every transaction; keep one")
    return replace(program, transactions=tuple(txn for txn in program.transactions if txn.name not in exclude))


def _serializable(
    app: str, log: str | None, exclude: tuple[str, ...], store: str, limits: Any
) -> dict[str, str] | None:
    """Return the weakest levels at which SQL programs are serializable, or None if they are not known."""
    from plume_py.reasoning.allocate.driver import answer_allocation, of_sql
    from plume_py.reasoning.infer.program.load import BUILT_IN

    if app in BUILT_IN or app.endswith(".py"):
        return None
    catalogue = store if store in ("postgresql", "mysql") else "mixiso"
    try:
        workload = of_sql(app, log, exclude)
        if any(len(program.params) > MOST_PARAMETERS for program in workload.programs):
            return None
        answer = answer_allocation(workload, catalogue=catalogue, explain=False, limits=limits)
    except IsocheckError:
        return None
    settings = answer.catalogue.levels
    return {name: settings.get(level, level) for name, level in zip(answer.space.groups, answer.levels, strict=True)}


def _store(store: str | None, server: str | None) -> str:
    """Return the store that the user chose, or the one that matches the server of --run."""
    if server is None:
        return store or "postgresql"
    own = {"postgresql": "postgresql", "mariadb": "mysql"}[server]
    if store not in (None, own):
        raise click.UsageError(f"--run {server} has the levels of --store {own}")
    return own


def _print_json(result: "InferenceResult", together: "JointLevels | None", extra: dict[str, Any]) -> None:
    from plume_py.reasoning.infer.report import data, joint_levels_data
    from plume_py.report.json import signed

    document = {**data(result), **extra}
    if together is not None:
        document["together"] = joint_levels_data(result, together)
    click.echo(signed(document, indent=2))


def _together(result: "InferenceResult", partners: bool, params: dict[str, Any]) -> "JointLevels | None":
    """Check all transactions together, each at its own level; return None where that is not possible.

    It needs z3: the explorer and serial orders do not support other transactions at their own levels.
    """
    from plume_py.reasoning.infer.driver import MISSING, has_solver
    from plume_py.reasoning.infer.joint_levels import check_joint_levels, mixes_serializable

    if params["serializability"] and not partners:
        return None
    if not has_solver():
        if partners:
            raise IsocheckError(MISSING)
        # Without this note the levels would look final, but transactions at weak levels interfere more than assumed.
        reason = ": SERIALIZABLE watches only its own kind" if mixes_serializable(result) else ""
        click.echo(f"note: these levels were not checked together, which needs z3{reason}", err=True)
        return None
    return check_joint_levels(result, replace(_options(params), engine="z3"))


def _run(
    result: "InferenceResult",
    together: "JointLevels | None",
    server: str,
    every: bool,
    seconds: float,
    clients: int,
    prints: bool,
) -> tuple[dict[str, Any], ExitCode]:
    """Run the program at the inferred levels and at weaker ones on a real server; return the data and an exit code."""
    from plume_py.reasoning.infer.execution.client import Load
    from plume_py.reasoning.infer.execution.server import SAFE, run_assignments
    from plume_py.reasoning.infer.report import disproved, run_data, run_line, run_summary, schedule_text

    inferred = {txn.name: txn.weakest.level for txn in result.transactions if txn.weakest is not None}
    if len(inferred) < len(result.program.transactions):
        raise IsocheckError("--run needs a level for each transaction, and there is none for some")
    inferred = together.levels if together is not None else inferred

    answers = {txn.name: {v.level.name: v.answer for v in txn.levels} for txn in result.transactions}

    def print_run(outcome: Any, standing: str) -> None:
        if prints:
            click.echo(run_line(outcome, standing))

    version, found = run_assignments(
        result.program, server, inferred, answers, Load(clients, seconds), every, print_run
    )
    if prints:
        click.echo(run_summary(version, found))
        for outcome in disproved(found):
            click.echo("\n".join(schedule_text(result.program, outcome)))
    data = run_data(result.program, version, found)
    if disproved(found):
        return data, ExitCode.VIOLATION
    unclear = any(outcome.has_trouble for outcome, standing in found if standing == SAFE)
    return data, ExitCode.UNDECIDED if unclear else ExitCode.HOLDS


def _infer(program: Any, store: str, names: tuple[str, ...], serializability: bool, **params: Any) -> "InferenceResult":
    from plume_py.reasoning.infer.driver import infer
    from plume_py.reasoning.infer.statement_models import STORES as CATALOGUE

    known = [txn.name for txn in program.transactions]
    for name in names:
        if name not in known:
            raise IsocheckError(f"{program.name} has no transaction {name}; it has {', '.join(known)}")
    if not program.invariant and not serializability:
        raise IsocheckError(f"{program.name} has no invariant; add one, or use --serializability")
    options = _options(params)
    if serializability:
        from plume_py.reasoning.infer.driver import infer_serial

        result: InferenceResult = infer_serial(program, CATALOGUE[store], names, options)
        return result
    return infer(program, CATALOGUE[store], names, options, with_others=True)


def _options(params: dict[str, Any]) -> "InferOptions":
    """Return the options of the search; with --timeout, each question may take all of that time."""
    from plume_py.reasoning.infer.driver import InferOptions

    options = InferOptions(
        params["rows"] or 0, params["steps"], params["engine"], params["prove"], limits=params["limits"]
    )
    return options if params["timeout"] is None else replace(options, seconds=params["timeout"])


def _exit_code(result: "InferenceResult") -> ExitCode:
    from plume_py.reasoning.infer.driver import PROVED, VIOLATED

    if any(all(verdict.answer == VIOLATED for verdict in txn.levels) for txn in result.transactions):
        return ExitCode.VIOLATION
    headlines = [result.headline(txn) for txn in result.transactions]
    if result.proves and any(verdict is None or verdict.answer != PROVED for verdict in headlines):
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS if all(headlines) else ExitCode.UNDECIDED


def _with_partners(alone: ExitCode, together: "JointLevels") -> ExitCode:
    """Return the exit code after the check of all transactions together."""
    from plume_py.reasoning.infer.driver import UNDECIDED

    if any(verdict.examples for verdict in together.verdicts.values()):
        return ExitCode.VIOLATION
    is_open = any(verdict.answer == UNDECIDED for verdict in together.verdicts.values())
    return ExitCode.UNDECIDED if is_open and alone == ExitCode.HOLDS else alone


def _draw(result: "InferenceResult", folder: str, formats: tuple[str, ...]) -> None:
    from plume_py.reasoning.infer.picture import render
    from plume_py.report.graphviz import Album, slug

    album = Album(Path(folder), formats)
    for txn in result.transactions:
        for verdict in txn.levels:
            if verdict.examples:
                album.add(slug(f"{result.program.name}-{txn.name}-{verdict.level.name}"), render(result, txn, verdict))
    tell(album.notes)
    if album.folder.exists():
        tell_written(folder)
