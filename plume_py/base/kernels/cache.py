"""Files of compiled kernels, each with a digest: what is damaged is noticed, said, and built anew.

Machine code is believed as it is: half a file would end the program, a flipped bit may be part of the code, and code of
another kernel would take one thing for another. The digest is therefore that of the name, too. The folder is ours
alone, or what is unpickled could be anybody's.
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

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.base.limits import is_wall_time_limited
from plume_py.base.text import one_line

_DIGEST = 32
# Seconds between two looks whether another process has done what is waited for.
PAUSE = 0.02
# Seconds after which a process gives up waiting, for good: the other one may have been stopped (Ctrl-Z).
LONGEST_WAIT = 20.0

_gave_up: list[str] = []  # the folder whose lock was not released in time, if any


def read_checked(path: str) -> Any:
    """What is in a file; None if there is none, or none that can be believed."""
    try:
        content = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _note(path, error.strerror or str(error))
    if content[:_DIGEST] != _digest(path, content[_DIGEST:]):
        return _note(path, "it is damaged")
    return pickle.loads(memoryview(content)[_DIGEST:])  # noqa: S301 - only we can write to the folder


def save_checked(path: str, value: bytes) -> None:
    """Keep what was pickled, if that can be done; on a full disk, say, it will have to be compiled again."""
    with suppress(OSError, IsocheckError):
        _make_way(path)
        write_atomically(path, [_digest(path, value), value])


@contextmanager
def turn(folder: str) -> Iterator[None]:
    """Let one process at a time compile for this folder: the others then find its results.

    Under a limit on wall time, or after a wait that was too long, this process does not wait but compiles for itself:
    what other processes do must not decide a verdict.
    """
    try:
        import fcntl

        handle = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (ImportError, OSError):
        yield  # then both do it
        return
    try:
        give_up = time.monotonic() + LONGEST_WAIT
        while not (is_wall_time_limited() or _gave_up or _locked(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)):
            if time.monotonic() >= give_up:
                _gave_up.append(folder)
            time.sleep(PAUSE)
        yield
    finally:
        os.close(handle)


def _locked(handle: int, how: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    except OSError:  # not on every file system
        return True
    return True


def _make_way(path: str) -> None:
    """What is no file has no business here; a folder goes if there is nothing in it."""
    with suppress(OSError):
        kind = os.lstat(path).st_mode
        if stat.S_ISDIR(kind):
            os.rmdir(path)
        elif not stat.S_ISREG(kind):
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


def _note(path: str, problem: str) -> None:
    sys.stderr.write(one_line(f"isocheck: compiled kernel {path}: {problem}; it is built anew") + "\n")


# From folder.py: Where compiled kernels are kept: in a folder that is ours alone, because code is read from there.
# How entries are written: whoever changes that must not meet those of before.
_FORM = b"machine code with its environments, under its name"


def folder_of(*modules: ModuleType) -> Path | None:
    """Where the compiled kernels of ``modules`` may be kept; None if nowhere.

    Named after all sources and constants: compiled code has in it what it calls, and constants that were imported.
    """
    digest = hashlib.sha256(_FORM + b"".join(map(_identity, modules))).hexdigest()
    base = os.environ.get("NUMBA_CACHE_DIR")
    for folder in [Path(base)] if base else filter(_private, _folders()):
        own = folder / f"isocheck-{digest[:16]}"
        if _private(own):
            return own
    return None


def has_code(folder: Path) -> bool:
    """Has somebody compiled kernels of these modules before?"""
    try:
        return any(name.endswith((".code", ".nbc")) for name in os.listdir(folder))
    except OSError:  # somebody has removed it
        return False


def add_to_tally(folder: Path, work: int) -> int:
    """How much work was done without compiled kernels so far, with this; what cannot be written down is forgotten."""
    tally = folder / "tally"
    with suppress(OSError, ValueError):  # the first time there is none
        work += int(tally.read_text())
    with suppress(OSError, IsocheckError):
        write_atomically(str(tally), [str(work).encode()])
    return work


def _identity(module: ModuleType) -> bytes:
    """All that the compiled code of a kernel module depends on: its source, and the constants and records it imports.

    A record is known by the name of its class; which field stands where is part of the compiled code.
    """
    constants = {name: value for name, value in vars(module).items() if isinstance(value, int | float | tuple)}
    records = {name: value._fields for name, value in vars(module).items() if hasattr(value, "_fields")}
    return Path(module.__file__ or "").read_bytes() + repr(sorted((constants | records).items())).encode()


def _folders() -> Iterator[Path]:
    """Where compiled kernels may be kept, if the user did not say."""
    yield Path(__file__).parent / "__pycache__"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        yield Path(base) / "isocheck"
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        yield Path(home) / ".cache" / "isocheck"
    import tempfile  # with all that it brings along, for those who have no other place

    try:
        temporary = Path(tempfile.gettempdir())
    except OSError:
        return  # nothing at all can be written here, as in a container that is read-only
    if not _replaceable(temporary):
        yield temporary / f"isocheck-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _replaceable(folder: Path) -> bool:
    """Can others put something else in the place of what is ours in ``folder``?"""
    mode = folder.stat().st_mode
    return bool(mode & 0o022) and not mode & stat.S_ISVTX


def _private(folder: Path) -> bool:
    """Is it ours alone? (Code is read from there.) It is made if it does not exist; a link to it will not do."""
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
