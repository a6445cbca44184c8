"""Read Viper logs: a folder of J<n>.log, one session each, a transaction ``{"value": [["w", 5, 1, true]]}`` per line.

The fourth field of an operation has several meanings. IsoVista writes whether the transaction succeeded. Viper's own
benchmarks mark a dead read with it, and put a previous value there in a write. So only a write with the literal
``false`` is certain: its transaction aborted. On reads the field is ignored, so a transaction that only reads always
counts as committed. The reader rejects ranges and deletes.

Each key has its own initial value. A transaction with ``"isInitial": true`` states it for the keys that it writes or
reads, also by one range; it is the initial state and no transaction of the history. The initial value of any other key
is the only value that reads returned and no transaction wrote. Without such a value, these reads are thin-air reads.

Transactions have no line numbers, because "line 3" would not name the file.
"""

import os
from typing import Any

import msgspec

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.reading import decode, display, log_names, no_collector, numbered_lines, open_log
from plume_py.history.source import Source
from plume_py.history.value_codes import Atom

HINT = 'a line is {"value": [["r", key, value, flag], ["w", key, value, flag]]}'
LOGS = r"J[0-9]+\.log"

# Viper's value for a key without a value.
NO_VALUE = 0


class ViperLine(msgspec.Struct, gc=False):
    """A transaction; unknown fields are ignored."""

    value: list[list[Any]]
    isInitial: bool | None = None  # noqa: N815


_decoder = msgspec.json.Decoder(ViperLine)


def read(source: Source) -> RawColumns:
    """Return the raw columns of a folder of Viper logs."""
    folder, names = _find_logs(source)
    initials: dict[Atom, Atom] = {}
    builder = HistoryBuilder(None, declared=False, initials=initials)
    with no_collector():
        for name in names:
            with open_log(folder, name) as log:
                _read_log(log, builder, initials, display(name).removesuffix(".log"))
        columns = builder.columns()
    columns.initial_seen, columns.initial_fixed = True, bool(initials)
    return columns


def _find_logs(source: Source) -> tuple[str, list[str]]:
    """Return the folder of the logs and their names: the folder itself, or a folder "json" in it."""
    if not source.is_folder:
        raise InputError("not a folder", hint="a Viper history is a folder of J*.log")
    inner = os.path.join(source.path, "json")
    for folder in (source.path, inner):
        names = log_names(folder, LOGS) if os.path.isdir(folder) else []
        if names:
            return folder, names
    raise InputError("no J*.log in this folder", hint="a Viper history is a folder of J*.log")


def _read_log(log: Source, builder: HistoryBuilder, initials: dict[Atom, Atom], session: str) -> None:
    builder.session(session)
    begun = False
    for number, line in numbered_lines(log):
        if not line.strip():
            continue
        txn = _decode(line, number)
        aborted = any(op[:1] == ["w"] and len(op) > 3 and op[3] is False for op in txn.value)
        if txn.isInitial and not aborted:
            if begun:
                hint = "begin the log with it"
                raise InputError("an initial transaction behind another one", where=f"line {number}", hint=hint)
            _take_initial(txn, number, initials)
            continue
        begun = True
        ops = [_operation(op, number) for op in txn.value]
        builder.add(session, ops, status="aborted" if aborted else "committed")


def _take_initial(txn: ViperLine, number: int, initials: dict[Atom, Atom]) -> None:
    """Add the initial values that an initial transaction writes or reads to ``initials``."""
    own: dict[Atom, Atom] = {}
    for op in txn.value:
        if op[:1] == ["range"]:
            items = op[3] if len(op) > 3 and isinstance(op[3], list) else None
            if items is None or not all(isinstance(item, dict) and {"id", "val"} <= item.keys() for item in items):
                hint = '["range", from, to, [{"id": key, "val": value}]] shows what there is'
                raise InputError(f"not a range: {op!r:.60}", where=f"line {number}", hint=hint)
            shown = [["r", item["id"], item["val"]] for item in items]
        else:
            shown = [op]
        own.update((key, value) for _, key, value in (_operation(one, number) for one in shown))
    for key in own.keys() & initials.keys():
        if own[key] != initials[key]:
            raise InputError(
                f"a second initial value of key {key!r:.60}", where=f"line {number}", hint="give each key one"
            )
    initials.update(own)


def _decode(line: str, number: int) -> ViperLine:
    try:
        txn = decode(_decoder, line.encode(), first_line=number, hint=HINT)
        if line.count(":") > 1 + (txn.isInitial is not None):
            reject_same_names(line.encode(), first_line=number)
        return txn
    except InputError as error:
        if not error.where.startswith("line "):
            error.where = ", ".join(part for part in (f"line {number}", error.where) if part)
        raise


def _operation(op: list[Any], number: int) -> tuple[str, Atom, Atom]:
    where = f"line {number}"
    kind = op[0] if op else None
    if kind not in ("r", "w"):
        if isinstance(kind, str):
            raise InputError(
                f"operation {kind!r:.40} is not supported", where=where, hint='only plain "r" and "w" can be checked'
            )
        raise InputError(f"not an operation: {op!r:.60}", where=where, hint=HINT)
    if len(op) < 3 or type(op[1]) not in (int, str) or type(op[2]) not in (int, str, type(None)):
        raise InputError(f"not an operation: {op!r:.60}", where=where, hint=HINT)
    if kind == "w" and op[2] is None:
        raise InputError("a write without a value", where=where, hint=HINT)
    return kind, op[1], NO_VALUE if op[2] is None else op[2]
