"""Remove casts of parameters and constants from the text of a transaction if they change no value.

``files`` calls this before a transaction is parsed. A constant is replaced by its value. A parameter needs more care:
``:p`` and ``:p::varchar(3)`` may select two rows, and ``:p::int`` is 7 for the texts '7' and '07'.

1. The casts of each use determine its *family*: two uses in one family have equal values if and only if the parameter
   has.
2. Uses of the only family of a parameter become the parameter itself, with the type that the casts give it.
3. Each further family becomes a separate parameter with any value. So an answer is never weaker than the casts allow.

Casts of other expressions, such as columns, remain.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql.model import Param
from plume_py.base.sql.schema import type_of
from plume_py.base.sql.syntax import canonical_type, tokens

_WHOLE_TYPES = {"INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT128"}
_WHOLE, _TEXT, _NUMBER = "INT", "TEXT", "DECIMAL"
_LONGEST = 18  # digits of a constant that fit into each of these types
_INTEGER = re.compile(r"\s*([+-]?)0*(\d+)\s*")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DATE = re.compile(r"[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|30|31)")
_TIMESTAMP = re.compile(_DATE.pattern + r" (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{0,5}[1-9])?")
_LENGTH = re.compile(r"VARCHAR\((\d{1,8})\)")
_SCALE = re.compile(r"DECIMAL\(\d{1,8}(?:, \d{1,8})?\)")
# A bracket after one of these tokens opens neither the arguments of a function nor a list.
_BEFORE_BRACKETS = [
    "=",
    "<",
    ">",
    "+",
    "-",
    "*",
    "/",
    ",",
    "(",
    "<=",
    ">=",
    "<>",
    "!=",
    "||",
    "AND",
    "OR",
    "NOT",
    "WHERE",
    "SELECT",
    "THEN",
    "ELSE",
    "DEFAULT",
]
_MORE_TYPE_WORDS = ("WITH", "WITHOUT", "TIME", "ZONE", "VARYING", "PRECISION")


@dataclass(frozen=True)
class _Cast:
    """A value with its casts: the indices of its first and last token, and the types, the innermost first."""

    begin: int
    end: int
    value: str  # the text of a constant, or the name of a parameter after a colon
    types: tuple[str, ...]


def without_casts(text: str, first: int, params: Sequence[Param]) -> tuple[str, tuple[Param, ...]]:
    """Return the text without casts of parameters and constants, and the parameters that it has then."""
    if "::" not in text and not re.search(r"\bCAST\b", text, re.IGNORECASE):
        return text, tuple(params)
    listed = tokens(text, first)
    known = {param.name: param for param in params}
    found = _CastFinder(text, listed, known).casts()
    families, renamed = _families(found, known, _bare_uses(listed, found, known))
    parts, at = [], 0
    for cast in found:
        value = _after_casts(cast.value, cast.types) if cast.value[0] != ":" else None
        if cast.value[0] == ":":
            name = cast.value[1:]
            value = f":{renamed[name, _family(known[name], cast.types)]}"
        if value is not None:
            begin, end = listed[cast.begin].start, listed[cast.end].end + 1
            # keep the line ends, so that errors point at the right lines; a blank before a negative constant, because
            # two minus signs would start a comment
            parts += [text[at:begin], f" {value}" if value[0] == "-" else value, "\n" * text.count("\n", begin, end)]
            at = end
    return "".join([*parts, text[at:]]), families


class _CastFinder:
    """Finds the casts among the tokens of a text."""

    def __init__(self, text: str, listed: Sequence[Any], known: Collection[str]) -> None:
        self.text, self.listed, self.known = text, listed, known

    def casts(self) -> list[_Cast]:
        """Return the outermost casts of parameters and constants, in order."""
        found, at = list[_Cast](), 0
        while at < len(self.listed):
            cast = self.value(at)
            if cast is not None and cast.types:
                found.append(cast)
                at = cast.end
            at += 1
        return found

    def word(self, at: int) -> str:
        """Return a token in capitals; "" after the end."""
        return str(self.listed[at].text).upper() if at < len(self.listed) else ""

    def is_quoted(self, at: int) -> bool:
        """Return whether a token is a text in plain quotes."""
        return self.text[self.listed[at].start] == "'"

    def value(self, at: int, depth: int = 0) -> _Cast | None:
        """Return a parameter or a constant with the casts that follow it; None for anything else."""
        found = self.operand(at, depth) if depth < 20 else None  # deeper casts remain
        while found is not None and found.end + 1 < len(self.listed) and self.listed[found.end + 1].text == "::":
            kind = self.type_at(found.end + 2)
            if kind is None:
                return None
            found = replace(found, end=kind[1], types=(*found.types, kind[0]))
        return found

    def operand(self, at: int, depth: int) -> _Cast | None:
        """Return the operand of casts: a parameter or constant, perhaps in brackets, or CAST(… AS …)."""
        word = self.word(at)
        if word == ":" and at + 1 < len(self.listed) and str(self.listed[at + 1].text).lower() in self.known:
            touches = self.listed[at].end + 1 == self.listed[at + 1].start
            return _Cast(at, at + 1, f":{str(self.listed[at + 1].text).lower()}", ()) if touches else None
        if at < len(self.listed) and self.listed[at].token_type.name in ("STRING", "NUMBER", "NULL", "TRUE", "FALSE"):
            if self.listed[at].token_type.name == "STRING" and not self.is_quoted(at):
                return None
            token = self.listed[at]
            return _Cast(at, at, self.text[token.start : token.end + 1], ())
        if word == "CAST" and self.word(at + 1) == "(":
            inner = self.value(at + 2, depth + 1)
            kind = self.type_at(inner.end + 2) if inner is not None and self.word(inner.end + 1) == "AS" else None
            if inner is not None and kind is not None and self.word(kind[1] + 1) == ")":
                return _Cast(at, kind[1] + 1, inner.value, (*inner.types, kind[0]))
        if word == "(" and (depth or self.word(at - 1) in _BEFORE_BRACKETS):
            inner = self.value(at + 1, depth + 1)
            is_cast = inner is not None and self.word(inner.end + 2) == "::"
            if inner is not None and self.word(inner.end + 1) == ")" and (depth or is_cast):
                return replace(inner, begin=at, end=inner.end + 1)
        return None

    def type_at(self, at: int) -> tuple[str, int] | None:
        """Return the type that starts at this token, in one spelling, and the index of its last token."""
        end = at + 1
        while self.word(end) == ".":
            end += 2
        while self.word(end) in _MORE_TYPE_WORDS or self.word(end) in ("(", "["):
            if self.word(end) in ("(", "["):
                close = ")" if self.word(end) == "(" else "]"
                while end < len(self.listed) and self.word(end) != close:
                    end += 1
            end += 1
        if end > len(self.listed) or not (self.word(at)[:1].isalpha() or self.word(at)[:1] in '_"'):
            return None
        begin, last = self.listed[at].start, self.listed[end - 1].end + 1
        return _same_values_type(self.text[begin:last]), end - 1


def _same_values_type(written: str) -> str:
    """Return one name for all types that have the same values, whatever their range."""
    plain = " ".join(written.upper().split())
    kind = canonical_type(written)
    if kind in _WHOLE_TYPES:
        return _WHOLE
    if kind in ("VARCHAR", _TEXT):
        return _TEXT
    # for other types the parser may drop a length
    known = (
        kind in (_NUMBER, "UUID", "DATE", "TIMESTAMP", "BOOLEAN") or _LENGTH.fullmatch(kind) or _SCALE.fullmatch(kind)
    )
    return kind if known else plain


def _column_type(kind: str) -> str:
    """Return int, bool or text for the type of an argument; text for a type of the application."""
    try:
        return type_of(kind, 1)
    except InputError:
        return "text"


def _family(param: Param, types: Sequence[str]) -> str:
    """Return the family of a use: the type of the parameter, and the casts after it that may change values."""
    family = declared = _declared(param)
    for kind in types:
        is_same = kind == family or (family == _WHOLE == declared and kind == _NUMBER)
        family = family if is_same else f"{family}::{kind}"
    return family


def _declared(param: Param) -> str:
    """Return the declared type of a parameter; INT without a declaration."""
    kind = _same_values_type(param.declared or _WHOLE)
    return _TEXT if kind.startswith(("VARCHAR(", "CHAR")) else kind


def _bare_uses(listed: Sequence[Any], found: Sequence[_Cast], known: Collection[str]) -> set[str]:
    """Return the parameters that occur without a cast; a name without a colon, perhaps a column, also counts."""
    inside = {at for cast in found for at in range(cast.begin, cast.end + 1)}
    names = {str(t.text).lower() for at, t in enumerate(listed) if at not in inside and t.token_type.name != "STRING"}
    return names & {*known}


def _families(
    found: Sequence[_Cast], known: dict[str, Param], bare: Collection[str]
) -> tuple[tuple[Param, ...], dict[tuple[str, str], str]]:
    """Return the parameters, one for each family, and the name for each (parameter, family)."""
    params: list[Param] = []
    renamed: dict[tuple[str, str], str] = {}
    taken = {*known}
    for name, param in known.items():
        uses = [cast.types for cast in found if cast.value == f":{name}"]
        families = dict.fromkeys([_declared(param)] if name in bare else [])
        last = {_declared(param): ""}
        for types in uses:
            family = _family(param, types)
            families[family] = None
            last.setdefault(family, types[-1])
        if not families:
            params.append(param)
        for number, family in enumerate(families):
            own = name if not number else _fresh(f"{name}_{_plain(last[family])}", taken)
            taken.add(own)
            renamed[name, family] = own
            kind = param.type if not last[family] else _column_type(last[family])
            params.append(replace(param, name=own, type=kind, declared=last[family] or param.declared))
    return tuple(params), renamed


def _plain(kind: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", kind.lower()).strip("_") or "cast"


def _fresh(stem: str, taken: Collection[str]) -> str:
    return stem if stem not in taken else next(name for n in count(2) if (name := f"{stem}_{n}") not in taken)


def _after_casts(written: str, types: Sequence[str]) -> str | None:
    """Return a constant after its casts, or None if one of them may change it."""
    value: str | None = written
    for kind in types:
        value = None if value is None else _after_cast(value, kind)
    return value


def _after_cast(value: str, kind: str) -> str | None:
    if value.upper() == "NULL":
        return value
    if value.upper() in ("TRUE", "FALSE"):
        return value if kind == "BOOLEAN" else None
    is_text = value[0] == "'"
    plain = value[1:-1].replace("''", "'") if is_text else value
    number = _INTEGER.fullmatch(plain)
    if kind in (_WHOLE, _NUMBER) or (_SCALE.fullmatch(kind) and not is_text):
        if number is None or len(number[2]) > _LONGEST:
            return None
        return f"-{number[2]}" if number[1] == "-" and number[2] != "0" else number[2]
    if kind == "BOOLEAN" and is_text and plain.lower() in ("true", "false", "t", "f"):
        return "TRUE" if plain.lower() in ("true", "t") else "FALSE"
    length = _LENGTH.fullmatch(kind)
    if kind == _TEXT or (length is not None and len(plain) <= int(length[1])):
        # of numbers, only whole ones become text here
        return value if is_text else f"'{number[2]}'" if number is not None else None
    known = {"UUID": _UUID, "DATE": _DATE, "TIMESTAMP": _TIMESTAMP}.get(kind)
    return value if is_text and known is not None and known.fullmatch(plain) else None
