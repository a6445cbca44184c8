"""The only file that calls sqlglot's parser: text in, trees out, errors in one line with their place."""

from typing import Any

from plume_py.base.errors import InputError, IsocheckError

DIALECT = "postgres"
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


def tokens(text: str) -> list[Any]:
    """The tokens of a file; each has its text, line and place."""
    sqlglot = engine()
    try:
        return list(sqlglot.tokenize(text, dialect=DIALECT))
    except sqlglot.errors.TokenError as error:
        raise InputError(f"not SQL: {str(error).splitlines()[0]}", hint="is a quote left open?") from None


def statement(text: str, line: int) -> Any:
    """The tree of a statement."""
    return _parsed(text, line, None)


def condition(text: str, line: int) -> Any:
    """The tree of an expression."""
    sqlglot = engine()
    return _parsed(text, line, sqlglot.exp.Condition)


def _parsed(text: str, line: int, into: Any) -> Any:
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
