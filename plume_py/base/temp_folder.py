"""Folders for the time of a run, in the folder for temporary files; none outlives the next run.

Each has a file in it that its process holds a lock on. Whoever makes such a folder next removes those that nobody holds
any more, because their process was killed.
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
_HELD = ".held"


class TempFolder:
    """A folder for this process alone; a context manager that removes it, unless it is to be kept."""

    def __init__(self) -> None:
        try:
            remove_abandoned()
            self.path, self._handle = _make()
        except OSError as error:
            raise IsocheckError(f"no place for temporary files (TMPDIR): {error.strerror}") from None

    def __enter__(self) -> "TempFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def keep(self) -> None:
        """From now on it is not ours to remove."""
        with suppress(OSError):
            os.unlink(os.path.join(self.path, _HELD))
        self._let_go()

    def remove(self) -> None:
        """It goes, with all that is in it."""
        if self._handle >= 0:
            remove_folder(self.path)
            self._let_go()

    def _let_go(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def remove_abandoned() -> None:
    """Remove the folders of killed processes: known by name, by owner, and by nobody holding them."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    if os.lstat(path).st_uid != os.geteuid():
        return
    held = os.path.join(path, _HELD)
    try:
        handle = os.open(held, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        os.rmdir(path)  # only if there is nothing in it: else somebody wanted to keep it
        return
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle) and is_at(handle, held):
            remove_folder(path)
    finally:
        os.close(handle)


def _make() -> tuple[str, int]:
    while True:
        path = os.path.join(tempfile.gettempdir(), f"isocheck-run-{os.urandom(8).hex()}")
        os.mkdir(path, 0o700)
        held = os.path.join(path, _HELD)
        try:
            handle = os.open(held, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # it looked abandoned, and was taken away
            continue
        except OSError:
            os.rmdir(path)
            raise
        lock(handle)
        if is_at(handle, held):
            return path, handle
        os.close(handle)


def remove_folder(path: str) -> None:
    """What says that it is ours goes last: should we be killed meanwhile, the rest is found again."""
    with suppress(OSError):
        with os.scandir(path) as entries:
            others = [entry for entry in entries if entry.name != _HELD]
        for entry in others:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
