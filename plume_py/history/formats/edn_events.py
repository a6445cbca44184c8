"""The lines of a Jepsen history: transactions as they begin and complete.

Whoever reads such a file takes the order of its lines for the order of time. So where times are known the lines of all
sessions are merged by them; where they are not, there are only completions, which say nothing about that.
"""

from typing import NamedTuple

import numpy as np

from plume_py.base.errors import ConversionError
from plume_py.history.formats.jepsen import PER_SECOND
from plume_py.history.formats.render import Rows, transactions, unread_piece
from plume_py.history.model import History, Int64s
from plume_py.history.times import NO_TIME, Times

# Times have 63 bits.
_END = 2**63


class Line(NamedTuple):
    """Transaction ``txn`` begins, or else completes."""

    txn: int
    invokes: bool = False
    time: int | None = None


def in_time(history: History) -> tuple[list[Line], list[str]]:
    """The lines of a history, and notes on what its times lose."""
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
    """The time that is written as 0, the nanoseconds of a tick, and notes on what that loses."""
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
    """All lines by time. Of those at one time, a session's keep their order, and else beginnings come first: who ends
    at the moment at which another one begins does not come before it.
    """
    lines: list[tuple[tuple[int, int, bool], Line]] = []
    columns = zip(history.txn_session.tolist(), times.begin.tolist(), times.end.tolist(), strict=True)
    session, now, later = -1, NO_TIME, 0
    for t, (s, begin, end) in enumerate(columns):
        if s != session:
            session, now, later = s, NO_TIME, 0
        for time, invokes in ((begin, True), (end, False)):
            if invokes and time == NO_TIME:
                continue
            now, later = (time, 0) if time > now else (now, later + 1)
            told = None if time == NO_TIME else (time - zero) * factor
            lines.append(((now, later, not invokes), Line(t, invokes, told)))
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


def rows(history: History, lines: list[Line]) -> Rows:
    """What stands in the lines: what was done, or is about to be, and then reads have not seen anything yet."""
    done = transactions(history)
    txn = np.array([line.txn for line in lines], np.int64)
    lengths = np.diff(done.start)[txn]
    start = np.concatenate(([0], np.cumsum(lengths)))
    ops = np.arange(start[-1]) + np.repeat(done.start[txn] - start[:-1], lengths)
    kinds, values = done.kinds[ops], done.values[ops]
    values[np.repeat([line.invokes for line in lines], lengths) & (kinds & 1 == 0)] = unread_piece(history)
    return Rows(start, kinds, done.keys[ops], values)
