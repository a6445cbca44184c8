"""dbcop's binary format (history.bincode): parameters, three strings, then sessions of transactions of events.

A read of 0 that nobody wrote sees the initial state. A transaction whose flag is false is aborted and keeps its place
in its session. Of the events that failed, reads are left out everywhere, since they saw nothing; writes are left out of
committed transactions, since they are not among their effects (and clients retry them with the same value), and kept in
aborted ones, all of whose writes are aborted anyway.
"""

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.formats import dbcop_bincode_kernels as kernels
from plume_py.history.model import Int64s
from plume_py.history.source import Source
from plume_py.history.value_codes import Atoms

CUT_HINT = "the file was cut off, or is not dbcop's binary format"
PROBLEMS = {
    kernels.CUT_OFF: ("the file ends too early", CUT_HINT),
    kernels.TOO_LONG: ("a length is larger than the rest of the file", CUT_HINT),
    kernels.NOT_A_BOOL: ("a flag is neither 0 nor 1", "the file is damaged, or is not dbcop's binary format"),
    kernels.TRAILING: ("something follows the last session", "the file must end there"),
}


def read(source: Source) -> RawColumns:
    """The raw columns of a dbcop bincode file."""
    content = source.content()
    if not content:
        raise InputError("the file is empty", hint=CUT_HINT)
    dispatch.prepare(len(content), kernels)
    # upper bounds: what is not used is never touched, and so costs no memory
    events, txns = len(content) // kernels.EVENT, len(content) // kernels.TXN
    kinds, keys, values = np.empty(events, np.uint8), np.empty(events, np.int64), np.empty(events, np.int64)
    op_txn, txn_session, txn_aborted = np.empty(events, np.int32), np.empty(txns, np.int32), np.empty(txns, np.uint8)
    buf = dispatch.byte_buffer(content, kernels)
    ops, transactions, sessions, problem, at = kernels.parse(buf, kinds, keys, values, op_txn, txn_session, txn_aborted)
    if problem:
        what, hint = PROBLEMS[problem]
        raise InputError(what, where=f"byte {at}", hint=hint)
    return RawColumns(
        op_kind=kinds[:ops],
        op_key=keys[:ops],
        op_value=values[:ops],
        op_txn=op_txn[:ops],
        txn_session=txn_session[:transactions].copy(),
        txn_status=txn_aborted[:transactions].copy(),
        sessions=sessions,
        keys=_atoms(keys[:ops]),
        values=_atoms(values[:ops]),
        initial=0,
    )


def _atoms(codes: Int64s) -> Atoms:
    """Numbers from 2**63 on have the pattern of a negative one."""
    return Atoms(unsigned=bool(np.any(codes < 0)))
