"""Versions of each key in a commit order, and who depends on whom through them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plume_py.checking.graph.analysis import Analysis
from plume_py.history.model import NOBODY, History, Int32s, Int64s


@dataclass(frozen=True, eq=False)
class Versions:
    """The final versions of those who count, key by key in the order ``place`` of their writers."""

    analysis: Analysis
    order: Int32s  # the transactions that count, first to last

    @property
    def history(self) -> History:
        """Of which these are the versions."""
        return self.analysis.given

    @cached_property
    def place(self) -> Int32s:
        """Where each transaction stands in the order; -1: it does not count."""
        places = np.full(self.history.transactions, -1, np.int32)
        places[self.order] = np.arange(len(self.order), dtype=np.int32)
        return places

    @cached_property
    def _sorted(self) -> Int64s:
        """Versions by key, and of a key by the place of their writers."""
        history = self.history
        writer = history.version_writer
        written = np.flatnonzero((writer != NOBODY) & (self.analysis.reads.version_final == 1))
        written = written[self.place[writer[written]] >= 0]
        return written[np.lexsort((self.place[writer[written]], history.version_key[written]))]

    @cached_property
    def _rank(self) -> Int64s:
        """Where each version stands among the sorted ones; -1: nowhere."""
        ranks = np.full(len(self.history.version_key), -1, np.int64)
        ranks[self._sorted] = np.arange(len(self._sorted))
        return ranks

    def neighbour(self, version: int, step: int) -> int | None:
        """The version of the same key before (``step`` -1) or after (1) this one; None: there is none."""
        at = int(self._rank[version])
        other = at + step
        if at < 0 or not 0 <= other < len(self._sorted):
            return None
        found = int(self._sorted[other])
        return found if self.history.version_key[found] == self.history.version_key[version] else None

    @cached_property
    def _readers(self) -> tuple[Int64s, Int32s]:
        """Reads by the version that they saw, and those versions."""
        reads = self.analysis.reads
        seen = self.history.op_version[reads.read_op[: reads.read_start[-1]]]
        by_version = np.argsort(seen, kind="stable")
        return by_version, seen[by_version]

    def readers(self, version: int) -> Iterator[int]:
        """The transactions that read this version of a register."""
        by_version, seen = self._readers
        first, last = np.searchsorted(seen, [version, version + 1])
        for r in by_version[first : min(last, first + MOST_READERS)].tolist():
            yield self.analysis.reads.reader(r)

    def read(self, t: int) -> list[int]:
        """The versions of others that ``t`` read."""
        reads = self.analysis.reads
        ops = reads.read_op[reads.read_start[t] : reads.read_start[t + 1]]
        versions: list[int] = self.history.op_version[ops].tolist()
        return [version for version in versions if version >= 0]

    def written(self, t: int) -> list[int]:
        """The final versions that ``t`` wrote."""
        history = self.history
        span = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
        mine = history.op_version[span][(history.op_kind[span] & 1) == 1]
        return [version for version in mine.tolist() if self._rank[version] >= 0]

    def after(self, t: int) -> Iterator[int]:
        """Who comes after ``t`` at once: in its session, by reading from it, by overwriting what it wrote or read."""
        if t + 1 < self.history.transactions and self.analysis.previous_in_session(t + 1) == t:
            yield t + 1
        for version in self.written(t):
            yield from self.readers(version)
            yield from self._writer(self.neighbour(version, 1))
        for version in self.read(t):
            yield from self._writer(self.neighbour(version, 1))

    def before(self, t: int) -> Iterator[int]:
        """Who comes before ``t`` at once, in the same ways."""
        if (previous := self.analysis.previous_in_session(t)) >= 0:
            yield previous
        for version in self.read(t):
            yield from self._writer(version)
        for version in self.written(t):
            older = self.neighbour(version, -1)
            yield from self._writer(older)
            if older is not None:
                yield from self.readers(older)

    def _writer(self, version: int | None) -> Iterator[int]:
        if version is not None:
            writer = int(self.history.version_writer[version])
            if writer != NOBODY:
                yield writer


# A version may be read by very many; so many of them are looked at.
MOST_READERS = 8
