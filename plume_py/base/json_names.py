"""Reject JSON in which an object has a name twice: decoders keep the last value and drop the others without a word.

A reader that has decoded a text calls ``reject_same_names`` with the number of names that it found. Each name has a
colon behind it, so a text with as many colons has no name twice, and counting them takes a hundredth of the time of
decoding. Only where there are more (in strings, in fields that the reader skips) the text is parsed once again, by the
standard library; and only where a name is there twice, the text is searched for its position.
"""

import json
import re
from collections.abc import Sequence
from itertools import chain, cycle
from operator import attrgetter, is_not
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.text import display

# Bytes that are looked at together.
PIECE = 1 << 22

_NAME_OR_BRACE = re.compile(rb'("(?:[^"\\]|\\.)*+")[ \t\r\n]*+(:?)|[{}]', re.S)
_BEFORE_COLON = tuple(b'" \t\r\n')


class SameNameError(Exception):
    """An object has a name twice."""


def given(decoded: Sequence[Any], defaults: dict[str, object]) -> int:
    """Return how many fields of ``decoded`` are given: all that are not the object that stands for a missing one."""
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
    """Raise an InputError if an object in ``text`` has a name twice; ``names``: how many were decoded,
    beside those of the optional ``fields``, see ``given``.

    ``text`` has been decoded, so it is valid JSON, or one document per line if ``lines``. ``line_numbers``: the lines
    of the file that ``text`` consists of, if these are not all from ``first_line`` on.
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
    """Return how many names there are at most: only colons behind a quote or a space can end one."""
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
    """The first name that is there twice in its object, and where it is the second time."""
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
    raise AssertionError("the parser has found one")
