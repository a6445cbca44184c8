"""Strong levels: what is known, what is left open, and how long each stage takes.

``python -m benchmarks.strong [--quick] [--only TEXT] [HISTORY...]`` measures generated histories, or the given files.
Every history is measured in a process of its own, with kernels from the cache; times are without loading.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import measure
from benchmarks.tables import progress, save, show

RESULTS = Path(__file__).parent / "results"
LEVELS = ("SER", "SI")
PLANTED = ("lost-update", "write-skew", "long-fork")

# name -> sessions, transactions per session, operations, keys, distribution
SHAPES = {
    "10k x 20": (20, 500, 20, 10_000, "uniform"),
    "100k x 10": (20, 5_000, 10, 10_000, "uniform"),
    "1k x 20 zipfian": (20, 50, 20, 10_000, "zipfian"),
    "10k x 10 zipfian": (20, 500, 10, 10_000, "zipfian"),
}
QUICK = {"400 x 10": (8, 50, 10, 100, "uniform"), "400 x 10 zipfian": (8, 50, 10, 100, "zipfian")}


def specs(quick: bool) -> list[str]:
    """What is measured: a shape, and what is planted in it; lists at the end."""
    shapes = QUICK if quick else SHAPES
    plain = [f"{shape}|" for shape in shapes]
    planted = [f"{shape}|{pattern}" for shape in shapes for pattern in PLANTED]
    return [*plain, *planted, "lists 400 x 10|" if quick else "lists 100k x 10|"]


def history_of(spec: str):  # type: ignore[no-untyped-def]
    """Generate or load."""
    from plume_py import load
    from plume_py.history.generate import generate
    from plume_py.history.inject import inject

    name, _, pattern = spec.partition("|")
    if name.startswith("lists"):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(lists(8, 400) if "400" in name else lists(20, 100_000))
            file.flush()
            return load(file.name)
    if name not in SHAPES | QUICK:
        return load(name)
    sessions, transactions, operations, keys, distribution = (SHAPES | QUICK)[name]
    history = generate(
        "SER", sessions=sessions, transactions=transactions, operations=operations, keys=keys, distribution=distribution
    )
    return inject(history, {pattern: 1})[0] if pattern else history


def lists(sessions: int, transactions: int, operations: int = 10, at_once: int = 100, longest: int = 20):  # type: ignore[no-untyped-def]
    """Lines of a serial history of appends and list reads; a key is given up when its list is long."""
    rng = random.Random(0)
    keys = list(range(at_once))
    content: dict[int, list[int]] = {key: [] for key in keys}
    for _ in range(transactions):
        ops: list[list[object]] = []
        for _ in range(operations):
            place = rng.randrange(at_once)
            key = keys[place]
            if rng.random() < 0.5:
                ops.append(["r", key, list(content[key])])
                continue
            content[key].append(len(content[key]) + 1)
            ops.append(["append", key, len(content[key])])
            if len(content[key]) == longest:
                del content[key]
                keys[place] = key = max(keys) + 1
                content[key] = []
        yield json.dumps({"session": rng.randrange(sessions), "ops": ops}) + "\n"


def measure_one(spec: str) -> None:
    """In a process of its own: a row per level, as JSON."""
    from plume_py.checking.graph.analysis import Analysis
    from plume_py.checking.strong.counterexample import explain
    from plume_py.checking.strong.solver.engine import StrongEngine
    from plume_py.checking.weak.decide import WeakLevels

    history = history_of(spec)
    for level in LEVELS:
        start = time.perf_counter()
        analysis = Analysis(history)
        if not WeakLevels(analysis).holds("TCC"):
            print(json.dumps({"level": level, "verdict": "breaks TCC", "seconds": time.perf_counter() - start}))
            continue
        filtered = time.perf_counter() - start
        decision = StrongEngine(analysis, level).decide()
        begin = time.perf_counter()
        violations = explain(analysis, decision, level)
        done = time.perf_counter()
        stats = decision.stats
        verdict = {True: "holds", None: "undecided"}.get(decision.ok) or ", ".join(v.violation.tap for v in violations)
        print(json.dumps({
            "level": level, "transactions": history.transactions, "verdict": verdict,
            "pairs": int(stats["pairs"]), "open": None if stats["open_pairs"] < 0 else int(stats["open_pairs"]),
            "choices": int(stats.get("choices", 0)), "component": int(stats.get("component", 0)),
            "rounds": int(stats["rounds"]), "TCC s": filtered, "infer s": stats["seconds_infer"],
            "search s": stats.get("seconds_search", 0.0), "core s": stats.get("seconds_core", 0.0),
            "explain s": done - begin, "seconds": done - start,
        }))  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strong", description=__doc__)
    parser.add_argument("histories", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--results", type=Path, help="the folder for CSV [benchmarks/results]")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        measure_one(args.one)
        return
    rows = []
    measure.run(child(specs(True)[0]))  # fetches the kernels, or compiles them
    for spec in [f"{path}|" for path in args.histories] or specs(args.quick):
        if args.only in spec:
            progress(spec)
            done = measure.run(child(spec))
            named = {"history": Path(spec.partition("|")[0]).name if args.histories else spec.strip("|")}
            rows += [
                {**named, **COLUMNS, **json.loads(line), "MB": int(done.megabytes)} for line in done.output.splitlines()
            ]
    if rows:
        show(
            "Strong levels; pairs of writers in all and left open, choices that the search made, seconds by stage", rows
        )
        if args.results or not (args.quick or args.histories or args.only):
            save((args.results or RESULTS) / "strong.csv", rows)


COLUMNS = dict.fromkeys((
    "level", "transactions", "verdict", "pairs", "open", "choices", "component", "rounds",
    "TCC s", "infer s", "search s", "core s", "explain s", "seconds",
))  # fmt: skip


def child(spec: str) -> list[str]:
    """The command that measures one history."""
    return [sys.executable, "-m", "benchmarks.strong", "--one", spec]


if __name__ == "__main__":
    main()
