"""Begin and end times of transactions by one clock; real-time order is derived from them.

t1 precedes t2 in real time if t1 is known to have ended before t2 began. A transaction with an unknown outcome has no
end, because it may take effect at any time after it began.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

# The value for an unknown time.
NO_TIME = int(np.iinfo(np.int64).min)


def known(time: np.int64 | int) -> int | None:
    """Return the time as an int, or None if it is NO_TIME."""
    return None if time == NO_TIME else int(time)


@dataclass(frozen=True, eq=False)
class Times:
    """Begin and end of each transaction, or NO_TIME; ``per_second`` is the clock's ticks per second, if known."""

    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    per_second: int | None = None

    def taken(self, order: npt.NDArray[np.int64]) -> "Times":
        """Return the times of the transactions in ``order``."""
        return replace(self, begin=self.begin[order], end=self.end[order])

    def seconds(self, time: int) -> float | None:
        """Return a time in seconds, or in ticks if their length is unknown; None if the time is unknown."""
        return None if time == NO_TIME else time / (self.per_second or 1)

    def spelled(self, time: int) -> str:
        """Return a time as text, in seconds where the length of a tick is known."""
        if self.per_second is None:
            return str(time)
        digits = len(str(self.per_second - 1)) if self.per_second > 1 else 0
        seconds, ticks = divmod(time, self.per_second)
        return f"{seconds}.{ticks:0{digits}d} s" if digits else f"{seconds} s"
