"""A small store in this process whose reads are controlled: any version that the level allows can be given to a read.

Transactions run one after the other, so a read sees the initial state or a transaction that has committed before. Which
one, among those that are legal at the level, is for a policy to say: the newest (a serial run), a random one
(exploration), or what a prediction asks for.

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
    """Raised by an application's transaction that does not want to commit."""


class Conflict(Rollback):
    """Raised by the store where the level leaves a transaction nothing to read, or forbids its commit."""


class Policy(Protocol):
    """Chooses what a read sees."""

    def choose(self, request: "ReadRequest") -> int:
        """A legal writer: the number of a committed transaction, or INITIAL."""
        ...


@dataclass(frozen=True)
class ReadRequest:
    """A read that waits for its version."""

    store: "Store"
    txn: Record
    key: Key
    writers: tuple[int, ...]  # who wrote the key and committed, oldest first; INITIAL before them all

    def allows(self, writer: int) -> bool:
        """Is it legal to see ``writer``?"""
        if len(self.writers) == 1:
            return writer in self.writers
        return writer in self.writers and self.store.rules.allows(self.store, self.txn, self.key, writer)

    def legal(self) -> list[int]:
        """Everyone that may be seen, oldest first."""
        return [writer for writer in self.writers if self.allows(writer)]


class Latest:
    """The newest legal version: from a store without surprises."""

    def choose(self, request: ReadRequest) -> int:
        """The last one that is legal."""
        for writer in reversed(request.writers):
            if request.allows(writer):
                return writer
        raise Conflict(f"no version of {request.key} is legal")


class RandomLegal:
    """Any legal version, by lot."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, request: ReadRequest) -> int:
        """One of the legal ones."""
        untried = list(request.writers)
        self._random.shuffle(untried)
        for writer in untried:
            if request.allows(writer):
                return writer
        raise Conflict(f"no version of {request.key} is legal")


class Transaction:
    """What an application works with. As a context it commits at the end; Rollback and Conflict end it quietly.

    ``record.committed`` tells how it ended.
    """

    def __init__(self, store: "Store", record: Record) -> None:
        self._store, self.record = store, record
        self._over = False

    def read(self, key: Key) -> Any:
        """The value that this read sees: an own write, or what the policy chose."""
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
        """Seen by others after the commit."""
        self._require_open(key)
        self.record.writes[key] = value
        self.record.ops.append(("w", key, _version(self.record, value)))

    def commit(self) -> None:
        """Make the writes visible; Conflict if the level does not let it."""
        self._require_open()
        self._over = True
        self._store.commit(self.record)

    def rollback(self) -> None:
        """Forget it all; of what has ended already, nothing more is forgotten."""
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
    """Values of a history are unique per key, an application's need not be: the writer is part of what is recorded."""
    return f"{value} ({record.id})"


class Store:
    """Committed transactions, and the rules by which others may see them."""

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
        """A transaction of this session, at the store's level or one of its own. One runs at a time."""
        chosen = self.level if level is None else parse_level(level) or level
        if chosen not in self.rules.levels:
            raise ValueError(f"the rules of this store do not judge {chosen}: give it CheckedRules()")
        number = len(self.records)
        name = id or f"T{number + len(self.aborted) + 1}"
        return Transaction(self, Record(number, session, name, chosen))

    def run(self, session: Hashable, body: Callable[[Transaction], None], id: str, level: str | None = None) -> Record:
        """Run a transaction to its end; ``committed`` of the record says which. An assertion that fails ends it."""
        txn = self.begin(session, id, level)
        try:
            with txn:
                body(txn)
        except AssertionError as failure:
            self.failures.append(f"{id}: {failure}")
        return txn.record

    def writers_of(self, key: Key) -> list[int]:
        """Those that committed a write of the key, oldest first."""
        return self._writers.get(key, [])

    def choose(self, txn: Record, key: Key) -> int:
        """Ask the policy, and hold it to the level."""
        request = ReadRequest(self, txn, key, (INITIAL, *self.writers_of(key)))
        writer = self.policy.choose(request)
        if not request.allows(writer):
            raise ValueError(f"the policy chose an illegal version of {key}")
        return writer

    def value(self, key: Key, writer: int) -> Any:
        """What a version holds."""
        return self._initial(key) if writer == INITIAL else self.records[writer].writes[key]

    def final(self, key: Key) -> Any:
        """The newest version of all."""
        return self.value(key, (INITIAL, *self.writers_of(key))[-1])

    def commit(self, txn: Record) -> None:
        """Take the transaction in."""
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
        """What was committed, as a history; ``levels``: each transaction carries its own."""
        builder = HistoryBuilder(None)
        for record in self.records:
            builder.add(record.session, record.ops, id=record.id, level=record.level if levels else None)
        return builder.build(format="store", init_txn="none")
