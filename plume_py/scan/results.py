"""Read and write the results of a scan: a file with one JSON line per history, which survives a crash.

One process writes the file and holds a lock on it. Each line is written by one call, so a killed process leaves whole
lines and at most one cut-off line at the end. The lines are synced to the disk every few seconds. Readers use only
whole lines; if a history has several, the last one counts. A complete scan sorts the lines, so that the file does not
depend on which history was done first.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Annotated, BinaryIO, Literal

import msgspec

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import InputError, IsocheckError
from plume_py.scan.storage import identity

# When the whole machine crashes, the work of at most this many seconds is lost.
SYNC_SECONDS = 2.0

# Larger numbers are damage: they would not fit into a float either.
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class LevelResult(msgspec.Struct, gc=False):
    """The verdict of a line on one level."""

    ok: bool | None
    reason: str | None = None


class ResultLine(msgspec.Struct, gc=False):
    """The fields of a line that the summary needs; other fields are for other programs."""

    history: str
    outcome: Literal["holds", "violated", "undecided", "unreadable"]
    levels: dict[str, LevelResult]
    counts: dict[str, Count]
    shapes: dict[str, str]
    size: Count
    hash: str
    settings: str
    operations: Count = 0
    transactions: Count = 0
    lowest: str | None = None
    violations: list[msgspec.Raw] = []
    seconds: dict[str, float] = {}
    error: str | None = None

    @property
    def reason(self) -> str:
        """The reason why the history is undecided, or ""."""
        return next((level.reason for level in self.levels.values() if level.reason), "")

    @property
    def total_seconds(self) -> float:
        """The seconds of loading and checking."""
        return self.seconds.get("load", 0.0) + self.seconds.get("check", 0.0)


_decoder = msgspec.json.Decoder(ResultLine)


def parse(line: bytes) -> ResultLine | None:
    """Return a line of the results, or None if it is cut off or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


class Reader:
    """The valid lines of a file of results, the last one for each history, and counters of all other lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damaged = 0  # invalid lines
        self.torn = False  # whether the last invalid line is cut off
        self.superseded = 0  # lines with a later line for the same history
        last: dict[str, int] = {}
        lines = 0
        for lines, line in enumerate(self._all(), 1):
            last[identity(line.history)] = lines
        self._last_lines = None if len(last) == lines else set(last.values())
        self.superseded = lines - len(last)
        self.count = len(last)

    def __iter__(self) -> Iterator[ResultLine]:
        for number, line in enumerate(self._all(), 1):
            if self._last_lines is None or number in self._last_lines:
                yield line

    def _all(self) -> Iterator[ResultLine]:
        self.damaged = 0
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123
                for text in file:
                    line = parse(text)
                    if line is None:
                        self.damaged += 1
                        self.torn = not text.endswith(b"\n")
                    else:
                        yield line
        except OSError as error:
            raise InputError(error.strerror or str(error)).in_source(self.path) from None


def read_lines(path: str) -> Iterator[ResultLine]:
    """Yield the lines of a file after a complete scan, which has one line per history."""
    with open(path, "rb") as file:  # noqa: PTH123
        for text in file:
            line = parse(text)
            if line is not None:
                yield line


def open_results(path: str) -> Reader:
    """Return a reader of the results; raise InputError if no line is valid."""
    if _is_special(path):
        raise InputError("not a regular file", hint="results are read more than once").in_source(path)
    reader = Reader(path)
    if reader.damaged and not reader.count:
        raise InputError("not a file of results", hint="give what `isocheck scan --results` wrote").in_source(path)
    return reader


class Writer:
    """Appends lines to a file of results.

    If the file is not empty, ``resume`` continues it and ``force`` overwrites it; else the constructor raises an error.
    """

    def __init__(self, path: str, *, resume: bool, force: bool = False) -> None:
        self.path = path
        self.known: dict[str, tuple[str, str]] = {}  # identity of a history -> (hash, settings)
        self.doubled = False  # whether some history has more than one line
        self.damaged = 0  # invalid lines in the file before, without a cut-off last line
        self._file = _open_locked(path)
        self._synced = time.monotonic()
        if os.fstat(self._file.fileno()).st_size:
            if force:
                self._file.truncate(0)
            elif resume:
                self._resume()
            else:
                self._file.close()
                raise IsocheckError(
                    f"{path} exists already; go on with --resume, overwrite it with --force, or choose another file"
                )

    def _resume(self) -> None:
        """Read the lines in the file, and remove damaged and superseded ones."""
        reader = open_results(self.path)
        self.known = {identity(line.history): (line.hash, line.settings) for line in reader}
        self.damaged = reader.damaged - reader.torn
        if reader.damaged or reader.superseded:
            self.sort({})

    def write(self, history: str, data: bytes) -> None:
        """Append the line of a history by one call."""
        self.doubled = self.doubled or identity(history) in self.known
        end = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(data)
            if written != len(data):
                raise OSError(28, "No space left on device")
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync()
        except OSError as error:
            self._cut(end)
            raise IsocheckError(
                f"cannot write {self.path}: {error.strerror}; what is there stays valid: go on with --resume"
            ) from None

    def _cut(self, end: int) -> None:
        with suppress(OSError):  # else the next reader drops the cut-off line
            self._file.truncate(end)

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def sort(self, number: Mapping[str, int]) -> None:
        """Rewrite the file with one line per history, sorted by ``number``; histories without a number come first.

        The keys of ``number`` are identities of paths.
        """
        at, last = 0, dict[str, tuple[int, int, int]]()  # by history: number, offset and length of its last line
        with open(self.path, "rb") as file:  # noqa: PTH123
            for text in file:
                line = parse(text)
                if line is not None:
                    name = identity(line.history)
                    last[name] = number.get(name, -1), at, len(text)
                at += len(text)

            def lines() -> Iterator[bytes]:
                for _, offset, length in sorted(last.values()):
                    file.seek(offset)
                    yield file.read(length)

            write_atomically(os.path.realpath(self.path), lines(), sync=True)
        self._file.close()
        self._file = _open_locked(self.path)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            with suppress(OSError):  # the lines are written, only not yet on the disk
                self._sync()
            self._file.close()


def _open_locked(path: str) -> BinaryIO:
    """Open the file for appending, with a lock that is held while it is open."""
    if _is_special(path):
        raise IsocheckError(f"cannot write {path}: not a regular file; results are read again for the summary")
    while True:
        try:
            file = open(path, "ab", buffering=0)  # noqa: SIM115, PTH123
        except OSError as error:
            raise IsocheckError(f"cannot write {path}: {error.strerror}") from None
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            return file
        except OSError:
            file.close()
            raise IsocheckError(f"{path} is being written by another scan") from None
        # The process that had the lock before may have replaced the file.
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
        file.close()


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)
