"""Saturation: infer the edges that every commit order must obey, up to a fixpoint or a cycle (Biswas and Enea; dbcop).

``engine`` runs it first. Each round computes clocks from the edges so far (commit order and visibility), and from the
clocks more edges. From the second round on, only edges that follow from changes of the clocks are derived. The edges of
each round are kept, so that ``unsat_core`` can explain an edge by the edges of earlier rounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.kernels import dispatch
from plume_py.base.limits import Limits
from plume_py.base.sorted_sets import isin_sorted
from plume_py.checking.graph import order_kernels, realtime_kernels
from plume_py.checking.graph.causal import CLOCK_BYTES
from plume_py.checking.graph.records import ClockBlock, ReadVersions
from plume_py.checking.strong.solver import saturation_kernels
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.history.model import Bools, Int8s, Int32s, Int64s
from plume_py.levels.table import AT_COMMIT, EVERYTHING, TRANSITIVE, WRITERS

SO, WR, WW, RW = range(4)

# Steps of work per round and edge, and clock entries per step.
STEPS_PER_EDGE, CLOCKS_PER_STEP = 30, 4


@dataclass(frozen=True)
class CommitGraph:
    """Edges between nodes (see ``saturation_kernels``).

    Each belongs to a row, or to none (-1: snapshot before its commit).
    """

    nodes: int
    source: Int32s
    target: Int32s
    row: Int32s
    start: Int64s
    edges: Int32s  # grouped by source

    @staticmethod
    def of(nodes: int, source: Int32s, target: Int32s, row: Int32s) -> "CommitGraph":
        start, edges = np.zeros(nodes + 1, np.int64), np.empty(len(source), np.int32)
        saturation_kernels.successors(nodes, source, target, start, edges)
        return CommitGraph(nodes, source, target, row, start, edges)

    def order(self) -> Int32s:
        """Return the nodes in topological order, as far as it exists."""
        order = np.empty(self.nodes, np.int32)
        count = saturation_kernels.topological(self.nodes, self.start, self.edges, self.target, order)
        return order[:count]

    def components(self) -> Int32s:
        order, component = np.empty(self.nodes, np.int32), np.empty(self.nodes, np.int32)
        order_kernels.components(self.start, self.target[self.edges], order, component)
        return component


def node_edges(layout: SolverColumns, rows: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """Return the edges between nodes for these rows: sources, targets and rows."""
    size = 2 * len(rows) if layout.mixes_snapshots else len(rows)
    source, target, row = (np.empty(size, np.int32) for _ in range(3))
    count = saturation_kernels.node_edges(
        rows[:, 0],
        rows[:, 1],
        rows[:, 2],
        layout.sees,
        layout.snapshot_node,
        layout.mixes_snapshots,
        source,
        target,
        row,
    )
    return source[:count], target[:count], row[:count]


def commit_graph(layout: SolverColumns, rows: Int32s) -> CommitGraph:
    """Return the graph of commits and snapshots, which must be acyclic."""
    source, target, row = node_edges(layout, rows)
    own = np.flatnonzero(layout.snapshot_node != np.arange(layout.transactions)).astype(np.int32)
    return CommitGraph.of(
        layout.nodes,
        np.concatenate((layout.snapshot_node[own], source)),
        np.concatenate((own, target)),
        np.concatenate((np.full(len(own), -1, np.int32), row)),
    )


def visibility_graph(layout: SolverColumns, rows: Int32s) -> CommitGraph:
    """Return the graph of direct visibility, for levels without prefixes."""
    writers = layout.sees[rows[:, 1]] & WRITERS != 0
    row = np.flatnonzero((rows[:, 2] <= WR) | ((rows[:, 2] == WW) & writers)).astype(np.int32)
    return CommitGraph.of(layout.transactions, rows[row, 0].copy(), rows[row, 1].copy(), row)


@dataclass
class ForcedEdges:
    """The forced rows (a, b, relation, key, read), round by round. ``stale`` is a row with b = -1: a contradiction."""

    rounds: list[Int32s] = field(default_factory=list)  # all rows ever inferred, by round
    rows: Int32s = field(default_factory=lambda: np.empty((0, 5), np.int32))  # rows that imply all others
    stale: Int32s | None = None
    graph: CommitGraph | None = None
    acyclic: bool = True

    @property
    def contradiction(self) -> bool:
        return self.stale is not None or not self.acyclic


class Changes(NamedTuple):
    """Changes since the last round: nodes with larger clocks, transactions with larger visible sets, versions with
    possibly other overwriters.
    """

    commits: Int8s
    visible: Int8s
    versions: Int8s


class Inference:
    """Derives ``ForcedEdges``; ``clock`` is that of the last round."""

    def __init__(self, layout: SolverColumns, limits: Limits) -> None:
        self.layout, self.limits = layout, limits
        self.known = ForcedEdges()
        self.whole = False
        self.clock = np.empty((0, 0), np.int32)
        self._before: tuple[Int32s, Int32s] | None = None  # clock and seen of the last round, if memory allows
        self._twice = False

    def run(self, rounds: int = 1 << 62) -> ForcedEdges:
        """Infer up to the fixpoint or the first contradiction. Raise LimitError after ``rounds``."""
        layout, known = self.layout, self.known
        steps, wide = 40, min(layout.history.sessions, 20)  # steps: of some rounds, per session
        work = steps * (wide * (len(layout.read_key) + len(layout.key_writers)) + 8 * layout.nodes)
        dispatch.prepare(work, saturation_kernels, saturation_kernels, order_kernels)
        base = self._base_rows()
        kept, passing = base, np.empty((0, 5), np.int32)
        known.rounds.append(base)
        while len(known.rounds) <= rounds:
            self.limits.check(self.progress)
            known.rows = np.concatenate((kept, passing))
            stale = np.flatnonzero(known.rows[:, 1] < 0)
            if len(stale):
                known.stale = known.rows[stale[0]]
                return known
            known.graph = commit_graph(layout, known.rows)
            edges = layout.nodes + len(known.graph.target)
            self.limits.spend(STEPS_PER_EDGE * edges + layout.history.sessions * edges // CLOCKS_PER_STEP)
            order = known.graph.order()
            if len(order) < layout.nodes:
                known.acyclic = False
                return known
            ordered, overwritten, stays = self._round(known.graph, order)
            ordered = _once(ordered)
            known.rounds.append(np.concatenate((ordered, overwritten)))
            # Overwriters derived now replace earlier ones, since the nearest ones imply the others.
            ordered = _once(np.concatenate((ordered, overwritten[overwritten[:, 2] == WW])))
            overwritten = overwritten[overwritten[:, 2] == RW]
            if stays is not None:
                overwritten = np.concatenate((passing[stays[layout.read_version[passing[:, 4]]]], overwritten))
            if not self.whole:  # otherwise the clocks exclude known rows
                ordered = _without(ordered, kept)
            if not len(ordered) and len(overwritten) == len(passing) and bool(np.all(overwritten == passing)):
                known.rounds.pop()
                return known
            kept, passing = np.concatenate((kept, ordered)), overwritten
        raise LimitError(f"stopped after {rounds} rounds of inference")

    def progress(self) -> str:
        layout = self.layout
        sizes = np.diff(layout.key_start)
        pairs = int(np.sum(sizes * (sizes - 1) // 2))
        known = f"{len(self.known.rows):,} edges known after {len(self.known.rounds):,} rounds of inference"
        return f"{known}, {pairs:,} pairs of writers in all"

    def _base_rows(self) -> Int32s:
        layout, reads = self.layout, self.layout.reads
        so = _rows(*layout.analysis.session_edges, SO)
        r = np.flatnonzero(layout.first_read & (layout.read_source >= 0)).astype(np.int32)
        pairs = layout.read_source[r].astype(np.int64) * max(1, layout.transactions) + layout.read_txn[r]
        r = r[np.unique(pairs, return_index=True)[1]]
        wr = _rows(layout.read_source[r], layout.read_txn[r], WR, layout.read_key[r], r)
        fixed, lists = reads.version_order, layout.history.lists
        keys = layout.history.op_key[lists.ops[fixed[:, 3]]] if lists is not None else np.empty(0, np.int32)
        ww = _once(_rows(fixed[:, 0], fixed[:, 1], WW, keys))
        return np.concatenate((so, wr, ww, self._static_rows()))

    def _static_rows(self) -> Int32s:
        layout, history = self.layout, self.layout.history
        if not layout.has(0, without=TRANSITIVE):
            return np.empty((0, 5), np.int32)
        rows: Int32s = saturation_kernels.static_rows(
            layout.sees, layout.reads.participates, history.txn_start, history.op_kind, history.op_key,
            history.txn_session, layout.reads.read_start, layout.read_key, layout.read_source,
            layout.key_start, layout.key_writers,
        )  # fmt: skip
        return np.unique(np.concatenate((rows, self._rows_by_time())), axis=0)

    def _rows_by_time(self) -> Int32s:
        """Return the static rows of real time: t2 had ended before t3 began."""
        layout, analysis = self.layout, self.layout.analysis
        if analysis.real_time is None:
            return np.empty((0, 5), np.int32)
        dispatch.prepare(10 * layout.history.operations, realtime_kernels)
        edges = realtime_kernels.forced_edges(
            layout.reads.external, analysis.key_writers, analysis.groups, layout.history.txn_session, analysis.spans
        )
        r = edges[:, 2]
        direct = layout.sees[layout.read_txn[r]] & (AT_COMMIT | TRANSITIVE) == AT_COMMIT
        t2, t1, r = edges[direct, 0], edges[direct, 1], r[direct]
        return _rows(t2, t1, WW, layout.read_key[r], r)

    def _round(self, graph: CommitGraph, order: Int32s) -> tuple[Int32s, Int32s, Bools | None]:
        """Return what follows from the graph: orders of writers, and overwriters of versions read.

        If the clocks of the last round are kept, only changes are examined. Then the third value marks the versions
        whose overwriters are unchanged.
        """
        layout, analysis = self.layout, self.layout.analysis
        columns, groups, writers = analysis.columns, analysis.groups, layout.writers
        ordered, overwritten = [np.empty((0, 5), np.int32)], [np.empty((0, 5), np.int32)]
        start, reads = layout.readers
        versions = ReadVersions(
            start, layout.version_txn, layout.version_key, reads, layout.read_txn, layout.also_writes
        )
        for low, clock, seen in self._clocks(graph, order):
            self.limits.check(self.progress)
            new, block = self._changes(clock, seen), ClockBlock(low, clock, seen)
            ordered.append(saturation_kernels.seen_writers(
                layout.sees, layout.snapshot_node, layout.reads.external, columns, writers, groups, new.visible, block
            ))  # fmt: skip
            if layout.has(WRITERS, without=EVERYTHING):
                ordered.append(saturation_kernels.earlier_writers(
                    layout.sees, layout.snapshot_node, columns, writers, groups, new.commits, block
                ))  # fmt: skip
            overwritten.append(
                saturation_kernels.overwriters(layout.sees, columns, versions, writers, groups, new.versions, block)
            )
        stays = None if self._before is None else new.versions == 0
        self._before = (clock, seen) if self._twice else None
        return np.concatenate(ordered), np.concatenate(overwritten), stays

    def _changes(self, clock: Int32s, seen: Int32s) -> Changes:
        """Return what changed since the last round; everything, if its clocks were not kept."""
        layout = self.layout
        if self._before is None:
            everything = np.ones(max(layout.nodes, len(layout.versions)), np.uint8)
            return Changes(everything, everything, everything)
        before, seen_before = self._before
        rows = saturation_kernels.changed_rows(before, clock)
        visible = rows[layout.snapshot_node]
        if len(seen):
            visible |= saturation_kernels.changed_rows(seen_before, seen)
        versions = np.zeros(len(layout.versions), np.uint8)
        saturation_kernels.overtaken(
            layout.analysis.columns, layout.writers, layout.writer_version, layout.analysis.groups,
            before, clock, rows, versions,
        )  # fmt: skip
        return Changes(rows, visible, versions)

    def _clocks(self, graph: CommitGraph, order: Int32s) -> Iterator[tuple[int, Int32s, Int32s]]:
        """Yield (low, clock, seen) per block of sessions."""
        layout, history = self.layout, self.layout.history
        seeing = visibility_graph(layout, self.known.rows) if layout.by_session else None
        rows = layout.nodes + (layout.transactions if seeing is not None else 0)
        room = self.limits.cap_to_budget(CLOCK_BYTES) // (4 * max(1, rows))
        width = max(1, min(history.sessions, room))
        self.whole, self._twice = width >= history.sessions, room >= 2 * history.sessions
        for low in range(0, max(1, history.sessions), width):
            size = min(width, history.sessions - low)
            self.limits.reserve(4 * rows * size, self.progress)
            clock = np.zeros((layout.nodes, size), np.int32)
            self._fill(graph, order, low, clock)
            seen = np.zeros((0, 0), np.int32)
            if seeing is not None:
                seen = np.zeros((layout.transactions, size), np.int32)
                self._fill(seeing, seeing.order(), low, seen)
            self.clock = clock
            yield low, clock, seen

    def _fill(self, graph: CommitGraph, order: Int32s, low: int, clock: Int32s) -> None:
        history = self.layout.history
        saturation_kernels.reach_clocks(
            order, graph.start, graph.edges, graph.target, self.layout.transactions,
            history.txn_session, history.session_start, low, clock,
        )  # fmt: skip

    def open_pairs(self) -> int:
        """Return the number of pairs of writers without a known order; -1 if unknown."""
        if not self.whole or self.known.contradiction:
            return -1
        layout, analysis = self.layout, self.layout.analysis
        return int(saturation_kernels.count_open(layout.writers, analysis.columns, analysis.groups, self.clock))


def _rows(a: Int32s, b: Int32s, relation: int, key: Int32s | None = None, read: Int32s | None = None) -> Int32s:
    rows = np.full((len(a), 5), -1, np.int32)
    rows[:, 0], rows[:, 1], rows[:, 2] = a, b, relation
    if key is not None:
        rows[:, 3] = key
    if read is not None:
        rows[:, 4] = read
    return rows


def _once(rows: Int32s) -> Int32s:
    """Return the rows, each edge once."""
    if not len(rows):
        return rows
    return rows[np.unique(edge_codes(rows), return_index=True)[1]]


def _without(rows: Int32s, known: Int32s) -> Int32s:
    """Return the rows whose edge is not among ``known``."""
    return rows[~isin_sorted(edge_codes(rows), np.sort(edge_codes(known)))]


def edge_codes(rows: Int32s) -> Int64s:
    """Return a number for each edge."""
    source, target, relation = (rows[:, column].astype(np.int64) for column in range(3))
    codes: Int64s = np.left_shift(source, 34) | np.left_shift(target + 1, 2) | relation
    return codes
