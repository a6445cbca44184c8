"""What the store remembers of a transaction, and what the rules of a level are asked about it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
