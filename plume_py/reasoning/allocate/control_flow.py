"""Execution paths of programs and instances: sequences of accesses, with forks between them.

A committed transaction has taken one path, so only the accesses of this path are its reads and writes. SQL programs are
translated into trees of accesses and forks. ``flat`` merges all paths into one list, in which accesses of some paths
only are conditional; ``execution_paths`` lists each path. ``expand_paths`` turns a workload into one with an instance
per path, for sharper rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Union

from plume_py.reasoning.allocate.workload import READ, UPDATE, WRITE, Access, Instance, Workload

# A program with more execution paths counts as one path with conditional accesses.
MAX_PATHS = 16

# `expand_paths` gives up beyond this number of instances.
MOST_INSTANCES = 100_000

Tree = Sequence[Union[Access, "Fork"]]


@dataclass(frozen=True)
class Fork:
    """Exactly one of two branches happens.

    ``together`` is both as one list, if the caller can give a better one than a merge.
    """

    then: Tree
    otherwise: Tree
    together: tuple[Access, ...] | None = None


def flat(tree: Tree) -> list[Access]:
    """Return all accesses of the tree as one list."""
    found: list[Access] = []
    for part in tree:
        if isinstance(part, Access):
            found.append(part)
        elif part.together is not None:
            found += part.together
        else:
            found += _merge_branches(flat(part.then), flat(part.otherwise))
    return found


def execution_paths(tree: Tree) -> tuple[tuple[Access, ...], ...]:
    """Return each execution path once, or the merged list as the only path if there are more than MAX_PATHS."""
    found: dict[tuple[Access, ...], None] = {(): None}
    for part in tree:
        if isinstance(part, Access):
            found = {(*path, part): None for path in found}
        else:
            inner = dict.fromkeys((*execution_paths(part.then), *execution_paths(part.otherwise)))
            if len(found) * len(inner) > MAX_PATHS:
                return (tuple(flat(tree)),)
            found = {(*path, *more): None for path in found for more in inner}
    return tuple(found)


def _merge_branches(then: Sequence[Access], otherwise: Sequence[Access]) -> list[Access]:
    """Return two branches as one sequence, with common accesses once.

    Reads come first, so that a write of one branch does not hide a read of the other. A row is certainly locked only
    where both branches lock it.
    """
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
    """Return what the access does to its cell, as a key for comparing accesses."""
    return ("write" if a.writes else "read", a.cell)


def expand_paths(workload: Workload) -> tuple[Workload, list[int]] | None:
    """Return a workload with one instance per execution path, and the original instance of each.

    In a run each instance takes one of its paths, so the run consists of some of these instances. An instance that is
    not a pivot among all of them is not a pivot in any run. Returns None if every instance has one path, or if there
    would be more than MOST_INSTANCES.
    """
    by_instance = [_paths_of(instance) for instance in workload.instances]
    total = sum(map(len, by_instance))
    if total == len(workload.instances) or total > MOST_INSTANCES:
        return None
    owner = [i for i, paths in enumerate(by_instance) for _ in paths]
    instances = [replace(workload.instances[i], accesses=path) for i, paths in enumerate(by_instance) for path in paths]
    return Workload(instances, [workload.session[i] for i in owner], source=workload.source), owner


def _paths_of(instance: Instance) -> tuple[tuple[Access, ...], ...]:
    """Return the paths of the instance's program. Without them, each conditional access happens or not."""
    if instance.execution_paths:
        return instance.execution_paths
    doubtful = sum(access.conditional for access in instance.accesses)
    if not doubtful or 2**doubtful > MAX_PATHS:
        return (instance.accesses,)
    choices = [(None, replace(a, conditional=False)) if a.conditional else (a,) for a in instance.accesses]
    return tuple(dict.fromkeys(tuple(a for a in path if a is not None) for path in product(*choices)))
