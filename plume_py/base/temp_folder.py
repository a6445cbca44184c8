"""Temporary folders that are removed at the end of a run, or by the next run if their process was killed.

Each folder contains a file that its process locks. A process that creates a folder first removes all folders with
a file that no process has locked.
"""

import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from types import TracebackType

from plume_py.base.atomic_files import is_at, lock, try_lock
from plume_py.base.errors import IsocheckError

_NAME = re.compile(r"isocheck-run-[0-9a-f]{16}")
_LOCK_FILE = ".held"


class TempFolder:
    """A private folder of this process; a context manager that removes it unless ``keep`` was called."""

    def __init__(self) -> None:
        try:
            remove_abandoned()
            self.path, self._handle = _create()
        except OSError as error:
            raise IsocheckError(f"no place for temporary files (TMPDIR): {error.strerror}") from None

    def __enter__(self) -> "TempFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def keep(self) -> None:
        """Keep the folder: neither this run nor a later one removes it."""
        with suppress(OSError):
            os.unlink(os.path.join(self.path, _LOCK_FILE))
        self._unlock()

    def remove(self) -> None:
        """Remove the folder with its content."""
        if self._handle >= 0:
            remove_folder(self.path)
            self._unlock()

    def _unlock(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def remove_abandoned() -> None:
    """Remove folders that killed processes left: folders of this user with our form of name and no lock."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    if os.lstat(path).st_uid != os.geteuid():
        return
    lock_file = os.path.join(path, _LOCK_FILE)
    try:
        handle = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        os.rmdir(path)  # fails unless it is empty: a folder with content was kept by ``keep``
        return
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle) and is_at(handle, lock_file):
            remove_folder(path)
    finally:
        os.close(handle)


def _create() -> tuple[str, int]:
    while True:
        path = os.path.join(tempfile.gettempdir(), f"isocheck-run-{os.urandom(8).hex()}")
        os.mkdir(path, 0o700)
        lock_file = os.path.join(path, _LOCK_FILE)
        try:
            handle = os.open(lock_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # it looked abandoned, and another process removed it
            continue
        except OSError:
            os.rmdir(path)
            raise
        lock(handle)
        if is_at(handle, lock_file):
            return path, handle
        os.close(handle)


def remove_folder(path: str) -> None:
    """Remove a folder, its lock file last, so that a later run finds it again if this process is killed."""
    with suppress(OSError):
        with os.scandir(path) as entries:
            others = [entry for entry in entries if entry.name != _LOCK_FILE]
        for entry in others:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
