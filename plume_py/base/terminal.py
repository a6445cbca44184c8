"""Terminal output: styles of text, and a status line that shows progress."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Text in, styled text out; as keywords what click.style takes.
Style = Callable[..., str]

# Seconds between two pictures of a status line.
REDRAW = 0.25


def plain(text: str, **_style: object) -> str:
    """The style of files: none."""
    return text


def default_color() -> bool | None:
    """Return False if the environment forbids colours (NO_COLOR, TERM=dumb), else None: the stream decides."""
    return False if os.environ.get("NO_COLOR") or _is_dumb() else None


def _is_dumb() -> bool:
    """Return whether the terminal cannot even return to the start of a line."""
    return os.environ.get("TERM") == "dumb"


class StatusLine:
    """One line on standard error that is redrawn in place; nothing if standard error is no terminal, or a dumb one.

    Spaces erase the line, not an escape sequence, so terminals without colours show it correctly.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.watched = sys.stderr.isatty() and not quiet and not _is_dumb()
        self._drawn = 0  # columns

    def show(self, text: str) -> None:
        """Draw the line anew, cut to the width of the terminal."""
        if self.watched:
            line = text[: _width() - 1]
            _write(f"\r{line}{' ' * (self._drawn - len(line))}")
            self._drawn = max(self._drawn, len(line))

    def clear(self) -> None:
        """Take the line away: something else is to be printed, or it is over."""
        if self._drawn:
            _write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

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
