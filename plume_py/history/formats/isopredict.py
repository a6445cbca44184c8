"""Read IsoPredict traces: ``WRITE KEY[x] Txn(1, 0)``, ``READ KEY[x] Txn(2, 0) From(1, 0)``, one event per line.

``Txn(s, i)`` is transaction i of session s. A trace has no values, because a read names its writer; the value of a
write is its transaction, "1,0". ``Txn(0, 0)`` is the initial state: its writes are skipped, and a read from it returns
null. The indices order a session, since a trace may list its transactions in commit order. The events of a transaction
keep the order of their lines. Keys are strings, even if they look like numbers.

A set is one register per member. ``INSERT[k] to Set[s] Txn(1, 0)`` and ``DELETE[k] from Set[s] Txn(1, 0)`` write the
key "Set(s:k)"; ``CONTAINS[k] in Set[s] From(1, 0) Txn(2, 0)`` reads it.
"""

import re
from collections.abc import Sequence

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.reading import excerpt, natural, numbered_lines
from plume_py.history.source import Source

HINT = "write READ KEY[key] Txn(session, index) From(session, index) or WRITE KEY[key] Txn(session, index)"

INITIAL_TXN = (0, 0)

_TXN = r"\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)"
_EVENT = re.compile(rf"\s*(READ|WRITE)\s+KEY\[([^\[\]]*)\]\s+Txn{_TXN}(?:\s+From{_TXN})?\s*")
_MEMBER = r"\[([^\[\]]*)\]"
_SET_EVENT = re.compile(
    rf"\s*(?:INSERT{_MEMBER}\s+to|DELETE{_MEMBER}\s+from|CONTAINS{_MEMBER}\s+in)\s+Set{_MEMBER}"
    rf"(?:\s+From{_TXN})?\s+Txn{_TXN}\s*"
)
_SET = re.compile(r"\s*(INSERT|CONTAINS|DELETE)\b")
SET_HINT = (
    "write INSERT[member] to Set[set] Txn(session, index), DELETE[member] from Set[set] Txn(session, index) or"
    " CONTAINS[member] in Set[set] From(session, index) Txn(session, index)"
)

TxnId = tuple[int, int]


class _Txn:
    """The operations of a transaction and the line on which it begins."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.ops: list[tuple[str, str, str | None]] = []


def read(source: Source) -> RawColumns:
    """Return the raw columns of an IsoPredict trace."""
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
    where = f"line {number}"
    if _SET.match(line):
        key, txn, writer = _set_event(line, number)
    else:
        key, txn, writer = _register_event(line, number)
    if writer is None:
        return txn, ("w", key, _spell(txn))
    if txn == INITIAL_TXN:
        raise InputError("Txn(0, 0) is the initial state and cannot read", where=where, hint="give it another number")
    return txn, ("r", key, None if writer == INITIAL_TXN else _spell(writer))


def _register_event(line: str, number: int) -> tuple[str, TxnId, TxnId | None]:
    match = _EVENT.fullmatch(line)
    if match is None:
        raise InputError(f"not an event: {excerpt(line)}", where=f"line {number}", hint=HINT)
    kind, key, *numbers = match.groups()
    if (kind == "READ") != (numbers[2] is not None):
        raise InputError(f"a READ has a From, a WRITE has none: {excerpt(line)}", where=f"line {number}", hint=HINT)
    return key, _txn(numbers[:2], number), None if kind == "WRITE" else _txn(numbers[2:], number)


def _set_event(line: str, number: int) -> tuple[str, TxnId, TxnId | None]:
    match = _SET_EVENT.fullmatch(line)
    if match is None:
        raise InputError(f"not an event of a set: {excerpt(line)}", where=f"line {number}", hint=SET_HINT)
    inserted, deleted, asked, name, *numbers = match.groups()
    if (asked is not None) != (numbers[0] is not None):
        problem = f"a CONTAINS has a From, INSERT and DELETE have none: {excerpt(line)}"
        raise InputError(problem, where=f"line {number}", hint=SET_HINT)
    member = next(member for member in (inserted, deleted, asked) if member is not None)
    writer = None if asked is None else _txn(numbers[:2], number)
    return f"Set({name}:{member})", _txn(numbers[2:], number), writer


def _txn(numbers: Sequence[str], line: int) -> TxnId:
    return natural(numbers[0], line), natural(numbers[1], line)


def _spell(txn: TxnId) -> str:
    return f"{txn[0]},{txn[1]}"
