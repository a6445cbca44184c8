"""From an event of the kernels to a counterexample: the few transactions behind it, checked on their own.

An event says that an edge closes a cycle, or that one read is wrong. The transactions of the cycle, those whose reads
force its edges, and those that connect them make up a small history: its reads are the ones among these transactions,
and its lists show only what these appended. Leaving out reads and transactions only ever takes constraints away, so
what is wrong with it is wrong with the whole. One thing has to be looked up there: whether a violation is an echo.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plume_py.checking.result import Id, Step, Violation
from plume_py.checking.stream import forced_edge_kernels as forcing
from plume_py.checking.stream import reachability_kernels as reach
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream import time_kernels as times
from plume_py.checking.stream.codes import StreamCoder
from plume_py.checking.stream.list_orders import CONTRADICTING_LISTS, WRONG_LIST, ListOrders
from plume_py.checking.stream.monitored_history import Record
from plume_py.checking.stream.state import State
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import READ_LIST, STATUS_NAMES, History
from plume_py.history.times import known
from plume_py.levels import WEAK, visibility_bits
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN, TRIPLES, VERSION_CYCLE
from plume_py.levels.table import TRANSITIVE

# A path that has not ended after so many sessions is not going to: the order has cycles from earlier violations.
MAX_HOPS = 1000

# The patterns that may have echoes, all that are about more than one read, and those that only lists have.
ECHOING = "".join(TRIPLES.values())
GRAPH = ("g", "j", VERSION_CYCLE, *ECHOING)
OF_LISTS = (DUPLICATE, TORN, INCOMPATIBLE)

EDGE_COLUMNS = (tables.EDGE_FROM, tables.EDGE_LEVEL, tables.EDGE_READ, tables.EDGE_LIST)


@dataclass(frozen=True)
class Event:
    """What a kernel noted: see ``force_kernels.note``."""

    kind: int
    level: int
    a: int
    b: int
    r: int
    list: int

    @property
    def of_list(self) -> bool:
        """Is something wrong with a list by itself, or with two of them?"""
        return self.kind in (WRONG_LIST, CONTRADICTING_LISTS)


class Judge:
    """Decides whether what an excerpt shows is true of the whole; ``number`` has its transactions by their names."""

    def __init__(self, m: State, native: Any, lists: ListOrders, coder: StreamCoder, number: dict[Id, int]) -> None:
        self._m = m
        self._native = native
        self._lists = lists
        self._coder = coder
        self._number = number

    def true_ones(self, violations: Iterable[Violation], event: Event) -> list[Violation]:
        """Those that are violations of the whole, too.

        A list that waits for some of its elements is shown without them, and may then seem to say more than it does by
        now. What rests on that is taken only if there is nothing else to explain the event.
        """
        true = [violation for violation in violations if not self._is_echo(violation)]
        if event.of_list:  # the list at hand may lack the element that tells from whom it was read
            return [violation for violation in true if violation.tap not in GRAPH]
        return [violation for violation in true if self._is_certain(violation, event)] or true

    def _is_echo(self, violation: Violation) -> bool:
        """Does what a triple forces follow from a causal path, which need not be in the excerpt?"""
        if violation.tap not in ECHOING:
            return False
        forced = violation.steps[-1]
        return forced.target in self._number and self._is_causal(forced)  # else it is the initial state

    def _is_certain(self, violation: Violation, event: Event) -> bool:
        """Does it rest on lists that are complete, or on none?"""
        if violation.tap in OF_LISTS and event.kind >= forcing.J:
            return False
        return all(self._is_fixed(step) for step in violation.steps if step.relation == "WW")

    def _is_causal(self, step: Step) -> bool:
        u, v = self._number[step.source], self._number[step.target]
        return bool(reach.before(self._native, reach.CAUSAL, u, v))

    def _is_fixed(self, step: Step) -> bool:
        """Is the list that shows this order right as a whole? If not, the order may be known from elsewhere."""
        assert step.reader is not None
        begin, end = self._m.txn[self._number[step.reader] :, tables.FIRST_OP][:2].tolist()
        reads = [self._lists.by_op[o] for o in range(begin, end) if o in self._lists.by_op]
        of_key = [read for read in reads if self._coder.spell(int(self._m.key_code[read.key])) == step.key]
        return any(read.clean for read in of_key) or self._is_causal(step)


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
        if event.kind == forcing.J:
            self.transactions |= self._sources(event.a)
        elif event.kind == forcing.CAUSAL_CYCLE:
            self._path(reach.CAUSAL, event.b, event.a)
        elif event.kind == forcing.STALE:
            self._evidence(event.level, event.a, event.b)
        elif event.kind == forcing.FORCED_CYCLE:
            self._reason(event.level, event.a, event.b, event.r, event.list)
            self._path(event.level, event.b, event.a)
        elif event.of_list:
            self._read_list(event.list)
            self.transactions |= self._lists.reads[event.list].blamed
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
        elif t in self._lists.shown_by:
            self._read_list(self._lists.shown_by[t])

    def _read_list(self, number: int) -> None:
        """Who read a list, and from whom."""
        read = self._lists.reads[number]
        self.transactions |= {read.reader} | self._lists.source(read)

    def _sources(self, t: int) -> set[int]:
        begin, end = (int(self._m.txn[u, tables.FIRST_READ]) for u in (t, t + 1))
        return {int(source) for source in self._m.read[begin:end, tables.SOURCE] if source >= 0}

    def _reason(self, level: int, u: int, v: int, r: int, number: int) -> None:
        """Why u must come before v: read r, a list, or real time."""
        if number >= 0:
            self._read_list(number)
            return
        if r < 0:  # u had ended before v began
            return
        t3 = int(self._m.read[r, tables.READER])
        self.transactions.add(t3)
        if t3 != v:  # else r itself reads from u
            self._evidence(level, u, t3)

    def _evidence(self, level: int, t2: int, t3: int) -> None:
        """Why t2 comes before t3 in the sense of the level; for RC and RA they meet directly."""
        if visibility_bits(WEAK[level]) & TRANSITIVE:
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
                _, _, r, number = (int(self._m.edge[e, column]) for column in EDGE_COLUMNS)
                self._reason(level, at, following, r, number)
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
        for earlier in self._ended_before(t):
            yield earlier, None

    def _ended_before(self, t: int) -> Iterator[int]:
        """Real time: the last of each other session that had ended before t began."""
        if self._m.n[tables.REAL_TIME] and self._m.txn[t, tables.LIVE]:
            for s in range(int(self._m.n[tables.SESSIONS])):
                earlier = int(times.ended_before(self._native, t, s))
                if earlier >= 0:
                    yield earlier

    def _learnt_from(self, layer: int, begin: int, at: int) -> int | None:
        """From whom ``at`` knows of ``begin``: a source of its reads, one that had ended, one that is forced."""
        direct = (*self._sources(at), *self._ended_before(at))
        for source in sorted(direct, key=lambda t: t != begin):
            if source == begin or reach.before(self._native, layer, begin, source):
                return source
        e = int(self._m.txn[at, tables.EDGE])
        while e >= 0:
            u, level, r, number = (int(self._m.edge[e, column]) for column in EDGE_COLUMNS)
            e = int(self._m.edge[e, tables.NEXT_IN])
            if level == layer and (u == begin or reach.before(self._native, layer, begin, u)):
                self._reason(level, u, at, r, number)
                return u
        return None


class Excerpt:
    """Writes histories of some of the monitor's transactions."""

    def __init__(self, m: State, lists: ListOrders, coder: StreamCoder, initial: int, event: Event) -> None:
        self._m = m
        self._lists = lists
        self._wrong = lists.reads[event.list].op if event.of_list else -1  # which is shown in any case
        self._coder = coder
        self._initial = initial

    def history(
        self,
        transactions: Iterable[int],
        record: Record,
    ) -> History:
        """These transactions, with their writes and the reads among them."""
        m, sessions = self._m, record.session_names()
        chosen = sorted(transactions, key=lambda t: (m.txn[t, tables.SESSION], m.txn[t, tables.POSITION]))
        builder = HistoryBuilder(self._coder.spell(self._initial), per_second=record.per_second)
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
                key = self._coder.spell(int(self._m.key_code[x]))
                value = self._elements(o, x, chosen) if kind == READ_LIST else self._spell(v)
                ops.append((("r", "w", "r", "append")[kind], key, value))
        return ops

    def _range(self, t: int) -> range:
        return range(int(self._m.txn[t, tables.FIRST_OP]), int(self._m.txn[t + 1, tables.FIRST_OP]))

    def _visible(self, v: int, chosen: set[int]) -> bool:
        """Was it written by one of the chosen, or is it initial?"""
        writer = int(self._m.version[v, tables.WRITER])
        return writer in chosen or (writer < 0 and self._m.version_value[v] == self._initial)

    def _elements(self, o: int, x: int, chosen: set[int]) -> list[object]:
        """What a list shows of the chosen. Who read it need not be committed: then it does not matter."""
        read = self._lists.by_op.get(o)
        codes = [] if read is None else read.codes.tolist()
        return [self._coder.spell(code) for code in codes if self._lists.writer(x, code) in chosen]

    def _spell(self, v: int) -> object:
        return self._coder.spell(int(self._m.version_value[v]))
