"""Does the history carry a transaction that sets up its initial state?

Some collectors record one: a first transaction, alone in its session, that writes every key once and reads nothing.
It then IS the initial state, before everything else. It is a transaction like any other, however, if a read saw the
format's own initial value (0, null), which shows that the database began without it, or if the file itself declares an
initial value and this transaction writes another. Jepsen's formats have an initial state of their own, nil, which no
transaction ever sets up: there a first transaction that writes every key is a client's, unless the user says otherwise.
"""

from typing import Literal

import numpy as np

from plume_py.base.errors import InputError
from plume_py.history.model import COMMITTED, NOBODY, READ_LIST, History
from plume_py.history.times import NO_TIME

InitTxn = Literal["auto", "first", "none"]


def find_init_txn(history: History, choice: InitTxn, declared: bool, fixed: bool = False) -> int:
    """The number of the initial transaction, or NOBODY.

    ``declared``: the file states its initial value; ``fixed``: its format has one, and it is never written.
    """
    if choice == "none" or (choice == "auto" and fixed) or history.transactions == 0:
        return NOBODY
    problem = _problem(history)
    if choice == "first" and problem:
        raise InputError(f"the first transaction is not an initial one: {problem}", hint="use --init-txn none")
    if problem or (choice == "auto" and (_implicit_initial_read(history) or (declared and _writes_other(history)))):
        return NOBODY
    return 0


def _problem(history: History) -> str:
    """Why the first transaction cannot be an initial one; empty if it can."""
    end = int(history.txn_start[1])
    kinds, keys = history.op_kind[:end], history.op_key[:end]
    if history.txn_status[0] != COMMITTED:
        return "it did not commit"
    if history.transactions < 2 or history.txn_session[1] == history.txn_session[0]:
        return "it is not alone in its session, or there is no other session"
    if not np.all(kinds & 1) or np.any(kinds >= READ_LIST):
        return "it does something other than plain writes"
    # What did not commit does not matter: its keys need no initial value.
    committed = np.repeat(history.txn_status == COMMITTED, np.diff(history.txn_start))
    if len(np.unique(keys)) != len(keys) or len(keys) != len(np.unique(history.op_key[committed])):
        return "it does not write every key exactly once"
    times = history.times
    if times is not None and np.any((times.end[1:] > NO_TIME) & (times.end[1:] < times.begin[0])):
        return "another one had ended before it began"
    return ""


def _implicit_initial_read(history: History) -> bool:
    """Did a committed transaction read the format's initial value of a key to which nobody wrote that value?"""
    if history.initial is None:
        return False
    initial = (history.version_value == history.initial) & (history.version_writer == NOBODY)
    if not np.any(initial):
        return False
    reads = np.flatnonzero((history.op_kind & 1) == 0)
    reads = reads[initial[history.op_version[reads]]]
    readers = np.searchsorted(history.txn_start, reads, side="right") - 1
    return bool(np.any(history.txn_status[readers] == COMMITTED))


def _writes_other(history: History) -> bool:
    """Does the first transaction write anything but the format's initial value?"""
    written = history.version_value[history.op_version[: int(history.txn_start[1])]]
    return bool(np.any(written != history.initial))
