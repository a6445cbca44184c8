"""Kernels that derive the commit-order edges that a level forces: t2 must commit before t1, because of t3's read of x.

Edges are rows (t2, t1, r, -1) of a growing array, r being the read of x from t1 that forces it (the last column is for
orders that lists fix). Edges that session order
implies are left out, and of several t2 in one session the last one stands for all. A read of the initial state that the
level forbids is counted in ``stale``.
"""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.checking.graph import clock_kernels, row_kernels


def add(edges, count, t2, t1, r):
    """``edges`` with one more row, enlarged if need be."""
    edges = row_kernels.with_room(edges, count)
    edges[count, 0] = t2
    edges[count, 1] = t1
    edges[count, 2] = r
    edges[count, 3] = -1
    return edges


def writes_key(key_start, key_writers, x, t):
    """Does t write x? (binary search among the writers of x)"""
    low, high = key_start[x], key_start[x + 1]
    while low < high:
        middle = (low + high) // 2
        if key_writers[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low < key_start[x + 1] and key_writers[low] == t


def follows(txn_session, t2, t1):
    """Is t1 after t2 in the same session?"""
    return t2 < t1 and txn_session[t2] == txn_session[t1]


def rc_edges(
    low, high, op_kind, op_key, txn_start, txn_session, read_start, read_op, read_source, key_start, key_writers,
):  # fmt: skip
    """Read committed, for t3 = low .. high - 1: t3 read something from t2 and, later, x from t1.

    Reads are scanned backwards. Per key, the later reads are chained, one for each run of the same source. The first
    two of a chain decide the level (the first may be t2 itself, and the same rule orders the sources further on); the
    others matter only for naming what is wrong, so a chain is followed for a bounded number of steps.
    """
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    stamp = np.full(keys, -1, np.int32)
    initial = np.full(keys, -1, np.int32)  # by key: the last t3 in which the initial state is read later
    chain = np.empty(keys, np.int32)
    following = np.empty(len(read_op), np.int32)
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
                    x = op_key[at] if walk_writes else op_key[read_op[at]]
                    if stamp[x] != t3 or not (walk_writes or writes_key(key_start, key_writers, x, t2)):
                        continue
                    stale += initial[x] == t3
                    later = chain[x]
                    steps = 0
                    while later >= 0 and steps < 1000:
                        t1 = read_source[later]
                        if t1 != t2 and not follows(txn_session, t2, t1):
                            edges = add(edges, count, t2, t1, later)
                            count += 1
                        later = following[later]
                        steps += 1
            x = op_key[read_op[r]]
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


def ra_edges(
    low, high, op_kind, op_key, txn_start, txn_session, read_start, read_op, read_source, key_start, key_writers, live,
):  # fmt: skip
    """Read atomic, for t3 = low .. high - 1 (whole sessions): t2 is before t3 in it, or t3 read from t2."""
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    keys = len(key_start) - 1
    last_writer = np.full(keys, -1, np.int32)  # in the session at hand
    writer_session = np.full(keys, -1, np.int32)
    stamp = np.full(keys, -1, np.int32)
    chain = np.empty(keys, np.int32)  # by key: the last read of x in t3; ``previous`` leads to the one before
    previous = np.empty(len(read_op), np.int32)
    done = np.full(len(txn_session), -1, np.int32)
    for t3 in range(low, high):
        begin, end = read_start[t3], read_start[t3 + 1]
        for r in range(begin, end):
            x, t1 = op_key[read_op[r]], read_source[r]
            previous[r] = chain[x] if stamp[x] == t3 else -1
            stamp[x] = t3
            chain[x] = r
            if writer_session[x] == txn_session[t3]:
                t2 = last_writer[x]
                if t1 < 0:
                    stale += 1
                elif t1 != t2 and not follows(txn_session, t2, t1):
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
                x = op_key[at] if walk_writes else op_key[read_op[at]]
                if stamp[x] != t3 or (walk_writes and not op_kind[at] & 1):
                    continue
                if not walk_writes and not writes_key(key_start, key_writers, x, t2):
                    continue
                other = chain[x]
                while other >= 0:
                    t1 = read_source[other]
                    if t1 < 0:
                        stale += 1
                    elif t1 != t2 and not follows(txn_session, t2, t1):
                        edges = add(edges, count, t2, t1, other)
                        count += 1
                    other = previous[other]
        if live[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                if op_kind[o] & 1:
                    last_writer[op_key[o]] = t3
                    writer_session[op_key[o]] = txn_session[t3]
    return edges[:count], stale


def lay_out(
    order, op_kind, op_key, txn_start, live, read_start, read_op, read_source,
    slot_read, slot_write, read_key, read_from, read_number, write_key,
):  # fmt: skip
    """Copy reads and writes so that they follow one another as in ``order``; slot i is the i-th transaction there.

    Slot i has the reads slot_read[i] .. slot_read[i + 1] - 1 (key, source and number of each) and the writes
    slot_write[i] .. likewise.
    Every later pass, in this order or one close to it, then runs through memory instead of jumping about.
    """
    reads = writes = 0
    for i in range(len(order)):
        t = order[i]
        slot_read[i] = reads
        slot_write[i] = writes
        for r in range(read_start[t], read_start[t + 1]):
            read_key[reads] = op_key[read_op[r]]
            read_from[reads] = read_source[r]
            read_number[reads] = r
            reads += 1
        if live[t]:
            for o in range(txn_start[t], txn_start[t + 1]):
                if op_kind[o] & 1:
                    write_key[writes] = op_key[o]
                    writes += 1
    slot_read[len(order)] = reads
    slot_write[len(order)] = writes


def tcc_backward_edges(
    order, slot, slot_read, slot_write, read_key, read_from, read_number, write_key,
    txn_session, keys, clocks, budget,
):  # fmt: skip
    """What TCC forces against a given order of the transactions (a linear extension of the causal order).

    Of all writers of x only those placed between t1 and t3 can contradict the order; mostly there are none, since t1 is
    the last one placed. A t1 of -1 is the initial state. ``slot`` is where ``lay_out`` put each transaction. Returns
    also the steps left of ``budget``; negative: gave up.
    """
    edges, count = np.empty((64, 4), np.int32), 0
    last_writer = np.full(keys, -1, np.int32)  # by key, of those placed so far
    latest = np.full(keys, -1, np.int32)  # by key: its write; ``before`` leads to the write before that
    before = np.empty(len(write_key), np.int32)
    owner = np.empty(len(write_key), np.int32)
    placed = 0
    for t3 in order:
        at = slot[t3]
        for i in range(slot_read[at], slot_read[at + 1]):
            x = read_key[i]
            t1 = read_from[i]
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
        for i in range(slot_write[at], slot_write[at + 1]):
            x = write_key[i]
            if last_writer[x] != t3:
                last_writer[x] = t3
                owner[placed] = t3
                before[placed] = latest[x]
                latest[x] = placed
                placed += 1
    return edges[:count], budget


def tcc_edges(
    first, last, op_key, txn_session, read_start, read_op, read_source,
    key_writers, key_group, group_start, group_session, clocks,
):  # fmt: skip
    """Transactional causal consistency, for the readers first .. last - 1 and the writers t2 of one block of sessions.

    Within a session clocks only grow, so the last visible writer of x per session is found by a cursor. An edge that
    the causal order implies anyway (t2 before t1) is left out: in healthy histories that is nearly all of them.
    """
    edges, count, stale = np.empty((64, 4), np.int32), 0, 0
    cursor = np.empty(len(group_session), np.int32)
    visible = np.empty(len(group_session), np.int32)  # by group: the last visible writer, or -1
    upcoming = np.empty(len(group_session), np.int32)  # by group: the first writer that is not
    reader_session = np.full(len(key_group) - 1, -1, np.int32)
    row = clock_kernels.empty_row(clocks)
    for t3 in range(first, last):
        row = clock_kernels.row_of(clocks, t3, t3 == first, row)
        for r in range(read_start[t3], read_start[t3 + 1]):
            x, t1 = op_key[read_op[r]], read_source[r]
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
                    edges = add(edges, count, t2, t1, r)
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
