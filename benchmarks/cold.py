"""The first run ever, when numba compiles every kernel, against the next."""

import shutil
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.check import command
from benchmarks.measure import ISOCHECK, run
from benchmarks.tables import Row
from benchmarks.workloads import QUICK, UNIFORM

LIMIT = 20.0


def measure(quick: bool) -> list[Row]:
    """One row per command."""
    path = (QUICK if quick else UNIFORM).file("SER")
    commands = {"stats": [ISOCHECK, "stats", str(path)]}
    commands |= {f"check {level}": command(path, level) for level in ("TCC", "RA", "RC")}
    return [_row(name, words, 1 if quick else 3) for name, words in commands.items()]


def _row(name: str, words: list[str], rounds: int) -> Row:
    first, following = [], []
    for _ in range(rounds):
        cache = Path(tempfile.mkdtemp(prefix="isocheck-cold-"))
        try:
            # Kernels are compiled also where the file is small, or a quick run would measure nothing.
            env = {"NUMBA_CACHE_DIR": str(cache), "ISOCHECK_COMPILE": "always"}
            first.append(run(words, env).seconds)
            following.append(run(words, env).seconds)
        finally:
            shutil.rmtree(cache)
    return {
        "command": name,
        "first s": median(first),
        "next s": median(following),
        "first - next": median(first) - median(following),
        "at most": LIMIT,
    }
