"""What makes pictures smaller without saying less that matters: parallel edges as one, the middle of a chain folded.

Text and JSON stay complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plume_py.checking.result import Step

# A chain of more transactions than this is folded, but for its ends: a long diagonal says no more than they do.
LONG = 10
# So many transactions stay at either end.
ENDS = 2


@dataclass(frozen=True)
class Arrow:
    """An edge to draw: a step of the argument (``number`` > 0) or what supports one."""

    step: Step
    tail: str
    head: str
    number: int = 0
    also: tuple["Arrow", ...] = ()  # what else leads from the one transaction to the other because of the same key


@dataclass(frozen=True)
class Fold:
    """Transactions of which one node says how many they are, and what became of the steps between them."""

    node: str
    members: tuple[str, ...]
    steps: tuple[int, ...]


def node_of(end: str) -> str:
    """The node of a cell, or the node itself."""
    return end.partition(":")[0]


def merged(arrows: list[Arrow]) -> list[Arrow]:
    """Edges that say different things about one key of the same two transactions, as one: that of the argument if any.

    Every step of the argument keeps its edge.
    """
    kept: list[Arrow] = []
    leaders: dict[tuple[object, ...], int] = {}  # their places among those kept
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


def folded(arrows: list[Arrow], fixed: set[str]) -> tuple[list[Arrow], list[Fold]]:
    """The edges without the middles of long chains, and these; ``fixed`` nodes always stay."""
    folds: list[Fold] = []
    for chain in _chains(arrows, fixed):
        if len(chain) > LONG:
            members = tuple(chain[ENDS:-ENDS])
            inside = [a for a in arrows if node_of(a.tail) in members and node_of(a.head) in members]
            folds.append(Fold(f"f{len(folds)}", members, tuple(arrow.number for arrow in inside if arrow.number)))
    place = {member: fold.node for fold in folds for member in fold.members}
    moved = [
        replace(arrow, tail=place.get(node_of(arrow.tail), arrow.tail), head=place.get(node_of(arrow.head), arrow.head))
        for arrow in arrows
    ]
    return [arrow for arrow in moved if arrow.tail != arrow.head or node_of(arrow.tail) not in place.values()], folds


def _chains(arrows: list[Arrow], fixed: set[str]) -> Iterator[list[str]]:
    """Nodes in a row between which nothing branches off, with the ends; one that is a cycle has its end only once."""
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
