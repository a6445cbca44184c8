"""Predictions on real databases: level by level and program by program, what was predicted, and what came of it.

``python -m benchmarks.confirm [--seeds N] [--minutes M] [--only PROGRAM] [--quick]`` starts a private PostgreSQL and
MariaDB and writes results/confirm.md. Of each seed a serial run of 3 sessions of 4 transactions is observed; from it
one prediction is asked for at each level and with each boundary, as the level is defined, and as each of the databases
runs it. Each is replayed on the store of its level, and tried on the databases at the setting that matches the level.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.tables import progress
from plume_py.base.limits import Limits
from plume_py.base.temp_folder import TempFolder
from plume_py.history.model import History
from plume_py.levels.databases import MYSQL, POSTGRESQL, Database
from plume_py.reasoning.predict import LEVELS
from plume_py.reasoning.predict.confirm.concurrency_control import concurrency_control
from plume_py.reasoning.predict.confirm.database_run import DatabaseAddress, DatabaseRun, prepare
from plume_py.reasoning.predict.prediction_files import about
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, observed_run, program
from plume_py.reasoning.predict.store.replay import replay
from plume_py.report.wording import counted

RESULTS = Path(__file__).parent / "results"
DATABASES: dict[str, Database] = {"postgresql": POSTGRESQL, "mariadb": MYSQL}
VERDICTS = ("confirmed", "diverged", "refused", "undecided")

Counts = dict[tuple[str, str, str], Counter[str]]  # (program, level, as) -> what came of it


def measure(trials: dict[str, DatabaseRun], names: list[str], seed: int, counts: Counts) -> None:
    """Everything about the runs of one seed."""
    for name in names:
        workload = SeededProgram(program(name), seed)
        observed = observed_run(workload)
        for level in LEVELS:
            for boundary in ("strict", "relaxed"):
                progress(f"{name} {seed} {level} {boundary}")
                for engine in ("none", *DATABASES):
                    row = counts.setdefault((name, level, engine), Counter())
                    row.update(outcomes(trials, workload, observed, level, boundary, engine))


def outcomes(
    trials: dict[str, DatabaseRun], workload: SeededProgram, observed: History, level: str, boundary: str, engine: str
) -> Iterator[str]:
    """What is to be counted of one prediction."""
    how = None if engine == "none" else concurrency_control(DATABASES[engine], setting(engine, level))
    outcome = predict(observed, level, boundary=boundary, engine=how)  # type: ignore[arg-type]
    yield "asked"
    if not outcome.predictions:
        return
    prediction = outcome.predictions[0]
    yield "predicted"
    validation = replay(workload, observed, prediction, level)
    yield from (word for word in ("validated", "diverged", "refused") if getattr(validation, word))
    if validation.validated and validation.failures:
        yield "fails"
    told = about(observed, outcome, prediction, validation, workload=workload)
    for database in DATABASES if engine == "none" else (engine,):
        case = prepare(prediction.history, told, workload)
        found = trials[database].confirm(case)
        yield f"{database} {found.verdict}"
        if found.attempt.played.failures:
            yield f"{database} fails"


def setting(engine: str, level: str) -> str:
    """The strongest setting that is no more than the level."""
    found = DATABASES[engine].runs(level)
    assert found is not None
    return found.name.lower()


def page(counts: Counts, versions: list[str], seeds: int, seconds: float) -> str:
    """The tables."""
    lines = [
        "# Predictions on real databases",
        "",
        f"Written by `python -m benchmarks.confirm --seeds {seeds}` on {' and '.join(versions)}, in {seconds:,.0f} s.",
        f"{counted(seeds, 'seed')}, 3 sessions of 4 transactions, both boundaries: {2 * seeds} asked in each row.",
        "Validated: replayed on the store at that level, it breaks SER; fails: an assertion of the program fails then.",
        "Confirmed / diverged / refused: what the database made of it, at the strongest setting that is no more than",
        "the level.",
        "",
        "As the levels are defined:",
        "",
        "| program | level | predicted | validated | diverged | refused by the level | fails "
        "| PostgreSQL: setting | c / d / r | MariaDB: setting | c / d / r |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, level, engine), row in counts.items():
        if engine == "none":
            cells = [row[word] for word in ("predicted", "validated", "diverged", "refused", "fails")]
            both = [cell for database in DATABASES for cell in (setting(database, level), verdicts(row, database))]
            lines.append(f"| {' | '.join(map(str, (name, level, *cells, *both)))} |")
    for database in DATABASES:
        lines += [
            "",
            f"With `--as {database}`:",
            "",
            "| program | level | setting | predicted | validated | c / d / r |",
        ]
        lines.append("|---|---|---|---|---|---|")
        for (name, level, engine), row in counts.items():
            if engine == database:
                cells = [setting(database, level), row["predicted"], row["validated"], verdicts(row, database)]
                lines.append(f"| {' | '.join(map(str, (name, level, *cells)))} |")
    lines += ["", *totals(counts)]
    return "\n".join(lines) + "\n"


def verdicts(row: Counter[str], database: str) -> str:
    """Confirmed, diverged, refused."""
    undecided = row[f"{database} undecided"]
    told = " / ".join(str(row[f"{database} {verdict}"]) for verdict in VERDICTS[:3])
    return told + (f" ({undecided} undecided)" if undecided else "")


def totals(counts: Counts) -> Iterator[str]:
    """Over all rows."""
    yield "In all:"
    yield ""
    for engine in ("none", *DATABASES):
        row = sum((row for (_, _, how), row in counts.items() if how == engine), Counter())
        how = "as defined" if engine == "none" else f"as {engine} runs it"
        where = "; ".join(
            f"{database} {verdicts(row, database)}" for database in (DATABASES if engine == "none" else (engine,))
        )
        yield (
            f"- {how}: {row['asked']} asked, {row['predicted']} predicted, {row['validated']} validated,"
            f" {row['refused']} refused by the level; confirmed / diverged / refused: {where}"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="No more seeds are begun after that.")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="One seed; the page is printed, not kept.")
    args = parser.parse_args()
    begin, seeds = time.monotonic(), 1 if args.quick else args.seeds
    names = [name for name in PROGRAMS if args.only in name]
    with ExitStack() as stack:
        scratch = stack.enter_context(TempFolder())
        adapters = {name: stack.enter_context(DatabaseAddress(name).opened(lists=False)) for name in DATABASES}
        said = {adapter: adapter.version() for adapter in adapters.values()}  # by which it learns its name
        versions = [f"{adapter.name} {version.split()[0]}" for adapter, version in said.items()]
        trials = {name: DatabaseRun(adapter, scratch.path, Limits(), attempts=1) for name, adapter in adapters.items()}
        counts: Counts = {}
        for seed in range(seeds):  # what there is so far is kept after each
            if seed and time.monotonic() - begin > 60 * args.minutes:
                break
            measure(trials, names, seed, counts)
            text = page(counts, versions, seed + 1, time.monotonic() - begin)
            if not (args.quick or args.only):
                (RESULTS / "confirm.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
