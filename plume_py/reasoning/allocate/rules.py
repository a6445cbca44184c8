"""The three sets of rules that give each instance a level.

``paper``: MixIso's theorem 6.18 as published. It is not sound where sessions matter or writes are conditional.
``repaired``: the same with the session and the conditional writes taken into account.
``refined``: weaker levels where the critical cycle that the others fear cannot exist (see pivot_kernels).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.history.model import Bools, Int8s
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT, WRITERS
from plume_py.reasoning.allocate import pivot_kernels as kernels
from plume_py.reasoning.allocate.graph import STEPS, ConflictGraph, build
from plume_py.reasoning.allocate.read_write_sets import Sets

RULES = ("refined", "repaired", "paper")

# Instances that are judged at a stretch: limits are looked at between kernels, and each may meet all others.
SLICE = 256


def simple_rules(sets: Sets, *, repaired: bool) -> list[str]:
    """Theorem 6.18; ``repaired``: an instance that follows another in its session cannot count on reading one row only,
    only certain writes protect, and instances of its own session do no harm."""
    writers = _writers(sets)
    levels = []
    for p in range(sets.instances):
        reads, writes = sets.reads.of(p), sets.may.of(p)
        one = len(reads) == 1 and not sets.many[min(reads)]
        if not reads or (not writes and one and not (repaired and sets.place[p])):
            levels.append("RA")
        elif not writes:
            levels.append("PC")
        else:
            levels.append("SER" if _threatened(sets, p, reads, writers, repaired) else "PSI")
    return levels


def _writers(sets: Sets) -> list[list[int]]:
    start, owner, _ = sets.may.turned(sets.cells)
    return [owner[start[x] : start[x + 1]].tolist() for x in range(sets.cells)]


def _threatened(sets: Sets, p: int, reads: set[int], writers: list[list[int]], repaired: bool) -> bool:
    """Does another instance overwrite what p reads, and share no written cell with it?"""
    protecting = sets.must if repaired else sets.may
    own = protecting.of(p)
    for x in reads:
        for q in writers[x]:
            if q == p or (repaired and sets.session[q] == sets.session[p]):
                continue
            if own.isdisjoint(protecting.of(q)):
                return True
    return False


class Refined:
    """The refined rules on one workload."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.graph: ConflictGraph = build(sets)
        dispatch.prepare(STEPS * (len(sets.reads.cell) + len(sets.may.cell)), kernels)
        self._mark = np.full(sets.cells, -1, np.int32)
        self.cycle = np.full(5, -1, np.int32)

    def safe(self, levels_by_cost: Sequence[str]) -> Bools:
        """For each instance and each level: is it no pivot there, if all others look out for common writes?"""
        choices = np.array([visibility_bits(name) for name in levels_by_cost], np.int32)
        everybody = np.full(self.sets.instances, kernels.BY_LEVEL, np.uint8)
        table = np.empty((self.sets.instances, len(choices)), np.bool_)
        for first in range(0, len(table), SLICE):
            kernels.safe(self.graph, first, choices, everybody, self._mark, self.cycle, table[first : first + SLICE])
        return table

    def pivot(self, p: int, level: str, guarded: Int8s) -> bool:
        """Is p the pivot of a critical cycle at this level? ``found`` then describes it."""
        return bool(kernels.pivot(self.graph, p, visibility_bits(level), guarded, self._mark, self.cycle))

    def dangerous(self, pivots: Iterable[int], guarded: Int8s) -> list[int]:
        """All partners in the pairs of RW edges at these pivots."""
        raised = np.zeros(self.sets.instances, np.bool_)
        for p in pivots:
            kernels.dangerous(self.graph, p, guarded, self._mark, raised)
        partners: list[int] = np.flatnonzero(raised).tolist()
        return partners


def guards(levels: Sequence[str]) -> Int8s:
    """How instances at these levels guard what they write."""
    return np.array([_guard(visibility_bits(level)) for level in levels], np.uint8)


def _guard(bits: int) -> int:
    if bits & WRITERS:
        return kernels.BY_LEVEL
    return kernels.UNGUARDED if bits & AT_COMMIT else kernels.BY_STATEMENT
