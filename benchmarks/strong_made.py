"""Strong levels, holding and broken: histories made at one level and judged at another, from small to large.

``python -m benchmarks.strong_made [--quick] [--only TEXT] [--runs N]``. CPU seconds of ``isocheck`` as a whole, start
and loading included, with kernels from the cache; the commands of one size take turns. "shown" are the transactions of
the first counterexample. "growth" is the exponent from the last size but one to the last: 1 is linear. "worst" is the
largest ratio to the history of the same size that was made at SER and holds, at the same level.
"""

import argparse
import json
import math
from pathlib import Path

from benchmarks import workloads as w
from benchmarks.measure import ISOCHECK, Runs, in_turns, run
from benchmarks.tables import Row, progress, save, show

RESULTS = Path(__file__).parent / "results"
MADE = ("SER", "SI", "PSI", "TCC")
LEVELS = ("SI", "SER")
DISTRIBUTIONS = ("uniform", "zipfian")
SIZES, QUICK_SIZES = (1_000, 5_000, 20_000, 100_000), (200, 400)
LIMIT = 120  # seconds for one run

Case = tuple[str, str, str]  # distribution, made at, judged at


def workload(size: int, distribution: str) -> w.Workload:
    """10 operations per transaction on 10,000 keys."""
    return w.Workload(f"{size:,} {distribution}", 20, size, 10, 10_000, distribution)


def command(size: int, case: Case) -> list[str]:
    """What is measured."""
    distribution, made, level = case
    path = workload(size, distribution).file(made)
    return [ISOCHECK, "check", str(path), "--level", level, "--timeout", str(LIMIT), "--format", "jsonl"]


def measure(sizes: tuple[int, ...], runs: int, only: str = "") -> list[Row]:
    """One row per case whose name has ``only`` in it."""
    cases = [(distribution, made, level) for distribution in DISTRIBUTIONS for level in LEVELS for made in MADE]
    cases = [case for case in cases if only in name(case)]
    found: dict[int, list[Runs]] = {}
    for size in sizes:
        commands = [command(size, case) for case in cases]
        for each in commands:
            run(each, expect=(0, 1, 3))  # fetches the kernels, or compiles them
        progress(f"{size:,} transactions")
        found[size] = in_turns(commands, runs, expect=(0, 1, 3))
    columns = [[found[size][i] for size in sizes] for i in range(len(cases))]
    holding = {case[::2]: column for case, column in zip(cases, columns, strict=True) if case[1] == MADE[0]}
    return [row(case, sizes, column, holding.get(case[::2])) for case, column in zip(cases, columns, strict=True)]


def name(case: Case) -> str:
    """For ``--only``."""
    distribution, made, level = case
    return f"{distribution}, made at {made}, judged at {level}"


def row(case: Case, sizes: tuple[int, ...], column: list[Runs], holding: list[Runs] | None) -> Row:
    """What is printed of one case."""
    distribution, made, level = case
    answer = json.loads(column[-1].typical.output)
    violations = answer["violations"]
    verdict = {True: "holds", False: "broken", None: "undecided"}[answer["levels"][level]["ok"]]
    *_, before, last = column if len(column) > 1 else column * 2
    steps = math.log(sizes[-1] / sizes[-2]) if len(sizes) > 1 else 1.0
    ratios = [mine.cpu / theirs.cpu for mine, theirs in zip(column, holding, strict=True)] if holding else []
    return {
        "keys": distribution, "made": made, "judged": level, "verdict": verdict,
        "shown": len(violations[0]["transactions"]) if violations else None,
        **{f"{size:,}": runs.cpu for size, runs in zip(sizes, column, strict=True)},
        "growth": math.log(last.cpu / before.cpu) / steps,
        "worst": max(ratios, default=None),
        "MB": round(last.megabytes),
    }  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strong_made", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and one run: does it work at all?")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the cases with this in their names")
    parser.add_argument("--runs", type=int, default=3, help="how often each is measured; medians are shown")
    parser.add_argument("--results", type=Path, help="the folder for CSV [benchmarks/results]")
    args = parser.parse_args()
    rows = measure(*((QUICK_SIZES, 1) if args.quick else (SIZES, args.runs)), args.only)
    if not rows:
        parser.error(f"no case has {args.only!r} in its name")
    show("Made at one level, judged at another: CPU seconds by transactions", rows)
    if args.results or not (args.quick or args.only):
        save((args.results or RESULTS) / "strong-made.csv", rows)


if __name__ == "__main__":
    main()
