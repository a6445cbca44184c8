"""Limits of time and memory: reaching one ends in "undecided", never in a wrong answer."""

import time
from collections.abc import Callable

from plume_py.base.errors import LimitError
from plume_py.base.memory import in_use

MEGABYTE = 1 << 20

Progress = Callable[[], str]


class Limits:
    """Asked by the engine between its steps."""

    def __init__(self, timeout: float | None = None, max_memory: int | None = None) -> None:
        """``timeout`` in seconds from now, ``max_memory`` of this process in bytes."""
        self.timeout, self.max_memory = timeout, max_memory
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def seconds_left(self) -> float | None:
        """Until the time limit, if there is one."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self, progress: Progress = str) -> None:
        """Raise LimitError if a limit is reached; ``progress`` is then asked how far it came."""
        left = self.seconds_left
        if left is not None and left <= 0:
            raise LimitError(_told(f"stopped after {self.timeout:g} s", progress))
        if self.max_memory is not None and in_use() > self.max_memory:
            raise LimitError(_told(f"stopped at {_megabytes(self.max_memory)} of memory", progress))

    def reached(self) -> bool:
        """Is a limit reached?"""
        try:
            self.check()
        except LimitError:
            return True
        return False

    def reserve(self, size: int, progress: Progress = str) -> None:
        """Raise LimitError if ``size`` more bytes would exceed the limit."""
        if self.max_memory is not None and in_use() + size > self.max_memory:
            needed = f"stopped before it would take more than {_megabytes(self.max_memory)} of memory"
            raise LimitError(_told(needed, progress))

    def room(self, size: int) -> int:
        """``size`` bytes, or half of what the limit leaves if that is less."""
        if self.max_memory is None:
            return size
        return max(1, min(size, (self.max_memory - in_use()) // 2))


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB"


def _told(limit: str, progress: Progress) -> str:
    told = progress()
    return f"{limit}: {told}" if told else limit
