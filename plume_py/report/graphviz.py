"""All pictures: graphs built with the graphviz package, and drawn by Graphviz's dot within a limit of time.

Nothing that comes from a file reaches Graphviz except as text of an HTML-like label, escaped by ``text``: names, ports
and attributes are made by the callers, so no key or value can change a graph. The package has no limit of time, so its
part ends with the source of the graph, and dot is run here.
"""

import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NewType

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.base.processes import kill_tree
from plume_py.base.text import display

# What a label consists of: escaped text and the tags around it, made by the functions below alone.
Markup = NewType("Markup", str)

# How pictures can be drawn, and what dot is told besides: pixels fine enough to be read when enlarged.
FORMATS: dict[str, tuple[str, ...]] = {"svg": (), "png": ("-Gdpi=144",), "pdf": ()}
USUAL_FORMAT = "svg"

INSTALL_HINT = (
    "Graphviz is not installed, so the pictures are .dot files only; "
    "install it with `apt-get install graphviz` (Debian) or `brew install graphviz` (macOS)"
)
# Seconds that one picture may take: far more than needed, so that a busy machine draws the same pictures.
SECONDS = 60.0
# Longest text in a label, whatever a caller forgets to shorten.
LONGEST = 600
# After this many pictures that failed or took too long, the rest stay .dot files.
TROUBLES = 3

FONT = "Helvetica,Arial,sans-serif"
MONO = "Menlo,Consolas,DejaVu Sans Mono,monospace"
PALE = "#767676"


class Graph:
    """A directed graph to be drawn: nodes and edges with attributes, and subgraphs of the same kind."""

    def __init__(self, name: str, **attributes: object) -> None:
        from graphviz import Digraph  # not before there is something to draw

        self._digraph: Digraph = Digraph(name)
        self._prefix = ""
        self.defaults("graph", fontname=FONT, bgcolor="white", pad=0.2, **attributes)

    @property
    def source(self) -> str:
        """In Graphviz's language."""
        return str(self._digraph.source)

    def defaults(self, kind: str, /, **attributes: object) -> None:
        """Attributes of the graph itself, or of all later nodes or edges in it."""
        self._digraph.attr(kind, _attributes=_spelled(attributes))

    def node(self, name: str, label: Markup | None = None, /, **attributes: object) -> None:
        """A node; a label may be empty."""
        self._digraph.node(self._prefix + name, _label(label), _attributes=_spelled(attributes))

    def edge(self, tail: str, head: str, label: Markup | None = None, /, **attributes: object) -> None:
        """An edge between nodes, or between their cells: "t0:o1", "t0:o1:e"."""
        tail, head = self._prefix + tail, self._prefix + head
        self._digraph.edge(tail, head, _label(label), _attributes=_spelled(attributes))

    @contextmanager
    def subgraph(self, name: str = "", prefix: str = "", **attributes: object) -> "Iterator[Graph]":
        """A part of this graph; ``prefix`` keeps its names apart from those of other parts."""
        part = object.__new__(Graph)
        part._prefix = self._prefix + prefix
        with self._digraph.subgraph(name=self._prefix + name if name else None) as part._digraph:
            if attributes:
                part.defaults("graph", **attributes)
            yield part


def _label(markup: Markup | None) -> str | None:
    return None if markup is None else f"<{markup}>" if markup else ""


def _spelled(attributes: dict[str, object]) -> dict[str, str]:
    """``class_`` is a word of Python's without its underscore; a label is markup like any other."""
    given = {name.rstrip("_"): str(value) for name, value in attributes.items()}
    if given.get("label"):
        given["label"] = f"<{given['label']}>"
    return given


def text(words: str, limit: int = LONGEST) -> Markup:
    """Text in a label: harmless, and not too long. Graphviz expands \\N and the like even there, and halves \\\\."""
    escaped = display(words, limit)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\\", "&#92;&#92;")):
        escaped = escaped.replace(character, entity)
    return Markup(escaped or " ")  # an empty element is a syntax error


def font(words: str, /, **attributes: object) -> Markup:
    """Text in a font: ``point_size``, ``color``, ``face``."""
    return _element("font", text(words), attributes)


def bold(content: Markup) -> Markup:
    """Content in bold."""
    return Markup(f"<b>{content}</b>")


def lines(parts: Iterable[Markup], align: str = "") -> Markup:
    """Lines one below the other, centred unless aligned."""
    if align:
        return Markup("".join(f'{part}<br align="{align}"/>' for part in parts))
    return Markup("<br/>".join(parts))


def cell(content: Markup, /, **attributes: object) -> Markup:
    """A cell of a table: ``port``, ``bgcolor``, ``colspan``, ``align``."""
    return _element("td", content, attributes)


def table(rows: Iterable[Sequence[Markup]], /, **attributes: object) -> Markup:
    """Rows of cells; there must be one."""
    return _element("table", Markup("".join(f"<tr>{''.join(row)}</tr>" for row in rows)), attributes)


def _element(tag: str, content: Markup, attributes: dict[str, object]) -> Markup:
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{content}</{tag}>")


class DrawingError(IsocheckError):
    """There is no picture, for the reason that it gives."""


def draw(source: str, target: Path, seconds: float = SECONDS) -> str:
    """Let Graphviz write ``target``, whose suffix says how; "" or a line that says why there is no picture."""
    try:
        drawn = picture(source, target.suffix[1:], seconds)
    except DrawingError as error:
        return str(error)
    write_atomically(str(target), [drawn])
    return ""


def picture(source: str, form: str = USUAL_FORMAT, seconds: float = SECONDS) -> bytes:
    """What Graphviz makes of a graph."""
    program = shutil.which("dot")
    if program is None:
        raise DrawingError(INSTALL_HINT)
    try:
        code, drawn, said = _run([program, f"-T{form}", *FORMATS[form]], source.encode(), seconds)
    except subprocess.TimeoutExpired:
        raise DrawingError(f"Graphviz needed more than {seconds:g} s for a picture, which stays a .dot file") from None
    except OSError as error:
        raise DrawingError(f"Graphviz could not be started: {error.strerror}") from None
    if code != 0 or not drawn:
        complaints = said.decode(errors="replace").strip().splitlines()
        why = complaints[0] if complaints else f"exit code {code}"
        raise DrawingError(f"Graphviz failed: {display(why, 200)}")
    return drawn


def _run(command: list[str], given: bytes, seconds: float) -> tuple[int, bytes, bytes]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            output, errors = process.communicate(given, timeout=seconds)
        except BaseException:  # late, or interrupted
            kill_tree(process.pid)  # dot may be a script: what it started would hold our pipes open
            raise
        return process.returncode, output, errors


class Album:
    """A folder of pictures: each a .dot file, and drawn in some formats as long as Graphviz is there and quick."""

    def __init__(self, folder: Path, formats: Sequence[str] = (USUAL_FORMAT,)) -> None:
        self.folder = folder
        self._formats = formats
        self._hints: Counter[str] = Counter()

    def add(self, name: str, source: str) -> None:
        """One more picture; ``name`` is that of its files, without suffix."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IsocheckError(f"cannot write {self.folder}: {error.strerror}") from None
        write_atomically(str(self.folder / f"{name}.dot"), [source.encode()])
        for form in self._formats:
            # What failed a few times would go on to fail, slowly; what is not installed fails the first time.
            if not self._hints[INSTALL_HINT] and self._hints.total() < TROUBLES:
                hint = draw(source, self.folder / f"{name}.{form}")
                self._hints.update([hint] if hint else [])

    @property
    def notes(self) -> list[str]:
        """For people: what could not be drawn, and why."""
        return list(self._hints)


def slug(name: str) -> str:
    """A file name made of a history's name: harmless, and different for different names."""
    last = name.rstrip("/").rpartition("/")[2]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[-60:].lstrip("-.") or "history"
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode(errors='surrogatepass')):08x}"
