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
from types import TracebackType
from typing import BinaryIO

from plume_py.base.errors import IsocheckError

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


# From leftovers.py: Files on their way into place, and what is left of them when their writer is killed. Where the system can, a new file has no name until it is complete, so that there is nothing to leave. Elsewhere it has a name that nobody else uses, and its writer holds a lock on it. Whoever writes to the same folder next removes those that nobody holds any more.
try:
    import fcntl
except ImportError:  # no locks here: then nothing is ever taken for a leftover
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\.isocheck-[0-9a-f]{16}\.tmp")
_looked_at: set[str] = set()  # folders that need no second look by this process


class AtomicFile:
    """A new file that takes the place of ``target`` once it is complete; a context manager.

    It has the mode of what it replaces, and its owner where we may give files away.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._folder = os.path.dirname(target) or "."
        remove_leftovers(self._folder)
        self._old = _stat(target)
        self._name = ""  # none as long as there is nothing to be found
        self.file: BinaryIO = os.fdopen(self._open(), "wb")

    def __enter__(self) -> "AtomicFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.file.close()
        finally:
            self.discard()

    def put_in_place(self, *, sync: bool = False) -> None:
        """It is complete. ``sync``: bring it to the disk first. It stays open for more."""
        self.file.flush()
        handle = self.file.fileno()
        if self._old is not None:
            self._take_after(self._old)
        if sync:
            os.fsync(handle)
        if not self._name:
            name = _fresh(self._folder)
            # With a descriptor of a folder, even one that does not matter, the link in /proc is followed.
            os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle)
            self._name = name
        os.replace(self._name, self._target)
        self._name = ""

    def discard(self) -> None:
        """Whatever has not been put in place goes."""
        if self._name:
            with suppress(OSError):
                os.unlink(self._name)
            self._name = ""

    def _open(self) -> int:
        """A new file; what replaces a file that others may not read is not for them, either."""
        mode = 0o666 if self._old is None else 0o600
        with suppress(OSError, AttributeError):
            handle = os.open(self._folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
            if os.path.exists(f"/proc/self/fd/{handle}"):
                lock(handle)
                return handle
            os.close(handle)
        while True:
            name = _fresh(self._folder)
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            lock(handle)
            # Until then it looked abandoned, and may have been taken away.
            if is_at(handle, name):
                self._name = name
                return handle
            os.close(handle)

    def _take_after(self, old: os.stat_result) -> None:
        handle = self.file.fileno()
        if hasattr(os, "fchown"):
            for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
                with suppress(OSError):
                    os.fchown(handle, *owner)
                    break
        if hasattr(os, "fchmod"):
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def remove_leftovers(folder: str) -> None:
    """Remove what killed processes left in ``folder``: known by its name, by its owner, and by nobody holding it."""
    folder = os.path.realpath(folder)
    if fcntl is None or folder in _looked_at:
        return
    _looked_at.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = os.fstat(handle)
            is_ours = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1
            if is_ours and try_lock(handle) and is_at(handle, path):
                os.unlink(path)
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool:
    """Hold what nobody else does; False if somebody does, or if that cannot be known."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


HAS_LOCKS = fcntl is not None


def locked(handle: int) -> bool:
    """Hold the file for as long as it is open; False if another process does (where there are no locks, none can)."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def lock(handle: int) -> None:
    """Whoever looks for leftovers has it for an instant at most; where there are no locks, nobody looks."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)


def is_at(handle: int, path: str) -> bool:
    """Is the open file the one that is called ``path``?"""
    found = _stat(path)
    return found is not None and os.path.samestat(found, os.fstat(handle))


def _fresh(folder: str) -> str:
    """Short, whatever the file is called: names have a limit."""
    return os.path.join(folder, f".isocheck-{os.urandom(8).hex()}.tmp")


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
