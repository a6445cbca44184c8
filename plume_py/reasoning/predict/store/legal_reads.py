"""What the levels allow a read to see, given all that was read so far.

RC, RA and TCC, also mixed, have rules of their own: sets of transactions are integers, one bit each. Everything else is
put to the checker: would the history, with this read, still keep the level?
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
    """A transaction as the store remembers it."""

    number: int
    session: Hashable
    id: str
    level: str
    reads: list[tuple[Key, int]] = field(default_factory=list)  # external ones, in program order
    writes: dict[Key, Any] = field(default_factory=dict)
    ops: list[tuple[str, Key, str | None]] = field(default_factory=list)  # for the history
    committed: bool = False
    refused: bool = False  # by the level


class Committed(Protocol):
    """The transactions that have committed, as the rules see them."""

    @property
    def records(self) -> Sequence[Record]:
        """In the order of their commits."""
        ...

    def writers_of(self, key: Key) -> list[int]:
        """Those that committed a write of the key, oldest first."""
        ...


class Rules(Protocol):
    """What a level allows; see ``legality``."""

    levels: tuple[str, ...]  # of the transactions that it can judge

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """May the transaction, after what it has done, read ``key`` from ``writer``?"""
        ...

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """May the transaction commit what it has read and written?"""
        ...

    def committed(self, store: Committed, txn: Record) -> None:
        """It did."""
        ...


def rules_for(level: str) -> Rules:
    """The rules of a store at this level."""
    if level in WeakRules.levels:
        return WeakRules()
    if level == STRONGEST:
        return SerialRules()
    return CheckedRules()


class SerialRules:
    """SER, in the order in which transactions run: only the newest version is legal."""

    levels = NAMES

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Only the newest."""
        writers = store.writers_of(key)
        return writer == (writers[-1] if writers else INITIAL)

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Always."""
        return True

    def committed(self, store: Committed, txn: Record) -> None:
        """Nothing to remember."""


class WeakRules:
    """RC, RA and TCC: the orders that reads force must have no cycle."""

    levels = tuple(level for level in WEAK if level in RUNNABLE)

    def __init__(self) -> None:
        self._sees: list[int] = []  # transaction -> whom it sees, as bits
        self._after: list[int] = []  # transaction -> who must commit before it, as bits; one step, not closed
        self._session: dict[object, int] = {}  # session -> its transactions so far, as bits
        self._writers: dict[Key, int] = {}

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Would the forced order still have no cycle?"""
        forced = list(self._forced(txn, [*txn.reads, (key, writer)]))
        if any(target == INITIAL for _, target in forced):
            return False
        return self._acyclic(forced)

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Writes force nothing at these levels."""
        return True

    def committed(self, store: Committed, txn: Record) -> None:
        """Remember what it sees and what its reads forced."""
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
        """(others, writer): the others, as bits, must commit before the writer."""
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
    """Any level, also mixed: by the checker."""

    levels = NAMES

    def __init__(self) -> None:
        self._verdicts: dict[object, bool] = {}

    def allows(self, store: Committed, txn: Record, key: Key, writer: int) -> bool:
        """Does the history with this read keep the level?"""
        return self._keeps(store, txn, [*txn.reads, (key, writer)], ())

    def may_commit(self, store: Committed, txn: Record) -> bool:
        """Does the history keep the level? Only writes can have changed that."""
        return not txn.writes or self._keeps(store, txn, txn.reads, tuple(txn.writes))

    def committed(self, store: Committed, txn: Record) -> None:
        """The checker looks at everything anew."""

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
    """Only what somebody has written matters; a value is its writer."""
    seen = [("r", key, None if writer == INITIAL else writer) for key, writer in reads if store.writers_of(key)]
    return [*seen, *(("w", key, number) for key in writes)]
