"""Work in a process of its own, which can be ended at any moment: a solver deep in thought looks at no clock.

The child is a fork, so that it has all that its parent has, also functions of a user's. What it tells on the way comes
through a pipe, and so does its result; the parent looks at time and memory meanwhile, and at what is to be shown.
"""

import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from plume_py.base.errors import LimitError
from plume_py.base.limits import GRACE_MEMORY, Limits, megabytes
from plume_py.base.memory import resident

T = TypeVar("T")
Tell = Callable[[Any], None]

# Who asks by himself ends in good order; who does not is ended so many seconds later.
GRACE = 0.5
# Seconds between two looks.
LOOK = 0.2
_HEAD = 8  # bytes that say how long a message is


def run_in_child(work: Callable[[Tell], T], limits: Limits, told: Tell, look: Callable[[], object] = bool) -> T:
    """What ``work`` returns; ``told`` gets what it tells, and ``look`` is called again and again.

    LimitError when it has to be ended. What is raised in there is raised here. Without forks, it is done right here.
    """
    if not hasattr(os, "fork"):
        return work(told)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(work, writer)
    os.close(writer)
    try:
        for kind, content in _messages(reader, child, limits, look):
            if kind == "told":
                told(content)
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


def _run(work: Callable[[Tell], Any], writer: int) -> NoReturn:
    """The life of the child: Ctrl-C is the parent's to answer, and it does not outlive it."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _die_with_parent()
        try:
            _send(writer, ("result", work(lambda content: _send(writer, ("told", content)))))
        except BaseException as error:
            _send(writer, ("raised", error))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    """On Linux the system sees to it; elsewhere the pipe breaks with the next message."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _send(writer: int, message: object) -> None:
    data = pickle.dumps(message)
    data = len(data).to_bytes(_HEAD, "big") + data
    while data:
        data = data[os.write(writer, data) :]


def _messages(reader: int, child: int, limits: Limits, look: Callable[[], object]) -> Iterator[tuple[str, Any]]:
    """What comes from the child, until it is gone. LimitError when a limit is reached and it says nothing."""
    waiting = b""
    while True:
        ready, _, _ = select.select([reader], [], [], LOOK)
        look()
        if ready:
            more = os.read(reader, 1 << 16)
            if not more:
                return
            waiting += more
            while len(waiting) >= _HEAD and len(waiting) >= _HEAD + (size := int.from_bytes(waiting[:_HEAD], "big")):
                yield pickle.loads(waiting[_HEAD : _HEAD + size])  # noqa: S301 - of our own child
                waiting = waiting[_HEAD + size :]
        left = limits.seconds_left
        if left is not None and left + GRACE <= 0:
            raise LimitError(f"stopped after {limits.timeout:g} s")
        if limits.max_memory is not None and resident(child) > limits.max_memory * GRACE_MEMORY:
            raise LimitError(f"stopped at {megabytes(limits.max_memory)} of memory")
