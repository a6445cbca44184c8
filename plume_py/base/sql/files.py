"""A whole SQL file: the schema, and sections that begin with a comment.

``-- transaction: name(argument, …)`` begins a transaction, ``-- assume: condition`` says what its callers promise, and
``-- invariant: name: condition`` is a condition on the database, which may go on in the lines below. A procedure or
function that the file creates is a transaction, too.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql import procedures
from plume_py.base.sql.blocks import Blocks
from plume_py.base.sql.casts import without_casts
from plume_py.base.sql.dumps import undumped
from plume_py.base.sql.flow import ended
from plume_py.base.sql.model import Assertion, Condition, File, Param, SqlTransaction
from plume_py.base.sql.schema import Schema
from plume_py.base.sql.statements import first_rows
from plume_py.base.sql.syntax import condition, tokens, wrong
from plume_py.base.sql.written import one_spelling, own_delimiters

MAX_BYTES = 1 << 20

_HEADER = re.compile(r"\s*--\s*(transaction|invariant|assume|schema)\s*:\s*(.*)", re.IGNORECASE)
_ALMOST = re.compile(r"\s*+--\s*+transaction\s++\w++\s*+\([^()]*+\)\s*+;?+\s*+", re.IGNORECASE)
_SIGNATURE = re.compile(r"([A-Za-z_]\w*+)\s*+(?:\((.*)\)\s*+)?+(?:;\s*+)?+")
_PLACEHOLDER = re.compile(r":([A-Za-z_]\w*)")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?::(?!=)\s*(.*))?$", re.DOTALL)


def load(path: str, any_query: bool = False, functions: bool = True) -> File:
    """Read a file; ``any_query`` lets through what only an analysis of conflicts can use (see statements.select).

    ``functions``: the functions and procedures that the file creates are transactions; those of a dump are not.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(path) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes, which no program is").in_source(path)
    try:
        return parse(data.decode("utf-8-sig"), Path(path).stem, any_query, functions)
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


def parse(text: str, name: str = "app", any_query: bool = False, functions: bool = True) -> File:
    """The content of a file."""
    sections = _sections(own_delimiters(undumped(text, functions)))
    schema, rows = Schema(), []
    for section in sections:
        for part, line in _statements(section) if section.kind == "schema" else ():
            if part[:6].upper() == "INSERT":
                rows.append(first_rows(part, line))
            else:
                schema.take(part, line)
    tables = schema.tables()
    transactions = [_transaction(section, any_query) for section in sections if section.kind == "transaction"]
    invariants = [_invariant(section, i) for i, section in enumerate(sections) if section.kind == "invariant"]
    for what, names in (
        ("table", [(t.name, t.line) for t in tables]),
        ("transaction", [(t.name, t.line) for t in transactions]),
        ("invariant", [(a.name, a.condition.line) for a in invariants]),
    ):
        _distinct(what, names)
    parts = tuple(tables), tuple(transactions), tuple(invariants), tuple(rows)
    return File(name, *parts, schema.notes(), frozenset(schema.enums))


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
        if _ALMOST.fullmatch(line):
            raise wrong("a header without its colon", number, "write -- transaction: name(argument, …)")
        if header is None:
            if procedures.BEGINS.match(line) and not _is_waiting(sections[-1]):
                sections.append(_Section("transaction", "", number))
            sections[-1].lines.append((number, line))
        elif header[1].lower() == "assume":
            if sections[-1].kind != "transaction":
                raise wrong("assume belongs below a transaction", number)
            sections[-1].assume.append((number, header[2]))
        else:
            sections.append(_Section(header[1].lower(), header[2].strip(), number))
    return sections


def _is_waiting(section: _Section) -> bool:
    """A header whose transaction has not begun yet: the procedure below is its body."""
    return section.kind == "transaction" and not any(line.strip() for _, line in section.lines)


def _body(section: _Section) -> tuple[str, int]:
    """The text of a section, and the line it begins at."""
    first = section.lines[0][0] if section.lines else section.line
    return "\n".join(line for _, line in section.lines), first


def _statements(section: _Section) -> list[tuple[str, int]]:
    """The statements of a section with their lines, split at semicolons."""
    text, first = _body(section)
    text, _ = one_spelling(text, first, ())
    text, _ = without_casts(text, first, ())
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
    named = _NAME.match(section.title)
    name, begin = (named[1], named[2] or "") if named else (f"invariant{number}", section.title)
    listed = tokens(text, first)
    if listed and listed[-1].text == ";":  # comments may follow
        text = text[: listed[-1].start]
    elif not listed and begin.rstrip().endswith(";"):
        text = ""
    plain = re.sub(r"^[^\S\n]*+--", "", text, flags=re.MULTILINE)
    line = section.line if begin.strip() or not section.lines else first + _blank_lines(plain)
    whole = "\n" * 0 + (f"{begin}\n{plain}" if begin.strip() else plain.lstrip("\n "))
    whole = whole.strip().rstrip(";").strip()
    if not whole:
        raise wrong(f"the invariant {name} has no condition", section.line, "write it after the colon or below")
    return Assertion(name, Condition(condition(whole, line), " ".join(whole.split()), line))


def _blank_lines(text: str) -> int:
    return len(text) - len(text.lstrip("\n")) if not text[:1].isspace() or text.startswith("\n") else 0


def _transaction(section: _Section, any_query: bool) -> SqlTransaction:
    text, first = _body(section)
    if "/*!" in text:
        line = first + text[: text.index("/*!")].count("\n")
        raise wrong("a comment that MySQL executes", line, "write the statement without the comment around it")
    wrapped = procedures.head(text, first)
    if section.title:
        matched = _SIGNATURE.fullmatch(section.title)
        if matched is None:
            hint = "write -- transaction: name(argument, argument INT, …)"
            raise wrong("cannot read this header", section.line, hint)
        name, listed = matched[1], procedures.arguments(matched[2] or "", section.line)
    elif wrapped is not None:
        name, listed = wrapped.name, wrapped.params
    else:
        raise wrong("a transaction without a name", section.line, "write -- transaction: name(argument, …)")
    assume = tuple(Condition(condition(text.rstrip("; "), line), text, line) for line, text in section.assume)
    text = wrapped.body if wrapped is not None else text
    text, names = one_spelling(text, first, tuple(param.name for param in listed))
    types = {param.name: param for param in listed}
    text, params = without_casts(text, first, [types.get(name, Param(name, "int")) for name in names])
    blocks = Blocks(text, first, any_query)
    body = ended(blocks.whole())
    colons = frozenset(found.lower() for found in _PLACEHOLDER.findall(text))
    declared = frozenset({*blocks.variables, *(wrapped.variables if wrapped is not None else ())})
    return SqlTransaction(name, params, body, assume, section.line, colons, declared)
