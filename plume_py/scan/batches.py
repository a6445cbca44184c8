"""Tasks in batches: a history of some size goes alone, tiny ones in company, so that neither waits for a message."""

import threading
from collections.abc import Sequence

from plume_py.scan.settings import ScanTask

# A batch is full with this many bytes or histories.
BYTES = 200_000
HISTORIES = 50


class Batches:
    """Hands out tasks, in their order, to many threads; what was lost may be put back."""

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        self._tasks = tasks
        self._at = 0
        self._again: list[list[ScanTask]] = []
        self._lock = threading.Lock()

    def next(self) -> list[ScanTask] | None:
        """The next batch; None if there is no task left."""
        with self._lock:
            if self._again:
                return self._again.pop()
            batch: list[ScanTask] = []
            size = 0
            while self._at < len(self._tasks) and len(batch) < HISTORIES and size < BYTES:
                batch.append(self._tasks[self._at])
                size += self._tasks[self._at].size
                self._at += 1
            return batch or None

    def put_back(self, batch: Sequence[ScanTask], alone: bool = False) -> None:
        """Tasks that have to be done again; ``alone``: each for itself."""
        with self._lock:
            self._again += [[task] for task in batch] if alone else [list(batch)]
