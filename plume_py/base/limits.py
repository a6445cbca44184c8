"""Limits of time, memory and work: a computation that reaches one ends as "undecided", never with a wrong answer.

The engine calls ``Limits.check`` between its steps. ``Limits.enforced`` also ends code that never calls it.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from types import FrameType

from plume_py.base.errors import LimitError
from plume_py.base.memory import data_limited_to, in_use, own_data

MEGABYTE = 1 << 20

# Seconds between two checks of the limits by the timer of ``enforced``.
TICK = 0.1
# Code that calls ``check`` stops at the limit and can report partial results. The timer stops other code this much
# later: seconds, and a share of the time limit.
GRACE_SECONDS, GRACE_SHARE = 0.4, 0.08
# The same for memory, as factors. The system also counts memory that is requested and never used.
GRACE_MEMORY, GRACE_DATA = 1.08, 1.15

Progress = Callable[[], str]

_enforced: "list[Limits]" = []  # limits that the main thread enforces, the innermost last

# Processor time of each thread for loading and compiling kernels.
_uncounted = threading.local()


class _Clock:
    """Whether this process has a limit on wall time; if so, it must not wait for other processes."""

    limited = False


def limit_wall_time() -> None:
    """Note that a limit on wall time applies to this process, as ``Limits`` with a timeout do."""
    _Clock.limited = True


def is_wall_time_limited() -> bool:
    """Return whether any limit on wall time applies to this process."""
    return _Clock.limited


@contextmanager
def uncounted() -> Iterator[None]:
    """Exclude processor time spent inside from the limit of a level: the cache of kernels must decide no verdict."""
    begin = time.thread_time()
    try:
        yield
    finally:
        _uncounted.seconds = getattr(_uncounted, "seconds", 0.0) + time.thread_time() - begin


def _own_seconds() -> float:
    """Return the processor time of this thread outside of ``uncounted`` blocks."""
    return time.thread_time() - getattr(_uncounted, "seconds", 0.0)


class _Work:
    """Remaining steps of a search, shared by all limits derived from one call of ``of_work``."""

    def __init__(self, steps: int) -> None:
        self.left = steps


class Limits:
    """Limits of time, memory and work: ``timeout`` in seconds from now, ``max_memory`` of this process in bytes,
    ``per_level`` see ``for_level``.

    Time and memory depend on the machine. Work is counted in steps of the algorithms, about 10 ns each when compiled.
    A search bounded by work therefore stops at the same point on every machine.
    """

    def __init__(
        self, timeout: float | None = None, max_memory: int | None = None, per_level: float | None = None
    ) -> None:
        self.timeout, self.max_memory, self.per_level = timeout, max_memory, per_level
        self.whole = self
        self._work: tuple[_Work, ...] = ()
        self._level_end: float | None = None  # by ``_own_seconds``
        self._end = None if timeout is None else time.monotonic() + timeout
        if timeout is not None:
            limit_wall_time()

    def for_level(self) -> "Limits":
        """Return the limits of one level that needs a search: at most ``per_level`` seconds of processor time.

        With wall time, the verdict would depend on the load of the machine. The attribute ``whole`` has the limits
        without this one.
        """
        if self.per_level is None:
            return self
        own = copy(self)
        own._level_end = _own_seconds() + self.per_level
        return own

    def at_most(self, seconds: float) -> "Limits":
        """Return the limits of a step that may take at most ``seconds`` from now.

        Explanations use ``of_work`` instead, because their result must not depend on time.
        """
        left = self.seconds_left
        own = Limits(seconds if left is None else min(seconds, left), self.max_memory)
        own._work = self._work
        return own

    def of_work(self, steps: int) -> "Limits":
        """Return the same limits for a search that may also take at most ``steps`` steps of work."""
        own = copy(self)
        own._work = (*self._work, _Work(steps))
        own.whole = own
        return own

    def spend(self, steps: int) -> None:
        """Count ``steps`` steps of work; raise LimitError if they exceed the limit."""
        for work in self._work:
            work.left -= steps
        if self.is_spent:
            raise LimitError("stopped after the work that an explanation may take")

    @property
    def is_spent(self) -> bool:
        """Whether more steps were taken than ``of_work`` allows."""
        return any(work.left < 0 for work in self._work)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit; None without one."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self, progress: Progress = str) -> None:
        """Raise LimitError if a limit is reached; the message ends with ``progress()``."""
        self._check(progress, 0.0, 1.0)

    def _check(self, progress: Progress, more_seconds: float, memory_factor: float) -> None:
        left = self.seconds_left
        if left is not None and left + more_seconds <= 0:
            raise LimitError(_with_progress(f"stopped after {self.timeout:g} s", progress))
        if self._level_end is not None and _own_seconds() >= self._level_end:
            whose = "of processor time for this level, as no level and no limit was named"
            raise LimitError(_with_progress(f"stopped after {self.per_level:g} s {whose}", progress))
        if self.max_memory is not None and in_use() > self.max_memory * memory_factor:
            raise LimitError(_with_progress(f"stopped at {megabytes(self.max_memory)} of memory", progress))

    def reached(self) -> bool:
        """Return whether a limit is reached."""
        try:
            self.check()
        except LimitError:
            return True
        return False

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Raise LimitError inside the block once a limit is reached, also in code that never calls ``check``.

        A timer checks time and memory, in the main thread and not on Windows. The system also limits memory, because a
        single call can request any amount.
        """
        with self._ticking(), data_limited_to(self._most_data()):
            try:
                yield
            except MemoryError:
                if self.max_memory is None:
                    raise
                raise LimitError(f"stopped at {megabytes(self.max_memory)} of memory") from None

    def _most_data(self) -> int | None:
        """Return the limit on private, writable memory; it includes memory that ``max_memory`` does not count."""
        if self.max_memory is None or not own_data():
            return None
        return own_data() + int(max(0, self.max_memory - in_use()) * GRACE_DATA)

    @contextmanager
    def _ticking(self) -> Iterator[None]:
        free = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        if not free or (self._end is None and self.max_memory is None) or signal.getitimer(signal.ITIMER_REAL)[0]:
            yield
            return

        inside = True

        def tick(number: int, frame: FrameType | None) -> None:
            if inside and not _delicate(frame):
                self._check(str, GRACE_SECONDS + GRACE_SHARE * (self.timeout or 0), GRACE_MEMORY)

        before = signal.signal(signal.SIGALRM, tick)
        _enforced.append(self)
        # repeated, because a tick can meet delicate code, and an exception that is raised in a callback is lost
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        try:
            yield
        finally:
            inside = False  # first, so that no tick can interrupt the following lines
            _enforced.pop()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def reserve(self, size: int, progress: Progress = str) -> None:
        """Raise LimitError if ``size`` more bytes would exceed the limit."""
        if self.max_memory is not None and in_use() + size > self.max_memory:
            needed = f"stopped before it would take more than {megabytes(self.max_memory)} of memory"
            raise LimitError(_with_progress(needed, progress))

    def cap_to_budget(self, size: int) -> int:
        """Return ``size`` bytes, or half of the remaining memory if that is less."""
        if self.max_memory is None:
            return size
        return max(1, min(size, (self.max_memory - in_use()) // 2))


def check_enforced() -> None:
    """Raise LimitError if an enforced limit has been reached; called where an exception does no harm.

    Between two kernels that are compiled one after the other, a tick of the timer would hardly ever come.
    """
    if _enforced and threading.current_thread() is threading.main_thread():
        _enforced[-1].check()


# Parts of file names of code that must not be interrupted. An import, compilation or link that was interrupted would
# never be finished. An exception in a callback of Python for a deleted object is lost and printed.
_DELICATE = (
    "/numba/",
    "/llvmlite/",
    "/base/kernels/compile.py",
    "/base/kernels/link.py",
    "<frozen importlib",
    "weakref",
)


def _delicate(frame: FrameType | None) -> bool:
    """Return whether an exception in this frame would do harm."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or any(part in frame.f_code.co_filename for part in _DELICATE):
            return True
        frame = frame.f_back
    return False


def megabytes(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB"


def _with_progress(limit: str, progress: Progress) -> str:
    done = progress()
    return f"{limit}: {done}" if done else limit
