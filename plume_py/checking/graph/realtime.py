"""Real-time order: t1 comes before t2 if t1 is known to have ended before t2 began.

So many pairs are not written down. Between those who end and those who begin there are *moments*: one that has ended
comes before the next moment, a moment before the next one, and each before those who begin then. To the rest of the
analysis they are transactions that do not count, in a session of their own, as aborted ones that keep a place there;
what reaches one transaction from another through them is real time. Where only a common key puts two in order, the
writers and readers of one key overlap little, and the pairs that imply all others are written down as they are.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import realtime_kernels as kernels
from plume_py.checking.graph.records import Spans
from plume_py.history.model import ABORTED, COMMITTED, Bools, History, Int32s
from plume_py.history.times import NO_TIME, Times


@dataclass(frozen=True)
class Moments:
    """Edges (earlier, later) between transactions and moments, which are numbered behind the transactions."""

    count: int
    edges: Int32s


class RealTime:
    """The real-time order of one history, of all its transactions or only of those that touch a common key."""

    def __init__(self, history: History, times: Times, per_key: bool = False) -> None:
        self.history, self.per_key = history, per_key
        counts = history.txn_status == COMMITTED
        if history.init_txn >= 0:
            counts[history.init_txn] = False
        self.begin = np.where(_may_count(history), times.begin, NO_TIME)  # nor may it pass on who came before
        self.end = np.where(counts, times.end, NO_TIME)  # who does not count comes before nobody

    def precedes(self, a: int, b: int) -> bool:
        """Is a known to have ended before b began?"""
        ended = NO_TIME < int(self.end[a]) < int(self.begin[b])
        return ended and (not self.per_key or bool(np.isin(self._keys(a), self._keys(b)).any()))

    def before(self, b: int) -> Int32s:
        """Everybody who is known to have ended before b began."""
        earlier = np.flatnonzero((self.end > NO_TIME) & (self.end < self.begin[b])).astype(np.int32)
        if not self.per_key:
            return earlier
        keys = self._keys(b)
        return np.array([a for a in earlier.tolist() if np.isin(self._keys(a), keys).any()], np.int32)

    def _keys(self, t: int) -> Int32s:
        start = self.history.txn_start
        keys: Int32s = self.history.op_key[start[t] : start[t + 1]]
        return keys

    @cached_property
    def spans(self) -> Spans:
        """The times for kernels, with none for the moments behind the transactions."""
        missing = np.full(self.moments.count, NO_TIME, np.int64)
        return Spans(np.concatenate((self.begin, missing)), np.concatenate((self.end, missing)))

    @cached_property
    def moments(self) -> Moments:
        """What stands for the order."""
        return Moments(0, self._edges_by_key()) if self.per_key else self._moments()

    def _moments(self) -> Moments:
        ended = np.flatnonzero(self.end > NO_TIME)
        ended = ended[np.argsort(self.end[ended], kind="stable")]
        begun = np.flatnonzero(self.begin > NO_TIME)
        past = np.searchsorted(self.end[ended], self.begin[begun])  # by who begins: how many have ended
        begun, past = begun[past > 0], past[past > 0]
        moments = np.unique(past)
        first = self.history.transactions
        into = np.searchsorted(moments, np.arange(len(ended)), side="right")
        known = into < len(moments)
        edges = np.concatenate(
            (
                np.stack((ended[known], first + into[known]), axis=1),
                np.stack((first + np.searchsorted(moments, past), begun), axis=1),
            )
        )
        return Moments(len(moments), edges.astype(np.int32))

    def _edges_by_key(self) -> Int32s:
        history = self.history
        owner = np.repeat(np.arange(history.transactions, dtype=np.int64), np.diff(history.txn_start))
        pairs = np.unique(history.op_key.astype(np.int64) * max(1, history.transactions) + owner)
        key, txn = np.divmod(pairs, max(1, history.transactions))
        dispatch.prepare(20 * len(pairs), kernels)
        by_begin = np.lexsort((self.begin[txn], key))
        by_end = np.lexsort((self.end[txn], key))
        start = np.searchsorted(key, np.arange(len(history.key_code) + 1))
        edges: Int32s = kernels.nearest_by_key(start, txn[by_begin], txn[by_end], self.begin, self.end)
        return np.unique(edges, axis=0)


def _may_count(history: History) -> Bools:
    """Committed, or of unknown outcome and read by a committed one."""
    committed = history.txn_status == COMMITTED
    is_read = np.repeat(committed, np.diff(history.txn_start)) & ((history.op_kind & 1) == 0)
    versions = history.op_version[is_read]
    if history.lists is not None:
        versions = np.concatenate((versions, history.lists.items))
    writers = history.version_writer[versions]
    counts: Bools = committed.copy()
    counts[writers[writers >= 0]] = True
    counts[history.txn_status == ABORTED] = False
    return counts


def with_moments(history: History, moments: int) -> History:
    """The same history with so many moments in a session of their own."""
    if not moments:
        return history
    none, sessions = np.zeros(moments, np.uint8), history.sessions
    return replace(
        history,
        txn_start=np.concatenate((history.txn_start, np.full(moments, history.operations, np.int64))),
        txn_session=np.concatenate((history.txn_session, np.full(moments, sessions, np.int32))),
        txn_status=np.concatenate((history.txn_status, none + np.uint8(ABORTED))),
        txn_level=None if history.txn_level is None else np.concatenate((history.txn_level, none)),
        txn_line=None,
        txn_index=None,
        session_start=np.append(history.session_start, np.int32(history.transactions + moments)).astype(np.int32),
    )


def without_sessions(history: History) -> History:
    """The same history with a session for each transaction."""
    transactions = history.transactions
    numbers = np.arange(transactions + 1, dtype=np.int32)
    return replace(history, txn_session=numbers[:transactions], session_start=numbers)
