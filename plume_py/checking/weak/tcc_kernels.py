"""Transactional causal consistency: the edges that it forces (see ``edge_kernels``).

Either all of them, or, which is mostly nothing, those that contradict an order at hand.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import clock_kernels
from plume_py.checking.graph.records import Clocks, Columns, ExternalReads, KeyGroups, Slots, Writers
from plume_py.checking.weak import edge_kernels


def forced_edges(first, last, reads: ExternalReads, writers: Writers, groups: KeyGroups, clocks: Clocks):
    """For the readers first .. last - 1 and the writers t2 of one block of sessions.

    Within a session clocks only grow, so the last visible writer of x per session is found by a cursor. An edge that
    the causal order implies anyway (t2 before t1) is left out: in healthy histories that is nearly all of them.
    """
    txn_session, key_writers = clocks.txn_session, writers.txn
    read_start, _, read_key, read_source = reads
    key_group, group_start, group_session = groups
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    cursor = np.empty(len(group_session), np.int32)
    visible = np.empty(len(group_session), np.int32)  # by group: the last visible writer, or -1
    upcoming = np.empty(len(group_session), np.int32)  # by group: the first writer that is not
    reader_session = np.full(len(key_group) - 1, -1, np.int32)
    row = clock_kernels.empty_row(clocks)
    for t3 in range(first, last):
        row = clock_kernels.row_of(clocks, t3, t3 == first, row)
        for r in range(read_start[t3], read_start[t3 + 1]):
            x, t1 = read_key[r], read_source[r]
            if reader_session[x] != txn_session[t3]:
                reader_session[x] = txn_session[t3]
                for g in range(key_group[x], key_group[x + 1]):
                    cursor[g] = group_start[g]
                    visible[g] = -1
                    upcoming[g] = key_writers[group_start[g]]
            for g in range(key_group[x], key_group[x + 1]):
                s = group_session[g]
                if s < clocks.low or s >= clocks.high:
                    continue
                horizon = clocks.session_start[s] + row[s - clocks.low]
                if upcoming[g] < horizon:
                    advance(g, horizon, cursor, visible, upcoming, group_start, key_writers)
                t2 = visible[g]
                if t2 == t3:
                    # on a causal cycle t3 is before itself; it is no t2, but the writer before it is
                    t2 = key_writers[cursor[g] - 2] if cursor[g] - 2 >= group_start[g] else -1
                if t1 < 0:
                    stale += t2 >= 0
                elif t2 >= 0 and t2 != t1 and t2 >= clock_kernels.horizon(clocks, t1, s):
                    edges = edge_kernels.add(edges, count, t2, t1, r)
                    count += 1
    return edges[:count], stale


def advance(g, horizon, cursor, visible, upcoming, group_start, key_writers):
    """Move the cursor of a group behind its last writer before ``horizon``."""
    at, end = cursor[g], group_start[g + 1]
    while at < end and key_writers[at] < horizon:
        at += 1
    cursor[g] = at
    visible[g] = key_writers[at - 1]
    upcoming[g] = key_writers[at] if at < end else 0x7FFFFFFF


def lay_out(order, columns: Columns, live, reads: ExternalReads, slots: Slots):
    """Copy reads and writes so that they follow one another as in ``order``; slot i is the i-th transaction there.

    Every later pass, in this order or one close to it, then runs through memory instead of jumping about.
    """
    op_kind, op_key, txn_start = columns.op_kind, columns.op_key, columns.txn_start
    read_count = write_count = 0
    for i in range(len(order)):
        t = order[i]
        slots.read_start[i] = read_count
        slots.write_start[i] = write_count
        for r in range(reads.start[t], reads.start[t + 1]):
            slots.read_key[read_count] = reads.key[r]
            slots.read_source[read_count] = reads.source[r]
            slots.read_number[read_count] = r
            read_count += 1
        if live[t]:
            for o in range(txn_start[t], txn_start[t + 1]):
                if op_kind[o] & 1:
                    slots.write_key[write_count] = op_key[o]
                    write_count += 1
    slots.read_start[len(order)] = read_count
    slots.write_start[len(order)] = write_count


def backward_edges(order, slot, slots: Slots, keys, clocks: Clocks, budget):
    """What TCC forces against a given order of the transactions (a linear extension of the causal order).

    Of all writers of x only those placed between t1 and t3 can contradict the order; mostly there are none, since t1 is
    the last one placed. A t1 of -1 is the initial state. ``slot`` is where ``lay_out`` put each transaction. Returns
    also the steps left of ``budget``; negative: gave up.
    """
    read_start, write_start, read_key, read_source, read_number, write_key = slots
    txn_session = clocks.txn_session
    edges, count = np.empty((64, 4), np.int32), 0
    last_writer = np.full(keys, -1, np.int32)  # by key, of those placed so far
    latest = np.full(keys, -1, np.int32)  # by key: its write; ``before`` leads to the write before that
    before = np.empty(len(write_key), np.int32)
    owner = np.empty(len(write_key), np.int32)
    placed = 0
    for t3 in order:
        at = slot[t3]
        for i in range(read_start[at], read_start[at + 1]):
            x = read_key[i]
            t1 = read_source[i]
            if last_writer[x] == t1:
                continue
            write = latest[x]
            while write >= 0 and owner[write] != t1:
                t2 = owner[write]
                if t2 < clock_kernels.horizon(clocks, t3, txn_session[t2]):
                    edges = edge_kernels.add(edges, count, t2, t1, read_number[i])
                    count += 1
                write = before[write]
                budget -= 1
            if budget < 0:
                return edges[:count], budget
        for i in range(write_start[at], write_start[at + 1]):
            x = write_key[i]
            if last_writer[x] != t3:
                last_writer[x] = t3
                owner[placed] = t3
                before[placed] = latest[x]
                latest[x] = placed
                placed += 1
    return edges[:count], budget
