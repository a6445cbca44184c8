"""Reject JSON in which an object has the same name twice: decoders silently keep only the last value.

A reader that has decoded a text calls ``reject_same_names`` with the number of names that it decoded. A colon follows
each name, so a text with that many colons has no duplicate. Counting takes a hundredth of the time of decoding. If
there are more colons, as in strings and skipped fields, the standard library parses the text again. If a name is
duplicated, the text is searched for its position.
"""

import json
import re
from collections.abc import Sequence
from itertools import chain, cycle
from operator import attrgetter, is_not
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.text import display

# Bytes that are searched at once, to bound memory.
PIECE = 1 << 22

_NAME_OR_BRACE = re.compile(rb'("(?:[^"\\]|\\.)*+")[ \t\r\n]*+(:?)|[{}]', re.S)
_BEFORE_COLON = tuple(b'" \t\r\n')


class SameNameError(Exception):
    """An object has the same name twice."""


def given(decoded: Sequence[Any], defaults: dict[str, object]) -> int:
    """Return how many fields of ``decoded`` are present; ``defaults`` has the object that marks each missing field."""
    values = chain.from_iterable(map(attrgetter(*defaults), decoded))
    return sum(map(is_not, values, cycle(defaults.values())))


def reject_same_names(
    text: Any,
    names: int = 0,
    fields: tuple[Sequence[Any], dict[str, object]] | None = None,
    *,
    first_line: int = 1,
    lines: bool = False,
    line_numbers: Sequence[int] = (),
) -> None:
    """Raise an InputError if an object in ``text`` has the same name twice.

    ``text`` is valid JSON, or one document per line if ``lines``. ``names`` is the number of names that were decoded,
    without the optional ``fields`` (arguments of ``given``). ``line_numbers``: the line of the file for each line of
    ``text``, if they do not simply count up from ``first_line``.
    """
    found = most_names(text)
    if found <= names or (fields and found <= names + given(*fields)):
        return
    content = bytes(text)
    if not _has_same_names(content, lines):
        return
    name, at = _find(content)
    line, column = content.count(b"\n", 0, at), at - content.rfind(b"\n", 0, at)
    where = f"line {line_numbers[line] if line_numbers else first_line + line}, column {column}"
    raise InputError(f"'{display(name)}' is given twice in one object", where=where, hint="give each name once")


def most_names(text: Any) -> int:
    """Return an upper bound of the number of names: the colons after a quote or space."""
    import numpy as np

    bytes_, found = np.frombuffer(text, np.uint8), 0
    for begin in range(0, len(bytes_), PIECE):
        colons = np.flatnonzero(bytes_[begin : begin + PIECE] == ord(":")) + begin
        found += int(np.count_nonzero(np.isin(bytes_[colons - 1], _BEFORE_COLON)))
    return found


def _has_same_names(content: bytes, lines: bool) -> bool:
    if lines:
        content = b"[%b]" % b",".join(line for line in content.split(b"\n") if line.strip(b" \t\r\xef\xbb\xbf"))
    text = content.decode("utf-8", "surrogateescape").replace("\ufeff", "")
    try:
        json.loads(text, object_pairs_hook=_once, parse_int=len, parse_float=len, strict=False)
    except SameNameError:
        return True
    except RecursionError:
        raise InputError("nested too deeply", hint="leave out what isocheck does not read") from None
    except ValueError as error:
        raise InputError(f"malformed JSON: {error}") from None
    return False


def _once(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise SameNameError


def _find(content: bytes) -> tuple[str, int]:
    """Return the first name that is duplicated in its object, and the position of the second one."""
    objects: list[set[str]] = []
    for found in _NAME_OR_BRACE.finditer(content):
        if found[0] == b"{":
            objects.append(set())
        elif found[0] == b"}":
            objects.pop()
        elif found[2]:
            name = json.loads(found[1].decode("utf-8", "surrogateescape"), strict=False)
            if name in objects[-1]:
                return name, found.start()
            objects[-1].add(name)
    raise AssertionError("the parser has found a duplicate")
