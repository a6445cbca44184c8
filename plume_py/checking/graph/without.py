"""A history without some of its operations. Transactions, sessions, keys and versions keep their numbers."""

from dataclasses import dataclass, replace

import numpy as np

from plume_py.checking.graph.analysis import Analysis
from plume_py.history.model import Bools, History, Int64s, ListReads


@dataclass(frozen=True)
class Part:
    """What is left of a history. Transactions, sessions, keys and versions keep their numbers; operations do not."""

    analysis: Analysis
    kept: Int64s | None = None  # the operations of the whole that are left; None: all

    def without(self, gone: Bools) -> "Part":
        """Leave out these operations, which must be reads."""
        kept = np.flatnonzero(~gone) if self.kept is None else self.kept[~gone]
        return Part(Analysis(without_operations(self.analysis.history, gone), self.analysis.clock), kept)

    def number_in_whole(self, o: int) -> int:
        """Which operation of the whole history operation ``o`` of what is left is."""
        return o if self.kept is None else int(self.kept[o])


def without_operations(history: History, gone: Bools) -> History:
    """The same history without these operations."""
    kept = ~gone
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    lists = None if history.lists is None else _without(history.lists, kept, before)
    return replace(
        history,
        op_kind=history.op_kind[kept],
        op_key=history.op_key[kept],
        op_version=history.op_version[kept],
        txn_start=before[history.txn_start],
        lists=lists,
    )


def _without(lists: ListReads, kept: Bools, before: Int64s) -> ListReads:
    stays = kept[lists.ops]
    sizes = np.diff(lists.starts)
    starts = np.zeros(int(np.count_nonzero(stays)) + 1, np.int64)
    np.cumsum(sizes[stays], out=starts[1:])
    return ListReads(before[lists.ops[stays]], starts, lists.items[np.repeat(stays, sizes)])
