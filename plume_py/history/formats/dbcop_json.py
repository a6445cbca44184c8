"""dbcop JSON: ``[[{"events": [["w", 0, 1]], "committed": true}]]``, bare or as ``data`` of a wrapper with parameters.

An event is a triple, or ``{"Write": {"variable": 0, "version": 1}}``. A transaction that is not committed is aborted.
"""

from typing import Annotated, Literal

import msgspec

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.history.assemble import RawColumns
from plume_py.history.formats.dbcop_common import DbcopTxn, Operation, to_columns
from plume_py.history.formats.reading import decode, no_collector
from plume_py.history.source import Buffer, Source

Natural = Annotated[int, msgspec.Meta(ge=0)]
Variable = Natural | str
Triple = tuple[Literal["r", "w"], Variable, Natural | None]

HINT = 'an event is ["r", variable, version], ["w", variable, version] or {"Read"|"Write": {"variable", "version"}}'


class DbcopEvent(msgspec.Struct, gc=False):
    """What an event of the tagged form reads or writes."""

    variable: Variable
    version: Natural | None = None


class Tagged(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An event of the tagged form: exactly one of the two."""

    read: DbcopEvent | None = msgspec.field(default=None, name="Read")
    write: DbcopEvent | None = msgspec.field(default=None, name="Write")


class DbcopTransaction(msgspec.Struct, gc=False):
    """A transaction; unknown fields are ignored."""

    events: list[Triple | Tagged]
    committed: bool


Sessions = list[list[DbcopTransaction]]


class DbcopDocument(msgspec.Struct, gc=False):
    """The wrapper; its parameters and times say nothing that the data does not."""

    data: Sessions


class DbcopOutline(msgspec.Struct, gc=False):
    """The wrapper, its data not decoded."""

    data: msgspec.Raw


_outline = msgspec.json.Decoder(DbcopOutline)
_decoder: "msgspec.json.Decoder[DbcopDocument | Sessions]" = msgspec.json.Decoder(DbcopDocument | Sessions)


def read(source: Source) -> RawColumns:
    """The raw columns of a dbcop JSON file."""
    content = source.content()
    with no_collector():
        document = decode(_decoder, content, hint=HINT)
        _reject_same_names(content, document)
        sessions, path = (document.data, "data") if isinstance(document, DbcopDocument) else (document, "")
        txns = [
            DbcopTxn(s, _operations(txn.events, f"{path}[{s}][{t}]"), txn.committed)
            for s, session in enumerate(sessions)
            for t, txn in enumerate(session)
        ]
        return to_columns(len(sessions), txns)


def _reject_same_names(content: Buffer, document: DbcopDocument | Sessions) -> None:
    """Count the names in the sessions, and parse the wrapper around them again, which is small."""
    sessions = document.data if isinstance(document, DbcopDocument) else document
    names = sum(2 + sum(map(_names, txn.events)) for session in sessions for txn in session)
    if isinstance(document, DbcopDocument):
        data = bytes(_outline.decode(content).data)
        try:
            reject_same_names(bytes(content).replace(data, b"[]", 1))
            reject_same_names(data, names)
            return
        except InputError:  # the position is that in the whole file
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
            raise InputError("a write without a version", where=where, hint=HINT)
    return ops


def _from_tagged(event: Tagged, where: str) -> Operation:
    if event.write is not None and event.read is None:
        return "w", event.write.variable, event.write.version
    if event.read is not None and event.write is None:
        return "r", event.read.variable, event.read.version
    raise InputError("an event must be either a Read or a Write", where=where, hint=HINT)
