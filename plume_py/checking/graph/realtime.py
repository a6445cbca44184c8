"""Real-time order: t1 precedes t2 if t1 is known to have ended before t2 began.

The number of such pairs is quadratic, so they are not stored. A chain of auxiliary nodes, called moments, separates
transactions that have ended from transactions that begin later:

    t1 (ended)  ->  moment i  ->  moment i + 1  ->  ...  ->  t2 (begins)

With n transactions this needs O(n) edges. Other modules treat moments as aborted transactions in a session after all
others: paths lead through them, but they have no operations. A path through moments is reported as one edge, RT.

With ``per_key``, only transactions that access a common key are ordered. Then, for each key, the edges that imply all
others are stored, without moments, because the transactions of one key rarely overlap.
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
    """Edges (earlier, later) between transactions and moments. Moments are numbered after the transactions."""

    count: int
    edges: Int32s


class RealTime:
    """Real-time order of a history, between all transactions or only those with a common key."""

    def __init__(self, history: History, times: Times, per_key: bool = False) -> None:
        self.history, self.per_key = history, per_key
        counts = history.txn_status == COMMITTED
        if history.init_txn >= 0:
            counts[history.init_txn] = False
        self.begin = np.where(_may_count(history), times.begin, NO_TIME)  # other transactions pass no order on
        self.end = np.where(counts, times.end, NO_TIME)  # and precede no transaction

    def precedes(self, a: int, b: int) -> bool:
        """Return whether a is known to have ended before b began."""
        ended = NO_TIME < int(self.end[a]) < int(self.begin[b])
        return ended and (not self.per_key or bool(np.isin(self._keys(a), self._keys(b)).any()))

    def before(self, b: int) -> Int32s:
        """Return all transactions that are known to have ended before b began."""
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
        """Start and end times for kernels; moments have NO_TIME."""
        missing = np.full(self.moments.count, NO_TIME, np.int64)
        return Spans(np.concatenate((self.begin, missing)), np.concatenate((self.end, missing)))

    @cached_property
    def moments(self) -> Moments:
        """The auxiliary nodes, and the edges whose closure is the real-time order; with ``per_key``, edges only."""
        return Moments(0, self._edges_by_key()) if self.per_key else self._moments()

    def _moments(self) -> Moments:
        ended = np.flatnonzero(self.end > NO_TIME)
        ended = ended[np.argsort(self.end[ended], kind="stable")]
        begun = np.flatnonzero(self.begin > NO_TIME)
        past = np.searchsorted(self.end[ended], self.begin[begun])  # by beginning: number that have ended
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
    """Return by transaction whether it is committed, or of unknown outcome and read by a committed one."""
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
    """Return the history with ``moments`` auxiliary nodes appended as one session."""
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
    """Return the history with one session per transaction."""
    transactions = history.transactions
    numbers = np.arange(transactions + 1, dtype=np.int32)
    return replace(history, txn_session=numbers[:transactions], session_start=numbers)
