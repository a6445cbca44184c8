"""Where compiled kernels are kept: in a folder that is ours alone, because code is read from there."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError

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
