"""Write files atomically: a reader sees the old content or the new one, never a part.

A regular file, or a file that does not exist yet, is written as a new file that then replaces it. Links are followed
and their target is replaced. Devices, pipes and open descriptors cannot be replaced and are written directly.

On Linux the new file has no name until it is complete (``O_TMPFILE``), so a killed writer leaves nothing. Elsewhere it
has a unique name, and its writer holds a lock on it. The next writer to the same folder removes such files that no
process has locked.
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

try:
    import fcntl
except ImportError:  # without locks, no file counts as abandoned
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None

_STDOUT = 1
# The number of links that Linux follows.
_LINKS = 40
_NAME = re.compile(r"\.isocheck-[0-9a-f]{16}\.tmp")

_cleaned: set[str] = set()  # folders from which this process has removed abandoned files


def write_atomically(path: str, chunks: Iterable[bytes], *, sync: bool = False) -> None:
    """Write ``chunks`` to ``path``, atomically if it is a regular file; "-" is standard output.

    ``sync``: write to the disk before the old file is replaced, so that a power failure cannot lose both.
    """
    if path == "-":
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    try:
        if is_stream(path):
            with os.fdopen(open_stream(path), "wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)
        else:
            _replace(path, chunks, sync)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_standard_output(path):
            raise  # as with "-": the reader of our output has left
        raise IsocheckError(f"cannot write {path}: {error.strerror}") from None


def is_standard_output(path: str) -> bool:
    """Return whether ``path`` names standard output: "-", /dev/stdout."""
    return path == "-" or _descriptor(path) == _STDOUT


def is_stream(path: str) -> bool:
    """Return whether ``path`` must be written directly: standard output, a device, a pipe, an open descriptor."""
    if path == "-" or _descriptor(path) is not None:
        return True
    try:
        info = os.stat(path)
    except OSError:
        return False
    if stat.S_ISREG(info.st_mode):  # /proc also names files of other processes that were deleted
        target = os.path.realpath(path)
        return not (os.path.exists(target) and os.path.samestat(info, os.stat(target)))
    return not stat.S_ISDIR(info.st_mode)


def open_stream(path: str) -> int:
    """Return a descriptor for writing to ``path``, for which ``is_stream`` is true."""
    for stream in (sys.stdout, sys.stderr):  # earlier output must come first
        stream.flush()
    own = _STDOUT if path == "-" else _descriptor(path)
    if own is not None:
        return os.dup(own)
    # Neither create nor truncate: if a regular file has replaced the device since, it must not be written.
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode) and os.path.isfile(os.path.realpath(path)):
        os.close(handle)
        raise OSError(errno.EAGAIN, "it was a device or a pipe, and is a file now")
    return handle


def _replace(path: str, chunks: Iterable[bytes], sync: bool) -> None:
    with suppress(FileNotFoundError):  # a link to a missing file is fine; a cycle of links raises another OSError
        os.stat(path)
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    with AtomicFile(target) as new:
        for chunk in chunks:
            new.file.write(chunk)
        new.put_in_place(sync=sync)


def _descriptor(path: str) -> int | None:
    """Return the descriptor of this process that ``path`` names, as /dev/stdout, /dev/fd/3 and links to them do."""
    for _ in range(_LINKS):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/[0-9]+)?/fd", folder) and re.fullmatch("[0-9]{1,9}", name):
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:  # not a link
            return None
    return None


class AtomicFile:
    """A new file that replaces ``target`` once it is complete; a context manager.

    It has the mode of the file that it replaces, and also its owner if this process may change owners.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._folder = os.path.dirname(target) or "."
        remove_leftovers(self._folder)
        self._old = _stat(target)
        self._name = ""  # empty while the file has no name
        self.file: BinaryIO = os.fdopen(self._open(), "wb")

    def __enter__(self) -> "AtomicFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.file.close()
        finally:
            self.discard()

    def put_in_place(self, *, sync: bool = False) -> None:
        """Replace the target by what is written so far; with ``sync``, write it to the disk first. It stays open."""
        self.file.flush()
        handle = self.file.fileno()
        if self._old is not None:
            self._copy_owner_and_mode(self._old)
        if sync:
            os.fsync(handle)
        if not self._name:
            name = _new_name(self._folder)
            # os.link follows the link in /proc only if a descriptor of a folder is given, here any.
            os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle)
            self._name = name
        os.replace(self._name, self._target)
        self._name = ""

    def discard(self) -> None:
        """Remove the file unless it has replaced its target."""
        if self._name:
            with suppress(OSError):
                os.unlink(self._name)
            self._name = ""

    def _open(self) -> int:
        """Create the file. If it will replace a file, only its owner can read it until then."""
        mode = 0o666 if self._old is None else 0o600
        with suppress(OSError, AttributeError):
            handle = os.open(self._folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
            if os.path.exists(f"/proc/self/fd/{handle}"):
                lock(handle)
                return handle
            os.close(handle)
        while True:
            name = _new_name(self._folder)
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            lock(handle)
            # Before the lock it looked abandoned, and another process may have removed it.
            if is_at(handle, name):
                self._name = name
                return handle
            os.close(handle)

    def _copy_owner_and_mode(self, old: os.stat_result) -> None:
        handle = self.file.fileno()
        if hasattr(os, "fchown"):
            for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
                with suppress(OSError):
                    os.fchown(handle, *owner)
                    break
        if hasattr(os, "fchmod"):
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def remove_leftovers(folder: str) -> None:
    """Remove files that killed writers left in ``folder``: files of this user with our form of name and no lock."""
    folder = os.path.realpath(folder)
    if fcntl is None or folder in _cleaned:
        return
    _cleaned.add(folder)
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
    """Lock an open file; return False if another process has locked it, or if the system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def locked(handle: int) -> bool:
    """Lock an open file until it is closed; return False only if another process has locked it.

    Unlike ``try_lock``, it returns True on systems and file systems without locks.
    """
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def lock(handle: int) -> None:
    """Lock an open file, and wait for the lock: a process that looks for leftovers holds it for an instant only."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)


def is_at(handle: int, path: str) -> bool:
    """Return whether ``path`` is the name of the open file."""
    found = _stat(path)
    return found is not None and os.path.samestat(found, os.fstat(handle))


def _new_name(folder: str) -> str:
    """Return a new name in ``folder``, short because the length of names is limited."""
    return os.path.join(folder, f".isocheck-{os.urandom(8).hex()}.tmp")


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
