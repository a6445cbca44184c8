"""The command that checks a file; until ``isocheck check`` exists, a stand-in around the engine with the same output."""

import json
import sys
import time
from pathlib import Path

from benchmarks.measure import ISOCHECK, PYTHON


def command(path: Path, level: str) -> list[str]:
    """Checks ``path`` and prints JSON."""
    from plume_py.cli.main import COMMANDS

    if "check" in COMMANDS:
        return [ISOCHECK, str(path), "--level", level, "--format", "json"]
    return [PYTHON, "-m", "benchmarks.checker", str(path), level]


def _stand_in(path: str, level: str) -> int:
    from plume_py import load
    from plume_py.weak.engine import WeakEngine

    start = time.perf_counter()
    history = load(path)
    seconds = {"load": time.perf_counter() - start}
    engine = WeakEngine(history)
    holds = engine.holds(level)
    print(json.dumps({"results": [{"ok": holds, "seconds": seconds | engine.seconds}]}))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(_stand_in(*sys.argv[1:]))
