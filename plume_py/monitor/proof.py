"""From an event of the kernels to a counterexample: the few transactions behind it, checked on their own.

An event says that an edge closes a cycle, or that one read is wrong. The transactions of the cycle, those whose reads
force its edges, and those that connect them make up a small history: its reads are the ones among these transactions.
Leaving out reads and transactions only ever takes constraints away, so what is wrong with it is wrong with the whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import READ_LIST, STATUS_NAMES, History
from plume_py.monitor import judge_kernels as judges
from plume_py.monitor import reach_kernels as reach
from plume_py.monitor import table_kernels as tables
from plume_py.monitor.codes import StreamCoder
from plume_py.monitor.lists import OWN_APPENDS_LOST, ListOrders
from plume_py.monitor.state import State

# A path that has not ended after so many sessions is not going to: the order has cycles from earlier violations.
MAX_HOPS = 1000

EDGE_COLUMNS = (tables.EDGE_FROM, tables.EDGE_READ, tables.EDGE_LEVEL)


@dataclass(frozen=True)
class Event:
    """What a kernel noted: see ``feed_kernels.note``."""

    kind: int
    level: int
    a: int
    b: int
    r: int


class Involved:
    """Collects the transactions behind an event."""

    def __init__(self, m: State, native: Any, lists: ListOrders) -> None:
        self._m = m
        self._native = native  # the same, for kernels
        self._lists = lists
        self.transactions: set[int] = set()

    def collect(self, event: Event) -> set[int]:
        """All of them; too few, if some path could not be found."""
        self.transactions |= {t for t in (event.a, event.b) if t >= 0}
        if event.kind == judges.J:
            self.transactions |= self._sources(event.a)
        elif event.kind == judges.CAUSAL_CYCLE:
            self._path(reach.CAUSAL, event.b, event.a)
        elif event.kind == judges.STALE:
            self._evidence(event.level, event.a, event.b)
        elif event.kind == judges.FORCED_CYCLE:
            self._reason(event.level, event.a, event.b, event.r)
            self._path(event.level, event.b, event.a)
        elif event.kind >= OWN_APPENDS_LOST:
            self._elements(event)
        for t in tuple(self.transactions):
            if self._m.txn[t, tables.STATUS] == tables.UNKNOWN:
                self._reader_of(t)
        return self.transactions

    def _reader_of(self, t: int) -> None:
        """t, of unknown outcome, counts only because somebody read from it."""
        sources = self._m.read[: int(self._m.n[tables.READS]), tables.SOURCE]
        found = np.flatnonzero(sources == t)
        if found.size:
            self.transactions.add(int(self._m.read[found[0], tables.READER]))

    def _elements(self, event: Event) -> None:
        """Whoever appended what the lists show."""
        key = self._lists.reads[-2 - event.r].key
        for read in self._lists.reads:
            if read.key == key and read.reader in (event.a, event.b):
                self.transactions |= {int(self._m.version[v, tables.WRITER]) for v in read.versions} - {-1}

    def _sources(self, t: int) -> set[int]:
        begin, end = (int(self._m.txn[u, tables.FIRST_READ]) for u in (t, t + 1))
        return {int(source) for source in self._m.read[begin:end, tables.SOURCE] if source >= 0}

    def _reason(self, level: int, u: int, v: int, r: int) -> None:
        """Why u must come before v: read r, or list -2 - r."""
        if r < 0:
            self.transactions.add(self._lists.reads[-2 - r].reader)
            return
        t3 = int(self._m.read[r, tables.READER])
        self.transactions.add(t3)
        if t3 != v:  # else r itself reads from u
            self._evidence(level, u, t3)

    def _evidence(self, level: int, t2: int, t3: int) -> None:
        """Why t2 comes before t3 in the sense of the level; for RC and RA they meet directly."""
        if level == judges.TCC:
            self._path(reach.CAUSAL, t2, t3)

    def _path(self, layer: int, begin: int, end: int) -> None:
        """Those on a way from ``begin`` to ``end``, found backwards from session to session."""
        if layer != reach.CAUSAL and self._m.n[tables.ORDERED + layer]:
            self._search(layer, begin, end)
            return
        at = end
        for _ in range(MAX_HOPS):
            position = int(reach.first_after(self._native, layer, begin, int(self._m.txn[at, tables.SESSION])))
            if position == 0:
                return
            at = int(tables.at_position(self._native, int(self._m.txn[at, tables.SESSION]), position))
            self.transactions.add(at)
            if at == begin:
                return
            before = self._learnt_from(layer, begin, at)
            if before is None:
                return
            at = before
            self.transactions.add(at)

    def _search(self, level: int, begin: int, end: int) -> None:
        """The same for a level that has no layer: a shortest way, through what stands between the two."""
        place = self._m.place[level]
        towards: dict[int, tuple[int, int | None]] = {end: (end, None)}  # the next on the way, and the edge if forced
        queue = [end]
        for at in queue:
            for before, e in self._just_before(level, at):
                if before not in towards and place[before] >= place[begin]:
                    towards[before] = at, e
                    queue.append(before)
            if begin in towards:
                break
        at = begin
        while at in towards and at != end:
            following, e = towards[at]
            self.transactions |= {at, following}
            if e is not None:
                self._reason(level, at, following, int(self._m.edge[e, tables.EDGE_READ]))
            at = following

    def _just_before(self, level: int, t: int) -> Iterator[tuple[int, int | None]]:
        session, position = (int(self._m.txn[t, column]) for column in (tables.SESSION, tables.POSITION))
        for source in self._sources(t):
            yield source, None
        e = int(self._m.txn[t, tables.EDGE])
        while e >= 0:
            if self._m.edge[e, tables.EDGE_LEVEL] == level:
                yield int(self._m.edge[e, tables.EDGE_FROM]), e
            e = int(self._m.edge[e, tables.NEXT_IN])
        if position > 1:
            yield int(tables.at_position(self._native, session, position - 1)), None

    def _learnt_from(self, layer: int, begin: int, at: int) -> int | None:
        """From whom ``at`` knows of ``begin``: a source of its reads, or one that is forced before it."""
        for source in sorted(self._sources(at), key=lambda t: t != begin):
            if source == begin or reach.before(self._native, layer, begin, source):
                return source
        e = int(self._m.txn[at, tables.EDGE])
        while e >= 0:
            u, r, level = (int(self._m.edge[e, column]) for column in EDGE_COLUMNS)
            e = int(self._m.edge[e, tables.NEXT_IN])
            if level == layer and (u == begin or reach.before(self._native, layer, begin, u)):
                self._reason(level, u, at, r)
                return u
        return None


class Excerpt:
    """Writes histories of some of the monitor's transactions."""

    def __init__(self, m: State, lists: ListOrders, coder: StreamCoder, initial: int) -> None:
        self._m = m
        self._lists = {read.op: read.versions for read in lists.reads}
        self._coder = coder
        self._initial = initial

    def history(
        self,
        transactions: Iterable[int],
        name: "Callable[[int], str | int]",
        sessions: "list[str | int]",
        lines: list[int],
    ) -> History:
        """These transactions, with their writes and the reads among them."""
        m = self._m
        chosen = sorted(transactions, key=lambda t: (m.txn[t, tables.SESSION], m.txn[t, tables.POSITION]))
        builder = HistoryBuilder(self._coder.spell(self._initial))
        init = int(m.n[tables.INIT_TXN])
        if init >= 0:
            chosen = [init, *(t for t in chosen if t != init)]
        for t in chosen:
            builder.add(
                sessions[int(m.txn[t, tables.SESSION])],
                self._ops(t, set(chosen), keep_all=t != init),
                status=STATUS_NAMES[m.txn[t, tables.STATUS]],
                id=name(t),
                line=lines[t],
            )
        return builder.build(format="stream", init_txn="first" if init >= 0 else "none")

    def _ops(self, t: int, chosen: set[int], keep_all: bool) -> list[tuple[str, object, object]]:
        used = {int(self._m.op[o, tables.KEY]) for u in chosen if u != t for o in self._range(u)}
        ops: list[tuple[str, object, object]] = []
        for o in self._range(t):
            x, v = (int(n) for n in self._m.op[o])
            kind = int(self._m.op_kind[o]) & 3
            if (keep_all or x in used) if kind & 1 else (kind == READ_LIST or self._visible(v, chosen)):
                key = self._coder.spell(int(self._m.key_code[x]))
                ops.append((("r", "w", "r", "append")[kind], key, self._value(o, v, kind, chosen)))
        return ops

    def _range(self, t: int) -> range:
        return range(int(self._m.txn[t, tables.FIRST_OP]), int(self._m.txn[t + 1, tables.FIRST_OP]))

    def _visible(self, v: int, chosen: set[int]) -> bool:
        """Was it written by one of the chosen, or is it initial?"""
        writer = int(self._m.version[v, tables.WRITER])
        return writer in chosen or (writer < 0 and self._m.version_value[v] == self._initial)

    def _value(self, o: int, v: int, kind: int, chosen: set[int]) -> object:
        if kind == READ_LIST:
            writers = self._m.version[:, tables.WRITER]
            return [self._spell(item) for item in self._lists.get(o, ()) if int(writers[item]) in chosen]
        return self._spell(v)

    def _spell(self, v: int) -> object:
        return self._coder.spell(int(self._m.version_value[v]))
