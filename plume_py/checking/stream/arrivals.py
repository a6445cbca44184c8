"""Read transactions from lines as they arrive: native JSON Lines and Plume text.

``isocheck watch`` calls ``Arrivals``. Readers take pieces of whole lines (``follow.Piece``) and yield batches of
arrivals. Transactions before an error are yielded before the error is raised, so the result does not depend on how the
lines were cut into pieces.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.base.kernels import dispatch
from plume_py.checking.stream.follow import Piece
from plume_py.history.assemble import SECRET
from plume_py.history.detect import detect
from plume_py.history.formats import text_kernels as kernels
from plume_py.history.formats.json_native import DEFAULT_STATUS, Operation, hint
from plume_py.history.formats.jsonl_native import MICROSECONDS, Header
from plume_py.history.formats.plume_text import PROBLEMS
from plume_py.history.formats.reading import decode, no_collector
from plume_py.history.source import HEAD, Source
from plume_py.history.value_codes import Atom
from plume_py.levels import parse_level
from plume_py.levels.orders import unknown_level

ABORTED_ID = -1  # the id of all aborted transactions in Plume text

_KINDS = np.array(["r", "w"], object)  # as the kernel numbers them

ArrivalBatch = list["Arrival"]


class Arrival(msgspec.Struct, gc=False):
    """A transaction as it arrives, decoded from a JSON line or built from lines of Plume text."""

    session: int | str
    ops: Sequence[Operation]
    status: Literal["committed", "aborted", "unknown"] = DEFAULT_STATUS  # type: ignore[assignment]
    level: str | None = None
    id: int | str | None = None
    start: int | None = None
    end: int | None = None
    line: int = msgspec.field(default=0, name="\x7f")  # set here: in the file, users may use "line" freely


class SecondsArrival(Arrival, gc=False):
    """An arrival with times in seconds, as older versions of ``collect`` recorded them."""

    start: float | None = None  # type: ignore[assignment]
    end: float | None = None  # type: ignore[assignment]


class Arrivals:
    """The arrivals of one input, in either format."""

    def __init__(self, name: str, input_format: str | None = None) -> None:
        """Create a reader. ``name`` decides about the format if the content is ambiguous."""
        self._name = name
        self._input_format = input_format
        self._beginning = Piece(1, b"")
        self.reader: JsonLines | PlumeText | None = None  # None until the format is known

    def read(self, piece: Piece) -> Iterator[ArrivalBatch]:
        """Yield the transactions that these lines complete."""
        if self.reader is None:
            piece = self._beginning = piece._replace(line=1, text=self._beginning.text + piece.text)
            self.reader = _reader_for(piece.text, self._name, self._input_format)
        if self.reader is not None:
            yield from self.reader.read(piece)

    def finish(self) -> ArrivalBatch:
        """Return the transactions that the end of the input completes."""
        return [] if self.reader is None else self.reader.finish()


def _reader_for(text: bytes, name: str, input_format: str | None) -> "JsonLines | PlumeText | None":
    """Return a reader for input that begins with ``text``, or None if its format is not known yet."""
    if input_format is None:
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return None
        try:
            input_format = detect(_Head(name, text))
        except InputError:
            if all(line.lstrip().startswith(b"#") for line in lines) and len(text) < HEAD:
                return None  # comments may precede Plume text
            raise
    if input_format == "jsonl":
        return JsonLines()
    if input_format == "plume":
        return PlumeText()
    raise InputError(
        f"this looks like {input_format}, which cannot be watched",
        hint="use isocheck check, or --input-format jsonl or plume if it is one of these",
    )


class _Head(Source):
    """The first bytes of a stream, for format detection."""

    is_folder = False

    def __init__(self, name: str, text: bytes) -> None:
        super().__init__(name)
        self._text = text

    def head(self) -> bytes:
        return self._text[:HEAD]


class JsonLines:
    """Native JSON Lines: one transaction per line. The first line may be a header such as ``{"initial": 0}``."""

    format = "jsonl"

    def __init__(self) -> None:
        self.initial: Atom = None
        self.declared = False  # whether the file states its initial value
        self.per_second: int | None = None  # clock ticks
        self._decoder = _lines
        self._expects_header = True
        self._begun = False

    def read(self, piece: Piece) -> Iterator[ArrivalBatch]:
        self._expects_header |= piece.line == 1
        start, line = self._header(piece) if self._expects_header else (0, piece.line)
        text = piece.text[start:] if start else piece.text
        try:
            with no_collector():
                batch = self._decoder.decode_lines(text)
            is_valid = len(batch) == text.count(b"\n") and text.endswith(b"\n")
            if is_valid:
                reject_same_names(text, 2 * len(batch), (batch, _OPTIONAL), first_line=line, lines=True)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InputError):
            is_valid = False
        if not is_valid:
            yield from _checked(_one_by_one(text, line, self._decoder))
            return
        if self._decoder is _seconds_lines:
            _count_microseconds(batch)
        for number, arrival in enumerate(batch, line):
            arrival.line = number
        if {arrival.level for arrival in batch} == {None}:
            yield batch
        else:
            yield from _checked(iter(batch))

    def finish(self) -> ArrivalBatch:
        """Return no transactions, because each line is a complete one."""
        return []

    def _header(self, piece: Piece) -> tuple[int, int]:
        """Read the header, if there is one. Return the offset and number of the first line of a transaction."""
        start, line, text = 0, piece.line, piece.text
        while start < len(text):
            end = text.find(b"\n", start) + 1 or len(text)
            if text[start:end].strip():
                header = _located(_headers, text[start:end], line)
                self._expects_header = False
                if header.ops is None:
                    self._begin(header, line)
                    return end, line + 1
                self._begin(Header(), line)
                break
            start, line = end, line + 1
        return start, line

    def _begin(self, header: Header, line: int) -> None:
        """Take the initial value and clock from a header. A continuation may repeat them, but not change them."""
        initial: Any = header.initial
        given = initial is not msgspec.UNSET
        if isinstance(initial, list):
            if initial:
                raise InputError(
                    "the initial value of a list is the empty list",
                    where=f"line {line}",
                    hint="declare null, [] or nothing",
                )
            initial = None
        per_second = MICROSECONDS if header.is_in_seconds else header.ticks_per_second
        if not self._begun:
            self.initial, self.declared = initial if given else None, given
            self.per_second = per_second
            self._decoder = _seconds_lines if header.is_in_seconds else _lines
        elif per_second is not None and per_second != self.per_second:
            raise InputError(
                f"the clock has {per_second} ticks per second now, and had {self.per_second or 'none known'} before",
                where=f"line {line}",
                hint="this is another history: watch it anew",
            )
        elif given and (initial != self.initial or type(initial) is not type(self.initial)):
            raise InputError(
                f"the initial value is now {initial!r:.40}, and was {self.initial!r:.40} before",
                where=f"line {line}",
                hint="this is another history: watch it anew",
            )
        self._begun = True


_lines = msgspec.json.Decoder(Arrival)
_seconds_lines: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(SecondsArrival)
_headers = msgspec.json.Decoder(Header)

# Default values of optional fields.
_OPTIONAL: dict[str, object] = {**dict.fromkeys(("level", "id", "start", "end")), "status": DEFAULT_STATUS}


def _located(decoder: "msgspec.json.Decoder[Any]", text: bytes, line: int) -> Any:
    try:
        decoded = decode(decoder, text, hint=hint)
        reject_same_names(text, names=1, first_line=line)
        return decoded
    except InputError as error:
        inside = f", {error.where}" if error.where and not error.where.startswith("line") else ""
        error.where = f"line {line}{inside}"
        raise


def _one_by_one(text: bytes, line: int, decoder: "msgspec.json.Decoder[Any]") -> Iterator[Arrival]:
    """Yield the transactions of these lines, decoded singly. Slower, but errors have a line number."""
    for number, one in enumerate(text.split(b"\n"), line):
        if one.strip():
            arrival = _located(decoder, one, number)
            arrival.line = number
            if decoder is _seconds_lines:
                _count_microseconds([arrival])
            yield arrival


def _count_microseconds(batch: ArrivalBatch) -> None:
    """Convert the times from seconds to whole microseconds."""
    for arrival in batch:
        arrival.start = None if arrival.start is None else round(arrival.start * MICROSECONDS)
        arrival.end = None if arrival.end is None else round(arrival.end * MICROSECONDS)


def _checked(arrivals: Iterator[Arrival]) -> Iterator[ArrivalBatch]:
    """Yield all arrivals as one batch. If one has an unknown level, yield those before it, then raise the error."""
    batch: ArrivalBatch = []
    try:
        for arrival in arrivals:
            if arrival.level is not None and parse_level(arrival.level) is None:
                raise InputError(unknown_level(arrival.level), where=f"line {arrival.line}")
            batch.append(arrival)
    except InputError:
        yield batch
        raise
    yield batch


class PlumeText:
    """Plume text: a transaction is complete when its session begins another one, or at the end of the input.

    Lines of different sessions may be interleaved. Within a session, the lines of a transaction must be consecutive.
    Each run of lines with the id -1 is a separate aborted transaction without an id.
    """

    format = "plume"
    initial: Atom = 0
    declared = False
    per_second = None  # the format has no times

    def __init__(self) -> None:
        self._open: dict[int, Arrival] = {}  # per session: its last transaction
        self._ids = _IdSet()
        self._flags = 0

    def read(self, piece: Piece) -> Iterator[ArrivalBatch]:
        batch: ArrivalBatch = []
        try:
            for arrival in self._runs(piece):
                last = self._open.get(arrival.session)  # type: ignore[arg-type]  # sessions are numbers here
                if last is not None and last.id == arrival.id:
                    last.ops += arrival.ops  # type: ignore[operator]  # a list, as _runs made it
                    continue
                if arrival.id is not None and not self._ids.add(arrival.id):  # type: ignore[arg-type]
                    raise _duplicate(arrival)
                if last is not None:
                    batch.append(last)
                self._open[arrival.session] = arrival  # type: ignore[index]
        except InputError:
            yield batch
            raise
        yield batch

    def finish(self) -> ArrivalBatch:
        """Return the last transaction of each session, in order of their lines."""
        batch = sorted(self._open.values(), key=lambda arrival: arrival.line)
        self._open = {}
        return batch

    def _runs(self, piece: Piece) -> Iterator[Arrival]:
        """Yield each run of consecutive lines of one transaction as an arrival."""
        with no_collector():
            columns = _Columns(piece.text)
            self._flags |= columns.flags
            runs = columns.runs(piece.line, self._flags)
        yield from runs
        if columns.problem:
            raise _problem(piece, columns.problem, columns.at)


class _Columns:
    """The columns that the kernel parses from some lines."""

    def __init__(self, text: bytes) -> None:
        dispatch.prepare(3 * len(text), kernels)
        buf = dispatch.byte_buffer(text, kernels)
        room = kernels.count_lines(buf)
        self.text = text
        self.kind, self.key, self.value = np.empty(room, np.uint8), np.empty(room, np.int64), np.empty(room, np.int64)
        self.txn, self.txn_id = np.empty(room, np.int32), np.empty(room, np.int64)
        self.txn_session, self.session_id = np.empty(room, np.int32), np.empty(room, np.int64)
        line, aborted = np.empty(room, np.int32), np.empty(room, np.uint8)
        self.ops, _, _, self.flags, self.problem, self.at = kernels.parse(
            buf, SECRET, self.kind, self.key, self.value, self.txn, self.txn_id, self.txn_session, line, aborted,
            self.session_id,
        )  # fmt: skip

    def runs(self, first_line: int, flags: int) -> ArrivalBatch:
        """Return the runs as arrivals, ordered by first line. A run ends where its session changes transaction."""
        if not self.ops:
            return []
        txn = self.txn[: self.ops]
        by_session = np.argsort(self.txn_session[txn], kind="stable")
        txn = txn[by_session]
        start = np.flatnonzero(np.concatenate(([True], txn[1:] != txn[:-1])))
        end = np.append(start[1:], self.ops)
        in_order = np.argsort(by_session[start])
        start, end = start[in_order], end[in_order]
        owner = txn[start]
        keys = _numbers(self.key[by_session], flags & 3, "key")
        values = _numbers(self.value[by_session], flags >> 2, "value")
        ops: list[Any] = list(zip(_KINDS[self.kind[by_session]].tolist(), keys, values, strict=True))
        return [
            Arrival(session, ops[begin:end], "committed", None, id, line=line)
            if id != ABORTED_ID
            else Arrival(session, ops[begin:end], "aborted", line=line)
            for session, begin, end, id, line in zip(
                self.session_id[self.txn_session[owner]].tolist(),
                start.tolist(),
                end.tolist(),
                self.txn_id[owner].tolist(),
                self._lines(first_line)[by_session[start]].tolist(),
                strict=True,
            )
        ]

    def _lines(self, first_line: int) -> Any:
        """Return the line of each operation. Blank lines and comments contain none."""
        if self.ops == self.text.count(b"\n"):
            return np.arange(first_line, first_line + self.ops)
        lines = map(bytes.lstrip, self.text.split(b"\n"))
        return np.array([n for n, line in enumerate(lines, first_line) if line and not line.startswith(b"#")])


def _numbers(column: Any, flags: int, what: str) -> list[int]:
    """Return a column as integers; all are unsigned if some need all 64 bits."""
    if flags == 3:
        raise InputError(f"a {what} is negative and another needs all 64 bits", hint="use one or the other")
    numbers: list[int] = (column.view(np.uint64) if flags == 2 else column).tolist()
    return numbers


def _problem(piece: Piece, problem: int, at: int) -> InputError:
    what, hint = PROBLEMS[problem]
    line = piece.line + piece.text.count(b"\n", 0, at)
    text = piece.text[at : at + 60].split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    return InputError(f"{what}: {text!r}", where=f"line {line}", hint=hint)


def _duplicate(arrival: Arrival) -> InputError:
    return InputError(
        f"transaction {arrival.id} came before: another session has that id, or its own session had gone on",
        where=f"line {arrival.line}",
        hint="make ids unique, and write a transaction's lines before the next of its session (check does not mind)",
    )


class _IdSet:
    """The set of transaction ids so far, as bitmap pages of 1,024 ids. Dense ids cost about a bit each."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, id: int) -> bool:
        """Add an id. Return False if it was present."""
        page = self._pages.get(id >> 10)
        if page is None:
            page = self._pages[id >> 10] = bytearray(128)
        at, bit = (id & 1023) >> 3, 1 << (id & 7)
        if page[at] & bit:
            return False
        page[at] |= bit
        return True
