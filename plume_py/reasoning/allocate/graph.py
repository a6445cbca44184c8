"""The static dependency graph of a workload, as the rules' kernels take it."""

from typing import NamedTuple

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.history.model import Bools, Int8s, Int32s
from plume_py.reasoning.allocate import block_kernels
from plume_py.reasoning.allocate.read_write_sets import Sets

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
