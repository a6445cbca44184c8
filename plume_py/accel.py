"""Kernels: one source, run by Python on small inputs and compiled by numba on large ones.

A kernel module holds plain functions over numpy arrays and nothing else. ``prepare`` swaps its functions for compiled
ones, in place, once the work at hand is worth numba's start-up (about half a second, mostly its import). Callers
therefore always go through the module (``text_kernels.parse(...)``), never through an imported name.
"""

import mmap
import os
import sys
import tempfile
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

# Loop steps that plain Python gets through in about the time that numba takes to start.
WORTH_COMPILING = 1_000_000

_compiled: set[str] = set()
_done: dict[str, int] = {}  # loop steps done by plain Python so far, by module


def prepare(work: int, *modules: ModuleType) -> None:
    """Compile the kernels of ``modules`` if ``work``, counted in loop steps, is worth it.

    Work adds up: many small histories in one process are worth it, too.
    """
    mode = os.environ.get("ISOCHECK_COMPILE", "auto")
    for module in modules:
        name = module.__name__
        _done[name] = _done.get(name, 0) + work
        worth = mode == "always" or (mode != "never" and _done[name] >= WORTH_COMPILING)
        if worth and name not in _compiled:
            _compile(module)


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


def _compile(module: ModuleType) -> None:
    cached = _choose_cache(Path(module.__file__ or "").parent)
    import numba

    for name, value in list(vars(module).items()):
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            setattr(module, name, numba.njit(cache=cached, nogil=True, error_model="numpy")(value))
    _compiled.add(module.__name__)


def _choose_cache(package: Path) -> bool:
    """Point numba at a cache folder it can write, and tell whether there is one.

    Left alone, numba gives up with an exception where neither the package nor a home directory can be written.
    """
    if "numba" in sys.modules or os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ.get("ISOCHECK_CACHE") != "none"
    if _writable(package / "__pycache__"):
        return True
    for folder in _private_folders():
        if _writable(folder):
            os.environ["NUMBA_CACHE_DIR"] = str(folder)
            return True
    os.environ["ISOCHECK_CACHE"] = "none"
    return False


def _private_folders() -> list[Path]:
    base = os.environ.get("XDG_CACHE_HOME")
    folders = [Path(base) / "isocheck"] if base else []
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        folders.append(Path(home) / ".cache" / "isocheck")
    folders.append(Path(tempfile.gettempdir()) / f"isocheck-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    return folders


def _writable(folder: Path) -> bool:
    """Can we write there, and nobody else? (A cache of code in a shared folder must be ours alone.)"""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
        if hasattr(os, "getuid") and (info.st_uid != os.getuid() or info.st_mode & 0o002):
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
