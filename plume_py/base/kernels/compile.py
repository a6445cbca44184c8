"""Compile kernels with numba into machine code that can be stored and run without numba.

Only ``dispatch`` imports this module, and only once numba is imported. A kernel is compiled as a whole, together with
all kernels that it calls. The called kernels are needed only as code inside their callers. numba would also make
machine code of each of them, which never runs, so that step is switched off.
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

# numba numbers the functions inside a kernel. A number must not name another function in code of another process, so
# each process counts from a random number.
FunctionIdentity._unique_ids = count(SystemRandom().getrandbits(60))

_called: dict[Any, Any] = {}  # by function: the numba dispatcher that compiles it as a part of its callers


def compile_kernel(kernel: Any, arguments: tuple[Any, ...]) -> tuple[Any, MachineCode | None]:
    """Compile ``kernel`` for arguments of these types; return it, and its machine code if that can be stored."""
    typeof_impl.register(type(kernel), lambda inner, context: _called_kernel_type(inner.py_func))
    cpu_target.target_context.refresh()
    dispatcher = _compile()(kernel.py_func)
    signature = tuple(typeof(argument, Purpose.argument) for argument in arguments)
    dispatcher.compile(signature)
    (result,) = dispatcher.overloads.values()
    return result.entry_point, _machine_code(kernel.__name__, result)


def _machine_code(name: str, result: Any) -> MachineCode | None:
    if result.reload_init or result.library.has_dynamic_globals:
        return None  # it would need more than its code
    environments = result._find_referenced_environments()
    own = result.fndesc.env_name
    constants = {environment.env_name: list(environment.consts) for environment in environments}
    constants.setdefault(own, list(result.environment.consts))
    code = result.library._get_compiled_object()
    return MachineCode(name, code, result.fndesc.llvm_cpython_wrapper_name, own, list(constants.items()))


@typeof_impl.register(FunctionType)
def _type_of_function(function: FunctionType, context: Any) -> Any:
    """Return the numba type of a plain function of another kernel module; None for other functions."""
    return _called_kernel_type(function) if function.__module__.endswith("_kernels") else None


def _called_kernel_type(function: FunctionType) -> Any:
    if function not in _called:
        _called[function] = _called_dispatcher(function)
    return types.Dispatcher(_called[function])


def _called_dispatcher(function: FunctionType) -> Any:
    dispatcher = _compile(no_cpython_wrapper=True)(function)
    dispatcher._compiler._customize_flags = _without_machine_code
    dispatcher.add_overload = partial(_add_overload, dispatcher)
    return dispatcher


def _add_overload(dispatcher: Any, result: Any) -> None:
    """Register a compiled function with its callers, as numba does for functions that have machine code."""
    named = result._replace(entry_point=object())
    dispatcher.targetctx.insert_user_function(named.entry_point, named.fndesc, [named.library])
    dispatcher.overloads[tuple(named.signature.args)] = named


def _without_machine_code(flags: Any) -> Any:
    flags.no_compile = True
    return flags


class CheckedCache(FunctionCache):
    """numba's own cache of a function, in files with digests that are checked on reading."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _CheckedFile(plain._cache_path, self._impl.filename_base, plain._source_stamp)


class _CheckedFile(IndexDataCacheFile):
    """The index of a function, and a file for each combination of argument types."""

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
