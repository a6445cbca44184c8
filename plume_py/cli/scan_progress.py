"""One line on the terminal while a scan is at work: how far, how fast, how long still, and what was found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plume_py.base.terminal import StatusLine, clock

if TYPE_CHECKING:
    from plume_py.scan.run import Tally


def line(tally: "Tally") -> str:
    """How far, how fast, how long still, and what was found."""
    parts = [f"{tally.done:,}/{tally.tasks:,} ({tally.work_done / max(1, tally.work):.0%})", f"{tally.rate:,.0f}/s"]
    left = tally.seconds_left
    if left is not None:
        parts.append(f"{clock(left)} left")
    counts = {**tally.outcomes, "as before": tally.same, "skipped": sum(tuple(tally.skipped.values()))}
    parts.append(", ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "at work")
    return "  ".join(parts)


@contextmanager
def progress_line() -> "Iterator[Callable[[Tally], None]]":
    """A function to call with what has happened so far; on a terminal, it is drawn a few times a second."""
    now: list[Tally] = []

    def watch(tally: "Tally") -> None:
        now[:] = [tally]

    with StatusLine().redrawn(lambda: line(now[0]) if now else ""):
        yield watch
