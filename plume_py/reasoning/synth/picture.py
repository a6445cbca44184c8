"""A history as a picture: sessions as columns, who read from whom as edges, and who had ended before whom began."""

from itertools import groupby, pairwise, permutations

from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.concrete_history import KEYS, Concrete
from plume_py.report.graphviz import FONT, MONO, PALE, Graph, font, lines, text
from plume_py.report.styles import LOOKS

START = "initial"


def picture(concrete: Concrete, title: str = "") -> str:
    """In Graphviz's language."""
    graph = Graph("history", label=text(title), labelloc="t", nodesep=0.6, ranksep=0.5)
    graph.defaults("node", fontname=MONO, fontsize=12, shape="box", style="rounded")
    graph.defaults("edge", fontname=FONT, fontsize=11, arrowsize=0.8)
    if any(source == INITIAL for txn in concrete.txns for _, source in txn.reads):
        label = lines([text("initial state"), text("all keys 0")])
        graph.node(START, label, style="rounded,dashed", color=PALE)
    for number, (_, group) in enumerate(groupby(concrete.by_session(), lambda t: concrete.txns[t].session)):
        _draw_session(graph, concrete, number, list(group))
    _draw_reads(graph, concrete)
    _draw_times(graph, concrete)
    return graph.source


def _draw_session(graph: Graph, concrete: Concrete, number: int, members: list[int]) -> None:
    look = LOOKS["SO"]
    label = text(f"session {number}")
    with graph.subgraph(f"cluster_{number}", label=label, fontsize=11, color="#C8C8C8") as cluster:
        for t in members:
            level = concrete.txns[t].level
            head = text(f"{concrete.name(t)}{f' at {level}' if level else ''} {concrete.times(t)}".rstrip())
            cluster.node(f"t{t}", lines([head, *(text(f"{kind}({x}, {v})") for kind, x, v in concrete.ops(t))]))
    for a, b in pairwise(members):
        graph.edge(f"t{a}", f"t{b}", font("SO", color=look.colour), style=look.style, color=look.colour, weight=9)


def _draw_reads(graph: Graph, concrete: Concrete) -> None:
    """An edge for all that one transaction read from another; pale from the initial state."""
    for t, txn in enumerate(concrete.txns):
        for source, reads in groupby(sorted(txn.reads, key=lambda read: read[1]), lambda read: read[1]):
            keys = ", ".join(sorted({KEYS[x] for x, _ in reads}))
            tail, colour = (START, "#9A9A9A") if source == INITIAL else (f"t{source}", LOOKS["WR"].colour)
            graph.edge(tail, f"t{t}", font(f"WR({keys})", color=colour), color=colour)


def _draw_times(graph: Graph, concrete: Concrete) -> None:
    """An edge from one who had ended to one of another session who began later, unless a third stands in between."""
    look, early = LOOKS["RT"], concrete.ended_before
    for a, b in permutations(range(len(concrete.txns)), 2):
        between = any(early(a, c) and early(c, b) for c in range(len(concrete.txns)))
        if early(a, b) and not between and not concrete.precedes(a, b):
            graph.edge(f"t{a}", f"t{b}", font("RT", color=look.colour), style=look.style, color=look.colour)
