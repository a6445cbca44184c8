"""Kernels: one source, run by Python on small inputs and compiled by numba on large ones.

A kernel module holds plain functions over numpy arrays and records of them (named tuples), and nothing else.
``prepare`` swaps its functions for compiled ones, in place, once the work at hand is worth numba's start-up (about half
a second, mostly its import). Callers therefore always go through the module (``text_kernels.parse(...)``), never
through an imported name.
"""

import mmap
import os
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from plume_py.base.kernels.folder import add_to_tally, folder_of, has_code
from plume_py.base.kernels.numba_start import load_numba
from plume_py.base.limits import check_enforced

# Loop steps that plain Python gets through in about the time that kernels take: to be compiled, by numba; to be linked,
# with the start of what links them; to be linked once that is there.
WORTH_COMPILING = 8_000_000
WORTH_STARTING = 150_000
WORTH_LINKING = 10_000

_compiled: set[str] = set()
_done: dict[str, int] = {}  # loop steps done by plain Python so far, by module


def prepare(work: int, *modules: ModuleType) -> None:
    """Compile the kernels of ``modules`` if ``work``, counted in loop steps, is worth it.

    Work adds up: many small histories in one process are worth it, too.
    """
    for module in modules:
        if module.__name__ not in _compiled and worth_compiling(work, module, *_kernels_used(module)):
            _compile(module)


def worth_compiling(work: int, *modules: ModuleType) -> bool:
    """Have these, of which the first uses the others, had so much work with this that compiled kernels pay?

    Less will do if they are there. What plain Python did in earlier processes counts, too: whoever checks histories of
    middling size one by one waits for the compiler only after having waited as long for Python.
    """
    mode = how_to_compile()
    name = modules[0].__name__
    done = _done[name] = _done.get(name, 0) + work
    if mode in ("always", "never"):
        return mode == "always"
    if done >= WORTH_COMPILING or done < (WORTH_LINKING if _compiled else WORTH_STARTING):
        return done >= WORTH_COMPILING
    folder = folder_of(*modules)
    return folder is not None and (has_code(folder) or add_to_tally(folder, work) >= WORTH_COMPILING)


def how_to_compile() -> str:
    """What the user wants: auto, always or never, which is also what numba may have been told."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "never"
    return os.environ.get("ISOCHECK_COMPILE", "auto")


def is_warm(module: ModuleType) -> bool:
    """Has somebody compiled kernels of this module before?"""
    folder = folder_of(module, *_kernels_used(module))
    return folder is not None and has_code(folder)


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
    """Swap the functions of a kernel module for compiled ones.

    What kernels of other modules call is built into them, or called by them as it is if they are not compiled: into and
    out of compiled code it is a long way.
    """
    from plume_py.base.kernels.kernel import Kernel

    folder = folder_of(module, *_kernels_used(module))
    for name, value in _functions(module):
        if name not in _called_by_others(module):
            setattr(module, name, Kernel(value, folder))
    _compiled.add(module.__name__)


def _functions(module: ModuleType) -> list[tuple[str, FunctionType]]:
    items = list(vars(module).items())
    return [(name, f) for name, f in items if isinstance(f, FunctionType) and f.__module__ == module.__name__]


def _called_by_others(module: ModuleType) -> set[str]:
    """Names that the functions of other kernel modules use, among them those of this one that they call."""
    others = [other for name, other in list(sys.modules.items()) if name.endswith("_kernels") and other is not module]
    callers = [other for other in others if module in vars(other).values()]
    return {name for other in callers for _, function in _functions(other) for name in function.__code__.co_names}


def _kernels_used(module: ModuleType) -> list[ModuleType]:
    """The kernel modules that ``module`` uses, and those that they use."""
    used: list[ModuleType] = []
    for value in vars(module).values():
        if isinstance(value, ModuleType) and value.__name__.endswith("_kernels"):
            used += [other for other in (value, *_kernels_used(value)) if other not in used]
    return used


def compiler(*modules: ModuleType) -> Callable[[FunctionType], Any]:
    """For who calls numba directly: what compiles the functions of these modules, and keeps the result if it can."""
    numba = load_numba()
    folder = folder_of(*modules)

    def compiled(function: FunctionType) -> Any:
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
        kernel._compile_for_args = partial(_compile_in_time, kernel._compile_for_args)
        if folder is not None:
            from plume_py.base.kernels.numba_cache import CheckedCache

            numba.config.CACHE_DIR = str(folder)
            kernel._cache = CheckedCache(function)
        return kernel

    return compiled


def _compile_in_time(compile_for: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What numba does when a kernel meets arguments of new types, unless there is no time left to begin with it."""
    check_enforced()
    return compile_for(*arguments, **named)
