"""The file of results: one JSON line per history, appended when it is done, and never half believed.

One process writes it, and holds a lock on it. A line is written by one call, so a process that is killed leaves whole
lines and at most one torn at the end; the system is asked now and then to bring them to the disk. Whoever reads takes
only lines that are whole, and of several for one history the last. A scan that is done sorts the lines: the file must
not depend on which history was done first.
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

# At most this many seconds of work are lost when the machine, and not only the process, goes down.
SYNC_SECONDS = 2.0

# A larger one is no count, and could not be told in a float.
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class LevelResult(msgspec.Struct, gc=False):
    """What a line says about one level."""

    ok: bool | None
    reason: str | None = None


class ResultLine(msgspec.Struct, gc=False):
    """What summing up needs of a line; the rest is for others to read."""

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
        """Why it is undecided."""
        return next((level.reason for level in self.levels.values() if level.reason), "")

    @property
    def total_seconds(self) -> float:
        """How long loading and checking took."""
        return self.seconds.get("load", 0.0) + self.seconds.get("check", 0.0)


_decoder = msgspec.json.Decoder(ResultLine)


def parse(line: bytes) -> ResultLine | None:
    """A line of the results; None if it is torn or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


class Reader:
    """The valid lines of a file of results, the last one for each history; counts what is not one of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damaged = 0  # lines that say nothing
        self.torn = False  # is the last one of them?
        self.superseded = 0  # lines with a later one for the same history
        last: dict[str, int] = {}
        lines = 0
        for lines, (_, line) in enumerate(self._all(), 1):
            last[identity(line.history)] = lines
        self._last_lines = None if len(last) == lines else set(last.values())
        self.superseded = lines - len(last)
        self.count = len(last)

    def __iter__(self) -> Iterator[ResultLine]:
        """The lines, parsed."""
        return (line for _, line in self.pairs())

    def pairs(self) -> Iterator[tuple[bytes, ResultLine]]:
        """The lines, as they are and parsed."""
        for number, pair in enumerate(self._all(), 1):
            if self._last_lines is None or number in self._last_lines:
                yield pair

    def _all(self) -> Iterator[tuple[bytes, ResultLine]]:
        self.damaged = 0
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123
                for text in file:
                    line = parse(text)
                    if line is None:
                        self.damaged += 1
                        self.torn = not text.endswith(b"\n")
                    else:
                        yield text, line
        except OSError as error:
            raise InputError(error.strerror or str(error)).in_source(self.path) from None


def read_lines(path: str) -> Iterator[ResultLine]:
    """The lines of a file that nobody is writing and that has one line per history, as a scan leaves it."""
    with open(path, "rb") as file:  # noqa: PTH123
        for text in file:
            line = parse(text)
            if line is not None:
                yield line


def open_results(path: str) -> Reader:
    """The results that are to be read; a file without a single valid line is not one of ours."""
    if _is_special(path):
        raise InputError("not a regular file", hint="results are read more than once").in_source(path)
    reader = Reader(path)
    if reader.damaged and not reader.count:
        raise InputError("not a file of results", hint="give what `isocheck scan --results` wrote").in_source(path)
    return reader


class Writer:
    """Appends lines.

    If there is something in the file already, it is the results of a scan to go on with (``resume``), or of no more use
    (``force``); else nothing is written.
    """

    def __init__(self, path: str, *, resume: bool, force: bool = False) -> None:
        self.path = path
        self.known: dict[str, tuple[str, str]] = {}  # identity of a history -> (hash, settings)
        self.doubled = False  # is there more than one line for some history?
        self.damaged = 0  # lines that were there and said nothing, the last one, which may be torn, aside
        self._file = _open_locked(path)
        self._synced = time.monotonic()
        if os.fstat(self._file.fileno()).st_size:
            if force:
                self._file.truncate(0)
            elif resume:
                self._take_over()
            else:
                self._file.close()
                raise IsocheckError(
                    f"{path} exists already; go on with --resume, overwrite it with --force, or choose another file"
                )

    def _take_over(self) -> None:
        """What is there, mended: a torn or doubled line must not stay."""
        reader = open_results(self.path)
        self.known = {identity(line.history): (line.hash, line.settings) for line in reader}
        self.damaged = reader.damaged - reader.torn
        if reader.damaged or reader.superseded:
            self.compact(reader)

    def write(self, history: str, data: bytes) -> None:
        """The line of a history, by one call."""
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
        with suppress(OSError):  # or the torn line stays, and the next reader drops it
            self._file.truncate(end)

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def compact(self, reader: Reader | None = None) -> None:
        """Rewrite the file with one line per history."""
        reader = reader or Reader(self.path)
        write_atomically(os.path.realpath(self.path), (text for text, _ in reader.pairs()), sync=True)
        self._file.close()
        self._file = _open_locked(self.path)

    def sort(self, number: Mapping[str, int]) -> None:
        """Rewrite the file with one line per history, by ``number`` (keys are identities); those without come first."""
        at, places = 0, dict[str, tuple[int, int, int]]()  # by history: number, offset and length of its last line
        with open(self.path, "rb") as file:  # noqa: PTH123
            for text in file:
                line = parse(text)
                if line is not None:
                    name = identity(line.history)
                    places[name] = number.get(name, -1), at, len(text)
                at += len(text)

            def lines() -> Iterator[bytes]:
                for _, offset, length in sorted(places.values()):
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
            with suppress(OSError):  # the lines are written; no more can be done for them
                self._sync()
            self._file.close()


def _open_locked(path: str) -> BinaryIO:
    """The file, for appending, and ours alone for as long as it is open."""
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
        # Whoever had the lock before may have put another file in this one's place.
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
        file.close()


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)
