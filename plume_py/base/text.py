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
    return visible(encodable(text))


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
    return [*lines, line]
