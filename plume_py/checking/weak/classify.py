"""Find which patterns occur, how often, and in which triples (t1, t2, t3, x). Each triple has exactly one name.

A triple is named after the weakest of RC, RA and TCC whose premise holds for (t2, t3) and whose commit order puts t1
before t2. It is h, k or m if t1 is causally before t2 (as the initial state always is), else i, l or n.

Echoes are skipped: triples whose forced edge t2 -> t1 is causal anyway. There the reader is right, and only another
violation puts t1 before t2. Nothing remains unexplained: on a cycle of a commit order, causal paths can replace echoes.
The remaining cycle has another forced edge, or is a causal cycle (g), or one of causal and version orders.
"""

from dataclasses import dataclass

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.records import Cycles, Triples
from plume_py.checking.weak import triples_kernels as kernels
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import INITIAL, Int32s
from plume_py.levels.patterns import ORDERED, TRIPLES, VERSION_CYCLE

# Number of triples kept per name, from which the example is chosen.
KEPT = 1000
# The same if clocks come in blocks, and the names are decided afterwards.
KEPT_IN_BLOCKS = 1 << 16
# After this many steps, only some triples are examined; the counts are then lower bounds.
STEPS, STEPS_PER_OPERATION = 10_000_000, 100
# Number of writers per session examined then, for each read.
DEPTH = 8
ALL = 1 << 31
# Loop steps of plain Python per triple.
STEPS_PER_TRIPLE = 10

NAMES = "hiklmn"


@dataclass(frozen=True)
class Triple:
    """t3's read ``r`` of some x returned t1's version, although t2 wrote x in between; t1 may be INITIAL."""

    t1: int
    t2: int
    t3: int
    r: int


@dataclass(frozen=True)
class PatternCounts:
    """The count of each pattern, and some of its triples."""

    counts: dict[str, int]
    triples: dict[str, list[Triple]]
    exact: bool
    stopped: str = ""  # the time or memory limit that was reached before, if any


def name_patterns(weak: WeakLevels, strongest: str) -> PatternCounts:
    """Return the patterns that violate the levels up to ``strongest`` (RC, RA or TCC)."""
    analysis = weak.analysis
    counts = dict(analysis.reads.counts)
    if len(analysis.reads_on_cycles):
        counts["g"] = len(analysis.reads_on_cycles)
    elif not analysis.version_ordering.acyclic:
        counts[VERSION_CYCLE] = 1
    found, triples, exact = _name_triples(weak, ORDERED.index(strongest) + 1)
    return PatternCounts(counts | found, triples, exact)


def _name_triples(weak: WeakLevels, levels: int) -> tuple[dict[str, int], dict[str, list[Triple]], bool]:
    components = [weak.commit_order(level).ordering.component for level in ORDERED[:levels]]
    nowhere = np.full(weak.analysis.history.transactions, -1, np.int32)
    cycles = Cycles(*components, *[nowhere] * (len(ORDERED) - levels))
    budget = STEPS + STEPS_PER_OPERATION * weak.analysis.history.operations
    dispatch.prepare(STEPS_PER_TRIPLE * min(budget, _possible(weak.analysis, cycles)), kernels)
    found = _search(weak.analysis, cycles, levels, ALL, budget)
    return found if found is not None else _search(weak.analysis, cycles, levels, DEPTH, 1 << 62) or ({}, {}, False)


def _possible(analysis: Analysis, cycles: Cycles) -> int:
    """Return an upper bound of the number of triples, before visibility is examined."""
    reads, writers = analysis.reads, analysis.key_writers
    suspect = reads.read_source < 0
    for component in cycles:
        suspect |= component[reads.read_source] >= 0
    return int(np.sum(np.diff(writers.start)[reads.external.key[suspect]])) + len(suspect)


def _search(
    analysis: Analysis, cycles: Cycles, levels: int, depth: int, budget: int
) -> tuple[dict[str, int], dict[str, list[Triple]], bool] | None:
    """Return counts, triples and whether they are exact, or None if ``budget`` is exceeded."""
    reads = analysis.reads
    counts = np.zeros(len(NAMES), np.int64)
    found = np.zeros(len(NAMES), np.int64)
    whole = analysis.whole_clocks is not None
    kept = np.zeros((len(NAMES), KEPT if whole else KEPT_IN_BLOCKS, 4), np.int32)
    for block in analysis.clocks():
        budget = kernels.name_triples(
            reads.external, analysis.key_writers, analysis.groups, block, analysis.spans,
            cycles, levels, depth, budget, Triples(counts, kept, found),
        )  # fmt: skip
        if budget < 0:
            return None
    rows = {NAMES[i]: kept[i, : found[i]] for i in range(len(NAMES))}
    exact = depth == ALL
    if not whole:
        exact = exact and bool(np.all(counts == found))
        rows = _settle(analysis, rows)
        counts = np.array([len(rows[name]) for name in NAMES])
    triples = {name: [Triple(*row) for row in found_rows.tolist()] for name, found_rows in rows.items()}
    return {name: int(n) for name, n in zip(NAMES, counts, strict=True) if n}, triples, exact


def _settle(analysis: Analysis, rows: dict[str, Int32s]) -> dict[str, Int32s]:
    """Split the triples of each level by whether t1 is causally before t2."""
    settled: dict[str, Int32s] = {}
    for causal, forced in map(tuple, TRIPLES.values()):
        triples = rows[causal]
        before = triples[:, 0] == INITIAL
        written = np.flatnonzero(~before)
        before[written] = analysis.before(triples[written, 0], triples[written, 1])
        settled[causal], settled[forced] = triples[before], triples[~before]
    return settled
