"""This tree beside the fastest compiled peer and an older checkout, in turns: ``python -m benchmarks.peers``.

``AWDIT=path/to/awdit`` is its program, built from its source by cargo; ``OLD=folder`` another checkout of isocheck. Who
is not given is left out. ``PLUME=path/to/Plume.jar`` likewise. Writes ``benchmarks/results/peers.csv``.
"""

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks import workloads as w
from benchmarks.against import HERE, Tree
from benchmarks.measure import Run, Runs, run
from benchmarks.tables import Row, progress, save, show

LEVELS = {"TCC": "causal", "RA": "read-atomic", "RC": "read-committed"}
MIDDLE = w.Workload("20,000 x 20, 100 sessions", 100, 20_000, 20, 10_000)
# Beyond this AWDIT needs more memory at TCC than most machines have (9.7 GB for 10 M operations).
PEER_AT_TCC = 2_000_000
PLUME_UP_TO = 100_000  # at four times as many it takes half a minute; it is run once per row
OTHERS_UP_TO = 10_000_000  # beyond, only this tree is run
PLAN = {w.SMALL: 5, MIDDLE: 5, w.UNIFORM: 3, w.ZIPFIAN: 3, w.LARGE: 1, w.HUGE: 1}
QUICK_PLAN = {w.QUICK: 1}


def measure(plan: dict[w.Workload, int]) -> list[Row]:
    """One row per workload and level."""
    awdit, plume, old = (os.environ.get(name) for name in ("AWDIT", "PLUME", "OLD"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="isocheck-peers-") as name:
        trees = {"isocheck": Tree(HERE, Path(name, "ours"))}
        if old:
            trees["before"] = Tree(Path(old), Path(name, "old"))
        for workload, rounds in plan.items():
            path = str(workload.file("TCC"))
            for level, theirs in LEVELS.items():
                progress(f"{workload.name}, {level}")
                few = workload.total <= OTHERS_UP_TO
                commands = {who: _ours(tree, path, level) for who, tree in trees.items() if few or who == "isocheck"}
                if awdit and workload.total <= (PEER_AT_TCC if level == "TCC" else OTHERS_UP_TO):
                    commands["AWDIT"] = lambda theirs=theirs, path=path: run([awdit, "check", "-i", theirs, path])
                if plume and workload.total <= PLUME_UP_TO:
                    java = ["java", "-Xmx10g", "-jar", plume, "-t", "PLUME", "-i", level, path]
                    commands["Plume"] = lambda java=java: run(java)
                rows.append(_row(workload.name, level, commands, rounds))
    return rows


def _ours(tree: Tree, path: str, level: str):
    small = str(w.QUICK.file("TCC"))
    tree.run([small, "--level", level], ISOCHECK_COMPILE="always")  # fills the cache
    return lambda: tree.run([path, "--level", level])


def _row(name: str, level: str, commands: dict, rounds: int) -> Row:
    found: dict[str, list[Run]] = {who: [] for who in commands}
    for turn in range(rounds):
        for who, command in commands.items():
            if turn == 0 or who != "Plume":
                found[who].append(command())
    row: dict[str, str | float] = {"history": name, "level": level, "runs": rounds}
    for who, runs in ((who, Runs(tuple(found[who]))) for who in commands):
        row |= {f"{who} s": runs.seconds, f"{who} cpu s": runs.cpu, f"{who} MB": round(runs.megabytes)}
    return row


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one small history; writes nothing")
    args = parser.parse_args()
    plan = QUICK_PLAN if args.quick else PLAN
    rows = measure(plan)
    names = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name) for name in names} for row in rows]
    show("isocheck and others (medians, in turns)", rows)
    if not args.quick:
        save(HERE / "benchmarks" / "results" / "peers.csv", rows)


if __name__ == "__main__":
    main()
