"""Cells of a matrix: one run of ``isocheck test`` for each database, isolation level and workload.

``isocheck matrix`` calls this module. Each cell runs in a child process, and its outcome is kept as a JSON file in
the folder of the matrix. A cell with such a file is not run again.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plume_py.base.atomic_files import write_atomically
from plume_py.base.child_process import run_command
from plume_py.base.errors import IsocheckError
from plume_py.base.passwords import without_password
from plume_py.base.processes import module_command
from plume_py.base.text import one_line
from plume_py.collect.adapter import Promise
from plume_py.collect.registry import adapter_class

# Together these workloads can show every anomaly that a key-value history can show.
WORKLOADS = ("register", "append", "smallbank", "write-skew")
# The URL scheme of a managed server, where it is not its name up to the first "-".
_SCHEMES = {"galera": "mariadb"}

_RATE = re.compile(r"; ([0-9,]+) transactions/s")
# Seconds until a run counts as stuck. Its own limits are far below that.
PATIENCE = 1800


@dataclass(frozen=True)
class Target:
    """A database: the name of a managed one, or the addresses of its nodes, separated by spaces."""

    name: str
    is_managed: bool

    @property
    def title(self) -> str:
        """The name without passwords."""
        return self.name if self.is_managed else " ".join(map(without_password, self.name.split()))

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of ``isocheck test`` that name the database."""
        return ("--managed", self.name) if self.is_managed else tuple(self.name.split())

    @property
    def isolations(self) -> dict[str, Promise]:
        """Its isolation levels by name, and the level that each promises."""
        scheme = _SCHEMES.get(self.name, self.name.partition("-")[0])
        return dict(adapter_class(f"{scheme}://" if self.is_managed else self.words[0]).isolations)


@dataclass(frozen=True)
class Cell:
    """One run: a database, one of its isolation levels, and a workload."""

    target: Target
    isolation: str
    workload: str
    more: tuple[str, ...]  # options of ``isocheck test``

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of ``isocheck``."""
        chosen = ("--isolation", self.isolation, "--workload", self.workload)
        return ("test", *self.target.words, *chosen, *self.more, "--expect", "all", "--expect", "SSER")

    @property
    def shown(self) -> tuple[str, ...]:
        """The arguments of ``isocheck``, without passwords."""
        return tuple(without_password(word) if "://" in word else word for word in self.words)

    @property
    def slug(self) -> str:
        """A readable file name, with a hash that differs for other arguments."""
        plain = "".join(c if c.isalnum() else "-" for c in f"{self.target.title} {self.isolation} {self.workload}")
        return f"{plain[:60].lower()}-{hashlib.sha256(repr(self.words).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Outcome:
    """The result of a cell as in ``--format json``, or the reason why there is none. Kept as JSON."""

    words: tuple[str, ...]  # the arguments of ``isocheck``, without passwords
    result: dict[str, Any] | None
    rate: int = 0  # transactions per second
    error: str = ""
    pictures: tuple[str, ...] = ()  # paths below the folder of the matrix


def cells(
    targets: Sequence[Target], isolations: Sequence[str], workloads: Sequence[str], more: tuple[str, ...]
) -> Iterator[Cell]:
    """Yield all combinations, at the given isolation levels or at all that a database has."""
    for target in targets:
        for isolation in isolations or target.isolations:
            for workload in workloads:
                yield Cell(target, isolation, workload, more)


def outcome(cell: Cell, folder: Path, force: bool = False) -> tuple[Outcome, bool]:
    """Return the outcome of a cell, and whether it was run now instead of read from ``folder``."""
    path = folder / f"{cell.slug}.json"
    if not force and path.exists():
        return _read(path), False
    found = _run(cell, folder)
    # An error is not kept: a database that is down may be up next time.
    if found.result is not None:
        write_atomically(str(path), [msgspec.json.format(msgspec.json.encode(found))])
    return found, True


def _read(path: Path) -> Outcome:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Outcome)
    except (msgspec.MsgspecError, OSError, RecursionError) as error:
        raise IsocheckError(f"{path}: not what a matrix keeps ({one_line(str(error))}); remove it") from None


def _run(cell: Cell, folder: Path) -> Outcome:
    drawn = folder / cell.slug
    history = folder / f"{cell.slug}.jsonl"
    files = ("--history", str(history), "--force", "--out", str(drawn), "--format", "json")
    done = run_command(module_command("plume_py", *cell.words, *files), PATIENCE)
    if done.is_timed_out:
        return Outcome(cell.shown, None, error=f"stopped after {PATIENCE} s")
    rate = _RATE.search(done.errors)
    try:
        result = msgspec.json.decode(done.output)["results"][0]
    except (msgspec.MsgspecError, LookupError, TypeError, RecursionError):
        return Outcome(cell.shown, None, error=one_line(done.last_error) or f"ended with {done.code}")
    pictures = sorted(str(p.relative_to(folder)) for p in drawn.glob("*.svg")) if drawn.is_dir() else []
    return Outcome(cell.shown, result, int(rate[1].replace(",", "")) if rate else 0, "", tuple(pictures))
