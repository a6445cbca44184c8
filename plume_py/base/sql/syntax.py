"""The only file that calls sqlglot's parser: text in, trees out, errors in one line with their place."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.sql.functions import only_computing

DIALECT = "postgres"
OTHER_DIALECT = "mysql"
# Levels of a tree: it is walked by recursion, here and by sqlglot itself.
DEPTH = 100
_WORD = re.compile(r"[^\W\d]\w*")
MISSING = "reading SQL needs sqlglot; install it with `pip install sqlglot`"


def engine() -> Any:
    """The module sqlglot."""
    try:
        import sqlglot
        import sqlglot.errors
    except ImportError:
        raise IsocheckError(MISSING) from None
    logger = logging.getLogger("sqlglot")
    if not logger.handlers:  # left alone, it prints what it reads, as it is
        logger.addHandler(logging.NullHandler())
    return sqlglot


def wrong(problem: str, line: int, hint: str = "") -> InputError:
    """An error at a line."""
    return InputError(problem, where=f"line {line}", hint=hint)


@contextmanager
def parsing(line: int | None = None) -> Iterator[None]:
    """Inside, sqlglot is called: what it cannot read is told in one line, never by a traceback."""
    sqlglot = engine()
    place = "" if line is None else f"line {line}"
    try:
        yield
    except sqlglot.errors.TokenError as error:
        raise InputError(f"not SQL: {_first_line(error)}", where=place, hint="is a quote left open?") from None
    except sqlglot.errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = place if line is None else f"line {line + int(first.get('line') or 1) - 1}"
        said = str(first.get("description") or _first_line(error) or "syntax error").rstrip(".")
        near = str(first.get("highlight") or "").strip()
        problem = f"cannot read this SQL: {said:.200}" + (f", near {near!r:.200}" if near else "")
        raise InputError(problem, where=where) from None
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise InputError(f"cannot read this SQL: {_first_line(error):.200}", where=place) from None
    except RecursionError:
        raise InputError("an expression is nested too deeply", where=place, hint="split it") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class Token(NamedTuple):
    """A word or sign: its text, where it stands, and what sqlglot takes it for."""

    text: str
    start: int
    end: int
    line: int
    token_type: Any


def tokens(text: str, first: int) -> list[Token]:
    """The tokens of a text that begins at the line ``first``."""
    with parsing():
        found = _tokens(text, 0, 1)
    for token in found:
        if token.token_type == engine().TokenType.IDENTIFIER:
            _require_word(token.text, first + token.line - 1)
    return found


def _tokens(text: str, start: int, line: int) -> list[Token]:
    """What follows DECLARE is one string to sqlglot; here it is not."""
    found: list[Token] = []
    for token in engine().tokenize(text, dialect=DIALECT):
        if found and found[-1].text.upper() == "DECLARE" and token.token_type == engine().TokenType.STRING:
            begin = found[-1].end + 1 - start
            found += _tokens(text[begin : token.end + 1], begin + start, line + text.count("\n", 0, begin))
        else:
            at = line + token.line - 1
            found.append(Token(token.text, token.start + start, token.end + start, at, token.token_type))
    return found


def _require_word(name: str, line: int) -> None:
    """Names become part of statements that are sent to servers; in quotes, they could be anything."""
    if not _WORD.fullmatch(name):
        raise wrong(f"{name!r:.60} is no name", line, "use letters, digits and underscores")


def statement(text: str, line: int, mysql_first: bool = False, any_function: bool = False) -> Any:
    """The tree of a statement, of PostgreSQL's SQL or of MySQL's; ``mysql_first`` where both read it, differently.

    ``any_function`` lets through functions that may do more than compute.
    """
    texts = [(DIALECT, text), (OTHER_DIALECT, _backquoted(text))]
    error: InputError | None = None
    for dialect, written in reversed(texts) if mysql_first else texts:
        try:
            with parsing(line):
                tree = _one(engine().parse(written, dialect=dialect), line)
        except InputError as problem:
            error = error or problem
            continue
        if not isinstance(tree, engine().exp.Command):
            return _checked(tree, line, any_function)
    raise error or wrong(f"cannot read this SQL: {' '.join(text.split()):.80}", line)


def _one(trees: list[Any], line: int) -> Any:
    """The only one; of several all but the first would be lost."""
    trees = [tree for tree in trees if tree is not None]  # of a comment
    if not trees:
        raise wrong("a statement is missing here", line, "write one, or leave out the comment")
    if len(trees) != 1 or getattr(trees[0], "text", None) == ";":
        raise wrong("several statements where one should be", line, "is a bracket, or a CASE, left open?")
    return trees[0]


def _backquoted(text: str) -> str:
    """The text with names in the quotes of MySQL."""
    found = list(text)
    with parsing():
        for token in engine().tokenize(text, dialect=DIALECT):
            if token.token_type == engine().TokenType.IDENTIFIER:
                found[token.start] = found[token.end] = "`"
    return "".join(found)


def condition(text: str, line: int) -> Any:
    """The tree of an expression."""
    with parsing(line):
        if any(token.text == ";" for token in engine().tokenize(text, dialect=DIALECT)):
            raise wrong("several statements where one should be", line, "is a bracket, or a CASE, left open?")
        return _checked(engine().parse_one(text, dialect=DIALECT, into=engine().exp.Condition), line)


def data_type(name: str, line: int) -> str:
    """What sqlglot calls a type."""
    with parsing(line):
        return str(engine().exp.DataType.build(name, dialect=DIALECT).this.name)


def canonical_type(name: str) -> str:
    """Return a type in one spelling, as INT for integer; as it is written if it is not known."""
    try:
        with parsing():
            return str(engine().exp.DataType.build(name, dialect=DIALECT, udt=True).sql(dialect="").upper())
    except InputError:
        return " ".join(name.upper().split())


def _checked(tree: Any, line: int, any_function: bool = False) -> Any:
    """The tree, unless something in it is nested too deeply, as in 1 + 1 + 1 + … (looked at without recursion)."""
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in node.iter_expressions()], depth + 1
        if depth > DEPTH:
            raise wrong("an expression is nested too deeply", line, f"split it: at most {DEPTH} levels are read")
    for identifier in tree.find_all(engine().exp.Identifier):
        _require_word(identifier.name, line)
    if not any_function:
        only_computing(tree, engine().exp, line)
    return tree
