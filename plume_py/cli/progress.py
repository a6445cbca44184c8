"""Progress of a long check on a terminal: phase, share done, time left. Nothing where nobody watches."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plume_py.base.kernels.dispatch import compiling
from plume_py.base.terminal import StatusLine, clock

# About how a check of a large history divides; what a level does not need is passed over at once.
WEIGHTS = {"load": 0.45, "resolve": 0.1, "order": 0.03, "clocks": 0.1, "edges": 0.22, "cycle": 0.04, "name": 0.06}

# About how fast text is loaded.
BYTES_PER_SECOND = 80_000_000

# Files below this are done before a bar could be read.
WORTH_SHOWING = 20_000_000

# How wide a full bar is.
BAR = 40

Tick = Callable[[str], None]


class Share:
    """How much is done: finished phases by weight, the current one by the pace so far."""

    def __init__(self, loading: float, now: Callable[[], float] = time.monotonic) -> None:
        """``loading``: how many seconds the first phase should take; the others go by the pace of those before."""
        self._now = now
        self._loading = loading
        self._begin = now()
        self._phase_began = self._begin
        self._done = 0.0
        self._phase = ""

    def enter(self, phase: str) -> None:
        """A phase begins; everything before it in the table is done."""
        names = list(WEIGHTS)
        if phase not in WEIGHTS:
            return
        self._done = max(self._done, sum(WEIGHTS[name] for name in names[: names.index(phase)]))
        self._phase, self._phase_began = phase, self._now()

    def value(self) -> float:
        """Between 0 and 1, never beyond the end of the current phase."""
        weight = WEIGHTS.get(self._phase, 0.0)
        pace = (self._phase_began - self._begin) / self._done if self._done else self._loading / WEIGHTS["load"]
        spent = self._now() - self._phase_began
        return min(1.0, self._done + weight * min(0.95, spent / (weight * pace or 1.0)))

    def left(self) -> float | None:
        """Seconds until all is done, at the pace so far; None before anything is."""
        value = self.value()
        return (self._now() - self._begin) * (1 - value) / value if value else None

    def line(self) -> str:
        """The phase, a bar, the share and the time left."""
        value, left = self.value(), self.left()
        bar = "=" * round(BAR * value)
        return f"{self._phase:<8} [{bar:<{BAR}}] {value:4.0%}" + ("" if left is None else f"  {clock(left)} left")


@contextmanager
def progress(path: str, quiet: bool) -> Iterator[Tick]:
    """A function to call when a phase begins; it draws only on a terminal, and the share only for large files."""
    status = StatusLine(quiet=quiet)
    if not status.watched or not os.path.isfile(path):
        yield lambda phase: None
        return
    size = os.path.getsize(path)
    share = Share(0.6 + size / BYTES_PER_SECOND)

    def line() -> str:
        kernel = "".join(compiling)
        return f"compiling, once: {kernel}" if kernel else share.line() if size >= WORTH_SHOWING else ""

    with status.redrawn(line):
        yield share.enter
