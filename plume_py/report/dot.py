"""Draw a counterexample as a Graphviz graph: one table per transaction, and edges from operation to operation.

Called for ``--out`` and ``--format dot``, and by the API. Sessions are columns, and time runs downwards in them.
``dot_layout`` decides on columns and rows; ``graphviz`` builds the source and runs dot.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from plume_py.base.text import ELLIPSIS, display, key_text, txn_text, visible, wrapped
from plume_py.checking.result import Id, Result, ShownTransaction, Step, Violation
from plume_py.history.model import INITIAL_ID
from plume_py.report.dot_layout import (
    HEADER,
    INITIAL_NODE,
    Arrow,
    Fold,
    Picture,
    column_slots,
    columns_of,
    node_of,
    rows_of,
)
from plume_py.report.graphviz import FONT, MONO, PALE, Album, Graph, Markup, bold, cell, font, lines, slug, table, text
from plume_py.report.styles import EXCLUDED, LOOKS, Look
from plume_py.report.wording import bracketed, place, session_node

# Longest key, value or id, in characters.
LIMIT = 24
# Longest headline or conclusion, in characters.
SENTENCE = 600
# In a transaction with more operations, only operations at the end of an edge are shown.
MANY_OPS = 10

STRAIGHT = 100  # weight of an edge that should be vertical
LINE = "line"  # prefix of the names of the points on a column's line
LANE: dict[str, object] = {"color": "#C8C8C8", "border": 1}
INVISIBLE: dict[str, object] = {"style": "invis"}
POINT: dict[str, object] = {"shape": "point", "width": 0.01, **INVISIBLE}


def look_of(step: Step) -> Look:
    """Return the style in which the edge of a step is drawn."""
    return EXCLUDED if step.assumed else LOOKS[step.relation]


def _reason(step: Step) -> tuple[str, ...]:
    """Return the short reason of a forced edge, as lines."""
    if step.is_proved:
        return ("the opposite", "is excluded")
    if step.reader is None:
        return ()
    reader, key, source = _name(step.reader), key_text(step.key, LIMIT), _name(step.source)
    if step.relation == "WW":
        return (f"as {reader}'s", f"list {display(step.key, LIMIT)} shows")
    whose = f"initial {key}," if step.target == INITIAL_ID else f"{key} from {_name(step.target)},"
    saw = "is after" if all(e.is_given for e in step.evidence) else "saw"
    return (f"{reader} read", whose, f"{saw} {source}")


def _name(name: Id) -> str:
    return txn_text(name, LIMIT) or '""'


def render(violation: Violation, title: str = "") -> str:
    return render_all([(violation, title)])


def render_all(titled: Sequence[tuple[Violation, str]]) -> str:
    """Return one graph with the pictures of all counterexamples, one below the other."""
    graph = Graph("counterexamples", nodesep=0.35, ranksep=0.3, newrank="true")
    graph.defaults("node", fontname=FONT, fontsize=12, shape="plain")
    graph.defaults("edge", fontname=FONT, arrowsize=0.8)
    if not titled:
        graph.node("none", font("no counterexample", point_size=12))
    if len(titled) == 1:
        picture = Picture(titled[0][0])
        graph.defaults("graph", label=_head(picture, titled[0][1]), labelloc="t")
        _draw(graph, picture)
        return graph.source
    above: list[str] = []
    for number, (violation, title) in enumerate(titled, 1):
        picture, prefix = Picture(violation), f"v{number}_"
        graph.node(f"{prefix}head", _head(picture, title))
        for foot in above:
            graph.edge(foot, f"{prefix}head", minlen=2, **INVISIBLE)
        with graph.subgraph(f"violation{number}", prefix=prefix) as part:
            columns = _draw(part, picture)
        for column in range(columns):
            graph.edge(f"{prefix}head", f"{prefix}top{column}", **INVISIBLE)
        above = [f"{prefix}end{column}" for column in range(columns)]
    return graph.source


def _head(picture: Picture, title: str) -> Markup:
    """Return the title and legend. As a cluster's label they would make Graphviz forget the order of its columns."""
    return table([[cell(_title(picture.violation, title))], [cell(_legend(picture))]], border=0)


def _draw(graph: Graph, picture: Picture) -> int:
    """Draw one counterexample; return its number of columns."""
    columns = columns_of(picture)
    rows = rows_of(picture, columns)
    steps = {(arrow.tail, arrow.head) for arrow in picture.arrows}
    grid = [column_slots(column, rows, steps) for column in columns]
    for name in _drawing_order(picture, columns, grid, rows):
        graph.node(name)
    for number, column in enumerate(columns):
        with graph.subgraph(f"lane{number}") as lane:
            _draw_lane(lane, picture, number, column, grid[number], steps)
    neighbours = {pair for column in columns for pair in pairwise(column)}
    for arrow in picture.arrows:
        upwards = rows[node_of(arrow.head)] < rows[node_of(arrow.tail)]
        weight = STRAIGHT if (arrow.tail, arrow.head) in neighbours else 1
        _draw_arrow(graph, arrow, _edge_ends(arrow, columns, upwards), upwards, weight)
    _draw_grid(graph, grid)
    return len(columns)


def _drawing_order(
    picture: Picture, columns: list[list[str]], grid: list[list[str | None]], rows: dict[str, int]
) -> list[str]:
    """Return the nodes in the order in which Graphviz should draw their edges.

    Graphviz draws the edges of early nodes first, and the lines of the columns should be below everything else. So
    their points come first. Transactions with edges across few columns follow, because lines also start at
    transactions.
    """
    points = [
        name for number, places in enumerate(grid) for name in _line(number, places) if name not in columns[number]
    ]
    column_of = {node: number for number, column in enumerate(columns) for node in column}
    crossed = dict.fromkeys(column_of, 0)
    for arrow in picture.arrows:
        upper, lower = sorted((node_of(arrow.tail), node_of(arrow.head)), key=lambda node: rows[node])
        crossed[upper] = max(crossed[upper], abs(column_of[upper] - column_of[lower]))
    return points + sorted(column_of, key=lambda node: crossed[node])


def _draw_lane(
    lane: Graph,
    picture: Picture,
    number: int,
    column: list[str],
    places: list[str | None],
    steps: set[tuple[str, str]],
) -> None:
    """Draw a session as in a sequence diagram: its name, and its transactions on a vertical line."""
    by_node = {picture.nodes[transaction.id]: transaction for transaction in picture.violation.transactions}
    top, group = f"top{number}", f"lane{number}"
    session_node_name = session_node(by_node[node] for node in column if node in by_node)
    line: dict[str, object] = {"color": "#E2E2E2", "penwidth": 4, "arrowhead": "none"}
    if column[0] not in by_node:
        line = INVISIBLE
        lane.node(top, Markup(""), group=group, **INVISIBLE)
        if column == [INITIAL_NODE]:
            lane.node(INITIAL_NODE, _initial(picture), group=group, class_="initial")
        for fold in picture.folds:
            if fold.node in column:
                lane.node(fold.node, _folded(fold), group=group, class_="folded")
    else:
        session = [font(f"session {display(by_node[column[0]].session, LIMIT)}", point_size=11, color=PALE)]
        if session_node_name:
            session.append(font(f"on {display(session_node_name, LIMIT)}", point_size=11, color=PALE))
        lane.node(top, _boxed_table([[cell(lines(session))]], LANE), group=group)
    for node in (n for n in column if n in by_node):
        lane.node(node, _table(picture, by_node[node], bool(session_node_name)), group=group, class_="transaction")
    names = _line(number, places)
    for name in names[1:]:
        if name not in column:
            lane.node(name, Markup(""), group=group, **POINT)
    for tail, head in pairwise(names):
        if (tail, head) not in steps:  # an edge of session order replaces that piece of the line
            ends = tail + _port(tail, "s"), head + _port(head, "n")
            lane.edge(*ends, weight=STRAIGHT, headclip="false", tailclip="false", **line)


def _line(number: int, places: list[str | None]) -> list[str]:
    """Return the nodes on the line of a column, from its top to its end."""
    middle = [_node_at(number, row, name) for row, name in enumerate(places, 1) if name is not None]
    return [f"top{number}", *middle, f"end{number}"]


def _node_at(column: int, row: int, name: str) -> str:
    """Return the node in a column and row: a transaction, or a point of the column's line."""
    return name or f"{LINE}{column}_{row}"


def _port(name: str, side: str) -> str:
    """Return the port where a line meets a node. Lines pass through points, and end at the border of other nodes."""
    return "" if name.startswith(LINE) else f":{side}"


def _draw_grid(graph: Graph, grid: list[list[str | None]]) -> None:
    """Keep the nodes in their rows, and the columns in their order, by invisible edges."""
    middle = [
        [_node_at(column, row, name) for column, name in enumerate(names) if name is not None]
        for row, names in enumerate(zip(*grid, strict=True), 1)
    ]
    rows = [[f"top{i}" for i in range(len(grid))], *middle, [f"end{i}" for i in range(len(grid))]]
    for number, names in enumerate(rows):
        with graph.subgraph(rank="same") as row:
            row.node(f"row{number}", Markup(""), **POINT)
            for left, right in pairwise(names):
                row.edge(left, right, **INVISIBLE)
            if len(names) == 1:
                row.node(names[0])
        if number:
            graph.edge(f"row{number - 1}", f"row{number}", **INVISIBLE)


def _edge_ends(arrow: Arrow, columns: list[list[str]], upwards: bool) -> tuple[str, str]:
    """Return the tail and head of an edge. Edges within a column run on its right; Graphviz chooses the side of others.

    An edge that leads up is written as one that leads down and points back, because it would distort the rows.
    """
    same = any(node_of(arrow.tail) in column and node_of(arrow.head) in column for column in columns)
    tail, head = (f"{end}:e" if same and ":" in end else end for end in (arrow.tail, arrow.head))
    return (head, tail) if upwards else (tail, head)


def _table(picture: Picture, transaction: ShownTransaction, node_in_lane: bool) -> Markup:
    """Return a transaction as a table: a header, and a cell per operation in program order."""
    node = picture.nodes[transaction.id]
    in_cycle = any(node_of(end) == node for end in picture.bold)
    name = bold(text(_name(transaction.id)))
    if transaction.status != "committed":
        name = Markup(f"{name} {font(f'({transaction.status})', color='#B00020')}")
    where = [font(display(place(transaction), LIMIT), point_size=9, color="#505050")]
    if transaction.node and not node_in_lane:
        where.append(font(f"on {display(transaction.node, LIMIT)}", point_size=9, color="#505050"))
    rows = [[cell(lines([name, *where]), port=HEADER, bgcolor="#FFE3A3" if in_cycle else "#E6E6E6")]]
    hidden = transaction.hidden_ops
    for i, op in enumerate(transaction.ops):
        if len(transaction.ops) > MANY_OPS and f"{node}:o{i}" not in picture.cells:
            hidden += 1
            continue
        rows.append([cell(_operation(op), port=f"o{i}", **_cell_colour(picture, f"{node}:o{i}"))])
    if hidden:
        rows.append([cell(font(f"and {hidden} more", point_size=9, color=PALE))])
    return _boxed_table(rows, {"color": "#202020", "border": 2} if in_cycle else {"color": "#909090", "border": 1})


def _boxed_table(rows: list[list[Markup]], line: dict[str, object]) -> Markup:
    return table(rows, bgcolor="white", cellborder=0, cellspacing=0, cellpadding=4, rows="*", **line)


def _cell_colour(picture: Picture, name: str) -> dict[str, str]:
    if name in picture.culprits:
        return {"bgcolor": "#FFC9C9"}
    return {"bgcolor": "#FFF6DD"} if name in picture.bold else {}


def _operation(op: tuple[object, ...]) -> Markup:
    kind, key, value = op
    if isinstance(value, tuple | list):
        elements = visible(" ".join(str(v) for v in value[-LIMIT:]))
        short = elements if len(elements) <= LIMIT and len(value) <= LIMIT else ELLIPSIS + elements[1 - LIMIT :]
        spelled = f"[{short}]"
    else:
        spelled = display(value, LIMIT)
    return font(f"{kind}({display(key, LIMIT)}, {spelled})", face=MONO, point_size=11)


def _initial(picture: Picture) -> Markup:
    rule = font("before everything", point_size=9)
    rows = [[cell(lines([bold(text("initial state")), rule]), bgcolor="#E3E3F5")]]
    for i, (key, value) in enumerate(picture.initial_keys.items()):
        rows.append([cell(font(f"{display(key, LIMIT)} = {display(value, LIMIT)}", face=MONO), port=f"k{i}")])
    return _boxed_table(rows, {"color": "#4A4A8A", "border": 2})


def _folded(fold: Fold) -> Markup:
    words = [bold(text(f"{ELLIPSIS} {len(fold.members)} more {ELLIPSIS}"))]
    if fold.steps:
        words.append(font(f"steps {min(fold.steps)} to {max(fold.steps)}", point_size=9, color="#505050"))
    return _boxed_table([[cell(lines(words))]], {"color": "#909090", "border": 1, "style": "dashed"})


def _draw_arrow(graph: Graph, arrow: Arrow, ends: tuple[str, str], upwards: bool, weight: int) -> None:
    look = look_of(arrow.step)
    head, tail = (look.tail, look.head) if upwards else (look.head, look.tail)
    graph.edge(
        *ends,
        table([[cell(lines(_edge_label(arrow)))]], border=0, cellborder=0, cellpadding=3),
        color=look.colour,
        style=look.style,
        dir="both",
        arrowhead=head,
        arrowtail=tail,
        penwidth=3 if arrow.number else 2 if arrow.step.assumed else 1,
        weight=weight,
        class_=_edge_class(arrow),
    )


def _edge_label(arrow: Arrow) -> list[Markup]:
    """Return the lines beside an edge."""
    colour = look_of(arrow.step).colour
    key = f"({display(arrow.step.key, LIMIT)})" if arrow.step.has_key else ""
    lead = f"{arrow.number}. " if arrow.number else "not " if arrow.step.assumed else ""
    first = font(f"{lead}{arrow.step.relation}{key}", color=colour, point_size=12 if arrow.number else 10)
    others = [words for other in arrow.also for words in _edge_label(other)]
    if not arrow.number:
        return [first, *others]
    return [bold(first), *(font(line, color=colour, point_size=10) for line in _reason(arrow.step)), *others]


def _edge_class(arrow: Arrow) -> str:
    relation = arrow.step.relation
    if arrow.number:
        return f"{relation} step-{arrow.number}"
    return f"{relation} excluded" if arrow.step.assumed else f"{relation} evidence"


def _title(violation: Violation, title: str) -> Markup:
    headline = wrapped("", display(violation.headline, SENTENCE), "", 70)
    words = [bold(font(line, point_size=15)) for line in headline]
    words.append(font(f"{violation.pattern.title}{bracketed(violation)}", point_size=12))
    words += [font(line, point_size=11) for line in wrapped("", display(violation.conclusion, SENTENCE), "", 90)]
    if title:
        words.append(font(display(title, 80), point_size=10, color=PALE))
    return lines(words)


def _legend(picture: Picture) -> Markup:
    steps = [each.step for arrow in picture.arrows for each in (arrow, *arrow.also)]
    lines_drawn = {look_of(arrow.step) for arrow in picture.arrows}
    present = {step.relation for step in steps if not step.assumed}
    looks = [(f"{relation}: {look.meaning}", look) for relation, look in LOOKS.items() if relation in present]
    if any(step.assumed for step in steps):
        looks.append((EXCLUDED.meaning, EXCLUDED))
    entries = []
    for words, look in looks:
        sample = font(look.sample if look in lines_drawn else " ", color=look.colour, face=MONO)
        entries.append(Markup(f"{sample} {font(words, point_size=10)}"))
    # the blank is there because a table needs a cell
    entries.append(font("thick: the argument; thin: what supports it" if present else " ", point_size=10))
    return table([[cell(entry) for entry in entries]], border=0, cellspacing=8)


def write_pictures(result: Result, album: Album) -> None:
    numbers: Counter[str] = Counter()
    for violation in result.violations:
        numbers[violation.tap] += 1
        name = f"{slug(result.history)}-{violation.pattern.label.lower()}-{numbers[violation.tap]}"
        album.add(name, render(violation, result.history))
