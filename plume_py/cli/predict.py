"""``isocheck predict``: from one good run, predict runs that violate a level."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, combined, exit_code
from plume_py.base.text import one_line
from plume_py.cli.collect import sigterm_as_interrupt
from plume_py.cli.common_options import (
    LevelName,
    assumed_level,
    bytes_of_memory,
    complete_levels,
    limits_of,
    picture_formats,
    picture_option,
    reading_options,
    seconds,
    tell,
    tell_written,
)
from plume_py.cli.confirm import exit_code_of
from plume_py.levels import DEFAULT, STRONGEST, parse_level
from plume_py.levels.databases import MYSQL, POSTGRESQL
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.predict import LEVELS, TARGETS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from plume_py.base.limits import Limits
    from plume_py.levels.databases import Database
    from plume_py.reasoning.predict.confirm.confirmation import Confirmation
    from plume_py.reasoning.predict.driver import ObservedRun, PredictOptions
    from plume_py.reasoning.predict.prediction_files import About, Origin
    from plume_py.reasoning.predict.predictor.prediction import PredictionResult
    from plume_py.reasoning.predict.store.replay import Validation

# The number of predictions that a sweep replays at each level until one comes true.
REPLAYED = 10

# The values of --as: databases with a known concurrency control.
ENGINE_OF = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}
ENGINES = tuple(ENGINE_OF)

PROGRAMS = ("smallbank", "voter", "tpcc", "wikipedia")


def level_option(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return the name of a level below the target, or "declared"."""
    name = "declared" if value.strip().lower() == "declared" else parse_level(value)
    if name not in (*LEVELS, "declared"):
        raise click.BadParameter(unknown_level(value, (*LEVELS, "declared")))
    return name


def complete_programs(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete the name of a built-in program, or a file."""
    from click.shell_completion import CompletionItem

    names = [name for name in PROGRAMS if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def workload_options(command: Any) -> Any:
    """Add the options for the size and the seed of a run."""
    for option in (
        click.option("--transactions", type=click.IntRange(1, 1000), default=4, show_default=True, help="Per session."),
        click.option("--sessions", type=click.IntRange(1, 100), default=3, show_default=True),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the program's run."),
    ):
        command = option(command)
    return command


@click.command("predict")
@click.argument("history", metavar="[HISTORY]", required=False)
@click.option(
    "--level", "-l", callback=level_option, default=DEFAULT, shell_complete=complete_levels,
    help=f"The level that the predicted run keeps: {' '.join(LEVELS)}, or declared."
    f"  [default: that of the database where HISTORY was recorded, else {DEFAULT}]",
)  # fmt: skip
@click.option("--target", type=LevelName(TARGETS), default=STRONGEST, show_default=True, help="What it breaks.")
@click.option(
    "--as", "database", type=click.Choice((*ENGINES, "none")),
    help="As this database runs the level, or as the level is defined.  [default: as where HISTORY was recorded]",
)  # fmt: skip
@click.option(
    "--boundary", type=click.Choice(["strict", "relaxed"]), default="strict", show_default=True,
    help="What of a transaction with a changed read is kept: up to that read, or all.",
)  # fmt: skip
@click.option(
    "--exact/--fast", default=True, show_default=True,
    help="Miss nothing; or look for what a sufficient condition shows, which takes less where there is nothing.",
)  # fmt: skip
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 1000), help="Different anomalies.")
@click.option("--window", metavar="N", type=click.IntRange(2, 300), help="Of a long history, N transactions at a time.")
@click.option("--sweep", is_flag=True, help="Try every level: at which could this run have gone wrong?")
@click.option("--even-if-broken", is_flag=True, help="Predict although the history breaks the target already.")
@click.option(
    "--program", metavar="APP", shell_complete=complete_programs,
    help=f"Observe a run of {', '.join(PROGRAMS)}, or file.py:Class, and replay predictions.",
)  # fmt: skip
@workload_options
@click.option(
    "--assume",
    metavar="LEVEL",
    callback=assumed_level,
    shell_complete=complete_levels,
    help="For declared: the level of those that carry none.",
)
@click.option("--levels-file", type=click.Path(dir_okay=False), help="For declared: as for check.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), callback=seconds, help="Seconds, then undecided.")
@click.option(
    "--max-memory", metavar="SIZE", callback=bytes_of_memory, help="Such as 4G; undecided if it does not suffice."
)
@click.option("--confirm", metavar="URL", help="Try each prediction on this database, or: postgresql, mariadb, sqlite.")
@click.option("--isolation", metavar="LEVEL", help="For --confirm, as the database calls it.  [default: what fits]")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False), help="Write predictions here, with traces and pictures beside.")
@picture_option
@click.option("--verbose", "-v", is_flag=True, help="Print times and sizes as well.")
@reading_options
@click.pass_context
def command(ctx: click.Context, /, history: str | None, program: str | None, **params: Any) -> None:
    """From the run in HISTORY to one that could have been: it keeps the level, and breaks the target.

    Exit code: 0 none predicted, or none that came true when replayed (--program) or tried (--confirm); 1 predicted (or
    the history breaks the target itself), 2 wrong usage, 3 undecided, 4 the input could not be read.

    \b
    Examples:
      isocheck predict history.json --level TCC
      isocheck predict history.json --sweep            at which levels?
      isocheck predict long.jsonl --window 50          of thousands of transactions
      isocheck predict --program smallbank --out predicted.json
    """
    params["formats"] = picture_formats(params["pictures"], params["out"])
    if (history is None) == (program is None):
        raise click.UsageError("give a HISTORY, or a program with --program")
    if program is not None and params["level"] == "declared":
        raise click.UsageError("the programs declare no levels: choose one")
    if (level := params["target"]) == params["level"]:
        raise click.UsageError(f"what keeps {level} cannot break {level}: choose another --level or --target")
    if (params["assume"] or params["levels_file"]) and params["level"] != "declared":
        raise click.UsageError("--assume and --levels-file are for --level declared")
    if params["window"] is not None and params["even_if_broken"]:
        raise click.UsageError("--window goes along an order that shows the target: not with --even-if-broken")
    if params["isolation"] is not None and params["confirm"] is None:
        raise click.UsageError("--isolation is for --confirm")
    if params["sweep"] and params["confirm"]:
        raise click.UsageError("--sweep prints a table; confirm level by level")
    if params["sweep"] and (params["out"] or params["output"] == "json"):
        raise click.UsageError("--sweep prints a table; ask for files level by level")
    if (
        params["out"] is not None
        and history is not None
        and os.path.realpath(params["out"]) == os.path.realpath(history)
    ):
        raise click.UsageError(f"--out would overwrite the history {history}")
    limits = limits_of(params["timeout"], params["max_memory"])
    with limits.enforced():
        run = _observe(history, program, params, limits)
        level, database = _level_and_database(ctx, run.origin, params)
        if not params["even_if_broken"] and not _satisfies_target(run, params, limits):
            ctx.exit(ExitCode.VIOLATION)
        options = _options(params, database, limits)
    ctx.exit(_sweep(run, options) if params["sweep"] else _predict(run, level, options, params))


def _observe(path: str | None, program: str | None, params: dict[str, Any], limits: "Limits") -> "ObservedRun":
    from plume_py.reasoning.predict.driver import ObservedRun, without_guess

    if path is not None:
        from plume_py.history.load import load
        from plume_py.reasoning.predict.prediction_files import origin

        history = load(path, format=params["input_format"], init_txn=params["init_txn"])
        return ObservedRun(path, without_guess(history, params["target"], limits), origin=origin(path))
    from plume_py.reasoning.predict.store.program import SeededProgram, observed_run
    from plume_py.reasoning.predict.store.program import program as find

    seeded = SeededProgram(find(str(program)), params["seed"], params["sessions"], params["transactions"])
    shape = f"{seeded.sessions}x{seeded.transactions}"
    return ObservedRun(f"{program}, seed {seeded.seed}, {shape}", observed_run(seeded), seeded)


def _level_and_database(
    ctx: click.Context, origin: "Origin | None", params: dict[str, Any]
) -> "tuple[str, Database | None]":
    """Return the level to predict at and the database to follow, by default as the history was recorded."""
    from plume_py.reasoning.predict.driver import level_of_origin

    level: str = params["level"]
    database = ENGINE_OF.get(params["database"])
    if origin is not None and level != "declared":
        if params["database"] is None and origin.engine in ENGINE_OF.values():
            database = origin.engine
        is_default = ctx.get_parameter_source("level") is click.core.ParameterSource.DEFAULT
        if is_default and database is origin.engine:
            level = level_of_origin(origin, params["target"]) or level
    if database is not None and level == "declared":
        raise click.UsageError("--as is for one level; what each transaction declares may be several")
    return level, database


def _satisfies_target(run: "ObservedRun", params: dict[str, Any], limits: "Limits") -> bool:
    """Return whether the observed run satisfies the target; if not, print its violation."""
    from plume_py.base.errors import LimitError
    from plume_py.checking.check import check
    from plume_py.report.json import encode, plain
    from plume_py.report.text import render

    target = params["target"]
    result = check(run.history, target, name=run.name, limits=limits)
    if result.ok is None:
        raise LimitError(f"{run.name}: does the observed history keep {target}? {result.levels[target].reason}")
    if result.ok is False:
        document = {"history": run.name, "observed": plain(result)}
        click.echo(encode(document) if params["output"] == "json" else render(result))
        hint = f"the observed history breaks {target} itself: no need to predict (--even-if-broken does)"
        click.echo(one_line(f"isocheck: {run.name}: {hint}"), err=True)
    return bool(result.ok)


def _options(params: dict[str, Any], database: "Database | None", limits: "Limits") -> "PredictOptions":
    from plume_py.checking.declared import read_level_map
    from plume_py.reasoning.predict.driver import PredictOptions

    return PredictOptions(
        target=params["target"],
        boundary=params["boundary"],
        exact=params["exact"],
        count=params["count"],
        window=params["window"],
        level_map=None if params["levels_file"] is None else read_level_map(params["levels_file"]),
        assume=params["assume"],
        limits=limits,
        database=database,
    )


def _predict(run: "ObservedRun", level: str, options: "PredictOptions", params: dict[str, Any]) -> int:
    from plume_py.reasoning.predict.driver import predictions, records, replays
    from plume_py.reasoning.predict.report import as_data, comes_true, render
    from plume_py.report.json import encode

    outcome = predictions(run, level, options)
    validations = replays(run, outcome)
    about = records(run, outcome, validations)
    if params["out"] is not None and outcome.predictions:
        from plume_py.base.text import counted
        from plume_py.reasoning.predict.prediction_files import write_predictions

        tell(write_predictions(params["out"], run.history, outcome, params["formats"], about))
        tell_written(params["out"], counted(len(outcome.predictions), "prediction"))
    confirmations = _confirm(run, outcome, about, options, params)
    if params["output"] == "json":
        click.echo(encode(as_data(run.name, run.history, outcome, validations, confirmations)))
    else:
        for line in render(run.name, run.history, outcome, validations, confirmations):
            click.echo(line)
        if params["verbose"]:
            click.echo(_figures(outcome))
    if confirmations:
        code = combined(exit_code_of(found) for found in confirmations)
        tell(["predicted, but the database did not do it"] if code == ExitCode.HOLDS else [])
        return code
    if outcome.predictions and not comes_true(outcome, validations):
        more = "" if outcome.complete else "; there may be another one that does: --count 10"
        tell([f"predicted, but it did not come true when the program was replayed{more}"])
        return ExitCode.HOLDS
    return exit_code(outcome.ok, None)


def _confirm(
    run: "ObservedRun",
    outcome: "PredictionResult",
    about: "list[About]",
    options: "PredictOptions",
    params: dict[str, Any],
) -> "list[Confirmation]":
    """Run each prediction on the database that --confirm names."""
    if params["confirm"] is None or not outcome.predictions:
        return []
    from plume_py.base.temp_folder import TempFolder
    from plume_py.reasoning.predict.confirm.database_run import DatabaseAddress, DatabaseRun, prepare

    pairs = zip(outcome.predictions, about, strict=True)
    prepared = [prepare(prediction.history, each, run.program) for prediction, each in pairs]
    with (
        TempFolder() as folder,
        sigterm_as_interrupt(),
        DatabaseAddress(params["confirm"]).opened(prepared[0].script.lists) as adapter,
    ):
        database = DatabaseRun(adapter, folder.path, options.limits, params["isolation"])
        found = [database.confirm(each) for each in prepared]
        for confirmation in found:
            confirmation.attempt.result = replace(confirmation.attempt.result, history=confirmation.database)
    return found


def _figures(outcome: "PredictionResult") -> str:
    times = ", ".join(f"{phase} {taken:.2f} s" for phase, taken in outcome.seconds.items())
    return f"  {times}; " + ", ".join(f"{count:,} {what}" for what, count in outcome.sizes.items())


def _sweep(run: "ObservedRun", options: "PredictOptions") -> int:
    """Predict at every level, and print the weakest levels without a prediction that comes true."""
    from plume_py.reasoning.predict.driver import predictions, replays
    from plume_py.reasoning.predict.report import holds, safe_levels, strategy

    target = options.target
    answers: dict[str, bool | None] = {}
    if run.program is not None:  # if the first prediction does not come true, a later one may
        options = replace(options, count=max(options.count, REPLAYED))
    click.echo(one_line(f"{run.name}: {run.history.transactions:,} transactions observed; target {target}"))
    for level in (each for each in LEVELS if each != target):
        outcome = predictions(run, level, options)
        validations = replays(run, outcome)
        answers[level] = holds(outcome, validations)
        click.echo(f"  {level:<4} {_verdict(outcome, validations)}")
    safe = safe_levels(answers)
    undecided = any(answer is None for answer in answers.values())
    which = f"for this run ({strategy(outcome)})"
    if safe and not undecided:
        what = "a prediction" if run.program is None else "a prediction that comes true"
        click.echo(f"  cheapest level without {what} {which}: {' or '.join(safe)}")
    elif not undecided:
        click.echo(f"  no level below {target} is safe for this run")
    return combined(exit_code(answer, None) for answer in answers.values())


def _verdict(outcome: "PredictionResult", validations: "list[Validation]") -> str:
    """Return the verdict on one level of a sweep."""
    from plume_py.base.text import display
    from plume_py.reasoning.predict.report import comes_true

    if outcome.ok is not False:
        return "none predicted" if outcome.ok else f"undecided: {outcome.reason}"
    true = comes_true(outcome, validations)
    if true:
        return f"could go wrong: {', '.join(dict.fromkeys(display(p.violation.name) for p in true))}"
    more = "there is no other" if outcome.complete else "undecided: there may be more"
    return f"{len(outcome.predictions)} predicted, none comes true; {more}"
