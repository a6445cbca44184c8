"""Kernels that other kernels call: session order, real time, binary search, and growing arrays of rows.

Transactions are numbered session by session, so numbers imply the order within a session.
"""

# mypy: allow-untyped-defs

# mypy: allow-untyped-defs
import numpy as np

from plume_py.history.times import NO_TIME


def precedes(txn_session, a, b):
    """Return whether a is before b in session order."""
    return a < b and txn_session[a] == txn_session[b]


def previous(txn_session, t):
    """Return the transaction directly before t in its session, or -1."""
    return t - 1 if t > 0 and txn_session[t - 1] == txn_session[t] else -1


def ended_before(begin, end, a, b):
    """Return whether real time is included and a is known to have ended before b began."""
    return len(end) > 0 and NO_TIME < end[a] < begin[b]


def with_room(rows, count):
    """Return ``rows``, of which ``count`` are used, with room for at least one more."""
    if count < rows.shape[0]:
        return rows
    larger = np.empty((2 * count, rows.shape[1]), rows.dtype)
    for i in range(count):  # copying a slice at once takes the compiler seconds longer
        for j in range(rows.shape[1]):
            larger[i, j] = rows[i, j]
    return larger


def lower_bound(values, low, high, bound):
    """Return the index of the first of the sorted values low .. high - 1 that is not below ``bound``, or ``high``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
