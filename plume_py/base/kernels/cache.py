"""Store compiled kernels in files that only this user can write, each with a digest.

``dispatch`` calls this module. The folder of a kernel is named after the sources and constants that its code depends
on. Machine code is executed as it is read: a truncated file would crash the program, and code of another kernel would
misread its arguments. The digest therefore covers content and file name. A file with a wrong digest is reported and
compiled again.
"""

import hashlib
import os
import pickle
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from plume_py.base.atomic_files import locked, write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.base.limits import is_wall_time_limited
from plume_py.base.text import one_line

_DIGEST = 32  # bytes
# The format of the files; change this text with the format, so that older files are not read.
_FORMAT = b"machine code with its environments, under its name"

# Seconds between two attempts to get the lock of a folder.
PAUSE = 0.02
# Seconds after which this process stops waiting for good: the holder of the lock may have been stopped (Ctrl-Z).
LONGEST_WAIT = 20.0

_gave_up: list[str] = []  # the folder with a lock that was not released in time, if any


def cache_folder(*modules: ModuleType) -> Path | None:
    """Return the folder for compiled kernels of ``modules``, and create it; None if no folder is private.

    The name is a digest of all sources and constants, because compiled code contains the functions that it calls and
    the constants that were imported.
    """
    digest = hashlib.sha256(_FORMAT + b"".join(map(_identity, modules))).hexdigest()
    base = os.environ.get("NUMBA_CACHE_DIR")
    for folder in [Path(base)] if base else filter(_private, _folders()):
        own = folder / f"isocheck-{digest[:16]}"
        if _private(own):
            return own
    return None


def has_code(folder: Path) -> bool:
    """Return whether the folder holds compiled kernels."""
    try:
        return any(name.endswith((".code", ".nbc")) for name in os.listdir(folder))
    except OSError:  # the folder was removed
        return False


def add_to_tally(folder: Path, work: int) -> int:
    """Add ``work`` to the work done without compiled kernels so far, and return the sum; a write error is ignored."""
    tally = folder / "tally"
    with suppress(OSError, ValueError):  # the first time the file is missing
        work += int(tally.read_text())
    with suppress(OSError, IsocheckError):
        write_atomically(str(tally), [str(work).encode()])
    return work


def _identity(module: ModuleType) -> bytes:
    """Return all that the code of a kernel module depends on: its source, and the constants and records it imports.

    A record counts by the name of its class and its fields, because the position of a field is part of compiled code.
    """
    constants = {name: value for name, value in vars(module).items() if isinstance(value, int | float | tuple)}
    records = {name: value._fields for name, value in vars(module).items() if hasattr(value, "_fields")}
    return Path(module.__file__ or "").read_bytes() + repr(sorted((constants | records).items())).encode()


def _folders() -> Iterator[Path]:
    """Yield the folders to try if the user named none: the package, the user's cache, the temporary folder."""
    yield Path(__file__).parent / "__pycache__"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        yield Path(base) / "isocheck"
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        yield Path(home) / ".cache" / "isocheck"
    import tempfile  # it imports a lot, so only if all others failed

    try:
        temporary = Path(tempfile.gettempdir())
    except OSError:
        return  # no folder can be written, as in a read-only container
    if not _replaceable(temporary):
        yield temporary / f"isocheck-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _replaceable(folder: Path) -> bool:
    """Return whether other users can replace files of this user in ``folder``."""
    mode = folder.stat().st_mode
    return bool(mode & 0o022) and not mode & stat.S_ISVTX


def _private(folder: Path) -> bool:
    """Return whether only this user can write to ``folder``, which is created if it does not exist; not for a link."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if not hasattr(os, "geteuid"):
            return True
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            info = os.fstat(handle)
        finally:
            os.close(handle)
    except OSError:
        return False
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022


def read_checked(path: str) -> Any:
    """Return the object in a file; None if the file is missing or its digest is wrong."""
    try:
        content = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _report(path, error.strerror or str(error))
    if content[:_DIGEST] != _digest(path, content[_DIGEST:]):
        return _report(path, "it is damaged")
    return pickle.loads(memoryview(content)[_DIGEST:])  # noqa: S301 - only we can write to the folder


def save_checked(path: str, value: bytes) -> None:
    """Write a pickled object with its digest; after an error, as on a full disk, it is compiled again next time."""
    with suppress(OSError, IsocheckError):
        _remove_unless_file(path)
        write_atomically(path, [_digest(path, value), value])


@contextmanager
def compile_lock(folder: str) -> Iterator[None]:
    """Let one process at a time compile for this folder, so that the others find its results.

    A process with a limit on wall time does not wait, nor one that has waited too long before: both compile without the
    lock. Other processes must not decide a verdict.
    """
    try:
        handle = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield  # several processes may compile the same kernel
        return
    try:
        give_up = time.monotonic() + LONGEST_WAIT
        while not (is_wall_time_limited() or _gave_up or locked(handle)):
            if time.monotonic() >= give_up:
                _gave_up.append(folder)
            time.sleep(PAUSE)
        yield
    finally:
        os.close(handle)


def _remove_unless_file(path: str) -> None:
    """Remove a link, device or empty folder that is in the place of a cache file."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            os.rmdir(path)
        elif not stat.S_ISREG(mode):
            os.unlink(path)


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no file")
        return file.read()


def _digest(path: str, content: bytes) -> bytes:
    name = blake2b(os.fsencode(os.path.basename(path))).digest()
    return blake2b(content, digest_size=_DIGEST, key=name).digest()


def _report(path: str, problem: str) -> None:
    sys.stderr.write(one_line(f"isocheck: compiled kernel {path}: {problem}; it is built anew") + "\n")
