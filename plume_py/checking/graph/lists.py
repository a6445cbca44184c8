"""List reads: what each shows of others, which order of the writers they fix together, and what is wrong with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plume_py.base import accel
from plume_py.checking.graph import list_kernels as kernels
from plume_py.history.model import History, Int8s, Int32s, Int64s
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN

# What can be wrong with a list, in the order of the kernels.
PATTERNS = ("a", "b", "c", "d", "e", "f", DUPLICATE, TORN, INCOMPATIBLE)

# How many reads are remembered per pattern, as candidates for an example.
EXAMPLES = 1000


class Columns(NamedTuple):
    """What the kernels look at: operation ``ops[i]`` of ``txn[i]`` read list i, ``items[starts[i]:starts[i + 1]]``.

    The last five link the appends of one transaction to one key, see ``chain_appends``.
    """

    ops: Int64s
    txn: Int32s
    judged: Int8s
    starts: Int64s
    items: Int32s
    op_kind: Int8s
    op_key: Int32s
    op_version: Int32s
    txn_start: Int64s
    writer: Int32s
    source: Int32s
    following: Int32s
    left: Int32s
    version_op: Int32s
    times: Int32s
    opens: Int8s


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
    keys, versions, lists = len(history.key_code), len(source), len(columns.ops)
    own_first, own_count = _own_appends(columns, keys)
    seen, at = np.full((versions, 2), -1, np.int32), np.full(versions, -1, np.int32)
    reference, items, owners, ends = kernels.find_references(columns, keys, own_first, own_count, seen, at)
    last = np.full(lists, -1, np.int32)
    counts, examples = np.zeros(len(PATTERNS), np.int64), np.zeros((len(PATTERNS), EXAMPLES), np.int64)
    shown = kernels.check_lists(
        columns, own_first, own_count, seen, at, reference, items, owners, ends, last, counts, examples
    )
    unseen = kernels.unseen_appends(
        history.op_kind, history.op_key, history.op_version, history.txn_start, live,
        reference, owners, at, np.full(keys, -1, np.int32),
    )  # fmt: skip
    found, kept = by_pattern(PATTERNS, counts, examples)
    by_op = {pattern: columns.ops[rows].tolist() for pattern, rows in kept.items()}
    order = np.concatenate((shown, unseen))
    return ListFindings(last, order, reference[:, 0].astype(np.int32), found, by_op)


def by_pattern(names: Sequence[str], counts: Int64s, examples: Int64s) -> tuple[dict[str, int], dict[str, list[int]]]:
    """What kernels counted and kept, of the patterns that occur."""
    found = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    kept = {name: row[: found[name]].tolist() for name, row in zip(names, examples, strict=True) if name in found}
    return found, kept


def faults(history: History, judged: Int8s, source: Int32s, i: int) -> dict[str, int]:
    """What is wrong with list i by itself: by pattern, where it shows (as a place in all lists' elements)."""
    columns = _columns(history, judged, source)
    own_first, own_count = _own_appends(columns, len(history.key_code))
    fault = np.empty(len(PATTERNS), np.int64)
    kernels.judge(columns, i, own_first, own_count, np.full((len(source), 2), -1, np.int32), 0, fault)
    return {pattern: int(place) for pattern, place in zip(PATTERNS, fault, strict=True) if place >= 0}


def _columns(history: History, judged: Int8s, source: Int32s) -> Columns:
    lists = history.lists
    assert lists is not None
    operations, versions, keys = history.operations, len(source), len(history.key_code)
    accel.prepare(4 * len(lists.items) + 4 * operations, kernels)
    following, left = np.empty(operations, np.int32), np.empty(operations, np.int32)
    version_op, times = np.full(versions, -1, np.int32), np.zeros(versions, np.int32)
    opens = np.zeros(versions, np.uint8)
    kernels.chain_appends(
        history.op_kind, history.op_key, history.op_version, history.txn_start,
        np.full(keys, -1, np.int32), np.empty(keys, np.int32), following, left, version_op, times, opens,
    )  # fmt: skip
    owner = (np.searchsorted(history.txn_start, lists.ops, side="right") - 1).astype(np.int32)
    return Columns(
        lists.ops, owner, judged[owner], lists.starts, lists.items,
        history.op_kind, history.op_key, history.op_version, history.txn_start,
        history.version_writer, source, following, left, version_op, times, opens,
    )  # fmt: skip


def _own_appends(columns: Columns, keys: int) -> tuple[Int32s, Int32s]:
    own_first, own_count = np.empty(len(columns.ops), np.int32), np.empty(len(columns.ops), np.int32)
    kernels.own_appends(columns, np.full(keys, -1, np.int32), np.empty(keys, np.int32), own_first, own_count)
    return own_first, own_count
