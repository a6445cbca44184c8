"""Plume text, also written by PolySI and IsoVista: ``w(key,value,session,txn)``, one operation per line.

Transaction -1 collects the aborted operations of a session. A read of 0 that nobody wrote sees the initial state.
Blank lines and ``#`` comments are allowed; the lines of a transaction need not be contiguous.
"""

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.formats import text_kernels as kernels
from plume_py.history.formats.bulk_parser import plume_grammar
from plume_py.history.intern import SECRET
from plume_py.history.model import Labels
from plume_py.history.source import Buffer, Source
from plume_py.history.value_codes import Atoms

PROBLEMS = {
    kernels.NOT_AN_OPERATION: ("not an operation", "write r(key,value,session,txn) or w(key,value,session,txn)"),
    kernels.NUMBER_TOO_LARGE: ("a number does not fit in 64 bits", "use smaller numbers"),
    kernels.TWO_SESSIONS: ("this transaction id was used in another session before", "make ids unique"),
}


def read(source: Source) -> RawColumns:
    """The raw columns of a Plume text file."""
    content = source.content()
    columns = plume_grammar.read_text(content) if plume_grammar.is_large(len(content)) else None
    return _read_all(content) if columns is None else columns


def _read_all(content: Buffer) -> RawColumns:
    """The same for files in which there is something unusual, or small ones."""
    dispatch.prepare(plume_grammar.STEPS * len(content), kernels)
    buf = dispatch.byte_buffer(content, kernels)
    lines = kernels.count_lines(buf)
    kinds, keys, values = np.empty(lines, np.uint8), np.empty(lines, np.int64), np.empty(lines, np.int64)
    txns, txn_ids, txn_sessions = np.empty(lines, np.int32), np.empty(lines, np.int64), np.empty(lines, np.int32)
    txn_lines, txn_aborted, session_ids = (
        np.empty(lines, np.int32),
        np.empty(lines, np.uint8),
        np.empty(lines, np.int64),
    )
    ops, transactions, sessions, flags, problem, at = kernels.parse(
        buf, SECRET, kinds, keys, values, txns, txn_ids, txn_sessions, txn_lines, txn_aborted, session_ids
    )
    if problem:
        raise _error(content, problem, at)
    labels = np.where(txn_aborted[:transactions] == 1, -1, txn_ids[:transactions])
    return RawColumns(
        op_kind=kinds[:ops],
        op_key=keys[:ops],
        op_value=values[:ops],
        op_txn=txns[:ops],
        txn_session=txn_sessions[:transactions].copy(),
        txn_status=txn_aborted[:transactions].copy(),
        sessions=sessions,
        keys=_atoms(flags & 3, "key"),
        values=_atoms(flags >> 2, "value"),
        initial=0,
        txn_line=txn_lines[:transactions].copy(),
        txn_label=Labels(labels),
        session_label=Labels(session_ids[:sessions].copy()),
    )


def _atoms(flags: int, what: str) -> Atoms:
    if flags == 3:
        raise InputError(f"a {what} is negative and another needs all 64 bits", hint="use one or the other")
    return Atoms(unsigned=flags == 2)


def _error(content: Buffer, problem: int, at: int) -> InputError:
    line = content[:at].count(b"\n") + 1
    end = content.find(b"\n", at)
    text = content[at : end if 0 <= end < at + 60 else at + 60].decode("utf-8", "replace").rstrip("\r")
    what, hint = PROBLEMS[problem]
    return InputError(f"{what}: {text!r}", where=f"line {line}", hint=hint)
