"""Resolve reads: match each read to its writer, and count the patterns that need no graph (TAP a-f, j and lists).

``Analysis`` and the minimizer call ``resolve_reads``. A list read counts as a read of the last element that others
appended; the reference of each key (see ``list_kernels``) also fixes an order of its writers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.checking.graph import list_kernels as kernels
from plume_py.checking.graph import reads_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Findings, ListColumns, Versions, Writers
from plume_py.history.model import (
    ABORTED,
    COMMITTED,
    INITIAL,
    NOBODY,
    READ_LIST,
    UNKNOWN,
    History,
    Int8s,
    Int32s,
    Int64s,
)
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN

# Patterns of lists, in the order of the kernels.
PATTERNS = ("a", "b", "c", "d", "e", "f", DUPLICATE, TORN, INCOMPATIBLE)

# Number of reads kept per pattern, as candidates for examples.
EXAMPLES = 1000
LETTERS = "abcdefj"


@dataclass(frozen=True)
class Reads:
    """External reads, by transaction and in program order."""

    participates: Int8s  # its writes count: committed, or unknown and read by a committed one
    judged: Int8s  # its reads count: committed
    read_start: Int64s  # reads of t: read_start[t] .. read_start[t + 1]
    read_op: Int32s  # the operation
    read_key: Int32s  # its key
    read_source: Int32s  # the transaction it read from, or INITIAL
    version_final: Int8s
    version_order: Int32s  # rows (t1, t2, -1, i): list i shows t1's append directly before t2's, or t1's and not t2's
    list_last: Int32s  # by list: the last element that it shows of others, or -1
    list_reference: Int32s  # by key: its reference, or -1
    counts: dict[str, int]  # pattern -> number of reads that show it
    examples: dict[str, list[int]]  # pattern -> operations that show it

    @property
    def external(self) -> ExternalReads:
        return ExternalReads(self.read_start, self.read_op, self.read_key, self.read_source)

    def reader(self, r: int) -> int:
        return int(np.searchsorted(self.read_start, r, side="right")) - 1

    def version(self, history: History, r: int) -> int | None:
        """Return the version that read ``r`` returned.

        Of a list, its last element by others. None: the list had none.
        """
        o = int(self.read_op[r])
        if history.op_kind[o] != READ_LIST or history.lists is None:
            return int(history.op_version[o])
        last = int(self.list_last[np.searchsorted(history.lists.ops, o)])
        return None if last < 0 else last


@dataclass(frozen=True)
class ListFindings:
    """What the lists of a history show."""

    last: Int32s  # by list: the last element that it shows of others, or -1
    order: Int32s  # rows (t1, t2, -1, i): list i shows that t1's version precedes t2's
    reference: Int32s  # by key: its reference, or -1
    counts: dict[str, int]  # pattern -> number of lists that show it
    examples: dict[str, list[int]]  # pattern -> operations that show it


def resolve_reads(history: History) -> Reads:
    """Resolve every read of a committed transaction."""
    dispatch.prepare(8 * history.operations, reads_kernels)
    participates, judged = _roles(history)
    source = version_sources(history)
    columns, keys = Columns.of(history), len(history.key_code)
    final = np.zeros(len(history.version_key), np.uint8)
    reads_kernels.mark_final_writes(columns, participates, _stamps(keys), final)
    listed = _lists(history, participates, judged, source)
    count = int(np.count_nonzero((history.op_kind & 1) == 0))
    reads = ExternalReads(np.zeros(history.transactions + 1, np.int64), *(np.empty(count, np.int32) for _ in range(3)))
    findings = Findings.none(len(LETTERS), EXAMPLES)
    list_op = np.empty(0, np.int64) if history.lists is None else history.lists.ops
    versions = Versions(history.version_writer, source, final)
    external = reads_kernels.resolve(columns, keys, judged, versions, list_op, listed.last, reads, findings)
    found, shown = by_pattern(LETTERS, findings)
    for name, n in listed.counts.items():
        found[name] = found.get(name, 0) + n
        shown.setdefault(name, []).extend(listed.examples[name])
    return Reads(
        participates=participates,
        judged=judged,
        read_start=reads.start,
        read_op=reads.op[:external],
        read_key=reads.key[:external],
        read_source=reads.source[:external],
        version_final=final,
        version_order=listed.order,
        list_last=listed.last,
        list_reference=listed.reference,
        counts=found,
        examples=shown,
    )


def _stamps(size: int) -> Int32s:
    return np.full(size, -1, np.int32)


def _roles(history: History) -> tuple[Int8s, Int8s]:
    """Return by transaction whether its writes count, and whether its reads count."""
    judged = (history.txn_status == COMMITTED).astype(np.uint8)
    if history.init_txn != NOBODY:
        judged[history.init_txn] = 0  # it is the initial state, not a transaction of the graph
    participates = judged.copy()
    if np.any(history.txn_status == UNKNOWN):
        readers = np.repeat(judged, np.diff(history.txn_start)) == 1
        seen = [history.op_version[readers & ((history.op_kind & 1) == 0)]]
        if history.lists is not None:
            listed = np.repeat(readers[history.lists.ops], np.diff(history.lists.starts))
            seen.append(history.lists.items[listed])
        writers = history.version_writer[np.concatenate(seen)]
        read_from = np.unique(writers[writers != NOBODY])
        participates[read_from[history.txn_status[read_from] == UNKNOWN]] = 1
    return participates, judged


def version_sources(history: History) -> Int32s:
    """Return for each version its writer, or INITIAL, THIN_AIR or ABORTED."""
    source = history.version_writer.copy()
    nobody = source == NOBODY
    gone = np.zeros(len(source), np.bool_)
    gone[~nobody] = history.txn_status[source[~nobody]] == ABORTED
    source[gone] = reads_kernels.ABORTED
    source[nobody] = reads_kernels.THIN_AIR
    source[history.initial_versions] = INITIAL
    if history.init_txn != NOBODY:
        source[history.version_writer == history.init_txn] = INITIAL
    return source


def key_writers(history: History, reads: Reads) -> Writers:
    columns, keys = Columns.of(history), len(history.key_code)
    start = np.zeros(keys + 1, np.int64)
    reads_kernels.count_key_writers(columns, reads.participates, reads.version_final, _stamps(keys), start)
    start = np.cumsum(start)
    writers = np.empty(int(start[-1]), np.int32)
    reads_kernels.list_key_writers(
        columns, reads.participates, reads.version_final, _stamps(keys), start[:-1].copy(), writers
    )
    return Writers(start, writers)


def _lists(history: History, participates: Int8s, judged: Int8s, source: Int32s) -> ListFindings:
    if history.lists is None:
        return ListFindings(np.empty(0, np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int32), {}, {})
    return read_lists(history, participates, judged, source)


# Lists


def read_lists(history: History, participates: Int8s, judged: Int8s, source: Int32s) -> ListFindings:
    """Check all lists; ``source`` is as in ``version_sources``."""
    columns = _columns(history, judged, source)
    keys, versions = len(history.key_code), len(source)
    seen, at = np.full((versions, 2), -1, np.int32), np.full(versions, -1, np.int32)
    references = kernels.find_references(columns, keys, seen, at)
    last = np.full(len(columns.ops), -1, np.int32)
    findings = Findings.none(len(PATTERNS), EXAMPLES)
    shown = kernels.check_lists(columns, seen, references, last, findings)
    unseen = kernels.unseen_appends(Columns.of(history), participates, references, np.full(keys, -1, np.int32))
    found, kept = by_pattern(PATTERNS, findings)
    by_op = {pattern: columns.ops[rows].tolist() for pattern, rows in kept.items()}
    order = np.concatenate((shown, unseen))
    return ListFindings(last, order, references.rows[:, 0].astype(np.int32), found, by_op)


def by_pattern(names: Sequence[str], findings: Findings) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return counts and examples of the patterns that occur."""
    found = {name: int(n) for name, n in zip(names, findings.counts, strict=True) if n}
    rows = zip(names, findings.examples, strict=True)
    return found, {name: row[: found[name]].tolist() for name, row in rows if name in found}


def faults(history: History, judged: Int8s, source: Int32s, i: int) -> dict[str, int]:
    """Return the faults of list i without comparing it to others.

    By pattern, a position in the elements of all lists.
    """
    columns = _columns(history, judged, source)
    fault = np.empty(len(PATTERNS), np.int64)
    kernels.find_faults(columns, i, np.full((len(source), 2), -1, np.int32), 0, fault)
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
