"""Lay out the picture of a counterexample: its edges, columns and rows.

``dot`` calls this module. Parallel edges are merged and the middle of a long chain is folded; text and JSON stay
complete. Nodes and cells get generated names ("t0", "t0:o1"), so that no text of a history is a name in a graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from plume_py.checking.result import Id, Step, Violation
from plume_py.history.model import INITIAL_ID
from plume_py.history.value_codes import Atom
from plume_py.report.styles import visible_evidence
from plume_py.report.wording import session_sort_key

INITIAL_NODE = "initial"  # node of the initial state
HEADER = "h"  # port of a transaction's header

# Longer chains, in transactions, are folded except for their ends.
MAX_CHAIN = 10
# Transactions that remain at each end of a fold.
KEPT_ENDS = 2


@dataclass(frozen=True)
class Arrow:
    """An edge to draw: a step of the argument (``number`` > 0), or evidence for one."""

    step: Step
    tail: str
    head: str
    number: int = 0
    also: tuple["Arrow", ...] = ()  # merged edges


@dataclass(frozen=True)
class Fold:
    """Transactions drawn as a single node, and the numbers of the steps between them."""

    node: str
    members: tuple[str, ...]
    steps: tuple[int, ...]


@dataclass
class Picture:
    """A violation with names for its nodes and cells, and the edges to draw."""

    violation: Violation
    arrows: list[Arrow] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    initial_keys: dict[Atom, Atom] = field(default_factory=dict)  # keys read from the initial state, with values

    def __post_init__(self) -> None:
        self.nodes = {transaction.id: f"t{i}" for i, transaction in enumerate(self.violation.transactions)}
        for number, step in enumerate(self.violation.steps, 1):
            self._add(step, number)
        for step in self.violation.steps:
            for support in visible_evidence(step):
                self._add(support)
        self.culprits = {f"t{txn}:o{op}" for txn, op in self.violation.culprits}
        both_ends = merge_parallel([arrow for arrow in self.arrows if arrow.tail and arrow.head])
        # The first step, where reading starts, and the wrong reads must stay visible.
        fixed = {INITIAL_NODE, *map(node_of, self.culprits), *(node_of(arrow.tail) for arrow in both_ends[:1])}
        some, self.folds = fold_chains(both_ends, fixed)
        self.arrows = list(_separate_opposite_edges(some))
        drawn = [each for arrow in self.arrows for each in (arrow, *arrow.also)]
        self.cells = {end for arrow in drawn for end in (arrow.tail, arrow.head)} | self.culprits
        self.bold = {end for arrow in self.arrows if arrow.number for end in (arrow.tail, arrow.head)}

    def _add(self, step: Step, number: int = 0) -> None:
        """Add the edge of a step. Add an edge of evidence only if it is new."""
        tail, head = self._end(step, step.source, step.source_op), self._end(step, step.target, step.target_op)
        kind = step.relation, step.assumed
        if number or all((a.tail, a.head, a.step.relation, a.step.assumed) != (tail, head, *kind) for a in self.arrows):
            self.arrows.append(Arrow(step, tail, head, number))

    def _end(self, step: Step, end: Id, op: int | None) -> str:
        """Return the node or cell at one end of a step; "" if the transaction is not shown."""
        if end == INITIAL_ID:
            if self.initial_keys.setdefault(step.key, step.value) is None:
                self.initial_keys[step.key] = step.value  # a CM step has the key only, a read also the value
            return f"{INITIAL_NODE}:k{list(self.initial_keys).index(step.key)}"
        if end not in self.nodes:
            return ""
        return self.nodes[end] if op is None else f"{self.nodes[end]}:o{op}"


def _separate_opposite_edges(arrows: list[Arrow]) -> Iterator[Arrow]:
    """Move the second of two opposite edges between two transactions from the cells of the first to the header.

    Otherwise the head of each would cover the tail of the other.
    """
    taken: dict[tuple[str, str], set[str]] = {}
    for arrow in arrows:
        nodes = node_of(arrow.tail), node_of(arrow.head)
        occupied = taken.get(nodes[::-1], set())
        tail, head = (
            f"{node}:{HEADER}" if end in occupied and node != INITIAL_NODE else end
            for node, end in zip(nodes, (arrow.tail, arrow.head), strict=True)
        )
        taken.setdefault(nodes, set()).update((tail, head))
        yield replace(arrow, tail=tail, head=head)


def columns_of(picture: Picture) -> list[list[str]]:
    """Return the nodes by session, in the order of session names, after a column for the initial state.

    A fold has a column where the first of its transactions would be.
    """
    columns: dict[tuple[str, Id], list[str]] = {}
    folds = {member: fold.node for fold in picture.folds for member in fold.members}
    for transaction in sorted(picture.violation.transactions, key=lambda shown: session_sort_key(shown.session)):
        node = picture.nodes[transaction.id]
        if node in folds:
            columns["fold", folds[node]] = [folds[node]]
        else:
            columns.setdefault(("session", transaction.session), []).append(node)
    return ([[INITIAL_NODE]] if picture.initial_keys else []) + list(columns.values())


def rows_of(picture: Picture, columns: list[list[str]]) -> dict[str, int]:
    """Return a row per node such that edges lead down where possible, and never sideways.

    Session order always leads down. The steps of the argument come next, so they read downwards and the last one, back
    up, is the contradiction. Sideways, Graphviz sometimes loses arrow heads.
    """
    below: dict[str, set[str]] = {node: set() for column in columns for node in column}
    pairs = [pair for column in columns for pair in pairwise(column)]
    pairs += [(INITIAL_NODE, column[0]) for column in columns if INITIAL_NODE in below and column != [INITIAL_NODE]]
    for tail, head in pairs + [(node_of(arrow.tail), node_of(arrow.head)) for arrow in picture.arrows]:
        if tail not in _reachable(below, head):
            below[tail].add(head)
    # Nodes that reach more come first, so every edge leads forward in this order.
    rows = dict.fromkeys(below, 1)
    for node in sorted(below, key=lambda n: -len(_reachable(below, n))):
        for head in below[node]:
            rows[head] = max(rows[head], rows[node] + 1)
    return rows


def column_slots(column: list[str], rows: dict[str, int], steps: set[tuple[str, str]]) -> list[str | None]:
    """Return the content of each row of a column: a node, "" for a point of its line, or None.

    The rows between two nodes joined by a step stay empty (None).
    """
    at = {rows[node]: node for node in column}
    places: list[str | None] = [at.get(row, "") for row in range(1, max(rows.values(), default=0) + 1)]
    for tail, head in pairwise(column):
        if (tail, head) in steps:
            places[rows[tail] : rows[head] - 1] = [None] * (rows[head] - 1 - rows[tail])
    return places


def _reachable(below: dict[str, set[str]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for node in below[todo.pop()] - seen:
            seen.add(node)
            todo.append(node)
    return seen


def node_of(end: str) -> str:
    """Return the node of a cell or a node."""
    return end.partition(":")[0]


def merge_parallel(arrows: list[Arrow]) -> list[Arrow]:
    """Return the edges with those on one key between the same two transactions merged, in the same direction.

    A step of the argument is never merged into another edge.
    """
    kept: list[Arrow] = []
    leaders: dict[tuple[object, ...], int] = {}  # indices in ``kept``
    for arrow in arrows:
        about = node_of(arrow.tail), node_of(arrow.head), arrow.step.key
        at = leaders.get(about) if arrow.step.has_key else None
        if at is not None and not arrow.number and _kind(arrow) != _kind(kept[at]):
            kept[at] = replace(kept[at], also=(*kept[at].also, arrow))
            continue
        if arrow.step.has_key:
            leaders.setdefault(about, len(kept))
        kept.append(arrow)
    return kept


def _kind(arrow: Arrow) -> tuple[str, bool]:
    return arrow.step.relation, arrow.step.assumed


def fold_chains(arrows: list[Arrow], fixed: set[str]) -> tuple[list[Arrow], list[Fold]]:
    """Return the edges without the middles of long chains, and the folds. ``fixed`` nodes are never folded."""
    folds: list[Fold] = []
    for chain in _chains(arrows, fixed):
        if len(chain) > MAX_CHAIN:
            members = tuple(chain[KEPT_ENDS:-KEPT_ENDS])
            inside = [a for a in arrows if node_of(a.tail) in members and node_of(a.head) in members]
            folds.append(Fold(f"f{len(folds)}", members, tuple(arrow.number for arrow in inside if arrow.number)))
    place = {member: fold.node for fold in folds for member in fold.members}
    moved = [
        replace(arrow, tail=place.get(node_of(arrow.tail), arrow.tail), head=place.get(node_of(arrow.head), arrow.head))
        for arrow in arrows
    ]
    return [arrow for arrow in moved if arrow.tail != arrow.head or node_of(arrow.tail) not in place.values()], folds


def _chains(arrows: list[Arrow], fixed: set[str]) -> Iterator[list[str]]:
    """Yield maximal chains of nodes without branches, with their ends. A cyclic chain has its end only once."""
    onwards: dict[str, list[str]] = {}
    back: dict[str, list[str]] = {}
    for arrow in arrows:
        tail, head = node_of(arrow.tail), node_of(arrow.head)
        onwards.setdefault(tail, []).append(head)
        back.setdefault(head, []).append(tail)
    inner = {node for node in onwards if len(onwards[node]) == len(back.get(node, [])) == 1} - fixed
    for node in onwards:
        if node in inner and back[node][0] not in inner:
            chain = [back[node][0], node]
            while chain[-1] in inner and onwards[chain[-1]][0] != chain[0]:
                chain.append(onwards[chain[-1]][0])
            yield chain
