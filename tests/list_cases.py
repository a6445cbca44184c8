"""Small histories of lists, each with what it shows: the levels that hold, and the patterns.

Sessions are separated by ``|``, transactions by ``;``. ``+x1`` appends 1 to x, ``x:12`` reads [1, 2], ``x:`` reads an
empty list; a transaction that begins with ``!`` was aborted, the outcome of one with ``?`` is unknown.
"""

STATUS = {"!": "aborted", "?": "unknown"}


def history(text):
    """Sessions of (status, operations), as for the oracles."""
    return [[_transaction(body.strip()) for body in session.split(";")] for session in text.split("|")]


def _transaction(body):
    status = STATUS.get(body[:1], "committed")
    return status, [_operation(word) for word in body.lstrip("!?").split()]


def _operation(word):
    if word[0] == "+":
        return "append", word[1], int(word[2:])
    return "r", word[0], [int(v) for v in word[2:]]


ALL = "CI RC RA TCC PC PSI SI SER"

# what it is about: (history, levels that hold, patterns in the oracle's words)
CASES = {
    # The whole list is what a writer wrote
    "blocks and own appends in place": ("+x1 +x2 | +x3 x:123 | x:12 ; x:123", ALL, ""),
    "an empty list is older than any append": ("+x1 | x:", ALL, ""),
    "the first append is missing": ("+x1 +x2 | x:2", "CI", "torn"),
    "the first append is missing before another's": ("+x1 +x2 | +x3 | x:23", "CI", "torn"),
    "the second append is missing before another's": ("+x1 +x2 | +x3 | x:13", "CI", "torn"),
    "the appends are swapped": ("+x1 +x2 | +x3 | x:213", "CI", "torn"),
    "the appends are swapped at the end": ("+x1 +x2 | x:21", "CI", "torn"),
    "the appends are split": ("+x1 +x2 | +x3 | x:132", "CI", "torn"),
    "the append in the middle is missing": ("+x1 +x2 +x3 | x:13", "CI", "torn"),
    "only the last append is missing": ("+x1 +x2 | x:1", "CI", "f"),
    "a repetition tears nothing": ("+x1 +x2 | +x3 | x:1213", "CI", "duplicate"),
    "an element twice": ("+x1 | +x2 | x:121", "CI", "duplicate"),
    # Whose elements they are
    "an unknown outcome shows in part": ("?+x1 +x2 | x:2", "CI", "torn"),
    "an unknown outcome counts when it is not the last": ("?+x1 | +x2 | x:12", ALL, ""),
    "an unknown outcome counts for its other keys too": ("?+x1 +y1 | +x2 | x:12 y:", "CI RC RA TCC", ""),
    "an aborted append inside": ("!+x1 | +x2 | x:12", "CI", "b"),
    "nobody's element inside": ("+x2 | x:92", "CI", "a"),
    "nobody's element twice": ("+x2 | x:929", "CI", "a, duplicate"),
    "an element twice by one transaction": ("+x1 +x1 | x:11", ALL, ""),
    "an element repeated before its block": ("+x1 +x2 | x:212", "CI", "torn, duplicate"),
    "a list ends in a part, and its reader adds to it": ("+x4 x:24 | x:24 | +x2 +x3", "CI", "f, torn"),
    # Own appends
    "own appends grow": ("+x1 x:1 +x2 x:12", ALL, ""),
    "an own append before it is made": ("x:1 +x1", "CI", "c"),
    "an own append before it is made, not last": ("+x1 x:01 +x0", "CI", "c"),
    "an own append before it is made, before another's": ("+x1 | x:21 +x2", "CI", "c"),
    "an own append is missing": ("+x1 | +x2 x:1", "CI", "d"),
    "an own append is missing and nothing is there": ("+x1 x:", "CI", "d"),
    "an own append is not at the end": ("+x1 | +x2 x:21", "CI", "d"),
    "the first own append is missing": ("+x1 +x2 x:2", "CI", "e"),
    "own appends are swapped": ("+x1 +x2 x:21", "CI", "e"),
    "causality behind an own append": ("+y1 | y:1 +z1 | +z2 z:12 y:", "CI RC RA", "m"),
    "a non-repeatable read behind an own append": ("+x1 | x: +x2 x:12", "RC", "j, k"),
    "two non-repeatable reads behind an own append": ("+x1 | +x2 x:2 x:12", "", "j, k, incompatible"),
    "newer, then older behind an own append": ("+x1 +y1 | +x2 x:12 y:", "CI", "h"),
    "a fractured read behind an own append": ("+x1 +y1 | y: +x2 x:12", "CI RC", "k"),
    "a long fork behind own appends": ("+x1 | +y1 | +x2 x:12 y: | +y2 y:12 x:", "CI RC RA TCC PSI", ""),
    "session order behind an own append": ("+x1 ; +x2 x:2", "CI", "k, version order"),
    "both are first": ("+x1 x:1 | +x2 x:2", "CI", "incompatible"),
    "another one in between": ("+x1 | +x2 | +x3 x:13 | x:123", "CI", "incompatible"),
    # Orders
    "two orders": ("+x1 | +x2 | x:12 | x:21", "CI", "incompatible, version order"),
    "two first ones": ("+x1 | +x2 | x:1 | x:2", "CI", "incompatible"),
    "orders of two keys": ("+x1 +y1 | +x2 +y2 | x:12 | y:21", "CI", "version order"),
    "what never shows comes later": ("+x1 +y1 | +x2 +y2 | x:12 | y:2", "CI", "version order"),
    "a session's own append never shows": ("+x1 ; x:2 | +x2", "CI RC", "l"),
    "a session's own append is not there yet": ("+x1 | +x2 ; x:1 | x:12", "CI RC", "l"),
    "what two appended and nobody read is not in the list of either": ("+x5 ; +x1 x:1 +x5", "CI", "k, version order"),
    "newer, then older": ("+x1 +y1 | x:1 y:", "CI", "h"),
}  # fmt: skip


def patterns_of(text):
    return set(text.split(", ")) - {""}
