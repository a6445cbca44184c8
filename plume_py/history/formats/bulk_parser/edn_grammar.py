"""Large EDN histories of transactions, by an automaton: columns at once, without JSON and objects in between.

It takes what Jepsen writes about clients, as far as keys and values are integers, nil, and lists of integers. Where
there is anything else there are no columns, and the reader goes form by form.
"""

from functools import cache
from typing import Any

import numpy as np

from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder, TxnColumns
from plume_py.history.formats.bulk_parser import automaton_kernels as kernels
from plume_py.history.formats.bulk_parser.grammar import Automaton, BulkGrammar, Point, constant
from plume_py.history.formats.bulk_parser.parser import Columns, Size, count, is_worth_it, read
from plume_py.history.formats.jepsen import by_clock
from plume_py.history.model import ABORTED, APPEND, COMMITTED, READ, UNKNOWN, WRITE, Bools, Int64s
from plume_py.history.source import Buffer
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import NULL

# Plain Python's loop steps per byte of EDN, form by form.
STEPS = 2

_SPACE = b" \t\r\f\v,"
_BRACKETS = b"[]{}"
_SAW_TYPE, _SAW_PROCESS, _SAW_F, _SAW_VALUE, _SAW_INDEX, _SAW_TIME = 1, 2, 4, 8, 16, 32
_NEEDED = _SAW_TYPE | _SAW_PROCESS | _SAW_VALUE

# Fields of an operation's row: its first micro-operation, line, process, index, type and time.
_FIELDS = 6
_SHORTEST_OP, _SHORTEST_EVENT = len("[:r 1 1]"), len("{:type :ok :process 1 :value[]}")
_INVOKE = 3

# Brackets around the whole history.
_NO_ENCLOSURE, _ENCLOSURE = 0, 2

_NOT_GIVEN = {kernels.ID: -1, kernels.TIME: NO_TIME, kernels.INITIAL: NULL, kernels.LINE: 1}


def is_large(size: int) -> bool:
    """Are so many bytes worth the automaton?"""
    return is_worth_it(STEPS * size)


def read_events(content: Buffer) -> RawColumns | None:
    """The raw columns; None if there is anything unusual."""
    usual, closed = _history()
    columns = read(usual, content, 0, _FIELDS, _measure, _NOT_GIVEN)
    if columns is None or not columns.n[kernels.ROWS]:
        return None
    brackets_around = _ENCLOSURE if columns.n[kernels.STATE] in closed else _NO_ENCLOSURE
    return _raw(columns) if columns.regs[kernels.ENCLOSED] == brackets_around else None


def _measure(buf: Any, start: int, stop: int) -> Size:
    ops = min(count(buf, b"[", start, stop), (stop - start) // _SHORTEST_OP)
    events = min(count(buf, b"{", start, stop), (stop - start) // _SHORTEST_EVENT)
    return Size(ops, events, ops + count(buf, b" ", start, stop) + count(buf, b",", start, stop))


def _raw(columns: Columns) -> RawColumns:
    kind, index, time = (columns.row(register) for register in (kernels.STATUS, kernels.ID, kernels.TIME))
    position = np.arange(len(kind))
    index = np.where(index < 0, position, index)  # as Jepsen itself numbers them
    events, status, begin, end = _pair(kind, columns.row(kernels.SESSION))
    builder = HistoryBuilder(None, fixed=True)
    ops, ends = _chosen_ops(columns, events, status)
    list_ops, list_ends, items = _chosen_lists(columns, ops)
    builder.add_columns(
        TxnColumns(
            kinds=columns.kinds[ops],
            keys=columns.keys[ops],
            values=columns.values[ops],
            ends=ends,
            sessions=columns.row(kernels.SESSION)[events],
            status=status.astype(np.uint8),
            begin=begin,
            end=end,
            list_ops=list_ops,
            list_ends=list_ends,
            items=items,
            lines=columns.row(kernels.PLACE)[events].astype(np.int32),
            indices=index[events],
        )
    )
    raw = builder.columns()
    raw.times = None if raw.times is None else by_clock(raw.times, np.where(time < 0, NO_TIME, time), index)
    return raw


def _pair(kind: Int64s, process: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Transactions: the event that says what each did, its status, and where it began and ended.

    A completion ends the invocation before it, if that is the last that its process did. A second invocation, or the
    end of the history, gives up the one before.
    """
    by_process = np.argsort(process, kind="stable")
    same = process[by_process][1:] == process[by_process][:-1]
    before = np.full(len(kind), -1, np.int64)
    before[by_process[1:][same]] = by_process[:-1][same]
    before = np.where((before >= 0) & (kind[before] == _INVOKE), before, -1)
    invokes = kind == _INVOKE
    taken = np.zeros(len(kind), np.bool_)
    taken[before[before >= 0]] = True
    told = np.flatnonzero(~invokes | (before >= 0))  # these complete, or give up the one before
    left = np.flatnonzero(invokes & ~taken)
    events = np.concatenate((np.where(invokes[told], before[told], told), left))
    given_up = np.concatenate((invokes[told], np.ones(len(left), np.bool_)))
    begin = np.concatenate((before[told], left))
    status = np.where(given_up, UNKNOWN, kind[events])
    return events, status, np.where(begin < 0, NO_TIME, begin), np.where(given_up, NO_TIME, events)


def _chosen_ops(columns: Columns, events: Int64s, status: Int64s) -> tuple[slice | Int64s, Int64s]:
    """The micro-operations of the transactions, and where those of each end.

    Who did not commit does not say what a read of nil saw.
    """
    total = int(columns.n[kernels.OPS])
    starts = np.append(columns.row(kernels.FIRST_OP), total)
    if np.array_equal(events, np.arange(len(starts) - 1)) and not np.any(status):
        return slice(0, total), starts
    lengths = np.diff(starts)[events]
    ends = np.concatenate(([0], np.cumsum(lengths)))
    ops = np.arange(ends[-1]) + np.repeat(starts[events] - ends[:-1], lengths)
    known = _known(columns, ops) | np.repeat(status == COMMITTED, lengths)
    return ops[known], np.concatenate(([0], np.cumsum(known)))[ends]


def _known(columns: Columns, ops: Int64s) -> Bools:
    known: Bools = (columns.kinds[ops] != READ) | (columns.values[ops] != NULL)
    return known


def _chosen_lists(columns: Columns, ops: slice | Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The lists that belong to the chosen micro-operations."""
    lists, items = columns.n[kernels.LISTS], columns.n[kernels.ITEMS]
    owners, ends = columns.list_ops[:lists], columns.list_ends[: lists + 1]
    if isinstance(ops, slice) or not lists:
        return owners, ends, columns.items[:items]
    place = np.full(columns.n[kernels.OPS], -1, np.int64)
    place[ops] = np.arange(len(ops))
    chosen = np.flatnonzero(place[owners] >= 0)
    chosen = chosen[np.argsort(place[owners[chosen]])]
    lengths = np.diff(ends)[chosen]
    moved = np.concatenate(([0], np.cumsum(lengths)))
    which = np.arange(moved[-1]) + np.repeat(ends[chosen] - moved[:-1], lengths)
    return place[owners[chosen]], moved, columns.items[which]


# --- what the files look like


@cache
def _history() -> tuple[BulkGrammar, Point]:
    """Maps, bare or inside one vector; and where it ends if it is a vector."""
    usual = Automaton(_SPACE, count_lines=True, brackets=_BRACKETS)
    start, between, end = usual.point(), usual.point(), usual.point(kernels.COUNT, kernels.ENCLOSED)
    inside = usual.word(start, b"[", action=kernels.COUNT, operand=kernels.ENCLOSED)
    field = usual.point(kernels.BEGIN, kernels.LINE)
    for point in (start, inside, between):
        usual.word(point, b"{", field)
    # in one word, as an operation stands on the line of its tag
    usual.word(start + inside + between, b"#jepsen.history.Op{", field)
    usual.word(inside, b"]", end)
    after_map = _map(usual, field)
    usual.join(after_map, between)
    usual.word(between, b"]", end)
    return BulkGrammar(usual.tables(), start[0], (*between, *after_map, *end), b"\n", between[1]), end


def _map(usual: Automaton, start: Point) -> Point:
    """The entries of an operation and the brace behind them."""
    field = usual.point()

    def named(name: bytes, bit: int) -> Point:
        return usual.word(start + field, name, action=kernels.SAW, operand=bit)

    for name, bit, register in (
        (b":index", _SAW_INDEX, kernels.ID),
        (b":process", _SAW_PROCESS, kernels.SESSION),
        (b":time", _SAW_TIME, kernels.TIME),
    ):
        usual.join(usual.number(named(name, bit), usual.point(kernels.NUMBER, register)), field)
    kind = named(b":type", _SAW_TYPE)
    for word, code in ((b":ok", COMMITTED), (b":fail", ABORTED), (b":info", UNKNOWN), (b":invoke", _INVOKE)):
        usual.join(usual.word(kind, word, action=kernels.SET, operand=constant(kernels.STATUS, code)), field)
    usual.join(usual.word(named(b":f", _SAW_F), b":txn"), field)
    _ops(usual, usual.word(named(b":value", _SAW_VALUE), b"["), field)
    return usual.word(field, b"}", action=kernels.ROW, operand=_NEEDED)


def _ops(usual: Automaton, start: Point, end: Point) -> None:
    """The micro-operations."""
    op = usual.point()
    after_op = usual.point(kernels.OP)
    usual.word(start, b"[", op)
    usual.word(after_op, b"[", op)
    for word, kind in ((b":r", READ), (b":w", WRITE), (b":append", APPEND)):
        key = usual.word(op, word, action=kernels.SET, operand=constant(kernels.KIND, kind))
        value = usual.number(key, usual.point(kernels.NUMBER, kernels.KEY))
        after_value = usual.number(value, usual.point(kernels.NUMBER, kernels.VALUE))
        usual.join(usual.word(value, b"nil", action=kernels.NULL_VALUE), after_value)
        if kind == READ:
            usual.join(_list(usual, usual.word(value, b"[", action=kernels.LIST)), after_value)
        usual.word(after_value, b"]", after_op)
    after_ops = usual.word(start, b"]")
    usual.word(after_op, b"]", after_ops)
    usual.join(after_ops, end)


def _list(usual: Automaton, start: Point) -> Point:
    """The elements of a list and the bracket behind them."""
    item, end = usual.point(kernels.NUMBER_ITEM), usual.point(kernels.LIST_END)
    usual.number(start, item)
    usual.number(item, item)
    usual.word(start, b"]", end)
    usual.word(item, b"]", end)
    return end
