"""Read PostgreSQL's log entry by entry, and take the values out of its statements.

Two formats: stderr (any log_line_prefix with %p or %c), and csvlog. The log is untrusted input, so the lengths of
files, lines and entries are bounded. ``log_programs`` calls this module.
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
# %c is the start time and process of the session, in hexadecimal; %p is the process, usually in brackets.
_SESSION = re.compile(r"(?<![\w.])([0-9a-f]{6,16}\.[0-9a-f]{1,8})(?![\w.])")
_IN_BRACKETS = re.compile(r"\[(\d{1,10})(?:-\d{1,10})?\]")
_PROCESS = re.compile(r"(?<![\w.:+-])(\d{1,10})(?![\w.:+-])")
_CSV_FIELDS = 14  # fields up to the message; others follow
_CSV_QUERY = 19  # index of the statement that caused an error
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
# A value after these words is a part of the statement, such as a number of rows or of a column.
_KEPT_AFTER = re.compile(
    r"\b(?:LIMIT|OFFSET|FIRST|NEXT|INTERVAL|BY|SELECT|DATE|TIMESTAMP|TIMESTAMPTZ|TIME)\s*+$", re.IGNORECASE
)
# Numbers in the brackets of a type are a part of the type: NUMERIC(8, 2).
_OF_TYPE = re.compile(r"(?:::|\bAS)\s*+[A-Za-z_][\w.\" ]*+\((?:\s*+\d++\s*+,)?\s*+$", re.IGNORECASE)
# A minus that is a part of the next number; psycopg 2 writes negative values like this.
_SIGN = re.compile(r"(?:[=<>(,+*/-]|\b(?:AND|OR|NOT|WHERE|THEN|ELSE|WHEN|BETWEEN|RETURN))\s*+(-\s*+)$", re.IGNORECASE)
_GIVEN = re.compile(r"\$(\d{1,5}) = (NULL|'(?:[^']|'')*+')(?:, |$)")
_WHOLE = re.compile(r"-?\d{1,30}")
_DECIMAL = re.compile(r"-?\d{1,30}\.\d{1,30}")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?", re.DOTALL)


class Entry(NamedTuple):
    """One entry: the line it starts at, its session, severity and message."""

    line: int
    session: str
    severity: str
    message: str


def entries(path: str) -> Iterator[Entry]:
    """Yield all entries of a file in order."""
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
    """Yield the entries; an entry starts with a prefix and severity, and continues in lines that start with a tab."""
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
    """Return the entry that starts in this line; None for a line of another program."""
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
    """Yield the entries of csvlog: field 6 is the session, 12 the severity, 14 the message, 15 the detail."""
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


class Shape(NamedTuple):
    """A statement: the pieces of text between its values, and the values. NULL is a part of the text."""

    pieces: tuple[str, ...]
    values: tuple[str, ...]


def given_values(detail: str) -> dict[int, str | None]:
    """Return the parameters of the previous statement, by number, from the text of a DETAIL entry."""
    found: dict[int, str | None] = {}
    at = 0
    while match := _GIVEN.match(detail, at):
        found[int(match[1])] = None if match[2] == "NULL" else _plain(match[2])
        at = match.end()
    if at < len(detail):
        raise InputError("cannot read these parameters", hint="set log_parameter_max_length = -1")
    return found


def shape(text: str, given: dict[int, str | None]) -> Shape:
    """Take the values out of a statement; ``given`` has the values of its parameters."""
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
    """Return whether a value after this text is a part of the statement."""
    return _KEPT_AFTER.search(before) is not None or (kind == "number" and _OF_TYPE.search(before) is not None)


def _value(kind: str, written: str, given: dict[int, str | None]) -> str | None:
    """Return the value of a part, without quotes; None for NULL and for other parts."""
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
    """Return the SQL type that a value looks like."""
    if _WHOLE.fullmatch(value):
        return "INT"
    if _DECIMAL.fullmatch(value):
        return "DECIMAL"
    return "TIMESTAMP" if _TIMESTAMP.fullmatch(value) else "TEXT"
