"""Run work in a child process that can be stopped at any moment, because compiled code never looks at a clock.

There are two ways, which differ in what the child inherits:

- ``run_in_child`` forks. The child has all objects of its parent, also functions from a user's file, and sends objects
  back. The search commands (``synth``, ``relate``, ``hierarchy``) use it.
- ``run_command`` starts a program, waits for its end and measures it. ``bench``, ``matrix`` and ``warm-up`` use it.

The workers of ``scan`` are a third kind (``scan/supervisor.py``): each serves many tasks, with limits per task.
"""

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from plume_py.base.errors import LimitError
from plume_py.base.limits import GRACE_MEMORY, Limits, megabytes
from plume_py.base.memory import resident

T = TypeVar("T")
Send = Callable[[Any], None]

# Work that checks its limits ends first, with a better message. The child is killed this many seconds later.
GRACE = 0.5
# Seconds between two checks of the limits.
POLL_SECONDS = 0.2
_LENGTH_BYTES = 8  # before each message: its length

# Ctrl-C reaches a command as well. It gets this many seconds to end in good order.
INTERRUPT_SECONDS = 0.25
# The exit codes of a process that a limit of CPU seconds or a lack of memory has ended: SIGKILL, SIGXCPU.
_KILLED = (-9, -24)


def run_in_child(
    work: Callable[[Send], T], limits: Limits, on_message: Send, on_poll: Callable[[], object] = bool
) -> T:
    """Return the result of ``work``, which runs in a fork of this process; raise here what it raises there.

    ``work`` gets a function; ``on_message`` gets each object that ``work`` passes to that function. ``on_poll`` is
    called several times a second. Raise LimitError if a limit is reached. Without ``os.fork`` the work runs right here.
    """
    if not hasattr(os, "fork"):
        return work(on_message)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(work, writer)
    os.close(writer)
    try:
        for kind, content in _messages(reader, child, limits, on_poll):
            if kind == "message":
                on_message(content)
            elif kind == "raised":
                raise content
            else:
                return content  # type: ignore[no-any-return]
        raise LimitError("the process that searched was ended from outside, perhaps for lack of memory")
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _run(work: Callable[[Send], Any], writer: int) -> NoReturn:
    """Run the work in the child, then exit.

    The child ignores Ctrl-C, and on Linux the kernel kills it when its parent dies.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _die_with_parent()
        try:
            _send(writer, ("result", work(lambda content: _send(writer, ("message", content)))))
        except BaseException as error:
            _send(writer, ("raised", error))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies. Elsewhere the next message fails on the broken pipe."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _send(writer: int, message: object) -> None:
    data = pickle.dumps(message)
    data = len(data).to_bytes(_LENGTH_BYTES, "big") + data
    while data:
        data = data[os.write(writer, data) :]


def _messages(reader: int, child: int, limits: Limits, on_poll: Callable[[], object]) -> Iterator[tuple[str, Any]]:
    """Yield the messages of the child until it is gone; raise LimitError when it exceeds a limit."""
    buffer = b""
    while True:
        ready, _, _ = select.select([reader], [], [], POLL_SECONDS)
        on_poll()
        if ready:
            more = os.read(reader, 1 << 16)
            if not more:
                return
            buffer += more
            while len(buffer) >= _LENGTH_BYTES:
                end = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES], "big")
                if len(buffer) < end:
                    break
                yield pickle.loads(buffer[_LENGTH_BYTES:end])  # noqa: S301 - of our own child
                buffer = buffer[end:]
        left = limits.seconds_left
        if left is not None and left + GRACE <= 0:
            raise LimitError(f"stopped after {limits.timeout:g} s")
        if limits.max_memory is not None and resident(child) > limits.max_memory * GRACE_MEMORY:
            raise LimitError(f"stopped at {megabytes(limits.max_memory)} of memory")


@dataclass(frozen=True)
class FinishedCommand:
    """A command that has ended: exit code, wall and CPU seconds, peak memory, and its two output streams."""

    code: int
    seconds: float
    cpu: float  # seconds of all its threads
    megabytes: float  # at the peak
    output: str
    errors: str
    is_timed_out: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether its timeout, a limit of CPU seconds or a lack of memory ended it."""
        return self.is_timed_out or self.code in _KILLED

    @property
    def last_error(self) -> str:
        """The last line on its standard error that is not blank, or ""."""
        return next((line for line in reversed(self.errors.splitlines()) if line.strip()), "")


def run_command(
    command: Sequence[str],
    timeout: float | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> FinishedCommand:
    """Run a command to its end, or kill it after ``timeout`` seconds; its standard input is empty."""
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        tempfile.TemporaryFile("w+", errors="replace") as err,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=err, env=environment, cwd=folder
        )
        timed_out = threading.Event()
        with _killed_after(process, timeout, timed_out):
            code, cpu, peak = _wait(process)
        seconds = time.perf_counter() - began
        output.seek(0)
        err.seek(0)
        return FinishedCommand(code, seconds, cpu, peak, output.read(), err.read(), timed_out.is_set())


@contextmanager
def _killed_after(
    process: "subprocess.Popen[bytes]", timeout: float | None, timed_out: threading.Event
) -> Iterator[None]:
    """Inside, kill the process after ``timeout`` seconds and set ``timed_out``; on the way out, kill it if it runs."""

    def kill() -> None:
        timed_out.set()
        process.kill()

    timer = threading.Timer(timeout, kill) if timeout is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPT_SECONDS)
        raise
    finally:
        if timer is not None:
            timer.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]") -> tuple[int, float, float]:
    """Return the exit code, CPU seconds and peak megabytes; the last two are 0 where the system cannot report them."""
    if not hasattr(os, "wait4"):
        return process.wait(), 0.0, 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
