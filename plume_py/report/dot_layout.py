"""What a picture of a counterexample consists of, and where it goes: its edges, columns and rows.

Nodes and cells get names of their own here ("t0", "t0:o1"), so that nothing from a history is ever a name in a graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from plume_py.checking.result import INITIAL, Id, ShownTransaction, Step, Violation
from plume_py.history.atoms import Atom

START = "initial"  # the node of the initial state


@dataclass(frozen=True)
class Arrow:
    """An edge to draw: a step of the argument (``number`` > 0) or what supports one."""

    step: Step
    tail: str
    head: str
    number: int = 0


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
            for support in (*_question(self, step), *supports(step)):
                self._add(support)
        self.arrows = [arrow for arrow in self.arrows if arrow.tail and arrow.head]
        self.cells = {arrow.tail for arrow in self.arrows} | {arrow.head for arrow in self.arrows}
        self.bold = {end for arrow in self.arrows if arrow.number for end in (arrow.tail, arrow.head)}

    def _add(self, step: Step, number: int = 0) -> None:
        """An edge, unless it is already there."""
        tail, head = self._end(step, step.source), self._end(step, step.target)
        kind = step.relation, step.assumed
        if number or all((a.tail, a.head, a.step.relation, a.step.assumed) != (tail, head, *kind) for a in self.arrows):
            self.arrows.append(Arrow(step, tail, head, number))

    def _end(self, step: Step, end: Id) -> str:
        """The node or the cell at which the edge of ``step`` begins or ends."""
        if end == INITIAL and INITIAL not in self.by_id:
            if self.initial_keys.setdefault(step.key, step.value) is None:
                self.initial_keys[step.key] = step.value  # a CM step knows the key, the read also the value
            return f"{START}:k{list(self.initial_keys).index(step.key)}"
        if end not in self.nodes:
            return ""
        reads = end == {"WR": step.target, "RW": step.source}.get(step.relation)
        place = _cell(self.by_id[end], step, reads)
        return self.nodes[end] if place is None else f"{self.nodes[end]}:o{place}"


def supports(step: Step) -> Iterator[Step]:
    """What a step rests on, and what that rests on in turn.

    Where an order follows from causality alone, its opposite is not worth being shown.
    """
    others = [inner for inner in step.evidence if not inner.assumed]
    plain = all(inner.relation in ("SO", "WR") for inner in others)
    for inner in others if plain else step.evidence:
        if not _overwrites_what_it_read(inner):
            yield inner
        yield from supports(inner)


def _overwrites_what_it_read(step: Step) -> bool:
    """Is this a version order that a single read shows by itself?"""
    others = [inner for inner in step.evidence if not inner.assumed]
    if not step.is_proved or len(others) != 1:
        return False
    return others[0].relation == "WR" and (others[0].source, others[0].target) == (step.source, step.target)


def _question(picture: Picture, step: Step) -> Iterator[Step]:
    """The read that is the reason of a CM or WW step, as a step of its own: it is half of the evidence."""
    reader = picture.by_id.get(step.reader) if step.reader is not None else None
    if reader is None:
        return
    reads = [last_seen(op[2]) for op in reader.ops if op[0] == "r" and op[1] == step.key]
    if step.target == INITIAL:
        written = {value for t in picture.violation.transactions for value in _written(t, step.key)}
        values = [value for value in reads if value not in written] or reads
    else:
        written = _written(picture.by_id[step.target], step.key) if step.target in picture.by_id else set()
        values = [value for value in reads if value in written]
    for value in values[:1]:
        yield Step(step.target, reader.id, "WR", step.key, value=value)


def _written(transaction: ShownTransaction, key: Atom) -> set[Atom]:
    return {last_seen(op[2]) for op in transaction.ops if op[0] != "r" and op[1] == key}


def _cell(transaction: ShownTransaction, step: Step, reads: bool) -> int | None:
    """The operation of ``transaction`` that ``step`` speaks of; None where it speaks of the transaction as a whole."""
    if step.relation == "SO":
        return None
    places = [i for i, op in enumerate(transaction.ops) if (op[0] == "r") == reads and op[1] == step.key]
    exact = [i for i in places if last_seen(transaction.ops[i][2]) == step.value]
    # Without a value (CM, WW), it is the last write of the key that others see.
    return exact[0] if exact and (step.relation == "WR" or reads) else places[-1] if places else None


def last_seen(value: Any) -> Atom:
    """What a read saw last: of a list, its last element."""
    return (value[-1] if value else None) if isinstance(value, tuple | list) else value


def columns_of(picture: Picture) -> list[list[str]]:
    """The nodes by session; the initial state has a column of its own."""
    sessions: dict[Id, list[str]] = {}
    for transaction in picture.violation.transactions:
        sessions.setdefault(transaction.session, []).append(picture.nodes[transaction.id])
    return list(sessions.values()) + ([[START]] if picture.initial_keys else [])


def rows_of(picture: Picture, columns: list[list[str]]) -> dict[str, int]:
    """A row per node such that edges lead down where they can, and never sideways.

    Session order always leads down. The steps of the argument come next, so that one reads them downwards and the last
    one, back up, is the contradiction. (Sideways, Graphviz also loses arrow heads at times.)
    """
    below: dict[str, set[str]] = {node: set() for column in columns for node in column}
    pairs = [pair for column in columns for pair in pairwise(column)]
    pairs += [(START, column[0]) for column in columns if START in below and column != [START]]
    for tail, head in pairs + [(node_of(arrow.tail), node_of(arrow.head)) for arrow in picture.arrows]:
        if tail not in _reachable(below, head):
            below[tail].add(head)
    # Whoever reaches more comes first, so this is an order in which every edge leads forward.
    rows = dict.fromkeys(below, 1)
    for node in sorted(below, key=lambda n: -len(_reachable(below, n))):
        for head in below[node]:
            rows[head] = max(rows[head], rows[node] + 1)
    return rows


def _reachable(below: dict[str, set[str]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for node in below[todo.pop()] - seen:
            seen.add(node)
            todo.append(node)
    return seen


def node_of(end: str) -> str:
    """The node of a cell, or the node itself."""
    return end.partition(":")[0]
