"""Procedures and functions of both dialects: their names, their arguments, and what they do."""

import re
from dataclasses import dataclass

from plume_py.base.sql.model import Param
from plume_py.base.sql.schema import type_of
from plume_py.base.sql.syntax import canonical_type, wrong

_CREATE = r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?(?:PROCEDURE|FUNCTION)\b"
BEGINS = re.compile(_CREATE, re.IGNORECASE)
_HEAD = re.compile(
    rf"{_CREATE}\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:[`\"]?\w+[`\"]?\.)?[`\"]?([A-Za-z_]\w*)[`\"]?\s*\(", re.IGNORECASE
)
_WAYS = ("IN", "OUT", "INOUT", "VARIADIC")
_TAIL = re.compile(
    r"\bEND\b\s*[;/]*\s*(?:\$\w*\$)?\s*(?:(?:LANGUAGE\s+\w+|VOLATILE|SECURITY\s+(?:DEFINER|INVOKER))\s*)*[;/\s]*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Head:
    """What stands before the body; ``body`` has blanks in its place."""

    name: str
    params: tuple[Param, ...]
    variables: tuple[str, ...]
    body: str


def head(text: str, first: int) -> Head | None:
    """The procedure that this text creates, if it creates one."""
    found = _HEAD.match(text)
    if found is None:
        return None
    line = first + text[: found.start(1)].count("\n")
    end = _closing(text, found.end(), line)
    inside = text[found.end() : end]
    params: list[Param] = []
    variables: list[Param] = []
    for part in _parts(inside):
        words = part.split()
        way = words.pop(0).upper() if words and words[0].upper() in _WAYS and len(words) > 1 else "IN"
        if way == "VARIADIC":
            raise wrong("a VARIADIC argument is not supported", line, "list the arguments")
        (name,) = arguments(re.split(r"\bDEFAULT\b|:?=", " ".join(words), flags=re.IGNORECASE)[0], line) or (None,)
        if name is not None:
            (variables if way == "OUT" else params).append(name)
    begin = _body_begins(text, end + 1, line)
    blank = re.sub(r"[^\n]", " ", text[:begin])
    tail = _TAIL.search(text)
    if tail is None:
        raise wrong(f"the procedure {found[1]} does not end", line, "end it with END; and write what follows before it")
    body = blank + text[begin : tail.start()] + "END;" + "\n" * tail[0].count("\n")
    return Head(found[1], tuple(params), tuple(param.name for param in variables), body)


def _closing(text: str, at: int, line: int) -> int:
    depth = 1
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise wrong("an open bracket", line)


def _body_begins(text: str, at: int, line: int) -> int:
    """The place of DECLARE or BEGIN, or of a label before it."""
    plain = re.sub(r"--[^\n]*", lambda comment: " " * len(comment[0]), text)
    found = re.compile(r"(?:\b[A-Za-z_]\w*\s*:\s*)?\b(?:DECLARE|BEGIN)\b", re.IGNORECASE).search(plain, at)
    if found is None:
        raise wrong("a procedure without BEGIN is not supported", line, "write BEGIN … END around its statements")
    return found.start()


def arguments(text: str, line: int) -> tuple[Param, ...]:
    """name, name TYPE, …"""
    found = []
    for part in _parts(text):
        words = part.split()
        name = words[0].strip('`"') if words else ""
        if not name.isidentifier():
            raise wrong(f"{part.strip()!r:.60} is no argument", line, "write name or name TYPE")
        declared = " ".join(words[1:])
        kind = type_of(declared, line) if declared else "int"
        found.append(Param(name.lower(), kind, canonical_type(declared) if declared else ""))
    return tuple(found)


def _parts(text: str) -> list[str]:
    """Split at commas outside brackets."""
    if not text.strip():
        return []
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
