"""Turn an event of the kernels into a counterexample.

``monitor`` calls this module for each event: an edge closes a cycle, or one read is wrong. ``InvolvedTransactions``
collects the transactions of the cycle, the readers that force its edges, and the transactions that connect them.
``Excerpt`` writes them as a small history, with only the reads and list elements among them; ``monitor`` checks that.
Removing reads and transactions only removes constraints, so its violations are violations of the whole history. The
exception is a triple whose forced edge follows from a causal path outside the excerpt. ``ViolationFilter`` looks that
up in the tables.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plume_py.checking.result import Id, Step, Violation
from plume_py.checking.stream import level_kernels, order_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import StreamCoder
from plume_py.checking.stream.list_orders import CONTRADICTING_LISTS, WRONG_LIST, ListOrders
from plume_py.checking.stream.monitored_history import MonitoredHistory
from plume_py.checking.stream.state import State
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import READ_LIST, STATUS_NAMES, History
from plume_py.history.times import known
from plume_py.levels import WEAK, visibility_bits
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN, TRIPLES, VERSION_CYCLE
from plume_py.levels.table import TRANSITIVE

# Limit for the length of a path. Longer ones are endless: earlier violations left cycles in the order.
MAX_HOPS = 1000

# Patterns whose forced edge may follow from a causal path, patterns of several reads, and patterns of lists.
FORCING_TRIPLES = "".join(TRIPLES.values())
GRAPH = ("g", "j", VERSION_CYCLE, *FORCING_TRIPLES)
OF_LISTS = (DUPLICATE, TORN, INCOMPATIBLE)

EDGE_COLUMNS = (tables.EDGE_FROM, tables.EDGE_LEVEL, tables.EDGE_READ, tables.EDGE_LIST)


@dataclass(frozen=True)
class Event:
    """An event of the kernels, with the arguments of ``level_kernels.report_event``."""

    kind: int
    level: int
    a: int
    b: int
    r: int
    list: int

    @property
    def is_about_list(self) -> bool:
        """Whether a single list is wrong, or two lists contradict each other."""
        return self.kind in (WRONG_LIST, CONTRADICTING_LISTS)


class ViolationFilter:
    """Keeps the violations of an excerpt that the whole history also has. ``number``: transactions by name."""

    def __init__(self, m: State, native: Any, lists: ListOrders, coder: StreamCoder, number: dict[Id, int]) -> None:
        self._m = m
        self._native = native
        self._lists = lists
        self._coder = coder
        self._number = number

    def confirmed(self, violations: Iterable[Violation], event: Event) -> list[Violation]:
        """Return the violations of the excerpt that are violations of the whole history.

        A list that waits for elements is shown without them, and may then show more than is certain. A violation that
        depends on such a list is returned only as a last resort.
        """
        true = [violation for violation in violations if not self._follows_causally(violation)]
        if event.is_about_list:  # the excerpt of the list may lack the element that shows its source
            return [violation for violation in true if violation.tap not in GRAPH]
        return [violation for violation in true if self._is_certain(violation, event)] or true

    def _follows_causally(self, violation: Violation) -> bool:
        """Return whether the edge that a triple forces already follows from a causal path of the whole history."""
        if violation.tap not in FORCING_TRIPLES:
            return False
        forced = violation.steps[-1]
        return forced.target in self._number and self._is_causal(forced)  # else the initial state

    def _is_certain(self, violation: Violation, event: Event) -> bool:
        """Return whether the violation depends only on complete lists, or on none."""
        if violation.tap in OF_LISTS and event.kind >= level_kernels.J:
            return False
        return all(self._is_fixed(step) for step in violation.steps if step.relation == "WW")

    def _is_causal(self, step: Step) -> bool:
        u, v = self._number[step.source], self._number[step.target]
        return bool(order_kernels.before(self._native, order_kernels.CAUSAL, u, v))

    def _is_fixed(self, step: Step) -> bool:
        """Return whether a correct, complete list of the reader or a causal path shows the order of the step."""
        assert step.reader is not None
        begin, end = self._m.txn[self._number[step.reader] :, tables.FIRST_OP][:2].tolist()
        reads = [self._lists.by_op[o] for o in range(begin, end) if o in self._lists.by_op]
        of_key = [read for read in reads if self._coder.atom(int(self._m.key_code[read.key])) == step.key]
        return any(read.correct for read in of_key) or self._is_causal(step)


class InvolvedTransactions:
    """Collects the transactions behind an event."""

    def __init__(self, m: State, native: Any, lists: ListOrders) -> None:
        self._m = m
        self._native = native  # ``m`` in the form for kernels
        self._lists = lists
        self.transactions: set[int] = set()

    def collect(self, event: Event) -> set[int]:
        """Return all transactions behind the event; too few if some path was not found."""
        self.transactions |= {t for t in (event.a, event.b) if t >= 0}
        if event.kind == level_kernels.J:
            self.transactions |= self._sources_of(event.a)
        elif event.kind == level_kernels.CAUSAL_CYCLE:
            self._path(order_kernels.CAUSAL, event.b, event.a)
        elif event.kind == level_kernels.STALE:
            self._visibility(event.level, event.a, event.b)
        elif event.kind == level_kernels.FORCED_CYCLE:
            self._reason(event.level, event.a, event.b, event.r, event.list)
            self._path(event.level, event.b, event.a)
        elif event.is_about_list:
            self._read_list(event.list)
            self.transactions |= self._lists.reads[event.list].blamed
        for t in tuple(self.transactions):
            if self._m.txn[t, tables.STATUS] == tables.UNKNOWN:
                self._reader_of(t)
        return self.transactions

    def _reader_of(self, t: int) -> None:
        """Add a reader of t, which has an unknown outcome and participates only because of that reader."""
        sources = self._m.read[: int(self._m.n[tables.READS]), tables.SOURCE]
        found = np.flatnonzero(sources == t)
        if found.size:
            self.transactions.add(int(self._m.read[found[0], tables.READER]))
        elif t in self._lists.first_list_showing:
            self._read_list(self._lists.first_list_showing[t])

    def _read_list(self, number: int) -> None:
        """Add the reader of a list and its source."""
        read = self._lists.reads[number]
        self.transactions |= {read.reader} | self._lists.source(read)

    def _sources_of(self, t: int) -> set[int]:
        begin, end = (int(self._m.txn[u, tables.FIRST_READ]) for u in (t, t + 1))
        return {int(source) for source in self._m.read[begin:end, tables.SOURCE] if source >= 0}

    def _reason(self, level: int, u: int, v: int, r: int, number: int) -> None:
        """Add the transactions that force u before v: by read r, by a list, or by real time (both are -1)."""
        if number >= 0:
            self._read_list(number)
            return
        if r < 0:  # u ended before v began
            return
        t3 = int(self._m.read[r, tables.READER])
        self.transactions.add(t3)
        if t3 != v:  # else r itself reads from u
            self._visibility(level, u, t3)

    def _visibility(self, level: int, t2: int, t3: int) -> None:
        """Add the path that makes t2 visible to t3. At RC and RA, t3 or its session meets t2 directly."""
        if visibility_bits(WEAK[level]) & TRANSITIVE:
            self._path(order_kernels.CAUSAL, t2, t3)

    def _path(self, layer: int, begin: int, end: int) -> None:
        """Add the transactions on a path from ``begin`` to ``end``, searched backwards from session to session."""
        if layer != order_kernels.CAUSAL and self._m.n[tables.ORDERED + layer]:
            self._search(layer, begin, end)
            return
        at = end
        for _ in range(MAX_HOPS):
            position = int(order_kernels.first_after(self._native, layer, begin, int(self._m.txn[at, tables.SESSION])))
            if position == 0:
                return
            at = int(tables.at_position(self._native, int(self._m.txn[at, tables.SESSION]), position))
            self.transactions.add(at)
            if at == begin:
                return
            before = self._direct_predecessor(layer, begin, at)
            if before is None:
                return
            at = before
            self.transactions.add(at)

    def _search(self, level: int, begin: int, end: int) -> None:
        """Add a shortest path at a level with a commit order, searched backwards among the ranks between both ends."""
        rank = self._m.rank[level]
        towards: dict[int, tuple[int, int | None]] = {end: (end, None)}  # next transaction, forced edge
        queue = [end]
        for at in queue:
            for before, e in self._just_before(level, at):
                if before not in towards and rank[before] >= rank[begin]:
                    towards[before] = at, e
                    queue.append(before)
            if begin in towards:
                break
        at = begin
        while at in towards and at != end:
            following, e = towards[at]
            self.transactions |= {at, following}
            if e is not None:
                _, _, r, number = (int(self._m.edge[e, column]) for column in EDGE_COLUMNS)
                self._reason(level, at, following, r, number)
            at = following

    def _just_before(self, level: int, t: int) -> Iterator[tuple[int, int | None]]:
        """Yield the direct predecessors of t at this level, each with its forced edge or None."""
        session, position = (int(self._m.txn[t, column]) for column in (tables.SESSION, tables.POSITION))
        for source in self._sources_of(t):
            yield source, None
        e = int(self._m.txn[t, tables.EDGE])
        while e >= 0:
            if self._m.edge[e, tables.EDGE_LEVEL] == level:
                yield int(self._m.edge[e, tables.EDGE_FROM]), e
            e = int(self._m.edge[e, tables.NEXT_IN])
        if position > 1:
            yield int(tables.at_position(self._native, session, position - 1)), None
        for earlier in self._ended_before(t):
            yield earlier, None

    def _ended_before(self, t: int) -> Iterator[int]:
        """Yield the last transaction of each other session that ended before t began."""
        if self._m.n[tables.REAL_TIME] and self._m.txn[t, tables.PARTICIPATES]:
            for s in range(int(self._m.n[tables.SESSIONS])):
                earlier = int(order_kernels.ended_before(self._native, t, s))
                if earlier >= 0:
                    yield earlier

    def _direct_predecessor(self, layer: int, begin: int, at: int) -> int | None:
        """Return a direct predecessor of ``at`` that is ``begin`` or after it: a source, by real time, or forced."""
        direct = (*self._sources_of(at), *self._ended_before(at))
        for source in sorted(direct, key=lambda t: t != begin):
            if source == begin or order_kernels.before(self._native, layer, begin, source):
                return source
        e = int(self._m.txn[at, tables.EDGE])
        while e >= 0:
            u, level, r, number = (int(self._m.edge[e, column]) for column in EDGE_COLUMNS)
            e = int(self._m.edge[e, tables.NEXT_IN])
            if level == layer and (u == begin or order_kernels.before(self._native, layer, begin, u)):
                self._reason(level, u, at, r, number)
                return u
        return None


class Excerpt:
    """Writes some of the monitor's transactions as a history."""

    def __init__(self, m: State, lists: ListOrders, coder: StreamCoder, initial: int, event: Event) -> None:
        self._m = m
        self._lists = lists
        self._wrong = lists.reads[event.list].op if event.is_about_list else -1  # always shown
        self._coder = coder
        self._initial = initial

    def history(self, transactions: Iterable[int], record: MonitoredHistory) -> History:
        m, sessions = self._m, record.session_names()
        chosen = sorted(transactions, key=lambda t: (m.txn[t, tables.SESSION], m.txn[t, tables.POSITION]))
        builder = HistoryBuilder(self._coder.atom(self._initial), per_second=record.per_second)
        init = int(m.n[tables.INIT_TXN])
        if init >= 0:
            chosen = [init, *(t for t in chosen if t != init)]
        for t in chosen:
            builder.add(
                sessions[int(m.txn[t, tables.SESSION])],
                self._ops(t, set(chosen), keep_all=t != init),
                status=STATUS_NAMES[m.txn[t, tables.STATUS]],
                id=record.names.name(t),
                line=record.names.lines[t],
                begin=known(m.begin[t]),
                end=known(m.end[t]),
            )
        return builder.build(format="stream", init_txn="first" if init >= 0 else "none")

    def _ops(self, t: int, chosen: set[int], keep_all: bool) -> list[tuple[str, object, object]]:
        used = {int(self._m.op[o, tables.KEY]) for u in chosen if u != t for o in self._range(u)}
        ops: list[tuple[str, object, object]] = []
        for o in self._range(t):
            x, v = (int(n) for n in self._m.op[o])
            kind = int(self._m.op_kind[o]) & 3
            if (keep_all or x in used) if kind & 1 else (o == self._wrong or self._visible(v, chosen)):
                key = self._coder.atom(int(self._m.key_code[x]))
                value = self._elements(o, x, chosen) if kind == READ_LIST else self._value(v)
                ops.append((("r", "w", "r", "append")[kind], key, value))
        return ops

    def _range(self, t: int) -> range:
        return range(int(self._m.txn[t, tables.FIRST_OP]), int(self._m.txn[t + 1, tables.FIRST_OP]))

    def _visible(self, v: int, chosen: set[int]) -> bool:
        """Return whether version v was written by a chosen transaction or is the initial value."""
        writer = int(self._m.version[v, tables.WRITER])
        return writer in chosen or (writer < 0 and self._m.version_value[v] == self._initial)

    def _elements(self, o: int, x: int, chosen: set[int]) -> list[object]:
        """Return the elements of a list that chosen transactions appended; none for a reader that is not committed."""
        read = self._lists.by_op.get(o)
        codes = [] if read is None else read.codes.tolist()
        return [self._coder.atom(code) for code in codes if self._lists.writer(x, code) in chosen]

    def _value(self, v: int) -> object:
        return self._coder.atom(int(self._m.version_value[v]))
