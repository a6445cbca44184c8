"""dbcop's histories: bincode, JSON, text and YAML are read; bincode and JSON are also written.

Two rules hold for all four formats:

- A read of 0 that no transaction wrote sees the initial state.
- A transaction that is not marked as committed is aborted, and keeps its position in its session.

bincode and YAML also mark each event as done or failed. A failed read saw nothing and is skipped. A failed write in a
committed transaction has no effect, and clients often retry it with the same value, so it is skipped. All writes of an
aborted transaction are aborted, so its failed writes are kept.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats import dbcop_bincode_kernels as kernels
from plume_py.history.formats.reading import decode, excerpt, natural, no_collector, numbered_lines
from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    integer,
    lost_names,
    lost_nodes,
    lost_times,
    render,
    require,
    require_initial,
)
from plume_py.history.model import COMMITTED, History
from plume_py.history.source import Buffer, Source
from plume_py.history.value_codes import Atom, Atoms

Version = int | None
Operation = tuple[str, int | str, Version]


class DbcopTxn(NamedTuple):
    """A transaction of a dbcop file; ``line`` is 0 if the format has no lines."""

    session: int
    ops: Sequence[Operation]
    committed: bool
    line: int = 0


def effective_operations(events: Sequence[tuple[bool, int, int, bool]], committed: bool) -> list[Operation]:
    """Return the operations of the events (write, variable, value, success) that have an effect."""
    return [("w" if write else "r", key, value) for write, key, value, ok in events if ok or (write and not committed)]


def to_columns(sessions: int, txns: Sequence[DbcopTxn]) -> RawColumns:
    """Return the raw columns of ``txns``. Null and an unwritten 0 both mean a read of the initial state."""
    wrote_zero = {key for txn in txns for kind, key, version in txn.ops if kind == "w" and version == 0}
    # 0 is the initial value, as in all of dbcop. It must differ from null only if it was written to a key whose initial
    # state was also read.
    ambiguous = any(version is None and key in wrote_zero for txn in txns for _, key, version in txn.ops)
    initial = None if ambiguous else 0
    builder = HistoryBuilder(initial, declared=False)
    for s in range(sessions):
        builder.session(s)
    for txn in txns:
        ops = [
            (
                kind,
                key,
                initial if kind == "r" and not version and not (version == 0 and key in wrote_zero) else version,
            )
            for kind, key, version in txn.ops
        ]
        builder.add(txn.session, ops, status="committed" if txn.committed else "aborted", line=txn.line)
    return builder.columns()


# --- bincode

CUT_HINT = "the file was cut off, or is not dbcop's binary format"
BINCODE_PROBLEMS = {
    kernels.CUT_OFF: ("the file ends too early", CUT_HINT),
    kernels.TOO_LONG: ("a length is larger than the rest of the file", CUT_HINT),
    kernels.NOT_A_BOOL: ("a flag is neither 0 nor 1", "the file is damaged, or is not dbcop's binary format"),
    kernels.TRAILING: ("something follows the last session", "the file must end there"),
}


def read_bincode(source: Source) -> RawColumns:
    """Return the raw columns of a bincode file: parameters, three strings, then sessions of transactions of events."""
    content = source.content()
    if not content:
        raise InputError("the file is empty", hint=CUT_HINT)
    dispatch.prepare(len(content), kernels)
    # upper bounds; unused pages cost no memory
    events, txns = len(content) // kernels.EVENT, len(content) // kernels.TXN
    kinds, keys, values = np.empty(events, np.uint8), np.empty(events, np.int64), np.empty(events, np.int64)
    op_txn, txn_session, txn_aborted = np.empty(events, np.int32), np.empty(txns, np.int32), np.empty(txns, np.uint8)
    buf = dispatch.byte_buffer(content, kernels)
    ops, transactions, sessions, problem, at = kernels.parse(buf, kinds, keys, values, op_txn, txn_session, txn_aborted)
    if problem:
        what, hint = BINCODE_PROBLEMS[problem]
        raise InputError(what, where=f"byte {at}", hint=hint)
    return RawColumns(
        op_kind=kinds[:ops],
        op_key=keys[:ops],
        op_value=values[:ops],
        op_txn=op_txn[:ops],
        txn_session=txn_session[:transactions].copy(),
        txn_status=txn_aborted[:transactions].copy(),
        sessions=sessions,
        keys=Atoms.of_bit_patterns(keys[:ops]),
        values=Atoms.of_bit_patterns(values[:ops]),
        initial=0,
    )


# --- JSON

Natural = Annotated[int, msgspec.Meta(ge=0)]
Variable = Natural | str
Triple = tuple[Literal["r", "w"], Variable, Natural | None]

JSON_HINT = (
    'an event is ["r", variable, version], ["w", variable, version] or {"Read"|"Write": {"variable", "version"}}'
)


class DbcopEvent(msgspec.Struct, gc=False):
    """The variable and the version of a tagged event."""

    variable: Variable
    version: Natural | None = None


class Tagged(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An event in tagged form; exactly one of the two fields is set."""

    read: DbcopEvent | None = msgspec.field(default=None, name="Read")
    write: DbcopEvent | None = msgspec.field(default=None, name="Write")


class DbcopTransaction(msgspec.Struct, gc=False):
    """A transaction; unknown fields are ignored."""

    events: list[Triple | Tagged]
    committed: bool


Sessions = list[list[DbcopTransaction]]


class DbcopDocument(msgspec.Struct, gc=False):
    """The wrapper; its parameters and times add nothing to the data."""

    data: Sessions


class DbcopOutline(msgspec.Struct, gc=False):
    """The wrapper, with its data not decoded."""

    data: msgspec.Raw


_outline_decoder = msgspec.json.Decoder(DbcopOutline)
_document_decoder: "msgspec.json.Decoder[DbcopDocument | Sessions]" = msgspec.json.Decoder(DbcopDocument | Sessions)


def read_json(source: Source) -> RawColumns:
    """Return the raw columns of a JSON file: ``[[{"events": [["w", 0, 1]], "committed": true}]]``.

    The list may be the ``data`` of a wrapper. An event is a triple, or ``{"Write": {"variable": 0, "version": 1}}``.
    """
    content = source.content()
    with no_collector():
        document = decode(_document_decoder, content, hint=JSON_HINT)
        _reject_same_names(content, document)
        sessions, path = (document.data, "data") if isinstance(document, DbcopDocument) else (document, "")
        txns = [
            DbcopTxn(s, _operations(txn.events, f"{path}[{s}][{t}]"), txn.committed)
            for s, session in enumerate(sessions)
            for t, txn in enumerate(session)
        ]
        return to_columns(len(sessions), txns)


def _reject_same_names(content: Buffer, document: DbcopDocument | Sessions) -> None:
    """Reject repeated field names: count the names in the sessions, and parse the small wrapper again."""
    sessions = document.data if isinstance(document, DbcopDocument) else document
    names = sum(2 + sum(map(_names, txn.events)) for session in sessions for txn in session)
    if isinstance(document, DbcopDocument):
        data = bytes(_outline_decoder.decode(content).data)
        try:
            reject_same_names(bytes(content).replace(data, b"[]", 1))
            reject_same_names(data, names)
            return
        except InputError:  # again below, for the position in the whole file
            pass
    reject_same_names(content, names)


def _names(event: Triple | Tagged) -> int:
    if isinstance(event, Tagged):
        return sum(2 + (inner.version is not None) for inner in (event.read, event.write) if inner is not None)
    return 0


def _operations(events: list[Triple | Tagged], where: str) -> list[Operation]:
    ops: list[Operation] = [_from_tagged(event, where) if isinstance(event, Tagged) else event for event in events]
    for kind, _, version in ops:
        if kind == "w" and version is None:
            raise InputError("a write without a version", where=where, hint=JSON_HINT)
    return ops


def _from_tagged(event: Tagged, where: str) -> Operation:
    if event.write is not None and event.read is None:
        return "w", event.write.variable, event.write.version
    if event.read is not None and event.write is None:
        return "r", event.read.variable, event.read.version
    raise InputError("an event must be either a Read or a Write", where=where, hint=JSON_HINT)


# --- text

TEXT_HINT = "write [x:=1 y==1 z==?], with ! behind if it aborted, and --- between sessions"

_TEXT_SEPARATOR = re.compile(r"\s*-+\s*")
_TEXT_TXN = re.compile(r"\s*\[([^\[\]]*)\](!?)\s*")
_TEXT_EVENT = re.compile(r"\s*([A-Za-z0-9_]+)\s*(?::=\s*([0-9]+)|==\s*([0-9]+|\?))(?=\s|$)\s*")


def read_text(source: Source) -> RawColumns:
    """Return the raw columns of dbcop text: ``[x:=1 y==0] [z==?]!``, one transaction per bracket.

    ``:=`` writes, ``==`` reads, ``==?`` reads the initial state, ``]!`` ends an aborted transaction. Each line of
    dashes begins another session, so sessions may be empty. Comments begin with ``//``.
    """
    session = 0
    txns: list[DbcopTxn] = []
    for number, line in numbered_lines(source):
        text = line.partition("//")[0]
        if _TEXT_SEPARATOR.fullmatch(text):
            session += 1
        elif text.strip():
            _read_text_line(text, number, session, txns)
    return to_columns(session + 1, txns)


def _read_text_line(text: str, number: int, session: int, txns: list[DbcopTxn]) -> None:
    at = 0
    while at < len(text):
        match = _TEXT_TXN.match(text, at)
        if match is None:
            raise InputError(f"not a transaction: {excerpt(text[at:])}", where=f"line {number}", hint=TEXT_HINT)
        txns.append(DbcopTxn(session, _text_events(match[1], number), not match[2], number))
        at = match.end()


def _text_events(text: str, number: int) -> list[Operation]:
    ops: list[Operation] = []
    text = text.strip()
    at = 0
    while at < len(text):
        match = _TEXT_EVENT.match(text, at)
        if match is None:
            raise InputError(f"not an event: {excerpt(text[at:])}", where=f"line {number}", hint=TEXT_HINT)
        variable, written, seen = match.groups()
        if written is not None:
            ops.append(("w", variable, natural(written, number)))
        else:
            ops.append(("r", variable, None if seen == "?" else natural(seen, number)))
        at = match.end()
    return ops


# --- YAML

YAML_HINT = "only dbcop's own dump of sessions, transactions and events is read_yaml; convert other YAML to JSON"

# Patterns for lines without trailing space.
_NO_CONTENT = re.compile(r"\s*#.*|---|")
_EMPTY_HISTORY = re.compile(r"\[\s*\]")
_EMPTY_SESSION = re.compile(r"- \[\s*\]")
_YAML_TXN = re.compile(r"(- |  )- events:(\s*\[\s*\])?")
_YAML_TXN_SUCCESS = re.compile(r"    success:\s+(true|false)")
# The lines of an event, in the order of its fields.
_YAML_FIELDS = (
    re.compile(r"    - write:\s+(true|false)"),
    re.compile(r"      variable:\s+([0-9]+)"),
    re.compile(r"      value:\s+([0-9]+)"),
    re.compile(r"      success:\s+(true|false)"),
)


def read_yaml(source: Source) -> RawColumns:
    """Return the raw columns of dbcop YAML, only in the shape in which serde writes a list of sessions:

        - - events:
            - write: true
              variable: 0
              value: 1
              success: true
            success: true

    ``- - events:`` begins a session, ``  - events:`` another transaction of it. ``[]`` replaces an empty list of events
    or transactions. Other YAML is rejected.
    """
    parser = _YamlParser()
    for number, line in numbered_lines(source):
        line = line.rstrip()
        if not _NO_CONTENT.fullmatch(line):
            parser.take(line, number)
    return parser.finish()


class _YamlParser:
    """Takes the file line by line; ``begun`` is the line of the open transaction, 0 between transactions."""

    def __init__(self) -> None:
        self.sessions = 0
        self.txns: list[DbcopTxn] = []
        self.begun = 0
        self.events: list[tuple[bool, int, int, bool]] = []
        self.fields: list[int] = []  # values of the open event

    def take(self, line: str, number: int) -> None:
        taken = self._in_txn(line, number) if self.begun else self._between_txns(line, number)
        if not taken:
            raise InputError(f"not expected here: {excerpt(line)}", where=f"line {number}", hint=YAML_HINT)

    def finish(self) -> RawColumns:
        if self.begun:
            raise InputError("the file ends inside a transaction", where=f"line {self.begun}", hint="it was cut off")
        return to_columns(self.sessions, self.txns)

    def _between_txns(self, line: str, number: int) -> bool:
        if _EMPTY_HISTORY.fullmatch(line):
            return not self.sessions
        if _EMPTY_SESSION.fullmatch(line):
            self.sessions += 1
            return True
        match = _YAML_TXN.fullmatch(line)
        if match is None or (match[1] == "  " and not self.sessions):
            return False
        self.sessions += match[1] == "- "
        self.begun = number
        return True

    def _in_txn(self, line: str, number: int) -> bool:
        match = _YAML_FIELDS[len(self.fields)].fullmatch(line)
        if match is not None:
            self.fields.append(match[1] == "true" if match[1] in ("true", "false") else natural(match[1], number))
            if len(self.fields) == len(_YAML_FIELDS):
                write, variable, value, success = self.fields
                self.events.append((bool(write), variable, value, bool(success)))
                self.fields = []
            return True
        match = None if self.fields else _YAML_TXN_SUCCESS.fullmatch(line)
        if match is None:
            return False
        committed = match[1] == "true"
        self.txns.append(
            DbcopTxn(self.sessions - 1, effective_operations(self.events, committed), committed, self.begun)
        )
        self.begun, self.events = 0, []
        return True


# --- writers

JSON_TARGET, BINCODE_TARGET = "dbcop JSON_TARGET", "dbcop bincode"
_WHEN = "1970-01-01T00:00:00+00:00"  # the header requires dates, which a history does not have


def write_json(history: History) -> Rendered:
    """Return the history as dbcop JSON, with its wrapper object."""
    _require(history, JSON_TARGET, (0, None))
    spelling = Spelling(
        opens=(b'["r",', b'["w",', b"", b""),
        key=lambda atom: b"%d" % integer(atom, "key", JSON_TARGET),
        middle=b",",
        value=lambda atom: b"%d" % integer(atom, "value", JSON_TARGET),
        initial=b"null",
        heads=_json_heads(history),
        tails=_json_tails(history),
        closes=b"]",
        comma=b",",
    )
    params = b'{"id":0,"n_node":%d,"n_variable":%d,"n_transaction":%d,"n_event":%d}' % _sizes(history)
    before = b'{"params":%b,"info":"isocheck","start":"%b","end":"%b","data":[' % (params, *[_WHEN.encode()] * 2)
    last = int(history.txn_session[-1]) if history.transactions else -1
    rest = b",".join([b"[]"] * (history.sessions - 1 - last))
    glue = b"," if rest and last >= 0 else b""
    return Rendered(render(history, spelling, before, glue + rest + b"]}\n"), _notes(history))


def write_bincode(history: History) -> Rendered:
    """Return the history as dbcop bincode, which PolySI and others read."""
    _require(history, BINCODE_TARGET, (0,))
    success = [b"\1" if status == COMMITTED else b"\0" for status in history.txn_status.tolist()]
    spelling = Spelling(
        opens=(b"\0", b"\1", b"", b""),
        key=lambda atom: _u64(integer(atom, "key", BINCODE_TARGET)),
        middle=b"",
        value=lambda atom: _u64(integer(atom, "value", BINCODE_TARGET)),
        initial=_u64(0),
        heads=_bincode_heads(history),
        tails=success,
        closes=b"\1",  # done, even if its transaction aborted: a failed read would be skipped
    )
    header = b"".join(map(_u64, (0, *_sizes(history))))
    header += b"".join(_u64(len(text)) + text.encode() for text in ("isocheck", _WHEN, _WHEN))
    last = int(history.txn_session[-1]) if history.transactions else -1
    after = _u64(0) * (history.sessions - 1 - last)
    return Rendered(render(history, spelling, header + _u64(history.sessions), after), _notes(history))


def _require(history: History, target: str, initials: tuple[Atom, ...]) -> None:
    require(history, target, lists=False, unknown=False, empty=True, levels=False)
    require_initial(history, target, initials)


def _notes(history: History) -> list[str]:
    return lost_names(history, ids=False, sessions=False) + lost_times(history) + lost_nodes(history)


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _sizes(history: History) -> tuple[int, int, int, int]:
    """Return the numbers of sessions and keys, and the largest numbers of transactions per session and operations per
    transaction.
    """
    most_txns = int(np.max(np.diff(history.session_start), initial=0))
    most_ops = int(np.max(np.diff(history.txn_start), initial=0))
    return history.sessions, len(history.key_code), most_txns, most_ops


def _opened_sessions(history: History) -> Iterator[tuple[int, list[int]]]:
    """Yield each transaction with the sessions that open before it: empty ones, and its own if it is the first."""
    previous = -1
    for t, s in enumerate(history.txn_session.tolist()):
        yield t, list(range(previous + 1, s + 1))
        previous = s


def _json_heads(history: History) -> Iterator[bytes]:
    for t, opened in _opened_sessions(history):
        opening = b",".join([b""] * (t > 0) + [b"[]"] * (len(opened) - 1) + [b"["]) if opened else b","
        yield opening + b'{"events":['


def _json_tails(history: History) -> Iterator[bytes]:
    for t in range(history.transactions):
        last = t + 1 == history.transactions or history.txn_session[t + 1] != history.txn_session[t]
        committed = b"true" if history.txn_status[t] == COMMITTED else b"false"
        yield b'],"committed":' + committed + (b"}]" if last else b"}")


def _bincode_heads(history: History) -> Iterator[bytes]:
    counts = np.diff(history.session_start).tolist()
    lengths = np.diff(history.txn_start).tolist()
    for t, opened in _opened_sessions(history):
        yield b"".join(_u64(counts[s]) for s in opened) + _u64(lengths[t])
