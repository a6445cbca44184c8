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
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.exploration import explore
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, observed_run, program
from plume_py.reasoning.predict.store.replay import replay

RESULTS = Path(__file__).parent / "results"
STRATEGIES = {
    "exact-strict": ("strict", True),
    "approximate-strict": ("strict", False),
    "approximate-relaxed": ("relaxed", False),
}
LEVELS = ("TCC", "RC")
SIZES = (4, 8)
# Random runs for each seed; those of TPC-C take long.
RUNS = {"smallbank": 10, "voter": 10, "tpcc": 3, "wikipedia": 10}

# Tables 4 and 5 of the paper: (level, transactions, program) -> for each strategy: predicted of 10, came true,
# diverged, generating s, solving s. A solving time is that of successful predictions, or of unsuccessful ones where
# there are no others.
PUBLISHED = {
    ("TCC", 4, "smallbank"): ((4, 4, 0, 8.8, 13.9), (4, 4, 1, 22.9, 1.0), (10, 9, 1, 22.9, 0.6)),
    ("TCC", 4, "voter"): ((0, 0, 0, 61.7, 64.5), (0, 0, 0, 131.7, 10.4), (0, 0, 0, 132.1, 10.0)),
    ("TCC", 4, "tpcc"): ((9, 9, 0, 220.4, 230.4), (9, 9, 0, 425.8, 35.1), (10, 10, 0, 425.5, 22.7)),
    ("TCC", 4, "wikipedia"): ((0, 0, 0, 13.9, 24.0), (0, 0, 0, 36.3, 1.3), (2, 2, 1, 36.3, 2.5)),
    ("TCC", 8, "smallbank"): ((5, 5, 1, 55.6, 8618.9), (9, 9, 0, 121.0, 332.5), (10, 10, 0, 118.8, 19.3)),
    ("TCC", 8, "voter"): ((0, 0, 0, 235.1, 5708.7), (0, 0, 0, 490.5, 47.2), (0, 0, 0, 496.1, 47.1)),
    ("TCC", 8, "tpcc"): ((3, 3, 0, 1914.6, 30413.1), (8, 8, 0, 3416.1, 1210.3), (10, 10, 2, 3332.3, 186.2)),
    ("TCC", 8, "wikipedia"): ((1, 1, 0, 111.9, 910.2), (1, 1, 0, 263.7, 15.6), (2, 2, 2, 258.3, 20.3)),
    ("RC", 4, "smallbank"): ((10, 10, 0, 10.0, 2.3), (10, 10, 0, 24.3, 0.8), (10, 10, 0, 24.4, 0.6)),
    ("RC", 4, "voter"): ((10, 10, 2, 62.5, 12.9), (10, 10, 7, 133.0, 12.3), (10, 10, 10, 132.7, 12.7)),
    ("RC", 4, "tpcc"): ((10, 10, 0, 359.0, 52.0), (10, 10, 0, 569.2, 27.2), (10, 10, 3, 588.9, 22.8)),
    ("RC", 4, "wikipedia"): ((7, 7, 2, 15.4, 3.9), (7, 7, 1, 38.3, 2.1), (7, 7, 7, 38.1, 1.7)),
    ("RC", 8, "smallbank"): ((10, 9, 1, 60.3, 624.6), (10, 10, 1, 124.5, 19.0), (10, 10, 1, 128.7, 51.7)),
    ("RC", 8, "voter"): ((10, 10, 2, 255.7, 212.0), (10, 10, 6, 491.7, 76.2), (10, 10, 10, 495.2, 75.4)),
    ("RC", 8, "tpcc"): ((10, 10, 2, 2571.0, 898.6), (10, 10, 2, 3981.9, 279.7), (10, 10, 4, 4040.4, 201.0)),
    ("RC", 8, "wikipedia"): ((10, 10, 1, 124.6, 81.4), (10, 10, 1, 272.8, 29.2), (10, 9, 10, 272.9, 16.9)),
}

# Tables 6 and 7: per cent of random runs (MonkeyDB) in which an assertion fails, and that are not serializable; of
# predicted runs; and of runs on MySQL in which an assertion fails.
PUBLISHED_SHARES: dict[tuple[str, int, str], tuple[int, int, int, int | None]] = {
    ("TCC", 4, "smallbank"): (70, 98, 90, None),
    ("TCC", 4, "voter"): (70, 80, 0, None),
    ("TCC", 4, "tpcc"): (98, 100, 100, None),
    ("TCC", 4, "wikipedia"): (0, 11, 20, None),
    ("TCC", 8, "smallbank"): (84, 100, 100, None),
    ("TCC", 8, "voter"): (56, 80, 0, None),
    ("TCC", 8, "tpcc"): (100, 100, 100, None),
    ("TCC", 8, "wikipedia"): (0, 19, 20, None),
    ("RC", 4, "smallbank"): (100, 100, 100, 0),
    ("RC", 4, "voter"): (89, 100, 100, 0),
    ("RC", 4, "tpcc"): (100, 100, 100, 50),
    ("RC", 4, "wikipedia"): (54, 54, 70, 0),
    ("RC", 8, "smallbank"): (100, 100, 100, 0),
    ("RC", 8, "voter"): (95, 100, 100, 0),
    ("RC", 8, "tpcc"): (100, 100, 100, 70),
    ("RC", 8, "wikipedia"): (89, 89, 100, 0),
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
    sizes: Counter[str] = Counter()
    generate, solve, longest = [], [], {"generate": 0.0, "solve": 0.0}
    for seed in range(seeds):
        workload = SeededProgram(program(name), seed, 3, transactions)
        observed = observed_run(workload)
        outcome = predict(observed, level, boundary=boundary, exact=exact)
        counts[{True: "none", False: "predicted", None: "undecided"}[outcome.ok]] += 1
        sizes.update(outcome.sizes)
        generate.append(outcome.cpu_seconds["generate"])
        solve.append(outcome.cpu_seconds["solve"])
        longest = {phase: max(seconds, outcome.seconds[phase]) for phase, seconds in longest.items()}
        for prediction in outcome.predictions:
            validation = replay(workload, observed, prediction, level)
            counts["validated"] += validation.validated
            counts["diverged"] += validation.diverged
            counts["failed"] += validation.validated and bool(validation.failures)
    published = PUBLISHED[level, transactions, name][list(STRATEGIES).index(strategy)]
    return {
        "level": level,
        "size": f"3 x {transactions}",
        "program": name,
        "strategy": strategy,
        **{what: counts[what] for what in ("undecided", "none", "predicted", "validated", "diverged", "failed")},
        "generate": sum(generate) / seeds,
        "most": max(generate),
        "elapsed": longest["generate"],
        "solve": sum(solve) / seeds,
        "most ": max(solve),
        "elapsed ": longest["solve"],
        "variables": round(sizes["variables"] / seeds),
        "clauses": round(sizes["clauses"] / seeds),
        **dict(zip(("published", "true", "div", "gen s", "sol s"), published, strict=True)),
    }


def comparison_row(name: str, transactions: int, level: str, seeds: int, runs: int) -> dict[str, object]:
    """Shares of broken runs, and of runs in which an assertion fails: predicted, one per seed, and random ones.

    The strategies are those of the published comparison: strict at RC, relaxed at TCC.
    """
    counts: Counter[str] = Counter()
    start = time.process_time()
    for seed in range(seeds):
        workload = SeededProgram(program(name), seed, 3, transactions)
        observed = observed_run(workload)
        outcome = predict(observed, level, boundary="strict" if level == "RC" else "relaxed")
        for prediction in outcome.predictions:
            validation = replay(workload, observed, prediction, level)
            counts["validated"] += validation.validated
            counts["failed"] += validation.validated and bool(validation.failures)
    predicting, start = time.process_time() - start, time.process_time()
    explored = explore(program(name), level, runs=runs, transactions=transactions)
    exploring = time.process_time() - start
    fail, unserializable, predicted, mysql = PUBLISHED_SHARES[level, transactions, name]
    return {
        "level": level,
        "size": f"3 x {transactions}",
        "program": name,
        "runs": runs,
        "explore: fail %": 100 * explored.failed / runs,
        "unser %": 100 * explored.broken / runs,
        "per cpu s": explored.broken / exploring,
        "predict: fail %": 100 * counts["failed"] / seeds,
        "unser % ": 100 * counts["validated"] / seeds,
        "per cpu s ": counts["validated"] / predicting,
        "MonkeyDB: fail %": fail,
        "unser %  ": unserializable,
        "IsoPredict: unser %": predicted,
        "MySQL: fail %": mysql,
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
    compared = []
    for level in LEVELS:
        for size in sizes:
            progress(f"{level} 3 x {size}: exploration")
            compared += [comparison_row(name, size, level, seeds, RUNS[name] * seeds) for name in names]
    show("Runs that break SER or fail an assertion: random ones, predicted ones, and what is published", compared)
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
