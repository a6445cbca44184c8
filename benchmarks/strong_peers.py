"""The strong levels beside others: histories made at one level and judged at another, from small to large.

``VERISTRONG=path/to/checker`` and ``POLYSI=path/to/PolySI.jar`` are built from their sources; ``OLD=folder`` is another
checkout of isocheck. Who is not given is left out. CPU seconds of whole commands; each is ended after LIMIT of them,
and whoever was ended is not asked about larger histories of the same kind. Writes ``results/strong-peers.csv``.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.against import HERE, Tree
from benchmarks.measure import Run, run
from benchmarks.strong_made import DISTRIBUTIONS, LEVELS, MADE, QUICK_SIZES, SIZES, Case, workload
from benchmarks.tables import Cell, Row, progress, save, show

LIMIT = 120  # CPU seconds of one run
MEMORY = 8 << 30
OTHERS_AT = ("SI",)  # PolySI knows no other level
OTHERS_UP_TO = 20_000  # transactions: beyond, those that answer at all take minutes
OURS = ("isocheck", "before")
ENDED = (-9, -24, 137, 152)  # by the limit, or for lack of memory

LevelRequest = Callable[[Case, int], Run | None]


def judges(folder: Path) -> dict[str, LevelRequest]:
    """Who is asked, by name; None is "not within the limit"."""
    trees = {"isocheck": Tree(HERE, folder / "ours")}
    if old := os.environ.get("OLD"):
        trees["before"] = Tree(Path(old), folder / "old")
    found: dict[str, LevelRequest] = {who: _tree(tree) for who, tree in trees.items()}
    if checker := os.environ.get("VERISTRONG"):
        options = ["--pruning", "fast", "--solver", "acyclic-minisat"]
        found["VeriStrong"] = lambda case, size: _limited(
            [checker, *options, "--isolation-level", case[2].lower(), _file(case, size, "dbcop")]
        )
    if jar := os.environ.get("POLYSI"):
        java = ["java", "-Xmx6g", f"-Djava.library.path={Path(jar).parent}", "-jar", jar]
        found["PolySI"] = lambda case, size: (
            _limited([*java, "audit", "--type=dbcop", _file(case, size, "dbcop")], bounded=False)
            if case[2] in OTHERS_AT
            else None
        )
    return found


def _file(case: Case, size: int, format: str) -> str:
    distribution, made, _ = case
    return str(workload(size, distribution).file(made, format))


def _tree(tree: Tree) -> LevelRequest:
    def asked(case: Case, size: int) -> Run | None:
        words = ["check", _file(case, size, "plume"), "--level", case[2], "--timeout", str(LIMIT)]
        tree.run(words, expect=(0, 1, 3), ISOCHECK_COMPILE="always")  # fetches the kernels, or compiles them
        found = tree.run(words, expect=(0, 1, 3))
        return None if found.cpu > LIMIT else found

    return asked


def _limited(command: list[str], bounded: bool = True) -> Run | None:
    # A virtual machine reserves far more addresses than it uses; it has a limit of its own.
    limits = [f"--cpu={LIMIT}", *([f"--as={MEMORY}"] if bounded else [])]
    found = run(["prlimit", *limits, *command], expect=(0, 1, *ENDED, 134, -6, 255))
    return None if found.cpu > LIMIT - 1 or found.code in (*ENDED, 134, -6) else found


def measure(sizes: tuple[int, ...], runs: int, keep: Callable[[Sequence[Row]], None]) -> list[Row]:
    """One row per case, who was asked, and how it grew; ``keep`` is given what is there after each case."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="isocheck-peers-") as name:
        who = judges(Path(name))
        for distribution in DISTRIBUTIONS:
            for level in LEVELS:
                for made in MADE:
                    progress(f"{distribution}, made at {made}, judged at {level}")
                    rows += _rows((distribution, made, level), who, sizes, runs)
                    keep(rows)
    return rows


def _rows(case: Case, who: Mapping[str, LevelRequest], sizes: tuple[int, ...], runs: int) -> list[Row]:
    found: dict[str, dict[int, list[Run]]] = {each: {} for each in who}
    active = [each for each in who if each != "PolySI" or case[2] in OTHERS_AT]
    for size in sizes:
        if size > OTHERS_UP_TO:
            active = [each for each in active if each in OURS]
        for turn in range(runs):
            for each in list(active):
                one = who[each](case, size) if turn == 0 or each in OURS else None
                if one is not None:
                    found[each].setdefault(size, []).append(one)
                elif turn == 0:
                    active.remove(each)
    return [_row(case, each, sizes, found[each]) for each in who if found[each]]


def _row(case: Case, who: str, sizes: tuple[int, ...], found: dict[int, list[Run]]) -> Row:
    distribution, made, level = case
    cpu: dict[int, float] = {size: median(each.cpu for each in runs) for size, runs in found.items()}
    reached = [size for size in sizes if size in cpu]
    growth: Cell = None
    if len(reached) > 1:
        before, last = reached[-2:]
        growth = math.log(cpu[last] / cpu[before]) / math.log(last / before)
    return {
        "keys": distribution, "made": made, "judged": level, "by": who,
        **{f"{size:,}": cpu.get(size) for size in sizes},
        "growth": growth,
        "MB": round(max(each.megabytes for each in found[reached[-1]])),
    }  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strong_peers", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and one run; writes nothing")
    parser.add_argument("--runs", type=int, default=3, help="how often isocheck is measured; others once")
    args = parser.parse_args()
    if args.quick:
        rows = measure(QUICK_SIZES, 1, lambda _: None)
    else:  # it takes an hour or more
        rows = measure(SIZES, args.runs, partial(save, HERE / "benchmarks" / "results" / "strong-peers.csv"))
    show("Strong levels beside others: CPU seconds by transactions", rows)


if __name__ == "__main__":
    main()
