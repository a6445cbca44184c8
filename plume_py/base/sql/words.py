"""The tokens of a text, one after the other: what comes next, and what comes up to some word."""

from typing import Any

from plume_py.base.sql.syntax import tokens, wrong


class Words:
    """Tokens, and how far they have been read."""

    def __init__(self, text: str, first: int) -> None:
        self.text, self.first = text, first
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

    def until(self, *ends: str) -> tuple[list[Any], str]:
        """The tokens up to one of these words outside brackets, and their text."""
        begin, depth, inner = self.at, 0, 0
        while self.at < len(self.tokens) and (depth or inner or self.word() not in ends):
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            inner += {"CASE": 1, "END": -1}.get(self.word(), 0) if inner or self.word() == "CASE" else 0
            self.at += 1
        taken = self.tokens[begin : self.at]
        if not taken:
            raise wrong(f"something is missing before {self.word() or 'the end'}", self.line())
        return taken, self.text[taken[0].start : taken[-1].end + 1]

    def rest(self) -> str:
        """What is left of this statement, in one line; may be nothing."""
        return "" if self.word() in ("", ";") else " ".join(self.until(";")[1].split())

    def expect(self, *words: str) -> None:
        """These words, in this order."""
        for word in words:
            if self.word() != word:
                raise wrong(f"{word} expected, not {self.word() or 'the end'}", self.line())
            self.at += 1

    def plain(self, taken: list[Any], line: int) -> None:
        """An error if these tokens may read something: brackets hold a subquery, or a function's arguments."""
        if any(token.text == "(" for token in taken):
            raise wrong("brackets are not supported here", line, "compute the value before, with SET or SELECT … INTO")
