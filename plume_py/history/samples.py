"""The example histories that are installed with isocheck: the demo, and one history per pattern."""

from pathlib import Path
from typing import NamedTuple

from plume_py.base.errors import IsocheckError
from plume_py.levels import WEAK
from plume_py.levels.patterns import PATTERNS

# In an installation, and in a checkout.
_FOLDERS = (Path(__file__).parent.parent / "samples", Path(__file__).parent.parent.parent / "histories")

# Patterns without a letter, whose example has another file name.
_EXAMPLES = {
    "duplicate-element": "CI/list-duplicate-element",
    "incompatible-order": "CI/list-incompatible-order",
    "torn-append": "CI/list-torn-append",
    "version-order-cycle": "CI/list-version-order-cycle",
    "lost-update": "TCC/lost-update",
    "long-fork": "TCC/long-fork",
    "write-skew": "SI/write-skew",
    "read-only-anomaly": "SI/read-only-anomaly",
}


class Sample(NamedTuple):
    """An example history and the levels at which its pattern shows."""

    path: Path
    levels: tuple[str, ...]


def folder() -> Path:
    """Return the folder of the examples. Raise IsocheckError if they are not installed."""
    for path in _FOLDERS:
        if (path / "demo.json").is_file():
            return path
    raise IsocheckError("the example histories are not installed; they are in the folder histories of the source")


def demo() -> Path:
    """Return the path of a small history that violates causal consistency."""
    return folder() / "demo.json"


def example_of(pattern: str) -> Sample | None:
    """Return the example of a pattern, or None if there is none."""
    if pattern in _EXAMPLES:
        paths = [folder() / f"{_EXAMPLES[pattern]}.json"]
    else:
        paths = sorted(folder().glob(f"*/tap-{pattern}-*.json"))
    level = PATTERNS[pattern].level
    return Sample(paths[0], WEAK if level in WEAK else (level,)) if paths else None
