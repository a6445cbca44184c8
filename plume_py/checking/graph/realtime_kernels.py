"""Kernels of real-time order. ``end[t]`` is NO_TIME if t has no end time or does not participate."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import ExternalReads, KeyGroups, Spans, Writers
from plume_py.history.times import NO_TIME


def nearest_by_key(start, by_begin, by_end, begin, end):
    """Return edges (a, b): a ended before b began, both access x, and no other transaction of x fits in between.

    These edges imply all others. The transactions of key x are start[x] .. start[x + 1] - 1, once sorted by start time
    and once by end time.
    """
    edges, count = np.empty((64, 2), np.int32), 0
    for x in range(len(start) - 1):
        first = done = start[x]  # from ``first`` on, no transaction fits in between
        while done < start[x + 1] and end[by_end[done]] == NO_TIME:
            done += 1
        first, latest = done, NO_TIME
        for i in range(start[x], start[x + 1]):
            b = by_begin[i]
            if begin[b] == NO_TIME:
                continue
            while done < start[x + 1] and end[by_end[done]] < begin[b]:
                latest = max(latest, begin[by_end[done]])
                done += 1
            while first < done and end[by_end[first]] < latest:
                first += 1
            for k in range(first, done):
                edges = shared_kernels.with_room(edges, count)
                edges[count, 0] = by_end[k]
                edges[count, 1] = b
                count += 1
    return edges[:count]


def forced_edges(reads: ExternalReads, writers: Writers, groups: KeyGroups, txn_session, spans: Spans):
    """Return rows (t2, t1, r, -1): t3 read x from t1, although t2, another writer of x, had ended before t3 began.

    Of the writers in one session, the last one implies the others. t1 is -1 if the initial state was read.
    """
    begin, end = spans
    edges, count = np.empty((64, 4), np.int32), 0
    cursor = np.empty(len(groups.group_session), np.int64)
    visible = np.empty(len(groups.group_session), np.int32)  # by group: the last writer that had ended, or -1
    reader_session = np.full(len(groups.key_group) - 1, -1, np.int32)
    for t3 in range(len(reads.start) - 1):
        now = begin[t3]
        if now == NO_TIME:
            continue
        for r in range(reads.start[t3], reads.start[t3 + 1]):
            x, t1 = reads.key[r], reads.source[r]
            if reader_session[x] != txn_session[t3]:
                reader_session[x] = txn_session[t3]
                for g in range(groups.key_group[x], groups.key_group[x + 1]):
                    cursor[g] = groups.group_start[g]
                    visible[g] = -1
            for g in range(groups.key_group[x], groups.key_group[x + 1]):
                if groups.group_session[g] == txn_session[t3]:
                    continue
                at = cursor[g]
                while at < groups.group_start[g + 1] and end[writers.txn[at]] < now:
                    if end[writers.txn[at]] > NO_TIME:
                        visible[g] = writers.txn[at]
                    at += 1
                cursor[g] = at
                t2 = visible[g]
                if t2 < 0 or t2 == t1:
                    continue
                if t1 < 0 or not shared_kernels.precedes(txn_session, t2, t1):
                    edges = shared_kernels.with_room(edges, count)
                    edges[count, 0] = t2
                    edges[count, 1] = t1
                    edges[count, 2] = r
                    edges[count, 3] = -1
                    count += 1
    return edges[:count]
