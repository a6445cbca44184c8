"""Shortest paths, for counterexamples."""

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import order_kernels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.causal import Extra, Ordering, predecessors
from plume_py.history.model import Bools


def causal_path(analysis: Analysis, begin: int, end: int) -> list[int]:
    """A shortest path begin -> … -> end of causal edges; begin must be causally before end."""
    causal = analysis.causal
    # Nothing placed before begin can lie on the way; on cycles the places mean nothing.
    after_begin = (causal.position >= causal.position[begin]) | (causal.component >= 0)
    return _path(analysis, analysis.time_predecessors, begin, end, after_begin)


def cycle_path(analysis: Analysis, extra: Extra, ordering: Ordering, begin: int, end: int) -> list[int]:
    """A shortest path begin -> … -> end inside the cycle on which both lie; begin may equal end."""
    return _path(analysis, extra, begin, end, ordering.component == ordering.component[end])


def _path(analysis: Analysis, extra: Extra, begin: int, end: int, allowed: Bools) -> list[int]:
    history = analysis.history
    dispatch.prepare(2 * history.transactions, order_kernels)
    parent = np.full(history.transactions, -1, np.int32)
    queue = np.empty(2 * history.transactions + 2, np.int32)
    graph = predecessors(history, analysis.reads, extra)
    moments = analysis.given.transactions
    found = order_kernels.shortest_path(begin, end, allowed, moments, graph, parent, queue)
    assert found, "no path between transactions that precede each other"
    path = [begin, int(parent[begin])]
    while path[-1] != end:
        path.append(int(parent[path[-1]]))
    return path
