"""Three sets of rules that give each instance a level.

- ``paper``: MixIso's theorem 6.18 as published. It is unsound where sessions matter or writes are conditional.
- ``repaired``: the theorem, with sessions and conditional writes taken into account.
- ``refined``: weaker levels where the critical cycle that the theorem guards against cannot exist. The kernels (see
  pivot_kernels) decide this on the workload's ConflictGraph.
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

# Instances per kernel call. Limits are checked between calls, and each instance may be compared with all others.
SLICE = 256

# Estimated loop steps of the kernels per read or write, calibrated by their time in plain Python.
STEPS = 12


def simple_rules(sets: Sets, *, repaired: bool) -> list[str]:
    """Return the levels of theorem 6.18.

    ``repaired`` adds three corrections. Only the first instance of a session may rely on reading one row only. Only
    certain writes protect. Instances of the same session do no harm.
    """
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
    """Return whether another instance overwrites a read of p and shares no written cell with p."""
    protecting = sets.must if repaired else sets.may
    own = protecting.of(p)
    for x in reads:
        for q in writers[x]:
            if q == p or (repaired and sets.session[q] == sets.session[p]):
                continue
            if own.isdisjoint(protecting.of(q)):
                return True
    return False


class ConflictGraph(NamedTuple):
    """The static dependency graph for the kernels.

    Sets by instance (r reads, w possible writes, u certain writes), sets by cell (k…), and the blocks.
    """

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
    kr_place: Int32s  # index in r_cell of each entry of kr
    session: Int32s
    place: Int32s  # of an instance: its position in the session
    before: Int32s  # the predecessor of an instance in its session, or -1
    cell_block: Int32s  # of a cell with several writers, else -1
    read_block: Int32s  # of a read of a cell with a single other writer
    session_block: Int32s
    certain: Bools  # of a cell: whether all its possible writes are certain
    many: Bools  # of a cell: whether it represents more than one row
    s_start: Int32s
    member: Int32s  # the instances of each session, in order
    single_read: Bools  # of an instance: whether it only reads one row and has no session predecessor


def build_graph(sets: Sets) -> ConflictGraph:
    """Return the graph of the workload with its blocks."""
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
        sets.many, s_start, members, _single_readers(sets),
    )  # fmt: skip


def _single_readers(sets: Sets) -> Bools:
    """Return which instances only read one row, of rows that do not come and go, and have no session predecessor."""
    reads, writes = np.diff(sets.reads.start), np.diff(sets.may.start)
    found: Bools = (reads == 1) & (writes == 0) & ~sets.follows
    cell = sets.reads.cell[sets.reads.start[:-1][found]]
    found[found] = ~sets.many[cell] & ~sets.fleeting[cell]
    return found


def _blocks(block: Int32s, edge: Int32s) -> Int32s:
    """Return the blocks of the given edges; -1 for a missing edge."""
    found = np.full(len(edge), -1, np.int32)
    found[edge >= 0] = block[edge[edge >= 0]]
    return found


class RefinedRules:
    """The refined rules on one workload."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.graph: ConflictGraph = build_graph(sets)
        dispatch.prepare(STEPS * (len(sets.reads.cell) + len(sets.may.cell)), kernels)
        self._mark = np.full(sets.cells, -1, np.int32)
        self.cycle = np.full(5, -1, np.int32)

    def safe(self, levels: Sequence[str]) -> Bools:
        """Return a table [instance, level]: whether it is not a pivot there, if all other levels include WRITERS."""
        choices = np.array([visibility_bits(name) for name in levels], np.int32)
        guarded = np.full(self.sets.instances, kernels.BY_LEVEL, np.uint8)
        table = np.empty((self.sets.instances, len(choices)), np.bool_)
        for first in range(0, len(table), SLICE):
            kernels.safe(self.graph, first, choices, guarded, self._mark, self.cycle, table[first : first + SLICE])
        return table

    def pivot(self, p: int, level: str, guarded: Int8s) -> bool:
        """Return whether p is the pivot of a critical cycle at this level. ``cycle`` then describes it."""
        return bool(kernels.pivot(self.graph, p, visibility_bits(level), guarded, self._mark, self.cycle))

    def partners(self, pivots: Iterable[int], guarded: Int8s) -> list[int]:
        """Return all partners of these pivots in pairs of RW edges."""
        raised = np.zeros(self.sets.instances, np.bool_)
        for p in pivots:
            kernels.mark_partners(self.graph, p, guarded, self._mark, raised)
        partners: list[int] = np.flatnonzero(raised).tolist()
        return partners


def guards(levels: Sequence[str]) -> Int8s:
    """Return for each level how its instances detect concurrent writes (codes of pivot_kernels)."""
    return np.array([_guard(visibility_bits(level)) for level in levels], np.uint8)


def _guard(bits: int) -> int:
    if bits & WRITERS:
        return kernels.BY_LEVEL
    return kernels.UNGUARDED if bits & AT_COMMIT else kernels.BY_STATEMENT
