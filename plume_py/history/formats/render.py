"""What the writers share: the rendering of a history as bytes, and checks of what a format can express.

A written history consists of transactions, each with a head, its operations and a tail. A writer says how each piece is
spelled (``Spelling``), and a kernel concatenates the pieces.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from plume_py.base.errors import ConversionError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import list_elements
from plume_py.history.formats import render_kernels as kernels
from plume_py.history.init_txn import find_init_txn
from plume_py.history.model import (
    ABORTED,
    COMMITTED,
    NOBODY,
    READ_LIST,
    UNKNOWN,
    Bools,
    History,
    Int8s,
    Int32s,
    Int64s,
    Labels,
)
from plume_py.history.value_codes import Atom

BLOCK = 1 << 19  # operations rendered at a time

Blob = tuple[Int8s, Int64s]


@dataclass
class Rendered:
    """A written history: its bytes in chunks, and notes on losses that no verdict depends on."""

    chunks: Iterator[bytes]
    notes: list[str] = field(default_factory=list)


@dataclass
class Spelling:
    """How a format spells the pieces of a history."""

    opens: tuple[bytes, bytes, bytes, bytes]  # by operation kind: read, write, list read, append
    key: Callable[[Atom], bytes]
    middle: bytes
    value: Callable[[Atom], bytes]
    initial: bytes
    heads: Iterable[bytes]
    tails: Iterable[bytes]
    closes: Iterable[bytes] | bytes = b""
    comma: bytes = b""
    lists: tuple[bytes, bytes, bytes] = (b"[", b",", b"]")


def blob(pieces: Iterable[bytes]) -> Blob:
    """Return the concatenated pieces and the position of each."""
    listed = list(pieces)
    starts = np.zeros(len(listed) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)), out=starts[1:])
    return np.frombuffer(b"".join(listed) or b"\0", np.uint8), starts


class Rows(NamedTuple):
    """Rows to write: row i has the operations ``start[i] .. start[i + 1]``; ``values`` are numbers of value pieces."""

    start: Int64s
    kinds: Int8s
    keys: Int32s
    values: Int32s


def transactions(history: History) -> Rows:
    """Return one row per transaction, in session order."""
    return Rows(history.txn_start, history.op_kind, history.op_key, _value_pieces(history))


def render(
    history: History, spelling: Spelling, before: bytes = b"", after: bytes = b"", rows: Rows | None = None
) -> Iterator[bytes]:
    """Yield the bytes of ``history`` in blocks; ``spelling`` has a head and a tail for each of ``rows``."""
    dispatch.prepare(40 * history.operations, kernels)
    rows = transactions(history) if rows is None else rows
    closes = spelling.closes
    tables = (
        blob(spelling.opens),
        blob(spelling.key(history.keys.spell(code)) for code in history.key_code.tolist()),
        blob([spelling.middle]),
        blob(_spelled_values(history, spelling)),
        blob([closes] * (len(rows.start) - 1) if isinstance(closes, bytes) else closes),
        blob([spelling.comma]),
        blob(spelling.heads),
        blob(spelling.tails),
    )
    yield before
    for first, last in _blocks(rows.start):
        out = np.empty(kernels.rendered_size(first, last, *rows, tables), np.uint8)
        kernels.render(first, last, *rows, tables, out)
        yield out.tobytes()
    yield after


def _blocks(txn_start: Int64s) -> Iterator[tuple[int, int]]:
    transactions = len(txn_start) - 1
    first = 0
    while first < transactions:
        last = int(np.searchsorted(txn_start, txn_start[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), transactions)
        yield first, last
        first = last


def _spelled_values(history: History, spelling: Spelling) -> list[bytes]:
    """Return the value pieces: every version, then every list, then the piece of a read without a result."""
    is_initial = history.initial_versions
    spell = history.values.spell
    values = [
        spelling.initial if initial else spelling.value(spell(code))
        for code, initial in zip(history.version_value.tolist(), is_initial.tolist(), strict=True)
    ]
    if history.lists is not None:
        begin, comma, end = spelling.lists
        starts, items = history.lists.starts.tolist(), history.lists.items.tolist()
        for i in range(len(starts) - 1):
            listed = comma.join(spelling.value(history.value(v)) for v in items[starts[i] : starts[i + 1]])
            values.append(begin + listed + end)
    return [*values, spelling.initial]


def unread_piece(history: History) -> int:
    """Return the number of the value piece of a read without a result."""
    return len(history.version_value) + (0 if history.lists is None else len(history.lists.ops))


def _value_pieces(history: History) -> Int32s:
    """Return the number of the value piece of each operation: its version, or the list that it read."""
    if history.lists is None:
        return history.op_version
    pieces = history.op_version.copy()
    pieces[history.lists.ops] = len(history.version_value) + np.arange(len(history.lists.ops), dtype=np.int32)
    return pieces


def integer(atom: Atom, what: str, target: str) -> int:
    """Return ``atom`` if it is a non-negative 64-bit integer; else raise ConversionError."""
    if not isinstance(atom, int) or not 0 <= atom < 2**64:
        raise ConversionError(f"{target} has only non-negative 64-bit integers, and a {what} is {atom!r:.40}")
    return atom


def require(history: History, target: str, *, lists: bool, unknown: bool, empty: bool, levels: bool) -> None:
    """Raise ConversionError for what ``target`` cannot express. Each flag says whether it can."""
    if not lists and np.any(history.op_kind >= READ_LIST):
        raise ConversionError(f"{target} has no lists, and this history has appends or list reads")
    if not unknown and np.any(history.txn_status == UNKNOWN):
        raise ConversionError(f"{target} has no unknown outcome, and {_first(history, history.txn_status == UNKNOWN)}")
    if not levels and history.txn_level is not None and np.any(history.txn_level):
        raise ConversionError(f"{target} has no declared levels, and {_first(history, history.txn_level > 0)}")
    without_ops = (np.diff(history.txn_start) == 0) & (history.txn_status == COMMITTED)
    if not empty and np.any(without_ops):
        raise ConversionError(f"{target} has no empty transactions, and {_first(history, without_ops)}")
    if not empty and np.any(np.diff(history.txn_start[history.session_start]) == 0):
        raise ConversionError(f"{target} has no empty sessions, and this history has one")
    if not empty and not history.sessions:
        raise ConversionError(f"{target} has no empty histories")


def _first(history: History, which: Bools) -> str:
    t = int(np.flatnonzero(which)[0])
    return f"transaction {history.txn_label[t]} ({history.place(t)}) needs it"


def require_initial(
    history: History,
    target: str,
    initials: tuple[Atom, ...],
    lost_ops: Bools | None = None,
    *,
    keep_empty: bool = True,
    fixed: bool = False,
) -> None:
    """Raise ConversionError if the initial values of ``target`` would change the writer of a read.

    ``lost_ops`` are operations that the format loses. ``keep_empty``: it keeps transactions without operations.
    ``fixed``: no transaction sets up its initial state.
    """
    reads_initial = history.initial_versions
    for initial in initials:
        code = history.values.code_of(initial)
        if code is None or code == history.initial:
            continue
        same = history.version_value == code
        if np.any(same & list_elements(history)):
            raise ConversionError(f"in {target} {initial!r} is the initial value; here it is an element of a list")
        if np.any(same & (history.version_writer == NOBODY) & ~reads_initial):
            raise ConversionError(f"in {target} a read of {initial!r} sees the initial state; here it is thin air")
        clash = np.intersect1d(history.version_key[same], history.version_key[reads_initial])
        if clash.size:
            key = history.key(int(clash[0]))
            raise ConversionError(
                f"in {target} {initial!r} is the initial value, but here {initial!r} was written to key {key!r:.40} "
                "whose initial state was read too"
            )
    require_decision(history, find_init_txn(_as_written(history, lost_ops, keep_empty), "auto", False, fixed), target)


def require_decision(history: History, again: int, target: str) -> None:
    """Raise ConversionError if ``again``, the initial transaction of the written file, differs from the current one."""
    if history.init_txn == NOBODY and again != NOBODY:
        raise ConversionError(f"in {target} the first transaction would be taken for the initial state")
    if history.init_txn != NOBODY and again == NOBODY:
        raise ConversionError(f"in {target} the first transaction would not be taken for the initial state")


def _as_written(history: History, lost_ops: Bools | None, keep_empty: bool) -> History:
    """Return the part of a history that a format keeps, as far as ``find_init_txn`` reads it."""
    if lost_ops is None and keep_empty:
        return history
    owner = np.repeat(np.arange(history.transactions), np.diff(history.txn_start))
    ops = np.ones(history.operations, np.bool_) if lost_ops is None else ~lost_ops
    lengths = np.bincount(owner[ops], minlength=history.transactions)
    txns = np.ones(history.transactions, np.bool_) if keep_empty else lengths > 0
    sessions, txn_session = np.unique(history.txn_session[txns], return_inverse=True)
    per_session = np.bincount(txn_session, minlength=len(sessions))
    return replace(
        history,
        op_kind=history.op_kind[ops],
        op_key=history.op_key[ops],
        op_version=history.op_version[ops],
        txn_start=np.concatenate(([0], np.cumsum(lengths[txns]))),
        txn_session=txn_session.astype(np.int32),
        txn_status=history.txn_status[txns],
        session_start=np.concatenate(([0], np.cumsum(per_session))).astype(np.int32),
        key_code=history.key_code[np.unique(history.op_key[ops])],
    )


def lost_names(history: History, *, ids: bool, sessions: bool) -> list[str]:
    """Return notes on lost names, for a format without ids of transactions or names of sessions."""
    notes = []
    if not ids and _named(history.txn_label, history.txn_status != ABORTED):
        notes.append("the ids of transactions are not kept: this format counts them")
    if not sessions and _named(history.session_label, np.ones(history.sessions, np.bool_)):
        notes.append("the names of sessions are not kept: this format counts them")
    return notes


def lost_times(history: History) -> list[str]:
    """Return a note if the history has times, for a format without times."""
    return [] if history.times is None else ["the times of transactions are not kept: this format has none"]


def lost_nodes(history: History) -> list[str]:
    """Return a note if the history has nodes, which only native formats keep."""
    return [] if history.txn_node is None else ["the nodes of transactions are not kept: this format has none"]


def _named(labels: Labels, which: Bools) -> bool:
    """Return whether any of ``which`` has a name other than its number."""
    return labels.names is not None and any(labels[i] not in (i, str(i)) for i in np.flatnonzero(which).tolist())


def session_numbers(history: History) -> list[int]:
    """Return the names of the sessions if they are distinct non-negative 63-bit integers, else their numbers."""
    numbers = _own_numbers(history)
    return list(range(history.sessions)) if numbers is None else numbers


def are_numbered(history: History) -> bool:
    """Return whether ``session_numbers`` keeps the names of the sessions."""
    return _own_numbers(history) is not None


def _own_numbers(history: History) -> list[int] | None:
    labels = [history.session_label[s] for s in range(history.sessions)]
    numbers = [label for label in labels if isinstance(label, int) and 0 <= label < 2**63]
    return numbers if len(set(numbers)) == len(labels) else None
