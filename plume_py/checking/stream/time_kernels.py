"""Kernels for real time: who had ended before whom began.

In a session times only grow. So of each session the last one that had ended stands for all before it, and the first one
that began for all after it; both are found by the times themselves, and no pair is written down. ``m.ended`` and
``m.begun`` are lists of those of a session whose end, or beginning, is known and counts: who aborted comes before and
after nobody, and who has an unknown outcome has no end, and a beginning only once somebody has read from it.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import reachability_kernels as reach
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.table_kernels import (
    COMMITTED,
    INIT_TXN,
    LENGTH,
    OFFSET,
    POSITION,
    REAL_TIME,
    SESSION,
    SESSIONS,
    STATUS,
    WRITERS,
)
from plume_py.history.times import NO_TIME


def enter_times(m, t):
    """The times of a new t count from now on, if it has committed."""
    if m.n[REAL_TIME] and m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        enter_begin(m, t)
        if m.end[t] > NO_TIME:
            number = m.ended[m.txn[t, SESSION]]
            tables.insert(m, number, m.lists[number, LENGTH], t)


def enter_begin(m, t):
    """When t began counts from now on."""
    if m.begin[t] > NO_TIME:
        number = m.begun[m.txn[t, SESSION]]
        tables.insert(m, number, tables.writers_up_to(m, number, m.txn[t, POSITION]), t)


def last_ended(m, s, moment):
    """The last transaction of session s that had ended before ``moment``, or -1."""
    number = m.ended[s]
    offset = m.lists[number, OFFSET]
    low, high = 0, m.lists[number, LENGTH]
    if high and m.end[m.pool[offset + high - 1]] < moment:
        return m.pool[offset + high - 1]
    while low < high:
        middle = (low + high) // 2
        if m.end[m.pool[offset + middle]] < moment:
            low = middle + 1
        else:
            high = middle
    return m.pool[offset + low - 1] if low else -1


def first_begun(m, s, moment):
    """The first transaction of session s that began after ``moment``, or -1."""
    number = m.begun[s]
    offset, length = m.lists[number, OFFSET], m.lists[number, LENGTH]
    low, high = 0, length
    if length == 0 or m.begin[m.pool[offset + length - 1]] <= moment:
        return -1
    while low < high:
        middle = (low + high) // 2
        if m.begin[m.pool[offset + middle]] <= moment:
            low = middle + 1
        else:
            high = middle
    return m.pool[offset + low]


def ended_before(m, t, s):
    """The last of session s that is known to have ended before t, of another session, began; or -1."""
    if m.begin[t] == NO_TIME or s == m.txn[t, SESSION]:
        return -1
    return last_ended(m, s, m.begin[t])


def began_after(m, t, s):
    """The first of session s that is known to have begun after t, of another session, had ended; or -1."""
    ended = m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN] and m.end[t] > NO_TIME
    if not ended or s == m.txn[t, SESSION]:
        return -1
    return first_begun(m, s, m.end[t])


def last_ended_writer(m, slot, s, moment):
    """The last live writer of the slot's key in session s that had ended before ``moment``, or -1."""
    number = m.slot[slot, WRITERS]
    u = last_ended(m, s, moment)
    if number < 0 or u < 0:
        return -1
    at = tables.writers_up_to(m, number, m.txn[u, POSITION]) - 1
    while at >= 0:
        writer = m.pool[m.lists[number, OFFSET] + at]
        if m.txn[writer, STATUS] == COMMITTED and m.end[writer] > NO_TIME:
            return writer
        at -= 1
    return -1


def join_ended(m, layer, t):
    """A new t learns of all that had ended before it began."""
    if not m.n[REAL_TIME] or m.txn[t, STATUS] != COMMITTED or t == m.n[INIT_TXN]:
        return
    for s in range(m.n[SESSIONS]):
        u = ended_before(m, t, s)
        if u >= 0:
            reach.join(m, layer, t, u)
