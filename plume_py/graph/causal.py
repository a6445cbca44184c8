"""The causal order CO = (SO ∪ WR)+: a topological order of it, its cycles, and its clocks in blocks of sessions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plume_py import accel
from plume_py.graph import clock_kernels, order_kernels
from plume_py.graph.reads import Reads
from plume_py.history.model import History, Int32s, Int64s

# A block of clock rows takes at most this many bytes.
CLOCK_BYTES = 1 << 30


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


@dataclass(frozen=True)
class Clocks:
    """clock[t, s - low] is the last transaction of session s causally before t (or -1), for one block of sessions."""

    low: int
    clock: Int32s

    @property
    def high(self) -> int:
        """The first session after the block."""
        return self.low + int(self.clock.shape[1])


def clock_width(history: History) -> int:
    """How many sessions a block of clocks covers."""
    affordable = int(CLOCK_BYTES // (4 * max(1, history.transactions)))
    return min(max(1, affordable), max(1, history.sessions))


def clock_blocks(history: History, reads: Reads, causal: Ordering) -> Iterator[Clocks]:
    """The clocks of all transactions, a block of sessions at a time so that memory stays bounded."""
    width = clock_width(history)
    for low in range(0, max(1, history.sessions), width):
        yield clocks_of(history, reads, causal, low, min(low + width, history.sessions))


def clocks_of(history: History, reads: Reads, causal: Ordering, low: int, high: int) -> Clocks:
    """The clocks of sessions low .. high - 1."""
    accel.prepare(len(reads.read_op) * (high - low), clock_kernels)
    clock = np.empty((history.transactions, high - low), np.int32)
    clock_kernels.vector_clocks(
        causal.order, causal.component, history.txn_session, reads.read_start, reads.read_source, low, clock
    )
    return Clocks(low, clock)
