"""HTML: one page that works from disk, with every counterexample as a picture and a proof to walk through.

Python decides what is shown and which operation an edge belongs to; ``assets/`` only draws. Everything from a history
travels as JSON that cannot end its script element, and the page inserts it as text, never as markup.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from plume_py.base.text import one_line, shorten
from plume_py.base.version import __version__
from plume_py.checking.result import Result
from plume_py.report.html_data import encoded, page_data
from plume_py.report.styles import style_sheet
from plume_py.report.throughput import section

# Of a page without scripts: that many verdicts in words.
PLAIN_VERDICTS = 50


# Pixels that a page is high within another one, such as a notebook; the reader can drag its lower edge.
FRAME = 640


def framed(results: Sequence[Result]) -> str:
    """Return the page as an element for another page: an isolated frame, of which nothing reaches the page around it.

    Scripts of the frame run with an origin of their own. Its links are relative to itself, not to the page around it.
    """
    page = document(results).replace("<head>\n", '<head>\n<base href="about:srcdoc">\n', 1)
    return (
        f'<iframe title="{escape(_title(results))}" sandbox="allow-scripts" srcdoc="{escape(page)}" '
        f'style="display: block; width: 100%; height: {FRAME}px; border: 0; resize: vertical; overflow: auto"></iframe>'
    )


def document(results: Sequence[Result]) -> str:
    """Return the whole page."""
    style = style_sheet() + asset("report.css")
    script = "\n".join(asset(name) for name in ("graph.js", "timeline.js", "lists.js", "report.js"))
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(_title(results))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_without_scripts(results)}\n"
        f'<div id="page"></div>\n{_speeds(results)}'
        f'<script type="application/json" id="data">{encoded(page_data(results))}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _speeds(results: Sequence[Result]) -> str:
    """How fast runs went that were seen running: drawn here, and nothing of it is a history's."""
    drawn = [(i, result.speed) for i, result in enumerate(results) if result.speed is not None]
    return "".join(f"{section(speed, f'speed-{i}')}\n" for i, speed in drawn)


def asset(name: str) -> str:
    """A file of ``assets/``."""
    return (files("plume_py.report") / "assets" / name).read_text("utf-8")


def policy(style: str, script: str) -> str:
    """Only our own style and script count, and nothing is fetched: a second lock behind the escaping."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(results: Sequence[Result]) -> str:
    what = one_line(results[0].history) if len(results) == 1 else f"{len(results)} histories"
    return f"isocheck: {shorten(what or 'history', 80)}"


def _without_scripts(results: Sequence[Result]) -> str:
    lines = "".join(f"<li>{escape(_in_words(result))}</li>" for result in results[:PLAIN_VERDICTS])
    return (
        "<noscript><p>This report draws its pictures with JavaScript, which is switched off here. The verdicts are "
        f"below; <code>isocheck --format text</code> prints the proofs.</p><ul>{lines}</ul>"
        f"<p>isocheck {escape(__version__)}</p></noscript>"
    )


def _in_words(result: Result) -> str:
    name = shorten(one_line(result.history), 200) or "history"
    if result.error is not None:
        return f"{name}: not read: {shorten(one_line(result.error), 500)}"
    words = {True: "holds", False: "violated", None: "undecided"}
    return f"{name}: " + ", ".join(f"{level} {words[verdict.ok]}" for level, verdict in result.levels.items())
