"""The example histories that come along: one for each pattern, and the demo."""

from pathlib import Path
from typing import NamedTuple

from plume_py.base.errors import IsocheckError
from plume_py.levels import WEAK
from plume_py.levels.patterns import PATTERNS

# Installed beside the package, or in the checkout that it runs from.
_FOLDERS = (Path(__file__).parent.parent / "samples", Path(__file__).parent.parent.parent / "histories")

# Patterns whose example is not found by its letter.
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
    """A history, and the levels that its pattern is shown at."""

    path: Path
    levels: tuple[str, ...]


def folder() -> Path:
    """Where the samples are."""
    for path in _FOLDERS:
        if (path / "demo.json").is_file():
            return path
    raise IsocheckError("the example histories are not installed; they are in the folder histories of the source")


def demo() -> Path:
    """A small history that breaks causal consistency."""
    return folder() / "demo.json"


def example_of(pattern: str) -> Sample | None:
    """The history that shows a pattern, if there is one."""
    if pattern in _EXAMPLES:
        paths = [folder() / f"{_EXAMPLES[pattern]}.json"]
    else:
        paths = sorted(folder().glob(f"*/tap-{pattern}-*.json"))
    level = PATTERNS[pattern].level
    return Sample(paths[0], WEAK if level in WEAK else (level,)) if paths else None
