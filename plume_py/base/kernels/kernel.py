"""A kernel: a function over numpy arrays whose machine code is fetched, or made, when it is called."""

import os
import sys
import threading
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from pickle import dumps
from types import FunctionType
from typing import Any

import numpy as np

from plume_py.base.kernels.cache import read_checked, save_checked, turn
from plume_py.base.kernels.link import MachineCode, link, this_machine
from plume_py.base.kernels.numba_start import load_numba
from plume_py.base.limits import check_enforced, uncounted

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
