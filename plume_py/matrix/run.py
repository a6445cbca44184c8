"""Cells, each run by ``isocheck test`` in a process of its own; what is done is kept, and not done again."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.base.processes import module_command
from plume_py.base.text import one_line
from plume_py.matrix.cells import Cell

_RATE = re.compile(r"; ([0-9,]+) transactions/s")
# Longer than any run takes that is not stuck: its own limits come first.
PATIENCE = 1800


@dataclass(frozen=True)
class Outcome:
    """What a cell came to: the result as in ``--format json``, or why there is none."""

    words: tuple[str, ...]  # what was typed behind ``isocheck``, without passwords
    result: dict[str, Any] | None
    rate: int = 0  # transactions per second
    error: str = ""
    pictures: tuple[str, ...] = ()  # below the folder of the matrix


def outcome(cell: Cell, folder: Path, force: bool = False) -> tuple[Outcome, bool]:
    """Run it, or find what it came to before; was it run now?"""
    path = folder / f"{cell.slug}.json"
    if not force and path.exists():
        return _kept(path), False
    found = _run(cell, folder)
    # A database that is not there may be there the next time.
    if found.result is not None:
        write_atomically(str(path), [msgspec.json.format(msgspec.json.encode(found))])
    return found, True


def _kept(path: Path) -> Outcome:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Outcome)
    except (msgspec.MsgspecError, OSError, RecursionError) as error:
        raise IsocheckError(f"{path}: not what a matrix keeps ({one_line(str(error))}); remove it") from None


def _run(cell: Cell, folder: Path) -> Outcome:
    drawn = folder / cell.slug
    history = folder / f"{cell.slug}.jsonl"
    files = ("--history", str(history), "--force", "--out", str(drawn), "--format", "json")
    try:
        child = subprocess.run(
            module_command("plume_py", *cell.words, *files),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Outcome(cell.shown, None, error=f"stopped after {PATIENCE} s")
    rate = _RATE.search(child.stderr)
    try:
        result = msgspec.json.decode(child.stdout)["results"][0]
    except (msgspec.MsgspecError, LookupError, TypeError, RecursionError):
        said = [line for line in child.stderr.splitlines() if line.strip()]
        return Outcome(cell.shown, None, error=one_line(said[-1]) if said else f"ended with {child.returncode}")
    pictures = sorted(str(p.relative_to(folder)) for p in drawn.glob("*.svg")) if drawn.is_dir() else []
    return Outcome(cell.shown, result, int(rate[1].replace(",", "")) if rate else 0, "", tuple(pictures))
