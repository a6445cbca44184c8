"""Native JSON Lines: an optional ``{"initial": 0}``, then one transaction per line, read as a stream."""

from typing import Any

import msgspec

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.json_common import decode, no_collector
from plume_py.history.formats.json_native import HINT, NativeTxn, Value, begin
from plume_py.history.formats.jsonl_pending import pending_lines
from plume_py.history.source import Source


class NativeLine(NativeTxn, gc=False, kw_only=True):
    """A transaction that says to which session it belongs."""

    session: int | str


class Header(msgspec.Struct, gc=False):
    """The first line, if it is not a transaction."""

    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ops: Any = None
    collected: Any = None


_line = msgspec.json.Decoder(NativeLine)
_header = msgspec.json.Decoder(Header)


def read(source: Source) -> RawColumns:
    """The raw columns of a native JSON Lines file; only a few megabytes of it exist as objects at any time."""
    builder: HistoryBuilder | None = None
    collected: Any = None
    line = 1
    with no_collector():
        for chunk in source.lines():
            start = 0
            if builder is None:
                start, line, builder, collected = _read_header(chunk, line)
                if builder is None:
                    continue
            body = chunk[start:]
            if not body.endswith(b"\n") and pending_lines(source.path, collected) is not None:
                break  # its collector was killed while it wrote this line; if that was a commit, the hidden file has it
            _add(builder, body, line)
            line += body.count(b"\n")
    builder = builder or begin(msgspec.UNSET)
    _add_pending(builder, pending_lines(source.path, collected) or b"")
    return builder.columns()


def _add_pending(builder: HistoryBuilder, lines: bytes) -> None:
    """Transactions whose commit was under way when their collector was killed; they have unknown outcomes."""
    if not lines:
        return
    known = builder.ids()
    try:
        for line in lines.splitlines():
            txn = decode(_line, line, hint=HINT)
            if txn.id not in known:
                builder.add(txn.session, txn.ops, status="unknown", level=txn.level, id=txn.id)
    except InputError as error:
        error.where = "the hidden file beside it"
        raise


def _read_header(chunk: bytes, line: int) -> tuple[int, int, HistoryBuilder | None, Any]:
    """Skip blank lines and take the header, if there is one."""
    start = 0
    while start < len(chunk):
        end = chunk.find(b"\n", start) + 1 or len(chunk)
        text = chunk[start:end].strip(b"\xef\xbb\xbf \t\r\n")
        if text:
            header = _located(lambda text=text: decode(_header, text, hint=HINT), line)
            if header.ops is not None:
                return start, line, begin(header.initial), None
            return end, line + 1, begin(header.initial), header.collected
        start, line = end, line + 1
    return start, line, None, None


def _add(builder: HistoryBuilder, body: bytes, line: int) -> None:
    try:
        txns = _line.decode_lines(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        for text in body.split(b"\n"):  # find the line at fault
            if text.strip():
                _located(lambda text=text: decode(_line, text, hint=HINT), line)
            line += 1
        raise InputError("malformed JSON Lines", where=f"line {line}") from None
    blank_lines = body.count(b"\n") + (not body.endswith(b"\n")) != len(txns)
    numbers = _numbers(body, line) if blank_lines else range(line, line + len(txns))
    if len(numbers) != len(txns):
        raise InputError("a transaction that goes on after its line", hint="write each transaction on one line")
    for number, txn in zip(numbers, txns, strict=True):
        _located(
            lambda txn=txn, number=number: builder.add(
                txn.session, txn.ops, status=txn.status, level=txn.level, id=txn.id, line=number
            ),
            number,
        )


def _numbers(body: bytes, line: int) -> list[int]:
    return [line + i for i, text in enumerate(body.split(b"\n")) if text.strip()]


def _located(action: Any, line: int) -> Any:
    """Run ``action``; an input error gets the line."""
    try:
        return action()
    except InputError as error:
        error.where = f"line {line}" + (f", {error.where}" if error.where and "line" not in error.where else "")
        raise
