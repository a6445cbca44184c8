"""Large files of Plume text, by an automaton.

It finds *runs*: operations of one transaction that follow each other. What it leaves to the kernel of the format are
numbers beyond 63 bits, leading zeros, and whatever is wrong.
"""

from functools import cache
from typing import Any

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.history import assemble_kernels
from plume_py.history.assemble import RawColumns
from plume_py.history.formats.bulk_parser import automaton_kernels as kernels
from plume_py.history.formats.bulk_parser.grammar import Automaton, BulkGrammar, Point, constant
from plume_py.history.formats.bulk_parser.parser import Columns, Size, count, is_worth_it, read
from plume_py.history.intern import first_places, intern_keys, intern_versions
from plume_py.history.model import READ, WRITE, Int32s, Int64s, Labels
from plume_py.history.source import Buffer
from plume_py.history.value_codes import Atoms

# Plain Python's loop steps per byte of text.
STEPS = 3

ABORTED_ID = -1

# Fields of a run: its first operation, its line, its session and its transaction.
_FIELDS = 4
_SHORTEST_LINE = len("r(1,1,1,1)\n")


def is_large(size: int) -> bool:
    """Are so many bytes worth the automaton?"""
    return is_worth_it(STEPS * size)


def read_text(content: Buffer) -> RawColumns | None:
    """The raw columns; None if there is anything unusual."""
    columns = read(_text(), content, 0, _FIELDS, _measure, {kernels.LINE: 1})
    return None if columns is None else _raw(columns)


def _measure(buf: Any, start: int, stop: int) -> Size:
    # the last line may have no end
    lines = min(count(buf, b"\n", start, stop) + (stop == len(buf)), (stop - start) // _SHORTEST_LINE + 1)
    return Size(lines, lines)


def _raw(columns: Columns) -> RawColumns | None:
    ops = int(columns.n[kernels.OPS])
    first_op, line, name, id = (columns.row(kernels.FIRST_OP + i) for i in range(_FIELDS))
    dispatch.prepare(6 * len(id), assemble_kernels)
    session, session_names = intern_keys(name)
    run_txn, txn_id = _transactions(session, id, len(session_names))
    first = first_places(run_txn, len(txn_id))
    if np.any(session[first][run_txn] != session):
        return None
    return RawColumns(
        op_kind=columns.kinds[:ops],
        op_key=columns.keys[:ops],
        op_value=columns.values[:ops],
        op_txn=np.repeat(run_txn, np.diff(first_op, append=ops)),
        txn_session=session[first],
        txn_status=(txn_id == ABORTED_ID).astype(np.uint8),
        sessions=len(session_names),
        keys=Atoms(),
        values=Atoms(),
        initial=0,
        txn_line=line[first].astype(np.int32),
        txn_label=Labels(txn_id),
        session_label=Labels(session_names),
    )


def _transactions(session: Int32s, id: Int64s, sessions: int) -> tuple[Int32s, Int64s]:
    """The transaction of each run, and the id of each transaction: one for all that aborted in a session."""
    aborted = id == ABORTED_ID
    runs, _, ids = intern_versions(np.where(aborted, session + 1, 0).astype(np.int32), id, sessions + 1, None)
    return runs, ids


@cache
def _text() -> BulkGrammar:
    """The usual file."""
    usual = Automaton(b" \t\r", newline=False)
    line = usual.point(kernels.COUNT, kernels.LINE)
    usual.word(line, b"\n", line)
    after_op = usual.point(kernels.RUN)
    usual.word(after_op, b"\n", line)
    comment = usual.bare()
    usual.word(line, b"#", comment)
    usual.loop(comment, bytes(byte for byte in range(256) if byte != 10))
    usual.word(comment, b"\n", line)
    at: Point = ()
    for word, kind in ((b"r(", READ), (b"w(", WRITE)):
        at += usual.word(line, word, usual.bare(kernels.SET, constant(kernels.KIND, kind)))
    for register in (kernels.KEY, kernels.VALUE, kernels.SESSION, kernels.ID):
        number = usual.number(at, usual.bare(kernels.NUMBER, register))
        at = usual.word(number, b",", usual.bare()) if register != kernels.ID else number
    usual.word(at, b")", after_op)
    return BulkGrammar(usual.tables(), line[1], (*line, *after_op, *comment), b"\n", line[1])
