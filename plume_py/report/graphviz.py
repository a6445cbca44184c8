"""Build graphs with the graphviz package, and draw them with Graphviz's dot within a time limit.

All pictures use this module. Text from a file reaches Graphviz only as escaped text of an HTML-like label (``text``).
Callers generate all names, ports and attributes, so no key or value can change a graph. The package has no time limit,
so it only writes the source of the graph, and this module runs dot.
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

# Content of a label: escaped text and tags. Only the functions below create it.
Markup = NewType("Markup", str)

# Formats, with further arguments for dot. The resolution keeps PNG readable when enlarged.
FORMATS: dict[str, tuple[str, ...]] = {"svg": (), "png": ("-Gdpi=144",), "pdf": ()}
USUAL_FORMAT = "svg"

INSTALL_HINT = (
    "Graphviz is not installed, so the pictures are .dot files only; "
    "install it with `apt-get install graphviz` (Debian) or `brew install graphviz` (macOS)"
)
# Time limit per picture in seconds. Generous, so that a busy machine draws the same pictures.
SECONDS = 60.0
# Longest text in a label, in characters, in case a caller does not shorten it.
LONGEST = 600
# After this many failures or timeouts, no more pictures are drawn.
TROUBLES = 3

FONT = "Helvetica,Arial,sans-serif"
MONO = "Menlo,Consolas,DejaVu Sans Mono,monospace"
PALE = "#767676"


class Graph:
    """A directed graph to draw: nodes and edges with attributes, and subgraphs."""

    def __init__(self, name: str, **attributes: object) -> None:
        from graphviz import Digraph  # imported late: few commands draw

        self._digraph: Digraph = Digraph(name)
        self._prefix = ""
        self.defaults("graph", fontname=FONT, bgcolor="white", pad=0.2, **attributes)

    @property
    def source(self) -> str:
        return str(self._digraph.source)

    def defaults(self, kind: str, /, **attributes: object) -> None:
        """Set attributes of the graph itself (kind "graph"), or of its later nodes or edges."""
        self._digraph.attr(kind, _attributes=_attribute_texts(attributes))

    def node(self, name: str, label: Markup | None = None, /, **attributes: object) -> None:
        """Add a node. The label may be empty."""
        self._digraph.node(self._prefix + name, _label(label), _attributes=_attribute_texts(attributes))

    def edge(self, tail: str, head: str, label: Markup | None = None, /, **attributes: object) -> None:
        """Add an edge between nodes or their cells ("t0:o1", "t0:o1:e")."""
        tail, head = self._prefix + tail, self._prefix + head
        self._digraph.edge(tail, head, _label(label), _attributes=_attribute_texts(attributes))

    @contextmanager
    def subgraph(self, name: str = "", prefix: str = "", **attributes: object) -> "Iterator[Graph]":
        """Open a subgraph. ``prefix`` is added to the names of its nodes."""
        part = object.__new__(Graph)
        part._prefix = self._prefix + prefix
        with self._digraph.subgraph(name=self._prefix + name if name else None) as part._digraph:
            if attributes:
                part.defaults("graph", **attributes)
            yield part


def _label(markup: Markup | None) -> str | None:
    return None if markup is None else f"<{markup}>" if markup else ""


def _attribute_texts(attributes: dict[str, object]) -> dict[str, str]:
    """Return the attributes as text. ``class_`` loses its underscore; a label is markup."""
    given = {name.rstrip("_"): str(value) for name, value in attributes.items()}
    if given.get("label"):
        given["label"] = f"<{given['label']}>"
    return given


def text(words: str, limit: int = LONGEST) -> Markup:
    """Return escaped, shortened text for a label. Graphviz expands \\N and similar even there, and halves \\\\."""
    escaped = display(words, limit)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\\", "&#92;&#92;")):
        escaped = escaped.replace(character, entity)
    return Markup(escaped or " ")  # an empty element is a syntax error


def font(words: str, /, **attributes: object) -> Markup:
    """Return escaped text in a font: ``point_size``, ``color``, ``face``."""
    return _element("font", text(words), attributes)


def bold(content: Markup) -> Markup:
    return Markup(f"<b>{content}</b>")


def lines(parts: Iterable[Markup], align: str = "") -> Markup:
    """Return lines one below the other, centred unless aligned."""
    if align:
        return Markup("".join(f'{part}<br align="{align}"/>' for part in parts))
    return Markup("<br/>".join(parts))


def cell(content: Markup, /, **attributes: object) -> Markup:
    """Return a cell of a table: ``port``, ``bgcolor``, ``colspan``, ``align``."""
    return _element("td", content, attributes)


def table(rows: Iterable[Sequence[Markup]], /, **attributes: object) -> Markup:
    """Return a table. It must have at least one row."""
    return _element("table", Markup("".join(f"<tr>{''.join(row)}</tr>" for row in rows)), attributes)


def _element(tag: str, content: Markup, attributes: dict[str, object]) -> Markup:
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{content}</{tag}>")


class DrawingError(IsocheckError):
    """The reason why a picture was not drawn."""


def draw(source: str, target: Path, seconds: float = SECONDS) -> str:
    """Write the picture to ``target``, in the format of its suffix. Return "", or a line that says why it failed."""
    try:
        drawn = picture(source, target.suffix[1:], seconds)
    except DrawingError as error:
        return str(error)
    write_atomically(str(target), [drawn])
    return ""


def picture(source: str, form: str = USUAL_FORMAT, seconds: float = SECONDS) -> bytes:
    """Return the picture of a graph as bytes. Raise ``DrawingError`` if dot fails."""
    program = shutil.which("dot")
    if program is None:
        raise DrawingError(INSTALL_HINT)
    try:
        code, drawn, errors = _run([program, f"-T{form}", *FORMATS[form]], source.encode(), seconds)
    except subprocess.TimeoutExpired:
        raise DrawingError(f"Graphviz needed more than {seconds:g} s for a picture, which stays a .dot file") from None
    except OSError as error:
        raise DrawingError(f"Graphviz could not be started: {error.strerror}") from None
    if code != 0 or not drawn:
        complaints = errors.decode(errors="replace").strip().splitlines()
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
    """A folder of pictures: .dot files, also drawn in some formats while Graphviz is installed and fast enough."""

    def __init__(self, folder: Path, formats: Sequence[str] = (USUAL_FORMAT,)) -> None:
        self.folder = folder
        self._formats = formats
        self._hints: Counter[str] = Counter()

    def add(self, name: str, source: str) -> None:
        """Add a picture. ``name`` is its file name without suffix."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IsocheckError(f"cannot write {self.folder}: {error.strerror}") from None
        write_atomically(str(self.folder / f"{name}.dot"), [source.encode()])
        for form in self._formats:
            # Repeated failures are slow, so give up. A missing Graphviz is detected the first time.
            if not self._hints[INSTALL_HINT] and self._hints.total() < TROUBLES:
                hint = draw(source, self.folder / f"{name}.{form}")
                self._hints.update([hint] if hint else [])

    @property
    def notes(self) -> list[str]:
        """Messages about pictures that were not drawn."""
        return list(self._hints)


def slug(name: str) -> str:
    """Return a safe file name for a history's name. Different names give different file names."""
    last = name.rstrip("/").rpartition("/")[2]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[-60:].lstrip("-.") or "history"
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode(errors='surrogatepass')):08x}"
