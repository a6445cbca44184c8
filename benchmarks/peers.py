"""This tree beside the fastest compiled peer and an older checkout, in turns: ``python -m benchmarks.peers``.

``AWDIT=path/to/awdit`` is its program, built from its source by cargo; ``OLD=folder`` another checkout of isocheck. Who
is not given is left out. Writes ``benchmarks/results/peers.csv`` and ``docs/performance.md``.
"""

import argparse
import os
import platform
import tempfile
from pathlib import Path

from benchmarks import workloads as w
from benchmarks.against import HERE, Tree
from benchmarks.measure import Run, Runs, run
from benchmarks.tables import Row, progress, save, show, spell

LEVELS = {"TCC": "causal", "RA": "read-atomic", "RC": "read-committed"}
MIDDLE = w.Workload("20,000 x 20, 100 sessions", 100, 20_000, 20, 10_000)
# Beyond this AWDIT needs more memory at TCC than most machines have (9.7 GB for 10 M operations).
PEER_AT_TCC = 2_000_000
PLAN = {w.SMALL: 5, MIDDLE: 5, w.UNIFORM: 5, w.ZIPFIAN: 5, w.LARGE: 3, w.HUGE: 1}
QUICK_PLAN = {w.QUICK: 1}


def measure(plan: dict[w.Workload, int]) -> list[Row]:
    """One row per workload and level."""
    awdit, old = os.environ.get("AWDIT"), os.environ.get("OLD")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="isocheck-peers-") as name:
        trees = {"isocheck": Tree(HERE, Path(name, "ours"))}
        if old:
            trees["before"] = Tree(Path(old), Path(name, "old"))
        for workload, rounds in plan.items():
            path = str(workload.file("TCC"))
            for level, theirs in LEVELS.items():
                progress(f"{workload.name}, {level}")
                commands = {who: _ours(tree, path, level) for who, tree in trees.items()}
                if awdit and (level != "TCC" or workload.total <= PEER_AT_TCC):
                    commands["AWDIT"] = lambda theirs=theirs, path=path: run([awdit, "check", "-i", theirs, path])
                rows.append(_row(workload.name, level, commands, rounds))
    return rows


def _ours(tree: Tree, path: str, level: str):
    tree.run([path, "--level", level], ISOCHECK_COMPILE="always")  # fills the cache
    return lambda: tree.run([path, "--level", level])


def _row(name: str, level: str, commands: dict, rounds: int) -> Row:
    found: dict[str, list[Run]] = {who: [] for who in commands}
    for _ in range(rounds):
        for who, command in commands.items():
            found[who].append(command())
    row: dict[str, str | float] = {"history": name, "level": level}
    for who, runs in ((who, Runs(tuple(found[who]))) for who in commands):
        row |= {f"{who} s": runs.seconds, f"{who} cpu s": runs.cpu, f"{who} MB": round(runs.megabytes)}
    return row


PAGE = """# Performance

Written by `make bench-peers`, which runs all of them in turns on one machine and takes medians
(runs of each: {rounds}).
Whole commands, from the start of the process to the verdict; a text file in Plume's format that keeps TCC, kernels
compiled before. "CPU" counts both cores. Machine: {machine}; load average at the end {load}.
Where the wall clock and the CPU seconds differ much, others were at work on the machine.

{table}

Where a cell is empty, it was not run: beyond {limit:,} operations AWDIT needs many gigabytes at TCC. To repeat it:

```sh
make bench-peers AWDIT=path/to/awdit OLD=path/to/another/checkout
```
"""


def page(rows: list[Row], plan: dict[w.Workload, int]) -> str:
    """The table for people."""
    who = list(dict.fromkeys(name.removesuffix(" cpu s") for row in rows for name in row if name.endswith(" cpu s")))
    head = ["history", "level", *(f"{each}: s / CPU s / MB" for each in who)]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [
            " / ".join(spell(row[f"{each} {unit}"]) for unit in ("s", "cpu s", "MB"))
            if row[f"{each} s"] is not None
            else ""
            for each in who
        ]
        lines.append([str(row["history"]), str(row["level"]), *cells])
    return PAGE.format(
        rounds=", ".join(f"{workload.name}: {n}" for workload, n in plan.items()),
        machine=f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}",
        load=f"{os.getloadavg()[0]:.1f}",
        table="\n".join(f"| {' | '.join(line)} |" for line in lines),
        limit=PEER_AT_TCC,
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


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
        (HERE / "docs" / "performance.md").write_text(
            page([{k: v for k, v in r.items() if v is not None} for r in rows], plan)
        )


if __name__ == "__main__":
    main()
