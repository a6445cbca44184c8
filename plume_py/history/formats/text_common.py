"""What the readers of line-based formats share: numbered lines, bounded numbers, and one-line errors."""

from collections.abc import Iterator

from plume_py.base.errors import InputError
from plume_py.history.source import Source

# Every number of these formats is an unsigned 64-bit one; longer digit strings would only cost time.
MAX_NATURAL = 2**64 - 1
MAX_NATURAL_DIGITS = 20


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a text, from 1 on, without their ends (LF or CRLF) and without a byte order mark."""
    number = 1
    for chunk in source.lines():
        body = chunk[:-1] if chunk.endswith(b"\n") else chunk
        if number == 1:
            body = body.removeprefix(b"\xef\xbb\xbf")
        for line in _decode(body, number).split("\n"):
            yield number, line.removesuffix("\r")
            number += 1


def natural(digits: str, line: int) -> int:
    """The number written as ``digits`` (ASCII digits only, as the caller's pattern made sure)."""
    if len(digits) <= MAX_NATURAL_DIGITS:
        number = int(digits)
        if number <= MAX_NATURAL:
            return number
    raise InputError(
        f"a number does not fit in 64 bits: {digits:.30}", where=f"line {line}", hint="use smaller numbers"
    )


def excerpt(text: str) -> str:
    """The beginning of a text, quoted for a one-line message."""
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _decode(body: bytes, first_line: int) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = first_line + body.count(b"\n", 0, error.start)
        raise InputError("not valid UTF-8", where=f"line {line}", hint="this format is plain text") from None
