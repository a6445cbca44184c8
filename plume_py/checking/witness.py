"""Write the commit order that shows that a level holds, as a file (``check --witness``) for ``isocheck verify``.

The file is ``{"tool": …, "history": {sizes}, "level": "TCC", "order": […]}``. The order lists each participating
transaction once, by the id that reports use (the file's own, or T1, T2, …). Transactions participate if they are
committed, or of unknown outcome and read by a committed one. An explicit initial transaction participates only if the
level holds no other way.

For declared levels, ``"levels"`` has the level of each transaction in the order. In small histories, ``"sees"`` has the
transactions visible to each one, as positions in the order, from 0.
"""

from typing import Any

import msgspec

from plume_py.base.atomic_files import write_atomically
from plume_py.base.bits import bits, members
from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.version import TOOL
from plume_py.checking.declared import DECLARED, LevelMap, missing_levels, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History, Int8s, Int32s
from plume_py.levels import NAMES, RUNNABLE, WEAK, WEAKEST
from plume_py.levels.orders import DEFAULT_ORDER, LevelRequest, level_request
from plume_py.levels.visibility import visible_set

# The levels that are defined by a commit order. Cut isolation is a property of single transactions.
ORDERED = (*RUNNABLE, DECLARED)

# Maximum number of transactions for which ``"sees"`` is written.
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
    """Write the commit order that shows ``level`` to ``path``. Raise IsocheckError if the level does not hold."""
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
        missing = missing_levels(history, codes, weak.analysis.reads.participates[: history.transactions])
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
    """Return the transactions in a commit order that shows ``level``, a strong level.

    Raise IsocheckError if it does not hold.
    """
    return _order(WeakLevels(Analysis(history)), level, level, limits)


def _order(weak: WeakLevels, name: str, level: str | Int8s, limits: Limits | None) -> Int32s:
    """Return the commit order that the strong engine finds."""
    decision = StrongEngine(weak.analysis, level, limits=limits).decide() if weak.holds(WEAKEST) else None
    if decision is not None and decision.ok is None:
        raise LimitError(f"{name} is undecided: {decision.reason}")
    if decision is None or decision.order is None:
        raise IsocheckError(f"{name} does not hold, so there is no commit order to write")
    return decision.order


# Visibility


def visibility(layout: SolverColumns, order: Int32s) -> list[list[int]]:
    """Return, for each position of ``order``, the positions visible to the transaction there, ascending.

    The visible set is the least that its level allows. For small histories: the positions are bit sets.
    """
    place = {t: at for at, t in enumerate(order.tolist())}
    sees: list[int] = []
    start, key, _ = layout.writes
    past: dict[int, int] = {}  # positions of each session so far
    rivals: dict[int, int] = {}  # positions of the writers of each key
    for x in range(layout.keys):
        writers = layout.key_writers[layout.key_start[x] : layout.key_start[x + 1]]
        rivals[x] = bits(place[t] for t in writers.tolist())
    for at, t in enumerate(order.tolist()):
        session = int(layout.history.txn_session[t])
        span = slice(layout.reads.read_start[t], layout.reads.read_start[t + 1])
        direct = past.get(session, 0) | bits(place[s] for s in layout.read_source[span].tolist() if s >= 0)
        if layout.analysis.real_time is not None:
            direct |= bits(place[s] for s in layout.analysis.real_time.before(t).tolist())
        others = 0
        for x in key[start[t] : start[t + 1]].tolist():
            others |= rivals[x]
        sees.append(visible_set(int(layout.sees[t]), direct, others, (1 << at) - 1, sees, placed=True))
        past[session] = past.get(session, 0) | 1 << at
    return [members(places) for places in sees]
