"""Write Jepsen EDN, one operation per line.

Readers of EDN take the order of its lines as the order of time. So if times are known, the file has invocations and
completions of all sessions, merged by time. Without times it has only completions, which imply no real-time order.
"""

from typing import NamedTuple

import numpy as np

from plume_py.base.errors import ConversionError
from plume_py.history.formats.edn_atoms import written
from plume_py.history.formats.jepsen import PER_SECOND
from plume_py.history.formats.render import (
    Rendered,
    Rows,
    Spelling,
    are_numbered,
    lost_names,
    lost_nodes,
    render,
    require,
    require_initial,
    session_numbers,
    transactions,
    unread_piece,
)
from plume_py.history.model import COMMITTED, READ, Bools, History, Int64s
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import Atom

TARGET = "Jepsen EDN"
_TYPES = (b":ok", b":fail", b":info")


def write(history: History) -> Rendered:
    """Return the history as Jepsen EDN: list-append, rw-register or both."""
    require(history, TARGET, lists=True, unknown=True, empty=True, levels=False)
    if np.any(np.diff(history.session_start) == 0):
        raise ConversionError(f"{TARGET} has no empty sessions, and this history has one")
    if not history.transactions:
        raise ConversionError(f"{TARGET} has no empty histories")
    lost = _lost(history)
    require_initial(history, TARGET, (None,), lost, fixed=True)
    events, notes = in_time(history)
    sessions, owners, status = session_numbers(history), history.txn_session.tolist(), history.txn_status.tolist()
    spelling = Spelling(
        opens=(b"[:r ", b"[:w ", b"[:r ", b"[:append "),
        key=spell,
        middle=b" ",
        value=spell,
        initial=b"nil",
        heads=[
            b"{:index %d, :type %b, :process %d, :f :txn, :value ["
            % (index, b":invoke" if event.invokes else _TYPES[status[event.txn]], sessions[owners[event.txn]])
            for index, event in enumerate(events)
        ],
        tails=[b"]}\n" if event.time is None else b"], :time %d}\n" % event.time for event in events],
        closes=b"]",
        comma=b" ",
        lists=(b"[", b" ", b"]"),
    )
    if np.any(lost):
        notes.append("reads of null by transactions that did not commit mean nothing in this format")
    notes += lost_names(history, ids=False, sessions=are_numbered(history)) + lost_nodes(history)
    return Rendered(render(history, spelling, rows=rows(history, events)), notes)


def spell(atom: Atom) -> bytes:
    """Return the EDN that is read as ``atom``: nil, an integer, a keyword, a string and so on."""
    if atom is None:
        return b"nil"
    if isinstance(atom, int):
        return b"%d" % atom if -(2**63) <= atom < 2**63 else b"%dN" % atom
    return written(atom).encode()


def _lost(history: History) -> Bools:
    """Return which operations are lost: reads of nil by uncommitted transactions, which look like unknown results."""
    nil = history.initial_versions | (history.version_value == history.values.code_of(None))
    failed = np.repeat(history.txn_status != COMMITTED, np.diff(history.txn_start))
    lost: Bools = failed & (history.op_kind == READ) & nil[history.op_version]
    return lost


# --- lines in the order of time

# The limit of times, which have 63 bits.
_END = 2**63


class Line(NamedTuple):
    """A line of the file: transaction ``txn`` begins (``invokes``) or completes."""

    txn: int
    invokes: bool = False
    time: int | None = None


def in_time(history: History) -> tuple[list[Line], list[str]]:
    """Return the lines of a history, and notes on lost time information."""
    if history.times is None:
        return _completions(history), []
    known = np.concatenate((history.times.begin, history.times.end))
    known = known[known > NO_TIME]
    if np.all(known == known[0]):
        return _completions(history), ["times are not kept: this format does not trust a clock that stands still"]
    zero, factor, notes = _nanoseconds(history.times, known)
    return _merged(history, history.times, zero, factor), notes


def _completions(history: History) -> list[Line]:
    return [Line(t) for t in range(history.transactions)]


def _nanoseconds(times: Times, known: Int64s) -> tuple[int, int, list[str]]:
    """Return the time that is written as 0, the nanoseconds per tick, and notes on lost information."""
    first, last = int(np.min(known)), int(np.max(known))
    zero, notes = min(first, 0), []
    if zero:
        notes.append("times are counted from the first one: this format has none before 0")
    factor = PER_SECOND // times.per_second if times.per_second else 1
    if factor * (times.per_second or 0) != PER_SECOND or (last - zero) * factor >= _END:
        factor = 1
        notes.append("times are written as they are, and this format takes them for nanoseconds")
    if last - zero >= _END:
        raise ConversionError("Jepsen EDN has times of 63 bits, and those of this history are further apart")
    return zero, factor, notes


def _merged(history: History, times: Times, zero: int, factor: int) -> list[Line]:
    """Return all lines by time.

    At equal times the lines of a session keep their order, and otherwise begins come first: a transaction that ends
    when another begins does not precede it.
    """
    lines: list[tuple[tuple[int, int, bool], Line]] = []
    columns = zip(history.txn_session.tolist(), times.begin.tolist(), times.end.tolist(), strict=True)
    session, now, rank = -1, NO_TIME, 0
    for t, (s, begin, end) in enumerate(columns):
        if s != session:
            session, now, rank = s, NO_TIME, 0
        for time, invokes in ((begin, True), (end, False)):
            if invokes and time == NO_TIME:
                continue
            now, rank = (time, 0) if time > now else (now, rank + 1)
            written_time = None if time == NO_TIME else (time - zero) * factor
            lines.append(((now, rank, not invokes), Line(t, invokes, written_time)))
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


def rows(history: History, lines: list[Line]) -> Rows:
    """Return the operations of each line; the reads of an invocation have no result."""
    done = transactions(history)
    txn = np.array([line.txn for line in lines], np.int64)
    lengths = np.diff(done.start)[txn]
    start = np.concatenate(([0], np.cumsum(lengths)))
    ops = np.arange(start[-1]) + np.repeat(done.start[txn] - start[:-1], lengths)
    kinds, values = done.kinds[ops], done.values[ops]
    values[np.repeat([line.invokes for line in lines], lengths) & (kinds & 1 == 0)] = unread_piece(history)
    return Rows(start, kinds, done.keys[ops], values)
