"""Decide which versions a level allows a read to return, given all reads so far.

RC, RA and TCC, also mixed, have an incremental rule: the commit order that reads force must stay acyclic. Sets of
transactions are integers there, one bit each. SER only allows the newest version, in the order of execution. For other
levels, the checker decides whether the history with the read satisfies the level.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from plume_py.base.bits import bits, closure
from plume_py.checking.declared import DECLARED
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL
from plume_py.levels import NAMES, RUNNABLE, STRONGEST, WEAK, visibility_bits
from plume_py.levels.table import AT_COMMIT
from plume_py.levels.visibility import visible_set

Key = str


@dataclass
class Record:
    """A transaction as the store records it."""

    number: int
    session: Hashable
    id: str
    level: str
    reads: list[tuple[Key, int]] = field(default_factory=list)  # external reads, in program order
    writes: dict[Key, Any] = field(default_factory=dict)
    ops: list[tuple[str, Key, str | None]] = field(default_factory=list)  # for the history
    committed: bool = False
    refused: bool = False  # the level did not allow a read, or the commit


class Committed(Protocol):
    """The committed transactions, as the rules use them."""

    @property
    def records(self) -> Sequence[Record]:
        """In the order of their commits."""
        ...

    def writers_of(self, key: Key) -> list[int]:
        """Return the transactions that committed a write of the key, oldest first."""
        ...


class Rules(Protocol):
    """The rules of a level."""

    levels: tuple[str, ...]  # supported levels of transactions

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Return whether the transaction, after its operations so far, may read ``key`` from ``writer``."""
        ...

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Return whether the transaction may commit."""
        ...

    def committed(self, store: Committed, txn: Record) -> None:
        """Take note that the transaction committed."""
        ...


def rules_for(level: str) -> Rules:
    """Return the rules of a store at this level."""
    if level in WeakRules.levels:
        return WeakRules()
    if level == STRONGEST:
        return SerialRules()
    return CheckedRules()


class SerialRules:
    """SER in the order of execution: only the newest version is legal."""

    levels = NAMES

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        writers = store.writers_of(key)
        return writer == (writers[-1] if writers else INITIAL)

    def may_commit(self, store: Committed, txn: Record) -> bool:
        return True

    def committed(self, store: Committed, txn: Record) -> None:
        """Do nothing."""


class WeakRules:
    """RC, RA and TCC: the commit order that reads force must be acyclic."""

    levels = tuple(level for level in WEAK if level in RUNNABLE)

    def __init__(self) -> None:
        self._sees: list[int] = []  # transaction -> the transactions that it sees, as bits
        self._after: list[int] = []  # transaction -> direct predecessors in the commit order, as bits
        self._session: dict[object, int] = {}  # session -> its transactions so far, as bits
        self._writers: dict[Key, int] = {}

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Return whether the forced order stays acyclic."""
        forced = list(self._forced(txn, [*txn.reads, (key, writer)]))
        if any(target == INITIAL for _, target in forced):
            return False
        return self._acyclic(forced)

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Return True: writes force nothing at these levels."""
        return True

    def committed(self, store: Committed, txn: Record) -> None:
        """Record what it sees, and what its reads force."""
        bit = 1 << txn.number
        for others, target in self._forced(txn, txn.reads):
            self._after[target] |= others
        self._sees.append(self._visible(txn, txn.reads))
        self._after.append(self._near(txn, txn.reads))
        self._session[txn.session] = self._session.get(txn.session, 0) | bit
        for key in txn.writes:
            self._writers[key] = self._writers.get(key, 0) | bit

    def _near(self, txn: Record, reads: Iterable[tuple[Key, int]]) -> int:
        return self._session.get(txn.session, 0) | bits(writer for _, writer in reads if writer != INITIAL)

    def _visible(self, txn: Record, reads: list[tuple[Key, int]]) -> int:
        return visible_set(visibility_bits(txn.level), self._near(txn, reads), 0, -1, self._sees)

    def _forced(self, txn: Record, reads: list[tuple[Key, int]]) -> Iterator[tuple[int, int]]:
        """Yield (others, writer): the others, as bits, must commit before the writer."""
        at_commit = visibility_bits(txn.level) & AT_COMMIT
        visible = self._visible(txn, reads) if at_commit else 0
        for key, writer in reads:
            others = visible & self._writers.get(key, 0)
            if writer != INITIAL:
                others &= ~(1 << writer)
            if others:
                yield others, writer
            if not at_commit and writer != INITIAL:
                visible |= 1 << writer

    def _acyclic(self, forced: list[tuple[int, int]]) -> bool:
        extra: dict[int, int] = {}
        for others, target in forced:
            extra[target] = extra.get(target, 0) | others

        def before(t: int) -> int:
            return self._after[t] | extra.get(t, 0)

        return not any(closure(others, before, until=1 << target) >> target & 1 for target, others in extra.items())


class CheckedRules:
    """Any level, also mixed: the checker decides."""

    levels = NAMES

    def __init__(self) -> None:
        self._verdicts: dict[object, bool] = {}

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Return whether the history with this read satisfies the level."""
        return self._keeps(store, txn, [*txn.reads, (key, writer)], ())

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Return whether the history satisfies the level. Only writes can have changed that."""
        return not txn.writes or self._keeps(store, txn, txn.reads, tuple(txn.writes))

    def committed(self, store: Committed, txn: Record) -> None:
        """Do nothing: the checker examines the whole history each time."""

    def _keeps(self, store: Committed, txn: Record, reads: list[tuple[Key, int]], writes: Iterable[Key]) -> bool:
        from plume_py.checking.check import check

        builder = HistoryBuilder(None)
        for record in store.records:
            builder.add(record.session, _ops(store, record.number, record.reads, record.writes), level=record.level)
        builder.add(txn.session, _ops(store, txn.number, reads, writes), level=txn.level)
        levels = {record.level for record in store.records} | {txn.level}
        level = DECLARED if len(levels) > 1 else txn.level
        return check(builder.build(init_txn="none"), level, max_examples=0).ok is True


def _ops(
    store: Committed, number: int, reads: list[tuple[Key, int]], writes: Iterable[Key]
) -> list[tuple[str, Key, int | None]]:
    """Return operations for the checker; a value is its writer's number.

    Keys without a committed writer are left out.
    """
    seen = [("r", key, None if writer == INITIAL else writer) for key, writer in reads if store.writers_of(key)]
    return [*seen, *(("w", key, number) for key in writes)]
