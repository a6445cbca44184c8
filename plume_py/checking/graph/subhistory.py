"""Sub-histories: a history without some reads, or with only some transactions and operations.

Fewer reads constrain commit orders less, so every violation of a sub-history is also a violation of the whole history.

- ``ReducedHistory`` removes reads from the columns; only operations are renumbered. The strong levels search it for
  further
violations.
- ``SubHistory`` lists transactions with the operations that they keep, and ``build`` makes a history of it. The
  minimizer
and the stale-read mutants use it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from plume_py.checking.graph.analysis import Analysis
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import NOBODY, Bools, History, Int64s, ListReads, Op, Transaction


@dataclass(frozen=True)
class ReducedHistory:
    """A history without some of its reads. Only operations are renumbered."""

    analysis: Analysis
    origins: Int64s | None = None  # its operations in the whole history; None: the same

    def without(self, gone: Bools) -> "ReducedHistory":
        """Remove these operations, which must be reads."""
        origins = np.flatnonzero(~gone) if self.origins is None else self.origins[~gone]
        return ReducedHistory(self.analysis.of(without_operations(self.analysis.given, gone)), origins)

    def number_in_whole(self, o: int) -> int:
        """Return the number of operation ``o`` in the whole history."""
        return o if self.origins is None else int(self.origins[o])


def without_operations(history: History, gone: Bools) -> History:
    """Return the history without these operations."""
    keep = ~gone
    before = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=before[1:])
    lists = None if history.lists is None else _without(history.lists, keep, before)
    return replace(
        history,
        op_kind=history.op_kind[keep],
        op_key=history.op_key[keep],
        op_version=history.op_version[keep],
        txn_start=before[history.txn_start],
        lists=lists,
    )


def _without(lists: ListReads, keep: Bools, before: Int64s) -> ListReads:
    stays = keep[lists.ops]
    sizes = np.diff(lists.starts)
    starts = np.zeros(int(np.count_nonzero(stays)) + 1, np.int64)
    np.cumsum(sizes[stays], out=starts[1:])
    return ListReads(before[lists.ops[stays]], starts, lists.items[np.repeat(stays, sizes)])


# Transactions with the operations that they keep


@dataclass(frozen=True)
class KeptTransaction:
    """A transaction with the operations that remain, and the number of its session."""

    session: int
    txn: Transaction

    def without(self, at: int) -> "KeptTransaction":
        ops = self.txn.ops[:at] + self.txn.ops[at + 1 :]
        return replace(self, txn=self.txn._replace(ops=ops))


SubHistory = list[KeptTransaction]


def list_writers(history: History, t: int) -> set[int]:
    """Return the transactions whose appends are in the lists that ``t`` read."""
    return {int(w) for w in history.version_writer[_list_items(history, t)] if w != NOBODY}


def _list_items(history: History, t: int) -> list[int]:
    if history.lists is None:
        return []
    first, last = history.lists.starts[history.lists.ops.searchsorted(history.txn_start[t : t + 2])]
    items: list[int] = history.lists.items[first:last].tolist()
    return items


def written_by_others(history: History, t: int, present: set[int]) -> set[tuple[object, object]]:
    """Return the (key, value) pairs that t read and a transaction outside ``present`` wrote.

    A sub-history that kept these reads would have thin-air reads.
    """
    gone: set[tuple[object, object]] = set()
    span = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
    for version in history.op_version[span].tolist() + _list_items(history, t):
        writer = int(history.version_writer[version])
        if writer != NOBODY and writer not in present:
            gone.add((history.key(int(history.version_key[version])), history.value(version)))
    return gone


def without_values(ops: tuple[Op, ...], gone: Collection[tuple[object, object]]) -> Iterator[Op]:
    """Yield the operations without reads of these (key, value) pairs; a list loses such elements."""
    for op in ops:
        if op.kind != "r":
            yield op
        elif isinstance(op.value, tuple):
            yield op._replace(value=tuple(v for v in op.value if (op.key, v) not in gone))
        elif (op.key, op.value) not in gone:
            yield op


def build(history: History, parts: SubHistory) -> History:
    """Return the sub-history as a history, with the clock and the initial state of the whole history."""
    explicit = history.init_txn != NOBODY
    clock = None if history.times is None else history.times.per_second
    implicit = history.initial is not None
    builder = HistoryBuilder(
        history.initial_value,
        declared=not explicit,
        implicit_initial=implicit,
        initials=None if history.version_initial is None else history.initial_values,
        per_second=clock,
    )
    for part in parts:
        txn = part.txn
        name = txn.id if txn.id != -1 else None  # Plume text calls every aborted transaction -1
        builder.add(part.session, txn.ops, status=txn.status, level=txn.level, id=name, begin=txn.begin, end=txn.end)
    return replace(builder.build(init_txn="auto" if explicit else "none"), init_guessed=history.init_guessed)
