"""Kernels: one source, run by Python on small inputs and compiled by numba on large ones.

A kernel module holds plain functions over numpy arrays and records of them (named tuples), and nothing else.
``prepare`` swaps its functions for compiled ones, in place, once the work at hand is worth numba's start-up (about half
a second, mostly its import). Callers therefore always go through the module (``text_kernels.parse(...)``), never
through an imported name.
"""

import hashlib
import mmap
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from plume_py.base.limits import check_enforced

# Loop steps that plain Python gets through in about the time that numba takes to start.
WORTH_COMPILING = 1_000_000
# The same once numba is there and only the kernels at hand have to be fetched from its cache.
WORTH_FETCHING = 50_000

# How entries of the cache are written: whoever changes that must not meet those of before.
_FORM = b"digest and pickle"

_compiled: set[str] = set()
_done: dict[str, int] = {}  # loop steps done by plain Python so far, by module


def prepare(work: int, *modules: ModuleType) -> None:
    """Compile the kernels of ``modules`` if ``work``, counted in loop steps, is worth it.

    Work adds up: many small histories in one process are worth it, too.
    """
    for module in modules:
        if worth_compiling(work, module.__name__) and module.__name__ not in _compiled:
            _compile(module)


def worth_compiling(work: int, name: str) -> bool:
    """Has ``name`` had, with this, so much work that compiled kernels pay?"""
    mode = os.environ.get("ISOCHECK_COMPILE", "auto")
    _done[name] = _done.get(name, 0) + work
    enough = WORTH_FETCHING if _compiled else WORTH_COMPILING
    return mode == "always" or (mode != "never" and _done[name] >= enough)


def byte_buffer(content: bytes | mmap.mmap, module: ModuleType) -> Any:
    """``content`` in the form that the kernels of ``module`` index fastest."""
    if module.__name__ in _compiled:
        import numpy as np

        return np.frombuffer(content, np.uint8)
    return bytes(content)


def release(*modules: ModuleType) -> None:
    """Put the plain functions back (for tests that run a kernel both ways)."""
    for module in modules:
        for name, value in list(vars(module).items()):
            plain = getattr(value, "py_func", None)
            if plain is not None:
                setattr(module, name, plain)
        _compiled.discard(module.__name__)
        _done.pop(module.__name__, None)


def _compile(module: ModuleType) -> None:
    """Swap the functions of a kernel module, and of those it calls, for compiled ones."""
    used = _kernels_used(module)
    for other in used:
        if other.__name__ not in _compiled:
            _compile(other)
    compiled = compiler(module, *used)
    for name, value in list(vars(module).items()):
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            setattr(module, name, compiled(value))
    _compiled.add(module.__name__)


def _kernels_used(module: ModuleType) -> list[ModuleType]:
    """The kernel modules that ``module`` uses, and those that they use."""
    used: list[ModuleType] = []
    for value in vars(module).values():
        if isinstance(value, ModuleType) and value.__name__.endswith("_kernels"):
            used += [other for other in (value, *_kernels_used(value)) if other not in used]
    return used


def compiler(*modules: ModuleType) -> Callable[[FunctionType], Any]:
    """What compiles the functions of these modules: as we always do, and keeping the result where it can be kept."""
    numba = load_numba()
    folder = _cache_folder(modules)

    def compiled(function: FunctionType) -> Any:
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
        kernel._compile_for_args = partial(_compile_in_time, kernel._compile_for_args)
        if folder is not None:
            from plume_py.base.kernel_cache import CheckedCache

            numba.config.CACHE_DIR = str(folder)
            kernel._cache = CheckedCache(function)
        return kernel

    return compiled


def _compile_in_time(compile_for: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What numba does when a kernel meets arguments of new types, unless there is no time left to begin with it."""
    check_enforced()
    return compile_for(*arguments, **named)


def load_numba() -> Any:
    """Import numba, which must not be told anything by the folder at hand: it looks for settings there."""
    if "numba" not in sys.modules:
        yaml = sys.modules.get("yaml")
        sys.modules["yaml"] = None  # type: ignore[assignment]  # then it cannot read them
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it would like to
                import numba
        finally:
            del sys.modules["yaml"]
            if yaml is not None:
                sys.modules["yaml"] = yaml
        numba.config._config_fname = ""  # nor later on
    return sys.modules["numba"]


def _cache_folder(modules: tuple[ModuleType, ...]) -> Path | None:
    """Where numba may keep the compiled kernels of ``modules``; None if nowhere.

    Left alone, numba gives up with an exception where neither the package nor a home directory can be written, and it
    does not notice when a kernel of another module changes, or a constant that was imported and is part of the compiled
    code by now. So the folder is ours, and named after all sources and constants.
    """
    digest = hashlib.sha256(_FORM + b"".join(map(_identity, modules))).hexdigest()
    base = os.environ.get("NUMBA_CACHE_DIR")
    candidates = [Path(base)] if base else [folder for folder in _folders() if _private(folder)]
    for folder in candidates:
        own = folder / f"isocheck-{digest[:16]}"
        if _writable(folder) and _private(own):
            return own
    return None


def _identity(module: ModuleType) -> bytes:
    """All that the compiled code of a kernel module depends on: its source, and the constants and records it imports.

    Numba knows a record by the name of its class; which field stands where is part of the compiled code.
    """
    constants = {name: value for name, value in vars(module).items() if isinstance(value, int | float | tuple)}
    records = {name: value._fields for name, value in vars(module).items() if hasattr(value, "_fields")}
    return Path(module.__file__ or "").read_bytes() + repr(sorted((constants | records).items())).encode()


def _folders() -> list[Path]:
    """Where compiled kernels may be kept, if the user did not say."""
    folders = [Path(__file__).parent / "__pycache__"]
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        folders.append(Path(base) / "isocheck")
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        folders.append(Path(home) / ".cache" / "isocheck")
    temporary = Path(tempfile.gettempdir())
    if not _replaceable(temporary):
        folders.append(temporary / f"isocheck-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    return folders


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


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
