"""Terminal output: styles of text, and a status line that shows progress."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any

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


# From streams.py: Standard streams that can take any text, whatever became of them before we began.
class Diagnostics(RawIOBase):
    """Standard error: what cannot be written (a full disk, a reader that is gone) is lost, and nothing fails for it.

    The exit code still says what became of the run.
    """

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def write(self, data: Any) -> int:
        """All of it, as far as that is possible."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest:
                rest = rest[os.write(self._to, rest) :]
        except OSError:
            pass
        return size

    def fileno(self) -> int:
        """The descriptor."""
        return self._to

    def isatty(self) -> bool:
        """Is it a terminal?"""
        return os.isatty(self._to)

    def writable(self) -> bool:
        """Always: see above."""
        return True


def mend_streams() -> None:
    """Standard streams that can take any text, even where they were closed before we began."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, TextIOWrapper) and sys.stderr is sys.__stderr__:
        forgiving = BufferedWriter(Diagnostics(sys.stderr.fileno()))
        sys.stderr = TextIOWrapper(forgiving, sys.stderr.encoding, "backslashreplace", line_buffering=True)
