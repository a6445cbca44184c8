"""``isocheck predict``: from one good run to the runs that could have been and go wrong."""

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.exits import ExitCode, combined, exit_code
from plume_py.base.text import one_line
from plume_py.cli.collect import sigterm_as_interrupt
from plume_py.cli.common_options import (
    LevelName,
    assumed_level,
    bytes_of_memory,
    complete_levels,
    picture_formats,
    picture_option,
    reading_options,
    seconds,
    tell,
    tell_written,
)
from plume_py.cli.confirm import Server, Trial, exit_of, make_case
from plume_py.levels import DEFAULT, STRONGEST, parse_level
from plume_py.levels.databases import MYSQL, POSTGRESQL
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.predict import LEVELS, TARGETS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from plume_py.history.model import History
    from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl
    from plume_py.reasoning.predict.confirm.confirmation import Confirmation
    from plume_py.reasoning.predict.prediction_files import About, Origin
    from plume_py.reasoning.predict.predictor.prediction import PredictionResult
    from plume_py.reasoning.predict.store.program import SeededProgram
    from plume_py.reasoning.predict.store.replay import Validation

# Predictions that a sweep replays at each level to find one that comes true.
REPLAYED = 10

# Databases of which it is known how they run statements, by the names that --as takes.
ENGINE_OF = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}
ENGINES = tuple(ENGINE_OF)

PROGRAMS = ("smallbank", "voter", "tpcc", "wikipedia")


def level_option(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """A level below the target, or "declared"."""
    name = "declared" if value.strip().lower() == "declared" else parse_level(value)
    if name not in (*LEVELS, "declared"):
        raise click.BadParameter(unknown_level(value, (*LEVELS, "declared")))
    return name


def complete_programs(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """For the shell: the programs that are there, or a file."""
    from click.shell_completion import CompletionItem

    names = [name for name in PROGRAMS if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def workload_options(command: Any) -> Any:
    """Size and seed of a program's run."""
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
    if params["target"] == params["level"]:
        kept = params["level"]
        raise click.UsageError(f"what keeps {kept} cannot break {kept}: choose another --level or --target")
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
    from plume_py.base.limits import Limits
    from plume_py.base.memory import share_of_machine
    from plume_py.reasoning.predict.prediction_files import origin

    params["limits"] = Limits(params["timeout"], params["max_memory"] or share_of_machine(1))
    with params["limits"].enforced():
        name, observed, workload = _observe(history, program, params)
        params["origin"] = None if history is None else origin(history)
        _as_the_database_does(ctx, params)
        keeps_target = params["even_if_broken"] or _keeps_target(name, observed, params)
    if not keeps_target:
        ctx.exit(ExitCode.VIOLATION)
    answer = _sweep if params["sweep"] else _predict
    ctx.exit(answer(name, observed, workload, params))


def _observe(
    path: str | None, program: str | None, params: dict[str, Any]
) -> "tuple[str, History, SeededProgram | None]":
    if path is not None:
        from plume_py.history.load import load

        return path, _settled(load(path, format=params["input_format"], init_txn=params["init_txn"]), params), None
    from plume_py.reasoning.predict.store.program import SeededProgram, observed_run
    from plume_py.reasoning.predict.store.program import program as find

    workload = SeededProgram(find(str(program)), params["seed"], params["sessions"], params["transactions"])
    shape = f"{workload.sessions}x{workload.transactions}"
    return f"{program}, seed {workload.seed}, {shape}", observed_run(workload), workload


def _settled(history: "History", params: dict[str, Any]) -> "History":
    """Return the history without the guess that a transaction is initial if the target is violated only by it."""
    from plume_py.checking.check import check
    from plume_py.history.init_txn import as_ordinary

    certain = replace(history, init_guessed=False)
    if not history.init_guessed or check(certain, params["target"], max_examples=0, limits=params["limits"]).ok:
        return history
    return as_ordinary(history, declared=True)


def _keeps_target(name: str, observed: "History", params: dict[str, Any]) -> bool:
    """Does the observed run keep the target? If not, that is what there is to show."""
    from plume_py.base.errors import LimitError
    from plume_py.checking.check import check
    from plume_py.report.json import encode, plain
    from plume_py.report.text import render

    target = params["target"]
    result = check(observed, target, name=name, limits=params["limits"])
    if result.ok is None:
        raise LimitError(f"{name}: does the observed history keep {target}? {result.levels[target].reason}")
    if result.ok is False:
        click.echo(
            encode({"history": name, "observed": plain(result)}) if params["output"] == "json" else render(result)
        )
        hint = f"the observed history breaks {target} itself: no need to predict (--even-if-broken does)"
        click.echo(one_line(f"isocheck: {name}: {hint}"), err=True)
    return bool(result.ok)


def _run(observed: "History", level: str, params: dict[str, Any]) -> "PredictionResult":
    from plume_py.checking.declared import read_level_map
    from plume_py.reasoning.predict.predictor.predictor import predict
    from plume_py.reasoning.predict.predictor.windows import predict_in_windows

    with params["limits"].enforced():
        return (predict if params["window"] is None else partial(predict_in_windows, size=params["window"]))(
            observed,
            level,
            target=params["target"],
            boundary=params["boundary"],
            exact=params["exact"],
            count=params["count"],
            limits=params["limits"],
            level_map=None if params["levels_file"] is None else read_level_map(params["levels_file"]),
            assume=params["assume"],
            engine=_engine(level, params),
        )


def _as_the_database_does(ctx: click.Context, params: dict[str, Any]) -> None:
    """A history that says where it was recorded is predicted from as it would be there, unless one says otherwise."""
    recorded: Origin | None = params["origin"]
    if recorded is not None and params["level"] != "declared":
        if params["database"] is None:
            params["database"] = next((name for name in ENGINES if recorded.engine is ENGINE_OF[name]), "none")
        own = recorded.setting
        is_default = ctx.get_parameter_source("level") is click.core.ParameterSource.DEFAULT
        if own is not None and ENGINE_OF.get(params["database"]) is recorded.engine and is_default:
            params["level"] = own.safe_as if own.safe_as in LEVELS and own.safe_as != params["target"] else DEFAULT
    if params["database"] in ENGINES and params["level"] == "declared":
        raise click.UsageError("--as is for one level; what each transaction declares may be several")


def _engine(level: str, params: dict[str, Any]) -> "ConcurrencyControl | None":
    """How the database runs the level, if it is to be done as there."""
    database = ENGINE_OF.get(params["database"])
    if database is None:
        return None
    from plume_py.reasoning.predict.confirm.concurrency_control import concurrency_control

    recorded: Origin | None = params["origin"]
    own = None if recorded is None else recorded.setting
    if recorded is not None and own is not None and recorded.engine is database and own.safe_as == level:
        return concurrency_control(database, own.spelled, recorded.settings)
    setting = database.runs(level)
    assert setting is not None, "every level that is predicted from is at least what the weakest setting keeps"
    return concurrency_control(database, setting.spelled)


def _predict(name: str, observed: "History", workload: "SeededProgram | None", params: dict[str, Any]) -> int:
    from plume_py.reasoning.predict.report import as_data, comes_true, render
    from plume_py.report.json import encode

    outcome = _run(observed, params["level"], params)
    validations = _replay(observed, workload, outcome)
    told = _about(observed, outcome, validations, workload, params)
    if params["out"] is not None and outcome.predictions:
        from plume_py.base.text import counted
        from plume_py.reasoning.predict.prediction_files import write_predictions

        tell(write_predictions(params["out"], observed, outcome, params["formats"], told))
        tell_written(params["out"], counted(len(outcome.predictions), "prediction"))
    confirmations = _confirm(outcome, told, workload, params)
    if params["output"] == "json":
        click.echo(encode(as_data(name, observed, outcome, validations, confirmations)))
    else:
        for line in render(name, observed, outcome, validations, confirmations):
            click.echo(line)
        if params["verbose"]:
            click.echo(_figures(outcome))
    if confirmations:
        code = combined(exit_of(found) for found in confirmations)
        tell(["predicted, but the database did not do it"] if code == ExitCode.HOLDS else [])
        return code
    if outcome.predictions and not comes_true(outcome, validations):
        rest = "" if outcome.complete else "; there may be another one that does: --count 10"
        tell([f"predicted, but it did not come true when the program was replayed{rest}"])
        return ExitCode.HOLDS
    return exit_code(outcome.ok, None)


def _about(
    observed: "History",
    outcome: "PredictionResult",
    validations: "list[Validation]",
    workload: "SeededProgram | None",
    params: dict[str, Any],
) -> "list[About]":
    """What is to be known of each prediction by those who want to see it come true."""
    from plume_py.reasoning.predict.prediction_files import about

    replayed: list[Validation | None] = [*validations] or [None] * len(outcome.predictions)
    return [
        about(observed, outcome, prediction, validation, params["origin"], workload)
        for prediction, validation in zip(outcome.predictions, replayed, strict=True)
    ]


def _confirm(
    outcome: "PredictionResult", told: "list[About]", workload: "SeededProgram | None", params: dict[str, Any]
) -> "list[Confirmation]":
    """Try each prediction on the database that --confirm names."""
    if params["confirm"] is None or not outcome.predictions:
        return []
    from plume_py.base.temp_folder import TempFolder

    cases = [make_case(p.history, about, workload) for p, about in zip(outcome.predictions, told, strict=True)]
    with (
        TempFolder() as scratch,
        sigterm_as_interrupt(),
        Server(params["confirm"]).opened(cases[0].script.lists) as adapter,
    ):
        trial = Trial(adapter, scratch.path, params["limits"], params["isolation"])
        found = [trial.of(case) for case in cases]
        for confirmation in found:
            confirmation.attempt.result = replace(confirmation.attempt.result, history=confirmation.database)
    return found


def _replay(observed: "History", workload: "SeededProgram | None", outcome: "PredictionResult") -> "list[Validation]":
    if workload is None:
        return []
    from plume_py.reasoning.predict.store.replay import replay

    return [replay(workload, observed, p, outcome.level, outcome.target) for p in outcome.predictions]


def _figures(outcome: "PredictionResult") -> str:
    times = ", ".join(f"{phase} {taken:.2f} s" for phase, taken in outcome.seconds.items())
    return f"  {times}; " + ", ".join(f"{count:,} {what}" for what, count in outcome.sizes.items())


def _sweep(name: str, observed: "History", workload: "SeededProgram | None", params: dict[str, Any]) -> int:
    from plume_py.reasoning.predict.report import holds, safe_levels, strategy

    levels = [level for level in LEVELS if level != params["target"]]
    answers: dict[str, bool | None] = {}
    if workload is not None:  # the first one may not come true, and the second one may
        params["count"] = max(params["count"], REPLAYED)
    click.echo(one_line(f"{name}: {observed.transactions:,} transactions observed; target {params['target']}"))
    for level in levels:
        outcome = _run(observed, level, params)
        validations = _replay(observed, workload, outcome)
        answers[level] = holds(outcome, validations)
        click.echo(f"  {level:<4} {_verdict(outcome, validations)}")
    safe = safe_levels(answers)
    undecided = any(answer is None for answer in answers.values())
    which = f"for this run ({strategy(outcome)})"
    if safe and not undecided:
        what = "a prediction" if workload is None else "a prediction that comes true"
        click.echo(f"  cheapest level without {what} {which}: {' or '.join(safe)}")
    elif not undecided:
        click.echo(f"  no level below {params['target']} is safe for this run")
    return combined(exit_code(answer, None) for answer in answers.values())


def _verdict(outcome: "PredictionResult", validations: "list[Validation]") -> str:
    """Of one level, in a sweep."""
    from plume_py.base.text import display
    from plume_py.reasoning.predict.report import comes_true

    if outcome.ok is not False:
        return "none predicted" if outcome.ok else f"undecided: {outcome.reason}"
    true = comes_true(outcome, validations)
    if true:
        return f"could go wrong: {', '.join(dict.fromkeys(display(p.violation.name) for p in true))}"
    rest = "there is no other" if outcome.complete else "undecided: there may be more"
    return f"{len(outcome.predictions)} predicted, none comes true; {rest}"
