"""Progress of a long check on a terminal: phase, share done, time left. Nothing where nobody watches."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# About how a check of a large history divides; what a level does not need is passed over at once.
WEIGHTS = {"load": 0.45, "resolve": 0.1, "order": 0.03, "clocks": 0.1, "edges": 0.22, "cycle": 0.04, "name": 0.06}

# About how fast text is loaded.
BYTES_PER_SECOND = 80_000_000

# Files below this are done before a bar could be read.
WORTH_SHOWING = 20_000_000

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


@contextmanager
def progress(path: str, quiet: bool) -> Iterator[Tick]:
    """A function to call when a phase begins; it draws only on a terminal and only for large files."""
    if quiet or not sys.stderr.isatty() or not os.path.isfile(path) or os.path.getsize(path) < WORTH_SHOWING:
        yield lambda phase: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    share = Share(0.6 + os.path.getsize(path) / BYTES_PER_SECOND)
    columns = TextColumn("{task.description:<8}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("load", total=1.0)
        stop = refresher(lambda: bar.update(task, completed=share.value(), refresh=True))

        def tick(phase: str) -> None:
            share.enter(phase)
            bar.update(task, description=phase)

        try:
            yield tick
        finally:
            stop()


def refresher(draw: Callable[[], None]) -> Callable[[], None]:
    """Draw a few times a second in a thread (the kernels leave Python's lock free); returns how to stop."""
    import threading

    over = threading.Event()

    def run() -> None:
        while not over.wait(0.25):
            draw()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def stop() -> None:
        over.set()
        thread.join()

    return stop
