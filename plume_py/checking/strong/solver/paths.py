"""Short paths and cycles in commit graphs, for explanations: the shorter they are, the less there is to be told."""

from functools import cached_property

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.strong.solver import node_kernels
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import CommitGraph
from plume_py.history.model import Bools, Int32s

# Edges of each kind through which a shortest cycle is looked for.
STARTS = 128
# By how many edges a cycle may be longer than the shortest so far.
SLACK = 2


class Paths:
    """Shortest paths in one graph; moments of real time cost nothing."""

    def __init__(self, layout: SolverColumns, graph: CommitGraph) -> None:
        self.graph = graph
        dispatch.prepare(graph.nodes + len(graph.target), node_kernels)
        moments = layout.analysis.given.transactions
        costs_nothing = (graph.target >= moments) & (graph.target < layout.transactions)
        self._weight = np.where(costs_nothing, 0, 1).astype(np.uint8)
        self._distance = np.full(graph.nodes, -1, np.int32)
        self._parent, self._touched = np.empty(graph.nodes, np.int32), np.empty(graph.nodes, np.int32)
        self._deque = np.empty(2 * len(graph.source) + 4, np.int32)

    @cached_property
    def _place(self) -> Int32s | None:
        """By node: where it stands in a topological order, if there is one. No path leads from later to earlier."""
        order = self.graph.order()
        if len(order) < self.graph.nodes:
            return None
        place = np.empty(self.graph.nodes, np.int32)
        place[order] = np.arange(self.graph.nodes)
        return place

    def rows(self, begin: int, end: int) -> list[int] | None:
        """The rows on a shortest path begin -> … -> end, or None if there is none."""
        place = self._place
        if place is None:
            outside = np.zeros(self.graph.nodes, np.int32)
        else:
            outside = ((place < place[begin]) | (place > place[end])).astype(np.int32)
        edges = self.edges(begin, end, outside, self.graph.nodes)
        return None if edges is None else [row for row in self.graph.row[edges].tolist() if row >= 0]

    def edges(self, begin: int, end: int, component: Int32s, longest: int) -> list[int] | None:
        """The edges of a shortest path inside the component of its end; None if there is none up to ``longest``."""
        graph = self.graph
        found = node_kernels.cheapest_path(
            begin, end, component, graph.start, graph.edges, graph.target, self._weight, longest, self._distance,
            self._parent, self._touched, self._deque,
        )  # fmt: skip
        if found < 0:
            return None
        path: list[int] = []
        while end != begin:
            path.append(int(self._parent[end]))
            end = int(graph.source[path[-1]])
        return path[::-1]


def short_cycles(layout: SolverColumns, graph: CommitGraph, *kinds: Bools) -> list[list[int]]:
    """The rows of short cycles, the shortest first: each a shortest one through some row of one of these ``kinds``."""
    component = graph.components()
    on_cycle = (component[graph.source] == component[graph.target]) & (graph.row >= 0)
    paths = Paths(layout, graph)
    longest, found = graph.nodes, []
    for kind in kinds:
        candidates = np.flatnonzero(on_cycle & kind[graph.row])
        for edge in candidates[:: 1 + len(candidates) // STARTS].tolist():
            back = paths.edges(int(graph.target[edge]), int(graph.source[edge]), component, longest)
            if back is not None:
                longest = min(longest, len(back) + SLACK)
                found.append([row for row in graph.row[[edge, *back]].tolist() if row >= 0])
    return sorted(found, key=len)
