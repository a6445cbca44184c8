"""PostgreSQL's log, read entry by entry: as it writes to stderr (any log_line_prefix with %p or %c), or as csvlog.

What is read here may be anything: lines are bounded, and nothing of them is believed but where an entry begins.
"""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from plume_py.base.errors import InputError

MAX_BYTES = 1 << 30
MAX_ENTRY = 1 << 20  # characters
HINT = "set log_line_prefix = '%m [%p] ' or with %c, log_statement = 'all', and log_destination = 'stderr' or 'csvlog'"

_SEVERITY = re.compile(
    r"(LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?|DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION):  "
)
# %c is the start of the session and its process, in hexadecimal; %p the process, mostly in brackets.
_SESSION = re.compile(r"(?<![\w.])([0-9a-f]{6,16}\.[0-9a-f]{1,8})(?![\w.])")
_IN_BRACKETS = re.compile(r"\[(\d{1,10})(?:-\d{1,10})?\]")
_PROCESS = re.compile(r"(?<![\w.:+-])(\d{1,10})(?![\w.:+-])")
_CSV_FIELDS = 14  # up to the message; more are there
_CSV_QUERY = 19  # the statement that an error is about


class Entry(NamedTuple):
    """One entry: the line it begins at, whose it is, how severe, and what it says."""

    line: int
    session: str
    severity: str
    message: str


def entries(path: str) -> Iterator[Entry]:
    """All entries of a file, in order."""
    with _opened(path) as file:
        yield from _of_csv(file) if path.lower().endswith(".csv") else _of_text(file)


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputError(f"larger than {MAX_BYTES >> 20} MB", hint="take a part of it, from some hour of work")
        with Path(path).open(encoding="utf-8", errors="replace", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}") from None


def _of_text(file: TextIO) -> Iterator[Entry]:
    """An entry begins with a prefix and a severity; the lines after it that begin with a tab belong to it."""
    begun: Entry | None = None
    more: list[str] = []
    size = 0
    for number, line in enumerate(_lines(file), 1):
        if line.startswith("\t"):
            size += len(line)
            if size > MAX_ENTRY:
                raise InputError(f"an entry of more than {MAX_ENTRY:,} characters", where=f"line {number}")
            more.append(line[1:])
            continue
        if begun is not None:
            yield begun._replace(message="\n".join([begun.message, *more]))
        begun, more, size = _begun(line, number), [], 0
    if begun is not None:
        yield begun._replace(message="\n".join([begun.message, *more]))


def _lines(file: TextIO) -> Iterator[str]:
    while line := file.readline(MAX_ENTRY + 1):
        yield line.rstrip("\r\n") if len(line) <= MAX_ENTRY else line


def _begun(line: str, number: int) -> Entry | None:
    """The entry that begins in this line; a line that is none, as of another program, is passed over."""
    if len(line) > MAX_ENTRY:
        raise InputError(f"a line of more than {MAX_ENTRY:,} characters", where=f"line {number}")
    found = _SEVERITY.search(line)
    if found is None:
        return None
    session = _session(line[: found.start()])
    if session is None:
        raise InputError("no session in the prefix of this line", where=f"line {number}", hint=HINT)
    return Entry(number, session, found[1], line[found.end() :])


def _session(prefix: str) -> str | None:
    if whole := _SESSION.search(prefix):
        return whole[1]
    process = _IN_BRACKETS.search(prefix) or _PROCESS.search(prefix)
    return None if process is None else process[1]


def _of_csv(file: TextIO) -> Iterator[Entry]:
    """Fields as PostgreSQL documents them: the session is the 6th, the severity the 12th, then message and detail."""
    csv.field_size_limit(MAX_ENTRY)
    reader = csv.reader(file, strict=True)
    begin = 1
    try:
        for row in reader:
            if row and len(row) < _CSV_FIELDS:
                raise InputError("not a line of csvlog: too few fields", where=f"line {begin}", hint=HINT)
            if row:
                yield Entry(begin, row[5], row[11], row[13])
                if len(row) > _CSV_FIELDS and row[14]:
                    yield Entry(begin, row[5], "DETAIL", row[14])
                if len(row) > _CSV_QUERY and row[_CSV_QUERY]:
                    yield Entry(begin, row[5], "STATEMENT", row[_CSV_QUERY])
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"not csvlog: {error}", where=f"line {begin}", hint=HINT) from None


# From log_statements.py: Statements of a log without their values: the text with holes, and what was in them.
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
