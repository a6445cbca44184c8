"""Growing arrays of the commit-order edges that a level forces: t2 must commit before t1, because of t3's read of x.

Edges are rows (t2, t1, r, -1), r being the read of x from t1 that forces it (the last column is for orders that lists
fix). Edges that session order implies are left out, and of several t2 in one session the last one stands for all.
Kernels return the edges, and how often the level forbids a read of the initial state (``stale``).
"""

# mypy: allow-untyped-defs

from plume_py.checking.graph import shared_kernels


def add(edges, count, t2, t1, r):
    """``edges`` with one more row, enlarged if need be."""
    edges = shared_kernels.with_room(edges, count)
    edges[count, 0] = t2
    edges[count, 1] = t1
    edges[count, 2] = r
    edges[count, 3] = -1
    return edges


def writes_key(key_start, key_writers, x, t):
    """Does t write x?"""
    at = first_from(key_writers, key_start[x], key_start[x + 1], t)
    return at < key_start[x + 1] and key_writers[at] == t


def first_from(key_writers, low, high, t):
    """Where among the sorted writers low .. high - 1 the first one is that is not before t, by its number."""
    while low < high:
        middle = (low + high) // 2
        if key_writers[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low
