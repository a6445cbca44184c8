"""Is the evidence worth anything? What ``--evidence`` says of workloads, beside how often they find a real error.

``python -m benchmarks.evidence [--runs N]``: each workload runs on a private PostgreSQL at SERIALIZABLE, and the share
of stale reads is taken that each level would have noticed. Then it runs N times on the broken store, in which about one
read of a run is stale, and the share of runs is counted in which the level is broken. The two orders of the workloads
must agree. Writes ``results/evidence.csv``.
"""

import argparse
import subprocess
import tempfile
from itertools import combinations
from pathlib import Path

from benchmarks.against import HERE
from benchmarks.measure import ISOCHECK
from benchmarks.tables import Row, progress, save, show
from plume_py import check, load
from plume_py.checking.evidence import evidence
from plume_py.history.model import History

# From little contention to much.
WORKLOADS = {
    "register, 2,000 keys": ("register", "--keys", "2000"),
    "register, 200 keys": ("register", "--keys", "200"),
    "smallbank": ("smallbank",),
    "register, 10 keys": ("register", "--keys", "10"),
    "append, 10 keys": ("append", "--keys", "10"),
}
LEVELS = ("RA", "TCC", "SER")
SHAPE = ("--transactions", "50", "--sessions", "8", "--pause", "0.2")
SAMPLES = 200
STALE_READS = 1.0  # of a run, on average


def collect(where: tuple[str, ...], workload: tuple[str, ...], seed: int, folder: str) -> History:
    """The history of one run."""
    out = str(Path(folder, "history.jsonl"))
    words = ["collect", *where, "--workload", *workload, *SHAPE, "--seed", str(seed), "--out", out, "--force"]
    done = subprocess.run([ISOCHECK, *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the table does not agree with the history, in a broken store
        raise SystemExit(done.stderr)
    return load(out, init_txn="none")


def promised(workload: tuple[str, ...], folder: str) -> tuple[dict[str, float], int]:
    """By level: the share that would have been noticed; and how many reads a run has."""
    history = collect(("--managed", "postgresql", "--isolation", "serializable"), workload, 0, folder)
    found = evidence(history, check(history, LEVELS, max_examples=0).levels, samples=SAMPLES)
    assert found is not None
    reads = int((history.op_kind & 1 == 0).sum())
    return {level: found.noticed[level] / max(found.tried, 1) for level in LEVELS}, reads


def found_by(workload: tuple[str, ...], reads: int, runs: int, folder: str) -> dict[str, float]:
    """By level: in which share of the runs the stale read was found."""
    broken = dict.fromkeys(LEVELS, 0)
    url = f"broken:?bug=stale-reads&chance={STALE_READS / max(reads, 1):.6f}"
    for seed in range(runs):
        history = collect((f"{url}&seed={seed}",), workload, seed, folder)
        for level, verdict in check(history, LEVELS, max_examples=0).levels.items():
            broken[level] += verdict.ok is False
    return {level: broken[level] / runs for level in LEVELS}


def agreement(rows: list[Row], level: str) -> str:
    """Pairs of workloads that both put in the same order, of those that either tells apart clearly."""
    pairs = [
        (float(a[f"{level} said"]) - float(b[f"{level} said"]), float(a[f"{level} found"]) - float(b[f"{level} found"]))
        for a, b in combinations(rows, 2)
    ]
    clear = [(said, found) for said, found in pairs if abs(said) >= 0.1 and abs(found) >= 0.1]
    return f"{sum((said > 0) == (found > 0) for said, found in clear)} of {len(clear)}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=30, help="on the broken store, of each workload")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="isocheck-evidence-") as folder:
        for name, workload in WORKLOADS.items():
            progress(name)
            said, reads = promised(workload, folder)
            found = found_by(workload, reads, args.runs, folder)
            columns = {f"{level} {kind}": share[level] for level in LEVELS
                       for kind, share in (("said", said), ("found", found))}  # fmt: skip
            rows.append({"workload": name, "reads": reads, "runs": args.runs, **columns})
    show("Evidence (said) beside real errors (found), by level", rows)
    for level in LEVELS:
        print(f"{level}: pairs of workloads in the same order: {agreement(rows, level)}")
    save(HERE / "benchmarks" / "results" / "evidence.csv", rows)


if __name__ == "__main__":
    main()
