"""Viper logs: a folder of J<n>.log, one session each, one transaction ``{"value": [["w", 5, 1, true]]}`` per line.

The fourth field of an operation means different things: IsoVista writes whether the transaction succeeded, Viper's own
benchmarks mark a dead read with it and put a previous value there in a write. So only a write with the literal
``false`` says something certain: its transaction aborted. On reads the field is ignored, hence a transaction that only
reads always counts as committed. Ranges and deletes have no counterpart here and are turned down.

Transactions carry no line numbers, because "line 3" would not say of which file.
"""

import os
from typing import Any

import msgspec

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.atoms import Atom
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.json_common import decode, no_collector
from plume_py.history.formats.log_folder import display, log_names, open_log
from plume_py.history.formats.text_common import numbered_lines
from plume_py.history.source import Source

HINT = 'a line is {"value": [["r", key, value, flag], ["w", key, value, flag]]}'
LOGS = r"J[0-9]+\.log"

INITIAL_VALUE = 0


class ViperLine(msgspec.Struct, gc=False):
    """A transaction; unknown fields are ignored."""

    value: list[list[Any]]


_decoder = msgspec.json.Decoder(ViperLine)


def read(source: Source) -> RawColumns:
    """The raw columns of a folder of Viper logs."""
    folder, names = _find_logs(source)
    builder = HistoryBuilder(INITIAL_VALUE, declared=False)
    with no_collector():
        for name in names:
            with open_log(folder, name) as log:
                _read_log(log, builder, display(name).removesuffix(".log"))
        return builder.columns()


def _find_logs(source: Source) -> tuple[str, list[str]]:
    """The logs are in the folder itself, or in a folder "json" inside it."""
    if not source.is_folder:
        raise InputError("not a folder", hint="a Viper history is a folder of J*.log")
    inner = os.path.join(source.path, "json")
    for folder in (source.path, inner):
        names = log_names(folder, LOGS) if os.path.isdir(folder) else []
        if names:
            return folder, names
    raise InputError("no J*.log in this folder", hint="a Viper history is a folder of J*.log")


def _read_log(log: Source, builder: HistoryBuilder, session: str) -> None:
    builder.session(session)
    for number, line in numbered_lines(log):
        if line.strip():
            txn = _decode(line, number)
            ops = [_operation(op, number) for op in txn.value]
            aborted = any(op[0] == "w" and len(op) > 3 and op[3] is False for op in txn.value)
            builder.add(session, ops, status="aborted" if aborted else "committed")


def _decode(line: str, number: int) -> ViperLine:
    try:
        return decode(_decoder, line.encode(), first_line=number, hint=HINT)
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
    return kind, op[1], INITIAL_VALUE if op[2] is None else op[2]
