"""Read the bytes of a history from a file or standard input, plain or compressed (gzip, xz, zstd).

xz needs its own stream reader. Python's ignores data after a stream that it cannot read, so a file whose second stream
is damaged would become a shorter history and get a verdict.
"""

import io
import mmap
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import BufferedReader, RawIOBase
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from pathlib import Path
from typing import IO, Any, cast

from plume_py.base.errors import InputError, IsocheckError, TooLargeError
from plume_py.base.memory import available
from plume_py.base.override import override

HEAD = 1 << 16
CHUNK = 1 << 22
COPY = 1 << 26
XZ_BUFFER = 1 << 17

_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

Buffer = bytes | mmap.mmap

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_ENDINGS = (".gz", ".xz", ".zst")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source:
    """One input: its name, its first bytes for format detection, and its content, whole or in chunks of lines."""

    def __init__(self, path: str | os.PathLike[str], name: str = "") -> None:
        """``name`` is the input's name in messages, if it differs from the path."""
        self.path = os.fspath(path)
        self.name = name or ("standard input" if self.path == "-" else self.path)
        self._stream: IO[bytes] | None = None
        self._raw: IO[bytes] | None = None
        self._opened: os.stat_result | None = None  # the file's status when it was opened, if it is a regular file
        self._head = b""
        self._compression = ""

    @property
    def is_folder(self) -> bool:
        """Whether the input is a folder; Cobra, for example, writes a folder with a log per session."""
        return self.path != "-" and os.path.isdir(self.path)

    @property
    def suffix(self) -> str:
        """The file extension without that of a compression."""
        name = self.path.lower()
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        return Path(name).suffix

    def head(self) -> bytes:
        """Return the first bytes, decompressed and without a byte order mark."""
        if self._stream is None:
            self._stream = self._open()
            self._head = self._read(HEAD).removeprefix(_BYTE_ORDER_MARK)
        return self._head

    def content(self) -> Buffer:
        """Return the whole content, decompressed and without a byte order mark."""
        self.head()
        if self.path != "-" and not self._compression and self._opened is not None and self._opened.st_size:
            return self._copy(self._opened.st_size)
        return self._read_rest()

    def lines(self) -> Iterator[bytes]:
        """Yield chunks of whole lines, for formats that are read as a stream."""
        rest: list[bytes] = []  # pieces of a line that has not ended yet, joined once
        size, piece = 0, self.head()
        while piece:
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join((*rest, piece[:cut]))
                rest, size = [], 0
            rest.append(piece[cut:])
            size += len(piece) - cut
            self._check_size(size)
            piece = self._read(CHUNK)
        self.close()
        if size:
            yield b"".join(rest)

    def close(self) -> None:
        for stream in (self._stream, self._raw):
            if stream is not None and (sys.stdin is None or stream is not sys.stdin.buffer):
                stream.close()

    def _open(self) -> IO[bytes]:
        if self.path == "-" and sys.stdin is None:
            raise InputError("it is closed")
        try:
            raw = cast(BufferedReader, sys.stdin.buffer) if self.path == "-" else Path(self.path).open("rb")  # noqa: SIM115
            self._raw = raw
            info = os.fstat(raw.fileno())
            self._opened = info if stat.S_ISREG(info.st_mode) else None
            start, raw = _peek(raw)
        except OSError as error:
            raise InputError(error.strerror or str(error)) from None
        self._compression = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")
        return _decompressor(self._compression, raw)

    def _read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the input."""
        assert self._stream is not None
        try:
            piece = self._stream.read(size)
            if len(piece) < size:
                self._reject_change()
            return piece
        except (MemoryError, IsocheckError):  # not caused by the data
            raise
        except EOFError:
            raise InputError(f"the {self._compression} data ends too early", hint="the file was cut off") from None
        except OSError as error:
            problem = error.strerror or str(error)
            raise InputError(f"cannot decompress: {problem}" if self._compression else problem) from None
        except Exception as error:  # zlib, lzma and zstd each have their own class
            if not self._compression:
                raise
            raise InputError(f"broken {self._compression} data: {error}") from None

    def _read_rest(self) -> bytes:
        pieces, size = [self._head], len(self._head)
        while piece := self._read(CHUNK):
            size += len(piece)
            pieces.append(piece)
            self._check_size(size)
        self.close()
        return b"".join(pieces)

    def _copy(self, size: int) -> Buffer:
        """Return a copy of a plain file in anonymous memory.

        A mapping of the file itself would kill the process if the file became shorter.
        """
        assert self._raw is not None
        self._check_size(size)
        try:
            content = mmap.mmap(-1, size, **_PRIVATE)
        except OSError:
            raise MemoryError from None
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):
                content.madvise(mmap.MADV_HUGEPAGE)
        self._raw.seek(0)
        done = 0
        with memoryview(content) as view:
            while done < size:
                with view[done : done + COPY] as piece:
                    count = cast(BufferedReader, self._raw).readinto(piece)
                if not count:
                    break
                done += count
        self._reject_change(done)
        self.close()
        return content[len(_BYTE_ORDER_MARK) :] if content[:3] == _BYTE_ORDER_MARK else content

    def _reject_change(self, size: int | None = None) -> None:
        """Reject a file that changed while it was read: its verdict would be about a history that never existed."""
        if self._opened is None or self._raw is None:
            return
        before, now = self._opened, os.fstat(self._raw.fileno())
        if (size or now.st_size) < before.st_size:
            change = "became shorter"
        elif now.st_size > before.st_size:
            change = "became longer"
        elif now.st_mtime_ns != before.st_mtime_ns:
            change = "was changed"
        else:
            return
        raise InputError(f"the file {change} while it was read", hint="wait for its writer, or use `isocheck watch`")

    def _check_size(self, size: int) -> None:
        if size > _memory_bound():
            raise TooLargeError(
                f"more than {_memory_bound() >> 20:,} MB of text", hint="that would not fit in the memory there is"
            )


@cache
def _memory_bound() -> int:
    """Return half of the available memory, the limit that a compressed file must not exceed."""
    return (available() or 8 << 30) // 2


def _peek(raw: BufferedReader) -> tuple[bytes, BufferedReader]:
    """Return the first 8 bytes, and a stream that still has them. A pipe may first return fewer bytes."""
    start = raw.peek(8)[:8]
    if start and any(magic.startswith(start) and magic != start for magic in _MAGIC):
        start = raw.read(8)
        raw = BufferedReader(_Rejoined(start, raw))
    return start, raw


class _Rejoined(RawIOBase):
    """A stream of the bytes that were already read, then of the remaining ones."""

    def __init__(self, start: bytes, rest: BufferedReader) -> None:
        super().__init__()
        self._start, self._rest = start, rest

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any, /) -> int:
        piece = self._start or self._rest.read1(len(buffer))
        view = memoryview(buffer)
        count = min(len(piece), len(view))
        view[:count] = piece[:count]
        self._start = piece[count:] if self._start else b""
        return count


def _decompressor(compression: str, raw: IO[bytes]) -> IO[bytes]:
    if compression == "gzip":
        import gzip

        return cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == "xz":
        from plume_py.history.source import XzStreams

        return BufferedReader(XzStreams(raw), XZ_BUFFER)
    if compression == "zstd":
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdFile
        else:
            from backports.zstd import ZstdFile

        return cast(IO[bytes], ZstdFile(raw))
    return raw


_PIECE = 1 << 17

# Padding between streams is a multiple of this many bytes.
_ALIGNED = 4


class XzStreams(io.RawIOBase):
    """The text of all xz streams of ``raw``, one after another; zeros may separate them."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__()
        self._raw = raw
        self._stream = LZMADecompressor(FORMAT_XZ)
        self._left = b""  # bytes of the next stream that have been read
        self._at_end = False

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        text = b""
        while not text and not self._at_end:
            if self._stream.eof:
                self._start_next_stream()
            else:
                text = self._stream.decompress(self._input(), len(buffer))
        buffer[: len(text)] = text
        return len(text)

    def _input(self) -> bytes:
        if not self._stream.needs_input:
            return b""
        found, self._left = self._left or self._raw.read(_PIECE), b""
        if not found:
            raise EOFError
        return found

    def _start_next_stream(self) -> None:
        """Start the next stream, if there is one."""
        zeros, piece = 0, self._stream.unused_data or self._raw.read(_PIECE)
        while piece and not self._left:
            self._left = piece.lstrip(b"\0")
            zeros += len(piece) - len(self._left)
            piece = self._raw.read(_PIECE) if not self._left else b""
        if zeros % _ALIGNED:
            raise LZMAError("something else behind a stream")
        self._stream = LZMADecompressor(FORMAT_XZ)
        self._at_end = not self._left
