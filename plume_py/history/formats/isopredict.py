"""IsoPredict traces: ``WRITE KEY[x] Txn(1, 0)`` and ``READ KEY[x] Txn(2, 0) From(1, 0)``, one event per line.

``Txn(s, i)`` is transaction i of session s. There are no values, as a read names its writer; a write therefore gets the
spelling of its transaction, "1,0", as its value. ``Txn(0, 0)`` is the initial state: its writes are left out, and a
read from it sees null. The indices order a session, not the lines, because a trace may list its transactions in commit
order; the events of a transaction keep the order of their lines. Keys stay strings even when they look like numbers.
"""

import re

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.text_common import excerpt, natural, numbered_lines
from plume_py.history.source import Source

HINT = "write READ KEY[key] Txn(session, index) From(session, index) or WRITE KEY[key] Txn(session, index)"

INITIAL_TXN = (0, 0)

_TXN = r"\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)"
_EVENT = re.compile(rf"\s*(READ|WRITE)\s+KEY\[([^\[\]]*)\]\s+Txn{_TXN}(?:\s+From{_TXN})?\s*")
_SET_EVENT = re.compile(r"\s*(INSERT|CONTAINS|DELETE)\b")

TxnId = tuple[int, int]


class _Txn:
    """A transaction and the line on which it begins."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.ops: list[tuple[str, str, str | None]] = []


def read(source: Source) -> RawColumns:
    """The raw columns of an IsoPredict trace."""
    sessions: dict[int, dict[int, _Txn]] = {}
    for number, line in numbered_lines(source):
        if line.strip():
            (session, index), op = _event(line, number)
            if (session, index) != INITIAL_TXN:
                txns = sessions.setdefault(session, {})
                txns.setdefault(index, _Txn(number)).ops.append(op)
    builder = HistoryBuilder(None)
    for session, txns in sessions.items():
        for index in sorted(txns):
            builder.add(session, txns[index].ops, id=_spell((session, index)), line=txns[index].line)
    return builder.columns()


def _event(line: str, number: int) -> tuple[TxnId, tuple[str, str, str | None]]:
    match = _EVENT.fullmatch(line)
    where = f"line {number}"
    if match is None:
        if _SET_EVENT.match(line):
            raise InputError(
                f"operations on sets are not supported: {excerpt(line)}", where=where, hint="only READ and WRITE are"
            )
        raise InputError(f"not an event: {excerpt(line)}", where=where, hint=HINT)
    kind, key, *numbers = match.groups()
    txn = natural(numbers[0], number), natural(numbers[1], number)
    if (kind == "READ") != (numbers[2] is not None):
        raise InputError(f"a READ has a From, a WRITE has none: {excerpt(line)}", where=where, hint=HINT)
    if kind == "WRITE":
        return txn, ("w", key, _spell(txn))
    if txn == INITIAL_TXN:
        raise InputError("Txn(0, 0) is the initial state and cannot read", where=where, hint="give it another number")
    writer = natural(numbers[2], number), natural(numbers[3], number)
    return txn, ("r", key, None if writer == INITIAL_TXN else _spell(writer))


def _spell(txn: TxnId) -> str:
    return f"{txn[0]},{txn[1]}"
