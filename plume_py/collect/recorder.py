"""The history as it is written: a line per transaction, complete and in the file as soon as its outcome is known.

The file has its final name from the start, so that ``isocheck watch`` can follow it. Each line is written by a single
call, and if the disk is full, what was written of the last one is cut off again: only a kill can leave half a line.

If the collector is killed, other sessions may have recorded reads of a transaction whose own line was not written yet.
So the line of a transaction is put into a second, hidden file before its COMMIT is sent, with the outcome "unknown".
That file goes when the collector ends by itself; the reader of JSON Lines takes what is in it and not in the history,
and where it is there, forgives half a line at the end.
"""

import os
import secrets
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from plume_py.base.atomic_files import is_stream, open_stream
from plume_py.base.errors import IsocheckError
from plume_py.base.leftovers import AtomicFile, locked
from plume_py.history.formats.jsonl_native import first_line, pending_path

# The hidden file is written anew, with what is under way, when it has grown to this.
PENDING_LIMIT = 1 << 20


class ClosedError(Exception):
    """The history is complete; a client that was too late must not commit any more."""


class Recorder:
    """Writes one history; its methods may be called by any thread."""

    def __init__(self, path: str, header: dict[str, Any], *, force: bool = False) -> None:
        """``path`` may be a device or a pipe, or "-" for standard output: then there is no hidden file beside it.

        What the header says of the run gets an identity, which ties the hidden file to this history. A history that is
        there already is overwritten only by ``force``.
        """
        self._path = path
        self._is_stream = is_stream(path)
        self._run = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._under_way: dict[str, bytes] = {}
        self._pending_size = 0
        self._pending: AtomicFile | None = None
        self._closed = False
        self.counts = {"committed": 0, "aborted": 0, "unknown": 0}
        self.problem = ""
        try:
            self._file = open_stream(path) if self._is_stream else _open_record(path, force)
        except OSError as error:
            raise IsocheckError(f"cannot write {path}: {error.strerror}") from None
        self._size = 0
        header = {**header, "collected": {**header.get("collected", {}), "run": self._run}}
        self._write_line(msgspec.json.encode(header) + b"\n")
        if not self._is_stream:
            self._begin_pending(b"")

    def intend(self, transaction: dict[str, Any]) -> None:
        """The commit of ``transaction`` is about to be sent; if this raises, it must not be."""
        line = msgspec.json.encode({**transaction, "status": "unknown"}) + b"\n"
        with self._lock:
            if self._closed:
                raise ClosedError("the run was over")
            self._under_way[transaction["id"]] = line
            if self._pending is not None:
                with suppress(OSError):  # the history itself will tell that the disk is full
                    self._pending_size += os.write(self._pending.file.fileno(), line)

    def record(self, transaction: dict[str, Any]) -> None:
        """The outcome of ``transaction`` is known, or known to be unknown."""
        line = msgspec.json.encode(transaction) + b"\n"
        with self._lock:
            if self._closed:
                return
            self._under_way.pop(transaction["id"], None)
            self.counts[transaction["status"]] += 1
            self._write_line(line)
            if self._pending_size > PENDING_LIMIT:
                self._begin_pending(b"".join(self._under_way.values()))

    def close(self) -> None:
        """The run is over; what never got an answer has an unknown outcome."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for line in self._under_way.values():
                self.counts["unknown"] += 1
                self._write_line(line)
            os.close(self._file)
            if self._pending is not None:
                self._pending.file.close()
                if not self.problem:
                    Path(pending_path(self._path)).unlink(missing_ok=True)

    def _write_line(self, line: bytes) -> None:
        """One call of the system; a disk that is full ends the run, with whole lines only."""
        if self.problem:
            return
        try:
            written = os.write(self._file, line)
            while written < len(line):  # a pipe may take less at a time, a disk only if it is full
                written += os.write(self._file, line[written:])
            self._size += len(line)
        except OSError as error:
            self.problem = f"cannot write {self._path}: {error.strerror}"
            if not self._is_stream:  # which may have had something in it before
                with suppress(OSError):
                    os.ftruncate(self._file, self._size)

    def _begin_pending(self, content: bytes) -> None:
        """A new hidden file; it replaces the old one at once, so that there always is one."""
        target = pending_path(self._path)
        try:
            with ExitStack() as unless_in_place:
                aside = AtomicFile(target)
                unless_in_place.push(aside)
                aside.file.write(first_line(self._run) + content)
                aside.put_in_place()
                unless_in_place.pop_all()
        except OSError as error:
            self.problem = self.problem or f"cannot write {target}: {error.strerror}"
            return
        if self._pending is not None:
            self._pending.file.close()
        self._pending, self._pending_size = aside, len(content)


def reject_record(path: str) -> None:
    """A history that was recorded is not overwritten without being asked to."""
    if os.path.isfile(path) and os.path.getsize(path) and not is_stream(path):
        raise IsocheckError(f"{path} exists already; overwrite it with --force, or choose another file")


def _open_record(path: str, force: bool) -> int:
    """The file, empty, and ours alone for as long as it is open."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        if not locked(handle):
            raise IsocheckError(f"{path} is being written by another run")
        if not force:
            reject_record(path)
        os.ftruncate(handle, 0)
    except BaseException:
        os.close(handle)
        raise
    return handle
