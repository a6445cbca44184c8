"""Kernels that keep a commit order of each level while edges arrive, as long as that is cheap.

Transactions stand in a row, at first as they arrive. An edge that agrees with the row costs nothing. For one that does
not, u -> v with v before u, only what stands between the two is looked at: whatever follows v there moves behind
whatever leads to u (the algorithm of Pearce and Kelly). If u follows v, that is a cycle.

Streams mostly arrive nearly in commit order, and this is then far cheaper than the layers of ``reach_kernels``. Where
they do not, the steps add up (``m.n[STEPS + level]``), and the caller changes over to a layer.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream import time_kernels as times
from plume_py.checking.stream.table_kernels import (
    EDGE,
    EDGE_FROM,
    EDGE_LEVEL,
    EDGE_TO,
    FIRST_READ,
    LIVE,
    NEXT,
    NEXT_IN,
    NEXT_OUT,
    OUT,
    POSITION,
    READ_BY,
    READER,
    REAL_TIME,
    SESSION,
    SESSIONS,
    SOURCE,
    STAMP,
    STEPS,
)

AFTER, BEFORE = 0, 1  # rows of ``m.affected``


def append(m, level, t):
    """A new t comes last."""
    m.place[level, t] = t


def put_before(m, level, u, v):
    """Make the order agree with the edge u -> v; False if that closes a cycle."""
    low, high = m.place[level, v], m.place[level, u]
    if high < low:
        return True
    if u == v:
        return False
    m.n[STAMP] += 1
    after = find_after(m, level, v, u, high)
    if after < 0:
        return False
    m.n[STAMP] += 1
    leading = find_before(m, level, u, low)
    rearrange(m, level, after, leading)
    return True


def visit(m, level, row, count, t, low, high):
    """Put t among those found, unless it is there or stands outside; returns how many there are."""
    m.n[STEPS + level] += 1
    if m.mark[t] == m.n[STAMP] or m.place[level, t] < low or m.place[level, t] > high:
        return count
    m.mark[t] = m.n[STAMP]
    m.affected[row, count] = t
    return count + 1


def find_after(m, level, v, u, high):
    """All that follow v and stand at most at ``high``; returns how many, or -1 if u is one of them."""
    count = visit(m, level, AFTER, 0, v, 0, high)
    done = 0
    while done < count:
        t = m.affected[AFTER, done]
        done += 1
        if t == u:
            return -1
        s = m.txn[t, SESSION]
        if m.txn[t, POSITION] < tables.length_of(m, s):
            count = visit(m, level, AFTER, count, tables.at_position(m, s, m.txn[t, POSITION] + 1), 0, high)
        r = m.txn[t, READ_BY]
        while r >= 0:
            count = visit(m, level, AFTER, count, m.read[r, READER], 0, high)
            r = m.read[r, NEXT]
        e = m.txn[t, OUT]
        while e >= 0:
            if m.edge[e, EDGE_LEVEL] == level:
                count = visit(m, level, AFTER, count, m.edge[e, EDGE_TO], 0, high)
            e = m.edge[e, NEXT_OUT]
        if m.n[REAL_TIME]:
            for b in range(m.n[SESSIONS]):
                later = times.began_after(m, t, b)
                if later >= 0:
                    count = visit(m, level, AFTER, count, later, 0, high)
    return count


def find_before(m, level, u, low):
    """All that lead to u and stand at least at ``low``; returns how many."""
    high = m.place[level, u]
    count = visit(m, level, BEFORE, 0, u, low, high)
    done = 0
    while done < count:
        t = m.affected[BEFORE, done]
        done += 1
        if m.txn[t, POSITION] > 1:
            previous = tables.at_position(m, m.txn[t, SESSION], m.txn[t, POSITION] - 1)
            count = visit(m, level, BEFORE, count, previous, low, high)
        for r in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
            if m.read[r, SOURCE] >= 0:
                count = visit(m, level, BEFORE, count, m.read[r, SOURCE], low, high)
        e = m.txn[t, EDGE]
        while e >= 0:
            if m.edge[e, EDGE_LEVEL] == level:
                count = visit(m, level, BEFORE, count, m.edge[e, EDGE_FROM], low, high)
            e = m.edge[e, NEXT_IN]
        if m.n[REAL_TIME] and m.txn[t, LIVE]:
            for b in range(m.n[SESSIONS]):
                earlier = times.ended_before(m, t, b)
                if earlier >= 0:
                    count = visit(m, level, BEFORE, count, earlier, low, high)
    return count


def rearrange(m, level, after, leading):
    """Those that lead to u, and then those that follow v, take the places of all of them, each in their old order."""
    by_place(m, level, AFTER, after)
    by_place(m, level, BEFORE, leading)
    i = j = 0
    for k in range(leading + after):  # all places, ascending
        if j == after or (i < leading and m.place[level, m.affected[BEFORE, i]] < m.place[level, m.affected[AFTER, j]]):
            m.free_places[k] = m.place[level, m.affected[BEFORE, i]]
            i += 1
        else:
            m.free_places[k] = m.place[level, m.affected[AFTER, j]]
            j += 1
    for k in range(leading + after):
        t = m.affected[BEFORE, k] if k < leading else m.affected[AFTER, k - leading]
        m.place[level, t] = m.free_places[k]


def by_place(m, level, row, count):
    """Sort those found by where they stand (Shell's method: they are few, and it needs no room)."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            t = m.affected[row, i]
            j = i
            while j >= gap and m.place[level, m.affected[row, j - gap]] > m.place[level, t]:
                m.affected[row, j] = m.affected[row, j - gap]
                j -= gap
            m.affected[row, j] = t
        gap //= 3
