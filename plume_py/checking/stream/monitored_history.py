"""Names, sessions and lists of a monitored history, kept beside the tables, and its conversion to a ``History``.

``monitor`` uses this module when it takes in transactions, and at the end to check the whole history.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from plume_py.base.errors import InputError, LimitError
from plume_py.checking.stream import level_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.batch import ArrivalLike, Batch, StreamCoder
from plume_py.checking.stream.state import State
from plume_py.history.assemble import RawColumns, RawLists, assemble
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import INITIAL_ID, History, Int64s, Labels
from plume_py.history.times import Times
from plume_py.levels.orders import NONE

# Limit for transactions with one session each: the tables grow with the square.
MOST_SINGLE_SESSIONS = 8_000


class TransactionNames:
    """Names, lines and numbers of arrival of the transactions in the tables."""

    def __init__(self) -> None:
        self._names: list[str | int | None] = []
        self._numbers: list[int] = []
        self.lines: list[int] = []
        self._explicit: set[str] = set()
        self._prefix = "T"
        self._arrived = 0

    def enter(self, arrivals: Sequence[ArrivalLike]) -> None:
        """Take in some transactions. Change nothing if one of their names is invalid."""
        ids = [arrival.id for arrival in arrivals if arrival.id is not None]
        if ids:
            self._check(ids)
            self._explicit |= {str(name) for name in ids}
        for arrival in arrivals:
            self._arrived += 1
            self._names.append(arrival.id)
            self._numbers.append(self._arrived)
            self.lines.append(arrival.line)

    def upcoming(self, i: int, arrival: ArrivalLike) -> str | int:
        """Return the future name of the i-th transaction of the next call of ``enter``."""
        return f"{self._prefix}{self._arrived + i + 1}" if arrival.id is None else arrival.id

    def name(self, t: int) -> str | int:
        """Return the name of transaction t in reports: its id, or a prefix and its number of arrival."""
        name = self._names[t]
        return f"{self._prefix}{self._numbers[t]}" if name is None else name

    def keep(self, survivors: Int64s, transactions: int) -> None:
        """Keep only the survivors among the first ``transactions``, and all later ones."""
        left = [*survivors.tolist(), *range(transactions, len(self._names))]
        self._names = [self._names[t] for t in left]
        self._numbers = [self._numbers[t] for t in left]
        self.lines = [self.lines[t] for t in left]
        self._explicit = {str(name) for name in self._names if name is not None}

    def _check(self, ids: list[str | int]) -> None:
        """Raise ``InputError`` for a repeated or reserved id. Lengthen the prefix if it could produce a given id."""
        seen: set[str] = set()
        for name in ids:
            if str(name) in seen or str(name) in self._explicit:
                raise InputError(f"two transactions have the id {name!r:.60}", hint="give each its own, or none")
            if name == INITIAL_ID:
                raise InputError(f"the id {name!r} is reserved for reports", hint="choose another")
            seen.add(str(name))
            while str(name).startswith(self._prefix) and str(name)[len(self._prefix) :].isdecimal():
                self._prefix += "'"  # a generated name must differ from all given ones


class MonitoredHistory:
    """The part of a monitored history that is not in the tables."""

    def __init__(self, declared: bool, init_txn: InitTxn, per_second: int | None) -> None:
        self.declared = declared
        self.init_txn = init_txn
        self.per_second = per_second
        self.coder = StreamCoder()
        self.names = TransactionNames()
        self.sessions: dict[Hashable, int] = {}
        self.lists: list[tuple[int, Int64s]] = []  # (operation, codes of the elements)
        self.given_sessions: list[int] | None = None  # by transaction: its given session, if the tables have one each

    @property
    def session_count(self) -> int:
        """The number of sessions that the tables need."""
        if self.given_sessions is None:
            return len(self.sessions)
        if len(self.given_sessions) > MOST_SINGLE_SESSIONS:
            raise LimitError(
                f"more than {MOST_SINGLE_SESSIONS:,} transactions cannot be watched without any order between them "
                f"once the order of a session is broken; run isocheck check --order {NONE} when the history is complete"
            )
        return len(self.given_sessions)

    def session_names(self) -> list[str | int]:
        names = self._names_of_sessions()
        return names if self.given_sessions is None else [names[s] for s in self.given_sessions]

    def place(self, m: State, t: int) -> str:
        """Return the position of t in the input: its line, or its path in a JSON history."""
        if self.names.lines[t]:
            return f"line {self.names.lines[t]}"
        session, position = int(m.txn[t, tables.SESSION]), int(m.txn[t, tables.POSITION])
        if self.given_sessions is not None:
            session = self.given_sessions[t]
            position = self.given_sessions[: t + 1].count(session)
        return f"sessions[{session}][{position - 1}]"

    def raise_if_invalid(self, m: State, kind: int, a: int, b: int) -> None:
        """Raise ``InputError`` if an event of this kind means that the input is invalid."""
        if kind == level_kernels.MIXED_USE:
            key = self.coder.atom(int(m.key_code[b]))
            raise InputError(
                f"key {key!r:.60} is used both as a list and as a register",
                where=self.place(m, a),
                hint="use separate keys for appends and for plain writes",
            )
        if kind == level_kernels.AMBIGUOUS:
            x = int(m.version[b, tables.VERSION_KEY])
            both = (int(m.version[b, column]) for column in (tables.WRITER, tables.SECOND))
            written = " and ".join(f"{self.names.name(t)!s:.60} ({self.place(m, t)})" for t in both)
            raise InputError(
                f"ambiguous read: {self.names.name(a)!s:.60} read value "
                f"{self.coder.atom(int(m.version_value[b]))!r:.60} of key "
                f"{self.coder.atom(int(m.key_code[x]))!r:.60}, which two transactions wrote: {written}",
                where=self.place(m, a),
                hint="write each value of a key only once",
            )

    def history(self, m: State, initial: int) -> History:
        """Return all transactions so far as a history. ``initial``: the code of the initial value."""
        txns, ops = int(m.n[tables.TXNS]), int(m.n[tables.OPS])
        lines = self.names.lines[:txns]
        keys, key_atoms = self.coder.table(m.key_code[: int(m.n[tables.KEYS])])
        elements = [codes for _, codes in self.lists]
        versions = int(m.n[tables.VERSIONS])
        codes = np.concatenate([m.version_value[:versions], [initial], *elements]).astype(np.int64)
        values, value_atoms = self.coder.table(codes)
        lists = self._whole_lists(values[versions + 1 :])
        op_value = values[m.op[:ops, tables.VERSION]]
        if lists is not None:  # a history represents a list by its last element
            shows = np.diff(lists.starts) > 0
            op_value[lists.ops[shows]] = lists.values[lists.starts[1:][shows] - 1]
        txn_session = m.txn[:txns, tables.SESSION].copy()
        if self.given_sessions is not None:
            txn_session = np.array(self.given_sessions[:txns], np.int32)
        raw = RawColumns(
            op_kind=(m.op_kind[:ops] & 3).astype(np.uint8),
            op_key=keys[m.op[:ops, tables.KEY]],
            op_value=op_value,
            op_txn=np.repeat(np.arange(txns, dtype=np.int32), np.diff(m.txn[: txns + 1, tables.FIRST_OP])),
            txn_session=txn_session,
            txn_status=m.txn[:txns, tables.STATUS].astype(np.uint8),
            sessions=len(self.sessions),
            keys=key_atoms,
            values=value_atoms,
            initial=int(values[versions]),
            initial_declared=self.declared,
            txn_line=np.array(lines, np.int32) if any(lines) else None,
            times=Times(m.begin[:txns].copy(), m.end[:txns].copy(), self.per_second),
            lists=lists,
            txn_label=Labels(tuple(map(self.names.name, range(txns)))),
            session_label=Labels(tuple(self._names_of_sessions())),
        )
        return assemble(raw, "stream", self.init_txn)

    def batch_without_sessions(self, m: State) -> Batch:
        """Return all transactions so far as a batch with a separate session for each."""
        txns, ops = int(m.n[tables.TXNS]), int(m.n[tables.OPS])
        return Batch(
            kinds=(m.op_kind[:ops] & 3).astype(np.uint8),
            keys=m.key_code[m.op[:ops, tables.KEY]],
            values=m.version_value[m.op[:ops, tables.VERSION]],
            start=m.txn[: txns + 1, tables.FIRST_OP].astype(np.int64),
            session=np.arange(txns, dtype=np.int32),
            status=m.txn[:txns, tables.STATUS].astype(np.uint8),
            begin=m.begin[:txns].copy(),
            end=m.end[:txns].copy(),
            lists=dict(self.lists),
        )

    def _names_of_sessions(self) -> list[str | int]:
        return [name if isinstance(name, int) else str(name) for name in self.sessions]

    def _whole_lists(self, values: Int64s) -> RawLists | None:
        if not self.lists:
            return None
        ops = np.array([o for o, _ in self.lists], np.int64)
        starts = np.cumsum([0, *(len(codes) for _, codes in self.lists)]).astype(np.int64)
        return RawLists(ops, starts, values)
