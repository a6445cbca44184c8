"""One line on the terminal while a scan is at work: how far, how fast, how long still, and what was found."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plume_py.scan.run import Tally

# Seconds between two drawings.
PAUSE = 0.2


def line(tally: "Tally", width: int) -> str:
    """The line, cut to the width of the terminal."""
    parts = [f"{tally.done:,}/{tally.tasks:,} ({tally.work_done / max(1, tally.work):.0%})", f"{tally.rate:,.0f}/s"]
    left = tally.seconds_left
    if left is not None:
        parts.append(f"{_clock(left)} left")
    counts = {**tally.outcomes, "as before": tally.same, "skipped": sum(tally.skipped.values())}
    parts.append(", ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "at work")
    return "  ".join(parts)[: width - 1]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown_progress() -> "Iterator[Callable[[Tally], None]]":
    """A function to call with every answer; it draws only on a terminal, and only now and then."""
    if not sys.stderr.isatty():
        yield lambda tally: None
        return
    drawn = 0.0

    def watch(tally: "Tally") -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= PAUSE:
            drawn = now
            sys.stderr.write(f"\r\x1b[K{line(tally, shutil.get_terminal_size().columns)}")
            sys.stderr.flush()

    try:
        yield watch
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
