"""A history without some of its operations. Transactions, sessions, keys and versions keep their numbers."""

from dataclasses import dataclass, replace

import numpy as np

from plume_py.checking.graph.analysis import Analysis
from plume_py.history.model import Bools, History, Int64s, ListReads


@dataclass(frozen=True)
class SubHistory:
    """What is left of a history. Transactions, sessions, keys and versions keep their numbers; operations do not."""

    analysis: Analysis
    origins: Int64s | None = None  # what its operations are in the whole; None: the same

    def without(self, gone: Bools) -> "SubHistory":
        """Leave out these operations, which must be reads."""
        origins = np.flatnonzero(~gone) if self.origins is None else self.origins[~gone]
        return SubHistory(self.analysis.of(without_operations(self.analysis.given, gone)), origins)

    def number_in_whole(self, o: int) -> int:
        """Which operation of the whole history operation ``o`` of what is left is."""
        return o if self.origins is None else int(self.origins[o])


def without_operations(history: History, gone: Bools) -> History:
    """The same history without these operations."""
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
