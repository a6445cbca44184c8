"""Detect the format of a history by content, then by file extension."""

import os
import re

from plume_py.base.errors import InputError
from plume_py.history.formats.registry import FORMATS
from plume_py.history.source import Source

_SPACE = b" \t\r\n\x0c\xef\xbb\xbf,"

# Files that Jepsen writes into the folder of every run. Then history.txt is Jepsen's and not Plume text.
OF_A_JEPSEN_RUN = frozenset(("jepsen.log", "test.fressian", "test.jepsen"))

_HISTORIES_OF_A_RUN = frozenset(("history.edn", "history.txt"))

_HOW_TO_GET_EDN = (
    '(jepsen.store/write-history! (jepsen.store/test "FOLDER")), in the REPL of the test, writes history.edn'
)

# The first bytes of Jepsen's binary format.
_JEPSEN_BINARY = b"JEPSEN"

# Tried in order on the first bytes, without leading space. Comments and space are matched possessively (``*+``), so
# that no file can make a pattern backtrack.
_PATTERNS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("plume", re.compile(rb"(#[^\n]*+\n\s*+)*+[rw]\(\s*-?\d")),
    ("isopredict", re.compile(rb"(READ|WRITE) KEY\[|(INSERT|DELETE|CONTAINS)\[[^\[\]\n]*+\] (to|from|in) Set\[")),
    ("awdit", re.compile(rb"[-=\s]*+[rw] ++\d++ ++\d++\s")),
    ("dbcop-yaml", re.compile(rb"(---\s*+)?- - events:")),
    ("dbcop-hist", re.compile(rb"(//[^\n]*+\n\s*+)*+(-{3,}+\s++)*+(\[\s*+\]!?|\[\s*+[A-Za-z_]\w*+\s*+(:=|==))")),
    ("jepsen-txt", re.compile(rb"[^\s]++ *+\t:(invoke|ok|fail|info) *+\t")),
    ("edn", re.compile(rb"(;[^\n]*+\n\s*+)*+([\[(]\s*+)?+(;[^\n]*+\n\s*+)*+(#[A-Za-z][\w./-]*+\s*+)?+\{\s*+:")),
    ("elle-json", re.compile(rb'(\[\s*)?\{[^{}\[\]]*"(type|process)"\s*:')),
    ("elle-json", re.compile(rb'\[\s*\{[^{}\[\]]*"(f|value|index)"\s*:')),
    ("dbcop-json", re.compile(rb'\[\s*\[\s*(\]|\{\s*"(events|committed)")')),
    ("dbcop-json", re.compile(rb'\{\s*"(params|info|data)"\s*:')),
    ("dbcop-json", re.compile(rb'\{\s*"(start|end)"\s*:\s*"')),  # dates; times of transactions are numbers
    ("jsonl", re.compile(rb"\{[^\n]*\}[ \t\r]*\n\s*\{")),
    ("json", re.compile(rb'\{[^\n]*"sessions"\s*:\s*\[')),
    ("jsonl", re.compile(rb'\{[^\n]*"(ops|session)"\s*:')),
    ("jsonl", re.compile(rb'\{\s*"(initial|ticks_per_second)"\s*:[^\n]*\}\s*\Z')),
    ("json", re.compile(rb"\{")),
)


def detect(source: Source) -> str:
    """Return the name of the source's format. Raise InputError if it has none."""
    if source.is_folder:
        return _detect_folder(source)
    head = source.head()
    if head.startswith(_JEPSEN_BINARY):
        raise InputError("a test in Jepsen's binary format", hint=_HOW_TO_GET_EDN)
    if not head:
        raise InputError("the file is empty", hint='an empty history is written {"sessions": []}')
    name = format_of(head)
    if name is not None:
        return name
    for fmt in FORMATS.values():
        if source.suffix in fmt.extensions:
            return fmt.name
    raise InputError("not a history in any known format", hint="see `isocheck formats`, or give --input-format")


def format_of(head: bytes) -> str | None:
    """Return the format that the first bytes of a file show, or None."""
    text = head.lstrip(_SPACE)
    for name, pattern in _PATTERNS:
        if pattern.match(text):
            return name
    return "dbcop" if _looks_like_bincode(head) else None


def _looks_like_bincode(head: bytes) -> bool:
    """Return whether ``head`` is dbcop's header: five 64-bit numbers of plausible size, then a short string."""
    if len(head) < 48:
        return False
    numbers = [int.from_bytes(head[i : i + 8], "little") for i in range(0, 48, 8)]
    return all(n < 1 << 40 for n in numbers[:5]) and numbers[5] < 1 << 16 and b"\0\0\0\0" in head[:48]


def _detect_folder(source: Source) -> str:
    """Return the format of a folder that is one history; change ``source.path`` to the file that holds it, if any."""
    names = _names(source.path)
    if _HISTORIES_OF_A_RUN.isdisjoint(names) and not OF_A_JEPSEN_RUN.isdisjoint(names):
        raise InputError(
            "a Jepsen run without history.edn",
            hint=f"it ended before its history was saved, or that is in test.jepsen alone: {_HOW_TO_GET_EDN}",
        )
    for name in ("history.edn", "history.bincode", "history.json", "history.jsonl", "history.txt"):
        if name in names:
            source.path = os.path.join(source.path, name)
            return detect(source)
    if "json" in names and os.path.isdir(os.path.join(source.path, "json")):
        inner = _names(os.path.join(source.path, "json"))
        if any(re.fullmatch(r"J\d+\.log", name) for name in inner):
            source.path = os.path.join(source.path, "json")
            return "viper"
    logs = [name for name in names if name.endswith(".log")]
    if any(re.fullmatch(r"J\d+\.log", name) for name in logs):
        return "viper"
    if logs:
        return "cobra"
    for link in ("latest", "current"):
        if os.path.isdir(os.path.join(source.path, link)):
            raise InputError(
                "a folder of several Jepsen runs",
                hint=f"check one, such as {os.path.join(source.path, link)}, or all of them with `isocheck scan`",
            )
    raise InputError(
        "a folder, and not one history",
        hint="name the histories in it, or check them all with `isocheck scan`",
    )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(error.strerror or str(error)) from None
