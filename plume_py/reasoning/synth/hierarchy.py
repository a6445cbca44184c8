"""The order of levels by strength, within a scope: a picture in which every step comes with a history."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plume_py.base.limits import Limits
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, NONE, REALTIME, SESSION, TIMED
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.problem import orders_in_question, witness_of
from plume_py.reasoning.synth.registry import definitions, in_order
from plume_py.reasoning.synth.report import native
from plume_py.reasoning.synth.scope import Scope
from plume_py.reasoning.synth.synthesis import SynthesisResult, synthesize
from plume_py.report.graphviz import FONT, MONO, Graph, text
from plume_py.report.graphviz import lines as stacked

# What is compared unless asked otherwise.
USUAL = ("CI", "RC", "RA", "TCC", "PC", "UA", "NLU", "PSI", "SI", "UpdateSer", "SER")
# The same where levels are compared in several orders between transactions; and these orders.
USUAL_IN_ORDERS = RUNNABLE
COMPARED = (NONE, SESSION, REALTIME)
# What a history shows if times count.
TIMES = "[begin,end] of a transaction are by one clock"


@dataclass(frozen=True)
class HierarchyEdge:
    """``above`` is stronger than ``below``, with nothing in between; ``apart`` has a history that tells them apart."""

    below: int
    above: int
    apart: SynthesisResult


@dataclass(frozen=True)
class Hierarchy:
    """Classes of equivalent levels, weaker ones first, and the steps between them."""

    scope: Scope
    classes: tuple[tuple[str, ...], ...]
    steps: tuple[HierarchyEdge, ...]

    @property
    def timed(self) -> bool:
        """Do times matter to some of them?"""
        return any(step.apart.found[0].concrete.timed for step in self.steps)

    def name(self, number: int) -> str:
        """Of a class."""
        return " = ".join(self.classes[number])


@dataclass(frozen=True)
class Settled:
    """What is known so far: implies[a][b] says whether a implies b, None that it is not settled."""

    names: tuple[str, ...]
    scope: Scope
    implies: tuple[tuple[bool | None, ...], ...]

    def __str__(self) -> str:
        pairs = len(self.names) * (len(self.names) - 1)
        return f"{pairs - len(self.pairs(None))} of {pairs} comparisons settled"

    def pairs(self, answer: bool | None) -> list[tuple[str, str]]:
        """The pairs of different levels with this answer."""
        order = range(len(self.names))
        return [(self.names[a], self.names[b]) for a in order for b in order if a != b and self.implies[a][b] is answer]

    def lines(self) -> Iterator[str]:
        """As text: a line per level."""
        yield f"settled on all histories of up to {self.scope}:"
        words = {True: "implies", False: "does not imply", None: "undecided:"}
        for name in self.names:
            parts = []
            for answer, verb in words.items():
                others = [b for a, b in self.pairs(answer) if a == name]
                if others:
                    parts.append(f"{verb} {', '.join(others)}")
            yield f"  {name} {'; '.join(parts)}"

    def plain(self) -> dict[str, Any]:
        """For programs."""
        settled = [{"a": a, "b": b, "implies": answer} for answer in (True, False) for a, b in self.pairs(answer)]
        return {"scope": self.scope.plain(), "settled": settled, "undecided": list(map(list, self.pairs(None)))}


Told = Callable[[Settled], None]


def in_all_orders(names: Iterable[str | Definition]) -> list[Definition]:
    """Each level without an order, with that of sessions and in real time; those whose names say an order stay."""
    found = []
    for level in definitions(names):
        said = level.order != DEFAULT_ORDER or level.level != level.name
        found += [level] if said else [in_order(level, order) for order in COMPARED]
    return list(dict.fromkeys(found))


def hierarchy(
    names: Iterable[str | Definition], scope: Scope, limits: Limits | None = None, told: Told | None = None
) -> Hierarchy:
    """Compare all levels with each other on the histories of up to the scope; ``told`` is told what is settled."""
    levels = definitions(names)
    if scope.rereads is None:  # the same histories for all pairs, or what is learnt from one would not count for others
        scope = replace(scope, rereads=any(level.ordered for level in levels))
    if scope.orders is None:  # for the same reason
        scope = replace(scope, orders=orders_in_question(levels))
    implies = _implications(levels, scope, limits, told)
    order = range(len(levels))
    leaders = [a for a in order if not any(implies[a][b] and implies[b][a] for b in range(a))]
    # weaker ones are implied by more
    leaders.sort(key=lambda a: -sum(implies[b][a] for b in order))
    classes = [tuple(levels[b].name for b in order if implies[a][b] and implies[b][a]) for a in leaders]
    steps = []
    for above, a in enumerate(leaders):
        for below, b in enumerate(leaders):
            if a != b and implies[a][b]:
                between = any(c not in (a, b) and implies[a][c] and implies[c][b] for c in leaders)
                if not between:
                    steps.append(HierarchyEdge(below, above, _apart(levels[b], levels[a], scope, limits)))
    return Hierarchy(scope, tuple(classes), tuple(steps))


def _apart(below: Definition, above: Definition, scope: Scope, limits: Limits | None) -> SynthesisResult:
    """A smallest history that only ``below`` allows; without times if neither looks at them."""
    if scope.orders is not None and TIMED.isdisjoint((below.order, above.order)):
        scope = replace(scope, orders=scope.orders - TIMED)
    return synthesize([below], [above], scope, minimal=True, limits=limits)


def _implications(
    levels: Sequence[Definition], scope: Scope, limits: Limits | None, told: Told | None
) -> list[list[bool]]:
    """implies[a][b]: every history that a allows is allowed by b. What was learnt answers other questions, too."""
    order = range(len(levels))
    known: list[list[bool | None]] = [[True if a == b else None for b in order] for a in order]
    for a in order:
        for b in order:
            if known[a][b] is not None:
                continue
            if told is not None:
                told(Settled(tuple(level.name for level in levels), scope, tuple(map(tuple, known))))
            quiet = (lambda _: None) if told is not None else None  # pairs are told of, not sizes
            outcome = synthesize([levels[a]], [levels[b]], scope, up_to=True, limits=limits, told=quiet)
            if not outcome.found:
                known[a][b] = True
                _close(known)
                continue
            concrete = outcome.found[0].concrete
            holds = [witness_of(level, concrete, limits=limits) is not None for level in levels]
            for c in order:
                for d in order:
                    if holds[c] and not holds[d]:
                        known[c][d] = False
    if told is not None:
        told(Settled(tuple(level.name for level in levels), scope, tuple(map(tuple, known))))
    return [[bool(cell) for cell in row] for row in known]


def _close(known: list[list[bool | None]]) -> None:
    """What holds of all histories within the scope is transitive."""
    order = range(len(known))
    for b in order:
        for a in order:
            for c in order:
                if known[a][b] and known[b][c]:
                    known[a][c] = True


def dot(hierarchy: Hierarchy) -> str:
    """The picture: stronger levels above, on each edge a history that only the lower one allows."""
    words = [
        "Stronger levels are higher. On an edge, a line per session: a smallest history that tells them apart.",
        f"Compared on all histories of up to {hierarchy.scope}.",
    ]
    if hierarchy.timed:
        words.insert(1, f"{TIMES}.")
    graph = Graph("hierarchy", label=stacked(map(text, words)), labelloc="b", fontsize=11, rankdir="BT")
    graph.defaults("graph", nodesep=1.0, ranksep=0.9)
    graph.defaults("node", fontname=FONT, fontsize=13, shape="box", style="rounded")
    graph.defaults("edge", fontname=MONO, fontsize=9, arrowsize=0.8, color="#0068A5")
    for number in range(len(hierarchy.classes)):
        graph.node(f"c{number}", text(hierarchy.name(number)))
    for step in hierarchy.steps:
        sessions = step.apart.found[0].concrete.session_lines()
        graph.edge(f"c{step.below}", f"c{step.above}", stacked((text(f"  {line}") for line in sessions), align="left"))
    return graph.source


def lines(hierarchy: Hierarchy) -> Iterator[str]:
    """As text: a line per class, and per step."""
    for number in reversed(range(len(hierarchy.classes))):
        above = sorted(step.below for step in hierarchy.steps if step.above == number)
        direct = ", ".join(hierarchy.name(b) for b in above)
        yield f"{hierarchy.name(number)}{f'  above  {direct}' if direct else ''}"
    yield ""
    for step in hierarchy.steps:
        yield f"{hierarchy.name(step.below)} < {hierarchy.name(step.above)}:  {step.apart.found[0].concrete.short()}"
    yield ""
    yield f"compared on all histories of up to {hierarchy.scope}{f'; {TIMES}' if hierarchy.timed else ''}"


def plain(hierarchy: Hierarchy) -> dict[str, Any]:
    """For programs."""
    return {
        "scope": hierarchy.scope.plain(),
        "classes": [list(names) for names in hierarchy.classes],
        "steps": [
            {
                "below": list(hierarchy.classes[step.below]),
                "above": list(hierarchy.classes[step.above]),
                "history": native(step.apart.found[0]),
            }
            for step in hierarchy.steps
        ],
    }
