"""Writing files so that nobody ever sees half of one.

What is a regular file, or is not there yet, is written aside and put into its place when it is complete. Links are
followed: their target is replaced, not they. Devices, pipes and descriptors that are already open are written through;
they cannot be replaced, and must not be.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from plume_py.base.errors import IsocheckError
from plume_py.base.leftovers import AtomicFile

_STDOUT = 1
# As many links as Linux follows.
_LINKS = 40


def write_atomically(path: str, chunks: Iterable[bytes], *, sync: bool = False) -> None:
    """Write ``chunks`` to ``path``, whole or not at all where that can be; "-" is standard output.

    ``sync``: bring it to the disk before, so that not even a power failure can leave less than there was.
    """
    if path == "-":
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    try:
        if is_stream(path):
            _write_through(path, chunks)
        else:
            _replace(path, chunks, sync)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_standard_output(path):
            raise  # as with "-": whoever read our output has had enough of it
        raise IsocheckError(f"cannot write {path}: {error.strerror}") from None


def is_standard_output(path: str) -> bool:
    """Does it go where results are printed: "-", /dev/stdout?"""
    return path == "-" or _descriptor(path) == _STDOUT


def is_stream(path: str) -> bool:
    """Can ``path`` only be written through: standard output, a device, a pipe, a descriptor that is open?"""
    if path == "-" or _descriptor(path) is not None:
        return True
    try:
        info = os.stat(path)
    except OSError:
        return False
    if stat.S_ISREG(info.st_mode):  # of another process, /proc names files that are nowhere else any more
        target = os.path.realpath(path)
        return not (os.path.exists(target) and os.path.samestat(info, os.stat(target)))
    return not stat.S_ISDIR(info.st_mode)


def open_stream(path: str) -> int:
    """A descriptor to write through, to what ``is_stream`` says can only be written so."""
    for stream in (sys.stdout, sys.stderr):  # what was said before comes before
        stream.flush()
    own = _STDOUT if path == "-" else _descriptor(path)
    if own is not None:
        return os.dup(own)
    # Nothing is made, nothing is cut off: should a file have taken its place meanwhile, it is not written to.
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode) and os.path.isfile(os.path.realpath(path)):
        os.close(handle)
        raise OSError(errno.EAGAIN, "it was a device or a pipe, and is a file now")
    return handle


def _write_through(path: str, chunks: Iterable[bytes]) -> None:
    with os.fdopen(open_stream(path), "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def _replace(path: str, chunks: Iterable[bytes], sync: bool) -> None:
    with suppress(FileNotFoundError):  # a link to what is not there yet will do; one that leads in a circle will not
        os.stat(path)
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    with AtomicFile(target) as aside:
        for chunk in chunks:
            aside.file.write(chunk)
        aside.put_in_place(sync=sync)


def _descriptor(path: str) -> int | None:
    """Which open descriptor of this process ``path`` names, as /dev/stdout and /dev/fd/3 do, and links to them."""
    for _ in range(_LINKS):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/[0-9]+)?/fd", folder) and re.fullmatch("[0-9]{1,9}", name):
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:  # no link
            return None
    return None
