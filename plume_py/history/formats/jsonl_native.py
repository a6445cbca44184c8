"""Read native JSON Lines as a stream: an optional header ``{"initial": 0}``, then one transaction per line.

While ``isocheck collect`` runs, a hidden file beside the history holds the transactions whose commit is under way. It
remains only if the collector was killed; its transactions then have unknown outcomes. See ``collect.recorder``.
"""

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats import json_native
from plume_py.history.formats.json_native import OPTIONAL, NativeTxn, Ticks, Value, begin, hint
from plume_py.history.formats.reading import decode, no_collector
from plume_py.history.source import Source


class NativeLine(NativeTxn, gc=False, kw_only=True):
    """A transaction with its session."""

    session: int | str


class SecondsLine(NativeLine, gc=False, kw_only=True):
    """A line of an older ``collect``, with times in seconds, to the microsecond."""

    start: float | None = None  # type: ignore[assignment]
    end: float | None = None  # type: ignore[assignment]


class Header(msgspec.Struct, gc=False):
    """The first line, if it is not a transaction."""

    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ops: Any = None
    collected: Any = None
    ticks_per_second: Ticks | None = None

    @property
    def is_in_seconds(self) -> bool:
        """Whether an older ``collect`` recorded the file, with times in seconds."""
        return self.collected is not None and self.ticks_per_second is None


_line = msgspec.json.Decoder(NativeLine)
_seconds_line: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(SecondsLine)
_header = msgspec.json.Decoder(Header)

LineDecoder = msgspec.json.Decoder[NativeLine]

MICROSECONDS = 10**6


def read(source: Source) -> RawColumns:
    """Return the raw columns of a native JSON Lines file. Only a few megabytes of it are objects at any time."""
    header: Header | None = None
    line = 1
    with no_collector():
        for chunk in source.lines():
            start = 0
            if header is None:
                start, line, header = _read_header(chunk, line)
                if header is None:
                    continue
                builder, decoder = _begin(header)
                at_once = _BulkLines(builder, header)
            body = chunk[start:]
            if not body.endswith(b"\n") and pending_lines(source.path, header.collected) is not None:
                break  # the collector was killed while it wrote this line; the hidden file has it if it was a commit
            if not at_once.add(body, line):
                _add(builder, body, line, decoder)
            line += body.count(b"\n")
    if header is None:
        return begin(msgspec.UNSET, None).columns()
    _add_pending(builder, pending_lines(source.path, header.collected) or b"", decoder)
    return builder.columns()


def _begin(header: Header) -> tuple[HistoryBuilder, LineDecoder]:
    """Return the builder of the history and the decoder of its lines."""
    if header.is_in_seconds:
        return begin(header.initial, MICROSECONDS), _seconds_line
    return begin(header.initial, header.ticks_per_second), _line


class _BulkLines:
    """Adds lines by the automaton, as long as there are many and the automaton accepts them."""

    def __init__(self, builder: HistoryBuilder, header: Header) -> None:
        self._builder = builder
        self._initial = json_native.code_of(header.initial)
        self._usual = self._initial is not None and not header.is_in_seconds

    def add(self, body: bytes, line: int) -> bool:
        """Add the transactions of whole lines; return whether the automaton accepted them."""
        if not self._usual or self._initial is None or not json_native.is_large(len(body)):
            return False
        columns = json_native.read_lines(body, line, self._initial)
        if columns is None:
            self._usual = False
            return False
        self._builder.add_columns(columns)
        return True


def _add_pending(builder: HistoryBuilder, lines: bytes, decoder: LineDecoder) -> None:
    """Add the transactions whose commit was under way when the collector was killed, with unknown outcomes."""
    if not lines:
        return
    known = builder.ids()
    try:
        for line in lines.splitlines():
            txn = decode(decoder, line, hint=hint)
            reject_same_names(line)
            if txn.id not in known:
                _count_microseconds([txn], decoder)
                builder.add(txn.session, txn.ops, status="unknown", level=txn.level, id=txn.id, begin=txn.start)
    except InputError as error:
        error.where = "the hidden file beside it"
        raise


def _count_microseconds(txns: Iterable[NativeLine], decoder: LineDecoder) -> None:
    """Turn the times of SecondsLine transactions into integers."""
    if decoder is not _seconds_line:
        return
    for txn in txns:
        txn.start = None if txn.start is None else round(txn.start * MICROSECONDS)
        txn.end = None if txn.end is None else round(txn.end * MICROSECONDS)


def _read_header(chunk: bytes, line: int) -> tuple[int, int, Header | None]:
    """Skip blank lines and read the header, if there is one: (start of the transactions, their line, header)."""
    start = 0
    while start < len(chunk):
        end = chunk.find(b"\n", start) + 1 or len(chunk)
        text = chunk[start:end].strip(b"\xef\xbb\xbf \t\r\n")
        if text:
            header: Header = _located(lambda text=text: decode(_header, text, hint=hint), line)
            reject_same_names(text, names=1, first_line=line)
            if header.ops is None:
                return end, line + 1, header
            return start, line, Header(header.initial)
        start, line = end, line + 1
    return start, line, None


def _add(builder: HistoryBuilder, body: bytes, line: int, decoder: LineDecoder) -> None:
    try:
        txns = decoder.decode_lines(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        for text in body.split(b"\n"):  # find the line with the error
            if text.strip():
                _located(lambda text=text: decode(decoder, text, hint=hint), line)
            line += 1
        raise InputError("malformed JSON Lines", where=f"line {line}") from None
    blank_lines = body.count(b"\n") + (not body.endswith(b"\n")) != len(txns)
    numbers = _numbers(body, line) if blank_lines else range(line, line + len(txns))
    if len(numbers) != len(txns):
        raise InputError("a transaction that goes on after its line", hint="write each transaction on one line")
    reject_same_names(body, 2 * len(txns), (txns, OPTIONAL), first_line=line, lines=True)
    _count_microseconds(txns, decoder)
    for number, txn in zip(numbers, txns, strict=True):
        try:
            builder.add(
                txn.session,
                txn.ops,
                status=txn.status,
                level=txn.level,
                id=txn.id,
                line=number,
                begin=txn.start,
                end=txn.end,
            )
        except InputError as error:
            raise _at(error, number) from None


def _numbers(body: bytes, line: int) -> list[int]:
    return [line + i for i, text in enumerate(body.split(b"\n")) if text.strip()]


def _located(action: Any, line: int) -> Any:
    """Run ``action``; an InputError gets the line."""
    try:
        return action()
    except InputError as error:
        raise _at(error, line) from None


def _at(error: InputError, line: int) -> InputError:
    error.where = f"line {line}" + (f", {error.where}" if error.where and "line" not in error.where else "")
    return error


# --- transactions whose commit was under way

# Largest hidden file in bytes: far more than one ever has.
LIMIT = 1 << 26
# Longest file name in bytes.
NAME_MAX = 255


def pending_path(path: str) -> str:
    """Return the path of the hidden file, in the folder of the history's target, if that is a link.

    Hidden, so that a scan does not take it for a history.
    """
    folder, name = os.path.split(os.path.realpath(path))
    hidden = f".{name}.pending"
    if len(os.fsencode(hidden)) > NAME_MAX:
        hidden = f".{sha256(os.fsencode(name)).hexdigest()[:32]}.pending"
    return os.path.join(folder, hidden)


def first_line(run: str) -> bytes:
    """Return the first line of the hidden file: the id of the run, which the history's header also has.

    A hidden file of the same name may be from another run.
    """
    return msgspec.json.encode({"run": run}) + b"\n"


def pending_lines(path: str, collected: Any) -> bytes | None:
    """Return the lines of the hidden file; None unless it is from the run in ``collected``, the history's header."""
    run = collected.get("run") if isinstance(collected, dict) else None
    if not isinstance(run, str) or path == "-":
        return None
    if not os.path.isfile(pending_path(path)):  # a pipe would block for ever
        return None
    try:
        with open(pending_path(path), "rb") as file:  # noqa: PTH123
            text = file.read(LIMIT)
    except OSError:
        return None
    begin = first_line(run)
    if not text.startswith(begin):
        return None
    return text[len(begin) : text.rfind(b"\n") + 1]  # the last line may have been cut off
