"""The three sets of rules that give each instance a level.

``paper``: MixIso's theorem 6.18 as published. It is not sound where sessions matter or writes are conditional.
``repaired``: the same with the session and the conditional writes taken into account.
``refined``: weaker levels where the critical cycle that the others fear cannot exist (see pivot_kernels).
"""

from collections.abc import Sequence

import numpy as np

from plume_py import accel
from plume_py.allocate import pivot_kernels as kernels
from plume_py.allocate.graph import Graph, build
from plume_py.allocate.sets import Sets
from plume_py.history.model import Int32s

# Numbers of the kernels; TCC asks for as much as RA where serializability is the aim.
CODES = {
    "RC": kernels.RC,
    "RA": kernels.RA,
    "TCC": kernels.RA,
    "PC": kernels.PC,
    "PSI": kernels.PSI,
    "SI": kernels.SI,
    "SER": kernels.SER,
}
RULES = ("refined", "repaired", "paper")
MIXISO = ("RA", "PC", "PSI", "SI", "SER")


def simple_rules(sets: Sets, *, repaired: bool) -> list[str]:
    """Theorem 6.18; ``repaired``: an instance that follows another in its session cannot count on reading one key only,
    only certain writes protect, and instances of its own session do no harm."""
    writers = _writers(sets)
    levels = []
    for p in range(sets.instances):
        reads, writes = sets.reads.of(p), sets.may.of(p)
        if not reads or (not writes and len(reads) == 1 and not (repaired and sets.place[p])):
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
        self.graph: Graph = build(sets)
        accel.prepare(50 * (len(sets.reads.cell) + len(sets.may.cell)), kernels)
        self._mark = np.full(sets.cells, -1, np.int32)
        self.found = np.full(5, -1, np.int32)

    def allocate(self, offered: Sequence[str] = MIXISO) -> list[str]:
        """The first of ``offered``, from the cheapest on, that is safe for each instance; else SER."""
        choices = np.array([CODES[name] for name in offered if name != "SER"], np.int32)
        everybody = np.ones(self.sets.instances, np.bool_)
        level = np.empty(self.sets.instances, np.int32)
        kernels.levels(self.graph, choices, everybody, self._mark, self.found, level)
        names = {CODES[name]: name for name in reversed(offered)} | {kernels.SER: "SER"}
        return self.raise_unguarded([names[code] for code in level.tolist()])

    def raise_unguarded(self, levels: list[str]) -> list[str]:
        """SI counts on partners that look out for common writes; without such partners it has to be SER."""
        guarded = guards(levels)
        return ["SER" if level == "SI" and self.pivot(p, "SI", guarded) else level for p, level in enumerate(levels)]

    def pivot(self, p: int, level: str, guarded: Int32s) -> bool:
        """Is p the pivot of a critical cycle at this level? ``found`` then describes it."""
        return bool(kernels.pivot(self.graph, p, CODES[level], guarded, self._mark, self.found))

    def unsafe(self, levels: Sequence[str]) -> int:
        """The first instance that is a pivot at its level, or -1; ``found`` then describes the cycle."""
        codes = np.array([CODES[level] for level in levels], np.int32)
        return int(kernels.unsafe(self.graph, codes, guards(levels), self._mark, self.found))

    def dangerous(self, pivots: Sequence[int], guarded: Int32s) -> list[int]:
        """All partners in the pairs of RW edges at these pivots."""
        raised = np.zeros(self.sets.instances, np.bool_)
        for p in pivots:
            kernels.dangerous(self.graph, p, guarded, self._mark, raised)
        partners: list[int] = np.flatnonzero(raised).tolist()
        return partners


def guards(levels: Sequence[str]) -> Int32s:
    """Which instances see every earlier writer of what they surely write."""
    return np.array([level in ("PSI", "SI", "SER") for level in levels], np.bool_)


def allocate(sets: Sets, rules: str = "refined") -> list[str]:
    """A level for each instance, by one of the sets of rules."""
    return Refined(sets).allocate() if rules == "refined" else simple_rules(sets, repaired=rules == "repaired")
