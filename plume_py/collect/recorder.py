"""Write the history: one line per transaction, appended as soon as its outcome is known.

The file has its final name from the start, so that ``isocheck watch`` can follow it. A single system call writes each
line. If the disk is full, an incomplete last line is cut off again, so only a kill can leave half a line.

If the collector is killed, other sessions may have recorded reads of a transaction whose own line is missing. So before
COMMIT is sent, the transaction's line goes into a second, hidden file with the outcome "unknown". The collector removes
that file at the end of the run. If it exists, the reader of JSON Lines adds its transactions, and ignores half a line
at the end of the history.
"""

import os
import secrets
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from plume_py.base.atomic_files import AtomicFile, is_stream, locked, open_stream
from plume_py.base.errors import IsocheckError
from plume_py.history.formats.jsonl_native import first_line, pending_path

# Bytes after which the hidden file is rewritten with only the transactions in progress.
PENDING_LIMIT = 1 << 20


class ClosedError(Exception):
    """The history is complete, so a late client must not commit any more."""


class Recorder:
    """Writer of one history. Any thread may call its methods."""

    def __init__(self, path: str, header: dict[str, Any], *, force: bool = False) -> None:
        """Open ``path``. A device, a pipe or "-" (standard output) gets no hidden file.

        The header gets a run identifier, which ties the hidden file to this history. An existing history is overwritten
        only with ``force``.
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
        """Note that the commit of ``transaction`` is about to be sent. If this raises, it must not be sent."""
        line = msgspec.json.encode({**transaction, "status": "unknown"}) + b"\n"
        with self._lock:
            if self._closed:
                raise ClosedError("the run was over")
            self._under_way[transaction["id"]] = line
            if self._pending is not None:
                with suppress(OSError):  # writing the history reports a full disk
                    self._pending_size += os.write(self._pending.file.fileno(), line)

    def record(self, transaction: dict[str, Any]) -> None:
        """Write ``transaction`` with its outcome."""
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
        """End the history. Transactions without an answer get an unknown outcome."""
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
        """Write a line with a single system call. If the disk is full, end the run with whole lines only."""
        if self.problem:
            return
        try:
            written = os.write(self._file, line)
            while written < len(line):  # a pipe may accept less at a time, a disk only if it is full
                written += os.write(self._file, line[written:])
            self._size += len(line)
        except OSError as error:
            self.problem = f"cannot write {self._path}: {error.strerror}"
            if not self._is_stream:  # a device may have contained data before
                with suppress(OSError):
                    os.ftruncate(self._file, self._size)

    def _begin_pending(self, content: bytes) -> None:
        """Replace the hidden file atomically, so that there always is one."""
        target = pending_path(self._path)
        try:
            with ExitStack() as cleanup:
                pending = AtomicFile(target)
                cleanup.push(pending)
                pending.file.write(first_line(self._run) + content)
                pending.put_in_place()
                cleanup.pop_all()
        except OSError as error:
            self.problem = self.problem or f"cannot write {target}: {error.strerror}"
            return
        if self._pending is not None:
            self._pending.file.close()
        self._pending, self._pending_size = pending, len(content)


def reject_record(path: str) -> None:
    """Raise IsocheckError if there is a history at ``path``."""
    if os.path.isfile(path) and os.path.getsize(path) and not is_stream(path):
        raise IsocheckError(f"{path} exists already; overwrite it with --force, or choose another file")


def _open_record(path: str, force: bool) -> int:
    """Return the descriptor of the file, which is empty and remains locked while it is open."""
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
