"""Which patterns occur, how often, and where: by triples (t1, t2, t3, x), each with exactly one name.

A triple is named by the weakest of RC, RA, TCC whose premise holds for (t2, t3) and whose own commit order puts t1
before t2: h, k, m if t1 is causally before t2 (as the initial state always is), else i, l, n.

An echo is none: a triple whose forced edge t2 -> t1 is causal anyway. Its reader is right, and t1 comes before t2 only
because something else is wrong. Nothing goes unexplained by that: on a cycle of a level's commit order, echoes can be
replaced by the causal paths beside them. What is left has a forced edge that is no echo, or is a cycle of causality (g)
or of that and of version orders, which have names of their own.
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

# Candidates kept per name, for the choice of an example.
KEPT = 1000
# The same when clocks come in blocks and names are settled only afterwards.
KEPT_IN_BLOCKS = 1 << 16
# Steps after which not every triple is looked at any more; the counts are then lower bounds.
STEPS, STEPS_PER_OPERATION = 10_000_000, 100
# How many writers in each session are looked at then, for each read.
DEPTH = 8
ALL = 1 << 31
# Loop steps of plain Python that a triple takes.
STEPS_PER_TRIPLE = 10

NAMES = "hiklmn"


@dataclass(frozen=True)
class Triple:
    """t3's read ``r`` of some x saw t1, although t2, which also wrote x, comes between; t1 may be INITIAL."""

    t1: int
    t2: int
    t3: int
    r: int


@dataclass(frozen=True)
class PatternCounts:
    """Counts of every pattern, and some triples of each that has them."""

    counts: dict[str, int]
    triples: dict[str, list[Triple]]
    exact: bool
    stopped: str = ""  # the limit of time or memory that kept the patterns from being named, if any


def name_patterns(weak: WeakLevels, strongest: str) -> PatternCounts:
    """Every pattern that counts against the levels up to ``strongest`` (RC, RA or TCC)."""
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
    """How many triples there could be, before who knows of whom is asked."""
    reads, writers = analysis.reads, analysis.key_writers
    suspect = reads.read_source < 0
    for component in cycles:
        suspect |= component[reads.read_source] >= 0
    return int(np.sum(np.diff(writers.start)[reads.external.key[suspect]])) + len(suspect)


def _search(
    analysis: Analysis, cycles: Cycles, levels: int, depth: int, budget: int
) -> tuple[dict[str, int], dict[str, list[Triple]], bool] | None:
    """None: it is too much."""
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
