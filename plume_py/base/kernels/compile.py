"""Kernels compiled by numba, so that what comes out can be kept and run without it; imported only where it is.

A kernel that Python calls is compiled whole, with all that it calls in it. Those inside are wanted as code to be built
in, never as functions of their own: numba would make machine code of each of them, which nobody runs.
"""

from functools import partial
from itertools import count
from random import SystemRandom
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.core.typing.typeof import Purpose, typeof, typeof_impl

from plume_py.base.kernels.cache import read_checked, save_checked
from plume_py.base.kernels.link import MachineCode

_compile: Any = partial(njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True)

# Names of what is inside are numbered; a number must not stand for something else in what another process compiled.
FunctionIdentity._unique_ids = count(SystemRandom().getrandbits(60))

_inside: dict[Any, Any] = {}  # by function: what compiles it as a part of others


def compile_kernel(kernel: Any, arguments: tuple[Any, ...]) -> tuple[Any, MachineCode | None]:
    """The kernel for arguments such as these: to be called, and to be kept."""
    typeof_impl.register(type(kernel), lambda inner, context: _built_in(inner.py_func))
    cpu_target.target_context.refresh()
    whole = _compile()(kernel.py_func)
    signature = tuple(typeof(argument, Purpose.argument) for argument in arguments)
    whole.compile(signature)
    (result,) = whole.overloads.values()
    return result.entry_point, _to_be_kept(kernel.__name__, result)


def _to_be_kept(name: str, result: Any) -> MachineCode | None:
    if result.reload_init or result.library.has_dynamic_globals:
        return None  # it would need more than its code
    environments = result._find_referenced_environments()
    own = result.fndesc.env_name
    kept = {environment.env_name: list(environment.consts) for environment in environments}
    kept.setdefault(own, list(result.environment.consts))
    code = result.library._get_compiled_object()
    return MachineCode(name, code, result.fndesc.llvm_cpython_wrapper_name, own, list(kept.items()))


@typeof_impl.register(FunctionType)
def _type_of_function(function: FunctionType, context: Any) -> Any:
    """A function of another kernel module, which is not compiled by itself."""
    return _built_in(function) if function.__module__.endswith("_kernels") else None


def _built_in(function: FunctionType) -> Any:
    """The type of a kernel that another one calls."""
    if function not in _inside:
        _inside[function] = _to_be_built_in(function)
    return types.Dispatcher(_inside[function])


def _to_be_built_in(function: FunctionType) -> Any:
    inside = _compile(no_cpython_wrapper=True)(function)
    inside._compiler._customize_flags = _without_machine_code
    inside.add_overload = partial(_add, inside)
    return inside


def _add(inside: Any, result: Any) -> None:
    """Make it known to those that call it, as numba does with what has machine code and so can be called."""
    named = result._replace(entry_point=object())
    inside.targetctx.insert_user_function(named.entry_point, named.fndesc, [named.library])
    inside.overloads[tuple(named.signature.args)] = named


def _without_machine_code(flags: Any) -> Any:
    flags.no_compile = True
    return flags


# From numba_cache.py: numba's own cache of a function, in files that are checked when they are read; imported only where numba is.
class CheckedCache(FunctionCache):
    """The compiled forms of a function, by the types of its arguments."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _CheckedFile(plain._cache_path, self._impl.filename_base, plain._source_stamp)


class _CheckedFile(IndexDataCacheFile):
    """The index of a function and its entries, one file each."""

    def _load_index(self) -> dict[Any, str]:
        found = read_checked(self._index_path)
        if found is None:
            return {}
        version, stamp, overloads = found
        is_fresh = version == self._version and stamp == self._source_stamp
        return dict(overloads) if is_fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        save_checked(self._index_path, self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return read_checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        save_checked(self._data_path(name), self._dump(data))
