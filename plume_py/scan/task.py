"""One history of a scan: recognise it, hash it, check it, and make its line of the results."""

import os
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

from plume_py.base.errors import InputError, IsocheckError, TooLargeError
from plume_py.base.limits import Limits
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
    spell_bytes,
)
from plume_py.scan.storage import fetched
from plume_py.scan.violation_signature import shape_of

CHUNK = 1 << 20

# How our own results and reports begin: they may well lie among the histories.
_OURS = (b'{"history":', b'{"tool":{"name":"isocheck"')

# Formats whose first characters are shared with much else, and what one of them must hold in its first bytes.
_MARKS = {
    "json": (b'"sessions"',),
    "jsonl": (b'"ops"', b'"session"', b'"initial"'),
    "edn": (b":process", b":type", b":f ", b":value"),
}


# Formats in which a file that is cut off can be told from one that is something else.
_BRACKETED = (".json", ".jsonl", ".edn")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.S)


class NotAHistoryError(Exception):
    """A file that a walk came upon and that is something else."""


def check_one(task: ScanTask, settings: Settings) -> TaskAnswer:
    """The answer for one history; whatever it holds, only the interpreter itself can fail here."""
    digest = ""
    try:
        with fetched(task.path) as local:
            _reject_special(local)
            source = Source(local, task.name)
            try:
                format = _recognise(source, task, settings)
                digest = content_hash(source.path)
                if task.known and digest == task.known:
                    return TaskAnswer(task.number, SAME, b"")
                result = _check(source, format, settings)
                return _answer(task, settings, result, digest, settings.key())
            finally:
                source.close()
    except NotAHistoryError as reason:
        return TaskAnswer(task.number, SKIPPED, str(reason).encode())
    except (TooLargeError, MemoryError):
        return undecided(task, settings, memory_reason(settings.max_memory), digest)
    except (InputError, OSError) as error:
        digest = digest or _hash_of(task)  # it may fail before its format is known
        if task.known and digest == task.known:
            return TaskAnswer(task.number, SAME, b"")
        problem = error if isinstance(error, InputError) else InputError(error.strerror or str(error))
        result = Result(task.name, error=str(problem.in_source(task.name)))
        return _answer(task, settings, result, digest, settings.key())
    except IsocheckError as error:
        return undecided(task, settings, str(error), digest)
    except Exception as error:
        what = _without_password(task, f"a defect in isocheck: {type(error).__name__}: {error}")
        return undecided(task, settings, what[:300], digest)


def _reject_special(path: str) -> None:
    """A pipe or a device may keep a worker waiting for ever."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InputError("not a regular file", hint="use `isocheck check` for pipes and devices")


def memory_reason(limit: int | None) -> str:
    """Why a history that asked for too much memory is undecided."""
    return f"memory limit of {spell_bytes(limit)} reached" if limit else "memory limit reached"


def undecided(task: ScanTask, settings: Settings, reason: str, digest: str | None = None) -> TaskAnswer:
    """The answer for a history that was given up, for every level asked."""
    if digest is None:
        digest = _hash_of(task)
    verdicts = {level: LevelVerdict(None, reason=_without_password(task, reason)) for level in settings.levels}
    answer = _answer(task, settings, Result(task.name, levels=verdicts), digest, settings.limited_key())
    return answer._replace(given_up=True)


def _without_password(task: ScanTask, text: str) -> str:
    """Whoever wrote it may have quoted the path, in whatever way."""
    return without_those_of(task.path, text) if task.alias else text


def _hash_of(task: ScanTask) -> str:
    try:
        with fetched(task.path) as local:
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
    """The format; by content alone where nobody said that this is a history."""
    if settings.input_format is not None:
        if source.is_folder:  # finds the file inside, whatever it is then read as
            detect(source)
        return settings.input_format
    if task.named or source.is_folder:
        return detect(source)
    head = source.head()
    if _crashed(head, source.suffix):
        return detect(source)  # what is wrong with it is told as of any history
    if not head:
        raise NotAHistoryError("empty")
    format = None if head.startswith(_OURS) else format_of(head)
    if format is None or not any(mark in head for mark in _MARKS.get(format, (b"",))):
        raise NotAHistoryError("not a history")
    return format


def _crashed(head: bytes, suffix: str) -> bool:
    """Is it what a run leaves behind that died: named as a history is, and empty, or cut off in its midst?"""
    if not any(suffix in fmt.extensions for fmt in FORMATS.values()):
        return False
    whole = len(head) < HEAD  # of a longer one the beginning says what it is
    return not head.strip() or (whole and suffix in _BRACKETED and head.lstrip()[:1] in (b"{", b"[") and _is_open(head))


def _is_open(head: bytes) -> bool:
    """Are there more opening brackets than closing ones, outside of strings?"""
    bare = _STRING.sub(b"", head)
    return sum(map(bare.count, (b"{", b"[", b"("))) > sum(map(bare.count, (b"}", b"]", b")"))) or b'"' in bare


def content_hash(path: str) -> str:
    """Of a file, or of the logs in a folder with their names."""
    digest = sha256()
    if os.path.isdir(path):
        for name in log_names(path, r".*\.log"):
            digest.update(os.fsencode(name) + b"\0")
            _update(digest, os.path.join(path, name))
    else:
        _update(digest, path)
    return digest.hexdigest()[:32]


def _update(digest: Any, path: str) -> None:
    if not os.path.isfile(path):  # a pipe, say, would block for ever; the reader tells
        return
    with open(path, "rb") as file:  # noqa: PTH123
        while chunk := file.read(CHUNK):
            digest.update(chunk)


def _check(source: Source, format: str, settings: Settings) -> Result:
    import time

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
    """In one word."""
    if result.error is not None:
        return UNREADABLE
    return {True: HOLDS, False: VIOLATED, None: UNDECIDED}[result.ok]


def _answer(task: ScanTask, settings: Settings, result: Result, digest: str, key: str) -> TaskAnswer:
    outcome = outcome_of(result)
    broken = in_lattice_order(level for level, verdict in result.levels.items() if verdict.ok is False)
    error = result.error and encodable(_without_password(task, result.error))
    line = plain(replace(result, history=encodable(task.name), error=error))
    seconds = line.pop("seconds")
    line["outcome"] = outcome
    line["lowest"] = broken[0] if broken else None
    line["shapes"] = dict(sorted(shape_of(violation) for violation in result.violations))
    line["size"] = task.size
    line["hash"] = digest
    line["settings"] = key
    # Last, so that it is easily cut off: the only part that differs from run to run.
    line["seconds"] = seconds if settings.times else {}
    return TaskAnswer(task.number, outcome, encode(line).encode("utf-8", "backslashreplace") + b"\n")
