"""Dumps of pg_dump and mysqldump as plain SQL: what only their own clients read is blanked, lines stay what they are.

``files`` calls this before it looks for sections. These go: lines of psql that begin with a backslash, rows of COPY,
comment lines that begin with #, the bodies of triggers, and functions that are no transactions. Comments that MySQL
executes are opened where they create something, because a trigger in one writes unseen.
"""

import re

from plume_py.base.sql import procedures

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
# A rule may do several statements, between brackets.
_RULE = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?RULE\s+(?!\"_RETURN\")[^;']*?\sDO\s+(?:ALSO\s+|INSTEAD\s+)?(?=\()", re.I
)
# Statements with names of roles, extensions and the like, which need not be words.
_OTHER_NAMES = re.compile(
    r"GRANT\b|REVOKE\b|COMMENT\b|SECURITY\s+LABEL\b|(?:CREATE|ALTER|DROP)\s+(?:EXTENSION|SERVER|ROLE|USER|DATABASE|"
    r"PUBLICATION|SUBSCRIPTION|FOREIGN\s+DATA\s+WRAPPER|COLLATION|DEFAULT\s+PRIVILEGES|LANGUAGE|TRUSTED|PROCEDURAL)\b|"
    r"ALTER\s[^;']*\sOWNER\s+TO\b|CREATE\s+(?:POLICY|SCHEMA)\b",
    re.IGNORECASE,
)
_COLLATE = re.compile(r"\bCOLLATE\s+(?:\w+\.)?\Z", re.IGNORECASE)
_ROUTINE_END = re.compile(r"\bBEGIN\s+ATOMIC\b.*?\bEND\s*;", re.IGNORECASE | re.DOTALL)
_OF_TRIGGER = re.compile(r"[^$;']*\bRETURNS\s+(?:EVENT_)?TRIGGER\b", re.IGNORECASE)


def undumped(text: str, keep_functions: bool = True) -> str:
    """Return the text without what only a client reads. ``keep_functions``: functions of the file are transactions."""
    return _Reader(_EXECUTED.sub(r" \2 ", text), keep_functions).read()


class _Reader:
    def __init__(self, text: str, keep_functions: bool) -> None:
        self.text, self.keep_functions = text, keep_functions
        self.at, self.kept = 0, list[str]()
        self.is_schema, self.is_waiting, self.end = True, False, ";"
        self.has_other_names = False  # the statement at hand

    def read(self) -> str:
        """Go through the text, a token after the other."""
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
        """Leave out the text up to here, but for its line ends."""
        self.kept.append("\n" * self.text.count("\n", self.at, end))
        self.at = end

    def skipped(self, found: "re.Match[str]") -> bool:
        """Leave out what begins here, if it is none of our statements."""
        at, text = found.start(), self.text
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if found[0] == "#" or (self.is_schema and found[0] == "\\"):
            self.blank(line_end)
            return True
        if told := _DELIMITER.match(text, at):
            self.end = told[1]
            self.keep(told.end())
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
        if procedures.BEGINS.match(text, at) and not self.is_waiting:
            if self.keep_functions and _OF_TRIGGER.match(text, at) is None:
                self.is_schema = False
                return False
            self.blank(self.routine_end(at))
            return True
        return False

    def after_collate(self, at: int) -> bool:
        """Is the name that begins here one of a collation?"""
        return _COLLATE.search(self.text[max(0, at - 80) : at]) is not None

    def bracket_end(self, at: int) -> int:
        """Where the bracket that begins here is closed."""
        depth = 0
        while found := _PIECE.search(self.text, at):
            at = found.end()
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if depth == 0:
                return at
        return len(self.text)

    def routine_end(self, at: int) -> int:
        """Where a function ends: at the delimiter outside of its body."""
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
