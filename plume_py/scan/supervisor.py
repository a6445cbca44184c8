"""Supervise worker processes: feed them tasks, stop them at the limits of a task, replace them when they die.

``LocalEngine`` runs them on this machine. A Dask worker runs the same ``WorkerProcess``, so limits and retries are the
same on a cluster. A worker is a new interpreter, not a fork: this process has threads, which a fork would not survive.
It serves many tasks, so ``base/child_process.py``, which runs one piece of work per process, does not fit.
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
from queue import Queue
from typing import NamedTuple
from weakref import WeakSet

from plume_py.base.errors import IsocheckError
from plume_py.base.memory import resident, share_of_machine
from plume_py.base.processes import module_command
from plume_py.scan.settings import Batches, ScanTask, Settings, TaskAnswer
from plume_py.scan.storage import remove_copies
from plume_py.scan.worker import RETIRED, memory_reason, undecided_answer

# Seconds between two checks of the limits.
WATCH_SECONDS = 0.1
# After this many failed starts in a row the scan ends with an error.
FAILED_STARTS = 3
# A worker enforces its memory limit itself. It is killed when it uses 5/4 of that limit and these bytes.
MEMORY_SLACK = 512 << 20

# The answers that may wait for the writer; more would only take memory.
WAITING_ANSWERS = 2_000

# Threads inside numpy take memory and gain nothing here.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class _Killed(NamedTuple):
    """A task that was stopped by killing its worker, and the reason."""

    number: int
    reason: str


class WorkerProcess:
    """A worker process, restarted when it is lost. One thread uses it; any thread may call ``stop``."""

    def __init__(self, settings: Settings, memory: int | None) -> None:
        """``memory`` is the limit for each history in bytes."""
        self.settings = settings
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._current: tuple[int, float] | None = None  # the number of the running task, and its start time
        self._killed: _Killed | None = None
        self._failed_starts = 0
        self._stopped = False
        self._died: set[int] = set()  # tasks during which a worker has died once

    def check(self, batch: Sequence[ScanTask]) -> Iterator[TaskAnswer]:
        """Yield an answer for every task in order, even if the process dies; fewer only after ``stop``."""
        waiting = deque(batch)
        while waiting and not self._stopped:
            if not self._start():
                continue
            # After the death of its worker a task is sent alone, so that no other task is blamed.
            count = 1 if waiting[0].number in self._died else len(waiting)
            self._write([list(task) for task in islice(waiting, count)])
            for _ in range(count):
                self._current = (waiting[0].number, time.monotonic())
                answer = self._receive()
                self._current = None
                if answer is None:
                    answer = self._answer_for_death(waiting[0])
                    if answer is not None:
                        waiting.popleft()
                        yield answer
                    break
                waiting.popleft()
                yield answer

    def stop(self) -> None:
        """Kill the process."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Kill the process and wait for its end."""
        self.stop()
        self._reap()

    def enforce_limits(self, now: float) -> None:
        """Kill the process if its task exceeds a limit; the watch calls this."""
        current, process = self._current, self._process
        if current is None or process is None or self._killed is not None:
            return
        reason = self._exceeded(now - current[1], process.pid)
        if reason is not None:
            self._killed = _Killed(current[0], reason)
            process.kill()

    def _exceeded(self, seconds: float, pid: int) -> str | None:
        """Return which limit the running task has reached, or None."""
        timeout = self.settings.timeout
        if timeout is not None and seconds > timeout:
            return f"time limit of {timeout:g} s reached"
        # The worker's own limit comes first. This one is for memory that it does not count.
        if self._memory and seconds > 1 and resident(pid) > 5 * self._memory // 4 + MEMORY_SLACK:
            return memory_reason(self.settings.max_memory)
        return None

    def _start(self) -> bool:
        """Start a process if there is none; return False if it died before it was ready."""
        if self._process is not None:
            return True
        self._killed = None
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
        if self._stopped:  # by a thread that saw no process yet
            self._process.kill()
        self._write({"settings": self.settings.plain(), "memory": self._memory})
        assert self._process.stdout is not None
        if self._process.stdout.readline() == b"ready\n":
            self._failed_starts = 0
            WATCH.add(self)
            return True
        code = self._reap()
        self._failed_starts += 1
        if self._failed_starts == FAILED_STARTS and not self._stopped:
            raise IsocheckError(f"worker processes do not start ({_ending(code)}); ISOCHECK_DEBUG=1 shows why")
        return False

    def _write(self, value: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError):  # it has died, which the next read detects
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def _receive(self) -> TaskAnswer | None:
        """Return the next answer, or None if the process is gone."""
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):  # nothing, or a line cut short
            return None
        number, outcome, payload = line.split(b" ", 2)
        return TaskAnswer(int(number), outcome.decode(), payload)

    def _answer_for_death(self, task: ScanTask) -> TaskAnswer | None:
        """Return the answer for the task during which the process died, or None to try it again."""
        code = self._reap()
        killed = self._killed
        if killed is not None:
            # If the stopped task was done just in time, the next task is not to blame.
            return undecided_answer(task, self.settings, killed.reason) if killed.number == task.number else None
        if code == RETIRED or self._stopped:
            return None
        if task.number not in self._died:
            self._died.add(task.number)
            return None
        self._died.discard(task.number)
        return undecided_answer(
            task, self.settings, f"worker died ({_ending(code)}), and so did the one that tried again"
        )

    def _reap(self) -> int:
        """Wait for the end of the process; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):  # buffered tasks have no reader any more
                stream.close()
        code = process.wait()
        remove_copies(process.pid)
        return code


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


class _LimitWatch:
    """One thread that checks the limits of all worker processes of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: WeakSet[WorkerProcess] = WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, process: WorkerProcess) -> None:
        """Check the limits of ``process`` from now on."""
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
                process.enforce_limits(time.monotonic())
            del watched  # it would keep finished processes alive


WATCH = _LimitWatch()


class LocalEngine:
    """The engine on this machine: ``jobs`` worker processes, each with a thread here that feeds it."""

    def __init__(self, jobs: int, settings: Settings) -> None:
        memory = settings.max_memory or share_of_machine(jobs)
        self._workers = [WorkerProcess(settings, memory) for _ in range(jobs)]
        self._done: Queue[TaskAnswer | BaseException | None] = Queue(WAITING_ANSWERS)
        self._threads: list[threading.Thread] = []

    def run(self, batches: Batches) -> Iterator[TaskAnswer]:
        """Yield the answers as they arrive."""
        for worker in self._workers:
            thread = threading.Thread(target=self._feed, args=(worker, batches), daemon=True)
            self._threads.append(thread)
            thread.start()
        running = len(self._threads)
        while running:
            found = self._done.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found

    def close(self) -> None:
        """Stop all workers and threads."""
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            while thread.is_alive():
                while not self._done.empty():  # a full queue would block the thread for ever
                    self._done.get()
                thread.join(0.05)
        for worker in self._workers:
            worker.close()

    def _feed(self, worker: WorkerProcess, batches: Batches) -> None:
        try:
            while (batch := batches.next()) is not None:
                for answer in worker.check(batch):
                    self._done.put(answer)
        except BaseException as error:
            self._done.put(error)
        finally:
            self._done.put(None)
