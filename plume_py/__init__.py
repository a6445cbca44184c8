"""isocheck: does a transaction history keep the isolation level it was promised?

The public interface is small and loads lazily, so that ``import plume_py`` costs nothing:

>>> import plume_py
>>> history = plume_py.load("history.json")        # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING

from plume_py.base.version import __version__

if TYPE_CHECKING:
    from plume_py.base.errors import InputError
    from plume_py.checking.check import check
    from plume_py.checking.stream.monitor import Monitor
    from plume_py.history.builder import HistoryBuilder
    from plume_py.history.load import load
    from plume_py.history.model import History

_HOMES = {
    "History": "plume_py.history.model",
    "HistoryBuilder": "plume_py.history.builder",
    "InputError": "plume_py.base.errors",
    "Monitor": "plume_py.checking.stream.monitor",
    "check": "plume_py.checking.check",
    "load": "plume_py.history.load",
}

__all__ = ["History", "HistoryBuilder", "InputError", "Monitor", "__version__", "check", "load"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'plume_py' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
