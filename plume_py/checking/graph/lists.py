"""List reads: what each shows of others, which order of the writers they fix together, and what is wrong with them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import list_kernels as kernels
from plume_py.checking.graph.records import Columns, Findings, ListColumns
from plume_py.history.model import History, Int8s, Int32s
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN

# What can be wrong with a list, in the order of the kernels.
PATTERNS = ("a", "b", "c", "d", "e", "f", DUPLICATE, TORN, INCOMPATIBLE)

# How many reads are remembered per pattern, as candidates for an example.
EXAMPLES = 1000


@dataclass(frozen=True)
class ListFindings:
    """What the lists of a history tell."""

    last: Int32s  # by list: the last element that it shows of others, or -1
    order: Int32s  # rows (t1, t2, -1, i): list i fixes that t1's version comes before t2's
    reference: Int32s  # by key: the longest list that is right by itself, or -1
    counts: dict[str, int]  # pattern -> how many lists show it
    examples: dict[str, list[int]]  # pattern -> operations that show it


def read_lists(history: History, live: Int8s, judged: Int8s, source: Int32s) -> ListFindings:
    """Judge all lists; ``source`` is as for the kernels of reads."""
    columns = _columns(history, judged, source)
    keys, versions = len(history.key_code), len(source)
    seen, at = np.full((versions, 2), -1, np.int32), np.full(versions, -1, np.int32)
    references = kernels.find_references(columns, keys, seen, at)
    last = np.full(len(columns.ops), -1, np.int32)
    findings = Findings.none(len(PATTERNS), EXAMPLES)
    shown = kernels.check_lists(columns, seen, references, last, findings)
    unseen = kernels.unseen_appends(Columns.of(history), live, references, np.full(keys, -1, np.int32))
    found, kept = by_pattern(PATTERNS, findings)
    by_op = {pattern: columns.ops[rows].tolist() for pattern, rows in kept.items()}
    order = np.concatenate((shown, unseen))
    return ListFindings(last, order, references.rows[:, 0].astype(np.int32), found, by_op)


def by_pattern(names: Sequence[str], findings: Findings) -> tuple[dict[str, int], dict[str, list[int]]]:
    """What kernels counted and kept, of the patterns that occur."""
    found = {name: int(n) for name, n in zip(names, findings.counts, strict=True) if n}
    rows = zip(names, findings.examples, strict=True)
    return found, {name: row[: found[name]].tolist() for name, row in rows if name in found}


def faults(history: History, judged: Int8s, source: Int32s, i: int) -> dict[str, int]:
    """What is wrong with list i by itself: by pattern, where it shows (as a place in all lists' elements)."""
    columns = _columns(history, judged, source)
    fault = np.empty(len(PATTERNS), np.int64)
    kernels.judge(columns, i, np.full((len(source), 2), -1, np.int32), 0, fault)
    return {pattern: int(place) for pattern, place in zip(PATTERNS, fault, strict=True) if place >= 0}


def _columns(history: History, judged: Int8s, source: Int32s) -> ListColumns:
    lists = history.lists
    assert lists is not None
    operations, versions, keys = history.operations, len(source), len(history.key_code)
    dispatch.prepare(4 * len(lists.items) + 4 * operations, kernels)
    owner = (np.searchsorted(history.txn_start, lists.ops, side="right") - 1).astype(np.int32)
    columns = ListColumns(
        ops=lists.ops,
        txn=owner,
        judged=judged[owner],
        starts=lists.starts,
        items=lists.items,
        own_first=np.empty(len(owner), np.int32),
        own_count=np.empty(len(owner), np.int32),
        op_kind=history.op_kind,
        op_key=history.op_key,
        op_version=history.op_version,
        txn_start=history.txn_start,
        writer=history.version_writer,
        source=source,
        following=np.empty(operations, np.int32),
        remaining=np.empty(operations, np.int32),
        version_op=np.full(versions, -1, np.int32),
        times=np.zeros(versions, np.int32),
        opens=np.zeros(versions, np.uint8),
    )
    kernels.chain_appends(columns, np.full(keys, -1, np.int32), np.empty(keys, np.int32))
    kernels.own_appends(columns, np.full(keys, -1, np.int32), np.empty(keys, np.int32))
    return columns
