"""Kernels that derive the commit-order edges of RC, RA and TCC: t2 must commit before t1, because of t3's read of x.

Edges are rows (t2, t1, r, -1): r is the read of x from t1 that forces the edge (the last column is for orders that
lists show). Edges that session order implies are left out, and of several t2 in one session the last one implies the
others.

- ``read_committed_edges``, ``read_atomic_edges``, ``causal_edges`` return all edges of a level, and how often the level
forbids a read of the initial state (``stale``).
- ``backward_direct_edges`` (RC, RA) and ``backward_causal_edges`` (TCC) return only the edges that contradict a given
order, usually none, and the remaining ``budget``.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import clock_kernels, shared_kernels
from plume_py.checking.graph.records import Clocks, Columns, ExternalReads, KeyGroups, Slots, Spans, Writers


def read_committed_edges(low, high, columns: Columns, reads: ExternalReads, writers: Writers):
    """Derive RC for t3 = low .. high - 1: t3 read from t2 and, later, x from t1.

    Reads are scanned backwards. Consecutive sources of a key get an edge. From any other t2, one edge to the next
    source is enough, because that source leads to all later ones.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    key_start, key_writers = writers
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    stamp = np.full(keys, -1, np.int32)
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 with a later read of the initial state
    following = np.empty(keys, np.int32)  # by key: the next read with a writer, or -1
    first = np.full(len(txn_session), -1, np.int32)  # by t2: the first read of t3 from it
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
                    if stamp[x] != t3 or not (walk_writes or writes_key(key_start, key_writers, x, t2)):
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
    """Add the edge from t2 to the source of read r, if r exists and the edge is not implied."""
    if r >= 0:
        t1 = read_source[r]
        if t1 != t2 and not shared_kernels.precedes(txn_session, t2, t1):
            edges = add(edges, count, t2, t1, r)
            count += 1
    return edges, count


def read_atomic_edges(low, high, columns: Columns, reads: ExternalReads, writers: Writers, participates):
    """Derive RA for t3 = low .. high - 1 (whole sessions): t2 is before t3 in its session, or t3 read from t2.

    If t3 read x from several transactions, each of them must come before each other. Of these edges, the result
    contains only those between consecutive sources, in both directions. From other transactions that t3 read from, it
    contains one edge into that cycle. These edges imply all others.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    key_start, key_writers = writers
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    last_writer = np.full(keys, -1, np.int32)  # by key, among the transactions so far
    stamp = np.full(keys, -1, np.int32)
    chain = np.empty(keys, np.int32)  # by key: the last read of x in t3, preferably one with a writer
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 in which its initial state is read
    done = np.full(len(txn_session), -1, np.int32)
    head = low  # the first transaction of the current session
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
                    edges = add(edges, count, t2, t1, r)
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
                if not walk_writes and not writes_key(key_start, key_writers, x, t2):
                    continue
                stale += initial[x] == t3
                t1 = read_source[chain[x]]
                if t1 >= 0 and t1 != t2 and not shared_kernels.precedes(txn_session, t2, t1):
                    edges = add(edges, count, t2, t1, chain[x])
                    count += 1
        if participates[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                if op_kind[o] & 1:
                    last_writer[op_key[o]] = t3
    return edges[:count], stale


def both_ways(edges, count, txn_session, read_source, one, other):
    """What two reads of x in one transaction force, from different sources: each of these before the other."""
    for r, earlier in ((one, other), (other, one)):
        if not shared_kernels.precedes(txn_session, read_source[earlier], read_source[r]):
            edges = add(edges, count, read_source[earlier], read_source[r], r)
            count += 1
    return edges, count


def backward_direct_edges(
    order, atomic, columns: Columns, participates, reads: ExternalReads, keys, spans: Spans, budget
):
    """Return the edges of RC, or of RA if ``atomic``, against ``order``, a linear extension of the causal order.

    In RC, t3 read from t2; in RA, t2 may also precede t3 in its session or in real time. Only writers of x placed
    between t1 and t3 can contradict the order, and usually there are none, since t1 is the last one placed. A t1 of -1
    is the initial state. A negative remaining ``budget`` means that the search was abandoned.
    """
    op_kind, op_key, txn_start, txn_session = columns.op_kind, columns.op_key, columns.txn_start, columns.txn_session
    read_start, _, read_key, read_source = reads
    edges, count = np.empty((64, 4), np.int32), 0
    latest = np.full(keys, -1, np.int32)  # by key: its last writer so far
    place = np.full(keys, -1, np.int32)  # and its index in the next two arrays
    owner = np.empty(len(op_key), np.int32)
    before = np.empty(len(op_key), np.int32)  # index of the previous writer
    reader = np.full(len(txn_session), -1, np.int32)  # by t2: the last t3 that read from it
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
                        edges = add(edges, count, t2, t1, r)
                        count += 1
                    at = before[at]
                    budget -= 1
                if budget < 0:
                    return edges[:count], budget
            if t1 >= 0:
                reader[t1] = t3
        if participates[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                x = op_key[o]
                if op_kind[o] & 1 and latest[x] != t3:
                    latest[x] = t3
                    owner[placed] = t3
                    before[placed] = place[x]
                    place[x] = placed
                    placed += 1
    return edges[:count], budget


def causal_edges(first, last, reads: ExternalReads, writers: Writers, groups: KeyGroups, clocks: Clocks):
    """Derive TCC for the readers first .. last - 1 and the writers t2 of one block of sessions.

    Within a session clocks only grow, so a cursor finds the last visible writer of x per session. An edge that the
    causal order implies (t2 before t1) is left out: in histories without violations, nearly all edges are.
    """
    txn_session, key_writers = clocks.txn_session, writers.txn
    read_start, _, read_key, read_source = reads
    key_group, group_start, group_session = groups
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    cursor = np.empty(len(group_session), np.int32)
    visible = np.empty(len(group_session), np.int32)  # by group: the last visible writer, or -1
    upcoming = np.empty(len(group_session), np.int32)  # by group: the first writer that is not visible
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
                    # on a causal cycle t3 is before itself; then the writer before it is t2
                    t2 = key_writers[cursor[g] - 2] if cursor[g] - 2 >= group_start[g] else -1
                if t1 < 0:
                    stale += t2 >= 0
                elif t2 >= 0 and t2 != t1 and t2 >= clock_kernels.horizon(clocks, t1, s):
                    edges = add(edges, count, t2, t1, r)
                    count += 1
    return edges[:count], stale


def advance(g, horizon, cursor, visible, upcoming, group_start, key_writers):
    """Move the cursor of a group past its last writer before ``horizon``."""
    at, end = cursor[g], group_start[g + 1]
    while at < end and key_writers[at] < horizon:
        at += 1
    cursor[g] = at
    visible[g] = key_writers[at - 1]
    upcoming[g] = key_writers[at] if at < end else 0x7FFFFFFF


def lay_out_slots(order, columns: Columns, participates, reads: ExternalReads, slots: Slots):
    """Copy reads and writes in the sequence of ``order``; slot i is its i-th transaction.

    Later passes, in this order or a similar one, then read memory sequentially.
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
        if participates[t]:
            for o in range(txn_start[t], txn_start[t + 1]):
                if op_kind[o] & 1:
                    slots.write_key[write_count] = op_key[o]
                    write_count += 1
    slots.read_start[len(order)] = read_count
    slots.write_start[len(order)] = write_count


def backward_causal_edges(order, slot, slots: Slots, keys, clocks: Clocks, budget):
    """Return the edges of TCC against ``order``, a linear extension of the causal order.

    Only writers of x placed between t1 and t3 can contradict the order, and usually there are none, since t1 is the
    last one placed. A t1 of -1 is the initial state. ``slot`` is the slot of each transaction in ``lay_out_slots``. A
    negative remaining ``budget`` means that the search was abandoned.
    """
    read_start, write_start, read_key, read_source, read_number, write_key = slots
    txn_session = clocks.txn_session
    edges, count = np.empty((64, 4), np.int32), 0
    last_writer = np.full(keys, -1, np.int32)  # by key, among those placed so far
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
                    edges = add(edges, count, t2, t1, read_number[i])
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


def add(edges, count, t2, t1, r):
    edges = shared_kernels.with_room(edges, count)
    edges[count, 0] = t2
    edges[count, 1] = t1
    edges[count, 2] = r
    edges[count, 3] = -1
    return edges


def writes_key(key_start, key_writers, x, t):
    at = shared_kernels.lower_bound(key_writers, key_start[x], key_start[x + 1], t)
    return at < key_start[x + 1] and key_writers[at] == t
