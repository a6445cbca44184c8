"""Points measured: the history is written to a file, and a process of its own checks it.

The kernel counts what the parent had in memory when it started the child as the child's, so this process must stay
small: histories are generated and loaded in children, and nothing here imports numpy.
"""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any

import msgspec

from plume_py.base.errors import IsocheckError
from plume_py.base.processes import module_command
from plume_py.base.temp_folder import TempFolder
from plume_py.base.text import one_line
from plume_py.bench.points import Point

HOLDS, BROKEN, UNDECIDED, STOPPED = "holds", "broken", "undecided", "stopped"
# Exit codes of a check that said something about its history.
_ANSWERED = (0, 1, 3)
# Of a process that a signal has ended: SIGKILL, SIGXCPU.
_ENDED = (-9, -24)


@dataclass(frozen=True)
class Child:
    """A process that has ended: its code, seconds by the clock and of all its threads, peak memory, what it said."""

    code: int
    seconds: float
    cpu: float
    megabytes: float
    output: bytes
    errors: str
    stopped: bool = False  # by us

    @property
    def was_ended(self) -> bool:
        """By us, by a limit of CPU seconds, or for lack of memory."""
        return self.stopped or self.code in _ENDED


@dataclass(frozen=True)
class Measured:
    """One point: what the check answered and cost; ``stages`` in seconds, as the check itself tells them."""

    point: Point
    verdict: str
    seconds: float
    cpu: float
    megabytes: float
    stages: Mapping[str, float] = field(default_factory=dict)


def measure(
    points: Sequence[Point], runs: int, timeout: float | None, told: Callable[[int, Point, str], None]
) -> Iterator[Measured]:
    """Each point in turn; ``told`` learns its number and what is being done.

    Every check runs once before it counts: then its kernels are compiled, and the file is in memory.
    """
    with TempFolder() as scratch:
        path = Path(scratch.path) / "history.txt"
        there: tuple[Any, ...] | None = None
        for number, point in enumerate(points):
            if there != (point.shape, point.seed):
                told(number, point, "generating")
                write(point, path)
                there = (point.shape, point.seed)
            told(number, point, "checking")
            yield checked(point, path, runs, timeout)


def write(point: Point, path: Path) -> None:
    """The history of a point as a file."""
    done = child(module_command("plume_py", "generate", str(path), "--quiet", *point.generate), None)
    if done.code != 0:
        raise IsocheckError(_last_line(done))


def checked(
    point: Point, path: Path, runs: int, timeout: float | None, before: Sequence[str] = (), warm: bool = False
) -> Measured:
    """The check of the history in ``path``: the run with the median of the CPU seconds.

    ``before``: a program that starts it, as ``prlimit``; ``warm``: its kernels are known to be compiled.
    """
    command = [*before, *module_command("plume_py", "check", str(path), *point.check, "--format", "json", "--quiet")]
    first = None if warm else child(command, timeout)
    found = [first] if first is not None and first.was_ended else [child(command, timeout) for _ in range(runs)]
    middle = median_low(each.cpu for each in found)
    return _measured(point, next(each for each in found if each.cpu == middle))


def _measured(point: Point, done: Child) -> Measured:
    if done.was_ended:
        return Measured(point, STOPPED, done.seconds, done.cpu, done.megabytes)
    try:
        if done.code not in _ANSWERED:
            raise LookupError
        told = msgspec.json.decode(done.output)["results"][0]
        verdict = {True: HOLDS, False: BROKEN, None: UNDECIDED}[told["ok"]]
        stages = {name: float(seconds) for name, seconds in told["seconds"].items() if name != "check"}
        start = done.seconds - stages.get("load", 0.0) - float(told["seconds"]["check"])
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
        raise IsocheckError(_last_line(done)) from None
    return Measured(point, verdict, done.seconds, done.cpu, done.megabytes, {"start": max(start, 0.0), **stages})


def _last_line(done: Child) -> str:
    said = [line for line in done.errors.splitlines() if line.strip()]
    return one_line(said[-1].removeprefix("isocheck: ")) if said else f"a check ended with {done.code}"


def child(command: Sequence[str], timeout: float | None) -> Child:
    """Run a command to its end, or for ``timeout`` seconds."""
    # Where plain Python would do, kernels would be compiled at one point and not at the next.
    environment = {"ISOCHECK_COMPILE": "always", **os.environ}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment)
        over = threading.Event()
        with _ended_after(process, timeout, over):
            code, cpu, megabytes = _wait(process)
        seconds = time.perf_counter() - began
        for stream in (output, errors):
            stream.seek(0)
        said = errors.read().decode(errors="replace")
        return Child(code, seconds, cpu, megabytes, output.read(), said, over.is_set())


@contextmanager
def _ended_after(process: "subprocess.Popen[bytes]", timeout: float | None, over: threading.Event) -> Iterator[None]:
    """Inside, ``process`` is killed when its time is up (then ``over`` is set); in any case when this is left."""

    def end() -> None:
        over.set()
        process.kill()

    timer = threading.Timer(timeout, end) if timeout is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]") -> tuple[int, float, float]:
    """Its exit code, CPU seconds and megabytes; where the system does not count them, 0."""
    if not hasattr(os, "wait4"):
        return process.wait(), 0.0, 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
