"""One line on the terminal while a scan is at work: how far, how fast, how long still, and what was found."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plume_py.cli.progress import refresher

if TYPE_CHECKING:
    from plume_py.scan.run import Tally


def line(tally: "Tally", width: int) -> str:
    """The line, cut to the width of the terminal."""
    parts = [f"{tally.done:,}/{tally.tasks:,} ({tally.work_done / max(1, tally.work):.0%})", f"{tally.rate:,.0f}/s"]
    left = tally.seconds_left
    if left is not None:
        parts.append(f"{_clock(left)} left")
    counts = {**tally.outcomes, "as before": tally.same, "skipped": sum(tuple(tally.skipped.values()))}
    parts.append(", ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "at work")
    return "  ".join(parts)[: width - 1]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown_progress() -> "Iterator[Callable[[Tally], None]]":
    """A function to call with what has happened so far; on a terminal, a thread draws it a few times a second."""
    if not sys.stderr.isatty():
        yield lambda tally: None
        return
    now: list[Tally] = []

    def draw() -> None:
        if now:
            sys.stderr.write(f"\r\x1b[K{line(now[0], shutil.get_terminal_size().columns)}")
            sys.stderr.flush()

    def watch(tally: "Tally") -> None:
        now[:] = [tally]

    stop = refresher(draw)
    try:
        yield watch
    finally:
        stop()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
