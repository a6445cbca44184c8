"""Whom each transaction sees in a commit order: the least that all levels ask for together."""

from plume_py.base.bits import bits, members
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.history.model import Int32s
from plume_py.levels.visibility import visible_set


def visibility(layout: SolverColumns, order: Int32s) -> list[list[int]]:
    """For each place of ``order``: the places that the transaction there sees, ascending (for small histories)."""
    place = {t: at for at, t in enumerate(order.tolist())}
    sees: list[int] = []
    start, key, _ = layout.writes
    past: dict[int, int] = {}  # of each session so far, as places
    rivals: dict[int, int] = {}  # of each key: its writers, as places
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
