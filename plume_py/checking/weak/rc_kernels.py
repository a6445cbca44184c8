"""Read committed: the edges that it forces (see ``edge_kernels``)."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import session_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Writers
from plume_py.checking.weak import edge_kernels


def forced_edges(low, high, columns: Columns, reads: ExternalReads, writers: Writers):
    """For t3 = low .. high - 1: t3 read something from t2 and, later, x from t1.

    Reads are scanned backwards. Per key, the later reads are chained, one for each run of the same source. The first
    two of a chain are enough: the first may be t2 itself, and the same rule orders the sources further on.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    key_start, key_writers = writers
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    stamp = np.full(keys, -1, np.int32)
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 in which the initial state is read later
    chain = np.empty(keys, np.int32)
    following = np.empty(len(read_key), np.int32)
    first = np.full(len(txn_session), -1, np.int32)  # by t2: the read with which t3 first read from it
    for t3 in range(low, high):
        begin, end = read_start[t3], read_start[t3 + 1]
        if end - begin < 2:
            continue
        for r in range(end - 1, begin - 1, -1):
            if read_source[r] >= 0:
                first[read_source[r]] = r
        for r in range(end - 1, begin - 1, -1):
            t2 = read_source[r]
            if t2 >= 0 and first[t2] == r:
                # walk the shorter side: what t2 wrote, or what t3 read after this
                walk_writes = txn_start[t2 + 1] - txn_start[t2] <= 8 * (end - r)
                begin_at, end_at = (txn_start[t2], txn_start[t2 + 1]) if walk_writes else (r + 1, end)
                for at in range(begin_at, end_at):
                    if walk_writes and not op_kind[at] & 1:
                        continue
                    x = op_key[at] if walk_writes else read_key[at]
                    if stamp[x] != t3 or not (walk_writes or edge_kernels.writes_key(key_start, key_writers, x, t2)):
                        continue
                    stale += initial[x] == t3
                    later = chain[x]
                    steps = 0
                    while later >= 0 and steps < 2:
                        t1 = read_source[later]
                        if t1 != t2 and not session_kernels.precedes(txn_session, t2, t1):
                            edges = edge_kernels.add(edges, count, t2, t1, later)
                            count += 1
                        later = following[later]
                        steps += 1
            x = read_key[r]
            if stamp[x] != t3:
                stamp[x] = t3
                chain[x] = -1
            if t2 < 0:
                initial[x] = t3
            else:
                same = chain[x] >= 0 and read_source[chain[x]] == t2
                following[r] = following[chain[x]] if same else chain[x]
                chain[x] = r
    return edges[:count], stale
