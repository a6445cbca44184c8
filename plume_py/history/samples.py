"""The example histories that come along: one for each pattern, and the demo."""

from pathlib import Path
from typing import NamedTuple

from plume_py.base.errors import IsocheckError

# Installed beside the package, or in the checkout that it runs from.
_FOLDERS = (Path(__file__).parent.parent / "samples", Path(__file__).parent.parent.parent / "histories")

# Patterns whose example is not found by its letter: where it is, and the level that it shows the pattern at.
_EXAMPLES = {
    "duplicate-element": ("CI/list-duplicate-element", "RC"),
    "incompatible-order": ("CI/list-incompatible-order", "RC"),
    "torn-append": ("CI/list-torn-append", "RC"),
    "version-order-cycle": ("CI/list-version-order-cycle", "RC"),
    "lost-update": ("TCC/lost-update", "SI"),
    "long-fork": ("TCC/long-fork", "SI"),
    "write-skew": ("SI/write-skew", "SER"),
    "read-only-anomaly": ("SI/read-only-anomaly", "SER"),
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
    from plume_py.levels import WEAK

    if pattern in _EXAMPLES:
        name, level = _EXAMPLES[pattern]
        return Sample(folder() / f"{name}.json", WEAK if level in WEAK else (level,))
    found = sorted(folder().glob(f"*/tap-{pattern}-*.json"))
    return Sample(found[0], WEAK) if found else None
