"""Run kernels as plain Python on small inputs and as machine code on large ones.

A kernel module (``*_kernels.py``) holds only plain functions over numpy arrays and named tuples of arrays. Callers call
``prepare`` with the amount of work. Once the work is worth it, ``prepare`` replaces the functions of the module by
``Kernel`` objects. Callers therefore go through the module (``text_kernels.parse(...)``), never through an imported
name.

A ``Kernel`` looks up machine code by the types of its arguments: in memory, in the cache (module ``cache``, linked by
module ``link`` without importing numba), or it compiles the function (module ``compile``). Starting numba takes about
half a second, mostly its import.

This is the public module of the package: no module outside ``base/kernels`` imports its other modules.
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

from plume_py.base.kernels.cache import (
    add_to_tally,
    cache_folder,
    compile_lock,
    has_code,
    read_checked,
    save_checked,
)
from plume_py.base.kernels.link import MachineCode, link, this_machine
from plume_py.base.limits import check_enforced, uncounted

# Loop steps that take plain Python about as long as one of these: compiling with numba; starting the linker and linking
# compiled kernels; only linking them.
WORTH_COMPILING = 8_000_000
WORTH_STARTING = 150_000
WORTH_LINKING = 10_000

_C, _F, _ALIGNED, _WRITEABLE = 1, 2, 0x100, 0x400  # as numpy numbers the flags of an array

compiling: list[str] = []  # the name of the kernel that is being compiled, if any

_compiled: set[str] = set()  # names of the modules with replaced functions
_done: dict[str, int] = {}  # loop steps done by plain Python so far, by module
_loading = threading.Lock()


def prepare(work: int, *modules: ModuleType) -> None:
    """Compile the kernels of ``modules`` if ``work``, in loop steps, is worth it.

    Work adds up over calls, so many small histories in one process are also compiled for.
    """
    for module in modules:
        if module.__name__ not in _compiled and worth_compiling(work, module, *_kernels_used(module)):
            _compile_module(module)


def worth_compiling(work: int, *modules: ModuleType) -> bool:
    """Count ``work`` for the first of ``modules``, which uses the others; return whether to use compiled kernels.

    Compiled kernels in the cache lower the threshold. Work done by plain Python in earlier processes also counts. So
    many checks of medium-sized histories wait for the compiler once, and only after Python has taken as long.
    """
    mode = how_to_compile()
    name = modules[0].__name__
    done = _done[name] = _done.get(name, 0) + work
    if mode in ("always", "never"):
        return mode == "always"
    if done >= WORTH_COMPILING or done < (WORTH_LINKING if _compiled else WORTH_STARTING):
        return done >= WORTH_COMPILING
    folder = cache_folder(*modules)
    return folder is not None and (has_code(folder) or add_to_tally(folder, work) >= WORTH_COMPILING)


def how_to_compile() -> str:
    """Return the user's choice: auto, always or never. ``NUMBA_DISABLE_JIT`` also means never."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "never"
    return os.environ.get("ISOCHECK_COMPILE", "auto")


def is_warm(module: ModuleType) -> bool:
    """Return whether the cache holds compiled kernels of this module."""
    folder = cache_folder(module, *_kernels_used(module))
    return folder is not None and has_code(folder)


def byte_buffer(content: bytes | mmap.mmap, module: ModuleType) -> Any:
    """Return ``content`` in the form that the kernels of ``module`` index fastest."""
    return np.frombuffer(content, np.uint8) if module.__name__ in _compiled else bytes(content)


def uncompile(*modules: ModuleType) -> None:
    """Put the plain functions back (for tests that run a kernel both ways)."""
    for module in modules:
        for name, value in list(vars(module).items()):
            plain = getattr(value, "py_func", None)
            if plain is not None:
                setattr(module, name, plain)
        _compiled.discard(module.__name__)
        _done.pop(module.__name__, None)


def compiler(*modules: ModuleType) -> Callable[[FunctionType], Any]:
    """Return a function that compiles functions of these modules with numba itself and uses numba's cache.

    For kernels with arguments that ``Kernel`` does not support, such as the references to records in ``stream.native``.
    """
    numba = load_numba()
    folder = cache_folder(*modules)

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
    """Compile a kernel for arguments of new types, unless a limit has been reached."""
    check_enforced()
    return compile_for(*arguments, **named)


def load_numba() -> Any:
    """Import numba, and keep it from reading settings in the current folder, where it looks for them."""
    if "numba" not in sys.modules:
        yaml = sys.modules.get("yaml")
        sys.modules["yaml"] = None  # type: ignore[assignment]  # without yaml, numba cannot read settings
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numba warns that it cannot
                import numba
        finally:
            del sys.modules["yaml"]
            if yaml is not None:
                sys.modules["yaml"] = yaml
        numba.config._config_fname = ""  # numba may read its settings again later
    return sys.modules["numba"]


def _compile_module(module: ModuleType) -> None:
    """Replace the functions of a kernel module by kernels.

    Functions that other kernel modules call stay plain: compiled callers contain them, and plain callers run them as
    they are, because a call from plain Python into compiled code and back is slow.
    """
    folder = cache_folder(module, *_kernels_used(module))
    for name, value in _functions(module):
        if name not in _called_by_others(module):
            setattr(module, name, Kernel(value, folder))
    _compiled.add(module.__name__)


def _functions(module: ModuleType) -> list[tuple[str, FunctionType]]:
    items = list(vars(module).items())
    return [(name, f) for name, f in items if isinstance(f, FunctionType) and f.__module__ == module.__name__]


def _called_by_others(module: ModuleType) -> set[str]:
    """Return the names that functions of kernel modules which import ``module`` use, among them its functions."""
    others = [other for name, other in list(sys.modules.items()) if name.endswith("_kernels") and other is not module]
    callers = [other for other in others if module in vars(other).values()]
    return {name for other in callers for _, function in _functions(other) for name in function.__code__.co_names}


def _kernels_used(module: ModuleType) -> list[ModuleType]:
    """Return the kernel modules that ``module`` imports, directly or through other kernel modules."""
    used: list[ModuleType] = []
    for value in vars(module).values():
        if isinstance(value, ModuleType) and value.__name__.endswith("_kernels"):
            used += [other for other in (value, *_kernels_used(value)) if other not in used]
    return used


class Kernel:
    """A function with machine code for each combination of argument types that it was called with."""

    def __init__(self, function: FunctionType, folder: Path | None) -> None:
        self.py_func = function
        self.__name__ = function.__name__
        self.compiled = 0  # how often numba compiled it because the cache had no code
        self._folder = folder
        self._codes: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        types = tuple([type_key(argument) for argument in arguments])
        code = self._codes.get(types)
        if code is None:
            code = self._code_for(types, arguments)
        return code(*arguments)

    def _code_for(self, types: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        check_enforced()
        with _loading, uncounted():
            path = self._path(types)
            code = None if path is None else self._fetch(path)
            if code is None:
                code = self._make(path, arguments)
            self._codes[types] = code
        return code

    def _make(self, path: str | None, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if path is None:
            return self._compile(arguments)[0]
        with compile_lock(os.path.dirname(path)):
            code = self._fetch(path)  # another process may have compiled it in the meantime
            if code is None:
                code, machine_code = self._compile(arguments)
                if machine_code is not None:
                    save_checked(path, dumps(machine_code))
        return code

    def _path(self, types: tuple[Any, ...]) -> str | None:
        if self._folder is None:
            return None
        digest = blake2b(this_machine() + type_key_text(types).encode(), digest_size=8).hexdigest()
        return str(self._folder / f"{self.__name__}-{digest}.code")

    def _fetch(self, path: str) -> Callable[..., Any] | None:
        machine_code = read_checked(path)
        if not isinstance(machine_code, MachineCode):
            return None
        try:
            return link(machine_code, sys.modules[self.py_func.__module__])
        except (AttributeError, ImportError, LookupError, OSError, RuntimeError):
            return None  # the installed numba has other internals than ``link`` knows, but can still compile

    def _compile(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], MachineCode | None]:
        self.compiled += 1
        compiling.append(self.__name__)
        try:
            load_numba()
            from plume_py.base.kernels.compile import compile_kernel

            return compile_kernel(self, arguments)
        finally:
            compiling.clear()


def type_key(value: Any) -> Any:
    """Return what compiled code depends on in an argument: its type, and for an array its layout and flags."""
    if type(value) is np.ndarray:
        flags = value.flags.num
        layout = flags & _C or flags & _F
        return value.dtype, value.ndim, layout, flags & (_ALIGNED | _WRITEABLE)
    if isinstance(value, tuple):
        return type(value), *[type_key(part) for part in value]
    if type(value) is int:
        return int if -1 << 63 <= value < 1 << 63 else OverflowError
    if isinstance(value, np.generic):
        return value.dtype
    return type(value)


def type_key_text(key: Any) -> str:
    """Return a type key as text that is the same in every process."""
    if isinstance(key, tuple):
        return f"({','.join(map(type_key_text, key))})"
    if isinstance(key, type):
        return f"{key.__module__}.{key.__qualname__}"
    return repr(key)
