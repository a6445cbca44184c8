"""xz files, to their very end.

Python's own reader takes what follows a stream for rubbish, and ignores it, if it cannot be read: a file whose second
stream is damaged would become a shorter history, and get a verdict.
"""

import io
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from typing import IO

from plume_py.base.override import override

_PIECE = 1 << 17

# As many bytes, or a multiple of that, has whatever stands between streams.
_ALIGNED = 4


class XzStreams(io.RawIOBase):
    """The text of all streams of ``raw``, one after the other; zeros may stand between them."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__()
        self._raw = raw
        self._stream = LZMADecompressor(FORMAT_XZ)
        self._left = b""  # what has been read of the next stream
        self._at_end = False

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        text = b""
        while not text and not self._at_end:
            if self._stream.eof:
                self._go_on()
            else:
                text = self._stream.decompress(self._input(), len(room))
        room[: len(text)] = text
        return len(text)

    def _input(self) -> bytes:
        if not self._stream.needs_input:
            return b""
        found, self._left = self._left or self._raw.read(_PIECE), b""
        if not found:
            raise EOFError
        return found

    def _go_on(self) -> None:
        """With the next stream, if there is one."""
        zeros, piece = 0, self._stream.unused_data or self._raw.read(_PIECE)
        while piece and not self._left:
            self._left = piece.lstrip(b"\0")
            zeros += len(piece) - len(self._left)
            piece = self._raw.read(_PIECE) if not self._left else b""
        if zeros % _ALIGNED:
            raise LZMAError("something else behind a stream")
        self._stream = LZMADecompressor(FORMAT_XZ)
        self._at_end = not self._left
