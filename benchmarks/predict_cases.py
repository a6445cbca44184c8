"""Prediction, question by question: what comes true at each level, what "none" costs, long histories, brute force.

``python -m benchmarks.predict_cases levels|none|windows|brute`` measures one of them, and writes its rows into the CSV
of that name, in place of those with the same ``--label``. To compare with another version of isocheck, run this file
from a tree that has it, with ``--label before --results`` of this one.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from benchmarks.tables import Row, progress, read, save, show
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.json_writer import write_json
from plume_py.history.model import History
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, observed_run, program
from plume_py.reasoning.predict.store.replay import replay

ROOT = Path(__file__).resolve().parent.parent
LEVELS = ("RC", "RA", "TCC", "PC", "PSI", "SI")
BOUNDARIES = ("strict", "relaxed")
EVERY_QUESTION = [
    (boundary, level, target)
    for boundary in BOUNDARIES
    for target, levels in (("SER", LEVELS), ("SI", LEVELS[:4]))
    for level in levels
]

# Per question: its options, and how its history is made.
NONE = {
    "SQLite, 60 transactions, SI relaxed": ("sqlite", ("--level", "SI", "--boundary", "relaxed")),
    "Voter 3 x 32, TCC": ("voter", ("--level", "TCC")),
    "SmallBank 3 x 8, SI": ("smallbank", ("--level", "SI")),
    "Wikipedia 3 x 8, TCC": ("wikipedia", ("--level", "TCC")),
}


# What comes true


def level_rows(label: str, seeds: int, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Of one prediction for each seed and number of transactions per session: how many came true."""
    for boundary, level, name in product(BOUNDARIES, LEVELS, PROGRAMS):
        progress(f"{boundary} {level} {name}")
        counts: Counter[str] = Counter()
        start = time.process_time()
        for seed, size in product(range(seeds), sizes):
            workload = SeededProgram(program(name), seed, 3, size)
            observed = observed_run(workload)
            outcome = predict(observed, level, boundary=boundary)
            counts[{True: "none", False: "predicted", None: "undecided"}[outcome.ok]] += 1
            for prediction in outcome.predictions:
                validation = replay(workload, observed, prediction, level)
                counts["validated"] += validation.validated
                counts["diverged"] += validation.diverged
                counts["refused"] += getattr(validation, "refused", False) and not validation.validated
                counts["failed"] += validation.validated and bool(getattr(validation, "failures", ()))
        names = ("undecided", "none", "predicted", "validated", "diverged", "refused", "failed")
        yield {
            "label": label,
            "boundary": boundary,
            "level": level,
            "program": name,
            "size": " and ".join(f"3 x {size}" for size in sizes),
            "seeds": seeds,
            **{what: counts[what] for what in names},
            "cpu s": time.process_time() - start,
        }


# What "none" costs


def none_rows(label: str, seconds: float, options: tuple[str, ...]) -> Iterator[Row]:
    """The whole process: CPU seconds and memory."""
    with tempfile.TemporaryDirectory() as folder:
        for case, (source, question) in NONE.items():
            progress(case)
            path = _history(Path(folder), source)
            answer, cpu, elapsed, memory = measured(["predict", str(path), *question, *options], seconds)
            yield {"label": label, "case": case, "answer": answer, "cpu s": cpu, "elapsed s": elapsed, "MB": memory}


def _history(folder: Path, source: str) -> Path:
    path = folder / f"{source}.jsonl"
    if path.exists():
        return path
    if source == "sqlite":
        shutil.copy(ROOT / "benchmarks" / "sqlite-60.jsonl", path)
    else:
        size = 32 if source == "voter" else 8
        _write(path, observed_run(SeededProgram(program(source), 0, 3, size)))
    return path


def _write(path: Path, history: History) -> None:
    path.write_bytes(b"".join(write_json(history).chunks))


ISOCHECK = (sys.executable, "-c", "from plume_py.cli.main import cli; cli()")
ANSWERS = {0: "none", 1: "predicted", 3: "undecided"}


def measured(arguments: list[str], seconds: float) -> tuple[str, float, float, float]:
    """What isocheck answers, CPU seconds, seconds, and megabytes; it is ended after so many CPU seconds."""
    start = time.monotonic()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))

    command, nowhere = [*ISOCHECK, *arguments], subprocess.DEVNULL
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=environment, preexec_fn=limited) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    ended = "ended" if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else f"exit {process.returncode}"
    return ANSWERS.get(process.returncode, ended), cpu, elapsed, usage.ru_maxrss / 1024


# Long histories


def window_rows(label: str, seconds: float, sizes: tuple[int, ...], window: int) -> Iterator[Row]:
    """Time against size: where something is found soon, and where all windows have to be gone through."""
    with tempfile.TemporaryDirectory() as folder:
        for name, level in (("smallbank", "TCC"), ("smallbank", "SI"), ("voter", "TCC"), ("counters", "SI")):
            for size in sizes:
                progress(f"{name} {level} {size}")
                path = Path(folder) / f"{name}-{size}.json"
                if not path.exists():
                    _write(path, counters(size) if name == "counters" else _observed(name, size))
                question = ["predict", str(path), "--level", level, "--window", str(window)]
                answer, cpu, _, _ = measured(question, seconds)  # its memory is at least that of this process
                yield {
                    "label": label,
                    "program": name,
                    "level": level,
                    "transactions": size,
                    "window": window,
                    "answer": answer,
                    "cpu s": cpu,
                }


def _observed(name: str, size: int) -> History:
    return observed_run(SeededProgram(program(name), 0, 10, size // 10))


def counters(size: int) -> History:
    """Ten counters, of which each transaction increments one; at SI nothing can go wrong with that."""
    rng, builder = random.Random(size), HistoryBuilder(0)
    value: Counter[int] = Counter()
    for _ in range(size):
        session, key = rng.randrange(10), rng.randrange(10)
        builder.add(session, [("r", key, value[key]), ("w", key, value[key] + 1)])
        value[key] += 1
    return builder.build(init_txn="none")


# Brute force


def brute_rows(label: str, histories: int, seed: int, questions: int) -> Iterator[Row]:
    """Against trying every boundary and every choice: of each history ``questions`` by lot."""
    sys.path.insert(0, str(ROOT / "tests" / "oracles"))
    import predict_oracle

    counts: Counter[tuple[tuple[str, str, str], str]] = Counter()
    shapes = (
        {},
        {"txns": (3, 5), "keys": (1, 3)},
        {"ops": (2, 4), "keys": (2, 3), "txns": (2, 4), "again": True},
        {"txns": (3, 5)},
    )
    rng = random.Random(f"campaign {seed}")
    for number in range(histories):
        if number % 100 == 0:
            progress(f"{number} histories, {sum(n for key, n in counts.items() if key[1] == 'wrong')} wrong")
        sessions = predict_oracle.random_observed(rng, **shapes[number % 4])
        if number % 4 == 3:
            sessions = [[("unknown" if rng.random() < 0.25 else status, ops) for status, ops in s] for s in sessions]
        _compare(sessions, rng.sample(EVERY_QUESTION, questions), predict_oracle.predictable, counts)
    for question in EVERY_QUESTION:
        boundary, level, target = question
        found = {what: counts[question, what] for what in ("compared", "predicted", "wrong")}
        yield {"label": label, "seed": seed, "boundary": boundary, "level": level, "target": target, **found}


def _compare(
    sessions: list[list[tuple[str, list[tuple[str, str, int]]]]],
    questions: list[tuple[str, str, str]],
    predictable: Callable[..., bool],
    counts: Counter[tuple[tuple[str, str, str], str]],
) -> None:
    builder = HistoryBuilder(0)
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            builder.add(s, ops, status=status)
    history = builder.build(init_txn="none")
    for question in questions:
        boundary, level, target = question
        expected = predictable(sessions, level, boundary == "strict", target)
        found = predict(history, level, target=target, boundary=boundary).ok  # type: ignore[arg-type]
        counts[question, "compared"] += 1
        counts[question, "predicted"] += expected
        counts[question, "wrong"] += found is not (not expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("levels", "none", "windows", "brute"))
    parser.add_argument("--label", default="after", help="what these rows are called")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600, help="CPU seconds for each question")
    parser.add_argument("--options", default="", help="more options of predict, for none")
    parser.add_argument("--sizes", help="of levels: transactions per session [4,8]; of windows: in all [10 to 10000]")
    parser.add_argument("--window", type=int, default=20)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of brute")
    parser.add_argument("--questions", type=int, default=20, help="of brute, for each history")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    args = parser.parse_args()
    rows: list[Row] = []
    default = "4,8" if args.what == "levels" else "10,100,1000,10000"
    sizes = tuple(map(int, (args.sizes or default).split(",")))
    made = {
        "levels": lambda: level_rows(args.label, args.seeds, sizes),
        "none": lambda: none_rows(args.label, args.seconds, tuple(args.options.split())),
        "windows": lambda: window_rows(args.label, args.seconds, sizes, args.window),
        "brute": lambda: brute_rows(args.label, args.histories, args.seed, args.questions),
    }[args.what]()
    for row in made:
        rows.append(row)
        print(json.dumps(row), flush=True)
    show(args.what, rows)
    path = args.results / f"predict-{args.what}.csv"
    kept = [row for row in read(path) if row["label"] != args.label or row.get("seed") not in (None, str(args.seed))]
    save(path, [*kept, *rows])


if __name__ == "__main__":
    main()
