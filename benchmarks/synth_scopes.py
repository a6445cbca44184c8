"""How many transactions a search reaches in a minute: python -m benchmarks.synth_scopes [--seconds 60] [--package DIR]

Eight problems without a solution, so that everything has to be ruled out, with two keys and four values. Each number of
transactions is a process of its own, whose processor time counts. ``--package`` measures another checkout of isocheck.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
SIZES = (4, 5, 6, 7, 8, 12, 16, 20, 24)
PROBLEMS = (
    ("SerByGraph", "SER"),
    ("SER", "SerByGraph"),
    ("RA", "OwnSession"),
    ("TCC", "MonotonicReads"),
    ("UA", "NLU"),
    ("SI@vis", "SI"),
    ("PSI", "PSI@vis"),
    ("SER", "UpdateSer@vis"),
)
# In words that every version of isocheck understands.
LEVELS = """
from plume_py.reasoning.synth import axiom, level, seen_by

@level
def OwnSession(h, w):
    return axiom(h, w.co, seen_by(h.so))

@level(form="vis")
def MonotonicReads(h, w):
    return w.vis.then(h.so).inside(w.vis)

@level
def SerByGraph(h, w):
    ww = w.co & h.conflict
    return (h.base | ww | h.overwrites(w.co)).closure().irreflexive()
"""
SEARCH = """
import sys
from plume_py.reasoning.synth import Scope, load_definitions, synthesize
from plume_py.reasoning.synth.formulas import definition
levels = load_definitions(sys.argv[1])
allow, forbid = (definition(name, levels) for name in sys.argv[2:4])
assert not synthesize([allow], [forbid], Scope(int(sys.argv[4]), 2, 4)).found
"""


def seconds(package: str, levels: str, problem: tuple[str, str], txns: int, most: float) -> float | None:
    """The processor time that it takes; None if that is more than ``most``."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(most) + 1, int(most) + 2))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-c", SEARCH, levels, *problem, str(txns)]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": package}, preexec_fn=limited, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if ended.returncode > 0:
        raise SystemExit(f"{problem} with {txns} transactions failed")
    return used if ended.returncode == 0 and used <= most else None


def largest(
    package: str, most: float, problems: Sequence[tuple[str, str]] = PROBLEMS
) -> Iterator[tuple[tuple[str, str], int, float]]:
    """Each problem, the largest size that was searched within the time, and what that took."""
    with tempfile.TemporaryDirectory() as folder:
        levels = Path(folder) / "levels.py"
        levels.write_text(LEVELS)
        for problem in problems:
            best = (0, 0.0)
            for txns in SIZES:
                used = seconds(package, str(levels), problem, txns, most)
                if used is None:
                    break
                best = txns, used
            yield problem, *best


def main() -> None:
    """A line per problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--package", default=str(ROOT))
    options = parser.parse_args()
    print(f"| allowed by | forbidden by | transactions in {options.seconds:g} s | s |\n|---|---|---|---|")
    for problem, size, used in largest(options.package, options.seconds):
        print(f"| {problem[0]} | {problem[1]} | {size} | {used:.1f} |", flush=True)


if __name__ == "__main__":
    main()
