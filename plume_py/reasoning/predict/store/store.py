"""A small in-process store that controls its reads: a read may return any version that the level allows.

Transactions run one after the other, so a read returns the initial state or the version of an earlier committed
transaction. A policy chooses among the legal versions: the newest (a serial run), a random one (exploration), or the
predicted one (replay).

>>> store = Store("TCC", Latest())
>>> with store.begin("alice") as txn:
...     txn.write("x", (txn.read("x") or 0) + 1)
>>> store.begin("bob").read("x")
1
"""

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, History
from plume_py.levels import STRONGEST, parse_level
from plume_py.reasoning.predict.store.legal_reads import Key, Record, Rules, rules_for


class Rollback(Exception):  # noqa: N818 - not an error: what a transaction raises to give up
    """Raised by an application's transaction in order not to commit."""


class Conflict(Rollback):
    """Raised by the store if the level allows no version for a read, or forbids the commit."""


class Policy(Protocol):
    """Chooses the version that a read returns."""

    def choose(self, request: "ReadRequest") -> int:
        """Return a legal writer: the number of a committed transaction, or INITIAL."""
        ...


@dataclass(frozen=True)
class ReadRequest:
    """A read for which a policy chooses the version."""

    store: "Store"
    txn: Record
    key: Key
    writers: tuple[int, ...]  # INITIAL, then the committed writers of the key, oldest first

    def allows(self, writer: int) -> bool:
        """Return whether the level allows the version of ``writer``."""
        if len(self.writers) == 1:
            return writer in self.writers
        return writer in self.writers and self.store.rules.allows(self.store, self.txn, self.key, writer)

    def legal(self) -> list[int]:
        """Return all legal writers, oldest first."""
        return [writer for writer in self.writers if self.allows(writer)]


class Latest:
    """A policy that chooses the newest legal version."""

    def choose(self, request: ReadRequest) -> int:
        for writer in reversed(request.writers):
            if request.allows(writer):
                return writer
        raise Conflict(f"no version of {request.key} is legal")


class RandomLegal:
    """A policy that chooses a random legal version."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, request: ReadRequest) -> int:
        untried = list(request.writers)
        self._random.shuffle(untried)
        for writer in untried:
            if request.allows(writer):
                return writer
        raise Conflict(f"no version of {request.key} is legal")


class Transaction:
    """The interface for applications.

    As a context manager it commits at the end; Rollback and Conflict end it without an exception. ``record.committed``
    says whether it committed.
    """

    def __init__(self, store: "Store", record: Record) -> None:
        self._store, self.record = store, record
        self._over = False

    def read(self, key: Key) -> Any:
        """Return the value of an own write, or of the version that the policy chose."""
        self._require_open(key)
        record = self.record
        if key in record.writes:
            record.ops.append(("r", key, _version(record, record.writes[key])))
            return record.writes[key]
        writer = self._store.choose(record, key)
        record.reads.append((key, writer))
        value = self._store.value(key, writer)
        seen = None if writer == INITIAL else _version(self._store.records[writer], value)
        record.ops.append(("r", key, seen))
        return value

    def write(self, key: Key, value: Any) -> None:
        """Write a value, visible to others after the commit."""
        self._require_open(key)
        self.record.writes[key] = value
        self.record.ops.append(("w", key, _version(self.record, value)))

    def commit(self) -> None:
        """Commit. Raise Conflict if the level forbids it."""
        self._require_open()
        self._over = True
        self._store.commit(self.record)

    def rollback(self) -> None:
        """Abort the transaction, unless it has ended."""
        if not self.record.committed and self.record not in self._store.aborted:
            self._store.aborted.append(self.record)
        self._over = True

    def _require_open(self, key: Key = "") -> None:
        if self._over:
            raise ValueError(f"transaction {self.record.id} is over")
        if not isinstance(key, str):
            raise TypeError(f"a key is a text, not {key!r:.40}")

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.record.refused = kind is not None and issubclass(kind, Conflict)
        if kind is None and not self._over:
            try:
                self.commit()
            except Conflict:
                self.record.refused = True
        if not self.record.committed:
            self.rollback()
        return kind is not None and issubclass(kind, Rollback)


def _version(record: Record, value: Any) -> str:
    """Return the value for the history. It includes the writer, because a history needs unique values per key."""
    return f"{value} ({record.id})"


class Store:
    """Committed transactions, and the rules for reading their versions."""

    def __init__(
        self,
        level: str = STRONGEST,
        policy: Policy | None = None,
        initial: Callable[[Key], Any] = lambda key: None,
        rules: Rules | None = None,
    ) -> None:
        self.level, self.policy = parse_level(level) or level, policy or Latest()
        self.rules = rules or rules_for(self.level)
        self.records: list[Record] = []
        self.aborted: list[Record] = []
        self.failures: list[str] = []  # of assertions
        self._initial = initial
        self._writers: dict[Key, list[int]] = {}

    def begin(self, session: Hashable, id: str | None = None, level: str | None = None) -> Transaction:
        """Return a transaction of this session, at the store's level or another one. One transaction runs at a time."""
        chosen = self.level if level is None else parse_level(level) or level
        if chosen not in self.rules.levels:
            raise ValueError(f"the rules of this store do not judge {chosen}: give it CheckedRules()")
        number = len(self.records)
        name = id or f"T{number + len(self.aborted) + 1}"
        return Transaction(self, Record(number, session, name, chosen))

    def run(self, session: Hashable, body: Callable[[Transaction], None], id: str, level: str | None = None) -> Record:
        """Run a transaction to its end and return its record. A failed assertion ends the transaction."""
        txn = self.begin(session, id, level)
        try:
            with txn:
                body(txn)
        except AssertionError as failure:
            self.failures.append(f"{id}: {failure}")
        return txn.record

    def writers_of(self, key: Key) -> list[int]:
        """Return the transactions that committed a write of the key, oldest first."""
        return self._writers.get(key, [])

    def choose(self, txn: Record, key: Key) -> int:
        """Return the policy's choice. Raise ValueError if it is not legal."""
        request = ReadRequest(self, txn, key, (INITIAL, *self.writers_of(key)))
        writer = self.policy.choose(request)
        if not request.allows(writer):
            raise ValueError(f"the policy chose an illegal version of {key}")
        return writer

    def value(self, key: Key, writer: int) -> Any:
        """Return the value of a version."""
        return self._initial(key) if writer == INITIAL else self.records[writer].writes[key]

    def final(self, key: Key) -> Any:
        """Return the newest value."""
        return self.value(key, (INITIAL, *self.writers_of(key))[-1])

    def commit(self, txn: Record) -> None:
        """Commit the transaction."""
        if txn.number != len(self.records):
            raise ValueError("transactions run one at a time: another one has committed meanwhile")
        if not self.rules.may_commit(self, txn):
            raise Conflict(f"{txn.id} conflicts with an earlier transaction")
        txn.committed = True
        self.records.append(txn)
        for key in txn.writes:
            self._writers.setdefault(key, []).append(txn.number)
        self.rules.committed(self, txn)

    def history(self, *, levels: bool = False) -> History:
        """Return the committed transactions as a history. ``levels`` adds the level of each."""
        builder = HistoryBuilder(None)
        for record in self.records:
            builder.add(record.session, record.ops, id=record.id, level=record.level if levels else None)
        return builder.build(format="store", init_txn="none")
