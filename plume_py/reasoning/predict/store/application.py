"""What an application is made of: a plan of transactions, an initial state and what should be true in the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from plume_py.reasoning.predict.store.store import Transaction


@dataclass(frozen=True)
class PlannedTransaction:
    """One transaction of the plan: its parameters are fixed, what it does depends on what it reads alone."""

    name: str
    body: Callable[[Transaction], None]
    parameters: Any = None  # for the program's own assertions


Plan = Sequence[Sequence[PlannedTransaction]]


@runtime_checkable
class Program(Protocol):
    """An application. ``Asserting`` ones say, too, what should be true in the end."""

    name: str

    def initial(self, key: str) -> Any:
        """The value of a key before all transactions."""
        ...

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        """The transactions of each session, the same for the same arguments."""
        ...


@runtime_checkable
class Asserting(Protocol):
    """A program that knows what should be true after every run."""

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Assert it, of the final value of each key and the transactions that committed."""
        ...
