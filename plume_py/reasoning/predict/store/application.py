"""Interfaces of applications: a plan of transactions, an initial state, and assertions about the final state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from plume_py.reasoning.predict.store.store import Transaction


@dataclass(frozen=True)
class PlannedTransaction:
    """One transaction of the plan. Its parameters are fixed; its operations depend only on what it reads."""

    name: str
    body: Callable[[Transaction], None]
    parameters: Any = None  # for the program's own assertions


Plan = Sequence[Sequence[PlannedTransaction]]


@runtime_checkable
class Program(Protocol):
    """An application. An ``Asserting`` one also has assertions about the final state."""

    name: str

    def initial(self, key: str) -> Any:
        """Return the initial value of a key."""
        ...

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        """Return the transactions of each session, the same for the same arguments."""
        ...


@runtime_checkable
class Asserting(Protocol):
    """A program with assertions that hold after every serializable run."""

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Raise AssertionError if one fails, given the final value of each key and the committed transactions."""
        ...
