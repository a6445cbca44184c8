"""What the readers of dbcop's textual formats share: which events count, and what the initial state looks like."""

from collections.abc import Sequence
from typing import NamedTuple

from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder

Version = int | None
Operation = tuple[str, int | str, Version]


class DbcopTxn(NamedTuple):
    """A transaction of a dbcop file; ``line`` is 0 where the format has no lines."""

    session: int
    ops: Sequence[Operation]
    committed: bool
    line: int = 0


def surviving(events: Sequence[tuple[bool, int, int, bool]], committed: bool) -> list[Operation]:
    """The events (write, variable, value, success) that say something, as operations.

    A failed read saw nothing. A failed write inside a committed transaction is not one of its effects, and is often
    retried with the same value, so it is left out, too; inside an aborted transaction every write is an aborted one.
    """
    return [("w" if write else "r", key, value) for write, key, value, ok in events if ok or (write and not committed)]


def to_columns(sessions: int, txns: Sequence[DbcopTxn]) -> RawColumns:
    """The raw columns of ``txns``, in which both version null and a version 0 that nobody wrote are initial reads."""
    wrote_zero = {key for txn in txns for kind, key, version in txn.ops if kind == "w" and version == 0}
    # 0 stands for the initial state, as everywhere in dbcop; only where it is also written to a key of which
    # somebody saw the initial state must the two be told apart
    ambiguous = any(version is None and key in wrote_zero for txn in txns for _, key, version in txn.ops)
    initial = None if ambiguous else 0
    builder = HistoryBuilder(initial, declared=False)
    for s in range(sessions):
        builder.session(s)
    for txn in txns:
        ops = [
            (
                kind,
                key,
                initial if kind == "r" and not version and not (version == 0 and key in wrote_zero) else version,
            )
            for kind, key, version in txn.ops
        ]
        builder.add(txn.session, ops, status="committed" if txn.committed else "aborted", line=txn.line)
    return builder.columns()
