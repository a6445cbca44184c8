"""The causal order CO = (SO ∪ WR)+: a topological order, its cycles, and its clocks in blocks of sessions.

``Analysis`` calls ``order_of`` and the clock functions; the weak levels call ``order_of`` with forced edges added.
Clocks are vectors (one count per session), or tree clocks in histories of many sessions (Plume, section 4.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import clock_kernels, order_kernels, tree_clock_kernels
from plume_py.checking.graph.reads import Reads
from plume_py.checking.graph.records import Clocks, Columns, Predecessors
from plume_py.history.model import History, Int32s, Int64s

# Maximum number of bytes of a block of clocks.
CLOCK_BYTES = 1 << 30

# With at least this many sessions, tree clocks are tried first. They are abandoned after one step per this many entries
# of the vectors: vectors are several times faster if sessions know much of each other.
MANY_SESSIONS = 1000
ENTRIES_PER_STEP = 500

# "none" is for comparison: each row is found by its own search instead of from other rows.
ClockKind = Literal["auto", "vector", "tree", "none"]
CLOCKS: tuple[ClockKind, ...] = ("auto", "vector", "tree", "none")

NO_LOGS = (*2 * (np.empty(0, np.int64), np.empty(0, np.int32)), np.empty(0, np.int32))


@dataclass(frozen=True)
class Ordering:
    """Transactions in topological order, as far as possible.

    ``component[t]`` is -1 off every cycle. Transactions of one cycle share a number and are consecutive in ``order``.
    """

    order: Int32s
    component: Int32s

    @property
    def acyclic(self) -> bool:
        """Whether ``order`` is a linear extension."""
        return not np.any(self.component >= 0)

    @cached_property
    def position(self) -> Int32s:
        """The position of each transaction in ``order``."""
        position = np.empty(len(self.order), np.int32)
        position[self.order] = np.arange(len(self.order), dtype=np.int32)
        return position


@dataclass(frozen=True)
class ExtraEdges:
    """Edges in addition to SO and WR, grouped by target: sources of t are ``source[start[t]:start[t + 1]]``."""

    start: Int64s
    source: Int32s
    row: Int64s  # the row of each edge in the edge array

    @staticmethod
    def of(edges: Int32s, transactions: int) -> "ExtraEdges":
        row = np.argsort(edges[:, 1], kind="stable")
        start = np.zeros(transactions + 1, np.int64)
        np.cumsum(np.bincount(edges[:, 1], minlength=transactions), out=start[1:])
        return ExtraEdges(start, np.ascontiguousarray(edges[row, 0]), row)


def predecessors(history: History, reads: Reads, extra: ExtraEdges) -> Predecessors:
    """Return SO ∪ WR ∪ ``extra`` for kernels."""
    return Predecessors(history.txn_session, reads.read_start, reads.read_source, extra.start, extra.source)


def order_of(history: History, reads: Reads, extra: ExtraEdges) -> Ordering:
    """Return a topological order of SO ∪ WR ∪ ``extra``, and its cycles."""
    transactions = history.transactions
    dispatch.prepare(4 * (transactions + len(reads.read_op) + len(extra.source)), order_kernels)
    graph = predecessors(history, reads, extra)
    order = np.empty(transactions, np.int32)
    placed = order_kernels.topological_order(history.session_start, graph, order)
    component = np.full(transactions, -1, np.int32)
    if placed < transactions:
        rest = _without(order[:placed], transactions)
        order[placed:], component[rest] = _components(rest, transactions, graph)
    return Ordering(order, component)


def _without(placed: Int32s, transactions: int) -> Int32s:
    """Return the transactions that have no place yet, ascending."""
    left = np.ones(transactions, np.bool_)
    left[placed] = False
    return np.flatnonzero(left).astype(np.int32)


def _components(rest: Int32s, transactions: int, graph: Predecessors) -> tuple[Int32s, Int32s]:
    """Return ``rest`` in topological order with cycles together, and the cycle of each of ``rest``, or -1."""
    number = np.full(transactions, -1, np.int32)
    number[rest] = np.arange(len(rest), dtype=np.int32)
    order, component = np.empty(len(rest), np.int32), np.empty(len(rest), np.int32)
    start, target = order_kernels.neighbours_among(rest, number, graph)
    found = order_kernels.components(start, target, order, component)
    sizes = np.bincount(component, minlength=found)
    component[sizes[component] == 1] = -1
    return rest[order], component


def whole_clocks(
    history: History, reads: Reads, causal: Ordering, kind: ClockKind, besides: ExtraEdges
) -> Clocks | None:
    """Return the clocks of all sessions in one block, or None if ``kind`` or memory does not allow it."""
    if kind == "tree" or (kind == "auto" and history.sessions >= MANY_SESSIONS):
        limit = None if kind == "tree" else history.transactions * history.sessions // ENTRIES_PER_STEP
        tree = tree_clocks(history, reads, causal, limit)
        if tree is not None:
            return tree
    if clock_width(history) < history.sessions:
        return None
    return next(vector_blocks(history, reads, causal, besides, kind))


def clock_width(history: History) -> int:
    """Return the number of sessions per block of vector clocks: as many as memory allows, evenly distributed."""
    affordable = int(CLOCK_BYTES // (_count_type(history).itemsize * max(1, history.transactions)))
    blocks = -(-history.sessions // max(1, affordable))
    return max(1, -(-history.sessions // max(1, blocks)))


def _count_type(history: History) -> "np.dtype[Any]":
    """Return the narrowest type for the number of transactions in a session."""
    longest = int(np.max(np.diff(history.session_start), initial=0))
    return np.dtype(np.uint8 if longest < 1 << 8 else np.uint16 if longest < 1 << 16 else np.int32)


def vector_blocks(
    history: History, reads: Reads, causal: Ordering, besides: ExtraEdges, kind: ClockKind = "vector"
) -> Iterator[Clocks]:
    """Yield the clocks of all transactions, one block of sessions at a time.

    Each block reuses the memory of the last one.
    """
    width = clock_width(history)
    graph = predecessors(history, reads, besides)
    room = np.empty(history.transactions * width, _count_type(history))
    for low in range(0, max(1, history.sessions), width):
        high = min(low + width, history.sessions)
        clock = room[: history.transactions * (high - low)].reshape(history.transactions, high - low)
        dispatch.prepare(len(reads.read_op) * clock.shape[1], clock_kernels)
        if kind == "none":
            clock_kernels.searched_clocks(history.session_start, graph, low, clock)
        else:
            clock_kernels.vector_clocks(causal.order, causal.component, history.session_start, graph, low, clock)
        yield Clocks(low, high, history.txn_session, history.session_start, clock, *NO_LOGS)


def tree_clocks(history: History, reads: Reads, causal: Ordering, limit: int | None = None) -> Clocks | None:
    """Return tree clocks: what each transaction adds to the knowledge of its session.

    None if that takes ``limit`` steps.
    """
    dispatch.prepare(20 * len(reads.read_op), clock_kernels, tree_clock_kernels)
    starts, ends = np.zeros(history.transactions, np.int64), np.zeros(history.transactions, np.int64)
    nodes = tree_clock_kernels.tree_clocks(
        causal.order, causal.component, Columns.of(history), reads.external,
        1 << 62 if limit is None else limit, starts, ends,
    )  # fmt: skip
    if nodes is None:
        return None
    log_start = np.zeros(history.transactions + 1, np.int64)
    log = np.empty(int(np.sum(ends - starts)), np.int32)
    tree_clock_kernels.in_order(nodes, starts, ends, log_start, log)
    learner_start = np.zeros(history.sessions + 1, np.int64)
    learnt, learner = np.empty_like(log), np.empty_like(log)
    tree_clock_kernels.sort_learnt(log_start, log, history.txn_session, learner_start, learnt, learner)
    clock = np.empty((history.transactions, 0), _count_type(history))
    return Clocks(
        0, history.sessions, history.txn_session, history.session_start, clock,
        log_start, log, learner_start, learnt, learner,
    )  # fmt: skip


# Forced edges and commit orders


@dataclass(frozen=True)
class Forced:
    """Forced edges: rows (t2, t1, read, list). One of the last two is the reason, the other is -1.

    ``stale`` counts reads of the initial state after a visible write.
    """

    edges: Int32s
    stale: int


@dataclass(frozen=True)
class CommitOrder:
    """The order of causal and forced edges, or their cycles."""

    forced: Forced
    extra: ExtraEdges
    ordering: Ordering

    @property
    def exists(self) -> bool:
        """Whether a commit order exists."""
        return bool(self.forced.stale == 0 and self.ordering.acyclic)
