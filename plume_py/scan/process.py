"""The other end of a worker process: gives it tasks, stops it when a history runs away, replaces it when it dies.

The same code runs under the local engine and inside a cluster's workers, so limits and retries mean the same there.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple
from weakref import WeakSet

from plume_py.base.errors import IsocheckError
from plume_py.base.memory import resident
from plume_py.base.processes import module_command
from plume_py.scan.settings import ScanTask, Settings, TaskAnswer, spell_seconds
from plume_py.scan.storage import remove_fetched
from plume_py.scan.task import memory_reason, undecided
from plume_py.scan.worker import RETIRED

# How often the watch looks.
WATCH_SECONDS = 0.1
# How many workers may fail to start, one after the other, before there is something wrong with the machine.
FAILED_STARTS = 3
# Beyond the limit that a worker keeps to by itself, this much makes it a runaway.
MEMORY_SLACK = 512 << 20

# Nothing here gains from threads inside numpy, and each of them takes memory.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class _Condemned(NamedTuple):
    """A task that was stopped, and why."""

    number: int
    reason: str


class WorkerProcess:
    """One worker process, or the next after it was lost. Used by one thread; ``stop`` may be called by any."""

    def __init__(self, settings: Settings, memory: int | None) -> None:
        """``memory``: how many bytes a history may ask for."""
        self.settings = settings
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._current: tuple[int, float] | None = None  # the task at work, and when it began
        self._condemned: _Condemned | None = None
        self._failed_starts = 0
        self._stopped = False
        self._died: set[int] = set()  # tasks that have cost a worker its life once

    def check(self, batch: Sequence[ScanTask]) -> Iterator[TaskAnswer]:
        """An answer for every task, in order, whatever becomes of the process meanwhile (unless it is stopped)."""
        waiting = deque(batch)
        while waiting and not self._stopped:
            if not self._start():
                continue
            # A task that killed its worker goes alone, so that its neighbours are not blamed.
            count = 1 if waiting[0].number in self._died else len(waiting)
            self._write([list(task) for task in islice(waiting, count)])
            for _ in range(count):
                self._current = (waiting[0].number, time.monotonic())
                answer = self._receive()
                self._current = None
                if answer is None:
                    answer = self._bury(waiting[0])
                    if answer is not None:
                        waiting.popleft()
                        yield answer
                    break
                waiting.popleft()
                yield answer

    def stop(self) -> None:
        """End the process, now."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        self.stop()
        self._let_go()

    def look(self, now: float) -> None:
        """Called by the watch: a history beyond its limits costs its worker the life."""
        current, process = self._current, self._process
        if current is None or process is None or self._condemned is not None:
            return
        reason = self._beyond(now - current[1], process.pid)
        if reason is not None:
            self._condemned = _Condemned(current[0], reason)
            process.kill()

    def _beyond(self, seconds: float, pid: int) -> str | None:
        """Which limit the task at work has reached."""
        timeout = self.settings.timeout
        if timeout is not None and seconds > timeout:
            return f"time limit of {spell_seconds(timeout)} reached"
        # The worker's own limit comes first; this is for memory that it does not see.
        if self._memory and seconds > 1 and resident(pid) > 5 * self._memory // 4 + MEMORY_SLACK:
            return memory_reason(self.settings.max_memory)
        return None

    def _start(self) -> bool:
        """Make sure of a process that is ready; False if it died before."""
        if self._process is not None:
            return True
        self._condemned = None
        try:
            self._process = subprocess.Popen(
                module_command("plume_py.scan.worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("ISOCHECK_DEBUG") else subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
            )
        except OSError as error:
            raise IsocheckError(f"cannot start a worker process: {error.strerror}; fewer --jobs may help") from None
        if self._stopped:  # by someone who saw no process yet
            self._process.kill()
        self._write({"settings": self.settings.plain(), "memory": self._memory})
        assert self._process.stdout is not None
        if self._process.stdout.readline() == b"ready\n":
            self._failed_starts = 0
            WATCH.add(self)
            return True
        code = self._let_go()
        self._failed_starts += 1
        if self._failed_starts == FAILED_STARTS and not self._stopped:
            raise IsocheckError(f"worker processes do not start ({_ended(code)}); ISOCHECK_DEBUG=1 shows why")
        return False

    def _write(self, value: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError):  # it has died; reading from it will tell
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def _receive(self) -> TaskAnswer | None:
        """The next answer; None if the process is gone."""
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):  # nothing, or a line cut short by death
            return None
        number, outcome, payload = line.split(b" ", 2)
        return TaskAnswer(int(number), outcome.decode(), payload)

    def _bury(self, task: ScanTask) -> TaskAnswer | None:
        """The process ended with ``task`` at work. The answer for it, if it shall not be tried again."""
        code = self._let_go()
        condemned = self._condemned
        if condemned is not None:
            # It may have been done just in time, and then the one after it is not to blame.
            return undecided(task, self.settings, condemned.reason) if condemned.number == task.number else None
        if code == RETIRED or self._stopped:
            return None
        if task.number not in self._died:
            self._died.add(task.number)
            return None
        self._died.discard(task.number)
        return undecided(task, self.settings, f"worker died ({_ended(code)}), and so did the one that tried again")

    def _let_go(self) -> int:
        """Wait for the end of the process; what it ended with."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):  # what was still to be written has no reader
                stream.close()
        code = process.wait()
        remove_fetched(process.pid)
        return code


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


class _Watch:
    """One thread that looks after all worker processes of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: WeakSet[WorkerProcess] = WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, process: WorkerProcess) -> None:
        """Look after ``process`` from now on."""
        with self._lock:
            self._watched.add(process)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(WATCH_SECONDS)
            with self._lock:
                watched = list(self._watched)
            for process in watched:
                process.look(time.monotonic())
            del watched  # or those that are done would never go


WATCH = _Watch()
