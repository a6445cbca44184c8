"""Decide CI, RC, RA and TCC: one set of forced commit-order edges per level.

No forced edge feeds back into the premise of its level, so the edges are derived once. The level holds if they form no
cycle with the causal order; any topological order is then a witness. Before that, a cheap search tries to find such an
order: it takes the causal order and derives only the edges that contradict it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import realtime_kernels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.causal import CommitOrder, Forced, Ordering, order_of
from plume_py.checking.graph.records import Slots
from plume_py.checking.weak import edge_kernels
from plume_py.history.model import Int32s
from plume_py.levels.patterns import BASE

T = TypeVar("T")


class Patience(NamedTuple):
    """Bounds of the cheap search, after which the exact derivation decides."""

    rounds: int  # number of corrections of the order
    steps_per_read: int  # backward steps, in each round
    reads_per_edge: int  # minimum per contradicting edge: with fewer reads, correcting would take longer


# The exact derivation for RC and RA takes little more time than three rounds.
DIRECT = Patience(3, 2, 2_000)
PATIENCE = {"RC": DIRECT, "RA": DIRECT, "TCC": Patience(8, 20, 1)}
# A number of edges that is small in every history.
FEW = 100

# With fewer reads, a second thread costs more than it saves.
WORTH_A_THREAD = 100_000


class WeakLevels:
    """Decides the weak levels of one history; forced edges are derived on first use."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self._orders: dict[str, CommitOrder] = {}
        self._trials: dict[str, Ordering | None] = {}  # commit orders from the cheap search

    def holds(self, level: str) -> bool:
        """Return whether the history satisfies CI, RC, RA or TCC."""
        counts = self.analysis.reads.counts
        if level == "CI":
            return "j" not in counts
        if any(pattern in counts for pattern in BASE) or not self.analysis.causal.acyclic:
            return False
        if level not in self._trials:
            self._trials[level] = self._search_order(level)
        return self._trials[level] is not None or self.commit_order(level).exists

    def witness(self, level: str) -> Int32s:
        """Return a commit order that shows RC, RA or TCC: the participating transactions, first to last.

        Raise ValueError if the level does not hold.
        """
        if not self.holds(level):
            raise ValueError(f"{level} does not hold")
        order = (self._trials[level] or self.commit_order(level).ordering).order
        return np.compress(self.analysis.reads.participates[order] == 1, order)

    def commit_order(self, level: str) -> CommitOrder:
        """Return the order that RC, RA or TCC forces, or its cycles."""
        if level not in self._orders:
            self._orders[level] = self._commit_order(level)
        return self._orders[level]

    def _commit_order(self, level: str) -> CommitOrder:
        analysis, forced = self.analysis, self._forced(level)
        edges = np.concatenate((forced.edges, analysis.reads.version_order))
        causal = analysis.causal
        extra = analysis.edges_into(edges)
        with analysis.timed("cycle"):
            # Usually every edge agrees with the causal order, which then is a witness.
            forward = causal.acyclic and bool(np.all(causal.position[edges[:, 0]] < causal.position[edges[:, 1]]))
            ordering = causal if forward else order_of(analysis.history, analysis.reads, extra)
        return CommitOrder(Forced(edges, forced.stale), extra, ordering)

    # The edges that a level forces

    def _forced(self, level: str) -> Forced:
        analysis, history, reads = self.analysis, self.analysis.history, self.analysis.reads
        if level == "TCC":
            return self._forced_by_causality()
        dispatch.prepare(10 * history.operations, edge_kernels)
        arguments = analysis.columns, reads.external, analysis.key_writers
        with analysis.timed("edges"):
            if level == "RC":
                return _joined(_in_threads(edge_kernels.read_committed_edges, self._halves(), *arguments))
            parts = _in_threads(edge_kernels.read_atomic_edges, self._halves(), *arguments, reads.participates)
            return _joined([*parts, *self._forced_by_time()])

    def _forced_by_time(self) -> list[tuple[Int32s, int]]:
        """Return the edges that RA also forces in real time: t2 had ended before t3 began."""
        analysis, times = self.analysis, self.analysis.real_time
        if times is None:
            return []
        dispatch.prepare(10 * analysis.history.operations, realtime_kernels)
        edges = realtime_kernels.forced_edges(
            analysis.reads.external, analysis.key_writers, analysis.groups, analysis.history.txn_session, times.spans
        )
        stale = edges[:, 1] < 0
        return [(edges[~stale], int(np.count_nonzero(stale)))]

    def _forced_by_causality(self) -> Forced:
        analysis = self.analysis
        arguments = analysis.reads.external, analysis.key_writers, analysis.groups
        dispatch.prepare(10 * analysis.history.operations, edge_kernels)
        parts = []
        for block in analysis.clocks():
            with analysis.timed("edges"):
                parts += _in_threads(edge_kernels.causal_edges, self._halves(), *arguments, block)
        return _joined(parts)

    def _halves(self) -> list[tuple[int, int]]:
        """Return ranges of transactions, whole sessions each, with about the same number of reads."""
        history, reads = self.analysis.history, self.analysis.reads
        threads = 2 if len(reads.read_op) >= WORTH_A_THREAD else 1
        starts = history.session_start
        reads_before = reads.read_start[starts]
        cuts = [
            int(starts[np.searchsorted(reads_before, part * reads_before[-1] // threads)]) for part in range(1, threads)
        ]
        return list(pairwise([0, *cuts, history.transactions]))

    # The cheap search

    def _search_order(self, level: str) -> Ordering | None:
        """Return a commit order: the causal order, corrected wherever the level forces the opposite.

        Return None if there is none, or none was found soon; the exact derivation decides then.
        """
        analysis, history, reads = self.analysis, self.analysis.history, self.analysis.reads
        ordering, edges = analysis.version_ordering, reads.version_order
        patience = PATIENCE[level]
        for _ in range(patience.rounds):
            if not ordering.acyclic:
                return None
            backward, gave_up = self._backward_edges(level, ordering)
            if gave_up or np.any(backward[:, 1] < 0):
                return None
            if not len(backward):
                return ordering
            if len(backward) > len(reads.read_op) // patience.reads_per_edge + FEW:
                return None
            edges = np.concatenate((edges, backward))
            with analysis.timed("cycle"):
                ordering = order_of(history, reads, analysis.edges_into(edges))
        return None

    def _backward_edges(self, level: str, ordering: Ordering) -> tuple[Int32s, bool]:
        """Return the edges of the level that contradict ``ordering``, and whether the search for them was abandoned."""
        analysis, history, reads = self.analysis, self.analysis.history, self.analysis.reads
        keys, budget = len(history.key_code), PATIENCE[level].steps_per_read * len(reads.read_op) + 1000
        if level == "TCC":
            clocks = analysis.whole_clocks
            if clocks is None or not clocks.clock.size:  # single lookups are slow without vectors
                return np.empty((0, 4), np.int32), True
            dispatch.prepare(10 * history.operations, edge_kernels)
            with analysis.timed("edges"):
                slot = analysis.version_ordering.position
                edges, left = edge_kernels.backward_causal_edges(
                    ordering.order, slot, self._slots, keys, clocks, budget
                )
                return edges, left < 0
        dispatch.prepare(6 * history.operations, edge_kernels)
        with analysis.timed("edges"):
            what = analysis.columns, reads.participates, reads.external
            edges, left = edge_kernels.backward_direct_edges(
                ordering.order, level == "RA", *what, keys, analysis.spans, budget
            )
            return edges, left < 0

    @cached_property
    def _slots(self) -> Slots:
        """Reads and writes in the causal order."""
        analysis, history, reads = self.analysis, self.analysis.history, self.analysis.reads
        read_start, write_start = (np.empty(history.transactions + 1, np.int64) for _ in range(2))
        read_key, read_source, read_number = (np.empty(len(reads.read_op), np.int32) for _ in range(3))
        write_key = np.empty(int(np.count_nonzero(history.op_kind & 1)), np.int32)
        slots = Slots(read_start, write_start, read_key, read_source, read_number, write_key)
        edge_kernels.lay_out_slots(
            analysis.version_ordering.order, analysis.columns, reads.participates, reads.external, slots
        )
        return slots._replace(write_key=write_key[: write_start[-1]])


def _in_threads(kernel: Callable[..., T], parts: Sequence[tuple[int, ...]], *arguments: object) -> list[T]:
    """Run ``kernel`` on each part in parallel; compiled kernels release the interpreter lock."""
    if len(parts) == 1:
        return [kernel(*parts[0], *arguments)]
    from concurrent.futures import ThreadPoolExecutor  # its import takes as long as a small check

    with ThreadPoolExecutor(len(parts)) as pool:
        return [future.result() for future in [pool.submit(kernel, *part, *arguments) for part in parts]]


def _joined(parts: list[tuple[Int32s, int]]) -> Forced:
    """Return the results of several threads as one."""
    nothing = np.empty((0, 4), np.int32)
    return Forced(np.concatenate([nothing, *(edges for edges, _ in parts)]), int(sum(stale for _, stale in parts)))
