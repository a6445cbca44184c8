"""Limits of time and memory: reaching one ends in "undecided", never in a wrong answer."""

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

# Seconds between two looks at the limits, where nobody else looks.
TICK = 0.1
# Who asks by himself ends in good order, and with what he knows so far; who does not is ended a little later.
GRACE_SECONDS, GRACE_SHARE = 0.4, 0.08
# The same for memory. The system has to allow for what is asked for and never used, too.
GRACE_MEMORY, GRACE_DATA = 1.08, 1.15

Progress = Callable[[], str]

_enforced: "list[Limits]" = []  # by the main thread, the innermost last

# Processor time that this thread spent on kernels that it had to fetch or compile.
_uncounted = threading.local()


class _Clock:
    """Whether this process has a limit on wall time; it then must not wait for other processes."""

    limited = False


def limit_wall_time() -> None:
    """Note that a limit on wall time applies to this process, as ``Limits`` with a timeout do."""
    _Clock.limited = True


def is_wall_time_limited() -> bool:
    """Return whether any limit on wall time applies to this process."""
    return _Clock.limited


@contextmanager
def uncounted() -> Iterator[None]:
    """Exclude the processor time spent inside from the limit of a level: whether a kernel is cached decides nothing."""
    begin = time.thread_time()
    try:
        yield
    finally:
        _uncounted.seconds = getattr(_uncounted, "seconds", 0.0) + time.thread_time() - begin


def _own_seconds() -> float:
    """Return the processor time of this thread without that of ``uncounted``."""
    return time.thread_time() - getattr(_uncounted, "seconds", 0.0)


class _Work:
    """Steps that a search may still take; shared by all limits derived from one ``of_work``."""

    def __init__(self, steps: int) -> None:
        self.left = steps


class Limits:
    """Limits of time, memory and work; the engine checks them between its steps.

    Time and memory depend on the machine, so a limit on them ends in "undecided". Work is counted in steps of the
    algorithms (about 10 ns each when compiled), so a search that it bounds stops at the same point everywhere.
    """

    def __init__(
        self, timeout: float | None = None, max_memory: int | None = None, per_level: float | None = None
    ) -> None:
        """``timeout`` in seconds from now, ``max_memory`` of this process in bytes, ``per_level`` see ``for_level``."""
        self.timeout, self.max_memory, self.per_level = timeout, max_memory, per_level
        self.whole = self
        self._work: tuple[_Work, ...] = ()
        self._level_end: float | None = None  # by ``_own_seconds``
        self._end = None if timeout is None else time.monotonic() + timeout
        if timeout is not None:
            limit_wall_time()

    def for_level(self) -> "Limits":
        """Return the limits of one level that needs a search: at most ``per_level`` seconds of processor time.

        Wall time would make the verdict depend on what else the machine does. ``whole`` of these limits is without it.
        """
        if self.per_level is None:
            return self
        own = copy(self)
        own._level_end = _own_seconds() + self.per_level
        return own

    def at_most(self, seconds: float) -> "Limits":
        """Return limits for a part that may take at most ``seconds`` from now, and no longer than the whole.

        Explanations use ``of_work`` instead: what they find must not depend on time.
        """
        left = self.seconds_left
        own = Limits(seconds if left is None else min(seconds, left), self.max_memory)
        own._work = self._work
        return own

    def of_work(self, steps: int) -> "Limits":
        """Return the same limits for a part that may also take at most ``steps`` steps of work."""
        own = copy(self)
        own._work = (*self._work, _Work(steps))
        own.whole = own
        return own

    def spend(self, steps: int) -> None:
        """Count ``steps`` steps of work; raise LimitError if the work is used up."""
        for work in self._work:
            work.left -= steps
        if self.is_spent:
            raise LimitError("stopped after the work that an explanation may take")

    @property
    def is_spent(self) -> bool:
        """Whether the work that ``of_work`` allows is used up."""
        return any(work.left < 0 for work in self._work)

    @property
    def seconds_left(self) -> float | None:
        """Until the time limit, if there is one."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self, progress: Progress = str) -> None:
        """Raise LimitError if a limit is reached; ``progress`` is then asked how far it came."""
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
        """Is a limit reached?"""
        try:
            self.check()
        except LimitError:
            return True
        return False

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Inside, a limit that is reached ends whatever runs by a LimitError, also what never asks.

        Time is looked at by a timer, as far as there is one (for the main thread, and not on Windows); memory also by
        the system, which refuses more, since a single call can ask for any amount.
        """
        with self._ticking(), data_limited_to(self._most_data()):
            try:
                yield
            except MemoryError:
                if self.max_memory is None:
                    raise
                raise LimitError(f"stopped at {megabytes(self.max_memory)} of memory") from None

    def _most_data(self) -> int | None:
        """What the system may give this process, other memory of it included that the limit does not count."""
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
        # again and again: this may be no time for it, and an exception that is raised in a callback gets lost
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        try:
            yield
        finally:
            inside = False  # before anything that a tick could keep from being done
            _enforced.pop()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def reserve(self, size: int, progress: Progress = str) -> None:
        """Raise LimitError if ``size`` more bytes would exceed the limit."""
        if self.max_memory is not None and in_use() + size > self.max_memory:
            needed = f"stopped before it would take more than {megabytes(self.max_memory)} of memory"
            raise LimitError(_with_progress(needed, progress))

    def room(self, size: int) -> int:
        """``size`` bytes, or half of what the limit leaves if that is less."""
        if self.max_memory is None:
            return size
        return max(1, min(size, (self.max_memory - in_use()) // 2))


def check_enforced() -> None:
    """Raise LimitError if a limit that is enforced has been reached: for a moment at which nothing is delicate.

    Of kernels that are compiled one after the other, a tick would hardly ever meet the moment in between.
    """
    if _enforced and threading.current_thread() is threading.main_thread():
        _enforced[-1].check()


# Where a module is imported, or a kernel compiled or linked: left half-way, neither would ever be finished. And where
# Python calls back when an object is gone, as when it is taken down: what is raised there gets lost, and is shown.
_DELICATE = (
    "/numba/",
    "/llvmlite/",
    "/base/kernels/compile.py",
    "/base/kernels/link.py",
    "<frozen importlib",
    "weakref",
)


def _delicate(frame: FrameType | None) -> bool:
    """Would it do harm to end here what runs?"""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or any(part in frame.f_code.co_filename for part in _DELICATE):
            return True
        frame = frame.f_back
    return False


def megabytes(size: int) -> str:
    """As it is told."""
    return f"{size / MEGABYTE:,.0f} MB"


def _with_progress(limit: str, progress: Progress) -> str:
    told = progress()
    return f"{limit}: {told}" if told else limit
