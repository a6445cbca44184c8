"""Find the transaction that sets up the initial state of a history.

Some collectors record such a transaction: the first one, alone in its session, that writes every key once and reads
nothing. With the choice ``auto``, it is taken as the initial state, except in these cases:

- A read returned the format's own initial value (0, null), so the database began without this transaction.
- The file declares an initial value, and this transaction writes another.
- The format has its own initial state that no transaction sets up (Jepsen: nil).

A client's transaction can have the same shape, so ``auto`` is a guess, and a level that only the guess violates holds.
If a history satisfies a level with the guess, it also satisfies the level without it: put that transaction first in the
commit order. So ``check`` decides a violated level again without the guess.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from plume_py.base.errors import InputError
from plume_py.history.model import COMMITTED, NOBODY, READ_LIST, History
from plume_py.history.times import NO_TIME
from plume_py.levels import CODES, WEAKEST

InitTxn = Literal["auto", "first", "none"]


def find_init_txn(history: History, choice: InitTxn, declared: bool, fixed: bool = False) -> int:
    """Return the number of the initial transaction, or NOBODY.

    ``declared``: the file states its initial value. ``fixed``: the format has an initial value that is never written.
    """
    if choice == "none" or (choice == "auto" and fixed) or history.transactions == 0:
        return NOBODY
    problem = _problem(history)
    if choice == "first" and problem:
        raise InputError(f"the first transaction is not an initial one: {problem}", hint="use --init-txn none")
    if problem or (choice == "auto" and (_implicit_initial_read(history) or (declared and _writes_other(history)))):
        return NOBODY
    return 0


def as_ordinary(history: History, declared: bool = False) -> History:
    """Return ``history`` without the guess that its first transaction is initial.

    ``declared``: every transaction needs a level. The first one reads nothing, so any level gives the same verdict.
    """
    if not history.init_guessed:
        return history
    level = history.txn_level
    if declared:
        level = np.zeros(history.transactions, np.uint8) if level is None else level.copy()
        level[history.init_txn] = level[history.init_txn] or CODES[WEAKEST]
    return replace(history, init_txn=NOBODY, init_guessed=False, txn_level=level)


def _problem(history: History) -> str:
    """Return why the first transaction cannot be an initial one; empty if it can."""
    end = int(history.txn_start[1])
    kinds, keys = history.op_kind[:end], history.op_key[:end]
    if history.txn_status[0] != COMMITTED:
        return "it did not commit"
    if history.transactions < 2 or history.txn_session[1] == history.txn_session[0]:
        return "it is not alone in its session, or there is no other session"
    if not np.all(kinds & 1) or np.any(kinds >= READ_LIST):
        return "it does something other than plain writes"
    # Keys that only uncommitted transactions access need no initial value.
    committed = np.repeat(history.txn_status == COMMITTED, np.diff(history.txn_start))
    if len(np.unique(keys)) != len(keys) or len(keys) != len(np.unique(history.op_key[committed])):
        return "it does not write every key exactly once"
    times = history.times
    if times is not None and np.any((times.end[1:] > NO_TIME) & (times.end[1:] < times.begin[0])):
        return "another one had ended before it began"
    return ""


def _implicit_initial_read(history: History) -> bool:
    """Return whether a committed transaction read the initial version of a key."""
    initial = history.initial_versions
    if not np.any(initial):
        return False
    reads = np.flatnonzero((history.op_kind & 1) == 0)
    reads = reads[initial[history.op_version[reads]]]
    readers = np.searchsorted(history.txn_start, reads, side="right") - 1
    return bool(np.any(history.txn_status[readers] == COMMITTED))


def _writes_other(history: History) -> bool:
    """Return whether the first transaction writes a value other than the format's initial value."""
    written = history.version_value[history.op_version[: int(history.txn_start[1])]]
    return bool(np.any(written != history.initial))
