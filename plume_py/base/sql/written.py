"""What is written in several ways, in one: quotes of MySQL, bodies between $$, placeholders ?, %s, %(name)s and $1.

Lines stay what they are, so that errors still point at them.
"""

import re
from typing import Any

from plume_py.base.sql.syntax import OTHER_DIALECT, engine, parsing, tokens, wrong

_DOLLARS = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_DELIMITER = re.compile(r"[^\S\n]*DELIMITER[^\S\n]+(\S+)[^\S\n]*", re.IGNORECASE)
# Before a placeholder stands no value, or else % is the remainder and ? an operator.
_VALUE_KINDS = ("VAR", "NUMBER", "STRING", "IDENTIFIER", "R_PAREN", "R_BRACKET", "NULL", "TRUE", "FALSE")


def own_delimiters(text: str) -> str:
    """Without DELIMITER lines: whatever they make the end of a statement is a semicolon again."""
    lines, end = [], ";"
    for line in text.split("\n"):
        told = _DELIMITER.fullmatch(line)
        if told is not None:
            end = told[1]
            line = ""
        elif end != ";" and line.rstrip().endswith(end):
            line = line.rstrip()[: -len(end)] + ";"
        lines.append(line)
    return "\n".join(lines)


def one_spelling(text: str, first: int, arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The text with all placeholders as :name, and the arguments: those of the header, or p1, p2, … if it has none."""
    text = _DOLLARS.sub(lambda found: " " * len(found[0]), text)
    text = _requoted(text, first)
    found = list(_places(text, first))
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


def _places(text: str, first: int) -> list[tuple[int, int, str]]:
    """Where placeholders are, and which: "next", the number, or the name."""
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
