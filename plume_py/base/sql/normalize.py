"""Bring SQL text into the one spelling that the parser reads. Lines keep their numbers, so errors point at the input.

``files`` calls the functions of this module before it parses:

- ``without_client_commands`` removes what only psql or mysql read in a dump: commands with a backslash, rows of COPY,
  comments that start with #. It also removes the bodies of triggers, and functions that are not transactions. Comments
  that MySQL executes become SQL if they create something, because a trigger in one writes to tables.
- ``without_delimiters`` replaces the delimiters of mysql's DELIMITER by semicolons.
- ``with_named_placeholders`` writes the placeholders ?, %s, %(name)s and $1 as :name. It also replaces MySQL's
  backquotes around names.
"""

import re
from typing import Any

from plume_py.base.sql.syntax import OTHER_DIALECT, engine, parsing, tokens, wrong

CREATE_ROUTINE = r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?(?:PROCEDURE|FUNCTION)\b"
ROUTINE_START = re.compile(CREATE_ROUTINE, re.IGNORECASE)
_PIECE = re.compile(
    r"""--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|'(?:[^']|'')*+'|"[^"]*+"|`[^`]*+`|(?P<tag>\$(?:[A-Za-z_]\w*+)?\$)|;|\w++|\S""",
    re.DOTALL,
)
_HEADER = re.compile(r"--\s*(transaction|invariant|schema)\s*:", re.IGNORECASE)
_DELIMITER = re.compile(r"DELIMITER[^\S\n]+(\S+)[^\S\n]*", re.IGNORECASE)
_EXECUTED = re.compile(
    r"(/\*M?!\d{0,6})\s*((?:CREATE|DEFINER|TRIGGER|VIEW|SQL\s+SECURITY|PROCEDURE|FUNCTION|EVENT)\b(?:[^*]|\*(?!/))*+)\*/",
    re.IGNORECASE,
)
_COPY = re.compile(r"COPY\s[^;]*?\sFROM\s+stdin\b[^;]*;(?:.*?\n\\\.[^\n]*|.*)", re.IGNORECASE | re.DOTALL)
_TRIGGER = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?(?:CONSTRAINT\s+)?TRIGGER\s[^;]*?\sON\s+[\w.\"`]+",
    re.IGNORECASE,
)
# A rule with several statements, between brackets.
_RULE = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?RULE\s+(?!\"_RETURN\")[^;']*?\sDO\s+(?:ALSO\s+|INSTEAD\s+)?(?=\()", re.I
)
# Statements with names of roles, extensions and so on, which may contain any character.
_OTHER_NAMES = re.compile(
    r"GRANT\b|REVOKE\b|COMMENT\b|SECURITY\s+LABEL\b|(?:CREATE|ALTER|DROP)\s+(?:EXTENSION|SERVER|ROLE|USER|DATABASE|"
    r"PUBLICATION|SUBSCRIPTION|FOREIGN\s+DATA\s+WRAPPER|COLLATION|DEFAULT\s+PRIVILEGES|LANGUAGE|TRUSTED|PROCEDURAL)\b|"
    r"ALTER\s[^;']*\sOWNER\s+TO\b|CREATE\s+(?:POLICY|SCHEMA)\b",
    re.IGNORECASE,
)
_COLLATE = re.compile(r"\bCOLLATE\s+(?:\w+\.)?\Z", re.IGNORECASE)
_ROUTINE_END = re.compile(r"\bBEGIN\s+ATOMIC\b.*?\bEND\s*;", re.IGNORECASE | re.DOTALL)
_OF_TRIGGER = re.compile(r"[^$;']*\bRETURNS\s+(?:EVENT_)?TRIGGER\b", re.IGNORECASE)
_DOLLARS = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_DELIMITER_LINE = re.compile(r"[^\S\n]*DELIMITER[^\S\n]+(\S+)[^\S\n]*", re.IGNORECASE)
# Types of tokens that end a value: a % after a value is the remainder, and a ? an operator.
_VALUE_KINDS = ("VAR", "NUMBER", "STRING", "IDENTIFIER", "R_PAREN", "R_BRACKET", "NULL", "TRUE", "FALSE")


def without_client_commands(text: str, keep_functions: bool = True) -> str:
    """Return the text without commands of clients; with ``keep_functions``, functions remain as transactions."""
    return _DumpReader(_EXECUTED.sub(r" \2 ", text), keep_functions).read()


class _DumpReader:
    def __init__(self, text: str, keep_functions: bool) -> None:
        self.text, self.keep_functions = text, keep_functions
        self.at, self.kept = 0, list[str]()
        self.is_schema, self.is_waiting, self.end = True, False, ";"
        self.has_other_names = False  # of the current statement

    def read(self) -> str:
        """Return the text without the skipped parts."""
        begins = True  # a statement begins here
        while found := _PIECE.search(self.text, self.at):
            self.keep(found.start())
            piece = found[0]
            if header := _HEADER.match(piece):
                self.is_schema = header[1].lower() == "schema"
                self.is_waiting = header[1].lower() == "transaction"
                begins = True
                self.keep(found.end())
            elif piece.startswith(("--", "/*")):
                self.keep(found.end())
            elif begins and self.skipped(found):
                continue
            elif found["tag"] is not None:  # up to the same tag
                end = self.text.find(piece, found.end())
                self.keep(len(self.text) if end < 0 else end + len(piece))
                begins = False
            else:
                self.has_other_names = self.is_schema and (
                    _OTHER_NAMES.match(self.text, found.start()) is not None if begins else self.has_other_names
                )
                if piece[0] == '"' and self.is_schema and (self.has_other_names or self.after_collate(found.start())):
                    self.kept.append('"' + re.sub(r"[^\w\n]", "_", piece[1:-1]) + '"')
                    self.at = found.end()
                else:
                    self.keep(found.end())
                begins = piece == ";"
                self.is_waiting = False
        self.keep(len(self.text))
        return "".join(self.kept)

    def keep(self, end: int) -> None:
        self.kept.append(self.text[self.at : end])
        self.at = end

    def blank(self, end: int) -> None:
        """Skip the text up to here except for its line ends."""
        self.kept.append("\n" * self.text.count("\n", self.at, end))
        self.at = end

    def skipped(self, found: "re.Match[str]") -> bool:
        """Skip the statement or command that starts here if it is not for us; return whether it was handled."""
        at, text = found.start(), self.text
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if found[0] == "#" or (self.is_schema and found[0] == "\\"):
            self.blank(line_end)
            return True
        if command := _DELIMITER.match(text, at):
            self.end = command[1]
            self.keep(command.end())
            return True
        if self.is_schema and (copied := _COPY.match(text, at)):
            self.blank(copied.end())
            return True
        if self.is_schema and (made := _TRIGGER.match(text, at)):
            self.keep(made.end())
            end = text.find(self.end, self.at)
            self.blank(len(text) if end < 0 else end)
            return True
        if self.is_schema and (rule := _RULE.match(text, at)):
            self.keep(rule.end())
            self.blank(self.bracket_end(rule.end()))
            self.kept.append("NOTHING")
            return True
        if ROUTINE_START.match(text, at) and not self.is_waiting:
            if self.keep_functions and _OF_TRIGGER.match(text, at) is None:
                self.is_schema = False
                return False
            self.blank(self.routine_end(at))
            return True
        return False

    def after_collate(self, at: int) -> bool:
        """Return whether the name that starts here is that of a collation."""
        return _COLLATE.search(self.text[max(0, at - 80) : at]) is not None

    def bracket_end(self, at: int) -> int:
        """Return the position after the bracket that closes the one that opens here."""
        depth = 0
        while found := _PIECE.search(self.text, at):
            at = found.end()
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if depth == 0:
                return at
        return len(self.text)

    def routine_end(self, at: int) -> int:
        """Return the position after a function: after the delimiter outside of its body."""
        if self.end != ";":
            end = self.text.find(self.end, at)
            return len(self.text) if end < 0 else end + len(self.end)
        while found := _PIECE.search(self.text, at):
            at = found.end()
            if found["tag"] is not None:
                end = self.text.find(found[0], at)
                at = len(self.text) if end < 0 else end + len(found[0])
            elif found[0].upper() == "BEGIN" and (body := _ROUTINE_END.match(self.text, found.start())):
                return body.end()
            elif found[0] == ";":
                return at
        return len(self.text)


def without_delimiters(text: str) -> str:
    """Return the text without DELIMITER lines and with semicolons instead of other delimiters."""
    lines, end = [], ";"
    for line in text.split("\n"):
        command = _DELIMITER_LINE.fullmatch(line)
        if command is not None:
            end = command[1]
            line = ""
        elif end != ";" and line.rstrip().endswith(end):
            line = line.rstrip()[: -len(end)] + ";"
        lines.append(line)
    return "\n".join(lines)


def with_named_placeholders(text: str, first: int, arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the text with all placeholders as :name, and the arguments: of the header, or p1, p2, … without one."""
    text = _DOLLARS.sub(lambda found: " " * len(found[0]), text)
    text = _requoted(text, first)
    found = _placeholders(text, first)
    given = sum(kind == "next" for *_, kind in found)
    numbers = [int(kind) for *_, kind in found if kind.isdigit()]
    if given and numbers:
        raise wrong("placeholders with and without numbers", first, "write :name for each")
    needed = given or max(numbers, default=0)
    if needed > 1000:
        raise wrong(f"{needed} placeholders", first, "write :name for each")
    names = arguments or tuple(f"p{i}" for i in range(1, needed + 1))
    if (given and given != len(names)) or needed > len(names):
        hint = "list an argument for each in the header, a name twice where the same value is passed twice"
        raise wrong(f"{needed} placeholders for {len(names)} arguments", first, hint)
    if not given and len({*names}) < len(names):
        raise wrong("an argument is listed twice", first, "only where the values are written ? or %s")
    parts, at, taken = [], 0, iter(names)
    for begin, end, kind in found:
        name = next(taken) if kind == "next" else names[int(kind) - 1] if kind.isdigit() else kind
        parts += [text[at:begin], f":{name}"]
        at = end
    return "".join([*parts, text[at:]]), tuple(dict.fromkeys(names))


def _requoted(text: str, first: int) -> str:
    if "`" not in text:
        return text
    found = list(text)
    with parsing(first):
        listed = engine().tokenize(text, dialect=OTHER_DIALECT)
    for token in listed:
        if token.token_type == engine().TokenType.IDENTIFIER and found[token.start] == "`":
            found[token.start] = found[token.end] = '"'
    return "".join(found)


def _placeholders(text: str, first: int) -> list[tuple[int, int, str]]:
    """Return the begin and end of each placeholder, and "next", its number or its name."""
    found: list[tuple[int, int, str]] = []
    listed = tokens(text, first)
    for i, token in enumerate(listed):
        ahead = [str(t.text) for t in listed[i + 1 : i + 5]]
        after_value = i > 0 and listed[i - 1].token_type.name in _VALUE_KINDS and not _is_keyword(listed[i - 1])
        if token.text == "?" and not after_value:
            found.append((token.start, token.end + 1, "next"))
        elif token.text == "$" and ahead[:1] and ahead[0].isdigit() and int(ahead[0][:6]) > 0:
            found.append((token.start, listed[i + 1].end + 1, str(int(ahead[0][:6]))))
        elif token.text == "%" and not after_value and ahead[:1] == ["s"]:
            found.append((token.start, listed[i + 1].end + 1, "next"))
        elif token.text == "%" and not after_value and ahead[:1] == ["("] and ahead[2:] == [")", "s"]:
            found.append((token.start, listed[i + 4].end + 1, ahead[1].lower()))
    return found


def _is_keyword(token: Any) -> bool:
    return str(token.text).upper() in ("SELECT", "WHERE", "AND", "OR", "THEN", "LIMIT", "VALUES", "SET", "BY", "RETURN")
