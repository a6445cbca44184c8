"""A whole SQL file: the schema, and sections that begin with a comment.

``-- transaction: name(argument, …)`` begins a transaction, ``-- assume: condition`` says what its callers promise, and
``-- invariant: name: condition`` is a condition on the database, which may go on in the lines below.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql.model import (
    Assertion,
    Condition,
    File,
    If,
    Loop,
    Param,
    RollbackStatement,
    SqlTransaction,
    Statement,
)
from plume_py.base.sql.schema import table, type_of
from plume_py.base.sql.statements import first_rows, select, simple
from plume_py.base.sql.syntax import condition, tokens, wrong

MAX_BYTES = 1 << 20
DEPTH = 50  # IF inside IF inside …

_HEADER = re.compile(r"\s*--\s*(transaction|invariant|assume|schema)\s*:\s*(.*)", re.IGNORECASE)
_SIGNATURE = re.compile(r"([A-Za-z_]\w*+)\s*+(?:\((.*)\)\s*+)?+(?:;\s*+)?+")
_PLACEHOLDER = re.compile(r":([A-Za-z_]\w*)")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?::(?!=)\s*(.*))?$", re.DOTALL)


def load(path: str, any_query: bool = False) -> File:
    """Read a file; ``any_query`` lets through what only an analysis of conflicts can use (see statements.select)."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(path) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes, which no program is").in_source(path)
    try:
        return parse(data.decode("utf-8-sig"), Path(path).stem, any_query)
    except UnicodeDecodeError:
        raise InputError("not a text file in UTF-8").in_source(path) from None
    except InputError as error:
        raise error.in_source(path) from None
    except RecursionError:
        raise InputError("nested too deeply", hint="split it").in_source(path) from None


@dataclass
class _Section:
    kind: str
    title: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)
    assume: list[tuple[int, str]] = field(default_factory=list)


def parse(text: str, name: str = "app", any_query: bool = False) -> File:
    """The content of a file."""
    sections = _sections(text)
    tables, rows = [], []
    for section in sections:
        for part, line in _statements(section) if section.kind == "schema" else ():
            if part[:6].upper() == "INSERT":
                rows.append(first_rows(part, line))
            else:
                tables.append(table(part, line))
    transactions = [_transaction(section, any_query) for section in sections if section.kind == "transaction"]
    invariants = [_invariant(section, i) for i, section in enumerate(sections) if section.kind == "invariant"]
    for what, names in (
        ("table", [(t.name, t.line) for t in tables]),
        ("transaction", [(t.name, t.line) for t in transactions]),
        ("invariant", [(a.name, a.condition.line) for a in invariants]),
    ):
        _distinct(what, names)
    return File(name, tuple(tables), tuple(transactions), tuple(invariants), tuple(rows))


def _distinct(what: str, names: list[tuple[str, int]]) -> None:
    seen: dict[str, int] = {}
    for name, line in names:
        if name in seen:
            raise wrong(f"a second {what} {name}; the first is in line {seen[name]}", line)
        seen[name] = line


def _sections(text: str) -> list[_Section]:
    sections = [_Section("schema", "", 1)]
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is None:
            sections[-1].lines.append((number, line))
        elif header[1].lower() == "assume":
            if sections[-1].kind != "transaction":
                raise wrong("assume belongs below a transaction", number)
            sections[-1].assume.append((number, header[2]))
        else:
            sections.append(_Section(header[1].lower(), header[2].strip(), number))
    return sections


def _body(section: _Section) -> tuple[str, int]:
    """The text of a section, and the line it begins at."""
    first = section.lines[0][0] if section.lines else section.line
    return "\n".join(line for _, line in section.lines), first


def _statements(section: _Section) -> list[tuple[str, int]]:
    """The statements of a section with their lines, split at semicolons."""
    text, first = _body(section)
    found, current = [], list[Any]()
    for token in [*tokens(text, first), None]:
        if token is None or token.text == ";":
            if current:
                found.append((text[current[0].start : current[-1].end + 1], first + current[0].line - 1))
            current = []
        else:
            current.append(token)
    return found


def _invariant(section: _Section, number: int) -> Assertion:
    text, first = _body(section)
    plain = re.sub(r"^[^\S\n]*+--", "", text, flags=re.MULTILINE)
    named = _NAME.match(section.title)
    name, begin = (named[1], named[2] or "") if named else (f"invariant{number}", section.title)
    line = section.line if begin.strip() or not section.lines else first + _blank_lines(plain)
    whole = "\n" * 0 + (f"{begin}\n{plain}" if begin.strip() else plain.lstrip("\n "))
    whole = whole.strip().rstrip(";").strip()
    if not whole:
        raise wrong(f"the invariant {name} has no condition", section.line, "write it after the colon or below")
    return Assertion(name, Condition(condition(whole, line), " ".join(whole.split()), line))


def _blank_lines(text: str) -> int:
    return len(text) - len(text.lstrip("\n")) if not text[:1].isspace() or text.startswith("\n") else 0


def _transaction(section: _Section, any_query: bool) -> SqlTransaction:
    matched = _SIGNATURE.fullmatch(section.title)
    if matched is None:
        raise wrong("cannot read this header", section.line, "write -- transaction: name(argument, argument INT, …)")
    params = []
    for part in (matched[2] or "").split(",") if (matched[2] or "").strip() else ():
        words = part.split()
        if not words or not words[0].isidentifier():
            raise wrong(f"{part.strip()!r} is no argument", section.line, "write name or name TYPE")
        kind = type_of(" ".join(words[1:]), section.line) if len(words) > 1 else "int"
        params.append(Param(words[0].lower(), kind))
    assume = tuple(Condition(condition(text.rstrip("; "), line), text, line) for line, text in section.assume)
    text, first = _body(section)
    body = _Parser(text, first, any_query).whole()
    colons = frozenset(name.lower() for name in _PLACEHOLDER.findall(text))
    return SqlTransaction(matched[1], tuple(params), body, assume, section.line, colons)


class _Parser:
    """Statements and control flow of a transaction, by tokens."""

    def __init__(self, text: str, first: int, any_query: bool) -> None:
        self.text, self.first, self.any_query = text, first, any_query
        self.tokens = tokens(text, first)
        self.at = 0

    def word(self, ahead: int = 0) -> str:
        """The next token, in capitals."""
        place = self.at + ahead
        return str(self.tokens[place].text).upper() if place < len(self.tokens) else ""

    def line(self) -> int:
        """The line of the next token."""
        place = min(self.at, len(self.tokens) - 1)
        return self.first + (self.tokens[place].line - 1 if self.tokens else 0)

    def whole(self) -> tuple[Statement, ...]:
        """All statements; BEGIN and COMMIT may be written or left out."""
        body = self.block((), 0)
        if self.at < len(self.tokens):
            raise wrong(f"{self.word()} without its beginning", self.line())
        return body

    def block(self, ends: tuple[str, ...], depth: int) -> tuple[Statement, ...]:
        """Statements up to one of these words."""
        if depth > DEPTH:
            raise wrong("too many blocks inside each other", self.line())
        found: list[Statement] = []
        while self.at < len(self.tokens) and self.word() not in ends:
            if self.word() in (";",):
                self.at += 1
            elif self.word() in ("BEGIN", "COMMIT", "START", "DECLARE") or (self.word() == "END" and not ends):
                self.skip()
            elif self.word() == "ROLLBACK":
                found.append(RollbackStatement(self.line(), "ROLLBACK"))
                self.skip()
            elif self.word() == "IF":
                found.append(self.choice(depth))
            elif self.word() == "FOR":
                found.append(self.loop(depth))
            else:
                found.append(self.single())
        return tuple(found)

    def skip(self) -> None:
        """Up to the end of this statement."""
        while self.at < len(self.tokens) and self.word() != ";":
            self.at += 1

    def until(self, *ends: str) -> tuple[list[Any], str]:
        """The tokens up to one of these words outside brackets, and their text."""
        begin, depth = self.at, 0
        while self.at < len(self.tokens) and (depth or self.word() not in ends):
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
        taken = self.tokens[begin : self.at]
        if not taken:
            raise wrong(f"something is missing before {self.word() or 'the end'}", self.line())
        return taken, self.text[taken[0].start : taken[-1].end + 1]

    def expect(self, *words: str) -> None:
        """These words, in this order."""
        for word in words:
            if self.word() != word:
                raise wrong(f"{word} expected, not {self.word() or 'the end'}", self.line())
            self.at += 1

    def single(self) -> Statement:
        """A statement up to its semicolon."""
        line = self.line()
        taken, text = self.until(";")
        return simple(taken, text, line, self.any_query)

    def choice(self, depth: int) -> If:
        """IF … THEN … [ELSIF …] [ELSE …] END IF."""
        line = self.line()
        self.at += 1
        inner = self.line()
        _, text = self.until("THEN")
        test = Condition(condition(text, inner), " ".join(text.split()), inner)
        self.expect("THEN")
        then = self.block(("ELSE", "ELSIF", "ELSEIF", "END"), depth + 1)
        otherwise: tuple[Statement, ...] = ()
        if self.word() in ("ELSIF", "ELSEIF"):
            otherwise = (self.choice(depth + 1),)
            return If(line, f"IF {test.text}", test, then, otherwise)
        if self.word() == "ELSE":
            self.at += 1
            otherwise = self.block(("END",), depth + 1)
        self.expect("END", "IF")
        return If(line, f"IF {test.text}", test, then, otherwise)

    def loop(self, depth: int) -> Loop:
        """FOR row IN SELECT … LOOP … END LOOP."""
        line = self.line()
        self.at += 1
        name = self.word().lower()
        self.at += 1
        self.expect("IN")
        inner = self.line()
        taken, text = self.until("LOOP", "DO")
        outer = 0  # brackets around it
        while 2 * outer < len(taken) and taken[outer].text == "(" and taken[-1 - outer].text == ")":
            outer += 1
        taken = taken[outer : len(taken) - outer]
        if not taken or taken[0].text.upper() != "SELECT":
            raise wrong("FOR goes over the rows of a SELECT", inner, "write FOR row IN SELECT … LOOP … END LOOP")
        text = self.text[taken[0].start : taken[-1].end + 1]
        query = select(taken, text, inner, self.any_query)
        self.at += 1
        body = self.block(("END",), depth + 1)
        self.expect("END")
        if self.word() in ("LOOP", "FOR"):
            self.at += 1
        return Loop(line, f"FOR {name} IN {' '.join(text.split())}", name, query, body)
