"""``Follower``: whole lines from a growing file or a pipe, as they arrive. ``isocheck watch`` calls it.

Files are polled, which works on every file system. After log rotation, a truncated or replaced file is read on as a
continuation of the same history.
"""

import codecs
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from plume_py.base.errors import InputError

# Bytes per read: enough for a batch, and few enough to react to Ctrl-C soon.
CHUNK = 1 << 20
# Seconds between polls of a silent input.
POLL = 0.1
# Longest line in bytes, so that an endless line does not exhaust memory.
MAX_LINE = 1 << 28
# Number of bytes before the offset that are compared to detect a replaced file.
REMEMBERED = 256

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

TRUNCATED = "it was truncated; reading goes on at its start, as a continuation of the same history"
REPLACED = "it was replaced; reading goes on in the new file, as a continuation of the same history"
GONE = "it is gone; waiting for a new file of that name"


class Piece(NamedTuple):
    """Whole lines.

    ``line`` is the number of the first one in its file; ``text`` is empty if nothing arrived for a while.

    An ``unfinished`` piece is a last line without a line end.
    """

    line: int
    text: bytes
    unfinished: bool = False


class Follower:
    """Yields the pieces of an input ("-" is standard input) until it ends, is idle too long, or ``stopped`` is true."""

    def __init__(
        self,
        path: str,
        *,
        follow: bool = True,
        until_idle: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        """``follow``: wait for more at the end of a file. ``say``: receives one-line messages about the file."""
        self.name = "standard input" if path == "-" else path
        self._path = path
        self._follow = follow
        self._until_idle = until_idle
        self._stopped = stopped
        self._say = say
        self._line = 1
        self._kept: list[bytes] = []  # of an incomplete line
        self._kept_size = 0

    def __iter__(self) -> Iterator[Piece]:
        try:
            yield from self._wait_for_file()
            if self._stopped() and self._path != "-" and not os.path.lexists(self._path):
                raise KeyboardInterrupt  # without a message: the file never existed
            source = _open(self._path, lambda event: self._say(f"{self.name}: {event}"))
            try:
                yield from self._pieces(source)
            finally:
                source.close()
        except OSError as error:
            raise InputError(error.strerror or str(error)).in_source(self.name) from None
        except InputError as error:
            raise error.in_source(self.name) from None

    def _wait_for_file(self) -> Iterator[Piece]:
        """Wait for a file that does not exist yet."""
        begun = time.monotonic()
        has_folder = os.path.isdir(os.path.dirname(self._path) or ".")  # else the file cannot appear
        waiting = self._follow and self._path != "-" and has_folder and not os.path.lexists(self._path)
        if waiting:
            self._say(f"{self.name}: not there yet, waiting for it")
        while waiting and not os.path.lexists(self._path) and not self._stopped():
            if self._until_idle is not None and time.monotonic() - begun >= self._until_idle:
                break
            yield Piece(self._line, b"")
            time.sleep(POLL)

    def _pieces(self, source: "_Pipe | _GrowingFile") -> Iterator[Piece]:
        silent_since: float | None = None
        while not self._stopped():
            data = source.read()
            if data:
                silent_since = None
                yield from self._lines(data)
                continue
            if data is None or (source.grows and not self._follow):
                break
            if source.begins_again():
                silent_since = None
                yield from self._unfinished()
                self._line = 1
                continue
            now = time.monotonic()
            silent_since = now if silent_since is None else silent_since
            if self._until_idle is not None and now - silent_since >= self._until_idle:
                break
            yield Piece(self._line, b"")
            source.wait()
        if self._stopped():
            yield from self._last_lines(source)
        yield from self._unfinished()

    def _last_lines(self, source: "_Pipe | _GrowingFile") -> Iterator[Piece]:
        """Yield lines that arrived after the last poll but before the stop."""
        yield from self._lines(source.read() or b"")
        left = source.unread()
        if left:
            self._kept = []  # the line may be complete, but was not read
            self._say(f"{self.name}: stopped {left:,} bytes before its present end")

    def _lines(self, data: bytes) -> Iterator[Piece]:
        """Yield the lines that ``data`` completes, and keep the remainder."""
        if self._line == 1 and not self._kept:
            _reject_binary(data)
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._keep(data)
            return
        text = b"".join((*self._kept, data[:cut]))
        self._kept, self._kept_size = [], 0
        yield Piece(self._line, self._unmarked(text))
        self._line += text.count(b"\n")
        self._keep(data[cut:])

    def _keep(self, data: bytes) -> None:
        if data:
            self._kept.append(data)
            self._kept_size += len(data)
        if self._kept_size > MAX_LINE:
            raise InputError(f"a line of more than {MAX_LINE >> 20} MiB", where=f"line {self._line}")

    def _unfinished(self) -> Iterator[Piece]:
        text = b"".join(self._kept)
        self._kept, self._kept_size = [], 0
        if text:
            yield Piece(self._line, self._unmarked(text), unfinished=True)

    def _unmarked(self, text: bytes) -> bytes:
        return text.removeprefix(_BYTE_ORDER_MARK) if self._line == 1 else text


def _reject_binary(data: bytes) -> None:
    """Raise ``InputError`` for binary data, instead of waiting for the end of a line."""
    try:
        if "\0" not in codecs.getincrementaldecoder("utf-8")().decode(data[:64]):
            return
    except UnicodeDecodeError:
        pass
    raise InputError(
        "not text, perhaps compressed", hint="run isocheck check; only JSON Lines and Plume text are watched"
    )


def _open(path: str, say: Callable[[str], None]) -> "_Pipe | _GrowingFile":
    if path == "-":
        try:
            return _Pipe(os.dup(sys.stdin.fileno()))
        except (AttributeError, ValueError, OSError):
            raise InputError("it is closed") from None
    # O_NONBLOCK: a blocking open of a named pipe would wait for its writer and ignore Ctrl-C.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return _GrowingFile(path, fd, say)
    if stat.S_ISDIR(mode):
        os.close(fd)
        raise InputError("a folder cannot be watched", hint="name the file in it that grows")
    return _Pipe(fd)


class _Pipe:
    """A pipe, socket or terminal. It ends when all its writers have closed it."""

    grows = False

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self) -> bytes | None:
        """Return the available bytes, an empty string if there are none yet, or None at the end."""
        if not self._ready(0):
            return b""
        try:
            return os.read(self._fd, CHUNK) or None
        except BlockingIOError:
            return b""

    def begins_again(self) -> bool:
        return False

    def unread(self) -> int:
        return 0  # unknown

    def wait(self) -> None:
        """Wait for data, at most POLL seconds."""
        self._ready(POLL)

    def close(self) -> None:
        os.close(self._fd)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._fd], [], [], seconds)[0])


class _GrowingFile:
    """A regular file, which has no end but can be truncated or replaced."""

    grows = True

    def __init__(self, path: str, fd: int, say: Callable[[str], None]) -> None:
        self._path = path
        self._fd = fd
        self._say = say
        self._offset = 0
        self._before = b""  # the last bytes read
        self._said_gone = False

    def read(self) -> bytes:
        """Return new bytes; an empty string at the present end, or if the file was replaced."""
        if self._is_another():
            return b""
        data = os.pread(self._fd, CHUNK, self._offset)
        self._offset += len(data)
        self._before = (self._before + data[-REMEMBERED:])[-REMEMBERED:]
        return data

    def begins_again(self) -> bool:
        """Return whether the file was truncated, or a new file of its name has content. Called at the end of the file.

        A new file is ignored while it is empty, because the writer may still append to the old one.
        """
        if self._is_another():
            self._say(TRUNCATED)
        elif self._replaced():
            self._say(REPLACED)
        else:
            return False
        self._offset, self._before = 0, b""
        return True

    def unread(self) -> int:
        """Return the number of bytes not read yet."""
        return max(0, os.fstat(self._fd).st_size - self._offset)

    def wait(self) -> None:
        time.sleep(POLL)

    def close(self) -> None:
        os.close(self._fd)

    def _is_another(self) -> bool:
        """Return whether the bytes before the present offset have changed since they were read."""
        return os.pread(self._fd, len(self._before), self._offset - len(self._before)) != self._before

    def _replaced(self) -> bool:
        """Return whether another file has the name. A file with everything read so far is taken over silently."""
        try:
            new, old = os.stat(self._path), os.fstat(self._fd)
            if os.path.samestat(new, old) or not stat.S_ISREG(new.st_mode) or not new.st_size:
                return False
            if old.st_size > self._offset:  # the old file grew after it was read
                return False
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if not self._said_gone:
                self._say(GONE)
            self._said_gone = True
            return False
        os.close(self._fd)
        self._fd, self._said_gone = fd, False
        return self._is_another()
