"""What other programs use, beside ``load`` and ``HistoryBuilder``: check, and what one does with a result.

>>> from plume_py import check, HistoryBuilder
>>> builder = HistoryBuilder(initial=0)
>>> builder.add("s", [("w", "x", 1)])
>>> builder.add("s", [("r", "x", 0)])
>>> result = check(builder.build(), "RA")
>>> bool(result), result.violations[0].headline
(False, 'T2 read the initial x, although T1, earlier in its own session, had overwritten it')
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.checking import result as results
from plume_py.checking.check import check as check_history
from plume_py.checking.result import Result, Violation
from plume_py.history.model import History

Path = str | os.PathLike[str]


def check(history: History | Path, levels: str | Sequence[str] = "all", **how: Any) -> Result:
    """Does a history, or the one in a file, keep the levels? Every level unless some are named.

    ``levels`` is a level or several, by name or alias, "all", "weak" or "declared"; the other arguments are those of
    ``plume_py.checking.check.check``.
    """
    if isinstance(history, History):
        return check_history(history, levels, **how)
    from plume_py.history.load import load
    from plume_py.report.recording_metadata import with_run

    if not isinstance(history, str | os.PathLike):
        raise TypeError(f"a history or the path of one is needed, not {type(history).__name__}; see HistoryBuilder")
    path = os.fspath(history)
    return with_run(check_history(load(path), levels, **{"name": path, **how}), path)


def text(result: Result) -> str:
    """A result as ``isocheck`` prints it, without colours."""
    from plume_py.report.text import render

    return render(result, style=lambda words, **_: words)


def picture(violation: Violation, path: Path | None = None, format: str = "svg") -> bytes:
    """A violation as SVG, PNG or PDF, written to ``path`` if there is one; it takes Graphviz's dot."""
    from plume_py.report import dot, graphviz

    if format not in graphviz.FORMATS:
        raise IsocheckError(f"{format!r:.40} is no format of pictures; use one of {' '.join(graphviz.FORMATS)}")
    drawn = graphviz.picture(dot.render(violation), format)
    if path is not None:
        write_atomically(os.fspath(path), [drawn])
    return drawn


def page(found: Result | Iterable[Result], path: Path | None = None) -> str:
    """Results as a page to click through, written to ``path`` if there is one."""
    from plume_py.report.html import document

    made = document([found] if isinstance(found, Result) else list(found))
    if path is not None:
        write_atomically(os.fspath(path), [made.encode("utf-8", "backslashreplace")])
    return made


def save(history: History, path: Path, format: str | None = None) -> None:
    """Write a history in a format (see ``isocheck formats``), or in the one that the name of the file says."""
    from plume_py.history.formats.registry import FORMATS, writable_format

    chosen = format or writable_format(os.fspath(path))
    if chosen not in FORMATS or not FORMATS[chosen].writer:
        raise IsocheckError(
            f"{chosen!r:.40} is no format that can be written; give one of those that `isocheck formats` lists"
        )
    write_atomically(os.fspath(path), FORMATS[chosen].load_writer()(history).chunks)


def _in_notebook(result: Result) -> str:
    """Return the page of a result as a notebook shows it."""
    from plume_py.report.html import framed

    return framed([result])


# A result does not know of reports, so what interpreters and notebooks ask it for is registered here.
results.DRAW.update(html=_in_notebook, svg=lambda violation: picture(violation).decode(), text=text)
