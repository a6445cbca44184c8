"""Prediction: the four programs, seed by seed, every strategy, and random exploration beside it.

``python -m benchmarks.predict [--quick] [--seeds N]`` measures 3 sessions of 4 and of 8 transactions, and compares with
random exploration; ``--larger SECONDS`` instead tries 3 x 32 and 10 x 20, each within so many seconds. Beside our times
stand those that the authors of IsoPredict report for their own runs of the programs after which ours are made (other
runs, another machine: an order of magnitude, no more).
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from benchmarks.tables import progress, save, show
from plume_py.base.limits import Limits
from plume_py.history.model import READ
from plume_py.predict.predictor.predictor import predict
from plume_py.predict.store.exploration import explore
from plume_py.predict.store.program import PROGRAMS, SeededProgram, observed_run, program
from plume_py.predict.store.replay import replay

RESULTS = Path(__file__).parent / "results"
STRATEGIES = {
    "exact-strict": ("strict", True),
    "approximate-strict": ("strict", False),
    "approximate-relaxed": ("relaxed", False),
}
LEVELS = ("TCC", "RC")
SIZES = (4, 8)

# Published: (level, transactions, program) -> for each strategy: predicted of 10, generating s, solving s.
# A solving time is that of successful predictions, or of unsuccessful ones where there are no others.
PUBLISHED = {
    ("TCC", 4, "smallbank"): ((4, 8.8, 13.9), (4, 22.9, 1.0), (10, 22.9, 0.6)),
    ("TCC", 4, "voter"): ((0, 61.7, 64.5), (0, 131.7, 10.4), (0, 132.1, 10.0)),
    ("TCC", 4, "tpcc"): ((9, 220.4, 230.4), (9, 425.8, 35.1), (10, 425.5, 22.7)),
    ("TCC", 4, "wikipedia"): ((0, 13.9, 24.0), (0, 36.3, 1.3), (2, 36.3, 2.5)),
    ("TCC", 8, "smallbank"): ((5, 55.6, 8618.9), (9, 121.0, 332.5), (10, 118.8, 19.3)),
    ("TCC", 8, "voter"): ((0, 235.1, 5708.7), (0, 490.5, 47.2), (0, 496.1, 47.1)),
    ("TCC", 8, "tpcc"): ((3, 1914.6, 30413.1), (8, 3416.1, 1210.3), (10, 3332.3, 186.2)),
    ("TCC", 8, "wikipedia"): ((1, 111.9, 910.2), (1, 263.7, 15.6), (2, 258.3, 20.3)),
    ("RC", 4, "smallbank"): ((10, 10.0, 2.3), (10, 24.3, 0.8), (10, 24.4, 0.6)),
    ("RC", 4, "voter"): ((10, 62.5, 12.9), (10, 133.0, 12.3), (10, 132.7, 12.7)),
    ("RC", 4, "tpcc"): ((10, 359.0, 52.0), (10, 569.2, 27.2), (10, 588.9, 22.8)),
    ("RC", 4, "wikipedia"): ((7, 15.4, 3.9), (7, 38.3, 2.1), (7, 38.1, 1.7)),
    ("RC", 8, "smallbank"): ((10, 60.3, 624.6), (10, 124.5, 19.0), (10, 128.7, 51.7)),
    ("RC", 8, "voter"): ((10, 255.7, 212.0), (10, 491.7, 76.2), (10, 495.2, 75.4)),
    ("RC", 8, "tpcc"): ((10, 2571.0, 898.6), (10, 3981.9, 279.7), (10, 4040.4, 201.0)),
    ("RC", 8, "wikipedia"): ((10, 124.6, 81.4), (10, 272.8, 29.2), (10, 272.9, 16.9)),
}


def sizes_of(name: str, transactions: int, seeds: int) -> dict[str, object]:
    """Reads, writes and commits of the observed runs, on average."""
    histories = [observed_run(SeededProgram(program(name), seed, 3, transactions)) for seed in range(seeds)]
    reads = sum(int((h.op_kind == READ).sum()) for h in histories)
    writes = sum(int((h.op_kind != READ).sum()) for h in histories)
    only = sum(all(op.kind == "r" for op in t.ops) for h in histories for session in h for t in session)
    return {
        "program": name,
        "size": f"3 x {transactions}",
        "reads": reads / seeds,
        "writes": writes / seeds,
        "committed": sum(h.transactions for h in histories) / seeds,
        "read-only": only / seeds,
    }


def strategy_row(name: str, transactions: int, level: str, strategy: str, seeds: int) -> dict[str, object]:
    """One strategy on all seeds."""
    boundary, exact = STRATEGIES[strategy]
    counts: Counter[str] = Counter()
    generate, solve, longest = [], [], {"generate": 0.0, "solve": 0.0}
    for seed in range(seeds):
        workload = SeededProgram(program(name), seed, 3, transactions)
        observed = observed_run(workload)
        outcome = predict(observed, level, boundary=boundary, exact=exact)
        counts[{True: "none", False: "predicted", None: "undecided"}[outcome.ok]] += 1
        generate.append(outcome.cpu_seconds["generate"])
        solve.append(outcome.cpu_seconds["solve"])
        longest = {phase: max(seconds, outcome.seconds[phase]) for phase, seconds in longest.items()}
        for prediction in outcome.predictions:
            validation = replay(workload, observed, prediction, level)
            counts["validated"] += validation.validated
            counts["diverged"] += validation.diverged
    published = PUBLISHED[level, transactions, name][list(STRATEGIES).index(strategy)]
    return {
        "level": level,
        "size": f"3 x {transactions}",
        "program": name,
        "strategy": strategy,
        **{what: counts[what] for what in ("undecided", "none", "predicted", "validated", "diverged")},
        "generate": sum(generate) / seeds,
        "most": max(generate),
        "elapsed": longest["generate"],
        "solve": sum(solve) / seeds,
        "most ": max(solve),
        "elapsed ": longest["solve"],
        "published": published[0],
        "gen s": published[1],
        "sol s": published[2],
    }


def comparison_row(name: str, transactions: int, level: str, seconds: float) -> dict[str, object]:
    """Anomalies per second: predictions, one per observed run, against random runs."""
    start, seed, found, names = time.perf_counter(), 0, 0, Counter()  # type: ignore[var-annotated]
    while time.perf_counter() - start < seconds:
        history = observed_run(SeededProgram(program(name), seed, 3, transactions))
        outcome = predict(history, level, boundary="relaxed")
        found += bool(outcome.predictions)
        names.update(p.violation.name for p in outcome.predictions)
        seed += 1
    taken = time.perf_counter() - start
    random = explore(program(name), level, runs=1_000_000, transactions=transactions, limits=Limits(seconds))
    return {
        "program": name,
        "size": f"3 x {transactions}",
        "level": level,
        "predict: runs": seed,
        "broken %": 100 * found / seed,
        "per s": found / taken,
        "explore: runs": random.runs,
        "broken % ": 100 * random.broken / max(1, random.runs),
        "per s ": random.per_second,
        "predicted": " ".join(sorted(names)),
        "explored": " ".join(sorted(random.anomalies)),
    }


def larger_row(name: str, shape: tuple[int, int], level: str, strategy: str, seconds: float) -> dict[str, object]:
    """A run that is larger than the published ones."""
    sessions, transactions = shape
    boundary, exact = STRATEGIES[strategy]
    workload = SeededProgram(program(name), 0, sessions, transactions)
    observed = observed_run(workload)
    outcome = predict(observed, level, boundary=boundary, exact=exact, limits=Limits(seconds))
    replayed = [replay(workload, observed, p, level).validated for p in outcome.predictions]
    return {
        "level": level,
        "size": f"{sessions} x {transactions}",
        "program": name,
        "strategy": strategy,
        "answer": {True: "none", False: "predicted", None: "undecided"}[outcome.ok],
        "validated": sum(replayed),
        "generate": outcome.cpu_seconds["generate"],
        "elapsed": outcome.seconds["generate"],
        "solve": outcome.cpu_seconds["solve"],
        "elapsed ": outcome.seconds["solve"],
        "variables": outcome.sizes.get("variables", 0),
        "clauses": outcome.sizes.get("clauses", 0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds, small runs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="only this program")
    parser.add_argument("--seconds", type=float, default=10, help="for each side of the comparison with exploration")
    parser.add_argument("--larger", type=float, metavar="SECONDS", help="3 x 32 and 10 x 20 within this time each")
    parser.add_argument("--results", type=Path, help="the folder for CSV [benchmarks/results]")
    args = parser.parse_args()
    names = [name for name in PROGRAMS if args.only in name]
    if args.larger:
        larger(names, args.larger, args.results)
        return
    seeds, sizes = (2, SIZES[:1]) if args.quick else (args.seeds, SIZES)
    shapes = [sizes_of(name, size, seeds) for size in sizes for name in names]
    show("Observed runs, on average", shapes)
    rows = []
    for level in LEVELS:
        for size in sizes:
            for name in names:
                progress(f"{level} 3 x {size} {name}")
                rows += [strategy_row(name, size, level, strategy, seeds) for strategy in STRATEGIES]
    show(
        f"Predictions of {seeds} runs; CPU seconds, mean and most, and the most that elapsed; then what is published",
        rows,
    )
    seconds = 0.5 if args.quick else args.seconds
    compared = [comparison_row(name, size, level, seconds) for size in sizes for level in LEVELS for name in names]
    show("Predict (approximate-relaxed) against explore: anomalies found per second", compared)
    if args.results or not (args.quick or args.only):
        folder = args.results or RESULTS
        save(folder / "predict-programs.csv", shapes)
        save(folder / "predict.csv", rows)
        save(folder / "predict-explore.csv", compared)


def larger(names: list[str], seconds: float, results: Path | None) -> None:
    rows = []
    for shape in ((3, 32), (10, 20)):
        for level in LEVELS:
            for name in names:
                for strategy in STRATEGIES:
                    progress(f"{level} {shape} {name} {strategy}")
                    rows.append(larger_row(name, shape, level, strategy, seconds))
                    show("Larger runs", rows[-1:])
    show("Larger runs", rows)
    if results:
        save(results / "predict-larger.csv", rows)


if __name__ == "__main__":
    main()
