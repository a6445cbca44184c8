"""``--witness``: the commit order that shows that a level holds, as a file that ``isocheck verify`` re-checks.

The file is ``{"tool": …, "history": {sizes}, "level": "TCC", "order": […]}``. The order holds every
transaction that counts, once: the committed ones and those of unknown outcome from which a committed one read; not the
aborted ones, nor an explicit initial transaction, unless the level holds only if that is an ordinary one. They go by
the ids that reports use (the file's own, or T1, T2, …).

For declared levels ``"levels"`` has the level of each transaction of the order and, in small histories, ``"sees"`` whom
each one sees: those at these places of the order, counted from 0.
"""

from typing import Any

import msgspec

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.version import TOOL
from plume_py.checking.declared import DECLARED, LevelMap, missing_levels, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.minimal.visibility import visibility
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History, Int8s, Int32s
from plume_py.levels import NAMES, RUNNABLE, WEAK, WEAKEST
from plume_py.levels.orders import DEFAULT_ORDER, LevelRequest, level_request

# The levels that are defined by a commit order; cut isolation is a property of single transactions.
ORDERED = (*RUNNABLE, DECLARED)

# Whom everyone sees is written out for at most so many transactions.
SMALL = 500


def write_witness(
    history: History,
    level: str,
    path: str,
    *,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    order: str = DEFAULT_ORDER,
    limits: Limits | None = None,
) -> None:
    """Write the commit order that shows ``level`` to ``path``; the level must hold."""
    meant = level_request(level, order) or LevelRequest(level, level, order)
    name, order = meant.level, meant.order
    if name not in ORDERED:
        raise IsocheckError(f"{name} is defined without a commit order; --witness works for {', '.join(ORDERED)}")
    try:
        document = _document(history, name, order, assume, level_map, limits)
    except LimitError:
        raise
    except IsocheckError:
        if not history.init_guessed:
            raise
        ordinary = as_ordinary(history, name == DECLARED)
        document = _document(ordinary, name, order, assume, level_map, limits)
    write_atomically(path, [msgspec.json.encode(document), b"\n"])


def _document(
    history: History, name: str, order: str, assume: str | None, level_map: LevelMap | None, limits: Limits | None
) -> dict[str, Any]:
    weak = WeakLevels(Analysis(history, order=order))
    more: dict[str, Any] = {}
    if name in WEAK:
        if not weak.holds(name):
            raise IsocheckError(f"{name} does not hold, so there is no commit order to write")
        places = weak.witness(name)
    elif name == DECLARED:
        codes = transaction_levels(history, level_map, assume)
        missing = missing_levels(history, codes, weak.analysis.reads.live[: history.transactions])
        if missing is not None:
            raise IsocheckError(missing)
        places = _order(weak, name, codes, limits)
        more["levels"] = [NAMES[code - 1] for code in codes[places].tolist()]
        if len(places) <= SMALL:
            more["sees"] = visibility(SolverColumns(weak.analysis, codes), places)
    else:
        places = _order(weak, name, name, limits)
    return {
        "tool": TOOL,
        "history": {
            "format": history.format,
            "sessions": history.sessions,
            "transactions": history.transactions,
            "operations": history.operations,
        },
        "level": name,
        **({} if order == DEFAULT_ORDER else {"between": order}),
        "order": [history.txn_label[t] for t in places.tolist()],
        **more,
    }


def commit_order(history: History, level: str, *, limits: Limits | None = None) -> Int32s:
    """The transactions in an order that shows ``level``, one of the strong ones; IsocheckError if it does not hold."""
    return _order(WeakLevels(Analysis(history)), level, level, limits)


def _order(weak: WeakLevels, name: str, level: str | Int8s, limits: Limits | None) -> Int32s:
    """The commit order that the strong engine finds."""
    decision = StrongEngine(weak.analysis, level, limits=limits).decide() if weak.holds(WEAKEST) else None
    if decision is not None and decision.ok is None:
        raise LimitError(f"{name} is undecided: {decision.reason}")
    if decision is None or decision.order is None:
        raise IsocheckError(f"{name} does not hold, so there is no commit order to write")
    return decision.order
