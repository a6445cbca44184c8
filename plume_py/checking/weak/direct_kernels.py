"""Read committed and read atomic: the edges that they force against an order at hand, which are mostly none.

Both look only at what t3 has to do with t2 directly: it read from t2 or, for read atomic, t2 comes before it in its
session or in real time.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Spans
from plume_py.checking.weak import edge_kernels


def backward_edges(order, atomic, columns: Columns, live, reads: ExternalReads, keys, spans: Spans, budget):
    """``order`` is a linear extension of the causal order; ``atomic`` tells read atomic from read committed.

    Of all writers of x only those placed between t1 and t3 can contradict the order; mostly there are none, since t1 is
    the last one placed. A t1 of -1 is the initial state. Returns also the steps left of ``budget``; negative: gave up.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    edges, count = np.empty((64, 4), np.int32), 0
    latest = np.full(keys, -1, np.int32)  # by key: its last writer so far
    place = np.full(keys, -1, np.int32)  # and where that is in these two
    owner = np.empty(len(op_key), np.int32)
    before = np.empty(len(op_key), np.int32)  # leads to the writer before
    reader = np.full(len(txn_session), -1, np.int32)  # by t2: the last t3 that has read from it, so far
    placed = 0
    for t3 in order:
        begin, end = read_start[t3], read_start[t3 + 1]
        if atomic:
            for r in range(begin, end):
                if read_source[r] >= 0:
                    reader[read_source[r]] = t3
        for r in range(begin, end):
            x, t1 = read_key[r], read_source[r]
            if latest[x] != t1:
                at = place[x]
                while at >= 0 and owner[at] != t1:
                    t2 = owner[at]
                    given = atomic and (
                        shared_kernels.precedes(txn_session, t2, t3)
                        or shared_kernels.ended_before(spans.begin, spans.end, t2, t3)
                    )
                    if given or reader[t2] == t3:
                        edges = edge_kernels.add(edges, count, t2, t1, r)
                        count += 1
                    at = before[at]
                    budget -= 1
                if budget < 0:
                    return edges[:count], budget
            if t1 >= 0:
                reader[t1] = t3
        if live[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                x = op_key[o]
                if op_kind[o] & 1 and latest[x] != t3:
                    latest[x] = t3
                    owner[placed] = t3
                    before[placed] = place[x]
                    place[x] = placed
                    placed += 1
    return edges[:count], budget
