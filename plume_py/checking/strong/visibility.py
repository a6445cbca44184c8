"""Whom each transaction sees in a commit order: the least that all levels ask for together."""

import numpy as np

from plume_py.checking.strong import node_kernels as levels
from plume_py.checking.strong.chains import CONFLICT_FREE, PREFIX
from plume_py.checking.strong.layout import Layout
from plume_py.history.model import Int32s


def visibility(layout: Layout, order: Int32s) -> list[list[int]]:
    """For each place of ``order``: the places that the transaction there sees, ascending (for small histories)."""
    place = {t: at for at, t in enumerate(order.tolist())}
    sees: list[set[int]] = []
    start, key, _ = layout.writes
    for at, t in enumerate(order.tolist()):
        level = int(layout.level[t])
        span = slice(layout.reads.read_start[t], layout.reads.read_start[t + 1])
        seen = {place[source] for source in layout.read_source[span].tolist() if source >= 0}
        seen |= {place[s] for s in place if layout.analysis.precedes_in_session(s, t)}
        if level in CONFLICT_FREE:
            for x in key[start[t] : start[t + 1]].tolist():
                writers = layout.key_writers[layout.key_start[x] : layout.key_start[x + 1]]
                seen |= {place[w] for w in writers.tolist() if place[w] < at}
        if level in (levels.TCC, levels.PSI):
            todo = list(seen)
            while todo:
                new = sees[todo.pop()] - seen
                seen |= new
                todo += new
        if level in PREFIX:
            seen |= set(range(max(seen, default=-1)))
        if level == levels.SER:
            seen = set(range(at))
        sees.append(seen)
    return [np.sort(np.fromiter(seen, np.int64, len(seen))).tolist() for seen in sees]
