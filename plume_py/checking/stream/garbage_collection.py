"""Forgetting, for runs without end: transactions that can no longer take part in a violation leave the tables.

A transaction may go when it is old enough, every session has it in its past, nothing in its own past still waits for a
writer, and each value it wrote was overwritten by a later transaction that every session has in its past, too. Nothing
can be forced before it any more, and whatever would be forced after it is forced after the one that overwrote it. What
the others know of each other is kept, also where it came through one that goes.

In real time there is more to look at. Read atomicity asks for the last writer of each session that had ended: one may
go only if its session wrote the key again, and that is old, too. And who has an unknown outcome and was not read yet
may still come to have somebody in its past, who stays until then.

What remains is a read of a forgotten value, which waits for ever; a session that begins afterwards and so has nothing
in its past yet; and a transaction that arrives too late for those who are gone (``Forgotten``). The verdict is then
left open.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plume_py.checking.stream import ingest_kernels as feed
from plume_py.checking.stream import level_kernels as judges
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import Batch
from plume_py.checking.stream.state import LAYERS, State, handle, new_state, with_room
from plume_py.history.model import COMMITTED, Bools, Int32s, Int64s
from plume_py.history.times import NO_TIME

FORGOTTEN = -5  # the source of a read whose writer is gone


@dataclass
class Forgotten:
    """Those who are gone: how many, and the latest times that matter of them and of those who stand for them."""

    transactions: int = 0
    operations: int = 0
    begin: int = NO_TIME  # who had ended before this comes too late
    end: int = NO_TIME  # who reads and did not begin after this may lack whom it has to see
    latecomers: int = 0  # so many did
    new_sessions: int = 0  # so many began afterwards

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of a verdict."""
        if not self.transactions:
            return ()
        return (f"{self.transactions:,} transactions were forgotten; what was shown is not all there may be",)

    @property
    def doubt(self) -> str | None:
        """Why a level that nothing has broken may be broken all the same."""
        if self.latecomers:
            return f"{self.latecomers:,} transactions arrived after others of their time had been forgotten"
        if self.new_sessions:
            return f"{self.new_sessions:,} sessions began after the first was forgotten"
        return None

    def add(self, m: State, survivors: Int64s, window: int, operations: int) -> None:
        """All of ``m`` but the survivors."""
        txns = int(m.n[tables.TXNS])
        gone = np.ones(txns, bool)
        gone[survivors] = False
        old = slice(0, max(0, txns - window))
        self.transactions += txns - len(survivors)
        self.operations += operations
        if np.any(gone):
            self.begin = max(self.begin, int(np.max(m.begin[:txns][gone])))
            self.end = max(self.end, int(np.max(m.end[old], initial=NO_TIME)))

    def meet(self, batch: Batch, m: State) -> None:
        """Some arrive: who of them comes too late?"""
        counts = (batch.status == COMMITTED) & (self.transactions > 0)
        late = (batch.end > NO_TIME) & (batch.end < self.begin)
        if m.levels[judges.RA]:
            late |= (batch.begin > NO_TIME) & (batch.begin <= self.end)
        self.latecomers += int(np.count_nonzero(counts & late))


def forget(m: State, window: int) -> tuple[State, Int64s]:
    """Smaller tables, without what may go; and which transactions are left, oldest first."""
    txns = int(m.n[tables.TXNS])
    rows = {layer: _known_rows(m, layer) for layer in range(LAYERS) if layer == 0 or m.levels[layer]}
    unsettled = _unsettled(m, rows[0])
    keep = unsettled | ~_overwritten(m, rows[0], window)
    if m.n[tables.REAL_TIME]:
        keep |= _before_unknown(m, rows[0])
    keep[max(0, txns - window) :] = True
    if m.n[tables.INIT_TXN] >= 0:
        keep[m.n[tables.INIT_TXN]] = True
    keep[_sources(m, keep & unsettled)] = True
    survivors = np.flatnonzero(keep)
    return _smaller(m, survivors, rows), survivors


def _known_rows(m: State, layer: int) -> Int32s:
    """What each transaction knows, late news included: a node of a tree tells what holds from its position on."""
    rows = m.row[layer, : int(m.n[tables.TXNS])].copy()
    for s in range(int(m.n[tables.SESSIONS])):
        if m.has_late[layer, s]:
            members = _members(m, s)
            rows[members] = np.maximum(rows[members], np.maximum.accumulate(m.late[layer, members], axis=0))
    return rows


def _members(m: State, s: int) -> Int32s:
    offset, length = (int(m.lists[m.session[s], column]) for column in (tables.OFFSET, tables.LENGTH))
    return m.pool[offset : offset + length]


def _unsettled(m: State, rows: Int32s) -> Bools:
    """Which transactions have a read in their past, or of their own, that waits for its writer."""
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    reads = m.read[: int(m.n[tables.READS])]
    waiting = reads[reads[:, tables.SOURCE] == tables.WAITS, tables.READER]
    first = np.full(sessions, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(first, m.txn[waiting, tables.SESSION], m.txn[waiting, tables.POSITION])
    own = m.txn[:txns, tables.POSITION] >= first[m.txn[:txns, tables.SESSION]]
    return np.asarray(own | np.any(rows[:, :sessions] >= first, axis=1))


def _before_unknown(m: State, rows: Int32s) -> Bools:
    """Which transactions may yet turn out to come before one of unknown outcome: if somebody reads from that.

    Its beginning counts only then; those who had ended before are in its past from then on, with all in theirs.
    """
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    status, live, session, position = (
        m.txn[:txns, column] for column in (tables.STATUS, tables.LIVE, tables.SESSION, tables.POSITION)
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
    """Which transactions are in everybody's past, together with those that overwrote all they wrote."""
    txns, sessions = len(rows), int(m.n[tables.SESSIONS])
    txn = m.txn[:txns]
    session, position = txn[:, tables.SESSION], txn[:, tables.POSITION]
    past = position <= np.min(m.now[0, :sessions, :sessions], axis=0)[session]
    ops = int(m.n[tables.OPS])
    owner = np.repeat(np.arange(txns), np.diff(m.txn[: txns + 1, tables.FIRST_OP]))
    written = np.flatnonzero((m.op_kind[:ops] & tables.LAST != 0) & (txn[owner, tables.LIVE] == 1) & past[owner])
    owner, key = owner[written], m.op[written, tables.KEY].astype(np.int64)
    newest = np.zeros(int(m.n[tables.KEYS]), np.int64)
    np.maximum.at(newest, key, owner)
    by = newest[key]
    safe = (by != owner) & (rows[by, session[owner]] >= position[owner])
    if m.levels[judges.RA]:  # which looks at what the own session wrote, besides
        here = key * sessions + session[owner]
        _, index = np.unique(here, return_inverse=True)
        last = np.zeros(len(here), np.int64)
        stands_in = np.ones(len(owner), bool)
        if m.n[tables.REAL_TIME]:  # and at what others wrote who had ended
            stands_in = (owner < txns - window) & (m.end[owner] > NO_TIME)
        np.maximum.at(last, index[stands_in], owner[stands_in])
        safe &= last[index] > owner
    past[owner[~safe]] = False
    return np.asarray(past)


def _sources(m: State, readers: Bools) -> Int32s:
    """From whom these read."""
    reads = m.read[: int(m.n[tables.READS])]
    sources = reads[readers[reads[:, tables.READER]], tables.SOURCE]
    return np.asarray(sources[sources >= 0])


def _smaller(m: State, survivors: Int64s, rows: dict[int, Int32s]) -> State:
    """The tables with these transactions only, all of them numbered anew."""
    sessions = int(m.n[tables.SESSIONS])
    levels = [bool(level) for level in m.levels]
    initial = int(m.n[tables.INITIAL_CODE]) if m.n[tables.HAS_INITIAL] else None
    small = new_state(levels, initial, bool(m.n[tables.INIT_TXN] >= 0), bool(m.n[tables.REAL_TIME]))
    lengths = m.txn[survivors + 1, tables.FIRST_OP] - m.txn[survivors, tables.FIRST_OP]
    small = with_room(small, len(survivors), int(np.sum(lengths)), sessions)
    for entry in (tables.IMPLICIT_READS, tables.INITIAL_WRITTEN, tables.SESSIONS, *range(tables.ORDERED, len(m.n))):
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
    feed.reindex(native)
    return small


def _copy_transactions(m: State, small: State, native: Any, survivors: Int64s, number: Int32s) -> None:
    """Transactions, their operations, and their reads, which keep their order."""
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
    key = int(tables.intern_key(native, int(m.key_code[x])))
    small.key[key, tables.USE] = m.key[x, tables.USE]
    before = int(small.n[tables.VERSIONS])
    version = int(tables.intern_version(native, key, int(m.version_value[v])))
    if version == before:  # it is new there
        small.version[version, [tables.FINAL, tables.WRITTEN]] = m.version[v, [tables.FINAL, tables.WRITTEN]]
        for column in (tables.WRITER, tables.SECOND, tables.SEEN_BY):
            small.version[version, column] = max(-1, number[m.version[v, column]])
    return key, version


def _copy_orders(m: State, small: State, survivors: Int64s, rows: dict[int, Int32s]) -> None:
    """Positions count only those that are left, and so do the rows."""
    sessions = int(m.n[tables.SESSIONS])
    for s in range(sessions):
        members = _members(m, s)
        left = np.isin(members, survivors)
        rank = np.concatenate(([0], np.cumsum(left))).astype(np.int32)
        mine = np.flatnonzero(m.txn[survivors, tables.SESSION] == s)
        small.txn[mine, tables.POSITION] = rank[m.txn[survivors[mine], tables.POSITION]]
        for layer, known in rows.items():
            small.row[layer, : len(survivors), s] = rank[known[survivors, s]]
            small.now[layer, :sessions, s] = rank[m.now[layer, :sessions, s]]
