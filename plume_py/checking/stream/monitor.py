"""``Monitor``: the weak levels, judged while transactions arrive."""

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plume_py.base.errors import InputError, IsocheckError
from plume_py.checking.check import check
from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.checking.stream import feed_kernels as feed
from plume_py.checking.stream import judge_kernels as judges
from plume_py.checking.stream import native
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import Arrived, Arriving, Batch, code_of, make_batch
from plume_py.checking.stream.codes import StreamCoder
from plume_py.checking.stream.forget import forget
from plume_py.checking.stream.list_orders import ListOrders
from plume_py.checking.stream.names import TransactionNames
from plume_py.checking.stream.proof import Event, Excerpt, Involved, Judge
from plume_py.checking.stream.state import LAYERS, new_state, with_room
from plume_py.history.assemble import RawColumns, RawLists, assemble
from plume_py.history.atoms import Atom
from plume_py.history.formats.json_common import no_collector
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import COMMITTED, WRITE, History, Int64s, Labels
from plume_py.levels import DEFAULT, RUNNABLE, WEAK, parse_level
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
        initial: Atom = None,
        declared: bool = True,
        init_txn: InitTxn = "auto",
        window: int | None = None,
        max_examples: int = 1,
        name: str = "",
    ) -> None:
        """``declared``: the history itself states its initial value. See ``HistoryBuilder`` and ``check``.

        ``window``: forget transactions older than so many that can take part in no violation any more (see ``forget``).
        """
        self.levels = _levels(levels)
        self._initial = None if isinstance(initial, list | tuple) else initial
        self._declared = declared
        self._init_txn = init_txn
        self._max_examples = max_examples
        self._name = name
        self._coder = StreamCoder()
        self._code = code_of(self._initial, self._coder)
        self._state = new_state([level in self.levels for level in WEAK], self._code, init_txn == "first")
        self._window = window
        self._forgotten = 0
        self._forgotten_ops = 0
        self._latecomers = 0  # sessions that began after something was forgotten
        self._forget_at = 0 if window is None else 2 * max(window, 1)
        if window is not None:  # what is written down for later would be lost
            self._state.n[tables.ORDERED : tables.ORDERED + LAYERS] = 0
            self._state.n[tables.IN_ORDER] = 0
        self._lists = ListOrders()
        self._sessions: dict[Hashable, int] = {}
        self._names = TransactionNames()
        self._raw_lists: list[tuple[int, Int64s]] = []
        self._examples: dict[str, list[Violation]] = {}
        self._looked = np.zeros(len(WEAK), np.int64)
        self._seconds = 0.0

    @property
    def transactions(self) -> int:
        """How many transactions have arrived."""
        return int(self._state.n[tables.TXNS]) + self._forgotten

    @property
    def operations(self) -> int:
        """How many operations have arrived."""
        return int(self._state.n[tables.OPS]) + self._forgotten_ops

    @property
    def sessions(self) -> int:
        """How many sessions have begun."""
        m = self._state
        return int(np.count_nonzero(m.now[0, :, :].any(axis=1) | (m.lists[m.session, tables.LENGTH] > 0)))

    @property
    def pending(self) -> int:
        """How many reads wait for their writer."""
        return int(self._state.n[tables.PENDING]) + self._lists.waiting

    @property
    def holding(self) -> tuple[str, ...]:
        """The levels that nothing has broken yet."""
        broken = self._state.broken
        return tuple(level for i, level in enumerate(WEAK) if level in self.levels and not broken[i])

    def feed(
        self,
        session: Hashable,
        ops: Sequence[Sequence[Any]],
        *,
        status: str = "committed",
        id: str | int | None = None,
        line: int = 0,
    ) -> list[Violation]:
        """Take in one transaction; the violations that it completes."""
        return list(self.feed_all([Arrived(session, ops, status, id, line)]))

    def feed_all(self, arrivals: Sequence[Arriving]) -> Iterator[Violation]:
        """Take in many transactions, faster; each violation comes when the transaction that completes it is in."""
        for begin in range(0, len(arrivals), BATCH):
            some = arrivals[begin : begin + BATCH]
            start = time.perf_counter()
            try:
                with no_collector():
                    batch = make_batch(some, self._sessions, self._coder, self._initial)
                    self._names.enter(some)
            except InputError as error:
                yield from self._one_by_one(some, error)
                continue
            if batch.lists and self._window is not None:
                raise InputError("lists cannot be watched in a window: each shows its whole past", hint="use no window")
            self._make_room(batch)
            done = 0
            while done < len(some):
                done = self._take(batch, done)
                if self._state.n[tables.EVENTS]:
                    found = self._explain()
                    self._seconds += time.perf_counter() - start
                    yield from found
                    start = time.perf_counter()
            if self._window is not None and self._state.n[tables.TXNS] >= self._forget_at:
                self._forget(self._window)
            self._seconds += time.perf_counter() - start

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
        self._forgotten += int(before.n[tables.TXNS]) - len(survivors)
        self._forgotten_ops += int(before.n[tables.OPS] - self._state.n[tables.OPS])
        self._names.keep(survivors, int(before.n[tables.TXNS]))
        self._forget_at = len(survivors) + max(window, 1)

    def close(self) -> Result:
        """The final verdict; reads that are still pending are from nobody."""
        self._lists.finish()
        settled = not self.pending and len(self.holding) == len(self.levels)
        if self._window is not None or (settled and not self._assumed_wrongly()):
            return self._own_result()
        result = check(self.history(), self.levels, max_examples=self._max_examples, name=self._name)
        if not self._assumed_wrongly():
            self._compare(result)
        return replace(result, seconds={"watch": self._seconds, **result.seconds})

    def _own_result(self) -> Result:
        """What the monitor alone can say; with a window that is all there is."""
        notes: tuple[str, ...] = ()
        if self._forgotten:
            notes = (f"{self._forgotten:,} transactions were forgotten; what was shown is not all there may be",)
        return Result(
            history=self._name,
            format="stream",
            sessions=self.sessions,
            transactions=self.transactions,
            operations=self.operations,
            levels={level: self._own_verdict(level) for level in self.levels},
            violations=tuple(violation for shown in self._examples.values() for violation in shown),
            counts={tap: len(shown) for tap, shown in self._examples.items()},
            counts_exact=False,
            notes=notes,
            seconds={"check": self._seconds},
        )

    def _own_verdict(self, level: str) -> LevelVerdict:
        if level not in self.holding:
            return LevelVerdict(False, tuple(tap for tap in forbidden_at(level) if tap in self._examples))
        if self.pending and (level in RUNNABLE or self._forgotten):
            gone = "were forgotten or " if self._forgotten else ""
            return LevelVerdict(None, reason=f"{self.pending:,} reads saw values that {gone}nobody wrote")
        if self._latecomers and level in RUNNABLE:
            return LevelVerdict(None, reason=f"{self._latecomers:,} sessions began after the first was forgotten")
        if self._state.n[tables.INITIAL_WRITTEN]:
            return LevelVerdict(None, reason="an initial value was written after it had been read")
        return LevelVerdict(True)

    def history(self) -> History:
        """Everything that has arrived, as a history."""
        m = self._state
        txns, ops = int(m.n[tables.TXNS]), int(m.n[tables.OPS])
        lines = self._names.lines[:txns]
        keys, key_atoms = self._coder.table(m.key_code[: int(m.n[tables.KEYS])])
        elements = [codes for _, codes in self._raw_lists]
        versions = int(m.n[tables.VERSIONS])
        codes = np.concatenate([m.version_value[:versions], [self._code], *elements]).astype(np.int64)
        values, value_atoms = self._coder.table(codes)
        lists = self._whole_lists(values[versions + 1 :])
        op_value = values[m.op[:ops, tables.VERSION]]
        if lists is not None:  # here a list stands for its last element, whoever appended that
            shows = np.diff(lists.starts) > 0
            op_value[lists.ops[shows]] = lists.values[lists.starts[1:][shows] - 1]
        raw = RawColumns(
            op_kind=(m.op_kind[:ops] & 3).astype(np.uint8),
            op_key=keys[m.op[:ops, tables.KEY]],
            op_value=op_value,
            op_txn=np.repeat(np.arange(txns, dtype=np.int32), np.diff(m.txn[: txns + 1, tables.FIRST_OP])),
            txn_session=m.txn[:txns, tables.SESSION].copy(),
            txn_status=m.txn[:txns, tables.STATUS].astype(np.uint8),
            sessions=len(self._sessions),
            keys=key_atoms,
            values=value_atoms,
            initial=int(values[versions]),
            initial_declared=self._declared,
            txn_line=np.array(lines, np.int32) if any(lines) else None,
            lists=lists,
            txn_label=Labels(tuple(map(self._names.name, range(txns)))),
            session_label=Labels(tuple(self._session_names())),
        )
        return assemble(raw, "stream", self._init_txn)

    def _whole_lists(self, values: Int64s) -> RawLists | None:
        if not self._raw_lists:
            return None
        ops = np.array([o for o, _ in self._raw_lists], np.int64)
        starts = np.cumsum([0, *(len(codes) for _, codes in self._raw_lists)]).astype(np.int64)
        return RawLists(ops, starts, values)

    def _session_names(self) -> list[str | int]:
        return [name if isinstance(name, int) else str(name) for name in self._sessions]

    def _make_room(self, batch: Batch) -> None:
        ops = len(batch.kinds) + batch.items
        self._state = m = with_room(self._state, len(batch.session), ops, len(self._sessions))
        self._tables = native.prepare(STEPS * ops, m)
        if self._forgotten:
            self._latecomers += len(self._sessions) - int(m.n[tables.SESSIONS])
        for s in range(int(m.n[tables.SESSIONS]), len(self._sessions)):
            m.session[s] = tables.new_list(self._tables)
        m.n[tables.SESSIONS] = len(self._sessions)

    def _take(self, batch: Batch, done: int) -> int:
        """Take in transactions from ``done`` on; returns how many are in, maybe only up to one with events."""
        m = self._state
        last = len(batch.session)
        if batch.lists:
            last = done + 1
        patient = bool(np.all(self._looked[m.levels == 1] >= LOOKED_INTO)) and bool(np.all(m.broken[m.levels == 1]))
        first = int(m.n[tables.TXNS])
        columns = batch.kinds, batch.keys, batch.values, batch.start, batch.session, batch.status
        taken = int(feed.take_all(self._tables, done, last, *columns, patient))
        if batch.lists:
            begin = int(m.txn[first, tables.FIRST_OP]) - int(batch.start[done])
            lists = {begin + o: batch.lists[o] for o in range(*batch.start[done : done + 2]) if o in batch.lists}
            self._raw_lists += lists.items()
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
            self._reject(event)
            level = 0 if event.kind == judges.J else event.level or min(judges.LEVELS)
            if self._looked[level] < LOOKED_INTO:
                self._looked[level] += 1
                found += self._violations(event)
        return found

    def _violations(self, event: Event) -> list[Violation]:
        """The counterexamples in the transactions behind an event that were not shown often enough yet."""
        involved = Involved(self._state, self._tables, self._lists).collect(event)
        excerpt = Excerpt(self._state, self._lists, self._coder, self._code, event)
        part = excerpt.history(involved, self._names.name, self._session_names(), self._names.lines)
        result = check(part, self.levels, max_examples=EXAMPLES)
        number = {self._names.name(t): t for t in involved}
        judge = Judge(self._state, self._tables, self._lists, self._coder, number)
        fresh = []
        for violation in judge.true_ones(result.violations, event):
            shown = self._examples.setdefault(violation.tap, [])
            if len(shown) < self._max_examples and violation not in shown:
                shown.append(violation)
                fresh.append(violation)
        return fresh

    def _reject(self, event: Event) -> None:
        """Some events mean that the input makes no sense."""
        m = self._state
        if event.kind == judges.MIXED_USE:
            key = self._coder.spell(int(m.key_code[event.b]))
            raise InputError(
                f"key {key!r:.60} is used both as a list and as a register",
                where=self._place(event.a),
                hint="use separate keys for appends and for plain writes",
            )
        if event.kind == judges.AMBIGUOUS:
            v = event.b
            x = int(m.version[v, tables.VERSION_KEY])
            both = (int(m.version[v, column]) for column in (tables.WRITER, tables.SECOND))
            written = " and ".join(f"{self._names.name(t)!s:.60} ({self._place(t)})" for t in both)
            raise InputError(
                f"ambiguous read: {self._names.name(event.a)!s:.60} read value "
                f"{self._coder.spell(int(m.version_value[v]))!r:.60} of key "
                f"{self._coder.spell(int(m.key_code[x]))!r:.60}, which two transactions wrote: {written}",
                where=self._place(event.a),
                hint="write each value of a key only once",
            )

    def _place(self, t: int) -> str:
        if self._names.lines[t]:
            return f"line {self._names.lines[t]}"
        txn = self._state.txn[t]
        return f"sessions[{txn[tables.SESSION]}][{txn[tables.POSITION] - 1}]"

    def _assumed_wrongly(self) -> bool:
        """Was something taken for granted that only the end of the history can tell?

        That nobody writes the initial value of a key after it was read, and that there is no explicit initial
        transaction, unless told so.
        """
        return bool(self._state.n[tables.INITIAL_WRITTEN]) or self._init_txn == "first" or self._may_have_init()

    def _may_have_init(self) -> bool:
        """Could the first transaction be an initial one? (A quick look; ``find_init_txn`` has the last word.)"""
        m = self._state
        if self._init_txn == "none" or m.n[tables.TXNS] < 2 or m.n[tables.IMPLICIT_READS]:
            return False
        ops = range(int(m.txn[0, tables.FIRST_OP]), int(m.txn[1, tables.FIRST_OP]))
        return (
            int(m.txn[0, tables.STATUS]) == COMMITTED
            and int(m.lists[m.session[0], tables.LENGTH]) == 1
            and all(m.op_kind[o] & 3 == WRITE for o in ops)
            and len(ops) > 0
        )

    def _compare(self, result: Result) -> None:
        """Two engines judged the same history: if they differ, neither is to be believed."""
        for i, level in enumerate(WEAK):
            if level in self.levels:
                broken = bool(self._state.broken[i]) or (bool(self.pending) and level in RUNNABLE)
                if broken is not (result.levels[level].ok is False):
                    raise IsocheckError(f"{level}: the monitor and the check of the whole history disagree")


def _levels(levels: str | Sequence[str]) -> list[str]:
    spelled = [levels] if isinstance(levels, str) else list(levels)
    names = {parse_level(level) or level for level in spelled}
    wrong = sorted(names - set(WEAK))
    if wrong or not names:
        raise ValueError(f"cannot watch {' '.join(wrong) or 'no level'}; use some of {' '.join(WEAK)}")
    return [level for level in WEAK if level in names]
