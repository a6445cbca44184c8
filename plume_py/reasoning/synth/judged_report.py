"""What ``judge`` found, as a verdict for reports, and as a picture."""

from collections.abc import Iterator
from itertools import pairwise

from plume_py.base.text import display
from plume_py.checking.result import LevelVerdict
from plume_py.history.model import Transaction
from plume_py.reasoning.synth.explain import involved
from plume_py.reasoning.synth.from_file import Given, as_given
from plume_py.reasoning.synth.judge import Judgement
from plume_py.reasoning.synth.report import order_of
from plume_py.reasoning.synth.structures import edges
from plume_py.reasoning.synth.synthesis import SeparatingHistory
from plume_py.report.graphviz import FONT, MONO, PALE, Graph, bold, font, lines, text
from plume_py.report.styles import LOOKS
from plume_py.report.text import operation

# Transactions of which a witness is still told or drawn, and operations of each.
TOLD, DRAWN, OPERATIONS = 12, 30, 12
_WITNESS = {"vis": "arbitration order with a visibility", "co": "commit order", "own": "witness as it declares one"}
_NEVER = "#C00000"


def verdict(judged: Judgement) -> LevelVerdict:
    """For all reports: the words of an explanation are its ``because``."""
    if judged.ok is None:
        return LevelVerdict(None, reason=judged.why, order=judged.order)
    if judged.flaws:
        reason = "a read is wrong by itself, which every level rules out"
        return LevelVerdict(False, judged.flaws, reason=reason, order=judged.order)
    if judged.ok:
        return LevelVerdict(True, order=judged.order, because=tuple(_shown(judged)))
    if judged.why:
        return LevelVerdict(False, reason=judged.why, order=judged.order)
    of = (
        "what it asks of the history cannot be true"
        if not _searched(judged)
        else f"no {_kind(judged)} keeps all of this"
    )
    return LevelVerdict(False, reason=of, order=judged.order, because=tuple(_argument(judged)))


def _searched(judged: Judgement) -> bool:
    return judged.form != "history"


def _kind(judged: Judgement) -> str:
    return _WITNESS.get(judged.form, "witness")


def _shown(judged: Judgement) -> Iterator[str]:
    """The witness, if it can be read."""
    found = judged.witness if _searched(judged) else None
    if judged.given is not None and found is not None and len(found.order) <= TOLD:
        yield order_of(found, judged.given.txn)


def _argument(judged: Judgement) -> Iterator[str]:
    """Who takes part, and what contradicts each other."""
    if judged.given is not None:
        for t in involved(judged.reasons):
            yield f"{judged.given.txn(t)} {_operations(judged.given.txns[t])}"
    for number, reason in enumerate(judged.reasons, 1):
        yield f"{number}. {reason.words}"


def _operations(txn: Transaction) -> str:
    ops = " ".join(map(operation, txn.ops[:OPERATIONS]))
    more = len(txn.ops) - OPERATIONS
    return f"[session {display(txn.session)}] {ops}" + (f" (and {more} more)" if more > 0 else "")


# -- pictures ------------------------------------------------------------------------------------------------------


def picture(judged: Judgement) -> str | None:
    """In Graphviz's language: the witness in its order, or what contradicts each other; None if it cannot be drawn."""
    if judged.given is None or judged.ok is None or judged.flaws:
        return None
    if judged.ok:
        size = len(judged.given.concrete.txns)
        if not 0 < size <= DRAWN or not _searched(judged):
            return None
        draw = _declared_picture if judged.form == "own" else _witness_picture
        return draw(judged, judged.given)
    return _argument_picture(judged, judged.given) if len(involved(judged.reasons)) <= DRAWN else None


def found_pictures(found: SeparatingHistory) -> Iterator[tuple[str, str]]:
    """Of a history that a search found, each allowed level and how it shows itself there."""
    known = as_given(found.concrete)
    for shown in found.witnesses:
        form = "own" if shown.declared else "co" if shown.sees is None else "vis"
        drawn = picture(Judgement(shown.level, form, "", True, known, shown))
        if drawn is not None:
            yield shown.level, drawn


def _graph(words: list[str], loc: str) -> Graph:
    """Words below a title are those of an argument."""
    label = lines(map(text, words), align="left" if len(words) > 1 else "")
    graph = Graph("judged", label=label, labelloc=loc, fontsize=12, rankdir="LR", nodesep=0.5, ranksep=0.9)
    graph.defaults("node", fontname=MONO, fontsize=12, shape="box", style="rounded")
    graph.defaults("edge", fontname=FONT, fontsize=11, arrowsize=0.8)
    return graph


def _node(graph: Graph, known: Given, t: int) -> None:
    ops = [text(operation(op)) for op in known.txns[t].ops[:OPERATIONS]]
    more = [text("…")] if len(known.txns[t].ops) > OPERATIONS else []
    session = font(f"session {display(known.txns[t].session)}", color=PALE, point_size=9)
    graph.node(f"t{t}", lines([bold(text(known.txn(t))), session, *ops, *more]))


def _witness_picture(judged: Judgement, known: Given) -> str:
    """Everyone in the order of the witness, from left to right, and who is seen by whom."""
    assert judged.witness is not None
    order, sees = judged.witness.order, judged.witness.sees
    name = "AR" if sees is not None else "CM"
    graph = _graph([f"{judged.level} holds: {name} is the order from left to right"], "t")
    for t in order:
        _node(graph, known, t)
    for a, b in pairwise(order):
        graph.edge(f"t{a}", f"t{b}", font(name, color=PALE), color=PALE, style="dashed", weight=9)
    reads = {(u, t) for t in order for _, u in known.concrete.txns[t].reads if u >= 0}
    for a, b in sorted(sees if sees is not None else reads):
        keys = sorted({known.key(x) for x, u in known.concrete.txns[b].reads if u == a})
        words = [*(["VIS"] if sees is not None else []), *([f"WR({', '.join(keys)})"] if keys else [])]
        colour = LOOKS["WR"].colour
        graph.edge(f"t{a}", f"t{b}", font(" ".join(words), color=colour), color=colour, constraint="false")
    return graph.source


def _declared_picture(judged: Judgement, known: Given) -> str:
    """Everyone, who read from whom, and each part of the witness, orders as steps from one to the next."""
    assert judged.witness is not None
    graph = _graph([f"{judged.level} holds"], "t")
    txns = known.concrete.txns
    for t in range(len(txns)):
        _node(graph, known, t)
    for t, txn in enumerate(txns):
        for x, u in txn.reads:
            if u >= 0:
                words = font(f"WR({known.key(x)})", color=LOOKS["WR"].colour)
                graph.edge(f"t{u}", f"t{t}", words, color=LOOKS["WR"].colour)
    for name, kind, value in judged.witness.declared:
        for a, b, key in edges(value, kind, lambda x: [t for t, txn in enumerate(txns) if x in txn.writes]):
            called = name if key is None else f"{name}({known.key(key)})"
            graph.edge(f"t{a}", f"t{b}", font(called, color=PALE), color=PALE, style="dashed")
    return graph.source


def _argument_picture(judged: Judgement, known: Given) -> str:
    """Those who take part, and an arrow for each reason that is about two of them, with its number."""
    words = [f"{number}. {reason.words}" for number, reason in enumerate(judged.reasons, 1)]
    graph = _graph([f"{judged.level} is violated: no {_kind(judged)} keeps all of this", *words], "b")
    for t in involved(judged.reasons):
        _node(graph, known, t)
    for number, reason in enumerate(judged.reasons, 1):
        if reason.arrow is not None:
            a, b, name, never = reason.arrow
            given = name in ("VIS", "CM", "AR", "SO", "RT", "WW") and not never
            colour = _NEVER if never else LOOKS["WR"].colour if given else LOOKS["CM"].colour
            label = font(f"{number}. {'not ' if never else ''}{name}", color=colour)
            graph.edge(f"t{a}", f"t{b}", label, color=colour, style="solid" if given else "dashed")
    return graph.source
