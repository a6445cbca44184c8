"""Machine code of kernels, run without numba: llvmlite links it, and numba's three C libraries are what it calls.

Importing numba costs several times what all the kernels of a check take to be linked. What is kept of a compiled kernel
is therefore its object code, the name of its entry for Python, and the constants of its environments.
"""

import ctypes
import importlib.util
import os
import pickle
import sys
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from plume_py.base.memory import is_data_limited

# The C libraries of numba that compiled kernels call, and what the names of their functions begin with there.
_LIBRARIES = {
    "numba._helperlib": "numba_",
    "numba._dynfunc": "numba_",
    "numba.core.runtime._nrt_python": "NRT_",
}


class MachineCode(NamedTuple):
    """A compiled kernel."""

    name: str
    object_code: bytes
    entry: str  # the function that takes Python's arguments
    environment: str  # the one that the entry works with
    environments: list[tuple[str, list[Any]]]  # and all that it refers to, with their constants


def _llvm() -> Any:
    """llvmlite, whose library is large."""
    try:
        import llvmlite.binding as llvm
    except OSError as error:  # it cannot be found, it says
        if is_data_limited():
            raise MemoryError(str(error)) from None
        raise
    return llvm


@cache
def this_machine() -> bytes:
    """All that machine code depends on, besides what was compiled: processor, Python, and the libraries involved."""
    llvm = _llvm()
    import llvmlite
    import numpy as np

    processor = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if processor == "generic" else llvm.get_host_cpu_features().flatten()
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    settings = [setting for setting in settings if not setting.startswith("NUMBA_CACHE_DIR=")]
    parts = [processor, features, *settings, sys.version, np.__version__, llvmlite.__version__, _numba_version()]
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()


def link(code: MachineCode, module: ModuleType) -> Callable[..., Any]:
    """The kernel as a function that takes exactly the types of arguments that it was compiled for."""
    llvm = _llvm()
    engine, functions = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.object_code))
    engine.finalize_object()
    environments = {}
    for name, constants in code.environments:
        environment = environments[name] = functions.Environment(vars(module))
        environment.consts.extend(constants)
        if address := engine.get_global_value_address(name):
            ctypes.c_void_p.from_address(address).value = id(environment)
    address = engine.get_function_address(code.entry)
    if not address:
        raise LookupError(f"no {code.entry}")
    own = environments[code.environment]
    made: Callable[..., Any] = functions.make_function(module, code.name, "", address, own, (environments,))
    return made


@cache
def _unpickled(address: int, length: int) -> Any:
    """A constant of compiled code, such as the class of a record that it returns. (numba's own would import numba.)"""
    return pickle.loads(ctypes.string_at(address, length))  # noqa: S301 - part of code that is believed already


_UNPICKLE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    lambda address, length, digest: _unpickled(address, length)
)


@cache
def _engine() -> tuple[Any, Any]:
    """What links compiled kernels to each other and to what they call; and what makes functions of them."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    libraries = {name: _library(name) for name in _LIBRARIES}
    for name, library in libraries.items():
        for function, address in library.c_helpers.items():
            llvm.add_symbol(function if function.startswith("_") else _LIBRARIES[name] + function, address)
    llvm.add_symbol("numba_unpickle", ctypes.cast(_UNPICKLE, ctypes.c_void_p).value)
    llvm.add_symbol("_Py_NoneStruct", id(None))
    for name, value in vars(sys.modules["builtins"]).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            llvm.add_symbol(f"PyExc_{name}", id(value))
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine), libraries["numba._dynfunc"]


def _library(name: str) -> Any:
    """A C library of numba, without all that importing numba brings along."""
    place = _numba_folder().joinpath(*name.split(".")[1:])
    path = next(path for ending in EXTENSION_SUFFIXES if (path := place.with_name(place.name + ending)).exists())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    return library


def _numba_version() -> str:
    try:
        return (_numba_folder() / "_version.py").read_text()
    except OSError:
        from importlib.metadata import version  # which looks through all that is installed

        return version("numba")


@cache
def _numba_folder() -> Path:
    spec = importlib.util.find_spec("numba")
    if spec is None or spec.origin is None:
        raise ImportError("numba is not installed")
    return Path(spec.origin).parent
