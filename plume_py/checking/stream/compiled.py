"""The monitor's kernels, compiled by numba once the work is worth it.

``monitor`` calls ``prepare`` for each batch, ``garbage_collection`` calls ``handle``. ``native``, which needs numba, is
imported only for compiled kernels.
"""

from types import FunctionType, ModuleType
from typing import Any

from plume_py.base.kernels import dispatch
from plume_py.base.kernels.dispatch import load_numba
from plume_py.checking.stream import ingest_kernels, level_kernels, order_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.state import State

KERNELS: tuple[ModuleType, ...] = (tables, order_kernels, level_kernels, ingest_kernels)


def prepare(work: int, state: State) -> Any:
    """Return ``handle(state)``; compile the kernels first if ``work``, in loop steps, is worth it."""
    if dispatch.worth_compiling(work, *KERNELS) and isinstance(ingest_kernels.take_batch, FunctionType):
        _compile(state)
    return handle(state)


def handle(state: State) -> Any:
    """Return what the kernels take as their tables: ``state``, or a reference to its arrays if they are compiled."""
    if isinstance(ingest_kernels.take_batch, FunctionType):
        return state
    from plume_py.checking.stream.native import NativeState

    return NativeState(*state)


def _compile(state: State) -> None:
    load_numba()
    from plume_py.checking.stream.native import compile_kernels

    compile_kernels(KERNELS, state)
