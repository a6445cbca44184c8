"""Kernels: one source, run by Python on small inputs and compiled by numba on large ones.

A kernel module holds plain functions over numpy arrays and records of them (named tuples), and nothing else.
``prepare`` swaps its functions for compiled ones, in place, once the work at hand is worth numba's start-up (about half
a second, mostly its import). Callers therefore always go through the module (``text_kernels.parse(...)``), never
through an imported name.
"""

import mmap
import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from pickle import dumps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from plume_py.base.kernels.cache import add_to_tally, folder_of, has_code, read_checked, save_checked, turn
from plume_py.base.kernels.link import MachineCode, link, this_machine
from plume_py.base.limits import check_enforced, uncounted

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
    from plume_py.base.kernels.dispatch import Kernel

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
            from plume_py.base.kernels.compile import CheckedCache

            numba.config.CACHE_DIR = str(folder)
            kernel._cache = CheckedCache(function)
        return kernel

    return compiled


def _compile_in_time(compile_for: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What numba does when a kernel meets arguments of new types, unless there is no time left to begin with it."""
    check_enforced()
    return compile_for(*arguments, **named)


# From numba_start.py: How numba is imported: by nobody else.
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


# From kernel.py: A kernel: a function over numpy arrays whose machine code is fetched, or made, when it is called.
_C, _F, _ALIGNED, _WRITEABLE = 1, 2, 0x100, 0x400  # as numpy numbers the flags of an array

now: list[str] = []  # the kernel that is being compiled, if any

_loading = threading.Lock()


class Kernel:
    """Compiled code for each combination of types that the function is called with."""

    def __init__(self, function: FunctionType, folder: Path | None) -> None:
        self.py_func = function
        self.__name__ = function.__name__
        self.compiled = 0  # how often there was no code to be fetched
        self._folder = folder
        self._codes: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        kinds = tuple([kind(argument) for argument in arguments])
        code = self._codes.get(kinds)
        if code is None:
            code = self._code_for(kinds, arguments)
        return code(*arguments)

    def _code_for(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        check_enforced()
        with _loading, uncounted():
            path = self._path(kinds)
            code = None if path is None else self._fetch(path)
            if code is None:
                code = self._make(path, arguments)
            self._codes[kinds] = code
        return code

    def _make(self, path: str | None, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if path is None:
            return self._compile(arguments)[0]
        with turn(os.path.dirname(path)):
            code = self._fetch(path)  # another process may have been at it
            if code is None:
                code, kept = self._compile(arguments)
                if kept is not None:
                    save_checked(path, dumps(kept))
        return code

    def _path(self, kinds: tuple[Any, ...]) -> str | None:
        if self._folder is None:
            return None
        digest = blake2b(this_machine() + _spelled(kinds).encode(), digest_size=8).hexdigest()
        return str(self._folder / f"{self.__name__}-{digest}.code")

    def _fetch(self, path: str) -> Callable[..., Any] | None:
        kept = read_checked(path)
        if not isinstance(kept, MachineCode):
            return None
        try:
            return link(kept, sys.modules[self.py_func.__module__])
        except (AttributeError, ImportError, LookupError, OSError, RuntimeError):
            return None  # of another numba than we know: it can still compile

    def _compile(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], MachineCode | None]:
        self.compiled += 1
        now.append(self.__name__)
        try:
            load_numba()
            from plume_py.base.kernels.compile import compile_kernel

            return compile_kernel(self, arguments)
        finally:
            now.clear()


def kind(value: Any) -> Any:
    """What compiled code depends on in an argument."""
    if type(value) is np.ndarray:
        flags = value.flags.num
        layout = flags & _C or flags & _F
        return value.dtype, value.ndim, layout, flags & (_ALIGNED | _WRITEABLE)
    if isinstance(value, tuple):
        return type(value), *[kind(part) for part in value]
    if type(value) is int:
        return int if -1 << 63 <= value < 1 << 63 else OverflowError
    if isinstance(value, np.generic):
        return value.dtype
    return type(value)


def _spelled(kinds: Any) -> str:
    """The same as text, for other processes."""
    if isinstance(kinds, tuple):
        return f"({','.join(map(_spelled, kinds))})"
    if isinstance(kinds, type):
        return f"{kinds.__module__}.{kinds.__qualname__}"
    return repr(kinds)
