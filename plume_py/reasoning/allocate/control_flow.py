"""The ways through a program: accesses in order, and forks between them.

A transaction that commits has gone one way, so its reads and writes are those of that way and no others. ``flat`` is
all of it in one list, in which what happens on some ways only is conditional; ``ways`` are the lists of each way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Union

from plume_py.reasoning.allocate.workload import READ, UPDATE, WRITE, Access, Instance, Workload

# Programs with more ways than this are taken as one list.
MOST_WAYS = 16

Tree = Sequence[Union[Access, "Fork"]]


@dataclass(frozen=True)
class Fork:
    """One of two happens; ``together`` is both as one list, where that is known better than by merging them."""

    then: Tree
    otherwise: Tree
    together: tuple[Access, ...] | None = None


def flat(tree: Tree) -> list[Access]:
    """All of it in one list."""
    found: list[Access] = []
    for part in tree:
        if isinstance(part, Access):
            found.append(part)
        elif part.together is not None:
            found += part.together
        else:
            found += _either(flat(part.then), flat(part.otherwise))
    return found


def ways(tree: Tree) -> tuple[tuple[Access, ...], ...]:
    """Each way once; a single one, all of it, where there are too many."""
    found: dict[tuple[Access, ...], None] = {(): None}
    for part in tree:
        if isinstance(part, Access):
            found = {(*way, part): None for way in found}
        else:
            inner = dict.fromkeys((*ways(part.then), *ways(part.otherwise)))
            if len(found) * len(inner) > MOST_WAYS:
                return (tuple(flat(tree)),)
            found = {(*way, *more): None for way in found for more in inner}
    return tuple(found)


def _either(then: Sequence[Access], otherwise: Sequence[Access]) -> list[Access]:
    """Two branches as one sequence, what both do only once. Reads come first, so that no write of one branch hides
    what the other reads; a row is surely locked only where both lock it."""
    certain = {_effect(a) for a in then if not a.conditional} & {_effect(a) for a in otherwise if not a.conditional}
    free = {a.cell for branch in (then, otherwise) for a in branch if a.kind == READ and not a.locks}
    merged: dict[tuple[str, str], Access] = {}
    for branch in (then, otherwise):
        again: dict[tuple[str, str], int] = {}
        for a in branch:
            again[a.kind, a.cell] = times = again.get((a.kind, a.cell), 0) + 1
            locks = a.locks and a.cell not in free
            conditional = _effect(a) not in certain
            merged[f"{a.kind} {times}", a.cell] = replace(a, conditional=conditional, locks=locks)
    return sorted(merged.values(), key=lambda a: (READ, UPDATE, WRITE).index(a.kind))


def _effect(a: Access) -> tuple[str, str]:
    """Two accesses with the same effect stand for each other: what is written, or read."""
    return ("write" if a.writes else "read", a.cell)


# From outcomes.py: A workload in which every instance goes one way, once for each way that it may go. In a run an
# instance goes one of its ways, so the run is one of some of these; whoever is no pivot among all of them is none
# in the run. Where each instance has one way only, there is nothing to tell apart.
# A workload that would have more instances than this is not taken apart.
MOST_INSTANCES = 100_000


def outcomes(workload: Workload) -> tuple[Workload, list[int]] | None:
    """All ways of all instances, and whose they are; None if there is nothing to be gained, or too much to do."""
    by_instance = [_ways(instance) for instance in workload.instances]
    total = sum(map(len, by_instance))
    if total == len(workload.instances) or total > MOST_INSTANCES:
        return None
    owner = [i for i, ways in enumerate(by_instance) for _ in ways]
    instances = [replace(workload.instances[i], accesses=way) for i, ways in enumerate(by_instance) for way in ways]
    return Workload(instances, [workload.session[i] for i in owner], source=workload.source), owner


def _ways(instance: Instance) -> tuple[tuple[Access, ...], ...]:
    """Those of its program; or else each conditional access happens or not."""
    if instance.ways:
        return instance.ways
    doubtful = sum(access.conditional for access in instance.accesses)
    if not doubtful or 2**doubtful > MOST_WAYS:
        return (instance.accesses,)
    choices = [(None, replace(a, conditional=False)) if a.conditional else (a,) for a in instance.accesses]
    return tuple(dict.fromkeys(tuple(a for a in way if a is not None) for way in product(*choices)))
