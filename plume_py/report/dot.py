"""Pictures: a counterexample as a Graphviz graph, one table per transaction and edges from operation to operation.

Sessions are columns, and time runs downwards in them. Nothing from a history reaches Graphviz except as escaped text of
an HTML-like label: names, ports and attributes are all made here, so no key or value can change the graph.
"""

import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from plume_py.base.errors import IsocheckError
from plume_py.base.files import write_atomically
from plume_py.base.text import ELLIPSIS, shown, visible, wrapped
from plume_py.checking.result import INITIAL, Id, Result, ShownTransaction, Step, Violation
from plume_py.report.dot_layout import HEADER, START, Arrow, Picture, columns_of, node_of, places_of, rows_of
from plume_py.report.wording import place

INSTALL_HINT = (
    "Graphviz is not installed, so the pictures are .dot files only; "
    "install it with `apt-get install graphviz` (Debian) or `brew install graphviz` (macOS)"
)

# Longest spelling of a key, value or id; a picture has less room than a line of text.
LIMIT = 24
# Longest conclusion.
SENTENCE = 600
# A transaction with more operations than this shows only those that an edge touches.
MANY_OPS = 10
# After this many pictures that failed or took too long, the rest stay .dot files.
TROUBLES = 3

FONT = "Helvetica,Arial,sans-serif"
MONO = "Menlo,Consolas,DejaVu Sans Mono,monospace"
PALE = "#767676"
STRAIGHT = 100  # the weight of an edge that should be a vertical line
LINE = "line"  # how the names of the points of a column's line begin
LANE = 'color="#C8C8C8" border="1"'


@dataclass(frozen=True)
class Look:
    """How a relation is drawn: told apart by line and arrow head as well as by colour (Okabe and Ito's palette)."""

    colour: str
    style: str
    head: str
    tail: str
    sample: str  # the line in characters, for the legend
    meaning: str


LOOKS = {
    "SO": Look("#007D5B", "dashed", "normal", "none", "╌╌▶", "session order"),
    "WR": Look("#0068A5", "solid", "normal", "none", "──▶", "is read by"),
    "CM": Look("#C24E00", "solid", "normal", "odot", "○─▶", "must commit before"),
    "WW": Look("#8A6100", "solid", "vee", "none", "──>", "is overwritten by"),
    "RW": Look("#A3457C", "dashed", "onormal", "odot", "○╌▷", "reads what is overwritten by"),
}
EXCLUDED = Look("#767676", "dotted", "vee", "none", "┈┈>", "excluded: this order leads to a contradiction")


def look_of(step: Step) -> Look:
    """How the edge of a step is drawn."""
    return EXCLUDED if step.assumed else LOOKS[step.relation]


def _reason(step: Step) -> tuple[str, ...]:
    """The short reason of a forced edge, in lines."""
    if step.is_proved:
        return ("the opposite", "is excluded")
    if step.reader is None:
        return ()
    reader, key, source = _name(step.reader), shown(step.key, LIMIT), _name(step.source)
    if step.relation == "WW":
        return (f"as {reader}'s", f"list {key} shows")
    whose = f"initial {key}," if step.target == INITIAL else f"{key} from {_name(step.target)},"
    saw = "is after" if all(e.relation == "SO" for e in step.evidence) else "saw"
    return (f"{reader} read", whose, f"{saw} {source}")


def _name(name: Id) -> str:
    return shown(name, LIMIT) or '""'


def _html(text: str) -> str:
    """Text in an HTML-like label; also there Graphviz expands \\N and the like, after the entities, and halves \\\\."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\\", "&#92;&#92;")):
        text = text.replace(character, entity)
    return text or " "  # an empty element is a syntax error


def font(text: str, **attributes: object) -> str:
    """Escaped text in a font."""
    given = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<font {given}>{_html(text)}</font>"


def attribute_list(**attributes: object) -> str:
    """[a="b"]; only for values made here. Labels are HTML-like and come without their angle brackets."""
    pairs = (f"{k}=<{v}>" if k == "label" else f'{k}="{v}"' for k, v in attributes.items())
    return f"[{' '.join(pairs)}]"


def render(violation: Violation, title: str = "") -> str:
    """The picture of one counterexample in Graphviz's language."""
    return "\n".join(_graph(Picture(violation), title)) + "\n"


def _graph(picture: Picture, title: str) -> Iterator[str]:
    yield "digraph counterexample {"
    yield f'  graph [fontname="{FONT}" labelloc=t nodesep=0.35 ranksep=0.3 newrank=true bgcolor=white pad=0.2]'
    yield f'  node [fontname="{FONT}" fontsize=12 shape=plain]'
    yield f'  edge [fontname="{FONT}" arrowsize=0.8]'
    # Both in one label: around a cluster with a label of its own, Graphviz would forget the order of the columns.
    head = [_title(picture.violation, title), _legend(picture)]
    yield f'  label=<<table border="0">{"".join(f"<tr><td>{part}</td></tr>" for part in head)}</table>>'
    columns = columns_of(picture)
    rows = rows_of(picture, columns)
    # Graphviz draws the edges of early nodes first: the lines of the columns go below everything else.
    yield f"  {'; '.join(f'top{number}' for number in range(len(columns)))}"
    steps = {(arrow.tail, arrow.head) for arrow in picture.arrows}
    grid = [places_of(column, rows, steps) for column in columns]
    for number, column in enumerate(columns):
        yield from _lane(picture, number, column, grid[number], steps)
    lines = {pair for column in columns for pair in pairwise(column)}
    for arrow in picture.arrows:
        upwards = rows[node_of(arrow.head)] < rows[node_of(arrow.tail)]
        weight = STRAIGHT if (arrow.tail, arrow.head) in lines else 1
        yield f"  {_ends(arrow, columns, upwards)} {_edge(arrow, upwards, weight)}"
    yield from _grid(grid)
    yield "}"


def _lane(
    picture: Picture, number: int, column: list[str], places: list[str | None], steps: set[tuple[str, str]]
) -> Iterator[str]:
    """A session as in a sequence diagram: its name, and its transactions on a line that goes down."""
    by_node = {picture.nodes[transaction.id]: transaction for transaction in picture.violation.transactions}
    top, end, line = f"top{number}", f"end{number}", 'color="#E2E2E2" penwidth=4 arrowhead=none'
    names = [top, *(_place(number, row, name) for row, name in enumerate(places, 1) if name is not None), end]
    yield f"  subgraph lane{number} {{"
    yield f'    node [group="lane{number}"]'
    if column == [START]:
        line = "style=invis"
        yield f'    {top} [label="" style=invis group="lane{number}"]'
        yield f"    {START} {attribute_list(label=_initial(picture), **{'class': 'initial'})}"
    else:
        session = font(f"session {_name(by_node[column[0]].session)}", point_size=11, color=PALE)
        yield f'    {top} [label=<{_box([f"<tr><td>{session}</td></tr>"], LANE)}> group="lane{number}"]'
    for node in (n for n in column if n in by_node):
        yield f"    {node} {attribute_list(label=_table(picture, by_node[node]), **{'class': 'transaction'})}"
    yield '    node [label="" style=invis shape=point width=0.01]'
    yield f"    {'; '.join(name for name in names[1:] if name not in column)}"
    for tail, head in pairwise(names):
        if (tail, head) not in steps:  # a step of session order is that piece of the line
            ends = f"{tail}{_port(tail, 's')} -> {head}{_port(head, 'n')}"
            yield f"    {ends} [{line} weight={STRAIGHT} headclip=false tailclip=false]"
    yield "  }"


def _place(column: int, row: int, name: str) -> str:
    """What stands in a column and a row: a transaction, or a point of the column's line."""
    return name or f"{LINE}{column}_{row}"


def _port(name: str, side: str) -> str:
    """Lines go on through their points, and end at the border of everything else."""
    return "" if name.startswith(LINE) else f":{side}"


def _grid(grid: list[list[str | None]]) -> Iterator[str]:
    """Keeps the nodes in their rows, and the columns in their order."""
    middle = [
        [_place(column, row, name) for column, name in enumerate(names) if name is not None]
        for row, names in enumerate(zip(*grid, strict=True), 1)
    ]
    lines = [[f"top{i}" for i in range(len(grid))], *middle, [f"end{i}" for i in range(len(grid))]]
    yield '  node [shape=point width=0.01 style=invis label=""]'
    yield "  edge [style=invis]"
    yield f"  {' -> '.join(f'row{i}' for i in range(len(lines)))}"
    for i, line in enumerate(lines):
        yield f"  {{ rank=same; row{i}; {' -> '.join(line)} }}"


def _ends(arrow: Arrow, columns: list[list[str]], upwards: bool) -> str:
    """Edges within a column run on its right; for the others Graphviz knows best which side of a cell is near.

    An edge that leads up is written as one that leads down and points back: else it would fight with the rows.
    """
    same = any(node_of(arrow.tail) in column and node_of(arrow.head) in column for column in columns)
    ends = [f"{end}:e" if same and ":" in end else end for end in (arrow.tail, arrow.head)]
    return " -> ".join(reversed(ends) if upwards else ends)


def _table(picture: Picture, transaction: ShownTransaction) -> str:
    """A transaction: a header, and a cell per operation, in program order."""
    node = picture.nodes[transaction.id]
    in_cycle = any(node_of(end) == node for end in picture.bold)
    head = f"<b>{_html(_name(transaction.id))}</b>"
    if transaction.status != "committed":
        head += " " + font(f"({transaction.status})", color="#B00020")
    where = font(shown(place(transaction), LIMIT), point_size=9, color="#505050")
    rows = [f'<tr><td port="{HEADER}" bgcolor="{"#FFE3A3" if in_cycle else "#E6E6E6"}">{head}<br/>{where}</td></tr>']
    hidden = transaction.hidden_ops
    for i, op in enumerate(transaction.ops):
        if len(transaction.ops) > MANY_OPS and f"{node}:o{i}" not in picture.cells:
            hidden += 1
            continue
        rows.append(f'<tr><td port="o{i}" {_cell_colour(picture, f"{node}:o{i}")}>{_operation(op)}</td></tr>')
    if hidden:
        rows.append(f"<tr><td>{font(f'and {hidden} more', point_size=9, color=PALE)}</td></tr>")
    return _box(rows, 'color="#202020" border="2"' if in_cycle else 'color="#909090" border="1"')


def _box(rows: list[str], line: str) -> str:
    return (
        f'<table bgcolor="white" cellborder="0" cellspacing="0" cellpadding="4" rows="*" {line}>{"".join(rows)}</table>'
    )


def _cell_colour(picture: Picture, cell: str) -> str:
    if cell in picture.culprits:
        return 'bgcolor="#FFC9C9"'
    return 'bgcolor="#FFF6DD"' if cell in picture.bold else ""


def _operation(op: tuple[object, ...]) -> str:
    kind, key, value = op
    if isinstance(value, tuple | list):
        text = visible(" ".join(str(v) for v in value[-LIMIT:]))
        short = text if len(text) <= LIMIT and len(value) <= LIMIT else ELLIPSIS + text[1 - LIMIT :]
        spelled = f"[{short}]"
    else:
        spelled = shown(value, LIMIT)
    return font(f"{kind}({shown(key, LIMIT)}, {spelled})", face=MONO, point_size=11)


def _initial(picture: Picture) -> str:
    rule = font("before everything", point_size=9)
    rows = [f'<tr><td bgcolor="#E3E3F5"><b>initial state</b><br/>{rule}</td></tr>']
    for i, (key, value) in enumerate(picture.initial_keys.items()):
        rows.append(f'<tr><td port="k{i}">{font(f"{shown(key, LIMIT)} = {shown(value, LIMIT)}", face=MONO)}</td></tr>')
    return _box(rows, 'color="#4A4A8A" border="2"')


def _edge(arrow: Arrow, upwards: bool, weight: int) -> str:
    look = look_of(arrow.step)
    key = f"({shown(arrow.step.key, LIMIT)})" if arrow.step.has_key else ""
    lead = f"{arrow.number}. " if arrow.number else "not " if arrow.step.assumed else ""
    lines = [font(f"{lead}{arrow.step.relation}{key}", color=look.colour, point_size=12 if arrow.number else 10)]
    if arrow.number:
        lines = [f"<b>{lines[0]}</b>", *(font(line, color=look.colour, point_size=10) for line in _reason(arrow.step))]
    head, tail = (look.tail, look.head) if upwards else (look.head, look.tail)
    return attribute_list(
        label=f'<table border="0" cellborder="0" cellpadding="3"><tr><td>{"<br/>".join(lines)}</td></tr></table>',
        color=look.colour,
        style=look.style,
        dir="both",
        arrowhead=head,
        arrowtail=tail,
        penwidth=3 if arrow.number else 2 if arrow.step.assumed else 1,
        weight=weight,
        **{"class": _class(arrow)},
    )


def _class(arrow: Arrow) -> str:
    relation = arrow.step.relation
    if arrow.number:
        return f"{relation} step-{arrow.number}"
    return f"{relation} excluded" if arrow.step.assumed else f"{relation} evidence"


def _title(violation: Violation, title: str) -> str:
    lines = [f"<b>{font(violation.pattern.title, point_size=16)}</b>"]
    lines.append(font(violation.pattern.description, point_size=12))
    lines += [font(line, point_size=11) for line in wrapped("", shown(violation.conclusion, SENTENCE), "", 90)]
    if title:
        lines.append(font(shown(title, 80), point_size=10, color=PALE))
    return "<br/>".join(lines)


def _legend(picture: Picture) -> str:
    present = {arrow.step.relation for arrow in picture.arrows if not arrow.step.assumed}
    looks = [(f"{relation}: {look.meaning}", look) for relation, look in LOOKS.items() if relation in present]
    if any(arrow.step.assumed for arrow in picture.arrows):
        looks.append((EXCLUDED.meaning, EXCLUDED))
    cells = [
        font(look.sample, color=look.colour, face=MONO) + " " + font(words, point_size=10) for words, look in looks
    ]
    if present:
        cells.append(font("thick: the argument; thin: what supports it", point_size=10))
    else:
        cells.append(" ")  # a table needs a cell
    return f'<table border="0" cellspacing="8"><tr>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr></table>'


def draw(dot_text: str, target: Path, seconds: float = 10) -> str:
    """Let Graphviz write ``target`` (SVG); "" or a line that says why there is no picture."""
    program = shutil.which("dot")
    if program is None:
        return INSTALL_HINT
    try:
        done = subprocess.run([program, "-Tsvg"], input=dot_text.encode(), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"Graphviz needed more than {seconds:g} s for a picture, which stays a .dot file"
    except OSError as error:
        return f"Graphviz could not be started: {error.strerror}"
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"Graphviz failed: {shown(said[0] if said else f'exit code {done.returncode}', 200)}"
    write_atomically(str(target), [done.stdout])
    return ""


def write_pictures(result: Result, folder: Path) -> list[str]:
    """A .dot and, where Graphviz is there and fast enough, an .svg for every violation; returns notes for people."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IsocheckError(f"cannot write {folder}: {error.strerror}") from None
    hints: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for violation in result.violations:
        numbers[violation.tap] += 1
        target = folder / f"{slug(result.history)}-{violation.pattern.label.lower()}-{numbers[violation.tap]}.dot"
        text = render(violation, result.history)
        write_atomically(str(target), [text.encode()])
        # What failed a few times would go on to fail, slowly; what is not installed fails the first time.
        if not hints[INSTALL_HINT] and hints.total() < TROUBLES:
            hint = draw(text, target.with_suffix(".svg"))
            hints.update([hint] if hint else [])
    return list(hints)


def slug(name: str) -> str:
    """A file name made of a history's name: harmless, and different for different names."""
    last = name.rstrip("/").rpartition("/")[2]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[-60:].lstrip("-.") or "history"
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode(errors='surrogatepass')):08x}"
