"""Read AWDIT's test format: lines ``w 0 1`` and ``r 0 1``; ``-`` ends a transaction and ``=`` a session.

A run of ``-`` or ``=`` counts once, so there are no empty transactions or sessions. All transactions are committed.
There is no initial state: every value that is read must have been written.
"""

import re

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.reading import excerpt, natural, numbered_lines
from plume_py.history.source import Source

HINT = 'write "r KEY VALUE" or "w KEY VALUE" with unsigned numbers, - between transactions, = between sessions'

_PIECE = re.compile(r"[-=]+|[^-=]+")
_EVENT = re.compile(r"\s*([rw])\s+([0-9]+)\s+([0-9]+)\s*")


def read(source: Source) -> RawColumns:
    """Return the raw columns of a file in AWDIT's test format."""
    builder = HistoryBuilder(implicit_initial=False)
    session, begun = 0, 0
    session_used = False
    ops: list[tuple[str, int, int]] = []
    for number, line in numbered_lines(source):
        for piece in _PIECE.findall(line):
            if piece[0] not in "-=":
                if piece.strip():
                    begun = begun if ops else number
                    ops.append(_event(piece, number))
                continue
            if ops:
                builder.add(session, ops, line=begun)
                session_used, ops = True, []
            if "=" in piece and session_used:
                session, session_used = session + 1, False
    if ops:
        builder.add(session, ops, line=begun)
    return builder.columns()


def _event(piece: str, number: int) -> tuple[str, int, int]:
    match = _EVENT.fullmatch(piece)
    if match is None:
        raise InputError(f"not an event: {excerpt(piece)}", where=f"line {number}", hint=HINT)
    return match[1], natural(match[2], number), natural(match[3], number)
