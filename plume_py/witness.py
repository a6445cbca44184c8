"""``--witness``: the commit order that shows that a level holds, as a file that ``isocheck verify`` re-checks.

The file is ``{"tool": …, "history": {sizes}, "level": "TCC", "order": […]}``. The order holds every
transaction that counts, once: the committed ones and those of unknown outcome from which a committed one read; not the
aborted ones, nor an explicit initial transaction. They go by the ids that reports use (the file's own, or T1, T2, …).
"""

import msgspec

from plume_py import __version__
from plume_py.errors import IsocheckError
from plume_py.files import write_atomically
from plume_py.history.model import History
from plume_py.levels import parse_level
from plume_py.weak.engine import WeakEngine

# The weak levels that are defined by a commit order; cut isolation is a property of single transactions.
ORDERED = ("RC", "RA", "TCC")


def write_witness(history: History, level: str, path: str) -> None:
    """Write the commit order that shows ``level`` to ``path``; the level must hold."""
    name = parse_level(level) or level
    if name not in ORDERED:
        reason = "CI is defined without a commit order" if name == "CI" else f"{name} has no witness yet"
        raise IsocheckError(f"{reason}; --witness works for {', '.join(ORDERED)}")
    engine = WeakEngine(history)
    if not engine.holds(name):
        raise IsocheckError(f"{name} does not hold, so there is no commit order to write")
    document = {
        "tool": {"name": "isocheck", "version": __version__},
        "history": {
            "format": history.format,
            "sessions": history.sessions,
            "transactions": history.transactions,
            "operations": history.operations,
        },
        "level": name,
        "order": [history.txn_label[t] for t in engine.witness(name).tolist()],
    }
    write_atomically(path, [msgspec.json.encode(document), b"\n"])
