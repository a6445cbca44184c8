"""Text from a history is hostile: it is shown so that it cannot move the cursor, hide or pretend to be more lines."""

ELLIPSIS = "…"


def visible(text: str) -> str:
    """``text`` with everything that does not print (controls, escapes, direction marks) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, limit: int = 60) -> str:
    """At most ``limit`` characters, the cut marked."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def shown(atom: object, limit: int = 60) -> str:
    """A key, value or id for people: harmless and short."""
    return shorten(visible("null" if atom is None else str(atom)[: 10 * limit]), limit)


def one_line(text: str) -> str:
    """A message that stays on one line whatever it quotes; surrogates of odd file names included."""
    return visible(text.encode("utf-8", "backslashreplace").decode())
