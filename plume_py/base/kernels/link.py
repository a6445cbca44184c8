"""Link stored machine code of kernels, and run it, without importing numba.

llvmlite links the object code against numba's three C libraries. Importing numba would take several times as long as
linking all kernels of a check. So the cache stores of each kernel its object code, the name of its entry point for
Python, and the constants of its environments.
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

# The C libraries of numba that compiled kernels call, each with the prefix of its functions in compiled code.
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
    environment: str  # the environment of the entry point
    environments: list[tuple[str, list[Any]]]  # all environments that the code refers to, with their constants


def _llvm() -> Any:
    """Import llvmlite; its library is large, so a memory limit can make the import fail."""
    try:
        import llvmlite.binding as llvm
    except OSError as error:  # reported as a library that cannot be found
        if is_data_limited():
            raise MemoryError(str(error)) from None
        raise
    return llvm


@cache
def this_machine() -> bytes:
    """Return a digest of the processor, Python, numba's settings and the libraries that machine code depends on."""
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
    """Return the kernel as a function for exactly the argument types that it was compiled for."""
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
    function: Callable[..., Any] = functions.make_function(module, code.name, "", address, own, (environments,))
    return function


@cache
def _unpickled(address: int, length: int) -> Any:
    """Return a constant of compiled code, such as the class of a record. numba's own function would import numba."""
    return pickle.loads(ctypes.string_at(address, length))  # noqa: S301 - part of code with a checked digest


_UNPICKLE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    lambda address, length, digest: _unpickled(address, length)
)


@cache
def _engine() -> tuple[Any, Any]:
    """Return llvmlite's execution engine, with all symbols that kernels call, and numba's library of functions."""
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
    """Import a C library of numba without the package numba."""
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
        from importlib.metadata import version  # slow: it searches all installed packages

        return version("numba")


@cache
def _numba_folder() -> Path:
    spec = importlib.util.find_spec("numba")
    if spec is None or spec.origin is None:
        raise ImportError("numba is not installed")
    return Path(spec.origin).parent
