"""How large a history may be, and what of it is given beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass

from plume_py.base.errors import IsocheckError

# Beyond these a search would not end anyway, and the formulas would not fit in memory.
MOST_TXNS, MOST_KEYS, MOST_VALUES = 24, 26, 100


@dataclass(frozen=True)
class Scope:
    """Exactly ``txns`` transactions, none of them empty; at most so many keys, values of each key and sessions.

    The initial value counts as one of the values, so ``values`` allows one writer less for each key.
    ``rereads``: may a transaction read a key from several others? None leaves it to the levels in question.
    ``orders`` between transactions that count: with real time, histories have times, and with none, sessions may read
    from their own future; None leaves it to the levels in question.
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
        """For programs."""
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
    """What is known beforehand of one transaction; None leaves it open.

    ``reads`` and ``writes`` are keys by number, all that the transaction reads from others and writes. Programs of one
    ``session`` run in the order in which they are listed, those of two sessions are never in one.
    """

    reads: frozenset[int] | None = None
    writes: frozenset[int] | None = None
    session: int | None = None
    level: str | None = None


def check_programs(programs: Sequence[Program], scope: Scope) -> None:
    """Refuse programs that do not fit in the scope."""
    if len(programs) != scope.txns:
        raise IsocheckError(f"{len(programs)} programs do not fit a scope of {scope.txns} transactions")
    for program in programs:
        wrong = [x for x in (program.reads or frozenset()) | (program.writes or frozenset()) if x >= scope.keys]
        if wrong:
            raise IsocheckError(f"key number {wrong[0]} is outside a scope of {scope.keys} keys")
