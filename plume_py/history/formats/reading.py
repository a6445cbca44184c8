"""What the readers share: JSON, numbered lines and folders of logs, with one-line errors that name the position."""

import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from plume_py.base.errors import InputError
from plume_py.history.source import Source

# --- JSON

T = TypeVar("T")

# The hint of an error, or a function that returns it for a JSON path.
Hint = str | Callable[[str], str]

_AT_BYTE = re.compile(r" \(byte (\d+)\)$")
_AT_PATH = re.compile(r" - at `(?:key in )?\$?(.*)`$")


@contextmanager
def no_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector: decoded JSON has no cycles, and repeated collections are slow."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def decode(decoder: "msgspec.json.Decoder[T]", data: Any, *, first_line: int = 1, hint: "Hint" = "") -> T:
    """Return ``data`` decoded. Raise InputError with the line, or with the JSON path and ``hint``."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        message = str(error)
        path = _AT_PATH.search(message)
        problem = _AT_PATH.sub("", message)
        where = path.group(1).lstrip(".") if path else ""
        raise InputError(_lower(problem), where=where, hint=hint if isinstance(hint, str) else hint(where)) from None
    except msgspec.DecodeError as error:
        raise _syntax_error(str(error), data, first_line) from None
    except RecursionError:
        raise InputError("nested too deeply", hint="a history is at most seven levels deep") from None
    except UnicodeDecodeError as error:
        line = first_line + bytes(data[: error.start]).count(b"\n")
        raise InputError("not valid UTF-8", where=f"line {line}") from None


def _syntax_error(message: str, data: Any, first_line: int) -> InputError:
    at = _AT_BYTE.search(message)
    problem = _AT_BYTE.sub("", message).removeprefix("JSON is malformed: ")
    if at is None:
        truncated = "truncated" in message
        return InputError(
            "the JSON ends too early" if truncated else _lower(problem),
            hint="" if not truncated else "the file was cut off",
        )
    byte = int(at.group(1))
    before = bytes(data[:byte])
    line = first_line + before.count(b"\n")
    column = byte - (before.rfind(b"\n") + 1) + 1
    return InputError(f"malformed JSON: {problem}", where=f"line {line}, column {column}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


# --- lines

# Numbers of line-based formats are unsigned 64-bit integers; longer digit strings would only cost time.
MAX_NATURAL = 2**64 - 1
MAX_NATURAL_DIGITS = 20


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers from 1, without line ends (LF or CRLF) and byte order mark."""
    number = 1
    for chunk in source.lines():
        body = chunk[:-1] if chunk.endswith(b"\n") else chunk
        if number == 1:
            body = body.removeprefix(b"\xef\xbb\xbf")
        for line in _decode(body, number).split("\n"):
            yield number, line.removesuffix("\r")
            number += 1


def natural(digits: str, line: int) -> int:
    """Return the number of an ASCII digit string. Raise InputError if it does not fit in 64 bits."""
    if len(digits) <= MAX_NATURAL_DIGITS:
        number = int(digits)
        if number <= MAX_NATURAL:
            return number
    raise InputError(
        f"a number does not fit in 64 bits: {digits:.30}", where=f"line {line}", hint="use smaller numbers"
    )


def excerpt(text: str) -> str:
    """Return the start of a text, quoted for a one-line message."""
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _decode(body: bytes, first_line: int) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = first_line + body.count(b"\n", 0, error.start)
        raise InputError("not valid UTF-8", where=f"line {line}", hint="this format is plain text") from None


# --- folders of logs

_DIGITS = re.compile(r"([0-9]+)")


def log_names(folder: str, pattern: str) -> list[str]:
    """Return the names in ``folder`` that match ``pattern``, with numbers in numeric order: T2 before T10."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InputError(error.strerror or str(error), hint="give the folder that holds the logs") from None
    return sorted(filter(re.compile(pattern).fullmatch, names), key=_natural_order)


@contextmanager
def open_log(folder: str, name: str) -> Iterator[Source]:
    """Open one log of the folder; an InputError in the block gets the name of the log."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):  # a pipe would block for ever
        raise InputError("not a regular file", where=display(name), hint="a folder of logs holds one file per session")
    source = Source(path)
    try:
        yield source
    except InputError as error:
        error.where = ", ".join(part for part in (display(name), error.where) if part)
        raise
    finally:
        source.close()


def display(name: str) -> str:
    """Return a file name that can always be printed."""
    return os.fsencode(name).decode("utf-8", "replace")


def _natural_order(name: str) -> tuple[list[str | int], str]:
    # text is at even and numbers at odd positions, so equal types are compared
    pieces = _DIGITS.split(name)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], name
