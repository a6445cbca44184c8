"""Bounds of a search for histories, and the programs that its transactions may have to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from plume_py.base.errors import IsocheckError

# Larger searches would not end, and their formulas would not fit in memory.
MOST_TXNS, MOST_KEYS, MOST_VALUES = 24, 26, 100


@dataclass(frozen=True)
class Scope:
    """The size of the histories: exactly ``txns`` nonempty transactions, at most so many keys, values and sessions.

    The initial value is one of the ``values`` of a key, so a key has at most ``values - 1`` writers.
    ``rereads``: whether a transaction may read a key from several others. None: if it matters to some level.
    ``orders``: the orders between transactions that matter. With real time, histories have times. With "none", sessions
    may read from their own future. None: the orders of the levels.
    """

    txns: int = 3
    keys: int = 2
    values: int = 3
    sessions: int | None = None
    blind_writes: bool = True
    rereads: bool | None = None
    orders: frozenset[str] | None = None

    def __post_init__(self) -> None:
        bounds = {"txns": MOST_TXNS, "keys": MOST_KEYS, "values": MOST_VALUES, "sessions": MOST_TXNS}
        for name, most in bounds.items():
            given = getattr(self, name)
            if given is not None and not 1 <= given <= most:
                raise IsocheckError(f"a scope of {given} {name} cannot be searched; choose 1 to {most}")

    def plain(self) -> dict[str, int | bool | None]:
        return {
            "transactions": self.txns,
            "keys": self.keys,
            "values": self.values,
            "sessions": self.sessions,
            "blind_writes": self.blind_writes,
        }

    def __str__(self) -> str:
        parts = [f"{self.txns}/{self.keys}/{self.values} transactions/keys/values"]
        if self.sessions is not None:
            parts.append(f"{self.sessions} session{'s' if self.sessions > 1 else ''}")
        if not self.blind_writes:
            parts.append("no blind writes")
        return ", ".join(parts)


@dataclass(frozen=True)
class Program:
    """Given properties of one transaction; None leaves a property to the search.

    ``reads`` and ``writes`` are the numbers of exactly the keys that the transaction reads from others, and writes.
    Programs with the same ``session`` run in that session in the listed order; different sessions stay different.
    """

    reads: frozenset[int] | None = None
    writes: frozenset[int] | None = None
    session: int | None = None
    level: str | None = None


def check_programs(programs: Sequence[Program], scope: Scope) -> None:
    """Raise IsocheckError unless the programs fit in the scope."""
    if len(programs) != scope.txns:
        raise IsocheckError(f"{len(programs)} programs do not fit a scope of {scope.txns} transactions")
    for program in programs:
        outside = [x for x in (program.reads or frozenset()) | (program.writes or frozenset()) if x >= scope.keys]
        if outside:
            raise IsocheckError(f"key number {outside[0]} is outside a scope of {scope.keys} keys")
