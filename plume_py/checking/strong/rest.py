"""What is left of a history when reads are left out: to see what else is wrong with it.

Reads are what constrains a history: with fewer of them there are only more commit orders. So what the rest contradicts,
the whole history contradicts, whatever was left out.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from plume_py.base.limits import Limits
from plume_py.checking.strong.layout import Layout
from plume_py.checking.weak.engine import WeakEngine
from plume_py.checking.weak.naming import Named, name_patterns
from plume_py.history.model import READ_LIST, Bools, History, Int64s, ListReads
from plume_py.levels import STRONGEST


class Rest:
    """A history without some reads. Transactions, sessions, keys and versions keep their numbers."""

    def __init__(self, engine: WeakEngine) -> None:
        self.engine = engine  # of what is left

    @property
    def history(self) -> History:
        """What is left."""
        return self.engine.history

    def leave_out(self, gone: Bools) -> None:
        """Leave out these operations, which must be reads."""
        self.engine = WeakEngine(without_operations(self.history, gone), self.engine.clock)

    def leave_out_reads(self, transactions: Collection[int], keys: Collection[int]) -> None:
        """Leave out what these transactions read of these keys."""
        history = self.history
        owner = np.repeat(np.arange(history.transactions), np.diff(history.txn_start))
        reads = (history.op_kind & 1) == 0
        self.leave_out(reads & np.isin(owner, list(transactions)) & np.isin(history.op_key, list(keys)))

    def leave_out_contested(self) -> None:
        """Leave out reads of versions that several of their readers overwrite: every one is a lost update."""
        layout = Layout(self.engine, STRONGEST)
        updates = np.flatnonzero(layout.first_read & (layout.also_writes == 1))
        readers = np.bincount(layout.read_version[updates], minlength=len(layout.versions))
        contested = readers[layout.read_version] > 1
        gone = np.zeros(self.history.operations, np.bool_)
        gone[self.engine.reads.read_op[contested & (layout.also_writes == 1)]] = True
        if np.any(gone):
            self.leave_out(gone)

    def keep_to(self, level: str, limits: Limits, named: Named) -> bool:
        """Leave out what breaks ``level`` (RC, RA or TCC), for a start what was ``named``, until the rest keeps it."""
        while not self.engine.holds(level):
            limits.check()
            gone = _wrong_reads(self.engine, named)
            if not np.any(gone):
                return False
            self.leave_out(gone)
            named = name_patterns(self.engine, level)
        return True


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


def _wrong_reads(engine: WeakEngine, named: Named) -> Bools:
    """The reads that weak patterns are about. A list that is wrong speaks against all lists of its key."""
    history, reads = engine.history, engine.reads
    wrong = np.zeros(history.operations, np.bool_)
    for pattern, operations in reads.examples.items():
        if pattern != "j":  # which is k or l, too
            wrong[operations] = True
    wrong[reads.read_op[[triple.r for triples in named.triples.values() for triple in triples]]] = True
    wrong[reads.read_op[list(_reads_on_cycles(engine))]] = True
    is_list = history.op_kind == READ_LIST
    keys = [*history.op_key[wrong & is_list].tolist(), *_keys_on_cycles(engine)]
    wrong |= is_list & np.isin(history.op_key, keys)
    return wrong


def _reads_on_cycles(engine: WeakEngine) -> Iterator[int]:
    component, reads = engine.causal.component, engine.reads
    if not engine.causal.acyclic:
        readers = np.repeat(np.arange(engine.history.transactions), np.diff(reads.read_start))
        source = np.maximum(reads.read_source, 0)
        inside = (reads.read_source >= 0) & (component[source] >= 0) & (component[source] == component[readers])
        yield from np.flatnonzero(inside).tolist()


def _keys_on_cycles(engine: WeakEngine) -> Iterator[int]:
    """What those write whom version orders put on a cycle."""
    history, ordering = engine.history, engine.version_ordering
    if not ordering.acyclic and engine.causal.acyclic:
        inside = np.repeat(ordering.component >= 0, np.diff(history.txn_start))
        yield from history.op_key[inside & ((history.op_kind & 1) == 1)].tolist()
