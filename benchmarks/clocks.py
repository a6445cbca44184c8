"""Plume's figure 12 in our terms: TCC with vector clocks, with tree clocks, and with neither, over the sessions.

    python -m benchmarks.clocks [--transactions 100000] [--limit 60]

Every check runs in a child of its own; a row's seconds are those of the check alone, its memory that of the process.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import PYTHON, run
from benchmarks.tables import Row, save, show
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from plume_py.history.model import History

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
    _load_kernels(int(max(history.session_start[1:] - history.session_start[:-1])))
    result = check(history, "TCC", clock=way)
    assert result.levels["TCC"].ok
    return dict(result.seconds)


def _load_kernels(longest: int) -> None:
    """Get the compiler out of the way: kernels for sessions of that length."""
    import os

    from plume_py import check
    from plume_py.history.generate import generate

    os.environ["ISOCHECK_COMPILE"] = "always"
    small = generate(sessions=2, transactions=longest, operations=1)
    for clock in ("vector", "tree"):
        check(small, "TCC", clock=clock)


def _search(history: "History") -> dict[str, float]:
    """The edges that TCC forces, with every question about the causal order answered by a search, and their cycles."""
    from time import perf_counter

    import numba
    import numpy as np

    from plume_py.checking.graph.analysis import Analysis
    from plume_py.checking.graph.causal import ExtraEdges, order_of

    analysis = Analysis(history)
    reads, groups, causal = analysis.reads, analysis.groups, analysis.causal
    compiled = numba.njit(error_model="numpy")
    derive = compiled(_edges_by_search(compiled(_reaches)))
    columns = history.op_key, history.txn_session, reads.read_start, reads.read_op, reads.read_source
    by_key = analysis.key_writers[1], groups.key_group, groups.group_start
    derive(0, *columns, *by_key, causal.position)
    start = perf_counter()
    edges = derive(history.transactions, *columns, *by_key, causal.position)
    derived = perf_counter()
    extra = ExtraEdges.of(np.array(edges, np.int32).reshape(-1, 3), history.transactions)
    assert order_of(history, reads, extra).acyclic
    return {"check": perf_counter() - start, "edges": derived - start}


def _reaches(t2, t3, mark, stamp, stack, txn_session, read_start, read_source, position):  # type: ignore[no-untyped-def]
    """Is t2 causally before t3? Backwards from t3, never past t2's place in the order."""
    stack[0] = t3
    depth = 1
    while depth > 0:
        depth -= 1
        t = stack[depth]
        for i in range(read_start[t] - 1, read_start[t + 1]):
            if i >= read_start[t]:
                p = read_source[i]
            else:
                p = t - 1 if t > 0 and txn_session[t - 1] == txn_session[t] else -1
            if p == t2:
                return True
            if p >= 0 and stamp[p] != mark and position[p] > position[t2]:
                stamp[p] = mark
                stack[depth] = p
                depth += 1
    return False


def _edges_by_search(reaches):  # type: ignore[no-untyped-def]
    def derive(  # type: ignore[no-untyped-def]
        last, op_key, txn_session, read_start, read_op, read_source, key_writers, key_group, group_start, position
    ):
        stamp, stack = np.full(len(txn_session), -1, np.int64), np.empty(len(txn_session) + 1, np.int32)
        graph = txn_session, read_start, read_source, position
        mark = 0
        edges = [(np.int32(0), np.int32(0), np.int32(0)) for _ in range(0)]
        for t3 in range(last):
            for r in range(read_start[t3], read_start[t3 + 1]):
                x, t1 = op_key[read_op[r]], read_source[r]
                for g in range(key_group[x], key_group[x + 1]):
                    at = group_start[g + 1] - 1
                    while at >= group_start[g]:
                        mark += 1
                        if reaches(key_writers[at], t3, mark, stamp, stack, *graph):
                            break
                        at -= 1
                    if at < group_start[g] or key_writers[at] == t1 or t1 < 0:
                        continue
                    mark += 1
                    if not reaches(key_writers[at], t1, mark, stamp, stack, *graph):
                        edges.append((key_writers[at], np.int32(t1), np.int32(r)))
        return edges

    import numpy as np

    return derive


if __name__ == "__main__":
    main()
