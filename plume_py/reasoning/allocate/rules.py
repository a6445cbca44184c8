"""The three sets of rules that give each instance a level.

``paper``: MixIso's theorem 6.18 as published. It is not sound where sessions matter or writes are conditional.
``repaired``: the same with the session and the conditional writes taken into account.
``refined``: weaker levels where the critical cycle that the others fear cannot exist (see pivot_kernels).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.history.model import Bools, Int8s, Int32s
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT, WRITERS
from plume_py.reasoning.allocate import block_kernels
from plume_py.reasoning.allocate import pivot_kernels as kernels
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


# From graph.py: The static dependency graph of a workload, as the rules' kernels take it.
# Loop steps per read or write, told by what plain Python takes for them.
STEPS = 12


class ConflictGraph(NamedTuple):
    """Sets by instance (r reads, w possible writes, u certain writes) and by cell (k…), and the blocks."""

    r_start: Int32s
    r_cell: Int32s
    how: Int8s  # of reads: 0 in an update statement, 1 once, 2 by more than one statement, 3 locked by it
    w_start: Int32s
    w_cell: Int32s
    u_start: Int32s
    u_cell: Int32s
    kw_start: Int32s
    kw: Int32s
    kr_start: Int32s
    kr: Int32s
    kr_place: Int32s
    session: Int32s
    place: Int32s
    before: Int32s  # the instance just before in its session, or -1
    cell_block: Int32s  # of a cell with several writers, else -1
    read_block: Int32s  # of a read of a cell with a single other writer
    session_block: Int32s
    certain: Bools  # of a cell: whoever may write it surely does
    many: Bools  # of a cell: it stands for more than one row
    s_start: Int32s
    member: Int32s  # the instances of each session, in order
    looks: Bools  # of an instance: it reads one row, does nothing else, and follows nobody


def build(sets: Sets) -> ConflictGraph:
    """The graph with its blocks."""
    work = STEPS * (len(sets.reads.cell) + len(sets.may.cell))
    dispatch.prepare(work, block_kernels)
    kw_start, kw, _ = sets.may.turned(sets.cells)
    kr_start, kr, kr_place = sets.reads.turned(sets.cells)
    members = np.argsort(sets.session, kind="stable").astype(np.int32)
    s_start = np.zeros(int(sets.session.max(initial=-1)) + 2, np.int32)
    np.cumsum(np.bincount(sets.session), out=s_start[1:])
    a, b, cell_edge, read_edge, session_edge = block_kernels.rings(
        kw_start, kw, kr_start, kr, kr_place, s_start, members, len(sets.reads.cell)
    )
    block = block_kernels.blocks(sets.instances, a, b)
    previous = np.full(sets.instances, -1, np.int32)
    previous[members[1:]] = members[:-1]
    previous[sets.place == 0] = -1
    return ConflictGraph(
        sets.reads.start, sets.reads.cell, sets.how, sets.may.start, sets.may.cell, sets.must.start, sets.must.cell,
        kw_start, kw, kr_start, kr, kr_place, sets.session, sets.place, previous,
        _blocks(block, cell_edge), _blocks(block, read_edge), _blocks(block, session_edge),
        np.bincount(sets.may.cell, minlength=sets.cells) == np.bincount(sets.must.cell, minlength=sets.cells),
        sets.many, s_start, members, _lookers(sets),
    )  # fmt: skip


def _lookers(sets: Sets) -> Bools:
    """The instances that only look at one row, of those that stay."""
    reads, writes = np.diff(sets.reads.start), np.diff(sets.may.start)
    found: Bools = (reads == 1) & (writes == 0) & ~sets.follows
    cell = sets.reads.cell[sets.reads.start[:-1][found]]
    found[found] = ~sets.many[cell] & ~sets.fleeting[cell]
    return found


def _blocks(block: Int32s, edge: Int32s) -> Int32s:
    """The blocks of edges, -1 where there is none."""
    found = np.full(len(edge), -1, np.int32)
    found[edge >= 0] = block[edge[edge >= 0]]
    return found
