"""dbcop text: ``[x:=1 y==0] [z==?]!``, transactions in brackets, sessions separated by lines of dashes.

``:=`` writes, ``==`` reads, ``==?`` reads the initial state, ``]!`` ends a transaction that did not commit. There is
always a first session, and each line of dashes begins another, so sessions may be empty. Comments begin with ``//``.
"""

import re

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.formats.dbcop_common import DbcopTxn, Operation, to_columns
from plume_py.history.formats.reading import excerpt, natural, numbered_lines
from plume_py.history.source import Source

HINT = "write [x:=1 y==1 z==?], with ! behind if it aborted, and --- between sessions"

_SEPARATOR = re.compile(r"\s*-+\s*")
_TXN = re.compile(r"\s*\[([^\[\]]*)\](!?)\s*")
_EVENT = re.compile(r"\s*([A-Za-z0-9_]+)\s*(?::=\s*([0-9]+)|==\s*([0-9]+|\?))(?=\s|$)\s*")


def read(source: Source) -> RawColumns:
    """The raw columns of a dbcop text file."""
    session = 0
    txns: list[DbcopTxn] = []
    for number, line in numbered_lines(source):
        text = line.partition("//")[0]
        if _SEPARATOR.fullmatch(text):
            session += 1
        elif text.strip():
            _read_line(text, number, session, txns)
    return to_columns(session + 1, txns)


def _read_line(text: str, number: int, session: int, txns: list[DbcopTxn]) -> None:
    at = 0
    while at < len(text):
        match = _TXN.match(text, at)
        if match is None:
            raise InputError(f"not a transaction: {excerpt(text[at:])}", where=f"line {number}", hint=HINT)
        txns.append(DbcopTxn(session, _events(match[1], number), not match[2], number))
        at = match.end()


def _events(text: str, number: int) -> list[Operation]:
    ops: list[Operation] = []
    text = text.strip()
    at = 0
    while at < len(text):
        match = _EVENT.match(text, at)
        if match is None:
            raise InputError(f"not an event: {excerpt(text[at:])}", where=f"line {number}", hint=HINT)
        variable, written, seen = match.groups()
        if written is not None:
            ops.append(("w", variable, natural(written, number)))
        else:
            ops.append(("r", variable, None if seen == "?" else natural(seen, number)))
        at = match.end()
    return ops
