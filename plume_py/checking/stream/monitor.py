"""``Monitor``: the weak levels, judged while transactions arrive."""

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plume_py.base.errors import InputError, IsocheckError
from plume_py.checking.check import NO_TIMES, check
from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.checking.stream import forced_edge_kernels as forcing
from plume_py.checking.stream import ingest_kernels as feed
from plume_py.checking.stream import level_kernels as judges
from plume_py.checking.stream import native
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.asked import watched
from plume_py.checking.stream.batch import Arrived, Arriving, Batch, code_of, make_batch
from plume_py.checking.stream.clocks import SessionClocks
from plume_py.checking.stream.counterexample import Event, Excerpt, Involved, Judge
from plume_py.checking.stream.garbage_collection import Forgotten, forget
from plume_py.checking.stream.list_orders import ListOrders
from plume_py.checking.stream.monitored_history import Record
from plume_py.checking.stream.state import LAYERS, State, new_state, with_room
from plume_py.checking.verdicts import CheckOptions
from plume_py.checking.verdicts import judge as judge_in_order
from plume_py.history.formats.reading import no_collector
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import History, Int32s
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import Atom
from plume_py.levels import DEFAULT, RUNNABLE, WEAK
from plume_py.levels.orders import DEFAULT_ORDER, NONE, REALTIME, SESSION, LevelRequest
from plume_py.levels.patterns import forbidden_at

# So many transactions go to the kernels at once.
BATCH = 4096
# So many events of a level are looked into; then the level is known to be broken well enough.
LOOKED_INTO = 50
# So many examples of each pattern are made of the transactions behind one event; the first that stands is shown.
EXAMPLES = 8
# Steps of kernels for one operation, roughly.
STEPS = 100


class Monitor:
    """Judges CI, RC, RA and TCC while transactions arrive, each session's in session order, otherwise in any order.

    Which order between transactions counts is another matter: none, that of each session, or real time.
    A read whose writer has not arrived is pending, not wrong, until ``close``.

    >>> from plume_py import Monitor
    >>> monitor = Monitor("RA", initial=0)
    >>> monitor.feed("alice", [("w", "x", 1)])
    []
    >>> [violation.tap for violation in monitor.feed("alice", [("r", "x", 0)])]
    ['k']
    >>> monitor.close().ok
    False
    """

    def __init__(
        self,
        levels: str | Sequence[str] = DEFAULT,
        *,
        order: str = DEFAULT_ORDER,
        initial: Atom = None,
        declared: bool = True,
        init_txn: InitTxn = "auto",
        window: int | None = None,
        max_examples: int = 1,
        name: str = "",
        per_second: int | None = None,
    ) -> None:
        """``declared``: the history itself states its initial value. See ``HistoryBuilder`` and ``check``.

        ``order`` between transactions counts for every level whose name says no other; it is the same for all of them.
        ``window``: forget transactions older than so many that can take part in no violation any more (see ``forget``).
        """
        self._asked = watched(levels, order)
        self.order = self._asked[0].order
        if self.order == NONE and window is not None:
            raise ValueError("without any order between transactions nothing can be forgotten: use no window")
        self._record = Record(declared, init_txn, per_second)
        self._initial = None if isinstance(initial, list | tuple) else initial
        self._max_examples = max_examples
        self._name = name
        self._code = code_of(self._initial, self._record.coder)
        self._state = self._new_state()
        self._window = window
        self._gone = Forgotten()
        self._forget_at = 0 if window is None else 2 * max(window, 1)
        if window is not None:  # what is written down for later would be lost
            self._state.n[tables.ORDERED : tables.ORDERED + LAYERS] = 0
            self._state.n[tables.IN_ORDER] = 0
        self._lists = ListOrders()
        self._clocks = SessionClocks()
        self._has_times = False
        self._examples: dict[str, list[Violation]] = {}
        self._looked = np.zeros(len(WEAK), np.int64)
        self._seconds = 0.0

    @property
    def levels(self) -> list[str]:
        """What is judged, by the names that were asked for."""
        return [each.name for each in self._asked]

    @property
    def transactions(self) -> int:
        """How many transactions have arrived."""
        return int(self._state.n[tables.TXNS]) + self._gone.transactions

    @property
    def operations(self) -> int:
        """How many operations have arrived."""
        return int(self._state.n[tables.OPS]) + self._gone.operations

    @property
    def sessions(self) -> int:
        """How many sessions have begun."""
        m = self._state
        if self._record.own_sessions is not None:
            return len(self._record.sessions)
        begun = int(m.n[tables.SESSIONS])
        lengths = m.lists[m.session[:begun], tables.LENGTH]
        return int(np.count_nonzero(m.now[0, :begun].any(axis=1) | (lengths > 0)))

    @property
    def pending(self) -> int:
        """How many reads wait for their writer."""
        return int(self._state.n[tables.PENDING]) + self._lists.waiting

    @property
    def holding(self) -> tuple[str, ...]:
        """The levels that nothing has broken yet."""
        broken = {level for level, is_broken in zip(WEAK, self._state.broken, strict=True) if is_broken}
        return tuple(each.name for each in self._asked if each.level not in broken or self._waits_for_times)

    @property
    def _waits_for_times(self) -> bool:
        """Does real time count, and has nobody said yet when anything began?"""
        return self.order == REALTIME and not self._has_times

    def _new_state(self) -> State:
        levels = {each.level for each in self._asked}
        first = self._record.init_txn == "first"
        return new_state([level in levels for level in WEAK], self._code, first, self.order == REALTIME)

    def feed(
        self,
        session: Hashable,
        ops: Sequence[Sequence[Any]],
        *,
        status: str = "committed",
        id: str | int | None = None,
        line: int = 0,
        begin: int | None = None,
        end: int | None = None,
    ) -> list[Violation]:
        """Take in one transaction; the violations that it completes."""
        return list(self.feed_all([Arrived(session, ops, status, id, line, begin, end)]))

    def feed_all(self, arrivals: Sequence[Arriving]) -> Iterator[Violation]:
        """Take in many transactions, faster; each violation comes when the transaction that completes it is in."""
        for begin in range(0, len(arrivals), BATCH):
            some = arrivals[begin : begin + BATCH]
            start = time.perf_counter()
            try:
                with no_collector():
                    batch = self._entered(some)
            except InputError as error:
                yield from self._one_by_one(some, error)
                continue
            if batch.lists and self._window is not None:
                raise InputError("lists cannot be watched in a window: each shows its whole past", hint="use no window")
            self._make_room(batch)
            if self.order == REALTIME:
                self._gone.meet(batch, self._state)
            done = 0
            while done < len(some):
                done = self._take(batch, done)
                if self._state.n[tables.EVENTS]:
                    if self.order == NONE and self._record.own_sessions is None:
                        batch = self._without_sessions(batch, done)
                    found = self._explain()
                    self._seconds += time.perf_counter() - start
                    if not self._waits_for_times:
                        yield from found
                    start = time.perf_counter()
            if self._window is not None and self._state.n[tables.TXNS] >= self._forget_at:
                self._forget(self._window)
            self._seconds += time.perf_counter() - start

    def _entered(self, arrivals: Sequence[Arriving]) -> Batch:
        """Some arrivals as columns, and their names and times taken down; nothing is if something is wrong with one."""
        record = self._record
        batch = make_batch(arrivals, record.sessions, record.coder, self._initial)
        latest = self._clocks.advanced(arrivals, batch, record.names)
        record.names.enter(arrivals)
        self._clocks.advance(latest)
        self._has_times = self._has_times or bool(np.any(batch.begin > NO_TIME))
        if record.own_sessions is not None:
            first = len(record.own_sessions)
            record.own_sessions += batch.session.tolist()
            batch = replace(batch, session=_numbers(first, len(arrivals)))
        return batch

    def _without_sessions(self, batch: Batch, done: int) -> Batch:
        """What holds in session order holds without it. Now that something does not, each transaction stands alone."""
        past = self._record.again(self._state)
        own = self._state.txn[: len(past.session), tables.SESSION].tolist()
        self._record.own_sessions = own + batch.session[done:].tolist()
        self._record.lists = []
        self._state, self._lists = self._new_state(), ListOrders()
        self._make_room(past)
        taken = 0
        while taken < len(own):
            taken = self._take(past, taken)
        self._make_room(batch)
        return replace(batch, session=_numbers(taken - done, len(batch.session)))

    def _one_by_one(self, arrivals: Sequence[Arriving], error: InputError) -> Iterator[Violation]:
        """Something is wrong with one of the arrivals: those before it count, and it says where it stands."""
        if len(arrivals) == 1:
            error.where = error.where or (f"line {arrivals[0].line}" if arrivals[0].line else "")
            raise error
        for arrival in arrivals:
            yield from self.feed_all([arrival])

    def _forget(self, window: int) -> None:
        before = self._state
        self._state, survivors = forget(before, window)
        self._gone.add(before, survivors, window, int(before.n[tables.OPS] - self._state.n[tables.OPS]))
        self._record.names.keep(survivors, int(before.n[tables.TXNS]))
        self._forget_at = len(survivors) + max(window, 1)

    def close(self) -> Result:
        """The final verdict; reads that are still pending are from nobody."""
        self._lists.finish()
        settled = not self.pending and len(self.holding) == len(self.levels)
        if self._window is not None or (settled and not self._assumed_wrongly()):
            return self._own_result()
        how: dict[str, Any] = {"order": self.order, "max_examples": self._max_examples, "name": self._name}
        result = check(self.history(), self.levels, **how)
        in_its_order = self.order != NONE or self._record.own_sessions is not None
        if in_its_order and not self._waits_for_times and not self._assumed_wrongly():
            self._compare(result)
        return replace(result, seconds={"watch": self._seconds, **result.seconds})

    def _own_result(self) -> Result:
        """What the monitor alone can say; with a window that is all there is."""
        examples = {} if self._waits_for_times else self._examples
        return Result(
            history=self._name,
            format="stream",
            sessions=self.sessions,
            transactions=self.transactions,
            operations=self.operations,
            levels={each.name: replace(self._own_verdict(each), order=self.order) for each in self._asked},
            violations=tuple(violation for shown in examples.values() for violation in shown),
            counts={tap: len(shown) for tap, shown in examples.items()},
            counts_exact=False,
            notes=self._gone.notes,
            seconds={"check": self._seconds},
        )

    def _own_verdict(self, judged: LevelRequest) -> LevelVerdict:
        level = judged.level
        if self._waits_for_times:
            return LevelVerdict(None, reason=NO_TIMES)
        if judged.name not in self.holding:
            return LevelVerdict(False, tuple(tap for tap in forbidden_at(level) if tap in self._examples))
        if self.pending and (level in RUNNABLE or self._gone.transactions):
            gone = "were forgotten or " if self._gone.transactions else ""
            return LevelVerdict(None, reason=f"{self.pending:,} reads saw values that {gone}nobody wrote")
        if self._gone.doubt and level in RUNNABLE:
            return LevelVerdict(None, reason=self._gone.doubt)
        if self._state.n[tables.INITIAL_WRITTEN]:
            return LevelVerdict(None, reason="an initial value was written after it had been read")
        return LevelVerdict(True)

    def history(self) -> History:
        """Everything that has arrived, as a history."""
        return self._record.history(self._state, self._code)

    def _make_room(self, batch: Batch) -> None:
        ops = len(batch.kinds) + batch.items
        sessions = self._record.session_count
        self._state = m = with_room(self._state, len(batch.session), ops, sessions)
        self._tables = native.prepare(STEPS * ops, m)
        if self._gone.transactions:
            self._gone.new_sessions += sessions - int(m.n[tables.SESSIONS])
        for s in range(int(m.n[tables.SESSIONS]), sessions):
            tables.open_session(self._tables, s)
        m.n[tables.SESSIONS] = sessions

    def _take(self, batch: Batch, done: int) -> int:
        """Take in transactions from ``done`` on; returns how many are in, maybe only up to one with events."""
        m = self._state
        last = len(batch.session)
        if batch.lists:
            last = done + 1
        patient = bool(np.all(self._looked[m.levels == 1] >= LOOKED_INTO)) and bool(np.all(m.broken[m.levels == 1]))
        first = int(m.n[tables.TXNS])
        columns = (
            batch.kinds,
            batch.keys,
            batch.values,
            batch.start,
            batch.session,
            batch.status,
            batch.begin,
            batch.end,
        )
        taken = int(feed.take_all(self._tables, done, last, *columns, patient))
        if batch.lists:
            begin = int(m.txn[first, tables.FIRST_OP]) - int(batch.start[done])
            lists = {begin + o: batch.lists[o] for o in range(*batch.start[done : done + 2]) if o in batch.lists}
            self._record.lists += lists.items()
            self._lists.take(m, self._tables, first, lists)
        elif self._lists.reads:
            for t in range(first, int(m.n[tables.TXNS])):
                self._lists.take(m, self._tables, t, {})
        return taken

    def _explain(self) -> list[Violation]:
        """What the events mean, as far as that is new."""
        m = self._state
        events = [Event(*map(int, row)) for row in m.event[: int(m.n[tables.EVENTS])]]
        m.n[tables.EVENTS] = 0
        found: list[Violation] = []
        for event in events:
            self._record.reject(self._state, event.kind, event.a, event.b)
            level = 0 if event.kind == forcing.J else event.level or min(judges.LEVELS)
            if self._looked[level] < LOOKED_INTO:
                self._looked[level] += 1
                found += self._violations(event)
        return found

    def _violations(self, event: Event) -> list[Violation]:
        """The counterexamples in the transactions behind an event that were not shown often enough yet."""
        involved = Involved(self._state, self._tables, self._lists).collect(event)
        excerpt = Excerpt(self._state, self._lists, self._record.coder, self._code, event)
        part = excerpt.history(involved, self._record)
        order = SESSION if self.order == REALTIME and part.times is None else self.order
        levels = [level for level in WEAK if level in {each.level for each in self._asked}]
        result = judge_in_order(part, levels, order, CheckOptions(max_examples=EXAMPLES))
        number = {self._record.names.name(t): t for t in involved}
        judge = Judge(self._state, self._tables, self._lists, self._record.coder, number)
        fresh = []
        for one in judge.true_ones(result.violations, event):
            violation = replace(one, order=self.order)
            shown = self._examples.setdefault(violation.tap, [])
            if len(shown) < self._max_examples and violation not in shown:
                shown.append(violation)
                fresh.append(violation)
        return fresh

    def _assumed_wrongly(self) -> bool:
        """Was something taken for granted that only the end of the history can tell?

        It is taken for granted that no transaction writes the initial value of a key after a read of it, and that there
        is no explicit initial transaction, which only ``first`` demands: ``auto`` never violates more than ``none``.
        """
        return bool(self._state.n[tables.INITIAL_WRITTEN]) or self._record.init_txn == "first"

    def _compare(self, result: Result) -> None:
        """Two engines judged the same history: if they differ, neither is to be believed."""
        for each in self._asked:
            broken = each.name not in self.holding or (bool(self.pending) and each.level in RUNNABLE)
            if broken is not (result.levels[each.name].ok is False):
                raise IsocheckError(f"{each.name}: the monitor and the check of the whole history disagree")


def _numbers(first: int, count: int) -> Int32s:
    return np.arange(first, first + count, dtype=np.int32)
