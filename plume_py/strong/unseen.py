"""Appends that no list shows: they come after all those that the longest list of their key shows.

The weak levels do without this: it takes a commit order of all writers to say that an append came too late to be seen.
"""

import numpy as np

from plume_py.graph.reads import Reads, key_writers
from plume_py.history.model import History, Int32s, Int64s
from plume_py.strong.arrays import among, distinct


def unseen_appends(history: History, reads: Reads, writers: tuple[Int64s, Int32s] | None = None) -> Int32s:
    """Rows (t1, t2, -2 - i): t1 made the last element of list i, the longest of its key, and t2 appended unseen."""
    lists = history.lists
    if lists is None or not len(lists.ops):
        return np.empty((0, 3), np.int32)
    start, writer = writers or key_writers(history, reads)
    owner = np.searchsorted(history.txn_start, lists.ops, side="right") - 1
    length = np.diff(lists.starts) * (reads.judged[owner] == 1)
    longest = np.full(len(history.key_code), -1, np.int64)
    by_length = np.argsort(length, kind="stable")
    longest[history.op_key[lists.ops[by_length]]] = by_length  # of several assignments the last one stays
    keys = np.flatnonzero((longest >= 0) & (np.diff(start) > 1))
    keys = keys[length[longest[keys]] > 0]
    chosen = longest[keys]
    sizes, ends = length[chosen], np.cumsum(length[chosen])
    # the items of all chosen lists, one list after the other
    items = np.arange(int(sizes.sum())) + np.repeat(lists.starts[chosen] - (ends - sizes), sizes)
    shown_by = history.version_writer[lists.items[items]].astype(np.int64)
    by_key = np.repeat(np.arange(len(start) - 1), np.diff(start))
    last = np.full(len(start) - 1, -1, np.int64)
    last[keys] = shown_by[ends - 1]
    transactions = history.transactions
    shown = distinct(np.repeat(keys, sizes) * transactions + shown_by)
    unseen = (last[by_key] >= 0) & ~among(by_key * transactions + writer, shown)
    columns = last[by_key[unseen]], writer[unseen], -2 - longest[by_key[unseen]]
    return np.stack(columns, axis=1).astype(np.int32)
