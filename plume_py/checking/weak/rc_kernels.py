"""Read committed: the edges that it forces (see ``edge_kernels``)."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Writers
from plume_py.checking.weak import edge_kernels


def forced_edges(low, high, columns: Columns, reads: ExternalReads, writers: Writers):
    """For t3 = low .. high - 1: t3 read something from t2 and, later, x from t1.

    Reads are scanned backwards. Of each key, sources that follow one another get an edge; from any other t2 one to the
    next source is enough, since it leads to all further on.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    key_start, key_writers = writers
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    stamp = np.full(keys, -1, np.int32)
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 in which the initial state is read later
    following = np.empty(keys, np.int32)  # by key: the next read of what somebody wrote, or -1
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
                    if x != read_key[r]:
                        edges, count = to_source(edges, count, txn_session, read_source, t2, following[x])
            x = read_key[r]
            if stamp[x] != t3:
                stamp[x] = t3
                following[x] = -1
            if t2 < 0:
                initial[x] = t3
            else:
                edges, count = to_source(edges, count, txn_session, read_source, t2, following[x])
                following[x] = r
    return edges[:count], stale


def to_source(edges, count, txn_session, read_source, t2, r):
    """What is forced if t2 was read from before read r, if there is one: t2 before its source."""
    if r >= 0:
        t1 = read_source[r]
        if t1 != t2 and not shared_kernels.precedes(txn_session, t2, t1):
            edges = edge_kernels.add(edges, count, t2, t1, r)
            count += 1
    return edges, count
