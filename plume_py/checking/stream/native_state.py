"""``State`` as numba passes it by reference; imported only where numba is."""

from typing import Any

from numba.core import types
from numba.experimental import structref

from plume_py.checking.stream.state import State


@structref.register
class StateType(types.StructRef):
    """The type of the tables."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Fields are arrays; there is nothing to widen."""
        return fields


class NativeState(structref.StructRefProxy):
    """A reference to the arrays of a ``State``."""

    def __new__(cls, *arrays: Any) -> "NativeState":
        """Takes the fields of a ``State``, in order."""
        return structref.StructRefProxy.__new__(cls, *arrays)  # type: ignore[no-any-return]


structref.define_proxy(NativeState, StateType, list(State._fields))
