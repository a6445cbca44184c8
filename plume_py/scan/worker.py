"""A worker process of a scan: ``python -m plume_py.scan.worker``. Tasks on standard input, answers on standard output.

Both are lines. In: the settings, then one batch of tasks per line, as JSON. Out: "ready", then for each task, in order,
its number, its outcome and, behind them, the line of the results (or the reason why there is none).

It lives through many histories, so that their cost is not that of starting Python. Its input ends when whoever gave it
the tasks is gone, however that happened; it then ends at once, in the midst of a check, too.
"""

import gc
import json
import os
import signal
import sys
import threading
from importlib import import_module
from queue import SimpleQueue

from plume_py.base.kernels.dispatch import load_numba
from plume_py.base.limits import limit_wall_time
from plume_py.base.memory import limit_data, own_data
from plume_py.scan.settings import ScanTask, Settings, TaskAnswer
from plume_py.scan.storage import remove_fetched
from plume_py.scan.task import check_one

# What it ends with when a successor had better go on.
RETIRED = 77
# Memory that a worker may keep after a history; beyond it a fresh process is cheaper than what is stuck here.
KEPT = 512 << 20
# Histories of this size are checked by compiled kernels; numba's own memory is then not the history's.
COMPILED = 200_000


def main() -> None:
    """Answer tasks until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
    told = json.loads(sys.stdin.buffer.readline())
    settings = Settings.of(told["settings"])
    if settings.timeout is not None:  # the parent process watches the clock
        limit_wall_time()
    tasks = _read_tasks()
    _import_all()
    memory = _Memory(told["memory"])
    _write(answers, b"ready\n")
    while True:
        task = tasks.get()
        memory.allow(task)
        answer = check_one(task, settings)
        memory.lift()
        _write(answers, b"%d %s " % (answer.number, answer.outcome.encode()) + _one_line(answer))
        if answer.given_up or memory.stuck():  # after a MemoryError nothing here is certain
            os._exit(RETIRED)


def _one_line(answer: TaskAnswer) -> bytes:
    return answer.payload.rstrip(b"\n").replace(b"\n", b" ") + b"\n"


def _read_tasks() -> "SimpleQueue[ScanTask]":
    """A queue that a thread fills; as the kernels leave Python's lock free, it sees the end of input at once."""
    tasks: SimpleQueue[ScanTask] = SimpleQueue()

    def run() -> None:
        for line in sys.stdin.buffer:
            for fields in json.loads(line):
                tasks.put(ScanTask(*fields))
        remove_fetched(os.getpid())
        os._exit(0)

    threading.Thread(target=run, daemon=True).start()
    return tasks


def _import_all() -> None:
    """What every check needs, before the first clock runs."""
    for name in ("plume_py.checking.check", "plume_py.history.load"):
        import_module(name)
    # What is imported stays, so the collector need not look at it after every few histories.
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _write(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


class _Memory:
    """The limit of a history: what it may ask for beyond what the process has already.

    Only private, writable memory counts (RLIMIT_DATA), the text of the history included; what is too much fails with a
    MemoryError wherever it is asked for: in Python, numpy, a decompressor or a compiled kernel.
    """

    def __init__(self, limit: int | None) -> None:
        self._begin = own_data()
        self._limit = limit if self._begin else None

    def allow(self, task: ScanTask) -> None:
        """Set the limit for the next history."""
        if task.size >= COMPILED and not task.known:  # of a known one there is most likely nothing left to check
            load_numba()
        if self._limit is not None:
            limit_data(own_data() + self._limit)

    def lift(self) -> None:
        """Between histories there is none: the answer must get out."""
        if self._limit is not None:
            limit_data(None)

    def stuck(self) -> bool:
        """Is more memory kept here than a worker should keep?"""
        return own_data() - self._begin > KEPT


if __name__ == "__main__":
    main()
