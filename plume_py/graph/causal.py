"""The causal order CO = (SO ∪ WR)+: a topological order of it, its cycles, and its clocks in blocks of sessions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py import accel
from plume_py.graph import clock_kernels, order_kernels, tree_clock_kernels
from plume_py.graph.reads import Reads
from plume_py.history.model import History, Int32s, Int64s

# A block of clock rows takes at most this many bytes.
CLOCK_BYTES = 1 << 30

# From so many sessions on tree clocks are tried first, and given up if they have more changes than this, or than one
# for so many entries of the vectors.
MANY_SESSIONS = 500
MAX_CHANGES = 8_000_000
DENSE = 64

ClockKind = Literal["auto", "vector", "tree"]
CLOCKS: tuple[ClockKind, ...] = ("auto", "vector", "tree")

Counts = npt.NDArray[np.integer[Any]]
NO_COUNTS = np.empty((0, 0), np.uint8)
NO_STARTS = np.empty(0, np.int64)
NOTHING = np.empty(0, np.int32)


@dataclass(frozen=True)
class Ordering:
    """Transactions so that predecessors come first, as far as possible.

    ``component[t]`` is -1 off every cycle; transactions of one cycle share a number and stand together in ``order``.
    """

    order: Int32s
    component: Int32s

    @property
    def acyclic(self) -> bool:
        """Is ``order`` a linear extension?"""
        return not np.any(self.component >= 0)

    @cached_property
    def position(self) -> Int32s:
        """Where each transaction stands."""
        position = np.empty(len(self.order), np.int32)
        position[self.order] = np.arange(len(self.order), dtype=np.int32)
        return position


@dataclass(frozen=True)
class Extra:
    """Edges besides SO and WR, grouped by target: sources of t are ``source[start[t]:start[t + 1]]``."""

    start: Int64s
    source: Int32s
    row: Int64s  # which row of the edge array each came from

    @staticmethod
    def of(edges: Int32s, transactions: int) -> "Extra":
        """Group rows (from, to, ...) by their target."""
        row = np.argsort(edges[:, 1], kind="stable")
        start = np.zeros(transactions + 1, np.int64)
        np.cumsum(np.bincount(edges[:, 1], minlength=transactions), out=start[1:])
        return Extra(start, np.ascontiguousarray(edges[row, 0]), row)


def order_of(history: History, reads: Reads, extra: Extra) -> Ordering:
    """A topological order of SO ∪ WR ∪ ``extra``, and its cycles."""
    transactions = history.transactions
    accel.prepare(4 * (transactions + len(reads.read_op) + len(extra.source)), order_kernels)
    graph = reads.read_start, reads.read_source, extra.start, extra.source
    order = np.empty(transactions, np.int32)
    placed = order_kernels.topological_order(history.session_start, *graph, order)
    component = np.full(transactions, -1, np.int32)
    if placed < transactions:
        active = np.ones(transactions, np.uint8)
        active[order[:placed]] = 0
        rest = np.flatnonzero(active).astype(np.int32)
        found = order_kernels.components(rest, active, history.txn_session, *graph, order[placed:], component)
        sizes = np.bincount(component[rest], minlength=found)
        single = rest[sizes[component[rest]] == 1]
        component[single] = -1
    return Ordering(order, component)


class Clocks(NamedTuple):
    """Which transactions of sessions low .. high - 1 are causally before which others; ask ``clock_kernels.horizon``.

    Either as vectors, in ``clock``, or (where that has no columns) as what each session learnt, for all sessions: with
    ``learner[i]``, one of its transactions, session s learns of ``learnt[i]`` and what is before, for i from
    ``learner_start[s]`` to ``learner_start[s + 1]``, by ascending ``learnt``.
    """

    low: int
    high: int
    txn_session: Int32s
    session_start: Int32s
    clock: Counts
    learner_start: Int64s
    learnt: Int32s
    learner: Int32s


def whole_clocks(history: History, reads: Reads, causal: Ordering, kind: ClockKind) -> Clocks | None:
    """The clocks of all sessions at once, if ``kind`` and memory allow it."""
    if kind == "tree" or (kind == "auto" and history.sessions >= MANY_SESSIONS):
        limit = None if kind == "tree" else min(MAX_CHANGES, history.transactions * history.sessions // DENSE)
        tree = tree_clocks(history, reads, causal, limit)
        if tree is not None:
            return tree
    return next(vector_blocks(history, reads, causal)) if clock_width(history) >= history.sessions else None


def clock_width(history: History) -> int:
    """How many sessions a block of vector clocks covers: as many as there is room for, and all about the same."""
    affordable = int(CLOCK_BYTES // (_count_type(history).itemsize * max(1, history.transactions)))
    blocks = -(-history.sessions // max(1, affordable))
    return max(1, -(-history.sessions // max(1, blocks)))


def _count_type(history: History) -> "np.dtype[Any]":
    """The narrowest type that can count the transactions of a session."""
    longest = int(np.max(np.diff(history.session_start), initial=0))
    return np.dtype(np.uint8 if longest < 1 << 8 else np.uint16 if longest < 1 << 16 else np.int32)


def vector_blocks(history: History, reads: Reads, causal: Ordering) -> Iterator[Clocks]:
    """The clocks of all transactions, a block of sessions at a time; each takes the memory of the one before."""
    width = clock_width(history)
    room = np.empty(history.transactions * width, _count_type(history))
    for low in range(0, max(1, history.sessions), width):
        high = min(low + width, history.sessions)
        clock = room[: history.transactions * (high - low)].reshape(history.transactions, high - low)
        _fill(history, reads, causal, low, clock)
        yield Clocks(low, high, history.txn_session, history.session_start, clock, NO_STARTS, NOTHING, NOTHING)


def _fill(history: History, reads: Reads, causal: Ordering, low: int, clock: Counts) -> None:
    accel.prepare(len(reads.read_op) * clock.shape[1], clock_kernels)
    clock_kernels.vector_clocks(
        causal.order, causal.component, history.txn_session, history.session_start,
        reads.read_start, reads.read_source, low, clock,
    )  # fmt: skip


@dataclass(frozen=True)
class Lasts:
    """clock[t, s - low]: the last transaction of session s that is causally before t; if none is, a smaller number."""

    clock: Int32s


def clocks_of(history: History, reads: Reads, causal: Ordering, low: int, high: int) -> Lasts:
    """The last transactions of sessions low .. high - 1 before each transaction, for who needs few sessions."""
    counts = np.empty((history.transactions, high - low), _count_type(history))
    _fill(history, reads, causal, low, counts)
    return Lasts(history.session_start[low:high] + counts.astype(np.int32) - 1)


def tree_clocks(history: History, reads: Reads, causal: Ordering, limit: int | None = None) -> Clocks | None:
    """The clocks of all transactions as what changes from each to the next; None beyond ``limit`` changes."""
    accel.prepare(20 * len(reads.read_op), clock_kernels, tree_clock_kernels)
    log_start, log_end = np.zeros(history.transactions, np.int64), np.zeros(history.transactions, np.int64)
    nodes = tree_clock_kernels.tree_clocks(
        causal.order, causal.component, history.txn_session, history.session_start,
        reads.read_start, reads.read_source, 1 << 62 if limit is None else limit, log_start, log_end,
    )  # fmt: skip
    if nodes is None:
        return None
    logged = int(np.sum(log_end - log_start))
    start = np.zeros(history.sessions + 1, np.int64)
    learnt, learner = np.empty(logged, np.int32), np.empty(logged, np.int32)
    tree_clock_kernels.sort_learnt(nodes, log_start, log_end, history.txn_session, start, learnt, learner)
    return Clocks(
        0, history.sessions, history.txn_session, history.session_start, NO_COUNTS, start, learnt, learner
    )  # fmt: skip
