"""Large files of the native formats, by an automaton: columns at once, without objects in between.

It takes what collectors write, as far as keys and values are integers of 64 bits, null, and lists of them. Where there
is anything else there are no columns, and the reader decodes the text.
"""

import re
from functools import cache
from typing import Any

import msgspec
import numpy as np

from plume_py.history.builder import TxnColumns
from plume_py.history.formats.bulk_parser import automaton_kernels as kernels
from plume_py.history.formats.bulk_parser.grammar import Automaton, BulkGrammar, Point, constant
from plume_py.history.formats.bulk_parser.parser import Columns, Size, count, is_worth_it, read
from plume_py.history.model import ABORTED, APPEND, COMMITTED, READ, UNKNOWN, WRITE, Int64s
from plume_py.history.source import Buffer
from plume_py.history.value_codes import NULL
from plume_py.levels import CODES

# What msgspec decodes while plain Python does a step of a loop.
BYTES_PER_STEP = 4

_SPACE = b" \t\r"
_SAW_OPS, _SAW_SESSION, _SAW_STATUS, _SAW_ID, _SAW_START, _SAW_END = 1, 2, 4, 8, 16, 32
_SAW_LEVEL, _SAW_ISOLATION, _SAW_NODE, _SAW_DURING = 64, 128, 256, 512
_FIELDS = 9
_SHORTEST_OP, _SHORTEST_TXN = len('["r",1,1]'), len('{"ops":[]}')
_NOT_GIVEN = {kernels.ID: NULL, kernels.TIME: NULL, kernels.LINE: 0}

# A document up to its sessions, if it begins in the usual way.
_BEFORE_SESSIONS = re.compile(
    rb'[ \t\r\n]*\{[ \t\r\n]*(?:"(?:initial|ticks_per_second)"[ \t\r\n]*:[ \t\r\n]*(?:-?[0-9]{1,19}|null)'
    rb'[ \t\r\n]*,[ \t\r\n]*){0,2}"sessions"[ \t\r\n]*:[ \t\r\n]*\['
)

_ids = msgspec.json.Decoder(list[int | str | None])


def is_large(size: int) -> bool:
    """Are so many bytes, with those before, worth the automaton?"""
    return is_worth_it(size // BYTES_PER_STEP)


def code_of(initial: object) -> int | None:
    """The code of an initial value, stated or not, that is null or an integer of 64 bits; None if it is none."""
    if initial is None or initial is msgspec.UNSET:
        return NULL
    return initial if isinstance(initial, int) and NULL < initial < -NULL else None


def before_sessions(content: Buffer) -> bytes | None:
    """The beginning of a document, up to the bracket of its sessions; None if there is anything unusual about it."""
    found = _BEFORE_SESSIONS.match(content)
    return None if found is None else found[0]


def read_sessions(content: Buffer, at: int, initial: int) -> tuple[TxnColumns, int] | None:
    """The transactions of a document whose sessions begin at ``at``, and how many sessions there are; or None."""
    columns = read(_document(), content, at, _FIELDS, _measure, _NOT_GIVEN | {kernels.INITIAL: initial})
    if columns is None:
        return None
    txns = _txns(columns, content)
    txns.sessions = columns.row(kernels.PLACE)
    return txns, int(columns.regs[kernels.SESSIONS])


def read_lines(content: bytes, line: int, initial: int) -> TxnColumns | None:
    """The transactions of whole lines, the first of which is ``line``; or None."""
    registers = _NOT_GIVEN | {kernels.INITIAL: initial, kernels.LINE: line}
    columns = read(_lines(), content, 0, _FIELDS, _measure, registers)
    if columns is None:
        return None
    txns = _txns(columns, content)
    txns.lines = columns.row(kernels.PLACE).astype(np.int32)
    return txns


def _measure(buf: Any, start: int, stop: int) -> Size:
    ops = min(count(buf, b"[", start, stop), (stop - start) // _SHORTEST_OP)
    txns = min(count(buf, b"{", start, stop), (stop - start) // _SHORTEST_TXN)
    return Size(ops, txns, ops + count(buf, b",", start, stop))


def _txns(columns: Columns, content: Buffer) -> TxnColumns:
    ops, lists, items, txns = columns.n[:4].tolist()
    return TxnColumns(
        kinds=columns.kinds[:ops],
        keys=columns.keys[:ops],
        values=columns.values[:ops],
        ends=np.concatenate((columns.row(kernels.FIRST_OP), [ops])),
        sessions=columns.row(kernels.SESSION),
        status=columns.row(kernels.STATUS).astype(np.uint8),
        level=columns.row(kernels.LEVEL).astype(np.uint8),
        begin=columns.row(kernels.ID),
        end=columns.row(kernels.TIME),
        list_ops=columns.list_ops[:lists],
        list_ends=columns.list_ends[: lists + 1],
        items=columns.items[:items],
        ids=_decoded_ids(columns.row(kernels.SPAN_FROM), columns.row(kernels.SPAN_TO), content) if txns else None,
    )


def _decoded_ids(begin: Int64s, end: Int64s, content: Buffer) -> list[str | int | None] | None:
    if not np.any(end):
        return None
    spans = zip(begin.tolist(), end.tolist(), strict=True)
    return _ids.decode(b"[" + b",".join([content[a:b] or b"null" for a, b in spans]) + b"]")


# --- what the files look like


@cache
def _document() -> BulkGrammar:
    """The sessions of native JSON and what follows them."""
    usual = Automaton(_SPACE)
    start, after_session, end = usual.point(), usual.point(kernels.COUNT, kernels.SESSIONS), usual.point()
    usual.word(start, b"]", end)
    session = usual.word(start, b"[")
    usual.word(session, b"]", after_session)
    txn = usual.word(session, b"{", action=kernels.BEGIN, operand=kernels.SESSIONS)
    after_txn = _txn(usual, txn, _SAW_OPS)
    next_txn = usual.word(after_txn, b",")
    usual.word(next_txn, b"{", txn)
    usual.word(after_txn, b"]", after_session)
    usual.word(usual.word(after_session, b","), b"[", session)
    usual.word(after_session, b"]", end)
    after_all = usual.word(end, b"}")
    return BulkGrammar(usual.tables(), start[0], after_all, b"{", next_txn[0])


@cache
def _lines() -> BulkGrammar:
    """Native JSON Lines."""
    usual = Automaton(_SPACE, newline=False)
    line = usual.point(kernels.COUNT, kernels.LINE)
    usual.word(line, b"\n", line)
    txn = usual.word(line, b"{", action=kernels.BEGIN, operand=kernels.LINE)
    after_txn = _txn(usual, txn, _SAW_OPS | _SAW_SESSION)
    usual.word(after_txn, b"\n", line)
    return BulkGrammar(usual.tables(), line[1], (*line, *after_txn), b"\n", line[1])


def _txn(usual: Automaton, start: Point, needed: int) -> Point:
    """The fields of a transaction and the brace behind them; some it must have."""
    after_field = usual.point()
    field = start + usual.word(after_field, b",")

    def named(name: bytes, bit: int) -> Point:
        return usual.word(usual.word(field, b'"%b"' % name, action=kernels.SAW, operand=bit), b":")

    _ops(usual, named(b"ops", _SAW_OPS), after_field)
    status = named(b"status", _SAW_STATUS)
    for word, code in ((b'"committed"', COMMITTED), (b'"aborted"', ABORTED), (b'"unknown"', UNKNOWN)):
        after = usual.word(status, word, action=kernels.SET, operand=constant(kernels.STATUS, code))
        usual.join(after, after_field)
    numbers = [(b"start", _SAW_START, kernels.ID), (b"end", _SAW_END, kernels.TIME)]
    if needed & _SAW_SESSION:
        numbers.append((b"session", _SAW_SESSION, kernels.SESSION))
    for field_name, bit, register in numbers:
        usual.join(usual.number(named(field_name, bit), usual.point(kernels.NUMBER, register)), after_field)
    id = named(b"id", _SAW_ID)
    usual.join(usual.number(id, usual.point(kernels.NUMBER_SPAN)), after_field)
    usual.join(usual.string(id, noted=True), after_field)
    level = named(b"level", _SAW_LEVEL)
    for name, code in CODES.items():
        after = usual.word(level, b'"%b"' % name.encode(), action=kernels.SET, operand=constant(kernels.LEVEL, code))
        usual.join(after, after_field)
    for remark, bit in ((b"isolation", _SAW_ISOLATION), (b"node", _SAW_NODE), (b"during", _SAW_DURING)):
        usual.join(usual.string(named(remark, bit), noted=False), after_field)
    return usual.word(after_field, b"}", action=kernels.ROW, operand=needed)


def _ops(usual: Automaton, start: Point, end: Point) -> None:
    """The list of operations."""
    first, op = usual.word(start, b"["), usual.point()
    usual.word(first, b"]", end)
    usual.word(first, b"[", op)
    key = usual.point()
    for word, kind in ((b'"r"', READ), (b'"w"', WRITE), (b'"append"', APPEND)):
        usual.word(usual.word(op, word, action=kernels.SET, operand=constant(kernels.KIND, kind)), b",", key)
    value = usual.word(usual.number(key, usual.point(kernels.NUMBER, kernels.KEY)), b",")
    after_value = usual.number(value, usual.point(kernels.NUMBER, kernels.VALUE))
    usual.join(usual.word(value, b"null", action=kernels.NULL_VALUE), after_value)
    usual.join(_list(usual, usual.word(value, b"[", action=kernels.LIST)), after_value)
    after_op = usual.word(after_value, b"]", action=kernels.OP)
    usual.word(usual.word(after_op, b","), b"[", op)
    usual.word(after_op, b"]", end)


def _list(usual: Automaton, start: Point) -> Point:
    """The elements of a list and the bracket behind them."""
    after_item, end = usual.point(), usual.point(kernels.LIST_END)
    item = start + usual.word(after_item, b",")
    usual.join(usual.number(item, usual.point(kernels.NUMBER_ITEM)), after_item)
    usual.join(usual.word(item, b"null", action=kernels.NULL_ITEM), after_item)
    usual.word(start, b"]", end)
    usual.word(after_item, b"]", end)
    return end
