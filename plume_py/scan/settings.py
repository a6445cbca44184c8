"""Settings, tasks and answers of a scan: plain values that travel to worker processes and to other machines."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from plume_py.base.version import __version__
from plume_py.levels import NAMES
from plume_py.levels.orders import DEFAULT_ORDER

# The outcomes of a task. The last two have no line in the results, because nothing was checked.
HOLDS, VIOLATED, UNDECIDED, UNREADABLE = OUTCOMES = ("holds", "violated", "undecided", "unreadable")
SKIPPED, SAME = "skipped", "same"

# A batch is full with this many bytes or histories.
BATCH_BYTES = 200_000
BATCH_HISTORIES = 50


class ScanTask(NamedTuple):
    """One history to check."""

    number: int
    path: str
    size: int
    named: bool = False  # The user named this path, so it must be a history.
    known: str = ""  # The hash of the content in the existing results.
    alias: str = ""  # The path without its password, if it has one.

    @property
    def name(self) -> str:
        """The name in results and messages."""
        return self.alias or self.path


class TaskAnswer(NamedTuple):
    """The outcome of a task, with its line for the results or, for a skipped file, the reason."""

    number: int
    outcome: str
    payload: bytes
    given_up: bool = False  # because of a limit or a defect


@dataclass(frozen=True)
class Settings:
    """The levels to check in every history, and how."""

    levels: tuple[str, ...] = NAMES
    order: str = DEFAULT_ORDER
    max_examples: int = 1
    input_format: str | None = None
    init_txn: str = "auto"
    times: bool = True
    timeout: float | None = None  # seconds
    per_level: float | None = None  # seconds, for each level that needs a search
    max_memory: int | None = None  # bytes; None: an equal share of the machine's memory

    def key(self) -> str:
        """Return a hash of everything that a verdict depends on; results with another key are not reused."""
        return _digest([__version__, self.levels, self.order, self.max_examples, self.input_format, self.init_txn])

    def limited_key(self) -> str:
        """Return the key for a result that a limit decided; it differs for other limits."""
        return _digest([self.key(), self.timeout, self.per_level, self.max_memory])

    def plain(self) -> dict[str, Any]:
        """Return the settings as a JSON object."""
        return asdict(self)

    @staticmethod
    def of(plain: dict[str, Any]) -> "Settings":
        """Return the settings of a JSON object."""
        return Settings(**{**plain, "levels": tuple(plain["levels"])})


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:12]


class Batches:
    """Hands out tasks in order to many threads, in batches: small histories together, a large history alone."""

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        self._tasks = tasks
        self._next = 0
        self._returned: list[list[ScanTask]] = []
        self._lock = threading.Lock()

    def next(self) -> list[ScanTask] | None:
        """Return the next batch, or None if no task is left."""
        with self._lock:
            if self._returned:
                return self._returned.pop()
            batch: list[ScanTask] = []
            size = 0
            while self._next < len(self._tasks) and len(batch) < BATCH_HISTORIES and size < BATCH_BYTES:
                batch.append(self._tasks[self._next])
                size += self._tasks[self._next].size
                self._next += 1
            return batch or None

    def put_back(self, batch: Sequence[ScanTask]) -> None:
        """Return a batch that was lost, to be handed out again."""
        with self._lock:
            self._returned.append(list(batch))


def bytes_text(count: int) -> str:
    """Return a size in powers of 1024, such as "1.5 KB"."""
    size, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
