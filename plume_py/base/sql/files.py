"""Read a whole SQL file: the schema, and sections that start with a comment.

- ``-- transaction: name(argument, …)`` starts a transaction.
- ``-- assume: condition`` states what the callers of the transaction above guarantee.
- ``-- invariant: name: condition`` is a condition on the database; it may continue in the lines below.

A procedure or function that the file creates is also a transaction.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql.blocks import BlockReader, remove_ends
from plume_py.base.sql.casts import without_casts
from plume_py.base.sql.model import Assertion, Condition, File, Param, SqlTransaction
from plume_py.base.sql.normalize import (
    CREATE_ROUTINE,
    ROUTINE_START,
    with_named_placeholders,
    without_client_commands,
    without_delimiters,
)
from plume_py.base.sql.schema import Schema, type_of
from plume_py.base.sql.statements import initial_rows
from plume_py.base.sql.syntax import canonical_type, condition, tokens, wrong

MAX_BYTES = 1 << 20

_HEADER = re.compile(r"\s*--\s*(transaction|invariant|assume|schema)\s*:\s*(.*)", re.IGNORECASE)
_ALMOST = re.compile(r"\s*+--\s*+transaction\s++\w++\s*+\([^()]*+\)\s*+;?+\s*+", re.IGNORECASE)
_SIGNATURE = re.compile(r"([A-Za-z_]\w*+)\s*+(?:\((.*)\)\s*+)?+(?:;\s*+)?+")
_PLACEHOLDER = re.compile(r":([A-Za-z_]\w*)")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?::(?!=)\s*(.*))?$", re.DOTALL)
_HEAD = re.compile(
    rf"{CREATE_ROUTINE}\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:[`\"]?\w+[`\"]?\.)?[`\"]?([A-Za-z_]\w*)[`\"]?\s*\(", re.IGNORECASE
)
_WAYS = ("IN", "OUT", "INOUT", "VARIADIC")
_TAIL = re.compile(
    r"\bEND\b\s*[;/]*\s*(?:\$\w*\$)?\s*(?:(?:LANGUAGE\s+\w+|VOLATILE|SECURITY\s+(?:DEFINER|INVOKER))\s*)*[;/\s]*\Z",
    re.IGNORECASE,
)


def load(path: str, any_query: bool = False, functions: bool = True) -> File:
    """Read a file.

    ``any_query`` allows queries that only an analysis of conflicts can use (see ``statements.read_select``).
    ``functions``: functions and procedures that the file creates are transactions, as they are not in a dump.
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
    """Read the content of a file; arguments as of ``load``."""
    sections = _sections(without_delimiters(without_client_commands(text, functions)))
    schema, rows = Schema(), []
    for section in sections:
        for part, line in _statements(section) if section.kind == "schema" else ():
            if part[:6].upper() == "INSERT":
                rows.append(initial_rows(part, line))
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
        _reject_duplicates(what, names)
    parts = tuple(tables), tuple(transactions), tuple(invariants), tuple(rows)
    return File(name, *parts, schema.notes(), frozenset(schema.enums))


def _reject_duplicates(what: str, names: list[tuple[str, int]]) -> None:
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
            if ROUTINE_START.match(line) and not _is_waiting(sections[-1]):
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
    """Return whether the section is a header without statements yet, so that the procedure below is its body."""
    return section.kind == "transaction" and not any(line.strip() for _, line in section.lines)


def _body(section: _Section) -> tuple[str, int]:
    """Return the text of a section and the line it starts at."""
    first = section.lines[0][0] if section.lines else section.line
    return "\n".join(line for _, line in section.lines), first


def _statements(section: _Section) -> list[tuple[str, int]]:
    """Return the statements of a section with their lines, split at semicolons."""
    text, first = _body(section)
    text, _ = with_named_placeholders(text, first, ())
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
    whole = (f"{begin}\n{plain}" if begin.strip() else plain.lstrip("\n ")).strip().rstrip(";").strip()
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
    routine = read_routine(text, first)
    if section.title:
        matched = _SIGNATURE.fullmatch(section.title)
        if matched is None:
            hint = "write -- transaction: name(argument, argument INT, …)"
            raise wrong("cannot read this header", section.line, hint)
        name, listed = matched[1], read_arguments(matched[2] or "", section.line)
    elif routine is not None:
        name, listed = routine.name, routine.params
    else:
        raise wrong("a transaction without a name", section.line, "write -- transaction: name(argument, …)")
    assume = tuple(Condition(condition(text.rstrip("; "), line), text, line) for line, text in section.assume)
    text = routine.body if routine is not None else text
    text, names = with_named_placeholders(text, first, tuple(param.name for param in listed))
    types = {param.name: param for param in listed}
    text, params = without_casts(text, first, [types.get(name, Param(name, "int")) for name in names])
    blocks = BlockReader(text, first, any_query)
    body = remove_ends(blocks.whole())
    colons = frozenset(found.lower() for found in _PLACEHOLDER.findall(text))
    declared = frozenset({*blocks.variables, *(routine.variables if routine is not None else ())})
    return SqlTransaction(name, params, body, assume, section.line, colons, declared)


@dataclass(frozen=True)
class Routine:
    """A procedure or function; ``body`` is its text with blanks in place of what comes before the body."""

    name: str
    params: tuple[Param, ...]
    variables: tuple[str, ...]
    body: str


def read_routine(text: str, first: int) -> Routine | None:
    """Return the procedure or function that this text creates, or None."""
    found = _HEAD.match(text)
    if found is None:
        return None
    line = first + text[: found.start(1)].count("\n")
    end = _closing(text, found.end(), line)
    inside = text[found.end() : end]
    params: list[Param] = []
    variables: list[Param] = []
    for part in _split_at_commas(inside):
        words = part.split()
        way = words.pop(0).upper() if words and words[0].upper() in _WAYS and len(words) > 1 else "IN"
        if way == "VARIADIC":
            raise wrong("a VARIADIC argument is not supported", line, "list the arguments")
        (name,) = read_arguments(re.split(r"\bDEFAULT\b|:?=", " ".join(words), flags=re.IGNORECASE)[0], line) or (None,)
        if name is not None:
            (variables if way == "OUT" else params).append(name)
    begin = _body_begins(text, end + 1, line)
    blank = re.sub(r"[^\n]", " ", text[:begin])
    tail = _TAIL.search(text)
    if tail is None:
        raise wrong(f"the procedure {found[1]} does not end", line, "end it with END; and write what follows before it")
    body = blank + text[begin : tail.start()] + "END;" + "\n" * tail[0].count("\n")
    return Routine(found[1], tuple(params), tuple(param.name for param in variables), body)


def _closing(text: str, at: int, line: int) -> int:
    depth = 1
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise wrong("an open bracket", line)


def _body_begins(text: str, at: int, line: int) -> int:
    """Return the position of DECLARE or BEGIN, or of a label before it."""
    plain = re.sub(r"--[^\n]*", lambda comment: " " * len(comment[0]), text)
    found = re.compile(r"(?:\b[A-Za-z_]\w*\s*:\s*)?\b(?:DECLARE|BEGIN)\b", re.IGNORECASE).search(plain, at)
    if found is None:
        raise wrong("a procedure without BEGIN is not supported", line, "write BEGIN … END around its statements")
    return found.start()


def read_arguments(text: str, line: int) -> tuple[Param, ...]:
    """Return the arguments of a list such as "name, name TYPE"."""
    found = []
    for part in _split_at_commas(text):
        words = part.split()
        name = words[0].strip('`"') if words else ""
        if not name.isidentifier():
            raise wrong(f"{part.strip()!r:.60} is no argument", line, "write name or name TYPE")
        declared = " ".join(words[1:])
        kind = type_of(declared, line) if declared else "int"
        found.append(Param(name.lower(), kind, canonical_type(declared) if declared else ""))
    return tuple(found)


def _split_at_commas(text: str) -> list[str]:
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
