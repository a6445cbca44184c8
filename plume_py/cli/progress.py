"""Show the progress of a check on a terminal: phase, share done and time left.

``isocheck check`` calls this module. Without a terminal it does nothing.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plume_py.base.kernels.dispatch import compiling
from plume_py.base.terminal import StatusLine, clock

# The share of each phase in the time of a large check, roughly. A phase that the level does not need takes no time.
WEIGHTS = {"load": 0.45, "resolve": 0.1, "order": 0.03, "clocks": 0.1, "edges": 0.22, "cycle": 0.04, "name": 0.06}

# The speed of loading text, roughly.
BYTES_PER_SECOND = 80_000_000

# Smaller files are done before a user could read the bar.
BAR_BYTES = 20_000_000

# Columns of a full bar.
BAR = 40

Tick = Callable[[str], None]


class ProgressEstimate:
    """Estimate of the share done: finished phases count by weight, the current phase by the speed so far."""

    def __init__(self, loading: float, now: Callable[[], float] = time.monotonic) -> None:
        """``loading`` is the expected time of the first phase in seconds; later phases use the speed so far."""
        self._now = now
        self._loading = loading
        self._begin = now()
        self._phase_began = self._begin
        self._done = 0.0
        self._phase = ""

    def enter(self, phase: str) -> None:
        """Start a phase; all phases before it in the table are done."""
        names = list(WEIGHTS)
        if phase not in WEIGHTS:
            return
        self._done = max(self._done, sum(WEIGHTS[name] for name in names[: names.index(phase)]))
        self._phase, self._phase_began = phase, self._now()

    def value(self) -> float:
        """Return the share done, from 0 to 1, at most up to the end of the current phase."""
        weight = WEIGHTS.get(self._phase, 0.0)
        pace = (self._phase_began - self._begin) / self._done if self._done else self._loading / WEIGHTS["load"]
        spent = self._now() - self._phase_began
        return min(1.0, self._done + weight * min(0.95, spent / (weight * pace or 1.0)))

    def left(self) -> float | None:
        """Return the seconds left at the speed so far, or None if nothing is done."""
        value = self.value()
        return (self._now() - self._begin) * (1 - value) / value if value else None

    def line(self) -> str:
        """Return the phase, a bar, the share done and the time left."""
        value, left = self.value(), self.left()
        bar = "=" * round(BAR * value)
        return f"{self._phase:<8} [{bar:<{BAR}}] {value:4.0%}" + ("" if left is None else f"  {clock(left)} left")


@contextmanager
def progress(path: str, quiet: bool) -> Iterator[Tick]:
    """Yield a function to call when a phase starts. It shows a line on a terminal, with a bar only for large files."""
    status = StatusLine(quiet=quiet)
    if not status.watched or not os.path.isfile(path):
        yield lambda phase: None
        return
    size = os.path.getsize(path)
    estimate = ProgressEstimate(0.6 + size / BYTES_PER_SECOND)

    def line() -> str:
        kernel = "".join(compiling)
        return f"compiling, once: {kernel}" if kernel else estimate.line() if size >= BAR_BYTES else ""

    with status.redrawn(line):
        yield estimate.enter
