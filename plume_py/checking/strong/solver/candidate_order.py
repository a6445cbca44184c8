"""Open pairs of writers as Boolean variables, and the graph of forced edges plus chosen sides.

``search`` asks ``CandidateOrder`` for a commit order, or for the cycles that forbid the choices.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import order_kernels
from plume_py.checking.graph.records import NodeEdges
from plume_py.checking.strong.solver import greedy_order_kernels, saturation_kernels
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import RW, WW, CommitGraph, node_edges
from plume_py.history.model import Int32s
from plume_py.levels.table import EVERYTHING, TRANSITIVE, WRITERS


class WriterPairs:
    """Variable v means "a commits before b" for (a, b) = ``pair[v]``, v from 1; -v is the opposite."""

    def __init__(self, layout: SolverColumns) -> None:
        self.layout = layout
        self.pair: list[tuple[int, int]] = [(-1, -1)]
        self.phase: list[bool] = [True]  # by variable: the chosen or preferred side
        self._number: dict[tuple[int, int], int] = {}
        self._rows: dict[int, Int32s] = {}

    def __len__(self) -> int:
        return len(self.pair) - 1

    def literal(self, a: int, b: int) -> int:
        """Return the literal of "a before b", or 0 if the pair has no variable."""
        v = self._number.get((min(a, b), max(a, b)), 0)
        return v if a < b else -v

    def add(self, a: int, b: int) -> int:
        """Add a variable for a and b, preferring "a before b"; return the literal."""
        low, high = min(a, b), max(a, b)
        self.pair.append((low, high))
        self.phase.append(a < b)
        v = self._number[low, high] = len(self)
        return v if a < b else -v

    def chosen(self) -> list[int]:
        return [v if self.phase[v] else -v for v in range(1, len(self.pair))]

    def rows(self, literal: int) -> Int32s:
        """Return the rows (a, b, relation, key, read) that a choice adds."""
        found = self._rows.get(literal)
        if found is None:
            a, b = self.pair[abs(literal)]
            found = self._rows[literal] = self._derive(a, b) if literal > 0 else self._derive(b, a)
        return found

    def common_keys(self, a: int, b: int) -> Int32s:
        start, key, _ = self.layout.writes
        return np.intersect1d(key[start[a] : start[a + 1]], key[start[b] : start[b + 1]], assume_unique=True)

    def _derive(self, a: int, b: int) -> Int32s:
        """Return the rows of "a before b": b's version is not visible to readers of a's."""
        layout = self.layout
        start, reads = layout.readers
        keys = self.common_keys(a, b)
        rows = [(a, b, WW, int(keys[0]), -1)]
        for version in layout.version_of(np.full(len(keys), a, np.int32), keys).tolist():
            for r in reads[start[version] : start[version + 1]].tolist() if version >= 0 else ():
                t3, key = int(layout.read_txn[r]), int(layout.read_key[r])
                bits = int(layout.sees[t3])
                if t3 == b or not bits & TRANSITIVE:
                    continue
                no_conflict = bits & (WRITERS | EVERYTHING) == WRITERS and layout.also_writes[r]
                rows.append((t3, b, WW if no_conflict else RW, key, r))
        return np.array(rows, np.int32)


# Maximum number of cycles per round that become clauses, and of choices per clause.
CYCLES = 300
LONGEST = 12


@dataclass(frozen=True)
class CommitCycle:
    """Rows that contradict each other, and the choices among them."""

    rows: tuple[tuple[int, ...], ...]
    literals: frozenset[int]


class CandidateOrder:
    """The commit graph of the forced rows and the chosen literals."""

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

    def greedy_order(self) -> Int32s | None:
        """Return a commit order of the participating transactions that extends the graph, or None if it has a cycle."""
        layout, graph = self.layout, self.graph
        dispatch.prepare(8 * (graph.nodes + len(graph.target)), saturation_kernels, greedy_order_kernels, order_kernels)
        order = np.empty(graph.nodes, np.int32)
        placed = greedy_order_kernels.greedy_order(
            NodeEdges(graph.start, graph.edges, graph.target), layout.arrays, len(layout.versions), order
        )
        if placed < graph.nodes:
            return None
        commits = order[order < layout.transactions]
        return np.ascontiguousarray(commits[layout.reads.participates[commits] == 1])

    def cycles(self) -> Iterator[CommitCycle]:
        """Yield short cycles with few choices each."""
        graph = self.graph
        component = graph.components()
        weight = (graph.row >= self.known).astype(np.uint8)
        inside = component[graph.source] == component[graph.target]
        candidates = np.flatnonzero(inside & (weight == 1))
        if not len(candidates):  # a cycle of forced edges
            candidates = np.flatnonzero(inside)[:1]
        if len(candidates) > CYCLES:
            candidates = candidates[:: -(-len(candidates) // CYCLES)]
        distance, parent = np.full(graph.nodes, -1, np.int32), np.empty(graph.nodes, np.int32)
        touched, deque = np.empty(graph.nodes, np.int32), np.empty(2 * len(graph.source) + 4, np.int32)
        for edge in candidates.tolist():
            begin, end = int(graph.target[edge]), int(graph.source[edge])
            found = saturation_kernels.cheapest_path(
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
        """Return the size of the largest strongly connected component, in transactions."""
        commits = self.graph.components()[: self.layout.transactions]
        return int(np.bincount(commits).max(initial=0))
