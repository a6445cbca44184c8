"""Parse SQL text into sqlglot trees, and report errors in one line with their position.

This is the only module that calls sqlglot's tokenizer and parser. Trees with functions that may do more than compute
are rejected, because such a function could read and write tables unseen.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from plume_py.base.errors import InputError, IsocheckError

DIALECT = "postgres"
OTHER_DIALECT = "mysql"
# Depth of a tree: sqlglot and this package walk it recursively.
DEPTH = 100
_WORD = re.compile(r"[^\W\d]\w*")
MISSING = "reading SQL needs sqlglot; install it with `pip install sqlglot`"


def engine() -> Any:
    """Import and return the module sqlglot."""
    try:
        import sqlglot
        import sqlglot.errors
    except ImportError:
        raise IsocheckError(MISSING) from None
    logger = logging.getLogger("sqlglot")
    if not logger.handlers:  # without a handler, it prints the input unescaped
        logger.addHandler(logging.NullHandler())
    return sqlglot


def origin_of(tree: Any) -> Any:
    """Return the FROM of a statement, or None."""
    return tree.args.get("from_") or tree.args.get("from")


def wrong(problem: str, line: int, hint: str = "") -> InputError:
    """Return an error at a line."""
    return InputError(problem, where=f"line {line}", hint=hint)


@contextmanager
def parsing(line: int | None = None) -> Iterator[None]:
    """Turn errors of sqlglot inside the block into errors of one line."""
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
    """A token: its text, the positions of its first and last character, its line, and sqlglot's type."""

    text: str
    start: int
    end: int
    line: int
    token_type: Any


def tokens(text: str, first: int) -> list[Token]:
    """Return the tokens of a text that starts at the line ``first``; their lines count from 1."""
    with parsing():
        found = _tokens(text, 0, 1)
    for token in found:
        if token.token_type == engine().TokenType.IDENTIFIER:
            _require_word(token.text, first + token.line - 1)
    return found


def _tokens(text: str, start: int, line: int) -> list[Token]:
    """Return the tokens; sqlglot reads all after DECLARE as one string, so that part is tokenized again."""
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
    """Raise an error unless a name is a word: quoted names could be any text, and names are sent to servers."""
    if not _WORD.fullmatch(name):
        raise wrong(f"{name!r:.60} is no name", line, "use letters, digits and underscores")


def statement(text: str, line: int, mysql_first: bool = False, any_function: bool = False) -> Any:
    """Return the tree of a statement in PostgreSQL's or MySQL's SQL.

    ``mysql_first``: try MySQL's SQL first, for text that both dialects read, but differently. ``any_function``: allow
    functions that may do more than compute.
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
    """Return the only tree, and raise an error if there are several or none."""
    trees = [tree for tree in trees if tree is not None]  # a comment
    if not trees:
        raise wrong("a statement is missing here", line, "write one, or leave out the comment")
    if len(trees) != 1 or getattr(trees[0], "text", None) == ";":
        raise wrong("several statements where one should be", line, "is a bracket, or a CASE, left open?")
    return trees[0]


def _backquoted(text: str) -> str:
    """Return the text with quoted names in backquotes."""
    found = list(text)
    with parsing():
        for token in engine().tokenize(text, dialect=DIALECT):
            if token.token_type == engine().TokenType.IDENTIFIER:
                found[token.start] = found[token.end] = "`"
    return "".join(found)


def condition(text: str, line: int) -> Any:
    """Return the tree of an expression."""
    with parsing(line):
        if any(token.text == ";" for token in engine().tokenize(text, dialect=DIALECT)):
            raise wrong("several statements where one should be", line, "is a bracket, or a CASE, left open?")
        return _checked(engine().parse_one(text, dialect=DIALECT, into=engine().exp.Condition), line)


def data_type(name: str, line: int) -> str:
    """Return sqlglot's name of a type."""
    with parsing(line):
        return str(engine().exp.DataType.build(name, dialect=DIALECT).this.name)


def canonical_type(name: str) -> str:
    """Return a type in one spelling, as INT for integer; an unknown type in capitals."""
    try:
        with parsing():
            return str(engine().exp.DataType.build(name, dialect=DIALECT, udt=True).sql(dialect="").upper())
    except InputError:
        return " ".join(name.upper().split())


def _checked(tree: Any, line: int, any_function: bool = False) -> Any:
    """Return the tree; raise an error if it is too deep, as 1 + 1 + 1 + … can be (measured without recursion)."""
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


# Functions that only compute, from their arguments, the clock or random numbers: by sqlglot's names, or by their own
# names if sqlglot does not know them. Any other function may read and write tables.
_NAMES = """
    AND OR XOR CASE CAST TRY_CAST EXISTS IF COALESCE NULLIF GREATEST LEAST ANY_VALUE COUNT COUNT_IF SUM MIN MAX AVG
    STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VARIANCE_POP LOGICAL_AND LOGICAL_OR ARRAY_AGG GROUP_CONCAT STRING_AGG
    ARRAY_UNIQUE_AGG BOOL_AND BOOL_OR PERCENTILE_CONT PERCENTILE_DISC ROW_NUMBER RANK DENSE_RANK PERCENT_RANK
    CUME_DIST NTILE LAG LEAD FIRST_VALUE LAST_VALUE NTH_VALUE ABS SIGN ROUND FLOOR CEIL TRUNC MOD DIV INT_DIV POWER
    POW SQRT CBRT EXP LN LOG LOG2 LOG10 SIN COS TAN PI DEGREES RADIANS UPPER LOWER INITCAP LENGTH CHAR_LENGTH
    CHARACTER_LENGTH SUBSTRING LEFT RIGHT TRIM LTRIM RTRIM LPAD RPAD PAD REPLACE REVERSE REPEAT CONCAT CONCAT_WS
    SPLIT SPLIT_PART STR_POSITION POSITION FORMAT CHR ASCII UNICODE TRANSLATE STARTS_WITH REGEXP_LIKE REGEXP_REPLACE
    REGEXP_I_LIKE REGEXP_EXTRACT MD5 SHA SHA1 SHA2 HEX UNHEX TO_HEX CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
    LOCALTIME LOCALTIMESTAMP CLOCK_TIMESTAMP STATEMENT_TIMESTAMP TRANSACTION_TIMESTAMP UTC_TIMESTAMP UTC_DATE
    SYSDATE NOW CURDATE CURTIME UNIX_TIMESTAMP FROM_UNIXTIME UNIX_TO_TIME TIME_TO_UNIX EXTRACT DATE_PART YEAR MONTH
    DAY DAYOFWEEK DAY_OF_WEEK DAYOFMONTH DAY_OF_MONTH HOUR MINUTE SECOND WEEK QUARTER DATE DATE_ADD DATE_SUB
    DATE_DIFF DATEDIFF TIMESTAMP_DIFF TIMESTAMP_ADD TIMESTAMP_SUB TS_OR_DS_ADD TS_OR_DS_TO_DATE TIMESTAMP_TRUNC
    DATE_TRUNC DATE_TRUNCATE TIME_TO_STR STR_TO_TIME STR_TO_DATE TO_CHAR TO_DATE TO_TIMESTAMP TO_NUMBER AGE
    TIMESTAMP LAST_DAY MAKE_DATE MAKE_INTERVAL JUSTIFY_DAYS RAND RANDOM UUID GEN_RANDOM_UUID UUID_GENERATE_V4
    UUID_GENERATE_V1 UUID_SHORT ARRAY ARRAY_LENGTH ARRAY_SIZE CARDINALITY ARRAY_APPEND ARRAY_CAT ARRAY_CONTAINS
    ARRAY_OVERLAPS ARRAY_TO_STRING UNNEST EXPLODE EXPLODING_GENERATE_SERIES GENERATE_SERIES J_S_O_N_OBJECT
    J_S_O_N_ARRAY J_S_O_N_EXTRACT J_S_O_N_EXTRACT_SCALAR JSON_EXTRACT JSON_EXTRACT_SCALAR J_S_O_N_B_EXTRACT
    J_S_O_N_B_EXTRACT_SCALAR JSONB_EXTRACT JSONB_EXTRACT_SCALAR J_S_O_N_B_CONTAINS JSON_BUILD_OBJECT
    JSONB_BUILD_OBJECT JSONB_SET TO_JSON TO_JSONB PARSE_JSON ROW_TO_JSON JSON_AGG JSONB_AGG NEXTVAL CURRVAL LASTVAL
    LAST_INSERT_ID ROW_COUNT FOUND_ROWS NEXT_VALUE_FOR CURRENT_USER SESSION_USER USER CONNECTION_ID PG_BACKEND_PID
    NUM_NULLS NUM_NONNULLS BTRIM OCTET_LENGTH BIT_LENGTH BYTE_LENGTH ENCODE DECODE TIMEZONE ISFINITE DATE_BIN
    TO_TSVECTOR SETWEIGHT JSON_TYPEOF JSONB_TYPEOF J_S_O_N_TYPE JSON_VALID JSON_LENGTH JSON_ARRAY_LENGTH
    JSONB_ARRAY_LENGTH JSONB_EXISTS J_S_O_N_B_EXISTS INT4RANGE INT8RANGE NUMRANGE DATERANGE TSRANGE TSTZRANGE ISEMPTY
    LOWER_INC UPPER_INC UUID_GENERATE_V1MC GEN_RANDOM_BYTES AT_TIME_ZONE CONVERT_TIMEZONE ARRAY_POSITION
    TXID_CURRENT VALUES BIT_COUNT IS_NULL ISNULL CONVERT BIN INET_ATON INET_NTOA COLLATE
"""
_COMPUTE = frozenset(_NAMES.split())
HINT = "write the statements of the function here: it may read and write anything"


def only_computing(tree: Any, exp: Any, line: int) -> None:
    """Raise an error if the tree calls a function that may do more than compute."""
    for shown in unknown_functions(tree, exp):
        raise InputError(f"the function {shown:.60} is not known", where=f"line {line}", hint=HINT)


def unknown_functions(tree: Any, exp: Any) -> list[str]:
    """Return the called functions that may do more than compute; in computed columns and indexes they cannot."""
    found = []
    for node in tree.find_all(exp.Func):
        name = str(node.name if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else node.sql_name()).upper()
        if name not in _COMPUTE and node.find_ancestor(exp.ComputedColumnConstraint, exp.IndexParameters) is None:
            found.append(str(node.name) if isinstance(node, exp.Anonymous) else name)
    return found
