"""Native JSON: ``{"initial": 0, "sessions": [[{"ops": [["w", "x", 1]]}]]}``."""

from typing import Annotated, Literal

import msgspec

from plume_py.base.errors import InputError
from plume_py.base.json_names import given, most_names, reject_same_names
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.bulk_parser import json_grammar
from plume_py.history.formats.json_common import decode, no_collector
from plume_py.history.source import Buffer, Source

# Transactions whose fields are counted together.
COUNTED = 1 << 12

Key = int | str
Value = int | str | None | list[int | str | None]
Operation = tuple[Literal["r", "w", "append"], Key, Value]

HINT = 'see `isocheck formats`; an operation is ["r", key, value], ["w", key, value] or ["append", key, value]'


_TIMES = "take all times from one clock, in whole numbers such as nanoseconds"


def hint(path: str) -> str:
    """What to do about a problem at ``path``."""
    return _TIMES if path.rpartition(".")[2] in ("start", "end", "ticks_per_second") else HINT


Ticks = Annotated[int, msgspec.Meta(gt=0)]


# Equal to what a file gives, but another object: so it shows which fields are given.
COMMITTED = str(b"committed", "ascii")
ABSENT = msgspec.Raw(b"null")


class NativeTxn(msgspec.Struct, gc=False):
    """A transaction of the native formats; the last fields are read only to be counted."""

    ops: list[Operation]
    status: Literal["committed", "aborted", "unknown"] = COMMITTED  # type: ignore[assignment]
    level: str | None = None
    id: int | str | None = None
    start: int | None = None
    end: int | None = None
    node: msgspec.Raw = ABSENT
    isolation: msgspec.Raw = ABSENT
    during: msgspec.Raw = ABSENT
    sql: msgspec.Raw = ABSENT


# The fields that a transaction may have, and what they are if it has not.
OPTIONAL: dict[str, object] = {
    **dict.fromkeys(("level", "id", "start", "end")),
    "status": COMMITTED,
    **dict.fromkeys(("node", "isolation", "during", "sql"), ABSENT),
}


class NativeDocument(msgspec.Struct, gc=False):
    """The whole file; unknown fields are ignored."""

    sessions: list[list[NativeTxn]]
    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ticks_per_second: Ticks | None = None


class Outline(msgspec.Struct, gc=False):
    """The same, its transactions not yet decoded: never are all of them objects at once, and no step takes long."""

    sessions: list[list[msgspec.Raw]]
    initial: Value | msgspec.UnsetType = msgspec.UNSET
    ticks_per_second: Ticks | None = None


def begin(initial: Value | msgspec.UnsetType, per_second: int | None) -> HistoryBuilder:
    """A builder for a file that states its initial value, or does not (and then it is null)."""
    if isinstance(initial, msgspec.UnsetType):
        return HistoryBuilder(None, declared=False, per_second=per_second)
    return HistoryBuilder(initial, per_second=per_second)


_document = msgspec.json.Decoder(NativeDocument)
_outline = msgspec.json.Decoder(Outline)
_txn = msgspec.json.Decoder(NativeTxn)


def read(source: Source) -> RawColumns:
    """The raw columns of a native JSON file."""
    content = source.content()
    columns = _read_at_once(content) if json_grammar.is_large(len(content)) else None
    return _read_one_by_one(content) if columns is None else columns


def _read_at_once(content: Buffer) -> RawColumns | None:
    """By the kernel, if the file has nothing unusual."""
    head = json_grammar.before_sessions(content)
    if head is None:
        return None
    try:
        outline = _outline.decode(head + b"]}")
    except msgspec.DecodeError:
        return None
    reject_same_names(head + b"]}", names=1)
    initial = json_grammar.code_of(outline.initial)
    found = None if initial is None else json_grammar.read_sessions(content, len(head), initial)
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
        outline = decode(_outline, content, hint=hint)
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
            session.clear()  # let go of the text as its columns are made
        if counts:
            reject_same_names(content, names + len(txns), (txns, OPTIONAL))
        return builder.columns()


def _decoded(text: msgspec.Raw, content: Buffer) -> NativeTxn:
    """A transaction; what is wrong with it is told by its place in the whole file."""
    try:
        return _txn.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        decode(_document, content, hint=hint)
        raise
