"""Public functions for other programs: check a history, print, draw and save (``plume_py`` exports them).

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
    """Check a history, or the history in a file, and return the result.

    ``levels`` is one level or several, by name or alias, "all" (the default), "weak" or "declared". ``how`` has the
    other arguments of ``plume_py.checking.check.check``.
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
    """Return a result as ``isocheck`` prints it, without colours."""
    from plume_py.report.text import render

    return render(result, style=lambda words, **_: words)


def picture(violation: Violation, path: Path | None = None, format: str = "svg") -> bytes:
    """Return a violation as SVG, PNG or PDF, and write it to ``path`` if given. Graphviz's dot must be installed."""
    from plume_py.report import dot, graphviz

    if format not in graphviz.FORMATS:
        raise IsocheckError(f"{format!r:.40} is no format of pictures; use one of {' '.join(graphviz.FORMATS)}")
    drawn = graphviz.picture(dot.render(violation), format)
    if path is not None:
        write_atomically(os.fspath(path), [drawn])
    return drawn


def page(found: Result | Iterable[Result], path: Path | None = None) -> str:
    """Return an HTML page of one result or several, and write it to ``path`` if given."""
    from plume_py.report.html import document

    text = document([found] if isinstance(found, Result) else list(found))
    if path is not None:
        write_atomically(os.fspath(path), [text.encode("utf-8", "backslashreplace")])
    return text


def save(history: History, path: Path, format: str | None = None) -> None:
    """Write a history in a format (see ``isocheck formats``), by default the format of the file's extension."""
    from plume_py.history.formats.registry import FORMATS, writable_format

    chosen = format or writable_format(os.fspath(path))
    if chosen not in FORMATS or not FORMATS[chosen].writer:
        raise IsocheckError(
            f"{chosen!r:.40} is no format that can be written; give one of those that `isocheck formats` lists"
        )
    write_atomically(os.fspath(path), FORMATS[chosen].load_writer()(history).chunks)


def _in_notebook(result: Result) -> str:
    """Return the HTML of a result for a notebook."""
    from plume_py.report.html import framed

    return framed([result])


# The module of results must not import reports, so the renderers for interpreters and notebooks are registered here.
results.DRAW.update(html=_in_notebook, svg=lambda violation: picture(violation).decode(), text=text)
