"""Standard streams that can take any text, whatever became of them before we began."""

import os
import sys
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any


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
