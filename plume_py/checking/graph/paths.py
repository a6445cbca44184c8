"""Shortest paths, for counterexamples."""

import numpy as np

from plume_py.base import accel
from plume_py.checking.graph import order_kernels
from plume_py.checking.graph.causal import Extra, Ordering, predecessors
from plume_py.checking.graph.reads import Reads
from plume_py.history.model import History


def causal_path(history: History, reads: Reads, causal: Ordering, begin: int, end: int) -> list[int]:
    """A shortest path begin -> … -> end of SO and WR edges; begin must be causally before end."""
    # Nothing placed before begin can lie on the way; on cycles the places mean nothing.
    after_begin = (causal.position >= causal.position[begin]) | (causal.component >= 0)
    nothing = Extra.of(np.empty((0, 4), np.int32), history.transactions)
    return _path(history, reads, nothing, begin, end, after_begin)


def cycle_path(history: History, reads: Reads, extra: Extra, ordering: Ordering, begin: int, end: int) -> list[int]:
    """A shortest path begin -> … -> end inside the cycle on which both lie; begin may equal end."""
    return _path(history, reads, extra, begin, end, ordering.component == ordering.component[end])


def _path(
    history: History,
    reads: Reads,
    extra: Extra,
    begin: int,
    end: int,
    allowed: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]",
) -> list[int]:
    accel.prepare(2 * history.transactions, order_kernels)
    parent = np.full(history.transactions, -1, np.int32)
    queue = np.empty(history.transactions + 1, np.int32)
    graph = predecessors(history, reads, extra)
    found = order_kernels.shortest_path(begin, end, allowed, graph, parent, queue)
    assert found, "no path between transactions that precede each other"
    path = [begin, int(parent[begin])]
    while path[-1] != end:
        path.append(int(parent[path[-1]]))
    return path
