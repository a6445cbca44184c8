"""What a scan asks of every history, and the names by which its parts speak of tasks and outcomes."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from plume_py.base.version import __version__
from plume_py.levels import NAMES
from plume_py.levels.orders import DEFAULT_ORDER

# What can become of a history. The last two never reach the results: nothing was checked.
HOLDS, VIOLATED, UNDECIDED, UNREADABLE = OUTCOMES = ("holds", "violated", "undecided", "unreadable")
SKIPPED, SAME = "skipped", "same"


class ScanTask(NamedTuple):
    """One history to check: ``known`` is the hash for which a result is there already."""

    number: int
    path: str
    size: int
    named: bool = False  # by the user, and not found by walking: it has to be a history
    known: str = ""
    alias: str = ""  # how it is called, if its path holds a password

    @property
    def name(self) -> str:
        """How it is called, in results and by people."""
        return self.alias or self.path


class TaskAnswer(NamedTuple):
    """What became of a task: a line for the results, or, of a skipped one, the reason."""

    number: int
    outcome: str
    payload: bytes
    given_up: bool = False  # for a limit or a defect


@dataclass(frozen=True)
class Settings:
    """The question put to every history; plain values, since it travels to other processes and machines."""

    levels: tuple[str, ...] = NAMES
    order: str = DEFAULT_ORDER
    max_examples: int = 1
    input_format: str | None = None
    init_txn: str = "auto"
    times: bool = True
    timeout: float | None = None  # seconds
    per_level: float | None = None  # seconds, for each level that needs a search
    max_memory: int | None = None  # bytes; None: a fair share of the machine where it runs

    def key(self) -> str:
        """Names the question: results of another one do not count."""
        return _digest([__version__, self.levels, self.order, self.max_examples, self.input_format, self.init_txn])

    def limited_key(self) -> str:
        """The same for a result that a limit decided: with other limits it does not count."""
        return _digest([self.key(), self.timeout, self.per_level, self.max_memory])

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(plain: dict[str, Any]) -> "Settings":
        """From JSON."""
        return Settings(**{**plain, "levels": tuple(plain["levels"])})


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:12]


def spell_bytes(count: int) -> str:
    """1536 -> "1.5 KB": for people, in powers of 1024."""
    size, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"


def spell_seconds(seconds: float) -> str:
    """How a time limit is told."""
    return f"{seconds:g} s"
