"""The only file that calls sqlglot's parser: text in, trees out, errors in one line with their place."""

import re
from typing import Any

from plume_py.base.errors import InputError, IsocheckError

DIALECT = "postgres"
_WORD = re.compile(r"[^\W\d]\w*")
MISSING = "reading SQL needs sqlglot; install it with `pip install 'plume-py[sql]'`"


def engine() -> Any:
    """The module sqlglot."""
    try:
        import sqlglot
        import sqlglot.errors
    except ImportError:
        raise IsocheckError(MISSING) from None
    return sqlglot


def wrong(problem: str, line: int, hint: str = "") -> InputError:
    """An error at a line."""
    return InputError(problem, where=f"line {line}", hint=hint)


def tokens(text: str, first: int) -> list[Any]:
    """The tokens of a text that begins at the line ``first``; each has its text, line and place."""
    sqlglot = engine()
    try:
        found = list(sqlglot.tokenize(text, dialect=DIALECT))
    except sqlglot.errors.TokenError as error:
        raise InputError(f"not SQL: {str(error).splitlines()[0]}", hint="is a quote left open?") from None
    for token in found:
        if token.token_type == sqlglot.TokenType.IDENTIFIER:
            _require_word(token.text, first + token.line - 1)
    return found


def _require_word(name: str, line: int) -> None:
    """Names become part of statements that are sent to servers; in quotes, they could be anything."""
    if not _WORD.fullmatch(name):
        raise wrong(f"{name!r:.60} is no name", line, "use letters, digits and underscores")


def statement(text: str, line: int) -> Any:
    """The tree of a statement."""
    return _parsed(text, line, None)


def condition(text: str, line: int) -> Any:
    """The tree of an expression."""
    sqlglot = engine()
    return _parsed(text, line, sqlglot.exp.Condition)


def _parsed(text: str, line: int, into: Any) -> Any:
    tree = _tree(text, line, into)
    for identifier in tree.find_all(engine().exp.Identifier):
        _require_word(identifier.name, line)
    return tree


def _tree(text: str, line: int, into: Any) -> Any:
    sqlglot = engine()
    try:
        return sqlglot.parse_one(text, dialect=DIALECT, into=into) if into else sqlglot.parse_one(text, dialect=DIALECT)
    except sqlglot.errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = line + int(first.get("line") or 1) - 1
        said = str(first.get("description") or "syntax error").rstrip(".")
        near = str(first.get("highlight") or "").strip()
        raise wrong(f"cannot read this SQL: {said}" + (f", near {near!r}" if near else ""), where) from None
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise wrong(f"cannot read this SQL: {str(error).splitlines()[0]:.200}", line) from None
