"""What is left of a history that breaks a weak level, when the reads that break it are left out."""

from collections.abc import Iterator

import numpy as np

from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.without import SubHistory
from plume_py.checking.weak.classify import PatternCounts, name_patterns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import READ_LIST, Bools

# Steps of work (see ``Limits``) that a round counts for, by operation.
STEPS_PER_OPERATION = 200


def healthy_part(weak: WeakLevels, level: str, named: PatternCounts, limits: Limits) -> SubHistory | None:
    """The history without what breaks ``level`` (RC, RA or TCC), for a start what was ``named``; None: no such part."""
    part = SubHistory(weak.analysis)
    while not weak.holds(level):
        limits.check()
        limits.spend(STEPS_PER_OPERATION * part.analysis.history.operations)
        gone = _wrong_reads(part.analysis, named)
        if not np.any(gone):
            return None
        part = part.without(gone)
        weak = WeakLevels(part.analysis)
        named = name_patterns(weak, level)
    return part


def _wrong_reads(analysis: Analysis, named: PatternCounts) -> Bools:
    """The reads that weak patterns are about. A list that is wrong speaks against all lists of its key."""
    history, reads = analysis.history, analysis.reads
    wrong = np.zeros(history.operations, np.bool_)
    for pattern, operations in reads.examples.items():
        if pattern != "j":  # which is k or l, too
            wrong[operations] = True
    wrong[reads.read_op[[triple.r for triples in named.triples.values() for triple in triples]]] = True
    wrong[reads.read_op[analysis.reads_on_cycles]] = True
    is_list = history.op_kind == READ_LIST
    keys = [*history.op_key[wrong & is_list].tolist(), *_keys_on_cycles(analysis)]
    wrong |= is_list & np.isin(history.op_key, keys)
    return wrong


def _keys_on_cycles(analysis: Analysis) -> Iterator[int]:
    """What those write whom version orders put on a cycle."""
    history, ordering = analysis.history, analysis.version_ordering
    if not ordering.acyclic and analysis.causal.acyclic:
        inside = np.repeat(ordering.component >= 0, np.diff(history.txn_start))
        yield from history.op_key[inside & ((history.op_kind & 1) == 1)].tolist()
