"""``Monitor``: check the weak levels while transactions arrive.

``isocheck watch`` and library users call it. Batches of arrivals become columns (``batch``), and kernels take them in
(``ingest_kernels``). Each event of the kernels becomes a counterexample (``counterexample``). If a level is violated or
reads are pending at the end, ``close`` checks the whole history with ``check`` and compares the verdicts.
"""

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.text import txn_text
from plume_py.checking.check import NO_TIMES, check
from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.checking.stream import ingest_kernels, level_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import ArrivalLike, Batch, FedTransaction, code_of, make_batch
from plume_py.checking.stream.compiled import prepare
from plume_py.checking.stream.counterexample import Event, Excerpt, InvolvedTransactions, ViolationFilter
from plume_py.checking.stream.garbage_collection import ForgottenTransactions, forget
from plume_py.checking.stream.list_orders import ListOrders
from plume_py.checking.stream.monitored_history import MonitoredHistory, TransactionNames
from plume_py.checking.stream.state import LAYERS, State, new_state, with_room
from plume_py.checking.verdicts import CheckOptions
from plume_py.checking.verdicts import judge_order as judge_in_order
from plume_py.history.formats.reading import no_collector
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import COMMITTED, WRITE, History, Int32s
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import Atom
from plume_py.levels import DEFAULT, GROUPS, RUNNABLE, WEAK
from plume_py.levels.orders import (
    DEFAULT_ORDER,
    NONE,
    REALTIME,
    SESSION,
    LevelRequest,
    in_lattice_order,
    level_request,
    unknown_level,
)
from plume_py.levels.patterns import forbidden_at

# Transactions per call of the kernels.
BATCH = 4096
# Events per level that are explained. Later events of the level are ignored.
MOST_EVENTS = 50
# Examples per pattern requested from the check of one event's transactions. The first new ones are shown.
EXAMPLES = 8
# Estimated loop steps of the kernels per operation.
STEPS = 100

WATCHED_ORDERS = (NONE, SESSION, REALTIME)


class SessionEnd(NamedTuple):
    """The latest time of a session, and the transaction that has it."""

    time: int
    name: str | int
    line: int


class Monitor:
    """Check CI, RC, RA and TCC while transactions arrive: in order within each session, otherwise in any order.

    ``order`` selects the order between transactions: none, that of each session, or real time. A read whose writer has
    not arrived is pending until ``close``, not a violation.

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
        """Create a monitor. See ``HistoryBuilder`` and ``check`` for the other parameters.

        ``declared``: whether the history itself states its initial value. ``order``: the order for every level whose
        name states none; all levels must have the same order. ``window``: the number of recent transactions to keep.
        Older ones are forgotten once they can no longer take part in a violation.
        """
        self._requests = level_requests_of(levels, order)
        self.order = self._requests[0].order
        if self.order == NONE and window is not None:
            raise ValueError("without any order between transactions nothing can be forgotten: use no window")
        self._record = MonitoredHistory(declared, init_txn, per_second)
        self._initial = None if isinstance(initial, list | tuple) else initial
        self._max_examples = max_examples
        self._name = name
        self._code = code_of(self._initial, self._record.coder)
        self._state = self._new_state()
        self._window = window
        self._forgotten = ForgottenTransactions()
        self._forget_at = 0 if window is None else 2 * max(window, 1)
        if window is not None:  # commit orders need all edges since the start
            self._state.n[tables.ORDERED : tables.ORDERED + LAYERS] = 0
            self._state.n[tables.IN_ORDER] = 0
        self._lists = ListOrders()
        self._session_ends: dict[int, SessionEnd] = {}
        self._has_times = False
        self._examples: dict[str, list[Violation]] = {}
        self._explained = np.zeros(len(WEAK), np.int64)
        self._seconds = 0.0

    @property
    def levels(self) -> list[str]:
        """The checked levels, by the requested names."""
        return [each.name for each in self._requests]

    @property
    def transactions(self) -> int:
        return int(self._state.n[tables.TXNS]) + self._forgotten.transactions

    @property
    def operations(self) -> int:
        return int(self._state.n[tables.OPS]) + self._forgotten.operations

    @property
    def sessions(self) -> int:
        m = self._state
        if self._record.given_sessions is not None:
            return len(self._record.sessions)
        begun = int(m.n[tables.SESSIONS])
        lengths = m.lists[m.session[:begun], tables.LENGTH]
        return int(np.count_nonzero(m.last_row[0, :begun].any(axis=1) | (lengths > 0)))

    @property
    def pending(self) -> int:
        """The number of reads whose writer has not arrived."""
        return int(self._state.n[tables.PENDING]) + self._lists.waiting

    @property
    def holding(self) -> tuple[str, ...]:
        """The levels without a violation so far."""
        broken = {level for level, is_broken in zip(WEAK, self._state.broken, strict=True) if is_broken}
        return tuple(each.name for each in self._requests if each.level not in broken or self._lacks_times)

    @property
    def _lacks_times(self) -> bool:
        """Whether the order is real time and no begin is known so far."""
        return self.order == REALTIME and not self._has_times

    def _new_state(self) -> State:
        levels = {each.level for each in self._requests}
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
        """Take in one transaction. Return the violations that it completes."""
        return list(self.feed_all([FedTransaction(session, ops, status, id, line, begin, end)]))

    def feed_all(self, arrivals: Sequence[ArrivalLike]) -> Iterator[Violation]:
        """Take in many transactions, faster. Yield each violation once the transaction that completes it is in."""
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
                self._forgotten.count_latecomers(batch, self._state)
            done = 0
            while done < len(some):
                done = self._take(batch, done)
                if self._state.n[tables.EVENTS]:
                    if self.order == NONE and self._record.given_sessions is None:
                        batch = self._without_sessions(batch, done)
                    found = self._explain()
                    self._seconds += time.perf_counter() - start
                    if not self._lacks_times:
                        yield from found
                    start = time.perf_counter()
            if self._window is not None and self._state.n[tables.TXNS] >= self._forget_at:
                self._forget(self._window)
            self._seconds += time.perf_counter() - start

    def _entered(self, arrivals: Sequence[ArrivalLike]) -> Batch:
        """Return some arrivals as columns, after taking in their names and times. Change nothing if one is invalid."""
        record = self._record
        batch = make_batch(arrivals, record.sessions, record.coder, self._initial)
        ends = _checked_ends(arrivals, batch, record.names, self._session_ends)
        record.names.enter(arrivals)
        self._session_ends |= ends
        self._has_times = self._has_times or bool(np.any(batch.begin > NO_TIME))
        if record.given_sessions is not None:
            first = len(record.given_sessions)
            record.given_sessions += batch.session.tolist()
            batch = batch._replace(session=_numbers(first, len(arrivals)))
        return batch

    def _without_sessions(self, batch: Batch, done: int) -> Batch:
        """Start again without session order, because it is violated. Return the batch with new sessions.

        A level that holds in session order also holds without it, so this was not needed earlier.
        """
        past = self._record.batch_without_sessions(self._state)
        own = self._state.txn[: len(past.session), tables.SESSION].tolist()
        self._record.given_sessions = own + batch.session[done:].tolist()
        self._record.lists = []
        self._state, self._lists = self._new_state(), ListOrders()
        self._make_room(past)
        taken = 0
        while taken < len(own):
            taken = self._take(past, taken)
        self._make_room(batch)
        return batch._replace(session=_numbers(taken - done, len(batch.session)))

    def _one_by_one(self, arrivals: Sequence[ArrivalLike], error: InputError) -> Iterator[Violation]:
        """Take in the arrivals before the invalid one, then raise its error with its line."""
        if len(arrivals) == 1:
            error.where = error.where or (f"line {arrivals[0].line}" if arrivals[0].line else "")
            raise error
        for arrival in arrivals:
            yield from self.feed_all([arrival])

    def _forget(self, window: int) -> None:
        before = self._state
        self._state, survivors = forget(before, window)
        self._forgotten.add(before, survivors, window, int(before.n[tables.OPS] - self._state.n[tables.OPS]))
        self._record.names.keep(survivors, int(before.n[tables.TXNS]))
        self._forget_at = len(survivors) + max(window, 1)

    def close(self) -> Result:
        """Return the final result. Pending reads then count as reads of values that no transaction wrote."""
        self._lists.finish()
        settled = not self.pending and len(self.holding) == len(self.levels)
        if self._window is not None or (settled and not self._assumption_failed() and not self._needs_notes()):
            return self._own_result()
        how: dict[str, Any] = {"order": self.order, "max_examples": self._max_examples, "name": self._name}
        result = check(self.history(), self.levels, **how)
        in_its_order = self.order != NONE or self._record.given_sessions is not None
        if in_its_order and not self._lacks_times and not self._assumption_failed():
            self._compare(result)
        return replace(result, seconds={"watch": self._seconds, **result.seconds})

    def _own_result(self) -> Result:
        """Return the result without a check of the whole history. With a window it is the only one."""
        examples = {} if self._lacks_times else self._examples
        verdicts = {each.name: replace(self._own_verdict(each), order=self.order) for each in self._requests}
        return Result(
            history=self._name,
            format="stream",
            sessions=self.sessions,
            transactions=self.transactions,
            operations=self.operations,
            levels=verdicts,
            violations=tuple(violation for shown in examples.values() for violation in shown),
            counts={tap: len(shown) for tap, shown in examples.items()},
            counts_exact=all(verdict.ok for verdict in verdicts.values()),
            notes=self._forgotten.notes,
            seconds={"check": self._seconds},
        )

    def _own_verdict(self, judged: LevelRequest) -> LevelVerdict:
        level = judged.level
        if self._lacks_times:
            return LevelVerdict(None, reason=NO_TIMES)
        if judged.name not in self.holding:
            return LevelVerdict(False, tuple(tap for tap in forbidden_at(level) if tap in self._examples))
        if self.pending and (level in RUNNABLE or self._forgotten.transactions):
            gone = "were forgotten or " if self._forgotten.transactions else ""
            return LevelVerdict(None, reason=f"{self.pending:,} reads saw values that {gone}nobody wrote")
        if self._forgotten.doubt and level in RUNNABLE:
            return LevelVerdict(None, reason=self._forgotten.doubt)
        if self._state.n[tables.INITIAL_WRITTEN]:
            return LevelVerdict(None, reason="an initial value was written after it had been read")
        return LevelVerdict(True)

    def history(self) -> History:
        return self._record.history(self._state, self._code)

    def _make_room(self, batch: Batch) -> None:
        ops = len(batch.kinds) + batch.items
        sessions = self._record.session_count
        self._state = m = with_room(self._state, len(batch.session), ops, sessions)
        self._tables = prepare(STEPS * ops, m)
        if self._forgotten.transactions:
            self._forgotten.new_sessions += sessions - int(m.n[tables.SESSIONS])
        for s in range(int(m.n[tables.SESSIONS]), sessions):
            tables.open_session(self._tables, s)
        m.n[tables.SESSIONS] = sessions

    def _take(self, batch: Batch, done: int) -> int:
        """Take in transactions from number ``done`` on. Return the next number, which may follow the first event."""
        m = self._state
        last = len(batch.session)
        if batch.lists:
            last = done + 1
        patient = bool(np.all(self._explained[m.levels == 1] >= MOST_EVENTS)) and bool(np.all(m.broken[m.levels == 1]))
        first = int(m.n[tables.TXNS])
        taken = int(ingest_kernels.take_batch(self._tables, done, last, *batch[:8], patient))
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
        """Return the new violations behind the recorded events."""
        m = self._state
        events = [Event(*map(int, row)) for row in m.event[: int(m.n[tables.EVENTS])]]
        m.n[tables.EVENTS] = 0
        found: list[Violation] = []
        for event in events:
            self._record.raise_if_invalid(self._state, event.kind, event.a, event.b)
            level = 0 if event.kind == level_kernels.J else event.level or min(level_kernels.LEVELS)
            if self._explained[level] < MOST_EVENTS:
                self._explained[level] += 1
                found += self._violations(event)
        return found

    def _violations(self, event: Event) -> list[Violation]:
        """Return the new counterexamples among the transactions behind an event."""
        involved = InvolvedTransactions(self._state, self._tables, self._lists).collect(event)
        excerpt = Excerpt(self._state, self._lists, self._record.coder, self._code, event)
        part = excerpt.history(involved, self._record)
        order = SESSION if self.order == REALTIME and part.times is None else self.order
        levels = [level for level in WEAK if level in {each.level for each in self._requests}]
        result = judge_in_order(part, levels, order, CheckOptions(max_examples=EXAMPLES))
        number = {self._record.names.name(t): t for t in involved}
        judge = ViolationFilter(self._state, self._tables, self._lists, self._record.coder, number)
        fresh = []
        for one in judge.confirmed(result.violations, event):
            violation = replace(one, order=self.order)
            shown = self._examples.setdefault(violation.tap, [])
            if len(shown) < self._max_examples and violation not in shown:
                shown.append(violation)
                fresh.append(violation)
        return fresh

    def _assumption_failed(self) -> bool:
        """Return whether an assumption made while watching may be wrong, which only the whole history shows.

        Assumed: no transaction writes the initial value of a key after a read of it, and the history has no explicit
        initial transaction. ``first`` demands one; ``auto`` never violates more levels than ``none``.
        """
        return bool(self._state.n[tables.INITIAL_WRITTEN]) or self._record.init_txn == "first"

    def _needs_notes(self) -> bool:
        """Return whether ``check`` may note the initial transaction or duplicates of a history that holds."""
        m = self._state
        return self._may_have_init() or bool(np.any(m.version[: int(m.n[tables.VERSIONS]), tables.SECOND] >= 0))

    def _may_have_init(self) -> bool:
        """Return whether the first transaction may be an initial one; ``find_init_txn`` has the last word."""
        m = self._state
        if self._record.init_txn == "none" or m.n[tables.TXNS] < 2:
            return False
        ops = range(int(m.txn[0, tables.FIRST_OP]), int(m.txn[1, tables.FIRST_OP]))
        return (
            int(m.txn[0, tables.STATUS]) == COMMITTED
            and int(m.lists[m.session[0], tables.LENGTH]) == 1
            and all(m.op_kind[o] & 3 == WRITE for o in ops)
            and len(ops) > 0
        )

    def _compare(self, result: Result) -> None:
        """Raise ``IsocheckError`` if the monitor and the check of the whole history disagree."""
        for each in self._requests:
            broken = each.name not in self.holding or (bool(self.pending) and each.level in RUNNABLE)
            if broken is not (result.levels[each.name].ok is False):
                raise IsocheckError(f"{each.name}: the monitor and the check of the whole history disagree")


def _numbers(first: int, count: int) -> Int32s:
    return np.arange(first, first + count, dtype=np.int32)


def level_requests_of(levels: str | Sequence[str], order: str) -> list[LevelRequest]:
    """Return the requested levels, from weak to strong; groups such as "weak" are expanded. All have one order."""
    given = [levels] if isinstance(levels, str) else list(levels)
    spelled = [name for spelling in given for name in GROUPS.get(spelling.strip().lower(), (spelling,))]
    meant = {spelling: level_request(spelling, order) for spelling in spelled}
    wrong = sorted(spelling for spelling, found in meant.items() if found is None or found.level not in WEAK)
    if wrong and meant[wrong[0]] is None:
        raise ValueError(unknown_level(wrong[0], WEAK))
    if wrong or not meant:
        raise ValueError(f"cannot watch {' '.join(wrong) or 'no level'}; use some of {' '.join(WEAK)}")
    found = {each.name: each for each in meant.values() if each is not None}
    orders = sorted({each.order for each in found.values()})
    if len(orders) > 1 or orders[0] not in WATCHED_ORDERS:
        raise ValueError(f"cannot watch {' and '.join(orders)} order; use one of {' '.join(WATCHED_ORDERS)}")
    return [found[name] for name in in_lattice_order(found)]


def _checked_ends(
    arrivals: Sequence[ArrivalLike], batch: Batch, names: TransactionNames, earlier: dict[int, SessionEnd]
) -> dict[int, SessionEnd]:
    """Return the new latest times of the sessions in ``batch``. Raise ``InputError`` for impossible times."""
    latest: dict[int, SessionEnd] = {}
    for i in np.flatnonzero((batch.begin > NO_TIME) | (batch.end > NO_TIME)).tolist():
        begin, end, session = int(batch.begin[i]), int(batch.end[i]), int(batch.session[i])
        mine = SessionEnd(max(begin, end), names.upcoming(i, arrivals[i]), arrivals[i].line)
        if begin > end > NO_TIME:
            raise InputError(
                f"{txn_text(mine.name)} ends (at {end}) before it begins (at {begin})",
                where=_place(mine),
                hint="take both times from one clock",
            )
        before = latest.get(session) or earlier.get(session)
        if before is not None and (begin if begin > NO_TIME else end) < before.time:
            raise _overlap(mine, before, begin, end)
        latest[session] = mine if before is None or mine.time > before.time else before
    return latest


def _overlap(mine: SessionEnd, before: SessionEnd, begin: int, end: int) -> InputError:
    what = f"begins (at {begin})" if begin > NO_TIME else f"ends (at {end})"
    place = f" ({_place(before)})" if before.line else ""
    return InputError(
        f"{txn_text(mine.name)} {what} before {txn_text(before.name)}, which its session ran first{place}, "
        f"was over (at {before.time})",
        where=_place(mine),
        hint="take all times from one clock, or give overlapping transactions sessions of their own",
    )


def _place(latest: SessionEnd) -> str:
    return f"line {latest.line}" if latest.line else ""
