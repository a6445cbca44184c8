"""Text from a history is hostile: it is shown so that it cannot move the cursor, hide or pretend to be more lines.

Nor may it command the CI system that reads our output: GitHub obeys lines that begin with ``::`` after any space, and,
as Azure does, ``##[`` and ``##vso[`` anywhere.
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
    """``text`` with everything that does not print (controls, escapes, direction marks) or commands as an escape."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return defused(text)


def defused(line: str) -> str:
    """``line``, which no CI system takes for a command."""
    return _ANYWHERE.sub(r"#\\x23", _AT_START.sub(r"\1\\x3a", line)) if ":" in line or "#" in line else line


def escape_ci_commands_json(text: str) -> str:
    """The same for JSON and EDN, in which it is still the same text: only a string can hold this."""
    return _ANYWHERE.sub(r"#\\u0023", text)


def counted(number: int, what: str) -> str:
    """Return a number of things: 1 session, 2 sessions, 2 histories."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {f'{what[:-1]}ie' if what.endswith('ry') else what}s"


def shorten(text: str, limit: int = 60) -> str:
    """At most ``limit`` characters, the cut marked."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def display(atom: object, limit: int = 60) -> str:
    """A key, value or id for people: harmless and short."""
    return shorten(visible("null" if atom is None else str(atom)[: 10 * limit]), limit)


def txn_text(name: object, limit: int = 60) -> str:
    """A transaction's id for people."""
    return display(with_letter(name), limit)


def with_letter(name: object) -> str:
    """A transaction's id; one that is a number alone is not to be taken for a key or a value."""
    return f"T{name}" if _NUMBER.fullmatch(str(name)) else str(name)


def key_text(key: object, limit: int = 60) -> str:
    """A key within a sentence, which is not to be taken for a transaction or a value either."""
    return ("key " if _NUMBER.fullmatch(str(key)) else "") + display(key, limit)


def one_line(text: str) -> str:
    """A message that stays on one line whatever it quotes, surrogates of odd file names included, without passwords."""
    return visible(encodable(redacted(text)))


def encodable(text: str) -> str:
    """``text`` with the surrogates of odd file names spelled out, as JSON cannot hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def wrapped(lead: str, text: str, indent: str, width: int = 80) -> list[str]:
    """``lead``, which stays as it is, and the words of ``text``, in lines of at most ``width`` columns."""
    from click import unstyle  # colours do not count

    lines, line = [], lead
    for word in text.split():
        if len(unstyle(line)) + 1 + len(unstyle(word)) > width and line.strip() and line != lead:
            lines.append(line)
            line = indent + word
        else:
            line += word if not line.strip() or line.endswith(" ") else f" {word}"
    return [defused(line) for line in (*lines, line)]


def similar(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name of ``known`` that resembles ``name`` most, in any case; None if none does."""
    folded = {word.lower(): word for word in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name[:100].lower(), folded, 1, cutoff)
    return folded[near[0]] if near else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the known name that resembles it most, or all of them."""
    names = sorted(known)
    near = similar(name, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"there is {shorten(', '.join(names), 200)}" if names else "there is none"
