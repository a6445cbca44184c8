"""What transactions are called, and where they stand."""

from collections.abc import Sequence

from plume_py.base.errors import InputError
from plume_py.checking.stream.batch import Arriving
from plume_py.history.model import INITIAL_ID, Int64s


class TransactionNames:
    """Names, lines and numbers of arrival of the transactions at hand."""

    def __init__(self) -> None:
        self._names: list[str | int | None] = []
        self._numbers: list[int] = []
        self.lines: list[int] = []
        self._explicit: set[str] = set()
        self._prefix = "T"
        self._arrived = 0

    def enter(self, arrivals: Sequence[Arriving]) -> None:
        """Take in some transactions; nothing is changed if one of their names is wrong."""
        ids = [arrival.id for arrival in arrivals if arrival.id is not None]
        if ids:
            self._check(ids)
            self._explicit |= {str(name) for name in ids}
        for arrival in arrivals:
            self._arrived += 1
            self._names.append(arrival.id)
            self._numbers.append(self._arrived)
            self.lines.append(arrival.line)

    def upcoming(self, i: int, arrival: Arriving) -> str | int:
        """What the i-th of those that are next to be taken in will be called."""
        return f"{self._prefix}{self._arrived + i + 1}" if arrival.id is None else arrival.id

    def name(self, t: int) -> str | int:
        """What reports call transaction t: its own name, or one made of its number of arrival."""
        name = self._names[t]
        return f"{self._prefix}{self._numbers[t]}" if name is None else name

    def keep(self, survivors: Int64s, transactions: int) -> None:
        """Only these of the first so many are left, and those that are still to be taken in."""
        left = [*survivors.tolist(), *range(transactions, len(self._names))]
        self._names = [self._names[t] for t in left]
        self._numbers = [self._numbers[t] for t in left]
        self.lines = [self.lines[t] for t in left]
        self._explicit = {str(name) for name in self._names if name is not None}

    def _check(self, ids: list[str | int]) -> None:
        """A name may stand only once."""
        seen: set[str] = set()
        for name in ids:
            if str(name) in seen or str(name) in self._explicit:
                raise InputError(f"two transactions have the id {name!r:.60}", hint="give each its own, or none")
            if name == INITIAL_ID:
                raise InputError(f"the id {name!r} is reserved for reports", hint="choose another")
            seen.add(str(name))
            while str(name).startswith(self._prefix) and str(name)[len(self._prefix) :].isdecimal():
                self._prefix += "'"  # a made-up name must not meet a given one
