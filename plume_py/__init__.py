"""isocheck: decide which isolation levels a transaction history satisfies.

The public interface is small and loads lazily, so that ``import plume_py`` costs nothing:

>>> import plume_py
>>> result = plume_py.check("history.json", "TCC")        # doctest: +SKIP
>>> print(result)                                         # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING

from plume_py.base.version import __version__

if TYPE_CHECKING:
    from plume_py.api import check, page, picture, save, text
    from plume_py.base.errors import InputError
    from plume_py.checking.result import Result, Violation
    from plume_py.checking.stream.monitor import Monitor
    from plume_py.history.builder import HistoryBuilder
    from plume_py.history.load import load
    from plume_py.history.model import History

_HOMES = {
    "History": "plume_py.history.model",
    "HistoryBuilder": "plume_py.history.builder",
    "InputError": "plume_py.base.errors",
    "Monitor": "plume_py.checking.stream.monitor",
    "Result": "plume_py.checking.result",
    "Violation": "plume_py.checking.result",
    "check": "plume_py.api",
    "load": "plume_py.history.load",
    "page": "plume_py.api",
    "picture": "plume_py.api",
    "save": "plume_py.api",
    "text": "plume_py.api",
}

__all__ = [
    "History",
    "HistoryBuilder",
    "InputError",
    "Monitor",
    "Result",
    "Violation",
    "__version__",
    "check",
    "load",
    "page",
    "picture",
    "save",
    "text",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'plume_py' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
