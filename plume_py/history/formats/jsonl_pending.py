"""The file beside a collected history that has the transactions whose commit was under way.

It is there while ``isocheck collect`` runs, and afterwards only if that was killed. See ``collect.recorder``.
"""

import os
from hashlib import sha256
from typing import Any

import msgspec

# Far more than there ever is.
LIMIT = 1 << 26
# Bytes in the name of a file.
NAME_MAX = 255


def pending_path(path: str) -> str:
    """Where it lies: beside the history, whatever link leads there; hidden, so that a scan does not take it for one."""
    folder, name = os.path.split(os.path.realpath(path))
    hidden = f".{name}.pending"
    if len(os.fsencode(hidden)) > NAME_MAX:
        hidden = f".{sha256(os.fsencode(name)).hexdigest()[:32]}.pending"
    return os.path.join(folder, hidden)


def first_line(run: str) -> bytes:
    """It names the run, as the header of the history does: a file of the same name may be from another one."""
    return msgspec.json.encode({"run": run}) + b"\n"


def pending_lines(path: str, collected: Any) -> bytes | None:
    """Its transactions; None unless it belongs to the history at ``path``, whose header says ``collected``."""
    run = collected.get("run") if isinstance(collected, dict) else None
    if not isinstance(run, str) or path == "-":
        return None
    if not os.path.isfile(pending_path(path)):  # a pipe would block for ever
        return None
    try:
        with open(pending_path(path), "rb") as file:  # noqa: PTH123
            text = file.read(LIMIT)
    except OSError:
        return None
    begin = first_line(run)
    if not text.startswith(begin):
        return None
    return text[len(begin) : text.rfind(b"\n") + 1]  # the last line may have been cut off
