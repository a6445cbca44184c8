"""The monitor's tables as one reference, and its kernels compiled by numba. ``compiled`` imports this module on demand.

All kernels take the tables and integers. Left alone, numba would compile a function again for every mixture of integer
widths, and copy a tuple of two dozen arrays at every call. That took minutes to compile, and was slow afterwards.
Therefore the tables are a ``structref``, and each kernel is compiled once, for 64-bit integers.
"""

from types import FunctionType, ModuleType
from typing import Any

import numba
from numba.core import types
from numba.experimental import structref

from plume_py.base.kernels import dispatch
from plume_py.checking.stream.state import State

# These kernels take other arrays, too. They are compiled for the types of their first call.
OTHER_ARGUMENTS = ("take_batch", "rehash", "mixed")


@structref.register
class StateType(types.StructRef):
    """The numba type of ``NativeState``."""

    def preprocess_fields(self, fields: Any) -> Any:
        return fields  # they are arrays: no literal type has to be widened


class NativeState(structref.StructRefProxy):
    """A reference to the arrays of a ``State``, built from its fields in order."""

    def __new__(cls, *arrays: Any) -> "NativeState":
        return structref.StructRefProxy.__new__(cls, *arrays)  # type: ignore[no-any-return]


structref.define_proxy(NativeState, StateType, list(State._fields))


def compile_kernels(modules: tuple[ModuleType, ...], state: State) -> None:
    """Replace all kernels of ``modules``, in place, by compiled ones that take a ``NativeState``."""
    compiled = dispatch.compiler(*modules)
    plain: dict[str, FunctionType] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                plain[name] = value
                setattr(module, name, compiled(value))
    done: set[str] = set()

    def compile_one(name: str) -> None:
        """Compile a kernel for 64-bit integers, after the kernels that it calls, and for no other types."""
        if name in done:
            return
        done.add(name)
        code = plain[name].__code__
        for called in code.co_names:
            if called in plain:
                compile_one(called)
        if name not in OTHER_ARGUMENTS:
            kernel = next(vars(module)[name] for module in modules if name in vars(module))
            kernel.compile((tables, *[numba.int64] * (code.co_argcount - 1)))
            kernel.disable_compile()

    tables = numba.typeof(NativeState(*state))
    for name in plain:
        compile_one(name)
