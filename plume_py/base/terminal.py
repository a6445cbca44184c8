"""What people see on a terminal: styles of text, and a line that says how far it is."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Text in, styled text out; as keywords what click.style takes.
Style = Callable[..., str]

# Seconds between two pictures of a status line.
REDRAW = 0.25

_ERASE = "\r\x1b[K"


def plain(text: str, **_style: object) -> str:
    """The style of files: none."""
    return text


class StatusLine:
    """One line on standard error, drawn over and over; nothing where nobody watches."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.watched = sys.stderr.isatty() and not quiet
        self._drawn = False

    def show(self, text: str) -> None:
        """Draw the line anew, cut to the width of the terminal."""
        if self.watched:
            _write(_ERASE + text[: _width() - 1])
            self._drawn = True

    def clear(self) -> None:
        """Take the line away: something else is to be printed, or it is over."""
        if self._drawn:
            _write(_ERASE)
            self._drawn = False

    @contextmanager
    def redrawn(self, text: Callable[[], str]) -> Iterator[None]:
        """Meanwhile a thread draws what ``text`` says (kernels leave Python's lock free)."""
        if not self.watched:
            yield
            return
        over = threading.Event()

        def draw() -> None:
            while not over.wait(REDRAW):
                self.show(text())

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.clear()


def clock(seconds: float) -> str:
    """A duration as on a clock."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _width() -> int:
    """Columns of the terminal that shows standard error."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
