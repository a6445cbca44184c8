"""Appends that no list shows: they come after all those that the longest list of their key shows.

The weak levels do without this: it takes a commit order of all writers to say that an append came too late to be seen.
"""

import numpy as np

from plume_py.graph.reads import Reads, key_writers
from plume_py.history.model import History, Int32s, Int64s


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
    rows = []
    for x in np.flatnonzero(longest >= 0).tolist():
        i = int(longest[x])
        shown: Int32s = history.version_writer[lists.items[lists.starts[i] : lists.starts[i] + length[i]]]
        mine = writer[start[x] : start[x + 1]]
        if len(shown) and len(mine) > 1:
            rows += [(int(shown[-1]), t2, -2 - i) for t2 in np.setdiff1d(mine, shown).tolist()]
    return np.array(rows, np.int32).reshape(-1, 3)
