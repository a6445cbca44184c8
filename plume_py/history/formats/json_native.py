"""Read native JSON: ``{"initial": 0, "sessions": [[{"ops": [["w", "x", 1]]}]]}``.

Large files are first parsed by an automaton (``bulk_parser``), which fills columns without objects in between. It
accepts what collectors write, if keys and values are 64-bit integers, null, and lists of them. Other files are decoded
one transaction at a time. ``jsonl_native`` uses the automaton for its lines.
"""

import re
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.json_names import given, most_names, reject_same_names
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder, TxnColumns
from plume_py.history.formats import automaton_kernels as automaton
from plume_py.history.formats.bulk_parser import (
    Automaton,
    BulkGrammar,
    Columns,
    Point,
    Size,
    constant,
    count,
    parse_bulk,
    pays_off,
)
from plume_py.history.formats.reading import decode, no_collector
from plume_py.history.model import ABORTED, APPEND, COMMITTED, READ, UNKNOWN, WRITE, Int64s
from plume_py.history.source import Buffer, Source
from plume_py.history.value_codes import NULL
from plume_py.levels import CODES

# Number of transactions whose fields are counted together.
COUNTED = 1 << 12

Key = int | str
Value = int | str | None | list[int | str | None]
Operation = tuple[Literal["r", "w", "append"], Key, Value]

HINT = 'see `isocheck formats`; an operation is ["r", key, value], ["w", key, value] or ["append", key, value]'


_TIMES = "take all times from one clock, in whole numbers such as nanoseconds"


def hint(path: str) -> str:
    """Return the hint for a problem at this JSON path."""
    return _TIMES if path.rpartition(".")[2] in ("start", "end", "ticks_per_second") else HINT


Ticks = Annotated[int, msgspec.Meta(gt=0)]


# Equal to a file's text but another object, which shows whether a field was given.
DEFAULT_STATUS = str(b"committed", "ascii")
ABSENT = msgspec.Raw(b"null")


class NativeTxn(msgspec.Struct, gc=False):
    """A transaction of the native formats; the fields from ``node`` on are read only to count field names."""

    ops: list[Operation]
    status: Literal["committed", "aborted", "unknown"] = DEFAULT_STATUS  # type: ignore[assignment]
    level: str | None = None
    id: int | str | None = None
    start: int | None = None
    end: int | None = None
    node: msgspec.Raw = ABSENT
    isolation: msgspec.Raw = ABSENT
    during: msgspec.Raw = ABSENT
    sql: msgspec.Raw = ABSENT


# Optional fields of a transaction and their defaults.
OPTIONAL: dict[str, object] = {
    **dict.fromkeys(("level", "id", "start", "end")),
    "status": DEFAULT_STATUS,
    **dict.fromkeys(("node", "isolation", "during", "sql"), ABSENT),
}


class NativeDocument(msgspec.Struct, gc=False):
    """The whole file; unknown fields are ignored."""

    sessions: list[list[NativeTxn]]
    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ticks_per_second: Ticks | None = None


class Outline(msgspec.Struct, gc=False):
    """The whole file with encoded transactions, so that they are never all objects at once and no step takes long."""

    sessions: list[list[msgspec.Raw]]
    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ticks_per_second: Ticks | None = None


def begin(initial: Value | msgspec.UnsetType, per_second: int | None) -> HistoryBuilder:
    """Return a builder for a file with this initial value, or with none stated: then it is null."""
    if isinstance(initial, msgspec.UnsetType):
        return HistoryBuilder(None, declared=False, per_second=per_second)
    return HistoryBuilder(initial, per_second=per_second)


_document_decoder = msgspec.json.Decoder(NativeDocument)
_outline_decoder = msgspec.json.Decoder(Outline)
_txn_decoder = msgspec.json.Decoder(NativeTxn)


def read(source: Source) -> RawColumns:
    """Return the raw columns of a native JSON file."""
    content = source.content()
    columns = _read_bulk(content) if is_large(len(content)) else None
    return _read_one_by_one(content) if columns is None else columns


def _read_bulk(content: Buffer) -> RawColumns | None:
    """Return the raw columns by the automaton, or None if it does not accept the file."""
    head = before_sessions(content)
    if head is None:
        return None
    try:
        outline = _outline_decoder.decode(head + b"]}")
    except msgspec.DecodeError:
        return None
    reject_same_names(head + b"]}", names=1)
    initial = code_of(outline.initial)
    found = None if initial is None else read_sessions(content, len(head), initial)
    if found is None:
        return None
    builder = begin(outline.initial, outline.ticks_per_second)
    columns, sessions = found
    for s in range(sessions):
        builder.session(s)
    builder.add_columns(columns)
    return builder.columns()


def _read_one_by_one(content: Buffer) -> RawColumns:
    with no_collector():
        outline = decode(_outline_decoder, content, hint=hint)
        builder = begin(outline.initial, outline.ticks_per_second)
        names = 1 + (outline.initial is not msgspec.UNSET) + (outline.ticks_per_second is not None)
        txns: list[NativeTxn] = []
        counts = most_names(content) > names + sum(map(len, outline.sessions))
        for s, session in enumerate(outline.sessions):
            builder.session(s)
            for i, text in enumerate(session):
                txn = _decoded(text, content)
                if counts:
                    txns.append(txn)
                if len(txns) == COUNTED:
                    names += COUNTED + given(txns, OPTIONAL)
                    txns.clear()
                try:
                    builder.add(s, txn.ops, status=txn.status, level=txn.level, id=txn.id, begin=txn.start, end=txn.end)
                except InputError as error:
                    error.where = error.where or f"sessions[{s}][{i}]"
                    raise
            session.clear()  # free the text once its columns exist
        if counts:
            reject_same_names(content, names + len(txns), (txns, OPTIONAL))
        return builder.columns()


def _decoded(text: msgspec.Raw, content: Buffer) -> NativeTxn:
    """Return a transaction; an error names its position in the whole file."""
    try:
        return _txn_decoder.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        decode(_document_decoder, content, hint=hint)
        raise


# --- large files

# Bytes that msgspec decodes in the time of one loop step of plain Python.
BYTES_PER_STEP = 4

_SPACE = b" \t\r"
_OPS_FIELD, _SESSION_FIELD, _STATUS_FIELD, _ID_FIELD, _START_FIELD, _END_FIELD = 1, 2, 4, 8, 16, 32
_LEVEL_FIELD, _ISOLATION_FIELD, _NODE_FIELD, _DURING_FIELD = 64, 128, 256, 512
_FIELDS = 9
_SHORTEST_OP, _SHORTEST_TXN = len('["r",1,1]'), len('{"ops":[]}')
_NOT_GIVEN = {automaton.ID: NULL, automaton.TIME: NULL, automaton.LINE: 0}

# The usual start of a document, up to its sessions.
_BEFORE_SESSIONS = re.compile(
    rb'[ \t\r\n]*\{[ \t\r\n]*(?:"(?:initial|ticks_per_second)"[ \t\r\n]*:[ \t\r\n]*(?:-?[0-9]{1,19}|null)'
    rb'[ \t\r\n]*,[ \t\r\n]*){0,2}"sessions"[ \t\r\n]*:[ \t\r\n]*\['
)

_ids = msgspec.json.Decoder(list[int | str | None])


def is_large(size: int) -> bool:
    """Return whether the automaton pays off for ``size`` more bytes."""
    return pays_off(size // BYTES_PER_STEP)


def code_of(initial: object) -> int | None:
    """Return the code of an initial value that is null or a 64-bit integer; None for another one.

    An unstated initial value is null.
    """
    if initial is None or initial is msgspec.UNSET:
        return NULL
    return initial if isinstance(initial, int) and NULL < initial < -NULL else None


def before_sessions(content: Buffer) -> bytes | None:
    """Return the start of a document up to the bracket of its sessions, or None if it has an unusual shape."""
    found = _BEFORE_SESSIONS.match(content)
    return None if found is None else found[0]


def read_sessions(content: Buffer, at: int, initial: int) -> tuple[TxnColumns, int] | None:
    """Return the transactions of a document whose sessions begin at ``at``, and the number of sessions; or None."""
    columns = parse_bulk(_document_grammar(), content, at, _FIELDS, _measure, _NOT_GIVEN | {automaton.INITIAL: initial})
    if columns is None:
        return None
    txns = _txns(columns, content)
    txns.sessions = columns.row(automaton.PLACE)
    return txns, int(columns.regs[automaton.SESSIONS])


def read_lines(content: bytes, line: int, initial: int) -> TxnColumns | None:
    """Return the transactions of whole lines, the first of which has the number ``line``; or None."""
    registers = _NOT_GIVEN | {automaton.INITIAL: initial, automaton.LINE: line}
    columns = parse_bulk(_lines_grammar(), content, 0, _FIELDS, _measure, registers)
    if columns is None:
        return None
    txns = _txns(columns, content)
    txns.lines = columns.row(automaton.PLACE).astype(np.int32)
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
        ends=np.concatenate((columns.row(automaton.FIRST_OP), [ops])),
        sessions=columns.row(automaton.SESSION),
        status=columns.row(automaton.STATUS).astype(np.uint8),
        level=columns.row(automaton.LEVEL).astype(np.uint8),
        begin=columns.row(automaton.ID),
        end=columns.row(automaton.TIME),
        list_ops=columns.list_ops[:lists],
        list_ends=columns.list_ends[: lists + 1],
        items=columns.items[:items],
        ids=_decoded_ids(columns.row(automaton.SPAN_FROM), columns.row(automaton.SPAN_TO), content) if txns else None,
    )


def _decoded_ids(begin: Int64s, end: Int64s, content: Buffer) -> list[str | int | None] | None:
    if not np.any(end):
        return None
    spans = zip(begin.tolist(), end.tolist(), strict=True)
    return _ids.decode(b"[" + b",".join([content[a:b] or b"null" for a, b in spans]) + b"]")


# --- grammars


@cache
def _document_grammar() -> BulkGrammar:
    """Return the grammar of the sessions of native JSON and the rest of the file."""
    grammar = Automaton(_SPACE)
    start, after_session, end = grammar.point(), grammar.point(automaton.COUNT, automaton.SESSIONS), grammar.point()
    grammar.word(start, b"]", end)
    session = grammar.word(start, b"[")
    grammar.word(session, b"]", after_session)
    txn = grammar.word(session, b"{", action=automaton.BEGIN, operand=automaton.SESSIONS)
    after_txn = _txn(grammar, txn, _OPS_FIELD)
    next_txn = grammar.word(after_txn, b",")
    grammar.word(next_txn, b"{", txn)
    grammar.word(after_txn, b"]", after_session)
    grammar.word(grammar.word(after_session, b","), b"[", session)
    grammar.word(after_session, b"]", end)
    after_all = grammar.word(end, b"}")
    return BulkGrammar(grammar.tables(), start[0], after_all, b"{", next_txn[0])


@cache
def _lines_grammar() -> BulkGrammar:
    """Return the grammar of native JSON Lines."""
    grammar = Automaton(_SPACE, newline=False)
    line = grammar.point(automaton.COUNT, automaton.LINE)
    grammar.word(line, b"\n", line)
    txn = grammar.word(line, b"{", action=automaton.BEGIN, operand=automaton.LINE)
    after_txn = _txn(grammar, txn, _OPS_FIELD | _SESSION_FIELD)
    grammar.word(after_txn, b"\n", line)
    return BulkGrammar(grammar.tables(), line[1], (*line, *after_txn), b"\n", line[1])


def _txn(grammar: Automaton, start: Point, needed: int) -> Point:
    """Add the fields of a transaction, some of them required, and its closing brace; return the point after it."""
    after_field = grammar.point()
    field = start + grammar.word(after_field, b",")

    def named(name: bytes, bit: int) -> Point:
        return grammar.word(grammar.word(field, b'"%b"' % name, action=automaton.MARK_FIELD, operand=bit), b":")

    _ops(grammar, named(b"ops", _OPS_FIELD), after_field)
    status = named(b"status", _STATUS_FIELD)
    for word, code in ((b'"committed"', COMMITTED), (b'"aborted"', ABORTED), (b'"unknown"', UNKNOWN)):
        after = grammar.word(status, word, action=automaton.SET, operand=constant(automaton.STATUS, code))
        grammar.join(after, after_field)
    numbers = [(b"start", _START_FIELD, automaton.ID), (b"end", _END_FIELD, automaton.TIME)]
    if needed & _SESSION_FIELD:
        numbers.append((b"session", _SESSION_FIELD, automaton.SESSION))
    for field_name, bit, register in numbers:
        grammar.join(grammar.number(named(field_name, bit), grammar.point(automaton.NUMBER, register)), after_field)
    id = named(b"id", _ID_FIELD)
    grammar.join(grammar.number(id, grammar.point(automaton.NUMBER_SPAN)), after_field)
    grammar.join(grammar.string(id, noted=True), after_field)
    level = named(b"level", _LEVEL_FIELD)
    for name, code in CODES.items():
        after = grammar.word(
            level, b'"%b"' % name.encode(), action=automaton.SET, operand=constant(automaton.LEVEL, code)
        )
        grammar.join(after, after_field)
    for remark, bit in ((b"isolation", _ISOLATION_FIELD), (b"node", _NODE_FIELD), (b"during", _DURING_FIELD)):
        grammar.join(grammar.string(named(remark, bit), noted=False), after_field)
    return grammar.word(after_field, b"}", action=automaton.ROW, operand=needed)


def _ops(grammar: Automaton, start: Point, end: Point) -> None:
    """Add the list of operations."""
    first, op = grammar.word(start, b"["), grammar.point()
    grammar.word(first, b"]", end)
    grammar.word(first, b"[", op)
    key = grammar.point()
    for word, kind in ((b'"r"', READ), (b'"w"', WRITE), (b'"append"', APPEND)):
        grammar.word(grammar.word(op, word, action=automaton.SET, operand=constant(automaton.KIND, kind)), b",", key)
    value = grammar.word(grammar.number(key, grammar.point(automaton.NUMBER, automaton.KEY)), b",")
    after_value = grammar.number(value, grammar.point(automaton.NUMBER, automaton.VALUE))
    grammar.join(grammar.word(value, b"null", action=automaton.NULL_VALUE), after_value)
    grammar.join(_list(grammar, grammar.word(value, b"[", action=automaton.LIST)), after_value)
    after_op = grammar.word(after_value, b"]", action=automaton.OP)
    grammar.word(grammar.word(after_op, b","), b"[", op)
    grammar.word(after_op, b"]", end)


def _list(grammar: Automaton, start: Point) -> Point:
    """Add the elements of a list and its closing bracket; return the point after it."""
    after_item, end = grammar.point(), grammar.point(automaton.LIST_END)
    item = start + grammar.word(after_item, b",")
    grammar.join(grammar.number(item, grammar.point(automaton.NUMBER_ITEM)), after_item)
    grammar.join(grammar.word(item, b"null", action=automaton.NULL_ITEM), after_item)
    grammar.word(start, b"]", end)
    grammar.word(after_item, b"]", end)
    return end
