"""Known edges and chosen ones together: orders that extend them, and cycles that forbid a choice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import order_kernels
from plume_py.checking.strong.solver import greedy_order_kernels, node_kernels
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.pairs import WriterPairs
from plume_py.checking.strong.solver.saturation import CommitGraph, node_edges
from plume_py.history.model import Int32s

# Cycles that are turned into clauses at a time, and how many choices a clause may have.
CYCLES = 300
LONGEST = 12


@dataclass(frozen=True)
class CommitCycle:
    """Rows that cannot all hold, and the choices among them."""

    rows: tuple[tuple[int, ...], ...]
    literals: frozenset[int]


class CandidateOrder:
    """The commit graph of the known rows and of the chosen literals."""

    def __init__(
        self, layout: SolverColumns, known: Int32s, base: CommitGraph, pairs: WriterPairs, literals: list[int]
    ) -> None:
        self.layout = layout
        chosen = [pairs.rows(literal) for literal in literals]
        rows = np.concatenate([np.empty((0, 5), np.int32), *chosen])
        self.rows = np.concatenate((known, rows))
        self.literal = np.repeat(np.array(literals, np.int64), [len(part) for part in chosen])
        self.known = len(known)
        if len(rows):
            more = node_edges(layout, rows)
            self.graph = CommitGraph.of(
                base.nodes,
                np.concatenate((base.source, more[0])),
                np.concatenate((base.target, more[1])),
                np.concatenate((base.row, more[2] + np.int32(len(known)))),
            )
        else:
            self.graph = base

    def guess(self) -> Int32s | None:
        """A commit order of the transactions that count that extends the graph; None if it has a cycle."""
        layout, graph = self.layout, self.graph
        dispatch.prepare(8 * (graph.nodes + len(graph.target)), node_kernels, greedy_order_kernels, order_kernels)
        order = np.empty(graph.nodes, np.int32)
        placed = greedy_order_kernels.guess(
            graph.nodes, graph.start, graph.edges, graph.target, layout.sees, layout.reads.live, layout.view,
            layout.reads.read_start, layout.read_key, layout.read_version, layout.read_counts,
            *layout.writes, layout.initial_version, len(layout.versions), order,
        )  # fmt: skip
        if placed < graph.nodes:
            return None
        commits = order[order < layout.transactions]
        return np.ascontiguousarray(commits[layout.reads.live[commits] == 1])

    def cycles(self) -> Iterator[CommitCycle]:
        """Short cycles, as few choices in each as possible."""
        graph = self.graph
        component = graph.components()
        weight = (graph.row >= self.known).astype(np.uint8)
        inside = component[graph.source] == component[graph.target]
        candidates = np.flatnonzero(inside & (weight == 1))
        if not len(candidates):  # the known edges alone
            candidates = np.flatnonzero(inside)[:1]
        if len(candidates) > CYCLES:
            candidates = candidates[:: -(-len(candidates) // CYCLES)]
        distance, parent = np.full(graph.nodes, -1, np.int32), np.empty(graph.nodes, np.int32)
        touched, deque = np.empty(graph.nodes, np.int32), np.empty(2 * len(graph.source) + 4, np.int32)
        for edge in candidates.tolist():
            begin, end = int(graph.target[edge]), int(graph.source[edge])
            found = node_kernels.cheapest_path(
                begin, end, component, graph.start, graph.edges, graph.target, weight, LONGEST, distance, parent,
                touched, deque,
            )  # fmt: skip
            if found >= 0:
                yield self._cycle(edge, begin, end, parent)

    def _cycle(self, edge: int, begin: int, end: int, parent: Int32s) -> CommitCycle:
        edges = [edge]
        while end != begin:
            edges.append(int(parent[end]))
            end = int(self.graph.source[edges[-1]])
        rows = [int(self.graph.row[e]) for e in reversed(edges)]
        literals = frozenset(int(self.literal[row - self.known]) for row in rows if row >= self.known)
        return CommitCycle(tuple(tuple(self.rows[row].tolist()) for row in rows if row >= 0), literals)

    def largest_component(self) -> int:
        """How many transactions the largest component has."""
        commits = self.graph.components()[: self.layout.transactions]
        return int(np.bincount(commits).max(initial=0))
