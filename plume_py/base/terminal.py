"""Terminal output: styles of text, a status line that shows progress, and standard streams that accept any text."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any

# A function from text to styled text; keyword arguments as of click.style.
Style = Callable[..., str]

# Seconds between two updates of a status line.
REDRAW = 0.25


def plain(text: str, **_style: object) -> str:
    """Return ``text`` without style, for files."""
    return text


def default_color() -> bool | None:
    """Return False if the environment forbids colours (NO_COLOR, TERM=dumb), else None: the stream decides."""
    return False if os.environ.get("NO_COLOR") or _is_dumb() else None


def _is_dumb() -> bool:
    """Return whether the terminal cannot even return to the start of a line."""
    return os.environ.get("TERM") == "dumb"


class StatusLine:
    """One line on standard error that is redrawn in place; nothing is shown on a dumb terminal or in a file.

    The line is erased with spaces instead of an escape sequence, which also works on terminals without colours.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.watched = sys.stderr.isatty() and not quiet and not _is_dumb()
        self._drawn = 0  # columns

    def show(self, text: str) -> None:
        """Redraw the line, cut to the width of the terminal."""
        if self.watched:
            line = text[: _width() - 1]
            _write(f"\r{line}{' ' * (self._drawn - len(line))}")
            self._drawn = max(self._drawn, len(line))

    def clear(self) -> None:
        """Erase the line, at the end or before other output."""
        if self._drawn:
            _write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    @contextmanager
    def redrawn(self, text: Callable[[], str]) -> Iterator[None]:
        """Redraw the line with ``text()`` from a thread until the block ends (kernels release the interpreter lock)."""
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
    """Return a duration as minutes and seconds, m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _width() -> int:
    """Return the number of columns of the terminal that shows standard error."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class Diagnostics(RawIOBase):
    """Standard error that drops text it cannot write, because of a full disk or a closed pipe, without an error.

    The exit code still reports the outcome of the run.
    """

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def write(self, data: Any) -> int:
        """Write as much of ``data`` as possible, and report that all of it was written."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest:
                rest = rest[os.write(self._to, rest) :]
        except OSError:
            pass
        return size

    def fileno(self) -> int:
        return self._to

    def isatty(self) -> bool:
        return os.isatty(self._to)

    def writable(self) -> bool:
        return True


def mend_streams() -> None:
    """Make the standard streams accept any text, even if they were closed before isocheck started."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, TextIOWrapper) and sys.stderr is sys.__stderr__:
        forgiving = BufferedWriter(Diagnostics(sys.stderr.fileno()))
        sys.stderr = TextIOWrapper(forgiving, sys.stderr.encoding, "backslashreplace", line_buffering=True)
