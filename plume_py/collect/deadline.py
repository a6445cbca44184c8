"""Bound every wait on a database by time, by the size of the answer, and by the memory of this process.

A driver waits in C code or in a blocking socket, where no exception reaches it. A timeout of the socket does not help,
because every byte that arrives restarts it. So a thread, the guard, polls all waits and shuts down the socket of an
overdue one, which ends the driver's call.

Adapters guard their own calls, and ``client`` guards the operations of a session. ``run`` makes calls that cannot be
interrupted in a thread that it can abandon.

The errors that a connection raises are also defined here. User adapters import them from ``plume_py.collect.adapter``.
"""

import math
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import megabytes
from plume_py.base.memory import in_use

T = TypeVar("T")

# Seconds between two polls. More than WAITS_PER_POLL waits are polled less often, to bound the guard's CPU time.
POLL_INTERVAL, WAITS_PER_POLL = 0.02, 50
# Seconds without a wait after which the guard thread ends.
IDLE = 1.0
# Maximum bytes of an answer to a session: values are integers, or lists of integers.
LARGEST_ANSWER = 16 << 20
# Position of the number of received bytes in Linux's struct tcp_info.
_RECEIVED = slice(128, 136)


class AbortedError(Exception):
    """The database rejected the transaction and undoes it: a conflict, a deadlock or a timeout."""


class LostError(Exception):
    """No answer arrived, or an answer that leaves the outcome open."""


class AnswerError(Exception):
    """The database gave an answer that no working database gives. This ends the run."""


class Guard:
    """Watches all waits for the database during a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: set[_Wait] = set()
        self._is_watching = False
        self._end = math.inf
        self.max_memory: int | None = None
        self.problem: IsocheckError | None = None  # set once the memory limit is exceeded

    def wait(
        self,
        seconds: float,
        cut: Callable[[], Any],
        fileno: Callable[[], int] | None = None,
        max_bytes: int = LARGEST_ANSWER,
    ) -> "_Wait":
        """Return a context manager for one wait.

        The guard calls ``cut`` after ``seconds``, and also if more than ``max_bytes`` bytes arrive at ``fileno``. An
        exception of the driver then becomes a LostError or an AnswerError.
        """
        return _Wait(self, seconds, cut, fileno, max_bytes)

    def end_by(self, moment: float) -> None:
        """Let no wait, current ones included, last beyond ``moment`` of the monotonic clock."""
        self._end = moment

    def cut_all(self) -> None:
        """Cut all current waits."""
        with self._lock:
            for wait in self._waits:
                wait.cut(LostError("the run was over"))

    def begin(self, wait: "_Wait") -> None:
        """Start watching ``wait``."""
        with self._lock:
            self._waits.add(wait)
            if not self._is_watching:
                self._is_watching = True
                threading.Thread(target=self._watch, name="guard", daemon=True).start()

    def end(self, wait: "_Wait") -> None:
        """Stop watching ``wait``."""
        with self._lock:
            self._waits.discard(wait)

    def _watch(self) -> None:
        busy = time.monotonic()
        while True:
            time.sleep(POLL_INTERVAL * max(1.0, len(self._waits) / WAITS_PER_POLL))
            now = time.monotonic()
            with self._lock:
                if self._waits:
                    busy = now
                elif now - busy > IDLE:
                    self._is_watching = False
                    return
                if self.max_memory is not None and self.problem is None and in_use() > self.max_memory:
                    self.problem = LimitError(f"stopped at {megabytes(self.max_memory)} of memory")
                for wait in self._waits:
                    wait.check(now, self._end, self.problem)


class _Wait:
    """One guarded call of a driver."""

    __slots__ = ("_began", "_cut", "_fileno", "_guard", "_max_bytes", "_problem", "_received", "_seconds")

    def __init__(
        self, guard: Guard, seconds: float, cut: Callable[[], Any], fileno: Callable[[], int] | None, max_bytes: int
    ) -> None:
        self._guard, self._seconds, self._cut, self._fileno, self._max_bytes = guard, seconds, cut, fileno, max_bytes
        self._began = 0.0
        self._received = -1
        self._problem: Exception | None = None

    def __enter__(self) -> None:
        self._began = time.monotonic()
        self._guard.begin(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._guard.end(self)
        if self._problem is not None and isinstance(error, Exception):
            raise self._problem from None

    def check(self, now: float, end: float, problem: Exception | None) -> None:
        """Cut the connection if a limit is exceeded. Repeat that at every poll, because a driver may reconnect."""
        if problem is not None:
            self.cut(LostError(str(problem)))
        elif now >= min(self._began + self._seconds, end):
            self.cut(LostError(f"no answer within {max(0.0, now - self._began):.1f} s"))
        elif self._problem is not None:
            self.cut(self._problem)
        elif self._fileno is not None:
            received = _received(self._fileno)
            if self._received < 0:
                self._received = received
            elif received - self._received > self._max_bytes:
                self.cut(AnswerError(f"an answer of more than {megabytes(self._max_bytes)}"))

    def cut(self, problem: Exception) -> None:
        """Make the driver's call fail. The first ``problem`` is the one that is raised."""
        self._problem = self._problem or problem
        with suppress(Exception):  # the driver may have closed the connection already
            self._cut()


def _received(fileno: Callable[[], int]) -> int:
    """Return the number of bytes that a connection has received, or 0 if the system does not count them."""
    if sys.platform != "linux":
        return 0
    try:
        same = socket.socket(fileno=fileno())
    except Exception:  # from the driver: the connection is closed
        return 0
    try:
        return int.from_bytes(
            same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.stop)[_RECEIVED], sys.byteorder
        )
    except OSError:  # not TCP
        return 0
    finally:
        same.detach()


def shut(fileno: int) -> None:
    """Shut down the connection with this file descriptor, but do not close the descriptor."""
    same = socket.socket(fileno=fileno)
    try:
        same.shutdown(socket.SHUT_RDWR)
    finally:
        same.detach()


def in_time(until: float, work: Callable[[], T]) -> T:
    """Return the result of ``work``, or raise LostError at ``until`` of the monotonic clock.

    ``work`` runs in a separate thread, which is abandoned if it does not end. So Ctrl-C reaches the main thread even
    while a driver blocks.
    """
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    began = time.monotonic()
    threading.Thread(target=run, name="database", daemon=True).start()
    if not done.wait(max(0.0, min(until - began, threading.TIMEOUT_MAX))):
        raise LostError(f"no answer within {until - began:.1f} s")
    if errors:
        raise errors[0]
    return results[0]
