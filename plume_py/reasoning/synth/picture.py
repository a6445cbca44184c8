"""Pictures in Graphviz's language: synthesized histories, hierarchies, witnesses and contradictions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise, permutations

from plume_py.base.text import display
from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.comparison import Hierarchy
from plume_py.reasoning.synth.concrete_history import KEY_NAMES, ConcreteHistory, LabeledHistory
from plume_py.reasoning.synth.definition import PartValue, sequences
from plume_py.reasoning.synth.judge import Judgement, involved
from plume_py.reasoning.synth.report import TIMES, witness_kind
from plume_py.reasoning.synth.synthesis import SeparatingHistory
from plume_py.report.graphviz import FONT, MONO, PALE, Graph, bold, font, lines, text
from plume_py.report.styles import LOOKS
from plume_py.report.text import operation

# Drawn: witnesses and contradictions of at most this many transactions, and this many operations of each transaction.
MOST_TXNS, MOST_OPERATIONS = 30, 12
INITIAL_NODE = "initial"
_FORBIDDEN = "#C00000"


def _graph(name: str, **attributes: object) -> Graph:
    graph = Graph(name, **attributes)
    graph.defaults("node", fontname=MONO, fontsize=12, shape="box", style="rounded")
    graph.defaults("edge", fontname=FONT, fontsize=11, arrowsize=0.8)
    return graph


# -- synthesized histories ---------------------------------------------------------------------------------------


def history_picture(concrete: ConcreteHistory, title: str = "") -> str:
    """Return a history as a picture: sessions as columns, edges for session order, reads-from and real time."""
    graph = _graph("history", label=text(title), labelloc="t", nodesep=0.6, ranksep=0.5)
    if any(source == INITIAL for txn in concrete.txns for _, source in txn.reads):
        label = lines([text("initial state"), text("all keys 0")])
        graph.node(INITIAL_NODE, label, style="rounded,dashed", color=PALE)
    for number, (_, group) in enumerate(groupby(concrete.by_session(), lambda t: concrete.txns[t].session)):
        _draw_session(graph, concrete, number, list(group))
    _draw_reads(graph, concrete)
    _draw_times(graph, concrete)
    return graph.source


def _draw_session(graph: Graph, concrete: ConcreteHistory, number: int, members: list[int]) -> None:
    look = LOOKS["SO"]
    label = text(f"session {number}")
    with graph.subgraph(f"cluster_{number}", label=label, fontsize=11, color="#C8C8C8") as cluster:
        for t in members:
            level = concrete.txns[t].level
            head = text(f"{concrete.name(t)}{f' at {level}' if level else ''} {concrete.times(t)}".rstrip())
            cluster.node(f"t{t}", lines([head, *(text(f"{kind}({x}, {v})") for kind, x, v in concrete.ops(t))]))
    for a, b in pairwise(members):
        graph.edge(f"t{a}", f"t{b}", font("SO", color=look.colour), style=look.style, color=look.colour, weight=9)


def _draw_reads(graph: Graph, concrete: ConcreteHistory) -> None:
    """Draw an edge for all that one transaction reads from another; edges from the initial state are pale."""
    for t, txn in enumerate(concrete.txns):
        for source, reads in groupby(sorted(txn.reads, key=lambda read: read[1]), lambda read: read[1]):
            keys = ", ".join(sorted({KEY_NAMES[x] for x, _ in reads}))
            tail, colour = (INITIAL_NODE, "#9A9A9A") if source == INITIAL else (f"t{source}", LOOKS["WR"].colour)
            graph.edge(tail, f"t{t}", font(f"WR({keys})", color=colour), color=colour)


def _draw_times(graph: Graph, concrete: ConcreteHistory) -> None:
    """Draw the real-time edges between sessions, except edges implied by two others."""
    look, early = LOOKS["RT"], concrete.ended_before
    for a, b in permutations(range(len(concrete.txns)), 2):
        between = any(early(a, c) and early(c, b) for c in range(len(concrete.txns)))
        if early(a, b) and not between and not concrete.precedes(a, b):
            graph.edge(f"t{a}", f"t{b}", font("RT", color=look.colour), style=look.style, color=look.colour)


# -- hierarchies -------------------------------------------------------------------------------------------------


def hierarchy_picture(hierarchy: Hierarchy) -> str:
    """Return a hierarchy as a picture: stronger levels above, on each edge a history that only the lower one allows."""
    caption = [
        "Stronger levels are higher. On an edge, a line per session: a smallest history that tells them apart.",
        f"Compared on all histories of up to {hierarchy.scope}.",
    ]
    if hierarchy.timed:
        caption.insert(1, f"{TIMES}.")
    graph = Graph("hierarchy", label=lines(map(text, caption)), labelloc="b", fontsize=11, rankdir="BT")
    graph.defaults("graph", nodesep=1.0, ranksep=0.9)
    graph.defaults("node", fontname=FONT, fontsize=13, shape="box", style="rounded")
    graph.defaults("edge", fontname=MONO, fontsize=9, arrowsize=0.8, color="#0068A5")
    for number in range(len(hierarchy.classes)):
        graph.node(f"c{number}", text(hierarchy.name(number)))
    for step in hierarchy.steps:
        sessions = step.separation.found[0].concrete.session_lines()
        graph.edge(f"c{step.below}", f"c{step.above}", lines((text(f"  {line}") for line in sessions), align="left"))
    return graph.source


# -- witnesses and contradictions --------------------------------------------------------------------------------


def judgement_picture(judged: Judgement) -> str | None:
    """Return the witness, or the reasons that contradict each other, as a picture; None if there is none to draw."""
    if judged.history is None or judged.ok is None or judged.flaws:
        return None
    if judged.ok:
        if not 0 < len(judged.history.concrete.txns) <= MOST_TXNS or judged.form == "history":
            return None
        draw = _declared_witness_picture if judged.form == "own" else _witness_picture
        return draw(judged, judged.history)
    return _argument_picture(judged, judged.history) if len(involved(judged.reasons)) <= MOST_TXNS else None


def witness_pictures(found: SeparatingHistory) -> Iterator[tuple[str, str]]:
    """Yield each allowed level of a synthesized history, and the picture of its witness."""
    history = LabeledHistory.of_concrete(found.concrete)
    for witness in found.witnesses:
        form = "own" if witness.declared else "co" if witness.visible_pairs is None else "vis"
        drawn = judgement_picture(Judgement(witness.level, form, "", True, history, witness))
        if drawn is not None:
            yield witness.level, drawn


def _judgement_graph(caption: Sequence[str], loc: str, history: LabeledHistory, txns: Iterable[int]) -> Graph:
    """Return a graph with a node per transaction, and with a caption at the top ("t") or bottom ("b")."""
    label = lines(map(text, caption), align="left" if len(caption) > 1 else "")
    graph = _graph("judged", label=label, labelloc=loc, fontsize=12, rankdir="LR", nodesep=0.5, ranksep=0.9)
    for t in txns:
        txn = history.txns[t]
        ops = [text(operation(op)) for op in txn.ops[:MOST_OPERATIONS]]
        more = [text("…")] if len(txn.ops) > MOST_OPERATIONS else []
        session = font(f"session {display(txn.session)}", color=PALE, point_size=9)
        graph.node(f"t{t}", lines([bold(text(history.txn(t))), session, *ops, *more]))
    return graph


def _witness_picture(judged: Judgement, history: LabeledHistory) -> str:
    """Draw the transactions in the order of the witness, with edges for visibility or reads-from."""
    assert judged.witness is not None
    order, visible = judged.witness.order, judged.witness.visible_pairs
    name = "AR" if visible is not None else "CM"
    caption = [f"{judged.level} holds: {name} is the order from left to right"]
    graph = _judgement_graph(caption, "t", history, order)
    for a, b in pairwise(order):
        graph.edge(f"t{a}", f"t{b}", font(name, color=PALE), color=PALE, style="dashed", weight=9)
    reads = {(u, t) for t in order for _, u in history.concrete.txns[t].reads if u >= 0}
    for a, b in sorted(visible if visible is not None else reads):
        keys = sorted({history.key(x) for x, u in history.concrete.txns[b].reads if u == a})
        words = [*(["VIS"] if visible is not None else []), *([f"WR({', '.join(keys)})"] if keys else [])]
        colour = LOOKS["WR"].colour
        graph.edge(f"t{a}", f"t{b}", font(" ".join(words), color=colour), color=colour, constraint="false")
    return graph.source


def _declared_witness_picture(judged: Judgement, history: LabeledHistory) -> str:
    """Draw the transactions with edges for reads-from and for each declared part, orders as their neighbours."""
    assert judged.witness is not None
    txns = history.concrete.txns
    graph = _judgement_graph([f"{judged.level} holds"], "t", history, range(len(txns)))
    for t, txn in enumerate(txns):
        for x, u in txn.reads:
            if u >= 0:
                words = font(f"WR({history.key(x)})", color=LOOKS["WR"].colour)
                graph.edge(f"t{u}", f"t{t}", words, color=LOOKS["WR"].colour)
    for name, kind, value in judged.witness.declared:
        for a, b, key in _part_edges(value, kind, lambda x: [t for t, txn in enumerate(txns) if x in txn.writes]):
            label = name if key is None else f"{name}({history.key(key)})"
            graph.edge(f"t{a}", f"t{b}", font(label, color=PALE), color=PALE, style="dashed")
    return graph.source


def _part_edges(
    value: PartValue, kind: str, writers: Callable[[int], Sequence[int]]
) -> Iterator[tuple[int, int, int | None]]:
    """Yield (a, b, key or None): the pairs of a relation, or neighbours in an order, for versions among writers."""
    if isinstance(value, frozenset):
        yield from ((a, b, None) for a, b in sorted(value))
        return
    for x, order in enumerate(sequences(value, kind)):
        drawn = [t for t in order if t in writers(x)] if kind == "versions" else order
        yield from ((a, b, x if kind == "versions" else None) for a, b in pairwise(drawn))


def _argument_picture(judged: Judgement, history: LabeledHistory) -> str:
    """Draw the involved transactions, and an edge for each numbered reason about two of them."""
    caption = [f"{judged.level} is violated: no {witness_kind(judged)} keeps all of this"]
    caption += [f"{number}. {reason.words}" for number, reason in enumerate(judged.reasons, 1)]
    graph = _judgement_graph(caption, "b", history, involved(judged.reasons))
    for number, reason in enumerate(judged.reasons, 1):
        if reason.edge is not None:
            a, b, name, forbidden = reason.edge
            built_in = name in ("VIS", "CM", "AR", "SO", "RT", "WW") and not forbidden
            colour = _FORBIDDEN if forbidden else LOOKS["WR"].colour if built_in else LOOKS["CM"].colour
            label = font(f"{number}. {'not ' if forbidden else ''}{name}", color=colour)
            graph.edge(f"t{a}", f"t{b}", label, color=colour, style="solid" if built_in else "dashed")
    return graph.source
