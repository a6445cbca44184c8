"""What the JSON readers share: decoding with one-line errors that say where."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from plume_py.base.errors import InputError

T = TypeVar("T")

# What to do about a problem; it may depend on the JSON path.
Hint = str | Callable[[str], str]

_AT_BYTE = re.compile(r" \(byte (\d+)\)$")
_AT_PATH = re.compile(r" - at `(?:key in )?\$?(.*)`$")


@contextmanager
def no_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector: decoded JSON has no cycles, and walking it again and again is slow."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def decode(decoder: "msgspec.json.Decoder[T]", data: Any, *, first_line: int = 1, hint: "Hint" = "") -> T:
    """``data`` decoded; a problem is told with its line, or with its JSON path, and then with a ``hint``."""
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
