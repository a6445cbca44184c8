"""The file beside a collected history that has the transactions whose commit was under way.

It is there while ``isocheck collect`` runs, and afterwards only if that was killed. See ``collect.recorder``.
"""

import os


def pending_path(path: str) -> str:
    """Where it lies: hidden, so that a scan of the folder does not take it for a history."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.pending")


def pending_lines(path: str) -> bytes:
    """Its whole lines, or nothing; the last line may have been cut off."""
    if path == "-":
        return b""
    try:
        with open(pending_path(path), "rb") as file:  # noqa: PTH123
            text = file.read()
    except (OSError, ValueError):
        return b""
    return text[: text.rfind(b"\n") + 1]
