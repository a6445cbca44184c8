"""Pictures: a counterexample as a Graphviz graph, one table per transaction and edges from operation to operation.

Sessions are columns, and time runs downwards in them. Nothing from a history reaches Graphviz except as escaped text of
an HTML-like label: names, ports and attributes are all made here, so no key or value can change the graph.
"""

import re
import shutil
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plume_py.errors import IsocheckError
from plume_py.files import write_atomically
from plume_py.history.atoms import Atom
from plume_py.report.verdict import INITIAL, Id, Result, ShownTransaction, Step, Violation
from plume_py.text import ELLIPSIS, shown, visible
from plume_py.weak.taps import TAPS

INSTALL_HINT = (
    "Graphviz is not installed, so the pictures are .dot files only; "
    "install it with `apt-get install graphviz` (Debian) or `brew install graphviz` (macOS)"
)

# Longest spelling of a key, value or id; a picture has less room than a line of text.
LIMIT = 24
# A transaction with more operations than this shows only those that an edge touches.
MANY_OPS = 10
# After this many pictures that took too long, the rest stay .dot files.
SLOW_PICTURES = 3

FONT = "Helvetica,Arial,sans-serif"
MONO = "Menlo,Consolas,DejaVu Sans Mono,monospace"
PALE = "#767676"


@dataclass(frozen=True)
class Look:
    """How a relation is drawn: told apart by line and arrow head as well as by colour (Okabe and Ito's palette)."""

    colour: str
    style: str
    head: str
    sample: str  # the line in characters, for the legend
    meaning: str


LOOKS = {
    "SO": Look("#007D5B", "dashed", "normal", "╌╌▶", "session order"),
    "WR": Look("#0068A5", "solid", "normal", "──▶", "is read by"),
    "CM": Look("#C24E00", "double", "normal", "══▶", "must commit before"),
    "WW": Look("#8A6100", "dotted", "vee", "┈┈▷", "is appended before"),
    "RW": Look("#A3457C", "dotted", "onormal", "┈┈▷", "reads what is overwritten by"),
}


@dataclass(frozen=True)
class Arrow:
    """An edge to draw: a step of the argument (``number`` > 0) or what supports one."""

    step: Step
    tail: str
    head: str
    number: int = 0
    reason: tuple[str, ...] = ()


@dataclass
class Picture:
    """A violation with names for its nodes and cells, and the edges to draw."""

    violation: Violation
    arrows: list[Arrow] = field(default_factory=list)
    initial_keys: dict[Atom, Atom] = field(default_factory=dict)  # those read from the initial state, with their values

    def __post_init__(self) -> None:
        self.nodes = {transaction.id: f"t{i}" for i, transaction in enumerate(self.violation.transactions)}
        self.by_id = {transaction.id: transaction for transaction in self.violation.transactions}
        for number, step in enumerate(self.violation.steps, 1):
            self._add(step, number)
        for step in self.violation.steps:
            for support in (*_question(self, step), *step.evidence):
                self._add(support)
        self.cells = {arrow.tail for arrow in self.arrows} | {arrow.head for arrow in self.arrows}
        self.bold = {end for arrow in self.arrows if arrow.number for end in (arrow.tail, arrow.head)}

    def _add(self, step: Step, number: int = 0) -> None:
        """An edge, unless it is already there."""
        tail, head = self._end(step, step.source), self._end(step, step.target)
        if number or all((a.tail, a.head, a.step.relation) != (tail, head, step.relation) for a in self.arrows):
            self.arrows.append(Arrow(step, tail, head, number, _reason(step)))

    def _end(self, step: Step, end: Id) -> str:
        """The node or the cell at which the edge of ``step`` begins or ends."""
        if end == INITIAL and INITIAL not in self.by_id:
            self.initial_keys.setdefault(step.key, step.value)
            return f"initial:k{list(self.initial_keys).index(step.key)}"
        if end not in self.nodes:
            return ""
        reads = step.relation == "WR" and end == step.target or step.relation == "RW" and end == step.source
        place = _cell(self.by_id[end], step, reads)
        return self.nodes[end] if place is None else f"{self.nodes[end]}:o{place}"


def _question(picture: Picture, step: Step) -> Iterator[Step]:
    """The read that is the reason of a CM or WW step, as a step of its own: it is half of the evidence."""
    reader = picture.by_id.get(step.reader) if step.reader is not None else None
    if reader is None:
        return
    reads = [_last(op[2]) for op in reader.ops if op[0] == "r" and op[1] == step.key]
    if step.target == INITIAL:
        written = {_last(op[2]) for t in picture.violation.transactions for op in t.ops if op[:2] == ("w", step.key)}
        values = [value for value in reads if value not in written] or reads
    else:
        source = picture.by_id.get(step.target)
        written = {op[2] for op in source.ops if op[0] != "r" and op[1] == step.key} if source else set()
        values = [value for value in reads if value in written]
    for value in values[:1]:
        yield Step(step.target, reader.id, "WR", step.key, value=value)


def _cell(transaction: ShownTransaction, step: Step, reads: bool) -> int | None:
    """The operation of ``transaction`` that ``step`` speaks of; None where it speaks of the transaction as a whole."""
    if step.relation == "SO":
        return None
    places = [i for i, op in enumerate(transaction.ops) if (op[0] == "r") == reads and op[1] == step.key]
    exact = [i for i in places if _last(transaction.ops[i][2]) == step.value]
    # Without a value (CM, WW), it is the last write of the key that others see.
    return exact[0] if exact and step.relation == "WR" else places[-1] if places else None


def _last(value: object) -> object:
    """What a read saw last: of a list, its last element."""
    return (value[-1] if value else None) if isinstance(value, tuple | list) else value


def _reason(step: Step) -> tuple[str, ...]:
    """The short reason of a forced edge, in lines."""
    if step.reader is None:
        return ()
    reader, key, source = _name(step.reader), shown(step.key, LIMIT), _name(step.source)
    if step.relation == "WW":
        return (f"as {reader}'s", f"list {key} shows")
    whose = f"initial {key}," if step.target == INITIAL else f"{key} from {_name(step.target)},"
    saw = "is after" if all(e.relation == "SO" for e in step.evidence) else "saw"
    return (f"{reader} read", whose, f"{saw} {source}")


def _name(name: Id) -> str:
    return shown(name, LIMIT)


def _html(text: str) -> str:
    """Text in an HTML-like label: also the backslash, which Graphviz expands in places."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\\", "&#92;")):
        text = text.replace(character, entity)
    return text


def _font(text: str, **attributes: object) -> str:
    """Escaped text in a font."""
    given = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<font {given}>{_html(text)}</font>"


def _attributes(**attributes: object) -> str:
    """[a="b"]; only for values made here. Labels are HTML-like and come without their angle brackets."""
    pairs = (f"{k}=<{v}>" if k == "label" else f'{k}="{v}"' for k, v in attributes.items())
    return f"[{' '.join(pairs)}]"


def render(violation: Violation, title: str = "") -> str:
    """The picture of one counterexample in Graphviz's language."""
    picture = Picture(violation)
    return "\n".join(_graph(picture, title)) + "\n"


def _graph(picture: Picture, title: str) -> Iterator[str]:
    yield "digraph counterexample {"
    yield f'  graph [fontname="{FONT}" labelloc=b nodesep=0.5 ranksep=0.5 newrank=true bgcolor=white pad=0.2]'
    yield f'  node [fontname="{FONT}" fontsize=12 shape=plain]'
    yield f'  edge [fontname="{FONT}" fontsize=11 arrowsize=0.8]'
    yield f"  label=<{_legend(picture)}>"
    yield "  subgraph cluster_all {"
    yield f"    label=<{_title(picture.violation, title)}> labelloc=t color=none"
    if picture.initial_keys:
        yield f"    initial {_attributes(label=_initial(picture), **{'class': 'initial'})}"
    for number, session in enumerate(_sessions(picture.violation)):
        yield from _column(picture, number, session)
    for arrow in picture.arrows:
        if arrow.tail and arrow.head:
            yield f"    {arrow.tail} -> {arrow.head} {_edge(arrow)}"
    yield "  }"
    yield "}"


def _sessions(violation: Violation) -> list[list[ShownTransaction]]:
    """The transactions by session, both in the order of the history."""
    sessions: dict[Id, list[ShownTransaction]] = {}
    for transaction in violation.transactions:
        sessions.setdefault(transaction.session, []).append(transaction)
    return list(sessions.values())


def _column(picture: Picture, number: int, session: list[ShownTransaction]) -> Iterator[str]:
    yield f"    subgraph cluster_{number} {{"
    label = _font(f"session {_name(session[0].session)}", point_size=11, color=PALE)
    yield f'      label=<{label}> style="rounded,filled" fillcolor="#F6F6F6" color="#D0D0D0" margin=12'
    for transaction in session:
        node = picture.nodes[transaction.id]
        attributes = _attributes(label=_table(picture, transaction), group=f"s{number}", **{"class": "transaction"})
        yield f"      {node} {attributes}"
    names = [picture.nodes[transaction.id] for transaction in session]
    drawn = {(a.tail, a.head) for a in picture.arrows}
    for pair in zip(names, names[1:], strict=False):
        if pair not in drawn:
            yield f'      {pair[0]} -> {pair[1]} [color="#C0C0C0" arrowhead=none weight=20]'
    yield "    }"


def _table(picture: Picture, transaction: ShownTransaction) -> str:
    """A transaction: a header, and a cell per operation, in program order."""
    node = picture.nodes[transaction.id]
    in_cycle = any(end.split(":")[0] == node for end in picture.bold)
    head = f"<b>{_html(_name(transaction.id))}</b>"
    if transaction.status != "committed":
        head += " " + _font(f"({transaction.status})", color="#B00020")
    place = _font(shown(transaction.place, LIMIT), point_size=9, color="#505050")
    rows = [f'<tr><td bgcolor="{"#FFE3A3" if in_cycle else "#E6E6E6"}">{head}<br/>{place}</td></tr>']
    hidden = transaction.hidden_ops
    for i, op in enumerate(transaction.ops):
        if len(transaction.ops) > MANY_OPS and f"{node}:o{i}" not in picture.cells:
            hidden += 1
            continue
        rows.append(f'<tr><td port="o{i}" {_cell_colour(picture, transaction, node, i)}>{_operation(op)}</td></tr>')
    if hidden:
        rows.append(f"<tr><td>{_font(f'and {hidden} more', point_size=9, color=PALE)}</td></tr>")
    border = 'color="#202020" border="2"' if in_cycle else 'color="#909090" border="1"'
    return f'<table bgcolor="white" cellborder="1" cellspacing="0" cellpadding="4" {border}>{"".join(rows)}</table>'


def _cell_colour(picture: Picture, transaction: ShownTransaction, node: str, i: int) -> str:
    if _is_culprit(picture.violation, transaction, transaction.ops[i]):
        return 'bgcolor="#FFC9C9"'
    return 'bgcolor="#FFF6DD"' if f"{node}:o{i}" in picture.bold else ""


def _is_culprit(violation: Violation, transaction: ShownTransaction, op: tuple[object, ...]) -> bool:
    """Is this the read that is wrong by itself (patterns of a single read, which have no cycle)?"""
    value = op[2]
    text = f"[{shown(' '.join(map(str, value)))}]" if isinstance(value, tuple | list) else shown(value)
    said = f"{shown(transaction.id)} read {shown(op[1])} = {text}"
    told = violation.explanation
    return op[0] == "r" and not is_cycle(violation) and bool(re.search(re.escape(said) + r"(,|:|;| from|$)", told))


def _operation(op: tuple[object, ...]) -> str:
    kind, key, value = op
    if isinstance(value, tuple | list):
        text = visible(" ".join(str(v) for v in value[-LIMIT:]))
        short = text if len(text) <= LIMIT and len(value) <= LIMIT else ELLIPSIS + text[1 - LIMIT :]
        spelled = f"[{short}]"
    else:
        spelled = shown(value, LIMIT)
    return _font(f"{kind}({shown(key, LIMIT)}, {spelled})", face=MONO, point_size=11)


def _initial(picture: Picture) -> str:
    rows = ["<tr><td bgcolor='#E3E3F5'><b>initial state</b><br/>" + _font("before everything", point_size=9) + "</td></tr>"]
    for i, (key, value) in enumerate(picture.initial_keys.items()):
        rows.append(f'<tr><td port="k{i}">{_font(f"{shown(key, LIMIT)} = {shown(value, LIMIT)}", face=MONO)}</td></tr>')
    return f'<table bgcolor="white" cellspacing="0" cellpadding="4" style="rounded">{"".join(rows)}</table>'


def _edge(arrow: Arrow) -> str:
    relation = arrow.step.relation
    look = LOOKS[relation]
    thick = bool(arrow.number)
    key = "" if relation == "SO" else f"({shown(arrow.step.key, LIMIT)})"
    lead = f"{arrow.number}. " if arrow.number else ""
    lines = [_font(f"{lead}{relation}{key}", color=look.colour, point_size=12 if thick else 10)]
    lines += [_font(line, color=look.colour, point_size=10) for line in (arrow.reason if thick else ())]
    if thick:
        lines[0] = f"<b>{lines[0]}</b>"
    colour = f"{look.colour}:white:{look.colour}" if look.style == "double" else look.colour
    return _attributes(
        label="<br/>".join(lines),
        color=colour,
        style="solid" if look.style == "double" else look.style,
        arrowhead=look.head,
        penwidth=(2.0 if look.style == "double" else 3.0) if thick else 1.0,
        constraint="false" if relation in ("CM", "RW") else "true",
        weight=20 if relation == "SO" else 2,
        **{"class": f"{relation} step-{arrow.number}" if arrow.number else f"{relation} evidence"},
    )


def is_cycle(violation: Violation) -> bool:
    """Do the steps lead back to where they began?"""
    steps = violation.steps
    return bool(steps) and all(a.target == b.source for a, b in zip(steps, (*steps[1:], steps[0]), strict=True))


def _title(violation: Violation, title: str) -> str:
    tap = TAPS.get(violation.tap)
    label = f"TAP-{violation.tap} {violation.name}" if len(violation.tap) == 1 else violation.name
    lines = [f"<b>{_font(label, point_size=16)}</b>"]
    if tap is not None:
        lines.append(_font(tap.description, point_size=12))
    if title:
        lines.append(_font(shown(title, 80), point_size=10, color=PALE))
    return "<br/>".join(lines) + "<br/> "


def _legend(picture: Picture) -> str:
    present = {arrow.step.relation for arrow in picture.arrows}
    cells = [
        _font(look.sample, color=look.colour, face=MONO) + " " + _font(f"{relation}: {look.meaning}", point_size=10)
        for relation, look in LOOKS.items()
        if relation in present
    ]
    if present:
        cells.append(_font("thick: the argument; thin: what supports it", point_size=10))
    return f'<table border="0" cellspacing="8"><tr>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr></table>' if cells else " "
