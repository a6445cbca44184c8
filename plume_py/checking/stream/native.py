"""The monitor's kernels compiled: each of them just once, and with the tables passed as one pointer.

All of them take the tables and integers. Left alone, numba would compile a function anew for every mixture of integer
widths it is called with, and copy a tuple of two dozen arrays at every call: minutes to compile, and slow afterwards.
"""

from types import FunctionType, ModuleType
from typing import Any

from plume_py.base.kernels import dispatch
from plume_py.base.kernels.dispatch import load_numba
from plume_py.checking.stream import (
    forced_edge_kernels,
    ingest_kernels,
    level_kernels,
    order_kernels,
    reachability_kernels,
    table_kernels,
    time_kernels,
)
from plume_py.checking.stream.state import State

MODULES: tuple[ModuleType, ...] = (
    table_kernels,
    reachability_kernels,
    time_kernels,
    order_kernels,
    forced_edge_kernels,
    level_kernels,
    ingest_kernels,
)

# Those that take other arrays, too, and so are compiled when they are called.
OTHER_ARGUMENTS = ("take_all", "rehash", "mixed")


def prepare(work: int, state: State) -> Any:
    """What to hand to the kernels as their tables; compiles them if ``work``, in loop steps, is worth it."""
    if dispatch.worth_compiling(work, *MODULES) and isinstance(ingest_kernels.take_all, FunctionType):
        _compile(state)
    return handle(state)


def handle(state: State) -> Any:
    """What to hand to the kernels as their tables, as they are now."""
    if isinstance(ingest_kernels.take_all, FunctionType):
        return state
    from plume_py.checking.stream.native_state import NativeState

    return NativeState(*state)


def _compile(state: State) -> None:
    numba = load_numba()
    from plume_py.checking.stream.native_state import NativeState

    compiled = dispatch.compiler(*MODULES)
    plain = {}
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                plain[name] = value
                setattr(module, name, compiled(value))
    tables = numba.typeof(NativeState(*state))
    done: set[str] = set()
    for name in plain:
        _compile_one(name, plain, tables, done)


def _compile_one(name: str, plain: dict[str, FunctionType], tables: Any, done: set[str]) -> None:
    """Compile a kernel for 64-bit integers after those that it calls, and for nothing else."""
    numba = load_numba()
    if name in done:
        return
    done.add(name)
    code = plain[name].__code__
    for called in code.co_names:
        if called in plain:
            _compile_one(called, plain, tables, done)
    if name not in OTHER_ARGUMENTS:
        kernel = next(vars(module)[name] for module in MODULES if name in vars(module))
        kernel.compile((tables, *[numba.int64] * (code.co_argcount - 1)))
        kernel.disable_compile()
