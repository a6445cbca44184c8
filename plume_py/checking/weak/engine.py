"""The decision: does a history keep CI, RC, RA, TCC? One set of forced commit-order edges per level.

Nothing that a level forces feeds back into its premise, so the edges are derived once; the level holds if they, with
the causal order, form no cycle, and then any topological order is a witness.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plume_py.base import accel
from plume_py.checking.graph import clock_kernels
from plume_py.checking.graph.causal import ClockKind, Clocks, Extra, Ordering, order_of, vector_blocks, whole_clocks
from plume_py.checking.graph.reads import Reads, key_writers, resolve_reads
from plume_py.checking.weak import edges_kernels as kernels
from plume_py.history.model import History, Int32s, Int64s
from plume_py.levels.patterns import BASE

T = TypeVar("T")

# How often a trial order is mended, and how far it may look back per read, before the exact derivation takes over.
ROUNDS = 8
STEPS_PER_READ = 20

# Below this many reads a second thread costs more than it saves.
WORTH_A_THREAD = 100_000


@dataclass(frozen=True)
class Forced:
    """What one level forces: rows (t2, t1, read, list), one of the last two being the reason and the other -1.

    ``stale`` tells how often the initial state was read too late.
    """

    edges: Int32s
    stale: int


@dataclass(frozen=True)
class CommitOrder:
    """The commit order that one level forces, or its cycles."""

    forced: Forced
    extra: Extra
    ordering: Ordering

    @property
    def exists(self) -> bool:
        """Is there a commit order at all?"""
        return bool(self.forced.stale == 0 and self.ordering.acyclic)


@dataclass(frozen=True)
class KeyGroups:
    """The writers of each key split by session."""

    key_group: Int64s
    group_start: Int64s
    group_session: Int32s


class WeakEngine:
    """Everything the weak levels share for one history; each part is computed when first asked for."""

    def __init__(
        self, history: History, clock: ClockKind = "auto", progress: Callable[[str], None] | None = None
    ) -> None:
        """``progress`` is called with the name of each phase that begins."""
        self.history = history
        self.clock = clock
        self._progress = progress
        self.seconds: dict[str, float] = {}
        self._orders: dict[str, CommitOrder] = {}
        self._trial: Ordering | None = None  # a commit order for TCC, if one was found by trial

    def holds(self, level: str) -> bool:
        """Does the history keep CI, RC, RA or TCC?"""
        if level == "CI":
            return "j" not in self.reads.counts
        if any(pattern in self.reads.counts for pattern in BASE) or not self.causal.acyclic:
            return False
        if level == "TCC":
            self._trial = self._trial or self._search_causal_order()
            if self._trial is not None:
                return True
        return self.commit_order(level).exists

    def witness(self, level: str) -> Int32s:
        """A commit order that shows RC, RA or TCC, which must hold: the transactions that count, first to last."""
        if not self.holds(level):
            raise ValueError(f"{level} does not hold")
        trial = self._trial if level == "TCC" else None
        order = (trial or self.commit_order(level).ordering).order
        return np.compress(self.reads.live[order] == 1, order)

    def _search_causal_order(self) -> Ordering | None:
        """A commit order for TCC found by trial: the causal order at hand, mended where TCC forces the opposite.

        None means that there is none, or that it was not found soon; the exact derivation decides then.
        """
        history, reads = self.history, self.reads
        ordering = self.version_ordering
        clocks = self.whole_clocks
        if clocks is None or not clocks.clock.size:  # single questions are dear without vectors
            return None
        accel.prepare(10 * history.operations, kernels)
        mended: list[Int32s] = []
        for _ in range(ROUNDS):
            with self.timed("edges"):
                edges, gave_up = self._backward_edges(ordering, clocks)
            if np.any(edges[:, 1] < 0) or gave_up or not ordering.acyclic:
                return None
            if not len(edges):
                return ordering
            mended.append(edges)
            with self.timed("cycle"):
                ordering = order_of(history, reads, self._extra(mended))
            if not ordering.acyclic:
                return None
        return None

    def _backward_edges(self, ordering: Ordering, clocks: Clocks) -> tuple[Int32s, bool]:
        """What TCC forces against ``ordering``, and whether looking for it was given up."""
        history, reads = self.history, self.reads
        edges, left = kernels.tcc_backward_edges(
            ordering.order, self.version_ordering.position, *self._layout,
            history.txn_session, len(history.key_code), clocks, STEPS_PER_READ * len(reads.read_op) + 1000,
        )  # fmt: skip
        return edges, left < 0

    @cached_property
    def _layout(self) -> tuple[Int64s, Int64s, Int32s, Int32s, Int32s, Int32s]:
        """Reads and writes as they follow one another in the causal order (see ``lay_out``)."""
        history, reads = self.history, self.reads
        slot_read, slot_write = (np.empty(history.transactions + 1, np.int64) for _ in range(2))
        read_key, read_from, read_number = (np.empty(len(reads.read_op), np.int32) for _ in range(3))
        write_key = np.empty(int(np.count_nonzero(history.op_kind & 1)), np.int32)
        kernels.lay_out(
            self.version_ordering.order, history.op_kind, history.op_key, history.txn_start, reads.live,
            reads.read_start, reads.read_op, reads.read_source,
            slot_read, slot_write, read_key, read_from, read_number, write_key,
        )  # fmt: skip
        return slot_read, slot_write, read_key, read_from, read_number, write_key[: slot_write[-1]]

    def _extra(self, forced: list[Int32s]) -> Extra:
        return Extra.of(np.concatenate([self.reads.version_order, *forced]), self.history.transactions)

    def before(self, early: Int32s, late: Int32s) -> "npt.NDArray[np.bool_]":
        """Is early[i] causally before late[i]?"""
        verdict = np.ones(len(early), np.bool_)
        for block in self.clocks():
            accel.prepare(20 * len(early), clock_kernels)
            clock_kernels.not_before(block, early, late, verdict)
        return ~verdict

    @cached_property
    def whole_clocks(self) -> Clocks | None:
        """The causal clocks of all sessions, if they can be had at once."""
        reads, causal = self.reads, self.causal
        with self.timed("clocks"):
            return whole_clocks(self.history, reads, causal, self.clock)

    @cached_property
    def reads(self) -> Reads:
        """The resolved reads."""
        with self.timed("resolve"):
            return resolve_reads(self.history)

    @cached_property
    def causal(self) -> Ordering:
        """The causal order, SO and WR alone."""
        reads = self.reads
        with self.timed("order"):
            return order_of(self.history, reads, Extra.of(np.empty((0, 4), np.int32), self.history.transactions))

    @cached_property
    def version_ordering(self) -> Ordering:
        """The causal order together with the orders of writers that lists fix."""
        if not len(self.reads.version_order):
            return self.causal
        return order_of(self.history, self.reads, self._extra([]))

    @cached_property
    def key_writers(self) -> tuple[Int64s, Int32s]:
        """The live writers of key x, ascending: ``writers[start[x]:start[x + 1]]`` of (start, writers)."""
        reads = self.reads
        with self.timed("resolve"):
            return key_writers(self.history, reads)

    @cached_property
    def groups(self) -> KeyGroups:
        """The writers of each key, split by session."""
        start, writers = self.key_writers
        key_group = np.zeros(len(start), np.int64)
        group_start = np.zeros(len(writers) + 1, np.int64)
        group_session = np.zeros(len(writers), np.int32)
        accel.prepare(4 * len(writers), kernels)
        count = kernels.group_writers(start, writers, self.history.txn_session, key_group, group_start, group_session)
        return KeyGroups(key_group, group_start[: count + 1].copy(), group_session[:count].copy())

    def commit_order(self, level: str) -> CommitOrder:
        """The order that RC, RA or TCC forces."""
        if level not in self._orders:
            self._orders[level] = self._commit_order(level)
        return self._orders[level]

    def clocks(self) -> Iterator[Clocks]:
        """The causal clocks, block by block; a block is good until the next one is asked for."""
        if self.whole_clocks is not None:
            yield self.whole_clocks
            return
        blocks = vector_blocks(self.history, self.reads, self.causal)
        while True:
            with self.timed("clocks"):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def _commit_order(self, level: str) -> CommitOrder:
        forced = self._forced(level)
        edges = np.concatenate((forced.edges, self.reads.version_order))
        causal = self.causal
        extra = Extra.of(edges, self.history.transactions)
        with self.timed("cycle"):
            # Mostly every edge already goes forward in the causal order at hand, which then is a witness.
            forward = causal.acyclic and bool(np.all(causal.position[edges[:, 0]] < causal.position[edges[:, 1]]))
            ordering = causal if forward else order_of(self.history, self.reads, extra)
        return CommitOrder(Forced(edges, forced.stale), extra, ordering)

    def _forced(self, level: str) -> Forced:
        history, reads = self.history, self.reads
        accel.prepare(10 * history.operations, kernels)
        if level == "TCC":
            return self._forced_by_causality()
        arguments = (
            history.op_kind, history.op_key, history.txn_start, history.txn_session,
            reads.read_start, reads.read_op, reads.read_source, *self.key_writers,
        )  # fmt: skip
        with self.timed("edges"):
            if level == "RC":
                return _joined(self._in_threads(kernels.rc_edges, self._halves(), *arguments))
            return _joined(self._in_threads(kernels.ra_edges, self._halves(), *arguments, reads.live))

    def _forced_by_causality(self) -> Forced:
        history, reads, groups, writers = self.history, self.reads, self.groups, self.key_writers[1]
        parts = []
        for block in self.clocks():
            with self.timed("edges"):
                parts += self._in_threads(
                    kernels.tcc_edges, self._halves(),
                    history.op_key, history.txn_session, reads.read_start, reads.read_op, reads.read_source,
                    writers, groups.key_group, groups.group_start, groups.group_session, block,
                )  # fmt: skip
        return _joined(parts)

    @property
    def _threads(self) -> int:
        """Into how many parts large work is split."""
        return 2 if len(self.reads.read_op) >= WORTH_A_THREAD else 1

    def _halves(self) -> list[tuple[int, int]]:
        """Ranges of transactions, whole sessions each, with about the same number of reads."""
        starts = self.history.session_start
        reads_before = self.reads.read_start[starts]
        cuts = [
            int(starts[np.searchsorted(reads_before, part * reads_before[-1] // self._threads)])
            for part in range(1, self._threads)
        ]
        return list(pairwise([0, *cuts, self.history.transactions]))

    def _in_threads(self, kernel: Callable[..., T], parts: Sequence[tuple[int, ...]], *arguments: object) -> list[T]:
        """Run ``kernel`` on each part; compiled kernels release Python's lock, so the parts run at the same time."""
        if len(parts) == 1:
            return [kernel(*parts[0], *arguments)]
        with ThreadPoolExecutor(len(parts)) as pool:
            return [future.result() for future in [pool.submit(kernel, *part, *arguments) for part in parts]]

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


def _joined(parts: list[tuple[Int32s, int]]) -> Forced:
    """What several threads found, as one."""
    nothing = np.empty((0, 4), np.int32)
    return Forced(np.concatenate([nothing, *(edges for edges, _ in parts)]), int(sum(stale for _, stale in parts)))
