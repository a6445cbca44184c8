"""Loading and starting, this tree beside another checkout (``OLD=folder``), in turns.

``python -m benchmarks.before_after [--quick]``. Writes ``results/load-before.csv`` and ``results/start-before.csv``.
"""

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import workloads as w
from benchmarks.against import HERE, STRONG, Tree
from benchmarks.measure import PYTHON, Run, run
from benchmarks.tables import Row, progress, save, show

# Loads once to warm the kernels, then with the clock running: wall seconds, and those of both cores.
LOAD = """
import json, sys, time
from plume_py import load
load(sys.argv[1])
times = []
for _ in range(3):
    start, cpu = time.perf_counter(), time.process_time()
    load(sys.argv[1])
    times.append((time.perf_counter() - start, time.process_time() - cpu))
print(json.dumps(times))
"""
NUMPY = [PYTHON, "-c", "import numpy, click"]
COLD = {"100,000 operations, TCC": (w.SMALL, "TCC"), "2 M operations, TCC": (w.UNIFORM, "TCC"),
        "200,000 operations, SI": (STRONG, "SI")}  # fmt: skip


def trees(folder: Path) -> dict[str, Tree]:
    """This one and, where given, the other."""
    found = {"after": Tree(HERE, folder / "after")}
    if old := os.environ.get("OLD"):
        found["before"] = Tree(Path(old), folder / "before")
    return found


def load(both: dict[str, Tree], quick: bool) -> list[Row]:
    """One row per format."""
    workload, rounds = (w.QUICK, 1) if quick else (w.UNIFORM, 5)
    rows: list[Row] = []
    for format in w.EXTENSIONS:
        progress(f"load {format}")
        path = workload.file("SER", format)
        found: dict[str, list[tuple[list, Run]]] = {who: [] for who in both}
        for _ in range(rounds):
            for who, tree in both.items():
                env = {"PYTHONPATH": str(tree.folder), "NUMBA_CACHE_DIR": str(tree.cache), "ISOCHECK_COMPILE": "always"}
                one = run([PYTHON, "-P", "-c", LOAD, str(path)], env)
                found[who].append((json.loads(one.output), one))
        size = path.stat().st_size / 1e6
        row: dict = {"format": format, "file MB": size}
        for who, runs in found.items():
            wall = median(seconds for times, _ in runs for seconds, _ in times)
            cpu = median(seconds for times, _ in runs for _, seconds in times)
            row |= {f"{who} MB/s": size / wall, f"{who} MB/cpu s": size / cpu}
            row[f"{who} peak MB"] = round(median(one.megabytes for _, one in runs))
        rows.append(row)
    return rows


def start(both: dict[str, Tree], quick: bool) -> list[Row]:
    """Warm: beside Python's own start with the same imports. Cold: with an empty cache of kernels."""
    rounds = 1 if quick else 15
    words = [str((w.QUICK if quick else w.SMALL).file("SER")), "--level", "TCC"]
    for tree in both.values():
        tree.run(words, ISOCHECK_COMPILE="always")
    commands = {"python": lambda: run(NUMPY)} | {who: lambda tree=tree: tree.run(words) for who, tree in both.items()}
    rows = [_start("warm, 100,000 operations, TCC", commands, rounds)]
    for name, (workload, level) in COLD.items():
        progress(f"cold, {name}")
        path = str((w.QUICK if quick else workload).file("SER"))
        cold = {who: lambda tree=tree, path=path, level=level: _cold(tree, path, level) for who, tree in both.items()}
        rows.append(_start(f"cold, {name}", cold, 1 if quick else 3))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]


def _cold(tree: Tree, path: str, level: str) -> Run:
    cache = Path(tempfile.mkdtemp(prefix="isocheck-cold-"))
    try:
        return tree.run([path, "--level", level], cache=cache, XDG_CACHE_HOME=str(cache))
    finally:
        shutil.rmtree(cache)


def _start(name: str, commands: dict, rounds: int) -> Row:
    found: dict[str, list[Run]] = {who: [] for who in commands}
    for _ in range(rounds):
        for who, command in commands.items():
            found[who].append(command())
    row: dict = {"what": name}
    for who, runs in found.items():
        row[f"{who} s"] = median(one.seconds for one in runs)
        row[f"{who} cpu s"] = median(one.cpu for one in runs)
        row[f"{who} MB"] = round(median(one.megabytes for one in runs))
    return row


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before_after", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small files, one run; writes nothing")
    args = parser.parse_args()
    results = HERE / "benchmarks" / "results"
    with tempfile.TemporaryDirectory(prefix="isocheck-before-") as name:
        both = trees(Path(name))
        for part, measure in (("load", load), ("start", start)):
            rows = measure(both, args.quick)
            show(f"{part}: before and after (medians, in turns)", rows)
            if not args.quick:
                save(results / f"{part}-before.csv", rows)


if __name__ == "__main__":
    main()
