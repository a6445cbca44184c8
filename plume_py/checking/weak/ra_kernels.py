"""Read atomic: the edges that it forces (see ``edge_kernels``)."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Writers
from plume_py.checking.weak import edge_kernels


def forced_edges(low, high, columns: Columns, reads: ExternalReads, writers: Writers, live):
    """For t3 = low .. high - 1 (whole sessions): t2 is before t3 in it, or t3 read from t2.

    Where t3 read x from several transactions, each of them must come before each other. Of these edges only those
    between sources that follow one another are there, both ways, and of others that t3 read from only one into that
    circle: the rest follows.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    key_start, key_writers = writers
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    last_writer = np.full(keys, -1, np.int32)  # of the transactions so far
    stamp = np.full(keys, -1, np.int32)
    chain = np.empty(keys, np.int32)  # by key: the last read of x in t3 so far, rather of a write
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 in which its initial state is read
    done = np.full(len(txn_session), -1, np.int32)
    head = low  # the first transaction of the session at hand
    for t3 in range(low, high):
        if shared_kernels.previous(txn_session, t3) < 0:
            head = t3
        begin, end = read_start[t3], read_start[t3 + 1]
        for r in range(begin, end):
            x, t1 = read_key[r], read_source[r]
            last = chain[x] if stamp[x] == t3 else -1
            if last >= 0 and t1 >= 0 and read_source[last] >= 0 and read_source[last] != t1:
                edges, count = both_ways(edges, count, txn_session, read_source, last, r)
            if t1 >= 0 or last < 0:
                chain[x] = r
            if t1 < 0:
                initial[x] = t3
            stamp[x] = t3
            t2 = last_writer[x]
            if t2 >= head:  # before t3 in its session
                if t1 < 0:
                    stale += 1
                elif t1 != t2 and not shared_kernels.precedes(txn_session, t2, t1):
                    edges = edge_kernels.add(edges, count, t2, t1, r)
                    count += 1
        for r in range(begin, end):
            t2 = read_source[r]
            if t2 < 0 or done[t2] == t3:
                continue
            done[t2] = t3
            # walk the shorter side: what t2 wrote, or what t3 read
            walk_writes = txn_start[t2 + 1] - txn_start[t2] <= 8 * (end - begin)
            begin_at, end_at = (txn_start[t2], txn_start[t2 + 1]) if walk_writes else (begin, end)
            for at in range(begin_at, end_at):
                x = op_key[at] if walk_writes else read_key[at]
                if stamp[x] != t3 or (walk_writes and not op_kind[at] & 1):
                    continue
                if not walk_writes and not edge_kernels.writes_key(key_start, key_writers, x, t2):
                    continue
                stale += initial[x] == t3
                t1 = read_source[chain[x]]
                if t1 >= 0 and t1 != t2 and not shared_kernels.precedes(txn_session, t2, t1):
                    edges = edge_kernels.add(edges, count, t2, t1, chain[x])
                    count += 1
        if live[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                if op_kind[o] & 1:
                    last_writer[op_key[o]] = t3
    return edges[:count], stale


def both_ways(edges, count, txn_session, read_source, one, other):
    """What two reads of x in one transaction force, from different sources: each of these before the other."""
    for r, earlier in ((one, other), (other, one)):
        if not shared_kernels.precedes(txn_session, read_source[earlier], read_source[r]):
            edges = edge_kernels.add(edges, count, read_source[earlier], read_source[r], r)
            count += 1
    return edges, count
