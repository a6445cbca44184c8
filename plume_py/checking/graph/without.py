"""A history without some of its operations. Transactions, sessions, keys and versions keep their numbers."""

from dataclasses import replace

import numpy as np

from plume_py.history.model import Bools, History, Int64s, ListReads


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
