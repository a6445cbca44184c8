"""What all levels ask of a history: who read from whom, the causal order and its clocks, the writers of each key."""

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
    """Everything that the levels share for one history; each part is computed when first asked for."""

    def __init__(
        self,
        history: History,
        clock: ClockKind = "auto",
        progress: Callable[[str], None] | None = None,
        order: str = DEFAULT_ORDER,
    ) -> None:
        """``progress`` is called with the name of each phase that begins; ``order`` is one of levels.orders.

        ``given`` is the history as it is; ``history``, what is analysed, has its sessions as the order wants them, and
        behind its transactions there may be moments of real time.
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
        """The history, for kernels."""
        return Columns.of(self.history)

    @cached_property
    def reads(self) -> Reads:
        """The resolved reads."""
        with self.timed("resolve"):
            return resolve_reads(self.history)

    @cached_property
    def key_writers(self) -> Writers:
        """The live writers of each key."""
        reads = self.reads
        with self.timed("resolve"):
            return key_writers(self.history, reads)

    @cached_property
    def groups(self) -> KeyGroups:
        """The writers of each key, split by session."""
        writers = self.key_writers
        key_group = np.zeros(len(writers.start), np.int64)
        group_start = np.zeros(len(writers.txn) + 1, np.int64)
        group_session = np.zeros(len(writers.txn), np.int32)
        dispatch.prepare(4 * len(writers.txn), reads_kernels)
        count = reads_kernels.group_writers(writers, self.history.txn_session, key_group, group_start, group_session)
        return KeyGroups(key_group, group_start[: count + 1].copy(), group_session[:count].copy())

    def of(self, history: History) -> "Analysis":
        """Of another history, in the same way."""
        return Analysis(history, self.clock, order=self.order)

    # Session order, and real time where it counts. Kernels ask session_kernels, everybody else asks here.

    @property
    def spans(self) -> Spans:
        """When transactions began and ended, for kernels, if real time counts."""
        return Spans.none() if self.real_time is None else self.real_time.spans

    @property
    def time_edges(self) -> Int32s:
        """Rows (earlier, later, -1, -1) that stand for real-time order, moments among them."""
        edges = np.empty((0, 2), np.int32) if self.real_time is None else self.real_time.moments.edges
        return np.pad(edges, ((0, 0), (0, 2)), constant_values=-1)

    @cached_property
    def time_predecessors(self) -> ExtraEdges:
        """The same by who comes later."""
        return ExtraEdges.of(self.time_edges, self.history.transactions)

    def is_moment(self, t: int) -> bool:
        """Is it no transaction, but a moment of real time?"""
        return t >= self.given.transactions

    def precedes_in_time(self, a: int, b: int) -> bool:
        """Does real time count, and had a ended before b began?"""
        return self.real_time is not None and self.real_time.precedes(a, b)

    def edges_into(self, edges: Int32s) -> ExtraEdges:
        """Rows (from, to, …), and real time, by who comes later."""
        rows = np.concatenate((edges, self.time_edges)) if self.real_time is not None else edges
        return ExtraEdges.of(rows, self.history.transactions)

    def precedes_in_session(self, a: int, b: int) -> bool:
        """Is a before b in session order?"""
        session = self.history.txn_session
        return a < b and bool(session[a] == session[b])

    def in_one_session(self, a: Int32s, b: Int32s) -> Bools:
        """Which of these pairs are of one session?"""
        session = self.history.txn_session
        same: Bools = session[a] == session[b]
        return same

    def previous_in_session(self, t: int) -> int:
        """The transaction right before t in session order, or -1."""
        return t - 1 if t > 0 and self.precedes_in_session(t - 1, t) else -1

    @property
    def session_edges(self) -> tuple[Int32s, Int32s]:
        """(earlier, later): those that follow one another; the rest of session order and real time is transitive."""
        session = self.history.txn_session
        later = 1 + np.flatnonzero(session[1:] == session[:-1]).astype(np.int32)
        edges = self.time_edges
        return np.concatenate((later - 1, edges[:, 0])), np.concatenate((later, edges[:, 1]))

    # Causal order

    @cached_property
    def causal(self) -> Ordering:
        """The causal order, SO and WR alone."""
        reads = self.reads
        with self.timed("order"):
            return order_of(self.history, reads, self.edges_into(np.empty((0, 4), np.int32)))

    @cached_property
    def version_ordering(self) -> Ordering:
        """The causal order together with the orders of writers that lists fix."""
        fixed = self.reads.version_order
        if not len(fixed):
            return self.causal
        return order_of(self.history, self.reads, self.edges_into(fixed))

    @cached_property
    def reads_on_cycles(self) -> Int64s:
        """The reads that lie on a causal cycle."""
        component, reads = self.causal.component, self.reads
        if self.causal.acyclic:
            return np.empty(0, np.int64)
        readers = np.repeat(np.arange(self.history.transactions), np.diff(reads.read_start))
        source = np.maximum(reads.read_source, 0)
        inside = (reads.read_source >= 0) & (component[source] >= 0) & (component[source] == component[readers])
        return np.flatnonzero(inside)

    @cached_property
    def whole_clocks(self) -> Clocks | None:
        """The causal clocks of all sessions, if they can be had at once."""
        reads, causal = self.reads, self.causal
        with self.timed("clocks"):
            return whole_clocks(self.history, reads, causal, self.clock, self.time_predecessors)

    def clocks(self) -> Iterator[Clocks]:
        """The causal clocks, block by block; a block is good until the next one is asked for."""
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
        """Is early[i] causally before late[i]?"""
        verdict = np.ones(len(early), np.bool_)
        for block in self.clocks():
            dispatch.prepare(20 * len(early), clock_kernels)
            clock_kernels.not_before(block, early, late, verdict)
        return ~verdict

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time of what runs inside to ``seconds[phase]``."""
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
    """A shortest path begin -> … -> end of causal edges; begin must be causally before end."""
    causal = analysis.causal
    # Nothing placed before begin can lie on the way; on cycles the places mean nothing.
    after_begin = (causal.position >= causal.position[begin]) | (causal.component >= 0)
    return _path(analysis, analysis.time_predecessors, begin, end, after_begin)


def cycle_path(analysis: Analysis, extra: ExtraEdges, ordering: Ordering, begin: int, end: int) -> list[int]:
    """A shortest path begin -> … -> end inside the cycle on which both lie; begin may equal end."""
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
