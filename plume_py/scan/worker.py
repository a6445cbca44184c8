"""A worker process of a scan: ``python -m plume_py.scan.worker``. It checks one history after the other.

Standard input has the settings as a line of JSON, then lines with one batch of tasks each. Standard output has the line
"ready", then a line for each task in order. It has the number of the task, its outcome, and its line of the results or
a reason.

A worker checks many histories, so that a history does not cost a start of Python. When its parent dies, its input
ends; then the worker ends at once, even in the middle of a check.
"""

import gc
import json
import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from queue import SimpleQueue
from typing import Any

from plume_py.base.errors import InputError, IsocheckError, TooLargeError
from plume_py.base.kernels.dispatch import load_numba
from plume_py.base.limits import Limits, limit_wall_time
from plume_py.base.memory import limit_data, own_data
from plume_py.base.passwords import without_those_of
from plume_py.base.text import encodable
from plume_py.checking.result import LevelVerdict, Result
from plume_py.history.detect import detect, format_of
from plume_py.history.formats.reading import log_names
from plume_py.history.formats.registry import FORMATS
from plume_py.history.source import HEAD, Source
from plume_py.levels.orders import in_lattice_order
from plume_py.report.json import encode, plain
from plume_py.scan.settings import (
    HOLDS,
    SAME,
    SKIPPED,
    UNDECIDED,
    UNREADABLE,
    VIOLATED,
    ScanTask,
    Settings,
    TaskAnswer,
    bytes_text,
)
from plume_py.scan.storage import local_copy, remove_copies
from plume_py.scan.violation_signature import shape_of

# The exit code with which a worker asks to be replaced.
RETIRED = 77
# Bytes that a worker may keep after a history. Beyond that a new process is cheaper.
KEPT_BYTES = 512 << 20
# Compiled kernels check histories of at least this many bytes. The memory of numba must not count for the history.
COMPILED_BYTES = 200_000

CHUNK = 1 << 20  # bytes that are hashed at once

# The first bytes of the results and reports of isocheck, which may lie among the histories.
_OWN_OUTPUT = (b'{"history":', b'{"tool":{"name":"isocheck"')

# Many files begin like these formats. A history has one of these words in its first bytes.
_WORDS = {
    "json": (b'"sessions"',),
    "jsonl": (b'"ops"', b'"session"', b'"initial"'),
    "edn": (b":process", b":type", b":f ", b":value"),
}

# Formats in which brackets show whether a file is cut off.
_BRACKETED = (".json", ".jsonl", ".edn")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.S)


def main() -> None:
    """Answer tasks until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and kills this process
    answers = os.dup(1)
    os.dup2(2, 1)  # a line that a library prints must not count as an answer
    header = json.loads(sys.stdin.buffer.readline())
    settings = Settings.of(header["settings"])
    if settings.timeout is not None:  # the parent process watches the clock
        limit_wall_time()
    tasks = _read_tasks()
    _import_all()
    memory = _MemoryLimit(header["memory"])
    _write(answers, b"ready\n")
    while True:
        task = tasks.get()
        memory.start(task)
        answer = check_one(task, settings)
        memory.end()
        _write(answers, b"%d %s " % (answer.number, answer.outcome.encode()) + _one_line(answer))
        if answer.given_up or memory.keeps_too_much():  # after a MemoryError the state of this process is unknown
            os._exit(RETIRED)


def _one_line(answer: TaskAnswer) -> bytes:
    return answer.payload.rstrip(b"\n").replace(b"\n", b" ") + b"\n"


def _read_tasks() -> "SimpleQueue[ScanTask]":
    """Return a queue that a thread fills. Kernels release Python's lock, so the thread notices the end of input."""
    tasks: SimpleQueue[ScanTask] = SimpleQueue()

    def run() -> None:
        for line in sys.stdin.buffer:
            for fields in json.loads(line):
                tasks.put(ScanTask(*fields))
        remove_copies(os.getpid())
        os._exit(0)

    threading.Thread(target=run, daemon=True).start()
    return tasks


def _import_all() -> None:
    """Import what every check needs, before the time of the first task starts."""
    for name in ("plume_py.checking.check", "plume_py.history.load"):
        import_module(name)
    # Imported modules stay for ever, so the garbage collector need not visit them.
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _write(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


class _MemoryLimit:
    """The limit of a history on the memory that the process allocates in addition to what it has already.

    Private, writable memory counts (RLIMIT_DATA), with the text of the history. An allocation beyond the limit fails
    with a MemoryError everywhere: in Python, numpy, a decompressor or a compiled kernel.
    """

    def __init__(self, limit: int | None) -> None:
        self._begin = own_data()
        self._limit = limit if self._begin else None

    def start(self, task: ScanTask) -> None:
        """Set the limit for a history."""
        if task.size >= COMPILED_BYTES and not task.known:  # a known history is most likely unchanged
            load_numba()
        if self._limit is not None:
            limit_data(own_data() + self._limit)

    def end(self) -> None:
        """Remove the limit, so that the answer can be written."""
        if self._limit is not None:
            limit_data(None)

    def keeps_too_much(self) -> bool:
        """Return whether the process keeps more memory than a worker should."""
        return own_data() - self._begin > KEPT_BYTES


class NotAHistoryError(Exception):
    """A file below a folder of the user that is no history."""


def check_one(task: ScanTask, settings: Settings) -> TaskAnswer:
    """Return the answer for one history. No content of a history can make this function fail."""
    digest = ""
    try:
        with local_copy(task.path) as local:
            _reject_special(local)
            source = Source(local, task.name)
            try:
                format = _recognise(source, task, settings)
                digest = content_hash(source.path)
                if task.known and digest == task.known:
                    return TaskAnswer(task.number, SAME, b"")
                result = _check(source, format, settings)
                return answer_of(task, settings, result, digest, settings.key())
            finally:
                source.close()
    except NotAHistoryError as reason:
        return TaskAnswer(task.number, SKIPPED, str(reason).encode())
    except (TooLargeError, MemoryError):
        return undecided_answer(task, settings, memory_reason(settings.max_memory), digest)
    except (InputError, OSError) as error:
        digest = digest or _hash_of(task)  # the failure may come before the hash
        if task.known and digest == task.known:
            return TaskAnswer(task.number, SAME, b"")
        problem = error if isinstance(error, InputError) else InputError(error.strerror or str(error))
        result = Result(task.name, error=str(problem.in_source(task.name)))
        return answer_of(task, settings, result, digest, settings.key())
    except IsocheckError as error:
        return undecided_answer(task, settings, str(error), digest)
    except Exception as error:
        what = _without_password(task, f"a defect in isocheck: {type(error).__name__}: {error}")
        return undecided_answer(task, settings, what[:300], digest)


def _reject_special(path: str) -> None:
    """Reject pipes and devices, on which a worker could wait for ever."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InputError("not a regular file", hint="use `isocheck check` for pipes and devices")


def memory_reason(limit: int | None) -> str:
    """Return the reason for which a history is undecided that needs too much memory."""
    return f"memory limit of {bytes_text(limit)} reached" if limit else "memory limit reached"


def undecided_answer(task: ScanTask, settings: Settings, reason: str, digest: str | None = None) -> TaskAnswer:
    """Return the answer for a history that was given up: every level is undecided."""
    if digest is None:
        digest = _hash_of(task)
    verdicts = {level: LevelVerdict(None, reason=_without_password(task, reason)) for level in settings.levels}
    answer = answer_of(task, settings, Result(task.name, levels=verdicts), digest, settings.limited_key())
    return answer._replace(given_up=True)


def _without_password(task: ScanTask, text: str) -> str:
    """Return the text without the password of the path, which an error message may quote in any form."""
    return without_those_of(task.path, text) if task.alias else text


def _hash_of(task: ScanTask) -> str:
    try:
        with local_copy(task.path) as local:
            source = Source(local, task.name)
            try:
                if source.is_folder:
                    detect(source)
                return content_hash(source.path)
            finally:
                source.close()
    except (IsocheckError, OSError):
        return ""


def _recognise(source: Source, task: ScanTask, settings: Settings) -> str:
    """Return the format; for a file that the user did not name, raise NotAHistoryError unless its content shows it."""
    if settings.input_format is not None:
        if source.is_folder:  # finds the file inside, which is then read in the given format
            detect(source)
        return settings.input_format
    if task.named or source.is_folder:
        return detect(source)
    head = source.head()
    if _is_cut_off(head, source.suffix):
        return detect(source)  # it fails with the same message as any damaged history
    if not head:
        raise NotAHistoryError("empty")
    format = None if head.startswith(_OWN_OUTPUT) else format_of(head)
    if format is None or not any(word in head for word in _WORDS.get(format, (b"",))):
        raise NotAHistoryError("not a history")
    return format


def _is_cut_off(head: bytes, suffix: str) -> bool:
    """Return whether a file looks like the history of a crashed run: the name of a history, but empty or cut off."""
    if not any(suffix in fmt.extensions for fmt in FORMATS.values()):
        return False
    whole = len(head) < HEAD  # a longer file is recognised by its first bytes
    return not head.strip() or (whole and suffix in _BRACKETED and head.lstrip()[:1] in (b"{", b"[") and _is_open(head))


def _is_open(head: bytes) -> bool:
    """Return whether more brackets open than close outside strings, or a string does not end."""
    bare = _STRING.sub(b"", head)
    return sum(map(bare.count, (b"{", b"[", b"("))) > sum(map(bare.count, (b"}", b"]", b")"))) or b'"' in bare


def content_hash(path: str) -> str:
    """Return a hash of a file, or of the logs in a folder with their names."""
    digest = sha256()
    if os.path.isdir(path):
        for name in log_names(path, r".*\.log"):
            digest.update(os.fsencode(name) + b"\0")
            _update(digest, os.path.join(path, name))
    else:
        _update(digest, path)
    return digest.hexdigest()[:32]


def _update(digest: Any, path: str) -> None:
    if not os.path.isfile(path):  # a pipe would block for ever; the reader reports it
        return
    with open(path, "rb") as file:  # noqa: PTH123
        while chunk := file.read(CHUNK):
            digest.update(chunk)


def _check(source: Source, format: str, settings: Settings) -> Result:
    from plume_py.checking.check import check
    from plume_py.history.load import load_source

    start = time.perf_counter()
    history = load_source(source, format=format, init_txn=settings.init_txn)  # type: ignore[arg-type]
    loaded = time.perf_counter() - start
    limits = Limits(per_level=settings.per_level)
    how = {"max_examples": settings.max_examples, "name": source.name, "limits": limits}
    result = check(history, settings.levels, order=settings.order, **how)  # type: ignore[arg-type]
    return replace(result, seconds={"load": loaded, **result.seconds})


def outcome_of(result: Result) -> str:
    """Return the outcome of a result in one word."""
    if result.error is not None:
        return UNREADABLE
    return {True: HOLDS, False: VIOLATED, None: UNDECIDED}[result.ok]


def answer_of(task: ScanTask, settings: Settings, result: Result, digest: str, key: str) -> TaskAnswer:
    """Return the answer with the line of the results; ``key`` is the key of the settings."""
    outcome = outcome_of(result)
    violated = in_lattice_order(level for level, verdict in result.levels.items() if verdict.ok is False)
    error = result.error and encodable(_without_password(task, result.error))
    line = plain(replace(result, history=encodable(task.name), error=error))
    seconds = line.pop("seconds")
    line["outcome"] = outcome
    line["lowest"] = violated[0] if violated else None
    line["shapes"] = dict(sorted(shape_of(violation) for violation in result.violations))
    line["size"] = task.size
    line["hash"] = digest
    line["settings"] = key
    # The times come last: only they differ from run to run, and tools can cut them off.
    line["seconds"] = seconds if settings.times else {}
    return TaskAnswer(task.number, outcome, encode(line).encode("utf-8", "backslashreplace") + b"\n")


if __name__ == "__main__":
    main()
