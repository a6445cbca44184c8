"""Show untrusted text safely, and word names, counts and hints in messages.

Text of a history could contain control characters that move the cursor, hide text or fake lines. It could also contain
commands of CI systems: GitHub obeys lines that begin with ``::`` after any space, GitHub and Azure obey ``##[`` and
``##vso[`` anywhere in a line.
"""

import difflib
import re
from collections.abc import Iterable

from plume_py.base.passwords import redacted

ELLIPSIS = "…"

_AT_START = re.compile(r"^(\s*):(?=:)")
_NUMBER = re.compile(r"-?[0-9]+")
_ANYWHERE = re.compile(r"##(?=\[|vso\[)")


def visible(text: str) -> str:
    """Return ``text`` with unprintable characters (controls, direction marks) and CI commands as escapes."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return defused(text)


def defused(line: str) -> str:
    """Return ``line`` with CI commands as escapes."""
    return _ANYWHERE.sub(r"#\\x23", _AT_START.sub(r"\1\\x3a", line)) if ":" in line or "#" in line else line


def escape_ci_commands_json(text: str) -> str:
    """Return JSON or EDN text with ``##[`` and ``##vso[`` as ``#\\u0023…``, which decodes to the same text.

    Such a command can occur only inside a string.
    """
    return _ANYWHERE.sub(r"#\\u0023", text)


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 session, 2 sessions, 2 histories."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {f'{what[:-1]}ie' if what.endswith('ry') else what}s"


def shorten(text: str, limit: int = 60) -> str:
    """Return at most ``limit`` characters of ``text``, with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def display(atom: object, limit: int = 60) -> str:
    """Return a key, value or id as safe and short text."""
    return shorten(visible("null" if atom is None else str(atom)[: 10 * limit]), limit)


def txn_text(name: object, limit: int = 60) -> str:
    """Return the id of a transaction as safe and short text."""
    return display(with_letter(name), limit)


def with_letter(name: object) -> str:
    """Return the id of a transaction; a number gets a T, to distinguish it from keys and values."""
    return f"T{name}" if _NUMBER.fullmatch(str(name)) else str(name)


def key_text(key: object, limit: int = 60) -> str:
    """Return a key for a sentence; a number gets the word key, to distinguish it from values."""
    return ("key " if _NUMBER.fullmatch(str(key)) else "") + display(key, limit)


def one_line(text: str) -> str:
    """Return a message as one safe line without passwords, also if it quotes odd file names."""
    return visible(encodable(redacted(text)))


def encodable(text: str) -> str:
    """Return ``text`` with surrogates, as in odd file names, as escapes; UTF-8 cannot encode them."""
    return text.encode("utf-8", "backslashreplace").decode()


def wrapped(lead: str, text: str, indent: str, width: int = 80) -> list[str]:
    """Return lines of at most ``width`` columns: ``lead``, unchanged, and the words of ``text``."""
    from click import unstyle  # escape sequences have no width

    lines, line = [], lead
    for word in text.split():
        if len(unstyle(line)) + 1 + len(unstyle(word)) > width and line.strip() and line != lead:
            lines.append(line)
            line = indent + word
        else:
            line += word if not line.strip() or line.endswith(" ") else f" {word}"
    return [defused(line) for line in (*lines, line)]


def similar(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name in ``known`` that is most similar to ``name``, ignoring case; None if none is."""
    folded = {word.lower(): word for word in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name[:100].lower(), folded, 1, cutoff)
    return folded[near[0]] if near else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the most similar known name, or all of them."""
    names = sorted(known)
    near = similar(name, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"there is {shorten(', '.join(names), 200)}" if names else "there is none"
