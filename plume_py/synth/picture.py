"""A history as a Graphviz graph: sessions as columns, who read from whom as edges. All names in it are made by us."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from plume_py.report.dot import FONT, LOOKS, MONO
from plume_py.synth.concrete import KEYS, Concrete
from plume_py.synth.view import INITIAL


def picture(concrete: Concrete, title: str = "") -> str:
    """In Graphviz's language."""
    return "\n".join(_graph(concrete, title)) + "\n"


def _graph(concrete: Concrete, title: str) -> Iterator[str]:
    so, wr = LOOKS["SO"], LOOKS["WR"]
    yield "digraph history {"
    yield f'  graph [fontname="{FONT}" label="{title}" labelloc=t nodesep=0.6 ranksep=0.5 bgcolor=white pad=0.2]'
    yield f'  node [fontname="{MONO}" fontsize=12 shape=box style=rounded]'
    yield f'  edge [fontname="{FONT}" fontsize=11 arrowsize=0.8]'
    if any(source == INITIAL for txn in concrete.txns for _, source in txn.reads):
        yield '  initial [label="initial state\\nall keys 0" style="rounded,dashed" color="#767676"]'
    for number, (_, group) in enumerate(groupby(concrete.by_session(), lambda t: concrete.txns[t].session)):
        yield f'  subgraph cluster_{number} {{ label="session {number}" fontsize=11 color="#C8C8C8"'
        members = list(group)
        for t in members:
            ops = "\\n".join(f"{kind}({x}, {value})" for kind, x, value in concrete.ops(t))
            level = f" at {concrete.txns[t].level}" if concrete.txns[t].level else ""
            yield f'    t{t} [label="{concrete.name(t)}{level}\\n{ops}"]'
        yield "  }"
        for a, b in pairwise(members):
            yield f'  t{a} -> t{b} [style={so.style} color="{so.colour}" fontcolor="{so.colour}" label="SO" weight=9]'
    for t, txn in enumerate(concrete.txns):
        for source, group_of_reads in groupby(sorted(txn.reads, key=lambda read: read[1]), lambda read: read[1]):
            keys = ", ".join(sorted({KEYS[x] for x, _ in group_of_reads}))
            tail, pale = ("initial", True) if source == INITIAL else (f"t{source}", False)
            colour = "#9A9A9A" if pale else wr.colour
            yield f'  {tail} -> t{t} [color="{colour}" fontcolor="{colour}" label="WR({keys})"]'
    yield "}"
