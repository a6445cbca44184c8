"""Arrays for the main engine: reads, writes, levels, and the versions that are read.

A version is a pair of a writer (-1: the initial state) and a key that some external read returned.
"""

from functools import cached_property

import numpy as np

from plume_py.base.sorted_sets import isin_sorted, unique_sorted
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.records import KeyWriters, SolverArrays
from plume_py.history.model import Bools, Int8s, Int32s, Int64s
from plume_py.levels import visibility_bits, visibility_column
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS


class SolverColumns:
    """The arrays of one history with one assignment of levels to transactions."""

    def __init__(self, analysis: Analysis, level: str | Int8s) -> None:
        history, reads = analysis.history, analysis.reads
        self.analysis, self.history, self.reads = analysis, history, reads
        self.transactions = history.transactions
        self.keys = len(history.key_code)
        self.sees = self._sees(level)
        counted = np.diff(reads.read_start)
        self.read_txn = np.repeat(np.arange(self.transactions, dtype=np.int32), counted)
        self.read_key: Int32s = history.op_key[reads.read_op]
        self.read_source = reads.read_source
        self.key_start, self.key_writers = analysis.key_writers
        self.writer_key = np.repeat(np.arange(self.keys, dtype=np.int32), np.diff(self.key_start))

    def _sees(self, level: str | Int8s) -> Int8s:
        """Return the level bits by transaction.

        Others, auxiliary nodes among them, keep their index and constrain nothing.
        """
        bits = np.full(self.transactions, visibility_bits(level) if isinstance(level, str) else 0, np.uint8)
        if not isinstance(level, str):
            bits[: len(level)] = visibility_column(level)
        bits[self.reads.participates == 0] = AT_COMMIT
        return bits

    @cached_property
    def _present(self) -> list[int]:
        """The distinct level bits of participating transactions."""
        bits: list[int] = np.unique(self.sees[self.reads.participates == 1]).tolist()
        return bits

    def has(self, bits: int, without: int = 0) -> bool:
        """Return whether some participating transaction has all of ``bits`` and none of ``without``."""
        return any(present & (bits | without) == bits for present in self._present)

    @cached_property
    def by_session(self) -> bool:
        """Whether some transaction has transitive visibility without prefixes.

        Then visible sets are counted by session.
        """
        return self.has(TRANSITIVE, without=PREFIX)

    @cached_property
    def mixes_snapshots(self) -> bool:
        """Whether some transactions see prefixes and others transitive sets, so that one kind extends the other."""
        return self.by_session and self.has(PREFIX)

    @cached_property
    def nodes(self) -> int:
        """Number of nodes: commits, then snapshots."""
        only_commits = not self.mixes_snapshots and not self.has(PREFIX, without=EVERYTHING)
        return self.transactions if only_commits else 2 * self.transactions

    @cached_property
    def snapshot_node(self) -> Int32s:
        """By transaction: the node of what is visible to it."""
        commits = np.arange(self.transactions, dtype=np.int32)
        if self.nodes == self.transactions:
            return commits
        return np.where(self.sees & EVERYTHING, commits, commits + self.transactions).astype(np.int32)

    @cached_property
    def versions(self) -> Int64s:
        """(writer + 1) * keys + key of each version read, ascending."""
        return unique_sorted(self._codes)

    @cached_property
    def _codes(self) -> Int64s:
        return (self.read_source.astype(np.int64) + 1) * max(1, self.keys) + self.read_key

    @cached_property
    def read_version(self) -> Int32s:
        return np.searchsorted(self.versions, self._codes).astype(np.int32)

    @cached_property
    def version_txn(self) -> Int32s:
        return (self.versions // max(1, self.keys) - 1).astype(np.int32)

    @cached_property
    def version_key(self) -> Int32s:
        return (self.versions % max(1, self.keys)).astype(np.int32)

    @cached_property
    def first_read(self) -> Bools:
        """By read: whether it is the first of its version in its transaction."""
        pairs = self.read_txn.astype(np.int64) * max(1, len(self.versions)) + self.read_version
        first = np.zeros(len(pairs), np.bool_)
        first[np.unique(pairs, return_index=True)[1]] = True
        return first

    @cached_property
    def readers(self) -> tuple[Int64s, Int32s]:
        """(start, reads): the reads of version v, one per transaction, are reads[start[v]:start[v + 1]]."""
        first = np.flatnonzero(self.first_read)
        reads = first[np.argsort(self.read_version[first], kind="stable")].astype(np.int32)
        start = np.zeros(len(self.versions) + 1, np.int64)
        np.cumsum(np.bincount(self.read_version[first], minlength=len(self.versions)), out=start[1:])
        return start, reads

    @cached_property
    def also_writes(self) -> Int8s:
        """By read: whether its transaction also writes the key."""
        written = self.key_writers.astype(np.int64) * max(1, self.keys) + self.writer_key
        asked = self.read_txn.astype(np.int64) * max(1, self.keys) + self.read_key
        return isin_sorted(asked, np.sort(written)).astype(np.uint8)

    @cached_property
    def read_counts(self) -> Int8s:
        """By read: 1 if its version should not be overwritten before it."""
        bits = self.sees[self.read_txn]
        overwrites = (bits & WRITERS != 0) & (self.also_writes == 1)
        counts: Int8s = (self.first_read & ((bits & PREFIX != 0) | overwrites)).astype(np.uint8)
        return counts

    @cached_property
    def writes(self) -> tuple[Int64s, Int32s, Int32s]:
        """(start, key, version).

        The writes of t are start[t] .. start[t + 1] - 1; version -1 if no read returned it.
        """
        order = np.argsort(self.key_writers, kind="stable")
        start = np.zeros(self.transactions + 1, np.int64)
        np.cumsum(np.bincount(self.key_writers, minlength=self.transactions), out=start[1:])
        return start, self.writer_key[order], self.writer_version[order]

    @cached_property
    def writer_version(self) -> Int32s:
        """By entry of ``key_writers``: its version, or -1 if no read returned it."""
        return self.version_of(self.key_writers, self.writer_key)

    def version_of(self, writer: Int32s, key: Int32s) -> Int32s:
        """Return the versions of pairs of writer and key, or -1."""
        codes = (writer.astype(np.int64) + 1) * max(1, self.keys) + key
        at = np.minimum(np.searchsorted(self.versions, codes), max(0, len(self.versions) - 1))
        if not len(self.versions):
            return np.full(len(codes), -1, np.int32)
        return np.where(self.versions[at] == codes, at, -1).astype(np.int32)

    @cached_property
    def initial_version(self) -> Int32s:
        """By key: the version of the initial state, or -1."""
        return self.version_of(np.full(self.keys, -1, np.int32), np.arange(self.keys, dtype=np.int32))

    @cached_property
    def arrays(self) -> SolverArrays:
        """The arrays for kernels."""
        return SolverArrays(
            self.sees, self.reads.participates, self.snapshot_node, self.reads.read_start, self.read_key,
            self.read_version, self.read_counts, *self.writes, self.initial_version,
        )  # fmt: skip

    @property
    def writers(self) -> KeyWriters:
        """The pairs of a writer and a key, for kernels."""
        return KeyWriters(self.key_writers, self.writer_key)
