"""This tree beside another checkout of isocheck, in turns: what a change costs or saves.

``python -m benchmarks.against FOLDER [--quick] [--only TEXT]``; FOLDER is made by, say, ``git worktree add FOLDER
COMMIT``. Both run with the packages of this environment. Ratios are this tree / the other one, of medians; "cpu" is
disturbed less by other work on the machine than wall-clock time. Small differences need a quiet machine: look at the
spread first.
"""

import argparse
import compileall
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import workloads as w
from benchmarks.measure import PYTHON, Run, Runs, run
from benchmarks.startup import TINY
from benchmarks.tables import Row, progress, show

HERE = Path(__file__).parent.parent
START = "import sys; from plume_py.cli.main import run; sys.argv[0] = 'isocheck'; run()"
# For the strong levels; the weak ones take the histories of ``make bench``.
STRONG = w.Workload("10,000 x 20", 20, 10_000, 20, 10_000)
QUICK_STRONG = w.Workload("400 x 10", 8, 400, 10, 100)

Plan = Sequence[tuple[str, list[str]]]


class Tree:
    """A checkout, with a kernel cache of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder.resolve(), cache
        compileall.compile_dir(self.folder / "plume_py", quiet=2)

    def run(self, words: list[str], cache: Path | None = None, expect: Sequence[int] = (0, 1), **env: str) -> Run:
        """One run of isocheck with these words; a violation is no failure."""
        env = {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(cache or self.cache), **env}
        return run([PYTHON, "-P", "-c", START, *words], env, expect)


def warm(quick: bool) -> Plan:
    """Name and words of each command that is measured with a warm cache."""
    w.WORK.mkdir(exist_ok=True)
    tiny = w.WORK / "tiny.json"
    tiny.write_text(TINY)
    weak = (w.QUICK,) if quick else (w.SMALL, w.UNIFORM, w.ZIPFIAN, w.BROKEN)
    strong = QUICK_STRONG if quick else STRONG
    plan = [("--version", ["--version"]), ("check tiny", [str(tiny), "--level", "TCC"])]
    for level in ("TCC", "RA", "RC"):
        plan += [(f"{level}, {x.name}", [str(x.file("SER")), "--level", level]) for x in weak]
    plan += [(f"{level}, {strong.name}", [str(strong.file("SER")), "--level", level]) for level in ("PC", "SI", "SER")]
    return plan


def cold(quick: bool) -> Plan:
    """The same for an empty cache: what compiling costs."""
    strong = QUICK_STRONG if quick else STRONG
    path = str((w.QUICK if quick else w.SMALL).file("SER"))
    return [
        *((f"{level}, empty cache", [path, "--level", level]) for level in ("TCC", "RA")),
        ("SI, empty cache", [str(strong.file("SER")), "--level", "SI"]),
    ]


def row(name: str, ours: Runs, theirs: Runs) -> Row:
    """What is printed of one command."""
    return {
        "command": name,
        "s": ours.seconds,
        "other s": theirs.seconds,
        "ratio": ours.seconds / theirs.seconds,
        "cpu s": ours.cpu,
        "other cpu s": theirs.cpu,
        "cpu ratio": ours.cpu / theirs.cpu,
        "MB": ours.megabytes,
        "other MB": theirs.megabytes,
        "spread %": round(100 * max(ours.spread, theirs.spread)),
    }


def measure(other: Path, quick: bool, only: str = "") -> list[Row]:
    """One row per command whose name has ``only`` in it."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="isocheck-against-") as name:
        caches = Path(name)
        trees = Tree(HERE, caches / "ours"), Tree(other, caches / "theirs")
        for what, words in (each for each in warm(quick) if only in each[0]):
            progress(what)
            for tree in trees:
                tree.run(words)  # fills the cache
            rows.append(_in_turns(what, trees, words, 2 if quick else 7))
        for what, words in (each for each in cold(quick) if only in each[0]):
            progress(what)
            rows.append(_in_turns(what, trees, words, 1 if quick else 3, caches / "empty"))
    return rows


def _in_turns(what: str, trees: tuple[Tree, Tree], words: list[str], rounds: int, cache: Path | None = None) -> Row:
    runs: tuple[list[Run], list[Run]] = ([], [])
    for _ in range(rounds):
        for found, tree in zip(runs, trees, strict=True):
            found.append(tree.run(words, cache, **({"ISOCHECK_COMPILE": "always"} if cache else {})))
            if cache:
                shutil.rmtree(cache, ignore_errors=True)
    return row(what, *(Runs(tuple(found)) for found in runs))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__.split("\n")[0])
    parser.add_argument("other", type=Path, help="a folder with another checkout")
    parser.add_argument("--quick", action="store_true", help="small sizes and few runs: does it work at all?")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the commands with this in their names")
    args = parser.parse_args()
    if not (args.other / "plume_py").is_dir():
        parser.error(f"{args.other} has no plume_py")
    show(f"This tree beside {args.other} (medians, in turns)", measure(args.other, args.quick, args.only))


if __name__ == "__main__":
    main()
