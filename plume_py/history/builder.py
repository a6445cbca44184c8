"""Build histories one transaction at a time (``HistoryBuilder``), from code and in the readers of textual formats."""

import re
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.base.text import with_letter
from plume_py.history import assemble_kernels as kernels
from plume_py.history.assemble import RawColumns, RawLists, assemble, intern_keys
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import (
    APPEND,
    INITIAL_ID,
    READ,
    READ_LIST,
    STATUS_NAMES,
    WRITE,
    History,
    Int8s,
    Int32s,
    Int64s,
    Labels,
)
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import NULL, Atom, AtomCoder, joined
from plume_py.levels import CODES, parse_level
from plume_py.levels.orders import unknown_level

# This many pending operations become columns, so that a long stream never exists as objects at once.
FLUSH_AT = 200_000

# Streams of the value coder: values of operations, items of lists, initial values.
_OPS, _ITEMS, _INITIAL = range(3)
# Stream of the key coder, after that of operations: the keys that have their own initial value.
_INITIAL_KEYS = 1

KINDS = {"r": READ, "w": WRITE, "append": APPEND}
STATUS = {name: code for code, name in enumerate(STATUS_NAMES)}

# Ids that look like generated ones.
_LIKE_OURS = re.compile(r"T('*+)\d++")


@dataclass
class TxnColumns:
    """Transactions as columns: keys and values are integers that are their own codes, or NULL.

    Transaction t has the operations ``ends[t]`` to ``ends[t + 1]``. List i belongs to the operation ``list_ops[i]``
    and has the items ``list_ends[i]`` to ``list_ends[i + 1]``. Sessions are integers; an unknown time is NO_TIME.
    """

    kinds: Int8s
    keys: Int64s
    values: Int64s
    ends: Int64s
    sessions: Int64s
    status: Int8s
    begin: Int64s
    end: Int64s
    list_ops: Int64s
    list_ends: Int64s
    items: Int64s
    level: Int8s | None = None
    ids: Sequence[str | int | None] | None = None
    lines: Int32s | None = None
    indices: Int64s | None = None


class HistoryBuilder:
    """Collects transactions, in session order within each session; sessions may interleave.

    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("alice", [("w", "x", 1)])
    >>> builder.add("bob", [("r", "x", 1), ("r", "y", 0)], status="committed", level="SI", id="b1")
    >>> builder.build().transactions
    2
    """

    def __init__(
        self,
        initial: Atom | Sequence[Atom] = None,
        *,
        declared: bool = True,
        fixed: bool = False,
        implicit_initial: bool = True,
        initials: Mapping[Any, Any] | None = None,
        per_second: int | None = None,
    ) -> None:
        """``initial`` is the value that a read of the initial state returns.

        ``declared``: the history states this value; otherwise it is the format's convention, which an explicit first
        transaction can replace. ``fixed``: no transaction can replace it. ``implicit_initial``: an initial state
        exists that no transaction wrote. ``initials``: the initial value by key, for keys that have their own; read
        when the history is built. ``per_second``: the clock's ticks per second.
        """
        if isinstance(initial, list | tuple) and initial:
            raise InputError("the initial value of a list is the empty list", hint="declare null, [] or nothing")
        self._per_second = per_second
        self._declared = declared
        self._fixed = fixed
        self._implicit = implicit_initial
        self._initials = initials
        self._initial = None if isinstance(initial, list | tuple) else initial
        self._sessions: dict[Hashable, int] = {}
        self._txn_session, self._txn_line, self._txn_index = array("i"), array("i"), array("q")
        self._txn_status, self._txn_level = bytearray(), bytearray()
        self._timed, self._begin, self._end = array("q"), array("q"), array("q")  # transactions with times
        self._labels: list[str | int | None] = []
        self._pending: list[Sequence[Any]] = []
        self._pending_ops = 0
        self._ops = 0
        self._lengths = array("q")
        self._kinds: list[Int8s] = []
        self._keys = AtomCoder("key", streams=2)
        self._values = AtomCoder("value", streams=3)
        self._list_ops: list[Int64s] = []
        self._list_lengths: list[Int64s] = []

    def session(self, name: Hashable) -> int:
        """Return the number of a session, which is created if it does not exist; it may stay empty."""
        return self._sessions.setdefault(name, len(self._sessions))

    def ids(self) -> set[str | int | None]:
        """Return the ids of the transactions so far."""
        return set(self._labels)

    def add(
        self,
        session: Hashable,
        ops: Sequence[Sequence[Any]],
        *,
        status: str = "committed",
        level: str | None = None,
        id: str | int | None = None,
        line: int = 0,
        index: int | None = None,
        begin: int | None = None,
        end: int | None = None,
    ) -> None:
        """Append a transaction to ``session``; an operation is ("r" | "w" | "append", key, value).

        ``line`` and ``index`` are its position in the file, for reports: give them for all transactions or for none.
        ``begin`` and ``end`` are times of one clock, for real-time order.
        """
        if status not in STATUS:
            raise InputError(f"unknown status {status!r:.40}", hint="use committed, aborted or unknown")
        name = None if level is None else parse_level(level)
        if level is not None and name is None:
            raise InputError(unknown_level(level))
        if begin is not None or end is not None:
            first, last = time_of(begin), time_of(end)
            self._timed.append(len(self._txn_session))
            self._begin.append(first)
            self._end.append(last)
        self._txn_session.append(self.session(session))
        self._txn_status.append(STATUS[status])
        self._txn_level.append(0 if name is None else CODES[name])
        self._txn_line.append(line)
        if index is not None:
            self._txn_index.append(index)
        self._labels.append(id)
        self._pending.append(ops)
        self._lengths.append(len(ops))
        self._pending_ops += len(ops)
        if self._pending_ops >= FLUSH_AT:
            self._flush()

    def add_columns(self, txns: TxnColumns) -> None:
        """Append many transactions at once."""
        self._flush()
        count, known = len(txns.status), len(self._txn_session)
        _extend(self._txn_session, self._session_numbers(txns.sessions))
        self._txn_status += txns.status.tobytes()
        self._txn_level += bytes(count) if txns.level is None else txns.level.tobytes()
        _extend(self._txn_line, np.zeros(count, np.int32) if txns.lines is None else txns.lines)
        if txns.indices is not None:
            _extend(self._txn_index, txns.indices)
        self._labels += [None] * count if txns.ids is None else txns.ids
        timed = np.flatnonzero((txns.begin > NO_TIME) | (txns.end > NO_TIME))
        _extend(self._timed, timed + known)
        _extend(self._begin, txns.begin[timed])
        _extend(self._end, txns.end[timed])
        _extend(self._lengths, np.diff(txns.ends))
        self._kinds.append(txns.kinds)
        self._keys.add_codes(txns.keys)
        self._values.add_codes(txns.values, _OPS)
        if len(txns.list_ops):
            self._list_ops.append(txns.list_ops + self._ops)
            self._list_lengths.append(np.diff(txns.list_ends))
            self._values.add_codes(txns.items, _ITEMS)
        self._ops += len(txns.kinds)

    def _session_numbers(self, names: Int64s) -> Int32s:
        dispatch.prepare(4 * len(names), kernels)
        ids, distinct = intern_keys(names)
        return np.array([self.session(name) for name in distinct.tolist()], np.int32)[ids]

    def build(self, *, format: str = "code", init_txn: InitTxn = "auto") -> History:
        """Return the history; the builder must not be used afterwards."""
        return assemble(self.columns(), format, init_txn)

    def columns(self) -> RawColumns:
        """Return the raw columns, as a reader does; the builder must not be used afterwards."""
        self._flush()
        self._keys.encode(list(self._initials or ()), _INITIAL_KEYS)
        (keys, initial_keys), key_atoms = self._keys.finish()
        if None in (key_atoms.table or ()) or (key_atoms.table is None and bool(np.any(keys == NULL))):
            raise InputError("a key must be an integer or a string, not null")
        self._values.encode([self._initial, *(self._initials or {}).values()], _INITIAL)
        (values, items, (initial, *initials)), value_atoms = self._values.finish()
        txns = len(self._lengths)
        return RawColumns(
            op_kind=joined(self._kinds, np.uint8),
            op_key=keys,
            op_value=values,
            op_txn=np.repeat(np.arange(txns, dtype=np.int32), np.array(self._lengths)),
            txn_session=np.array(self._txn_session, np.int32),
            txn_status=np.array(self._txn_status, np.uint8),
            sessions=len(self._sessions),
            keys=key_atoms,
            values=value_atoms,
            initial=int(initial) if self._implicit else None,
            initial_declared=self._declared,
            initial_fixed=self._fixed,
            key_initials=None if self._initials is None else dict(zip(initial_keys.tolist(), initials, strict=True)),
            txn_level=np.array(self._txn_level, np.uint8) if any(self._txn_level) else None,
            txn_line=np.array(self._txn_line, np.int32) if any(self._txn_line) else None,
            txn_index=np.array(self._txn_index, np.int64) if self._txn_index else None,
            times=self._times(txns),
            lists=self._lists(items),
            txn_label=_labels(self._labels),
            session_label=Labels(tuple(str(n) if not isinstance(n, int) else n for n in self._sessions)),
        )

    def _times(self, txns: int) -> Times | None:
        if not self._timed:
            return None
        begin, end = np.full(txns, NO_TIME, np.int64), np.full(txns, NO_TIME, np.int64)
        begin[self._timed], end[self._timed] = self._begin, self._end
        return Times(begin, end, self._per_second)

    def _lists(self, items: Int64s) -> RawLists | None:
        if not self._list_ops:
            return None
        lengths = np.concatenate(self._list_lengths)
        return RawLists(joined(self._list_ops, np.int64), np.concatenate(([0], np.cumsum(lengths))), items)

    def _flush(self) -> None:
        """Turn pending operations into columns. Only lists need a Python loop over operations."""
        ops = list(chain.from_iterable(self._pending))
        self._pending, self._pending_ops = [], 0
        if not ops:
            return
        try:
            spelled, keys, seen = zip(*ops, strict=True)
            kinds = bytearray(map(KINDS.__getitem__, spelled))
        except (KeyError, TypeError, ValueError):
            raise bad_operation(ops) from None
        types = set(map(type, seen))
        values = self._take_lists(kinds, list(seen)) if list in types or tuple in types else seen
        self._keys.encode(keys)
        self._values.encode(values, _OPS)
        self._kinds.append(np.frombuffer(kinds, np.uint8))
        self._ops += len(ops)

    def _take_lists(self, kinds: bytearray, values: list[Any]) -> list[Any]:
        """Move lists to their own columns; return ``values`` with the last element in place of each list."""
        listed = [i for i, value in enumerate(values) if type(value) is list or type(value) is tuple]
        lists = [values[i] for i in listed]
        for i, value in zip(listed, lists, strict=True):
            if kinds[i] != READ:
                raise InputError(f"cannot write a list at once: {value!r:.60}", hint='use "append"')
            kinds[i] = READ_LIST
            values[i] = value[-1] if value else self._initial
        self._list_ops.append(np.array(listed, np.int64) + self._ops)
        self._list_lengths.append(np.fromiter(map(len, lists), np.int64, len(lists)))
        self._values.encode(list(chain.from_iterable(lists)), _ITEMS)
        return values


def _extend(column: "array[int]", more: npt.NDArray[Any]) -> None:
    column.frombytes(np.ascontiguousarray(more, column.typecode).tobytes())


def time_of(given: int | None) -> int:
    """Return the given time, or NO_TIME for None. Raise InputError for anything but a 64-bit integer."""
    if given is None:
        return NO_TIME
    if type(given) is not int or not NO_TIME < given < -NO_TIME:
        raise InputError(f"not a time: {given!r:.60}", hint="use an integer of 64 bits, such as nanoseconds")
    return given


def bad_operation(ops: Iterable[Any]) -> InputError:
    """Return the error for the first of ``ops`` that is not an operation."""
    for op in ops:
        if not isinstance(op, list | tuple) or len(op) != 3 or op[0] not in ("r", "w", "append"):
            break
    return InputError(
        f"not an operation: {op!r:.80}", hint='write ["r", key, value], ["w", key, value] or ["append", key, value]'
    )


def _labels(names: list[str | int | None]) -> Labels:
    """Return the labels of transactions. Raise InputError for an id that occurs twice or is reserved."""
    given = [name for name in names if name is not None]
    seen: set[str] = set()
    for name in given:
        if str(name) in seen:
            raise InputError(f"two transactions have the id {name!r:.60}", hint="give each its own, or none")
        if name == INITIAL_ID:
            raise InputError(f"the id {name!r} is reserved for reports", hint="choose another")
        seen.add(str(name))
    return Labels(tuple(names) if given else None, _unused_prefix(map(with_letter, seen)))


def _unused_prefix(names: Iterable[str]) -> str:
    """Return T with as many quotes as needed so that no generated id equals a given one."""
    found = (_LIKE_OURS.fullmatch(name) for name in names)
    taken = {len(match[1]) for match in found if match}
    return "T" + "'" * next(quotes for quotes in count() if quotes not in taken)
