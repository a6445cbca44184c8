"""The monitor's tables, the memory reserved in them, and the form in which kernels take them.

``monitor`` calls ``with_room`` before each batch, because kernels never grow an array. Fresh zeros from the operating
system cost no memory until they are touched, so tables may be generous.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py.base.errors import LimitError
from plume_py.checking.stream import table_kernels as tables
from plume_py.history.model import Int8s, Int32s, Int64s

# Limit for the entries of a layer (4 bytes each): one per transaction and session.
MOST_ENTRIES = 1 << 31

LAYERS = 4  # the causal order, and one for each of RC, RA, TCC
EVENTS = 256
# Minimum capacity for forced edges. If it is exceeded, the monitor becomes slower; verdicts stay correct.
EDGES_PER_TXN = 4
FIRST_TXNS, FIRST_OPS, FIRST_SESSIONS = 64, 512, 4


class State(NamedTuple):
    """All tables of a monitor. ``table_kernels`` names the columns."""

    n: Int64s  # counters and flags
    levels: Int8s  # CI, RC, RA, TCC
    broken: Int8s
    txn: Int32s
    op_kind: Int8s
    op: Int32s
    read: Int32s
    version: Int32s
    version_value: Int64s
    key: Int32s
    key_code: Int64s
    slot: Int32s
    lists: Int64s
    pool: Int32s
    session: Int32s  # per session: the number of the list of its transactions
    ended: Int32s  # per session: the list of its transactions whose end counts
    begun: Int32s  # per session: the list of its transactions whose begin counts
    begin: Int64s  # begin of each transaction, or NO_TIME
    end: Int64s
    key_hash: Int32s
    version_hash: Int32s
    slot_hash: Int32s
    row: Int32s  # this and the next four: see ``order_kernels``
    late: Int32s
    late_max: Int32s
    last_row: Int32s
    has_late: Int8s
    scratch: Int32s
    news: Int32s
    rank: Int32s
    mark: Int32s
    affected: Int32s
    free_ranks: Int32s
    edge: Int32s
    event: Int32s


def new_state(levels: "list[bool]", initial: int | None, init_first: bool, real_time: bool) -> State:
    """Return empty tables that check the given ``levels`` of CI, RC, RA, TCC. ``initial``: the initial value's code."""
    count = np.zeros(40, np.int64)
    count[tables.HAS_INITIAL] = initial is not None
    count[tables.INITIAL_CODE] = 0 if initial is None else initial
    count[tables.INIT_TXN] = 0 if init_first else -1
    count[tables.ORDERED : tables.ORDERED + LAYERS] = 1
    count[tables.IN_ORDER] = 1
    count[tables.REAL_TIME] = real_time
    txns, ops, sessions = FIRST_TXNS, FIRST_OPS, FIRST_SESSIONS
    return State(
        n=count,
        levels=np.array(levels, np.uint8),
        broken=np.zeros(4, np.uint8),
        txn=_rows(txns + 1, 10),
        op_kind=np.zeros(ops, np.uint8),
        op=_rows(ops, 2),
        read=_rows(ops, 6),
        version=_rows(ops, 7),
        version_value=np.zeros(ops, np.int64),
        key=_rows(ops, 8),
        key_code=np.zeros(ops, np.int64),
        slot=_rows(ops, 6),
        lists=np.zeros((ops, 3), np.int64),
        pool=np.zeros(ops, np.int32),
        session=np.zeros(sessions, np.int32),
        ended=np.zeros(sessions, np.int32),
        begun=np.zeros(sessions, np.int32),
        begin=np.zeros(txns, np.int64),
        end=np.zeros(txns, np.int64),
        key_hash=_hash(ops),
        version_hash=_hash(ops),
        slot_hash=_hash(ops),
        row=np.zeros((LAYERS, txns, sessions), np.int32),
        late=np.zeros((LAYERS, txns, sessions), np.int32),
        late_max=np.zeros((LAYERS, sessions, sessions), np.int32),
        last_row=np.zeros((LAYERS, sessions, sessions), np.int32),
        has_late=np.zeros((LAYERS, sessions), np.uint8),
        scratch=_rows(2, sessions),
        news=_rows(sessions * sessions, 5),
        rank=_rows(LAYERS, txns),
        mark=np.zeros(txns, np.int32),
        affected=_rows(2, txns),
        free_ranks=np.zeros(txns, np.int32),
        edge=_rows(txns, 7),
        event=_rows(EVENTS, 6),
    )


def with_room(m: State, txns: int, ops: int, sessions: int) -> State:
    """Return tables with room for so many more transactions and operations, and for ``sessions`` in all."""
    n = m.n
    txns += int(n[tables.TXNS])
    if txns * sessions > MOST_ENTRIES:
        raise LimitError(f"{sessions:,} sessions are too many to watch; check the history when it is complete")
    if sessions > m.row.shape[2] or txns > m.row.shape[1]:
        m = _with_rows(m, _grown(txns, m.row.shape[1]), _grown(sessions, m.row.shape[2]))
    # Waiting reads, reads not yet indexed and writes of unknown outcome may need slots, too.
    more = ops + int(n[tables.PENDING] + n[tables.UNKNOWN_OPS] + n[tables.READS] * n[tables.IN_ORDER])
    m = _with_table(m, int(n[tables.OPS]), ops, "op_kind", "op")
    m = _with_table(m, int(n[tables.READS]), ops, "read")
    m = _with_table(m, int(n[tables.VERSIONS]), ops, "version", "version_value", hashed="version_hash")
    m = _with_table(m, int(n[tables.KEYS]), ops, "key", "key_code", hashed="key_hash")
    m = _with_table(m, int(n[tables.SLOTS]), more, "slot", hashed="slot_hash")
    m = _with_table(m, int(n[tables.LISTS]), 3 * (more + sessions), "lists")
    m = _with_table(m, int(n[tables.EDGES]), int(n[tables.EDGES]) + EDGES_PER_TXN * m.row.shape[1], "edge")
    # A list that doubles its capacity abandons at most twice its final size in the pool.
    entries = 3 * m.row.shape[1] + 4 * (int(n[tables.OPS]) + more)
    return _with_table(m, int(n[tables.POOL]), max(0, 4 * entries - int(n[tables.POOL])), "pool")


def _with_table(m: State, used: int, more: int, *names: str, hashed: str = "") -> State:
    """Return ``m`` with room for ``more`` rows, beyond the ``used`` ones, in the named tables."""
    present = len(getattr(m, names[0]))
    if used + more <= present:
        return m
    length = _grown(used + more, present)
    m = m._replace(**{name: _longer(getattr(m, name), length, used) for name in names})
    rehashed: dict[str, Any] = {hashed: _rehashed(m, hashed, length)} if hashed else {}
    return m._replace(**rehashed)


def _with_rows(m: State, txns: int, sessions: int) -> State:
    used, columns = int(m.n[tables.TXNS]), m.row.shape[2]
    row, late = (np.zeros((LAYERS, txns, sessions), np.int32) for _ in range(2))
    for layer in range(LAYERS):
        # copying would touch, and so allocate, memory that is still unused
        if layer == 0 or (m.levels[layer] and not m.n[tables.ORDERED + layer]):
            row[layer, :used, :columns] = m.row[layer, :used]
        if np.any(m.late_max[layer]):
            late[layer, :used, :columns] = m.late[layer, :used]
    rank = _rows(LAYERS, txns)
    rank[:, :used] = m.rank[:, :used]
    late_max, last_row = (np.zeros((LAYERS, sessions, sessions), np.int32) for _ in range(2))
    late_max[:, :columns, :columns] = m.late_max
    last_row[:, :columns, :columns] = m.last_row
    has_late = np.zeros((LAYERS, sessions), np.uint8)
    has_late[:, :columns] = m.has_late
    return m._replace(
        txn=_longer(m.txn, txns + 1, used + 1),
        row=row,
        late=late,
        late_max=late_max,
        last_row=last_row,
        has_late=has_late,
        session=_longer(m.session, sessions, columns),
        ended=_longer(m.ended, sessions, columns),
        begun=_longer(m.begun, sessions, columns),
        begin=_longer(m.begin, txns, used),
        end=_longer(m.end, txns, used),
        scratch=_rows(2, sessions),
        news=_rows(sessions * sessions, 5),
        rank=rank,
        mark=_longer(m.mark, txns, used),
        affected=_rows(2, txns),
        free_ranks=np.zeros(txns, np.int32),
    )


def _rehashed(m: State, name: str, entries: int) -> Int32s:
    table = _hash(entries)
    if name == "key_hash":
        used = int(m.n[tables.KEYS])
        tables.rehash(table, m.key_code[:used], np.ones(used, np.int32))
    elif name == "version_hash":
        used = int(m.n[tables.VERSIONS])
        tables.rehash(table, m.version_value[:used], m.version[:used, tables.VERSION_KEY].copy())
    else:
        slots = m.slot[: int(m.n[tables.SLOTS])]
        tables.rehash(table, slots[:, tables.SLOT_SESSION].astype(np.int64), slots[:, tables.SLOT_KEY].copy())
    return table


def _grown(needed: int, present: int) -> int:
    """Return the new length of a table: at least twice the present one, so that growing does not dominate the cost."""
    return present if needed <= present else max(needed, 2 * present)


def _longer(array: "npt.NDArray[Any]", length: int, used: int) -> "npt.NDArray[Any]":
    """Return a copy with ``length`` rows. Copy only the ``used`` rows, so that the others take no memory."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def _rows(rows: int, columns: int) -> Int32s:
    return np.zeros((rows, columns), np.int32)


def _hash(entries: int) -> Int32s:
    """Return an empty hash table that ``entries`` fill at most half."""
    return np.full(1 << (2 * entries - 1).bit_length(), -1, np.int32)
