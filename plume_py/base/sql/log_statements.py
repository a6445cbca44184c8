"""Statements of a log without their values: the text with holes, and what was in them."""

import re
from typing import NamedTuple

from plume_py.base.errors import InputError

_PART = re.compile(
    r"""
    (?P<comment>--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
  | (?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*+')
  | (?P<text>'(?:[^']|'')*+')
  | (?P<dollars>\$(?P<tag>[A-Za-z_]\w*+)?\$.*?\$(?P=tag)\$|\$\$.*?\$\$)
  | (?P<name>"(?:[^"]|"")*+")
  | (?P<parameter>\$\d{1,5})
  | (?P<number>(?<![\w.$])\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+(?!\w))
  | (?P<open>['"])
    """,
    re.VERBOSE | re.DOTALL,
)
# After these a value says how much, or which column: it is part of the statement.
_KEPT_AFTER = re.compile(
    r"\b(?:LIMIT|OFFSET|FIRST|NEXT|INTERVAL|BY|SELECT|DATE|TIMESTAMP|TIMESTAMPTZ|TIME)\s*+$", re.IGNORECASE
)
# The numbers in the brackets of a type are part of it: NUMERIC(8, 2).
_OF_TYPE = re.compile(r"(?:::|\bAS)\s*+[A-Za-z_][\w.\" ]*+\((?:\s*+\d++\s*+,)?\s*+$", re.IGNORECASE)
# A minus that belongs to the number after it, as psycopg 2 writes negative values.
_SIGN = re.compile(r"(?:[=<>(,+*/-]|\b(?:AND|OR|NOT|WHERE|THEN|ELSE|WHEN|BETWEEN|RETURN))\s*+(-\s*+)$", re.IGNORECASE)
_GIVEN = re.compile(r"\$(\d{1,5}) = (NULL|'(?:[^']|'')*+')(?:, |$)")
_WHOLE = re.compile(r"-?\d{1,30}")
_DECIMAL = re.compile(r"-?\d{1,30}\.\d{1,30}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?", re.DOTALL)


class Shape(NamedTuple):
    """A statement: the text between its values, and the values. NULL is part of the text."""

    pieces: tuple[str, ...]
    values: tuple[str, ...]


def given_values(detail: str) -> dict[int, str | None]:
    """What a DETAIL line says of the parameters of the statement before it."""
    found: dict[int, str | None] = {}
    at = 0
    while match := _GIVEN.match(detail, at):
        found[int(match[1])] = None if match[2] == "NULL" else _plain(match[2])
        at = match.end()
    if at < len(detail):
        raise InputError("cannot read these parameters", hint="set log_parameter_max_length = -1")
    return found


def shape(text: str, given: dict[int, str | None]) -> Shape:
    """Take the values out of a statement."""
    pieces, values, at = [""], list[str](), 0
    for part in _PART.finditer(text):
        pieces[-1] += text[at : part.start()]
        at = part.end()
        kind, written = part.lastgroup, part[0]
        if kind == "open":
            raise InputError("a quote is left open", hint="is the log cut off?")
        value = _value(kind or "", written, given)
        if kind == "comment":
            pieces[-1] += " "
        elif value is None or (kind != "parameter" and _is_kept(kind or "", pieces[-1])):
            pieces[-1] += "NULL" if kind == "parameter" else written
        else:
            if kind == "number" and (sign := _SIGN.search(pieces[-1])):
                pieces[-1], value = pieces[-1][: sign.start(1)], f"-{value}"
            values.append(value)
            pieces.append("")
    pieces[-1] += text[at:]
    return Shape(tuple(" ".join(piece.split()) for piece in pieces), tuple(values))


def _is_kept(kind: str, before: str) -> bool:
    """Does a value after this text belong to the statement?"""
    return _KEPT_AFTER.search(before) is not None or (kind == "number" and _OF_TYPE.search(before) is not None)


def _value(kind: str, written: str, given: dict[int, str | None]) -> str | None:
    """The value that stands there, in one spelling; None where there is none to be taken out."""
    if kind == "parameter":
        number = int(written[1:])
        if number not in given:
            raise InputError(f"no value of {written} in the log", hint="set log_parameter_max_length = -1")
        return given[number]
    if kind == "text":
        return _plain(written)
    if kind == "number":
        return written
    return written[2:-1] if kind == "escaped" else None


def _plain(quoted: str) -> str:
    return quoted[1:-1].replace("''", "'")


def type_of(value: str) -> str:
    """What a value looks like."""
    if _WHOLE.fullmatch(value):
        return "INT"
    if _DECIMAL.fullmatch(value):
        return "DECIMAL"
    return "TIMESTAMP" if _MOMENT.fullmatch(value) else "TEXT"
