"""Read EDN, as Jepsen and Elle write it: one map per operation, bare or inside one vector.

A kernel turns EDN into lines of JSON, block by block; keywords keep their colon. ``jepsen`` turns the operations into
transactions.

Large files are first parsed by an automaton (``bulk_parser``), without JSON and objects in between. It accepts what
Jepsen writes about clients, if keys and values are integers, nil, and lists of integers.
"""

from enum import StrEnum
from functools import cache
from typing import Any

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder, TxnColumns
from plume_py.history.formats import automaton_kernels as automaton
from plume_py.history.formats import edn_kernels as kernels
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
from plume_py.history.formats.edn_atoms import MARKED
from plume_py.history.formats.jepsen import ABSENT, Dialect, Key, Pairing, Value, by_clock
from plume_py.history.formats.reading import no_collector
from plume_py.history.model import ABORTED, APPEND, COMMITTED, READ, UNKNOWN, WRITE, Int64s
from plume_py.history.source import Buffer, Source
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import NULL

# Bytes per block: large enough that the cost per block is small, small enough for the memory of its objects.
BLOCK = 1 << 22

_CLOSE = "close every bracket that is opened"
PROBLEMS = {
    kernels.UNCLOSED: ("a bracket that is never closed", "the file was cut off, or a closing bracket is missing"),
    kernels.UNCLOSED_STRING: ("a string that never ends", "the file was cut off, or a quote is missing"),
    kernels.STRAY_CLOSE: ("a closing bracket without an opening one", _CLOSE),
    kernels.MISMATCHED: ("a closing bracket of the wrong kind", _CLOSE),
    kernels.ODD_MAP: ("a map with a key but no value", "give every key a value"),
    kernels.DANGLING: ("a tag or #_ with nothing after it", "it needs a value to apply to"),
    kernels.TOO_DEEP: ("nested too deeply", f"at most {kernels.MAX_DEPTH} levels are read"),
    kernels.AFTER_END: ("something follows the vector of operations", "put all operations inside the vector"),
    kernels.COLLECTION_KEY: ("a collection as the key of a map", "use keywords, strings, symbols or numbers as keys"),
    kernels.BAD_BYTE: ("a character that EDN does not know", "is this EDN? `isocheck formats` lists what can be read"),
    kernels.BAD_NUMBER: ("a malformed number", "write it like 12, -3, 1.5, 2e9, 7N, 1/2, 0x1f or 16r1f"),
    kernels.BAD_KEYWORD: ("a malformed keyword", "a keyword is one colon and a name"),
    kernels.BAD_ESCAPE: ("an unknown escape in a string", r"EDN has \t \r \n \b \f \\ \" and \uXXXX"),
    kernels.BAD_CHARACTER: ("an unknown character name", r"a character is written \a, \newline or \u0041"),
    kernels.SAME_KEY: ("a key that its map has already", "give every key of a map once"),
    kernels.TOO_MANY_KEYS: (f"a map with more than {kernels.MAX_KEYS} keys", "is this an operation?"),
    kernels.BAD_DISPATCH: ("an unknown use of #", "EDN has sets #{...}, tags #name and #_"),
}


class EdnKind(StrEnum):
    """A kind of micro-operation: decoded from its keyword, equal to the name that ``HistoryBuilder`` uses."""

    READ = ":r"
    WRITE = ":w"
    APPEND = ":append"

    def __new__(cls, keyword: str) -> "EdnKind":
        """Create a member whose string is the name and whose value is the keyword."""
        kind = str.__new__(cls, keyword[1:])
        kind._value_ = keyword
        return kind

    __hash__ = str.__hash__


class EdnOperation(msgspec.Struct, gc=False, rename=lambda name: f":{name}"):
    """An operation; its other entries are skipped."""

    type: str = ""
    process: Any = None
    f: Any = None
    value: msgspec.Raw = ABSENT
    index: Any = None
    time: Any = None


DIALECT = Dialect(
    msgspec.json.Decoder(EdnOperation),
    msgspec.json.Decoder(list[tuple[EdnKind, Key, Value]] | None),
    ":",
    "{:type :ok, :process 0, :f :txn, :value [[:w :x 1] [:r :y nil]]}",
    MARKED.search,
)


def read(source: Source) -> RawColumns:
    """Return the raw columns of an EDN history."""
    content = source.content()
    columns = read_events(content) if is_large(len(content)) else None
    return read_blocks(BlockReader(content)) if columns is None else columns


def read_blocks(reader: "BlockReader", *, one_per_line: bool = False) -> RawColumns:
    """Return the raw columns of a reader's operations. With ``one_per_line``, reject two operations on a line."""
    pairing = Pairing(DIALECT)
    before = 0
    with no_collector():
        while not reader.finished:
            text, lines = reader.next_block()
            if one_per_line and len({before, *lines}) <= len(lines):
                raise InputError("two operations on a line", where=f"lines {lines[0]} to {lines[-1]}")
            before = lines[-1] if lines else before
            pairing.add_lines(text, lines)
        return pairing.columns(enclosed=reader.mode == kernels.CLOSED)


class BlockReader:
    """Reads the top-level forms of ``content`` as lines of JSON, some megabytes at a time."""

    def __init__(self, content: Buffer, block: int = BLOCK) -> None:
        dispatch.prepare(STEPS * len(content), kernels)
        self._content = content
        self._buffer = dispatch.byte_buffer(content or b" ", kernels)
        self._classes = dispatch.byte_buffer(CLASSES, kernels)
        self._at = 3 if content[:3] == b"\xef\xbb\xbf" else 0
        self._line = 1
        self.mode = kernels.NOTHING_YET
        self.finished = not len(content)
        self._resize(min(block, len(content)))

    def next_block(self) -> tuple[bytes, list[int]]:
        """Return lines of JSON and the source line of each; then ``finished`` says whether these were the last."""
        while True:
            start, stop = self._at, min(self._at + self._block, len(self._content))
            last = stop == len(self._content)
            problem, where, size, forms, self._at, self._line, self.mode = map(
                int,
                kernels.transduce(
                    self._buffer, start, stop, last, self._classes, self._out, self._lines, self._line, self.mode
                ),
            )
            if problem not in (kernels.FINE, kernels.CUT_OFF):
                raise self._error(problem, where)
            self.finished = problem == kernels.FINE
            if forms or self.finished:
                return bytes(memoryview(self._out)[:size]), self._lines[:forms].tolist()
            if self._at == start:  # a form is longer than a block
                self._resize(2 * self._block)

    def _resize(self, block: int) -> None:
        self._block = block
        size = kernels.GROWTH * block + kernels.MARGIN
        # Plain Python fills a bytearray faster; compiled code requires an array.
        self._out: Any = bytearray(size) if isinstance(self._buffer, bytes) else np.empty(size, np.uint8)
        self._lines = np.empty(block + 1, np.int32)

    def _error(self, problem: int, where: int) -> InputError:
        line, newline, at = self._line, -1, self._at
        while (found := self._content.find(b"\n", at, where)) >= 0:
            line, newline, at = line + 1, found, found + 1
        if newline < 0:
            newline = self._content.rfind(b"\n", 0, where)
        column = len(self._content[newline + 1 : where].decode("utf-8", "replace")) + 1
        what, hint = PROBLEMS[problem]
        return InputError(what, where=f"line {line}, column {column}", hint=hint)


def _classify() -> bytes:
    """Return the class of each byte, for the kernel."""
    classes = bytearray([kernels.UNKNOWN] * 128 + [kernels.SYMBOL] * 128)
    for members, kind in (
        (b" \t\r\f\v,", kernels.SPACE),
        (b"\n", kernels.NEWLINE),
        (b";", kernels.COMMENT),
        (b"[({", kernels.OPEN),
        (b"])}", kernels.CLOSE),
        (b'"', kernels.QUOTE),
        (b"\\", kernels.BACKSLASH),
        (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.*!_?$%&=<>/|", kernels.SYMBOL),
        (b"0123456789", kernels.DIGIT),
        (b"+-", kernels.SIGN),
        (b":", kernels.COLON),
        (b"#", kernels.HASH),
        (b"'", kernels.APOSTROPHE),
    ):
        for member in members:
            classes[member] = kind
    return bytes(classes)


CLASSES = _classify()


# --- large files

# Loop steps of the kernel in plain Python per byte of EDN.
STEPS = 2

_SPACE = b" \t\r\f\v,"
_BRACKETS = b"[]{}"
_TYPE_FIELD, _PROCESS_FIELD, _F_FIELD, _VALUE_FIELD, _INDEX_FIELD, _TIME_FIELD = 1, 2, 4, 8, 16, 32
_NEEDED = _TYPE_FIELD | _PROCESS_FIELD | _VALUE_FIELD

# Fields of an operation's row: its first micro-operation, line, process, index, type and time.
_FIELDS = 6
_SHORTEST_OP, _SHORTEST_EVENT = len("[:r 1 1]"), len("{:type :ok :process 1 :value[]}")
_INVOKE = 3

# Brackets around the whole history.
_NO_ENCLOSURE, _ENCLOSURE = 0, 2

_NOT_GIVEN = {automaton.ID: -1, automaton.TIME: NO_TIME, automaton.INITIAL: NULL, automaton.LINE: 1}


def is_large(size: int) -> bool:
    """Return whether the automaton pays off for ``size`` bytes."""
    return pays_off(STEPS * size)


def read_events(content: Buffer) -> RawColumns | None:
    """Return the raw columns by the automaton, or None if it does not accept the file."""
    grammar, closed = _edn_grammar()
    columns = parse_bulk(grammar, content, 0, _FIELDS, _measure, _NOT_GIVEN)
    if columns is None or not columns.n[automaton.ROWS]:
        return None
    brackets_around = _ENCLOSURE if columns.n[automaton.STATE] in closed else _NO_ENCLOSURE
    return _raw(columns) if columns.regs[automaton.ENCLOSED] == brackets_around else None


def _measure(buf: Any, start: int, stop: int) -> Size:
    ops = min(count(buf, b"[", start, stop), (stop - start) // _SHORTEST_OP)
    events = min(count(buf, b"{", start, stop), (stop - start) // _SHORTEST_EVENT)
    return Size(ops, events, ops + count(buf, b" ", start, stop) + count(buf, b",", start, stop))


def _raw(columns: Columns) -> RawColumns:
    kind, index, time = (columns.row(register) for register in (automaton.STATUS, automaton.ID, automaton.TIME))
    position = np.arange(len(kind))
    index = np.where(index < 0, position, index)  # as Jepsen itself numbers them
    events, status, begin, end = _pair(kind, columns.row(automaton.SESSION))
    builder = HistoryBuilder(None, fixed=True)
    ops, ends = _chosen_ops(columns, events, status)
    list_ops, list_ends, items = _chosen_lists(columns, ops)
    builder.add_columns(
        TxnColumns(
            kinds=columns.kinds[ops],
            keys=columns.keys[ops],
            values=columns.values[ops],
            ends=ends,
            sessions=columns.row(automaton.SESSION)[events],
            status=status.astype(np.uint8),
            begin=begin,
            end=end,
            list_ops=list_ops,
            list_ends=list_ends,
            items=items,
            lines=columns.row(automaton.PLACE)[events].astype(np.int32),
            indices=index[events],
        )
    )
    raw = builder.columns()
    raw.times = None if raw.times is None else by_clock(raw.times, np.where(time < 0, NO_TIME, time), index)
    return raw


def _pair(kind: Int64s, process: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Pair invocations with completions.

    Return, for each transaction, the event that has its operations, its status, and the positions where it began and
    ended. A completion ends the invocation before it, if that is the last event of its process. A second invocation, or
    the end of the history, leaves the invocation before it with an unknown outcome.
    """
    by_process = np.argsort(process, kind="stable")
    same = process[by_process][1:] == process[by_process][:-1]
    before = np.full(len(kind), -1, np.int64)
    before[by_process[1:][same]] = by_process[:-1][same]
    before = np.where((before >= 0) & (kind[before] == _INVOKE), before, -1)
    invokes = kind == _INVOKE
    taken = np.zeros(len(kind), np.bool_)
    taken[before[before >= 0]] = True
    ended = np.flatnonzero(~invokes | (before >= 0))  # completions, and second invocations
    left = np.flatnonzero(invokes & ~taken)
    events = np.concatenate((np.where(invokes[ended], before[ended], ended), left))
    given_up = np.concatenate((invokes[ended], np.ones(len(left), np.bool_)))
    begin = np.concatenate((before[ended], left))
    status = np.where(given_up, UNKNOWN, kind[events])
    return events, status, np.where(begin < 0, NO_TIME, begin), np.where(given_up, NO_TIME, events)


def _chosen_ops(columns: Columns, events: Int64s, status: Int64s) -> tuple[slice | Int64s, Int64s]:
    """Return the micro-operations of the transactions, and where those of each end.

    Reads of nil by uncommitted transactions are skipped: their result is unknown.
    """
    total = int(columns.n[automaton.OPS])
    starts = np.append(columns.row(automaton.FIRST_OP), total)
    if np.array_equal(events, np.arange(len(starts) - 1)) and not np.any(status):
        return slice(0, total), starts
    lengths = np.diff(starts)[events]
    ends = np.concatenate(([0], np.cumsum(lengths)))
    ops = np.arange(ends[-1]) + np.repeat(starts[events] - ends[:-1], lengths)
    known = (columns.kinds[ops] != READ) | (columns.values[ops] != NULL) | np.repeat(status == COMMITTED, lengths)
    return ops[known], np.concatenate(([0], np.cumsum(known)))[ends]


def _chosen_lists(columns: Columns, ops: slice | Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the lists of the chosen micro-operations: their operations, ends and items."""
    lists, items = columns.n[automaton.LISTS], columns.n[automaton.ITEMS]
    owners, ends = columns.list_ops[:lists], columns.list_ends[: lists + 1]
    if isinstance(ops, slice) or not lists:
        return owners, ends, columns.items[:items]
    place = np.full(columns.n[automaton.OPS], -1, np.int64)
    place[ops] = np.arange(len(ops))
    chosen = np.flatnonzero(place[owners] >= 0)
    chosen = chosen[np.argsort(place[owners[chosen]])]
    lengths = np.diff(ends)[chosen]
    moved = np.concatenate(([0], np.cumsum(lengths)))
    which = np.arange(moved[-1]) + np.repeat(ends[chosen] - moved[:-1], lengths)
    return place[owners[chosen]], moved, columns.items[which]


# --- grammar


@cache
def _edn_grammar() -> tuple[BulkGrammar, Point]:
    """Return the grammar of maps, bare or inside one vector, and the point after a vector."""
    grammar = Automaton(_SPACE, count_lines=True, brackets=_BRACKETS)
    start, between, end = grammar.point(), grammar.point(), grammar.point(automaton.COUNT, automaton.ENCLOSED)
    inside = grammar.word(start, b"[", action=automaton.COUNT, operand=automaton.ENCLOSED)
    field = grammar.point(automaton.BEGIN, automaton.LINE)
    for point in (start, inside, between):
        grammar.word(point, b"{", field)
    # one word, because the line of an operation is that of its tag
    grammar.word(start + inside + between, b"#jepsen.history.Op{", field)
    grammar.word(inside, b"]", end)
    after_map = _map(grammar, field)
    grammar.join(after_map, between)
    grammar.word(between, b"]", end)
    return BulkGrammar(grammar.tables(), start[0], (*between, *after_map, *end), b"\n", between[1]), end


def _map(grammar: Automaton, start: Point) -> Point:
    """Add the entries of an operation and its closing brace; return the point after it."""
    field = grammar.point()

    def named(name: bytes, bit: int) -> Point:
        return grammar.word(start + field, name, action=automaton.MARK_FIELD, operand=bit)

    for name, bit, register in (
        (b":index", _INDEX_FIELD, automaton.ID),
        (b":process", _PROCESS_FIELD, automaton.SESSION),
        (b":time", _TIME_FIELD, automaton.TIME),
    ):
        grammar.join(grammar.number(named(name, bit), grammar.point(automaton.NUMBER, register)), field)
    kind = named(b":type", _TYPE_FIELD)
    for word, code in ((b":ok", COMMITTED), (b":fail", ABORTED), (b":info", UNKNOWN), (b":invoke", _INVOKE)):
        grammar.join(grammar.word(kind, word, action=automaton.SET, operand=constant(automaton.STATUS, code)), field)
    grammar.join(grammar.word(named(b":f", _F_FIELD), b":txn"), field)
    _ops(grammar, grammar.word(named(b":value", _VALUE_FIELD), b"["), field)
    return grammar.word(field, b"}", action=automaton.ROW, operand=_NEEDED)


def _ops(grammar: Automaton, start: Point, end: Point) -> None:
    """Add the micro-operations."""
    op = grammar.point()
    after_op = grammar.point(automaton.OP)
    grammar.word(start, b"[", op)
    grammar.word(after_op, b"[", op)
    for word, kind in ((b":r", READ), (b":w", WRITE), (b":append", APPEND)):
        key = grammar.word(op, word, action=automaton.SET, operand=constant(automaton.KIND, kind))
        value = grammar.number(key, grammar.point(automaton.NUMBER, automaton.KEY))
        after_value = grammar.number(value, grammar.point(automaton.NUMBER, automaton.VALUE))
        grammar.join(grammar.word(value, b"nil", action=automaton.NULL_VALUE), after_value)
        if kind == READ:
            grammar.join(_list(grammar, grammar.word(value, b"[", action=automaton.LIST)), after_value)
        grammar.word(after_value, b"]", after_op)
    after_ops = grammar.word(start, b"]")
    grammar.word(after_op, b"]", after_ops)
    grammar.join(after_ops, end)


def _list(grammar: Automaton, start: Point) -> Point:
    """Add the elements of a list and its closing bracket; return the point after it."""
    item, end = grammar.point(automaton.NUMBER_ITEM), grammar.point(automaton.LIST_END)
    grammar.number(start, item)
    grammar.number(item, item)
    grammar.word(start, b"]", end)
    grammar.word(item, b"]", end)
    return end
