"""When transactions began and ended, by one clock: what real-time order is made of.

t1 comes before t2 in real time if t1 is known to have ended before t2 began. Who has an unknown outcome has no end: it
may take effect at any time after its beginning.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

# In place of a time that is not known.
NO_TIME = int(np.iinfo(np.int64).min)


def known(time: np.int64 | int) -> int | None:
    """A time, or None."""
    return None if time == NO_TIME else int(time)


@dataclass(frozen=True, eq=False)
class Times:
    """By transaction: its first and its last moment, or NO_TIME; ``per_second`` ticks of the clock, where known."""

    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    per_second: int | None = None

    def taken(self, order: npt.NDArray[np.int64]) -> "Times":
        """The times of these transactions."""
        return replace(self, begin=self.begin[order], end=self.end[order])

    def seconds(self, time: int) -> float | None:
        """A time in seconds, or in ticks of a clock of which no more is known; None for one that is not known."""
        return None if time == NO_TIME else time / (self.per_second or 1)

    def spelled(self, time: int) -> str:
        """A time for people."""
        if self.per_second is None:
            return str(time)
        digits = len(str(self.per_second - 1)) if self.per_second > 1 else 0
        seconds, ticks = divmod(time, self.per_second)
        return f"{seconds}.{ticks:0{digits}d} s" if digits else f"{seconds} s"
