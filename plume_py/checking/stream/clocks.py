"""When transactions began and ended, as they arrive: what cannot be is rejected at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.text import txn_text
from plume_py.checking.stream.batch import Arriving, Batch
from plume_py.checking.stream.names import TransactionNames
from plume_py.history.times import NO_TIME


class Latest(NamedTuple):
    """The latest time of a session, and whose it is."""

    time: int
    name: str | int
    line: int


class SessionClocks:
    """The latest time of each session: its next transaction begins after that."""

    def __init__(self) -> None:
        self._latest: dict[int, Latest] = {}

    def advanced(self, arrivals: Sequence[Arriving], batch: Batch, names: TransactionNames) -> dict[int, Latest]:
        """How ``advance`` is to change it; what cannot be is an ``InputError``."""
        latest: dict[int, Latest] = {}
        for i in np.flatnonzero((batch.begin > NO_TIME) | (batch.end > NO_TIME)).tolist():
            begin, end, session = int(batch.begin[i]), int(batch.end[i]), int(batch.session[i])
            mine = Latest(max(begin, end), names.upcoming(i, arrivals[i]), arrivals[i].line)
            if begin > end > NO_TIME:
                raise InputError(
                    f"{txn_text(mine.name)} ends (at {end}) before it begins (at {begin})",
                    where=_place(mine),
                    hint="take both times from one clock",
                )
            before = latest.get(session) or self._latest.get(session)
            if before is not None and (begin if begin > NO_TIME else end) < before.time:
                raise _overlap(mine, before, begin, end)
            latest[session] = mine if before is None or mine.time > before.time else before
        return latest

    def advance(self, latest: dict[int, Latest]) -> None:
        """What ``advanced`` said has come to be."""
        self._latest |= latest


def _overlap(mine: Latest, before: Latest, begin: int, end: int) -> InputError:
    what = f"begins (at {begin})" if begin > NO_TIME else f"ends (at {end})"
    place = f" ({_place(before)})" if before.line else ""
    return InputError(
        f"{txn_text(mine.name)} {what} before {txn_text(before.name)}, which its session ran first{place}, "
        f"was over (at {before.time})",
        where=_place(mine),
        hint="take all times from one clock, or give overlapping transactions sessions of their own",
    )


def _place(latest: Latest) -> str:
    return f"line {latest.line}" if latest.line else ""
