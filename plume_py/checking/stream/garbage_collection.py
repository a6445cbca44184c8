"""Forget transactions that can no longer take part in a violation, so that a monitor can run without end.

``monitor`` calls ``forget`` if it has a window. A transaction may be forgotten if it is older than the window and

- it is in the past of every session, and nothing in its own past waits for a writer;
- each value it wrote was overwritten by a later transaction that is also in the past of every session.

Then no edge can be forced before it, and every edge after it is also forced after the transaction that overwrote it.
Paths through forgotten transactions are kept as counts. In real time, RA also asks for the last writer per session that
had ended; it may be forgotten only if its session wrote the key again before the window. A transaction that may precede
one of unknown outcome stays until the outcome is known.

A read of a forgotten value waits forever. A session that begins later has nothing in its past, and a transaction may
arrive too late for the forgotten ones. In these cases the verdict stays open (``ForgottenTransactions``).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plume_py.checking.stream import ingest_kernels, level_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import Batch
from plume_py.checking.stream.compiled import handle
from plume_py.checking.stream.state import LAYERS, State, new_state, with_room
from plume_py.history.model import COMMITTED, Bools, Int32s, Int64s
from plume_py.history.times import NO_TIME

FORGOTTEN = -5  # the source of a read whose writer was forgotten


@dataclass
class ForgottenTransactions:
    """The number of forgotten transactions, their latest times, and what they leave undecided."""

    transactions: int = 0
    operations: int = 0
    begin: int = NO_TIME  # a transaction that ended before this arrives too late
    end: int = NO_TIME  # a reader that did not begin after this may miss a writer that it must see
    latecomers: int = 0  # transactions that arrived too late
    new_sessions: int = 0  # sessions that began after the first transaction was forgotten

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the result."""
        if not self.transactions:
            return ()
        return (f"{self.transactions:,} transactions were forgotten; what was shown is not all there may be",)

    @property
    def doubt(self) -> str | None:
        """The reason why a level without a violation is undecided, or None."""
        if self.latecomers:
            return f"{self.latecomers:,} transactions arrived after others of their time had been forgotten"
        if self.new_sessions:
            return f"{self.new_sessions:,} sessions began after the first was forgotten"
        return None

    def add(self, m: State, survivors: Int64s, window: int, operations: int) -> None:
        """Count all transactions of ``m`` except the survivors."""
        txns = int(m.n[tables.TXNS])
        gone = np.ones(txns, bool)
        gone[survivors] = False
        old = slice(0, max(0, txns - window))
        self.transactions += txns - len(survivors)
        self.operations += operations
        if np.any(gone):
            self.begin = max(self.begin, int(np.max(m.begin[:txns][gone])))
            self.end = max(self.end, int(np.max(m.end[old], initial=NO_TIME)))

    def count_latecomers(self, batch: Batch, m: State) -> None:
        """Count the committed transactions of a batch that arrive too late for the forgotten ones."""
        counts = (batch.status == COMMITTED) & (self.transactions > 0)
        late = (batch.end > NO_TIME) & (batch.end < self.begin)
        if m.levels[level_kernels.RA]:
            late |= (batch.begin > NO_TIME) & (batch.begin <= self.end)
        self.latecomers += int(np.count_nonzero(counts & late))


def forget(m: State, window: int) -> tuple[State, Int64s]:
    """Return smaller tables and the transactions left in them (their old numbers), oldest first."""
    txns = int(m.n[tables.TXNS])
    rows = {layer: _all_counts(m, layer) for layer in range(LAYERS) if layer == 0 or m.levels[layer]}
    unsettled = _has_waiting_past(m, rows[0])
    keep = unsettled | ~_overwritten(m, rows[0], window)
    if m.n[tables.REAL_TIME]:
        keep |= _may_precede_unknown(m, rows[0])
    keep[max(0, txns - window) :] = True
    if m.n[tables.INIT_TXN] >= 0:
        keep[m.n[tables.INIT_TXN]] = True
    reads = m.read[: int(m.n[tables.READS])]
    sources = reads[(keep & unsettled)[reads[:, tables.READER]], tables.SOURCE]
    keep[sources[sources >= 0]] = True
    survivors = np.flatnonzero(keep)
    return _compacted(m, survivors, rows), survivors


def _all_counts(m: State, layer: int) -> Int32s:
    """Return the counts of each transaction in a layer, as (transactions, sessions), with late updates applied."""
    rows = m.row[layer, : int(m.n[tables.TXNS])].copy()
    for s in range(int(m.n[tables.SESSIONS])):
        if m.has_late[layer, s]:
            members = _members(m, s)
            rows[members] = np.maximum(rows[members], np.maximum.accumulate(m.late[layer, members], axis=0))
    return rows


def _members(m: State, s: int) -> Int32s:
    offset, length = (int(m.lists[m.session[s], column]) for column in (tables.OFFSET, tables.LENGTH))
    return m.pool[offset : offset + length]


def _has_waiting_past(m: State, rows: Int32s) -> Bools:
    """Return which transactions have a read that waits for its writer, themselves or in their past."""
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    reads = m.read[: int(m.n[tables.READS])]
    waiting = reads[reads[:, tables.SOURCE] == tables.WAITS, tables.READER]
    first = np.full(sessions, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(first, m.txn[waiting, tables.SESSION], m.txn[waiting, tables.POSITION])
    own = m.txn[:txns, tables.POSITION] >= first[m.txn[:txns, tables.SESSION]]
    return np.asarray(own | np.any(rows[:, :sessions] >= first, axis=1))


def _may_precede_unknown(m: State, rows: Int32s) -> Bools:
    """Return which transactions would precede one of unknown outcome if a committed transaction read from it.

    The begin of the unknown one counts only then. Transactions that ended before it are in its past from then on.
    """
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    status, live, session, position = (
        m.txn[:txns, column] for column in (tables.STATUS, tables.PARTICIPATES, tables.SESSION, tables.POSITION)
    )
    begin, end = m.begin[:txns], m.end[:txns]
    found = np.zeros(txns, bool)
    for u in np.flatnonzero((status == tables.UNKNOWN) & (live == 0) & (begin > NO_TIME)).tolist():
        ended = (end > NO_TIME) & (end < begin[u])
        past = np.max(rows[ended, :sessions], axis=0, initial=0)
        np.maximum.at(past, session[ended], position[ended])
        found |= (position <= past[session]) & (position > rows[u][session])
    return found


def _overwritten(m: State, rows: Int32s, window: int) -> Bools:
    """Return which transactions are in the past of every session, as are overwrites of all their writes."""
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    txn = m.txn[:txns]
    session, position = txn[:, tables.SESSION], txn[:, tables.POSITION]
    past = position <= np.min(m.last_row[0, :sessions, :sessions], axis=0)[session]
    ops = int(m.n[tables.OPS])
    owner = np.repeat(np.arange(txns), np.diff(m.txn[: txns + 1, tables.FIRST_OP]))
    written = np.flatnonzero(
        (m.op_kind[:ops] & tables.LAST != 0) & (txn[owner, tables.PARTICIPATES] == 1) & past[owner]
    )
    owner, key = owner[written], m.op[written, tables.KEY].astype(np.int64)
    newest = np.zeros(int(m.n[tables.KEYS]), np.int64)
    np.maximum.at(newest, key, owner)
    by = newest[key]
    safe = (by != owner) & (rows[by, session[owner]] >= position[owner])
    if m.levels[level_kernels.RA]:  # RA also looks at the writers in the reader's own session
        here = key * sessions + session[owner]
        _, index = np.unique(here, return_inverse=True)
        last = np.zeros(len(here), np.int64)
        old_writers = np.ones(len(owner), bool)
        if m.n[tables.REAL_TIME]:  # and at writers in other sessions that had ended
            old_writers = (owner < txns - window) & (m.end[owner] > NO_TIME)
        np.maximum.at(last, index[old_writers], owner[old_writers])
        safe &= last[index] > owner
    past[owner[~safe]] = False
    return np.asarray(past)


def _compacted(m: State, survivors: Int64s, rows: dict[int, Int32s]) -> State:
    """Return tables that contain only the survivors, renumbered."""
    sessions = int(m.n[tables.SESSIONS])
    levels = [bool(level) for level in m.levels]
    initial = int(m.n[tables.INITIAL_CODE]) if m.n[tables.HAS_INITIAL] else None
    small = new_state(levels, initial, bool(m.n[tables.INIT_TXN] >= 0), bool(m.n[tables.REAL_TIME]))
    lengths = m.txn[survivors + 1, tables.FIRST_OP] - m.txn[survivors, tables.FIRST_OP]
    small = with_room(small, len(survivors), int(np.sum(lengths)), sessions)
    for entry in (tables.INITIAL_WRITTEN, tables.SESSIONS, *range(tables.ORDERED, len(m.n))):
        small.n[entry] = m.n[entry]
    small.broken[:] = m.broken
    native = handle(small)
    for s in range(sessions):
        tables.open_session(native, s)
    small.begin[: len(survivors)], small.end[: len(survivors)] = m.begin[survivors], m.end[survivors]
    number = np.full(len(rows[0]) + 1, FORGOTTEN, np.int32)
    number[survivors] = np.arange(len(survivors))
    _copy_transactions(m, small, native, survivors, number)
    _copy_orders(m, small, survivors, rows)
    ingest_kernels.reindex(native)
    return small


def _copy_transactions(m: State, small: State, native: Any, survivors: Int64s, number: Int32s) -> None:
    at_op = at_read = 0
    for t, old in enumerate(survivors.tolist()):
        ops = slice(int(m.txn[old, tables.FIRST_OP]), int(m.txn[old + 1, tables.FIRST_OP]))
        first_read = int(m.txn[old, tables.FIRST_READ])
        reads = m.read[first_read : int(m.txn[old + 1, tables.FIRST_READ])].copy()
        length = ops.stop - ops.start
        small.txn[t] = m.txn[old]
        small.txn[t, [tables.FIRST_OP, tables.FIRST_READ]] = at_op, at_read
        small.txn[t, [tables.EDGE, tables.OUT, tables.READ_BY, tables.SEEN]] = -1
        small.op_kind[at_op : at_op + length] = m.op_kind[ops]
        for i, (x, v) in enumerate(m.op[ops].tolist()):
            small.op[at_op + i] = _copy_version(m, small, native, x, v, number)
        reads[:, tables.OP] += at_op - ops.start
        reads[:, tables.READER] = t
        sources = reads[:, tables.SOURCE]
        reads[:, tables.SOURCE] = np.where(sources >= 0, number[np.maximum(sources, 0)], sources)
        reads[:, tables.SAME] += np.where(reads[:, tables.SAME] >= 0, at_read - first_read, 0)
        small.read[at_read : at_read + len(reads)] = reads
        at_op, at_read = at_op + length, at_read + len(reads)
    small.txn[len(survivors), [tables.FIRST_OP, tables.FIRST_READ]] = at_op, at_read
    small.n[[tables.TXNS, tables.OPS, tables.READS]] = len(survivors), at_op, at_read


def _copy_version(m: State, small: State, native: Any, x: int, v: int, number: Int32s) -> tuple[int, int]:
    """Add the key and version to the new tables if they are missing; return their numbers."""
    key = int(tables.intern_key(native, int(m.key_code[x])))
    small.key[key, tables.USE] = m.key[x, tables.USE]
    before = int(small.n[tables.VERSIONS])
    version = int(tables.intern_version(native, key, int(m.version_value[v])))
    if version == before:  # new in the small tables
        small.version[version, [tables.FINAL, tables.WRITTEN]] = m.version[v, [tables.FINAL, tables.WRITTEN]]
        for column in (tables.WRITER, tables.SECOND, tables.SEEN_BY):
            small.version[version, column] = max(-1, number[m.version[v, column]])
    return key, version


def _copy_orders(m: State, small: State, survivors: Int64s, rows: dict[int, Int32s]) -> None:
    sessions = int(m.n[tables.SESSIONS])
    for s in range(sessions):
        members = _members(m, s)
        left = np.isin(members, survivors)
        rank = np.concatenate(([0], np.cumsum(left))).astype(np.int32)
        mine = np.flatnonzero(m.txn[survivors, tables.SESSION] == s)
        small.txn[mine, tables.POSITION] = rank[m.txn[survivors[mine], tables.POSITION]]
        for layer, known in rows.items():
            small.row[layer, : len(survivors), s] = rank[known[survivors, s]]
            small.last_row[layer, :sessions, s] = rank[m.last_row[layer, :sessions, s]]
