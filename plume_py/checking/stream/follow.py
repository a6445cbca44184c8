"""``Follower``: whole lines from a file that still grows, or from a pipe, as they come.

A file is polled, as every file system supports that. It is read on through what log rotation does to it: a file that
was cut back or replaced goes on with its new content, as a continuation of the same history.
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

# How much is read at once: large enough to be worth a batch, small enough to answer Ctrl-C soon.
CHUNK = 1 << 20
# Seconds between two looks at a file that does not grow, or at a pipe that is silent.
POLL = 0.1
# A line longer than this is no transaction; nothing is held that never ends.
MAX_LINE = 1 << 28
# As many bytes before the place that was reached are compared to see whether they are still the ones that were read.
REMEMBERED = 256

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

TRUNCATED = "it was truncated; reading goes on at its start, as a continuation of the same history"
REPLACED = "it was replaced; reading goes on in the new file, as a continuation of the same history"
GONE = "it is gone; waiting for a new file of that name"


class Piece(NamedTuple):
    """Whole lines, the first of which is number ``line`` of its file; empty where nothing came for a while.

    An ``unfinished`` piece is a single line without its end, of which nothing more will come.
    """

    line: int
    text: bytes
    unfinished: bool = False


class Follower:
    """Yields the pieces of one input ("-" is standard input) until it ends, falls silent, or ``stopped`` says so."""

    def __init__(
        self,
        path: str,
        *,
        follow: bool = True,
        until_idle: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        """``follow``: wait for more at the end of a file. ``say`` hears, in one line, what happened to the file."""
        self.name = "standard input" if path == "-" else path
        self._path = path
        self._follow = follow
        self._until_idle = until_idle
        self._stopped = stopped
        self._say = say
        self._line = 1
        self._rest: list[bytes] = []  # of a line whose end has not come
        self._rest_size = 0

    def __iter__(self) -> Iterator[Piece]:
        try:
            yield from self._until_there()
            if self._stopped() and self._path != "-" and not os.path.lexists(self._path):
                raise KeyboardInterrupt  # and nothing to say about a file that never was
            source = _open(self._path, lambda event: self._say(f"{self.name}: {event}"))
            try:
                yield from self._pieces(source)
            finally:
                source.close()
        except OSError as error:
            raise InputError(error.strerror or str(error)).in_source(self.name) from None
        except InputError as error:
            raise error.in_source(self.name) from None

    def _until_there(self) -> Iterator[Piece]:
        """A file that somebody is yet to begin is waited for."""
        begun = time.monotonic()
        has_folder = os.path.isdir(os.path.dirname(self._path) or ".")  # else nobody can begin it
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
            yield from self._last_look(source)
        yield from self._unfinished()

    def _last_look(self, source: "_Pipe | _GrowingFile") -> Iterator[Piece]:
        """What came before the end of the watch, but after the last look, still counts."""
        yield from self._lines(source.read() or b"")
        left = source.unread()
        if left:
            self._rest = []  # not unfinished, only not read
            self._say(f"{self.name}: stopped {left:,} bytes before its present end")

    def _lines(self, data: bytes) -> Iterator[Piece]:
        """The lines that ``data`` completes; what is left begins the next."""
        if self._line == 1 and not self._rest:
            _reject_binary(data)
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._keep(data)
            return
        text = b"".join((*self._rest, data[:cut]))
        self._rest, self._rest_size = [], 0
        yield Piece(self._line, self._unmarked(text))
        self._line += text.count(b"\n")
        self._keep(data[cut:])

    def _keep(self, data: bytes) -> None:
        if data:
            self._rest.append(data)
            self._rest_size += len(data)
        if self._rest_size > MAX_LINE:
            raise InputError(f"a line of more than {MAX_LINE >> 20} MiB", where=f"line {self._line}")

    def _unfinished(self) -> Iterator[Piece]:
        text = b"".join(self._rest)
        self._rest, self._rest_size = [], 0
        if text:
            yield Piece(self._line, self._unmarked(text), unfinished=True)

    def _unmarked(self, text: bytes) -> bytes:
        return text.removeprefix(_BYTE_ORDER_MARK) if self._line == 1 else text


def _reject_binary(data: bytes) -> None:
    """Say at once what waiting for the end of a line would only hide."""
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
    # Not to wait for the writer of a named pipe here, where Ctrl-C would not be heard.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return _GrowingFile(path, fd, say)
    if stat.S_ISDIR(mode):
        os.close(fd)
        raise InputError("a folder cannot be watched", hint="name the file in it that grows")
    return _Pipe(fd)


class _Pipe:
    """A pipe, a socket, a terminal: over when its writers are gone."""

    grows = False

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self) -> bytes | None:
        """What there is; nothing if that would mean to wait; None at the end."""
        if not self._ready(0):
            return b""
        try:
            return os.read(self._fd, CHUNK) or None
        except BlockingIOError:
            return b""

    def begins_again(self) -> bool:
        """A pipe never does."""
        return False

    def unread(self) -> int:
        """Nobody can tell."""
        return 0

    def wait(self) -> None:
        """Until there is something, but not for long."""
        self._ready(POLL)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._fd], [], [], seconds)[0])


class _GrowingFile:
    """A regular file: it has no end, but it can be cut back or replaced."""

    grows = True

    def __init__(self, path: str, fd: int, say: Callable[[str], None]) -> None:
        self._path = path
        self._fd = fd
        self._say = say
        self._offset = 0
        self._before = b""  # the last bytes read
        self._told_gone = False

    def read(self) -> bytes:
        """What there is, nothing at the present end, and nothing of a file that is not the one that was read."""
        if self._is_another():
            return b""
        data = os.pread(self._fd, CHUNK, self._offset)
        self._offset += len(data)
        self._before = (self._before + data[-REMEMBERED:])[-REMEMBERED:]
        return data

    def begins_again(self) -> bool:
        """Asked at the end of the file: was it cut back, or is there a new one of this name with something in it?

        A new file that is still empty can wait: until the writer turns to it, more may come in the old one.
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
        """How many bytes are there that were not read."""
        return max(0, os.fstat(self._fd).st_size - self._offset)

    def wait(self) -> None:
        """A moment."""
        time.sleep(POLL)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)

    def _is_another(self) -> bool:
        """Are the bytes before the place that was reached no longer those that were read?"""
        return os.pread(self._fd, len(self._before), self._offset - len(self._before)) != self._before

    def _replaced(self) -> bool:
        """Does the name stand for another file by now? One that has all that was read, too, is just taken over."""
        try:
            new, old = os.stat(self._path), os.fstat(self._fd)
            if os.path.samestat(new, old) or not stat.S_ISREG(new.st_mode) or not new.st_size:
                return False
            if old.st_size > self._offset:  # the last of the old file came after it was read
                return False
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if not self._told_gone:
                self._say(GONE)
            self._told_gone = True
            return False
        os.close(self._fd)
        self._fd, self._told_gone = fd, False
        return self._is_another()
