"""Compute what all levels share for one history: resolved reads, writers per key, causal order, clocks, real time.

Each part is computed on first use. The weak and strong levels, evidence and minimizer build on one ``Analysis``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import clock_kernels, order_kernels, reads_kernels
from plume_py.checking.graph.causal import (
    ClockKind,
    ExtraEdges,
    Ordering,
    order_of,
    predecessors,
    vector_blocks,
    whole_clocks,
)
from plume_py.checking.graph.reads import Reads, key_writers, resolve_reads
from plume_py.checking.graph.realtime import RealTime, with_moments, without_sessions
from plume_py.checking.graph.records import Clocks, Columns, KeyGroups, Spans, Writers
from plume_py.history.model import Bools, History, Int32s, Int64s
from plume_py.levels.orders import DEFAULT_ORDER, NONE, PER_KEY, REALTIME


class Analysis:
    """The shared parts of one history in one order between transactions."""

    def __init__(
        self,
        history: History,
        clock: ClockKind = "auto",
        progress: Callable[[str], None] | None = None,
        order: str = DEFAULT_ORDER,
    ) -> None:
        """``progress`` is called with the name of each phase that begins; ``order`` is one of levels.orders.

        ``given`` is the history as passed. ``history``, which is analysed, has the sessions that the order requires,
        and may have auxiliary nodes of real time after its transactions.
        """
        self.given = history
        self.order = order
        self.real_time = _real_time(history, order)
        self.history = _as_ordered(history, order, self.real_time)
        self.clock: ClockKind = clock if self.real_time is None else "vector"
        self._progress = progress
        self.seconds: dict[str, float] = {}

    @cached_property
    def columns(self) -> Columns:
        return Columns.of(self.history)

    @cached_property
    def reads(self) -> Reads:
        """The resolved reads."""
        with self.timed("resolve"):
            return resolve_reads(self.history)

    @cached_property
    def key_writers(self) -> Writers:
        """The participating writers of each key."""
        reads = self.reads
        with self.timed("resolve"):
            return key_writers(self.history, reads)

    @cached_property
    def groups(self) -> KeyGroups:
        writers = self.key_writers
        key_group = np.zeros(len(writers.start), np.int64)
        group_start = np.zeros(len(writers.txn) + 1, np.int64)
        group_session = np.zeros(len(writers.txn), np.int32)
        dispatch.prepare(4 * len(writers.txn), reads_kernels)
        count = reads_kernels.group_writers(writers, self.history.txn_session, key_group, group_start, group_session)
        return KeyGroups(key_group, group_start[: count + 1].copy(), group_session[:count].copy())

    def of(self, history: History) -> "Analysis":
        """Return the analysis of another history with the same clock and order."""
        return Analysis(history, self.clock, order=self.order)

    # Session order, and real time if the order includes it. Kernels use shared_kernels, all other modules these
    # methods.

    @property
    def spans(self) -> Spans:
        """Start and end times for kernels; empty without real time."""
        return Spans.none() if self.real_time is None else self.real_time.spans

    @property
    def time_edges(self) -> Int32s:
        """Rows (earlier, later, -1, -1) whose closure is real time, with edges to and from auxiliary nodes."""
        edges = np.empty((0, 2), np.int32) if self.real_time is None else self.real_time.moments.edges
        return np.pad(edges, ((0, 0), (0, 2)), constant_values=-1)

    @cached_property
    def time_predecessors(self) -> ExtraEdges:
        """``time_edges`` grouped by target."""
        return ExtraEdges.of(self.time_edges, self.history.transactions)

    def is_moment(self, t: int) -> bool:
        """Return whether t is an auxiliary node of real time."""
        return t >= self.given.transactions

    def precedes_in_time(self, a: int, b: int) -> bool:
        """Return whether the order includes real time and a ended before b began."""
        return self.real_time is not None and self.real_time.precedes(a, b)

    def edges_into(self, edges: Int32s) -> ExtraEdges:
        """Return rows (from, to, …) and the real-time edges, grouped by target."""
        rows = np.concatenate((edges, self.time_edges)) if self.real_time is not None else edges
        return ExtraEdges.of(rows, self.history.transactions)

    def precedes_in_session(self, a: int, b: int) -> bool:
        session = self.history.txn_session
        return a < b and bool(session[a] == session[b])

    def in_one_session(self, a: Int32s, b: Int32s) -> Bools:
        """Return, for each pair, whether both transactions are of one session."""
        session = self.history.txn_session
        same: Bools = session[a] == session[b]
        return same

    def previous_in_session(self, t: int) -> int:
        """Return the transaction directly before t in its session, or -1."""
        return t - 1 if t > 0 and self.precedes_in_session(t - 1, t) else -1

    @property
    def session_edges(self) -> tuple[Int32s, Int32s]:
        """The edges (earlier, later) whose transitive closure is session order plus real time."""
        session = self.history.txn_session
        later = 1 + np.flatnonzero(session[1:] == session[:-1]).astype(np.int32)
        edges = self.time_edges
        return np.concatenate((later - 1, edges[:, 0])), np.concatenate((later, edges[:, 1]))

    # Causal order

    @cached_property
    def causal(self) -> Ordering:
        """The causal order: SO and WR."""
        reads = self.reads
        with self.timed("order"):
            return order_of(self.history, reads, self.edges_into(np.empty((0, 4), np.int32)))

    @cached_property
    def version_ordering(self) -> Ordering:
        """The causal order plus the version orders that lists show."""
        fixed = self.reads.version_order
        if not len(fixed):
            return self.causal
        return order_of(self.history, self.reads, self.edges_into(fixed))

    @cached_property
    def reads_on_cycles(self) -> Int64s:
        """The reads on a causal cycle."""
        component, reads = self.causal.component, self.reads
        if self.causal.acyclic:
            return np.empty(0, np.int64)
        readers = np.repeat(np.arange(self.history.transactions), np.diff(reads.read_start))
        source = np.maximum(reads.read_source, 0)
        inside = (reads.read_source >= 0) & (component[source] >= 0) & (component[source] == component[readers])
        return np.flatnonzero(inside)

    @cached_property
    def whole_clocks(self) -> Clocks | None:
        """The causal clocks of all sessions, or None if they need several blocks."""
        reads, causal = self.reads, self.causal
        with self.timed("clocks"):
            return whole_clocks(self.history, reads, causal, self.clock, self.time_predecessors)

    def clocks(self) -> Iterator[Clocks]:
        """Yield the causal clocks block by block. A block is valid until the next one is requested."""
        if self.whole_clocks is not None:
            yield self.whole_clocks
            return
        blocks = vector_blocks(self.history, self.reads, self.causal, self.time_predecessors, self.clock)
        while True:
            with self.timed("clocks"):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def before(self, early: Int32s, late: Int32s) -> Bools:
        """Return whether early[i] is causally before late[i], for each i."""
        verdict = np.ones(len(early), np.bool_)
        for block in self.clocks():
            dispatch.prepare(20 * len(early), clock_kernels)
            clock_kernels.not_before(block, early, late, verdict)
        return ~verdict

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time of the block to ``seconds[phase]``."""
        if self._progress is not None:
            self._progress(phase)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start


def _real_time(history: History, order: str) -> RealTime | None:
    if order not in (REALTIME, PER_KEY):
        return None
    if history.times is None:
        raise ValueError("real-time order of a history without times")
    return RealTime(history, history.times, order == PER_KEY)


def _as_ordered(history: History, order: str, real_time: RealTime | None) -> History:
    if real_time is not None:
        return with_moments(history, real_time.moments.count)
    return without_sessions(history) if order == NONE else history


# Shortest paths, for counterexamples


def causal_path(analysis: Analysis, begin: int, end: int) -> list[int]:
    """Return a shortest causal path begin -> … -> end; begin must be causally before end."""
    causal = analysis.causal
    # No transaction placed before begin is on the path; on cycles positions mean nothing.
    after_begin = (causal.position >= causal.position[begin]) | (causal.component >= 0)
    return _path(analysis, analysis.time_predecessors, begin, end, after_begin)


def cycle_path(analysis: Analysis, extra: ExtraEdges, ordering: Ordering, begin: int, end: int) -> list[int]:
    """Return a shortest path begin -> … -> end inside the cycle of both; begin may equal end."""
    return _path(analysis, extra, begin, end, ordering.component == ordering.component[end])


def _path(analysis: Analysis, extra: ExtraEdges, begin: int, end: int, allowed: Bools) -> list[int]:
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
