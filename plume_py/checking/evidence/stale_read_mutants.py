"""Detection rate: change one read to the previous version, and decide which levels are violated then.

A read of x from w gets the version that w overwrote, written by w', the previous writer of x in a commit order of the
history. The levels are decided in a window: w', w, the reader, and their nearest neighbours in that order, by session,
reads and overwriting. A violation of a window is a violation of the history, so the rate is a lower bound.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.subhistory import KeptTransaction, build, without_values, written_by_others
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import NOBODY, READ, READ_LIST, History, Int32s, Int64s, Op
from plume_py.levels import LEVELS, NAMES, strongest_weak_level_below, weaker_levels


@dataclass(frozen=True, eq=False)
class Versions:
    """The final versions of participating transactions, by key and in the commit order of their writers."""

    analysis: Analysis
    order: Int32s  # participating transactions, first to last

    @property
    def history(self) -> History:
        return self.analysis.given

    @cached_property
    def place(self) -> Int32s:
        """The position of each transaction in the order; -1 if it does not participate."""
        places = np.full(self.history.transactions, -1, np.int32)
        places[self.order] = np.arange(len(self.order), dtype=np.int32)
        return places

    @cached_property
    def _sorted(self) -> Int64s:
        """Versions by key, and per key by the position of their writers."""
        history = self.history
        writer = history.version_writer
        written = np.flatnonzero((writer != NOBODY) & (self.analysis.reads.version_final == 1))
        written = written[self.place[writer[written]] >= 0]
        return written[np.lexsort((self.place[writer[written]], history.version_key[written]))]

    @cached_property
    def _rank(self) -> Int64s:
        """The index of each version in ``_sorted``, or -1."""
        ranks = np.full(len(self.history.version_key), -1, np.int64)
        ranks[self._sorted] = np.arange(len(self._sorted))
        return ranks

    def neighbour(self, version: int, step: int) -> int | None:
        """Return the version of the same key before (``step`` -1) or after (1) this one, or None."""
        at = int(self._rank[version])
        other = at + step
        if at < 0 or not 0 <= other < len(self._sorted):
            return None
        found = int(self._sorted[other])
        return found if self.history.version_key[found] == self.history.version_key[version] else None

    @cached_property
    def _readers(self) -> tuple[Int64s, Int32s]:
        """Reads sorted by the version that they returned, and those versions."""
        reads = self.analysis.reads
        seen = self.history.op_version[reads.read_op[: reads.read_start[-1]]]
        by_version = np.argsort(seen, kind="stable")
        return by_version, seen[by_version]

    def readers(self, version: int) -> Iterator[int]:
        """Yield the transactions that read this version of a register."""
        by_version, seen = self._readers
        first, last = np.searchsorted(seen, [version, version + 1])
        for r in by_version[first : min(last, first + MOST_READERS)].tolist():
            yield self.analysis.reads.reader(r)

    def read(self, t: int) -> list[int]:
        reads = self.analysis.reads
        ops = reads.read_op[reads.read_start[t] : reads.read_start[t + 1]]
        versions: list[int] = self.history.op_version[ops].tolist()
        return [version for version in versions if version >= 0]

    def written(self, t: int) -> list[int]:
        history = self.history
        span = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
        mine = history.op_version[span][(history.op_kind[span] & 1) == 1]
        return [version for version in mine.tolist() if self._rank[version] >= 0]

    def after(self, t: int) -> Iterator[int]:
        """Yield the direct successors of ``t``.

        Next in its session, readers of its writes, and next writers of its keys.
        """
        if t + 1 < self.history.transactions and self.analysis.previous_in_session(t + 1) == t:
            yield t + 1
        for version in self.written(t):
            yield from self.readers(version)
            yield from self._writer(self.neighbour(version, 1))
        for version in self.read(t):
            yield from self._writer(self.neighbour(version, 1))

    def before(self, t: int) -> Iterator[int]:
        """Yield the direct predecessors of ``t``, in the same ways."""
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


# Maximum number of readers examined per version.
MOST_READERS = 8


# Number of transactions in a window, and how far it extends beyond w' and the reader in the order. Compared with the
# whole history, windows lose one violation of seventy.
WINDOW, BEYOND = 150, 50


@dataclass(frozen=True)
class Stale:
    """One read that is changed to an older version."""

    op: int
    reader: int
    writer: int  # of the version read
    older: int | None  # of the previous version; None: the initial state
    value: object  # the new value


def stale_reads(versions: Versions, samples: int, seed: int) -> list[Stale]:
    """Return up to ``samples`` reads, drawn from those whose version has a previous one."""
    reads = versions.analysis.reads
    candidates = np.flatnonzero(reads.read_source[: reads.read_start[-1]] >= 0)
    drawn = np.random.default_rng(seed).permutation(candidates)
    found: list[Stale] = []
    for r in drawn.tolist():
        if len(found) == samples:
            break
        one = _stale(versions, r)
        if one is not None:
            found.append(one)
    return found


def _stale(versions: Versions, r: int) -> Stale | None:
    history, reads = versions.history, versions.analysis.reads
    o, reader, writer = int(reads.read_op[r]), reads.reader(r), int(reads.read_source[r])
    if versions.place[reader] < 0 or versions.place[writer] < 0:
        return None
    if history.op_kind[o] == READ_LIST:
        return _shorter_list(history, o, reader, writer)
    if history.op_kind[o] != READ:
        return None
    before = versions.neighbour(int(history.op_version[o]), -1)
    if before is not None:
        return Stale(o, reader, writer, int(history.version_writer[before]), history.value(before))
    if history.initial is None or history.init_txn != NOBODY:
        return None
    return Stale(o, reader, writer, None, history.initial_value)


def _shorter_list(history: History, o: int, reader: int, writer: int) -> Stale | None:
    """Return a list read without the last element, if other transactions appended all elements."""
    assert history.lists is not None
    at = int(np.searchsorted(history.lists.ops, o))
    items = history.lists.items[history.lists.starts[at] : history.lists.starts[at + 1]]
    writers = history.version_writer[items].tolist()
    if not writers or reader in writers or writers[-1] != writer:
        return None
    older = next((w for w in reversed(writers) if w != writer), None)
    kept = next((n for n in range(len(writers), 0, -1) if writers[n - 1] != writer), 0)
    return Stale(o, reader, writer, older, tuple(map(history.value, items[:kept].tolist())))


def levels_detecting(versions: Versions, stale: Sequence[Stale], levels: Sequence[str], limits: Limits) -> Counter[str]:
    """Return, by level, the number of these reads that violate it."""
    found: Counter[str] = Counter()
    for one in stale:
        limits.check()
        found.update(_broken(_window(versions, one), versions.analysis.order, levels, limits))
    return found


def _window(versions: Versions, stale: Stale) -> History:
    """Return the transactions near the read and the version that it misses, with the read changed."""
    history = versions.history
    present = {stale.reader, stale.writer, *([stale.older] if stale.older is not None else [])}
    present |= set(_between(versions, stale, WINDOW - len(present)))
    parts = []
    for t in sorted({*present, history.init_txn} - {NOBODY}):
        txn = history.transaction(t)
        ops = list(txn.ops)
        if t == stale.reader:
            at = stale.op - int(history.txn_start[t])
            ops[at] = Op("r", ops[at].key, stale.value)  # type: ignore[arg-type]
        kept = without_values(tuple(ops), written_by_others(history, t, present))
        parts.append(KeptTransaction(int(history.txn_session[t]), txn._replace(ops=tuple(kept))))
    return as_ordinary(build(history, parts))


def _between(versions: Versions, stale: Stale, most: int) -> Iterator[int]:
    """Yield the nearest neighbours of the read and of the missed version, in turns.

    Only neighbours within their part of the order are included.
    """
    place = versions.place
    low = (0 if stale.older is None else int(place[stale.older])) - BEYOND
    high = int(place[stale.reader]) + BEYOND
    seen = {stale.reader, stale.writer, stale.older}
    waves = [(versions.before, [stale.reader]), (versions.after, [stale.writer])]
    while most > 0 and any(wave for _, wave in waves):
        for i, (neighbours, wave) in enumerate(waves):
            following: list[int] = []
            for t in wave:
                for other in neighbours(t):
                    if other not in seen and max(low, 0) <= place[other] <= high and most > 0:
                        seen.add(other)
                        following.append(other)
                        most -= 1
                        yield other
            waves[i] = (neighbours, following)


def _broken(history: History, order: str, levels: Sequence[str], limits: Limits) -> Iterator[str]:
    """Yield the violated levels. A violation of a weaker level is also one of the stronger levels."""
    analysis = Analysis(history, order=order)
    weak = WeakLevels(analysis)
    broken: set[str] = set()
    for level in (name for name in NAMES if name in levels):
        if broken & weaker_levels(level) or not _holds(weak, level, limits):
            broken.add(level)
            yield level


def _holds(weak: WeakLevels, level: str, limits: Limits) -> bool:
    if not LEVELS[level].needs_search:
        return weak.holds(level)
    if not weak.holds(strongest_weak_level_below([level])):
        return False
    decision = StrongEngine(weak.analysis, level, limits=limits).decide()
    if decision.ok is None:
        raise LimitError(decision.reason or "stopped")
    return decision.ok
