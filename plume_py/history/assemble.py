"""Turn the raw columns that a reader filled, in file order, into a checked ``History``.

Steps: sort transactions by session and operations by transaction, number keys and versions densely, find the writer of
each version, reject ambiguous or contradictory input, and look for an explicit initial transaction.
"""

import os
from dataclasses import dataclass, field, replace

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.base.text import txn_text
from plume_py.history import assemble_kernels as kernels
from plume_py.history.init_txn import InitTxn, find_init_txn
from plume_py.history.model import (
    APPEND,
    COMMITTED,
    NOBODY,
    READ,
    READ_LIST,
    UNKNOWN,
    WRITE,
    Bools,
    History,
    Int8s,
    Int32s,
    Int64s,
    Labels,
    ListReads,
)
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import NULL, Atoms


@dataclass
class RawLists:
    """Lists that list reads returned: ``ops`` in file order; list i is ``values[starts[i]:starts[i + 1]]`` (codes)."""

    ops: Int64s
    starts: Int64s
    values: Int64s


@dataclass
class RawColumns:
    """The output of a reader: operations in file order, keys and values as codes, transactions by first line."""

    op_kind: Int8s
    op_key: Int64s
    op_value: Int64s
    op_txn: Int32s
    txn_session: Int32s  # dense session numbers
    txn_status: Int8s
    sessions: int
    keys: Atoms
    values: Atoms
    initial: int | None
    initial_declared: bool = False  # the file states its initial value
    initial_fixed: bool = False  # the format defines it, and no transaction sets it up
    key_initials: dict[int, int] | None = None  # initial value by key code, if keys have their own
    initial_seen: bool = False  # for other keys: the only value that was read and not written
    txn_level: Int8s | None = None
    txn_line: Int32s | None = None
    txn_index: Int64s | None = None
    times: Times | None = None
    lists: RawLists | None = None
    txn_label: Labels = field(default_factory=lambda: Labels(prefix="T"))
    session_label: Labels = field(default_factory=Labels)


def assemble(raw: RawColumns, format_name: str, init_txn: InitTxn = "auto") -> History:
    """Return the checked history of ``raw``, whose arrays are reused: the caller must not use ``raw`` afterwards."""
    dispatch.prepare(16 * len(raw.op_kind), kernels)
    txn_start = _order(raw)
    op_key, key_code, op_version, items, version_key, version_value = _intern(raw)
    lists = None if raw.lists is None else ListReads(raw.lists.ops, raw.lists.starts, items)
    version_writer = np.full(len(version_key), NOBODY, np.int32)
    version_second = np.full(len(version_key), NOBODY, np.int32)
    kernels.find_writers(raw.op_kind, op_version, txn_start, version_writer, version_second)
    history = History(
        op_kind=raw.op_kind,
        op_key=op_key,
        op_version=op_version,
        txn_start=txn_start,
        txn_session=raw.txn_session,
        txn_status=raw.txn_status,
        txn_level=raw.txn_level,
        txn_line=raw.txn_line,
        session_start=_starts(raw.txn_session, raw.sessions).astype(np.int32),
        version_key=version_key,
        version_value=version_value,
        version_writer=version_writer,
        key_code=key_code,
        keys=raw.keys,
        values=raw.values,
        initial=raw.initial,
        lists=lists,
        txn_label=raw.txn_label,
        session_label=raw.session_label,
        txn_index=raw.txn_index,
        times=_times(raw),
        format=format_name,
        version_initial=_initial_versions(
            raw, key_code, version_key, version_value, version_writer, op_version, txn_start
        ),
        warnings=_unread_duplicates(version_second),
    )
    _reject_odd_times(history)
    _reject_mixed_use(history)
    _reject_initial_in_list(history)
    _reject_ambiguous_read(history, version_second)
    found = find_init_txn(history, init_txn, raw.initial_declared, raw.initial_fixed)
    return replace(history, init_txn=found, init_guessed=init_txn == "auto" and found != NOBODY)


def _initial_versions(
    raw: RawColumns,
    key_code: Int64s,
    version_key: Int32s,
    version_value: Int64s,
    version_writer: Int32s,
    op_version: Int32s,
    txn_start: Int64s,
) -> Bools | None:
    """Return which versions are initial if keys have their own initial values, else None."""
    given = raw.key_initials
    if given is None:
        return None
    stated = np.array([code in given for code in key_code.tolist()], np.bool_)
    values = np.array([given.get(code, 0) for code in key_code.tolist()], np.int64)
    unwritten = version_writer == NOBODY
    initial: Bools = stated[version_key] & (version_value == values[version_key])
    # Reads of transactions that did not commit are never checked, so they decide nothing here.
    committed = np.repeat(raw.txn_status == COMMITTED, np.diff(txn_start))
    read = np.zeros(len(version_key), np.bool_)
    read[op_version[committed & (raw.op_kind == READ)]] = True
    twice = np.flatnonzero(initial & ~unwritten & read)
    if twice.size:
        v = twice[0]
        key, value = raw.keys.spell(int(key_code[version_key[v]])), raw.values.spell(int(version_value[v]))
        raise InputError(
            f"ambiguous read: value {value!r:.60} of key {key!r:.60} is initial, and a transaction wrote it too",
            hint="write each value of a key only once",
        )
    initial = unwritten & (initial | (version_value == raw.initial))
    if raw.initial_seen:
        seen = read & unwritten & ~stated[version_key]
        initial |= seen & (np.bincount(version_key[seen], minlength=len(key_code)) == 1)[version_key]
    return initial


def _starts(owner: Int32s, owners: int) -> Int64s:
    """Return where the items of each owner begin, given the owner of each item, in order."""
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=owners), out=starts[1:])
    return starts


def _order(raw: RawColumns) -> Int64s:
    """Sort transactions by session and operations by transaction, in place; return ``txn_start``.

    Most files are sorted already, so each sort is skipped if nothing is out of order.
    """
    transactions = len(raw.txn_session)
    rank = np.arange(transactions, dtype=np.int32)
    if np.any(raw.txn_session[1:] < raw.txn_session[:-1]):
        order = np.argsort(raw.txn_session, kind="stable")
        rank[order] = np.arange(transactions, dtype=np.int32)
        raw.txn_session = raw.txn_session[order]
        raw.txn_status = raw.txn_status[order]
        raw.txn_level = None if raw.txn_level is None else raw.txn_level[order]
        raw.txn_line = None if raw.txn_line is None else raw.txn_line[order]
        raw.txn_index = None if raw.txn_index is None else raw.txn_index[order]
        raw.times = None if raw.times is None else raw.times.taken(order)
        raw.txn_label = _reorder(raw.txn_label, order)
        raw.op_txn = rank[raw.op_txn]
    txn_start = _starts(raw.op_txn, transactions)
    if np.any(raw.op_txn[1:] < raw.op_txn[:-1]):
        order = np.empty(len(raw.op_txn), np.int64)
        kernels.order_by_txn(raw.op_txn, np.arange(transactions, dtype=np.int32), txn_start, order)
        raw.op_kind, raw.op_key, raw.op_value = raw.op_kind[order], raw.op_key[order], raw.op_value[order]
        if raw.lists is not None:
            _reorder_lists(raw.lists, order)
    return txn_start


def _reorder(labels: Labels, order: Int64s) -> Labels:
    names = labels.names
    if names is None:
        return labels
    moved = names[order] if isinstance(names, np.ndarray) else tuple(names[i] for i in order)
    return replace(labels, names=moved)


def _reorder_lists(lists: RawLists, order: Int64s) -> None:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    moved = place[lists.ops]
    by_place = np.argsort(moved)
    pieces = [lists.values[lists.starts[i] : lists.starts[i + 1]] for i in by_place]
    lists.ops = moved[by_place]
    lists.starts = np.concatenate(([0], np.cumsum(np.diff(lists.starts)[by_place]))).astype(np.int64)
    lists.values = np.concatenate(pieces) if pieces else lists.values


def _intern(raw: RawColumns) -> tuple[Int32s, Int64s, Int32s, Int32s, Int32s, Int64s]:
    """Number keys and versions densely, with the versions inside lists.

    Return op_key, key_code, op_version, the versions of list items, version_key and version_value.
    """
    operations = len(raw.op_kind)
    op_key, key_code = intern_keys(raw.op_key)
    raw.op_key = np.empty(0, np.int64)  # free large columns as early as possible
    keys, values = op_key, raw.op_value
    if raw.lists is not None:
        of_items = np.repeat(op_key[raw.lists.ops], np.diff(raw.lists.starts))
        keys = np.concatenate((op_key, of_items))
        values = np.concatenate((values, raw.lists.values))
    raw.op_value = np.empty(0, np.int64)
    ids, version_key, version_value = intern_versions(keys, values, len(key_code), raw.initial)
    return op_key, key_code, ids[:operations], ids[operations:], version_key, version_value


def _times(raw: RawColumns) -> Times | None:
    """Return the times without the ends of unknown outcomes, or None if no begin is known."""
    if raw.times is None or not np.any(raw.times.begin > NO_TIME):
        return None
    return replace(raw.times, end=np.where(raw.txn_status == UNKNOWN, NO_TIME, raw.times.end))


def _reject_odd_times(history: History) -> None:
    """Reject a transaction that ends before it begins, or begins before its predecessor in the session ended."""
    times = history.times
    if times is None:
        return
    backwards = np.flatnonzero((times.end > NO_TIME) & (times.begin > NO_TIME) & (times.end < times.begin))
    if len(backwards):
        t = int(backwards[0])
        raise InputError(
            f"{txn_text(history.txn_label[t])} ends (at {times.end[t]}) before it begins (at {times.begin[t]})",
            where=history.place(t),
            hint="take both times from one clock",
        )
    at, t = kernels.first_overlap(history.txn_session, times.begin, times.end, NO_TIME)
    if t >= 0:
        names = [txn_text(history.txn_label[i]) for i in (at, t)]
        begins = times.begin[t] > NO_TIME
        what = f"begins (at {times.begin[t]})" if begins else f"ends (at {times.end[t]})"
        raise InputError(
            f"{names[1]} {what} before {names[0]}, which its session ran first "
            f"({history.place(at)}), was over (at {max(times.begin[at], times.end[at])})",
            where=history.place(t),
            hint="take all times from one clock, or give overlapping transactions sessions of their own",
        )


def _unread_duplicates(version_second: Int32s) -> tuple[str, ...]:
    duplicates = int(np.count_nonzero(version_second >= 0))
    if not duplicates:
        return ()
    return (f"{duplicates} (key, value) pairs were written by two transactions; nobody read them",)


def _reject_ambiguous_read(history: History, version_second: Int32s) -> None:
    if not np.any(version_second >= 0):
        return
    found = _first_ambiguous(history, version_second)
    if found is None:
        return
    o, version = found
    reader = int(np.searchsorted(history.txn_start, o, side="right")) - 1
    writers = int(history.version_writer[version]), int(version_second[version])
    both = " and ".join(f"{txn_text(history.txn_label[t])} ({history.place(t)})" for t in writers)
    raise InputError(
        f"ambiguous read: {txn_text(history.txn_label[reader])} read value {history.value(version)!r:.60} of key "
        f"{history.key(int(history.op_key[o]))!r:.60}, which two transactions wrote: {both}",
        where=history.place(reader),
        hint="write each value of a key only once",
    )


def _first_ambiguous(history: History, version_second: Int32s) -> tuple[int, int] | None:
    """Return the first read of a committed transaction whose version two transactions wrote: (operation, version).

    The version may be an item of a list that was read.
    """
    o = kernels.first_ambiguous_read(
        history.op_kind, history.op_version, history.txn_start, history.txn_status, version_second
    )
    if o >= 0:
        return int(o), int(history.op_version[o])
    if history.lists is None:
        return None
    owners = np.searchsorted(history.txn_start, history.lists.ops, side="right") - 1
    committed = np.repeat(history.txn_status[owners] == COMMITTED, np.diff(history.lists.starts))
    items = np.flatnonzero(committed & (version_second[history.lists.items] >= 0))
    if not items.size:
        return None
    at = int(np.searchsorted(history.lists.starts, items[0], side="right")) - 1
    return int(history.lists.ops[at]), int(history.lists.items[items[0]])


def _reject_mixed_use(history: History) -> None:
    """Reject a key that is used as a register and as a list."""
    if history.lists is None and not np.any(history.op_kind >= READ_LIST):
        return
    scalar_read = history.op_kind == READ
    scalar_read &= ~history.initial_versions[history.op_version]
    as_register = np.unique(history.op_key[scalar_read | (history.op_kind == WRITE)])
    as_list = np.unique(history.op_key[history.op_kind >= READ_LIST])
    both = np.intersect1d(as_register, as_list)
    if both.size:
        o = int(np.flatnonzero((history.op_key == both[0]) & (history.op_kind < READ_LIST))[0])
        t = int(np.searchsorted(history.txn_start, o, side="right")) - 1
        raise InputError(
            f"key {history.key(int(both[0]))!r:.60} is used both as a list and as a register",
            where=history.place(t),
            hint="use separate keys for appends and for plain writes",
        )


def _reject_initial_in_list(history: History) -> None:
    """Reject a list that contains the initial value, which represents the empty list."""
    if history.initial is None:
        return
    found = np.flatnonzero(list_elements(history) & (history.version_value == history.initial))
    if found.size:
        raise InputError(
            f"key {history.key(int(history.version_key[found[0]]))!r:.60} is a list, and the initial value "
            f"{history.initial_value!r:.60} stands in it",
            hint="declare an initial value that no list holds, or none",
        )


def list_elements(history: History) -> Bools:
    """Return which versions are elements of lists, appended or read: shape (versions,)."""
    elements = np.zeros(len(history.version_value), np.bool_)
    elements[history.op_version[history.op_kind == APPEND]] = True
    if history.lists is not None:
        elements[history.lists.items] = True
    return elements


# --- dense numbers

# At most this many table entries per code: such a table takes less memory than hashing.
SPARSE = 2

# Random per process, so that no file can be made whose codes all hash to one slot; 62 bits.
SECRET = int.from_bytes(os.urandom(8), "big") >> 2

# Codes between -_SAFE and _SAFE can be added and subtracted without overflow.
_SAFE = 2**62


def intern_keys(codes: Int64s) -> tuple[Int32s, Int64s]:
    """Return the dense number of each code, by first appearance, and the code of each number."""
    ids = np.empty(len(codes), np.int32)
    distinct = np.empty(len(codes), np.int64)
    low, high = _bounds(codes)
    if high - low < SPARSE * len(codes):
        table = np.full(high - low + 1, -1, np.int32)
        found = kernels.intern_dense_keys(codes, low, table, ids, distinct)
    else:
        found = kernels.intern_keys(codes, SECRET, ids, distinct)
    return ids, distinct[:found].copy()


def intern_versions(keys: Int32s, codes: Int64s, key_count: int, initial: int | None) -> tuple[Int32s, Int32s, Int64s]:
    """Return the dense number of each pair (key, code), and the key and the code of each number."""
    ids = np.empty(len(codes), np.int32)
    version_key, version_code = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    found = _by_table(keys, codes, key_count, NULL if initial is None else initial, ids, version_key, version_code)
    if found < 0:
        found = kernels.intern_versions(keys, codes, SECRET, ids, version_key, version_code)
    return ids, version_key[:found].copy(), version_code[:found].copy()


def first_positions(ids: Int32s, count: int) -> Int64s:
    """Return the first position of each number below ``count`` in ``ids``."""
    places = np.empty(count, np.int64)
    places[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return places


def _by_table(
    keys: Int32s, codes: Int64s, key_count: int, initial: int, ids: Int32s, version_key: Int32s, version_code: Int64s
) -> int:
    """Number versions with a table that has an entry for each possible version.

    Return the number of versions, or -1 if the table would have more than SPARSE entries per code. The initial value,
    which may be far from all other values, has its own entry per key.
    """
    low, high = np.full(key_count, _SAFE, np.int64), np.full(key_count, -_SAFE, np.int64)
    kernels.value_ranges(keys, codes, initial, low, high)
    if not key_count or low.min() <= -_SAFE or high.max() >= _SAFE:
        return -1
    lengths = np.maximum(high - low + 1, 0)
    most = SPARSE * len(codes)
    if lengths.max() <= most and key_count + int(lengths.sum()) <= most:  # a range of values per key
        is_shared, size = False, key_count + int(lengths.sum())
        first = np.concatenate(([0], np.cumsum(lengths + 1)[:-1]))
        base = np.where(lengths > 0, first + 1 - low, 0)
    elif 0 <= high.max() - low.min() < most - key_count:  # one range for all keys
        is_shared, size = True, key_count + int(high.max() - low.min()) + 1
        first = np.arange(key_count)
        base = np.full(key_count, key_count - low.min())
    else:
        return -1
    places = first, base, np.full(size, -1, np.int32)
    return int(kernels.intern_dense_versions(keys, codes, initial, *places, is_shared, ids, version_key, version_code))


def _bounds(codes: Int64s) -> tuple[int, int]:
    return (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
