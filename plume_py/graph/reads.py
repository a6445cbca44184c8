"""Who read from whom: the reads of a history resolved, and the patterns that need no graph (TAP a-f, j, lists)."""

from dataclasses import dataclass

import numpy as np

from plume_py import accel
from plume_py.graph import list_kernels, reads_kernels
from plume_py.history.model import ABORTED, COMMITTED, NOBODY, UNKNOWN, History, Int8s, Int32s, Int64s

INITIAL = reads_kernels.INITIAL

# How many operations are remembered per pattern, as candidates for an example.
EXAMPLES = 1000

LETTERS = "abcdefj"
DUPLICATE, INCOMPATIBLE = "duplicate-element", "incompatible-order"


@dataclass(frozen=True)
class Reads:
    """External reads, transaction by transaction in program order."""

    live: Int8s  # its writes count: committed, or of unknown outcome but read by a committed transaction
    judged: Int8s  # its reads count: committed
    read_start: Int64s  # reads of t: read_start[t] .. read_start[t + 1]
    read_op: Int32s  # the operation
    read_source: Int32s  # the transaction it read from, or INITIAL
    version_final: Int8s
    version_order: Int32s  # rows (t1, t2, -2 - i): list read i shows t1's append right before t2's
    counts: dict[str, int]  # pattern -> how many reads show it
    examples: dict[str, list[int]]  # pattern -> operations that show it

    def reader(self, r: int) -> int:
        """The transaction of read ``r``."""
        return int(np.searchsorted(self.read_start, r, side="right")) - 1


def resolve_reads(history: History) -> Reads:
    """Resolve every read of a committed transaction."""
    accel.prepare(8 * history.operations, reads_kernels)
    live, judged = _roles(history)
    source = _sources(history)
    keys, versions, transactions = len(history.key_code), len(history.version_key), history.transactions
    columns = history.op_kind, history.op_key, history.op_version, history.txn_start
    final = np.zeros(versions, np.uint8)
    reads_kernels.mark_final_writes(*columns, live, _stamps(keys), final)
    reads = int(np.count_nonzero((history.op_kind & 1) == 0))
    read_start = np.zeros(transactions + 1, np.int64)
    read_op, read_source = np.empty(reads, np.int32), np.empty(reads, np.int32)
    counts = np.zeros(len(LETTERS), np.int64)
    examples = np.zeros((len(LETTERS), EXAMPLES), np.int64)
    external = reads_kernels.resolve(
        *columns, judged, history.version_writer, source, final, np.zeros(versions, np.uint8),
        _stamps(keys), _stamps(keys), _stamps(keys), _stamps(keys), _stamps(keys),
        read_start, read_op, read_source, counts, examples,
    )  # fmt: skip
    found, shown = _by_pattern(LETTERS, counts, examples)
    return Reads(
        live=live,
        judged=judged,
        read_start=read_start,
        read_op=read_op[:external],
        read_source=read_source[:external],
        version_final=final,
        version_order=_read_lists(history, judged, source, found, shown),
        counts=found,
        examples=shown,
    )


def _stamps(size: int) -> Int32s:
    return np.full(size, -1, np.int32)


def _roles(history: History) -> tuple[Int8s, Int8s]:
    """Whose writes count, and whose reads."""
    judged = (history.txn_status == COMMITTED).astype(np.uint8)
    if history.init_txn != NOBODY:
        judged[history.init_txn] = 0  # it is the initial state, not a transaction of the graph
    live = judged.copy()
    if np.any(history.txn_status == UNKNOWN):
        readers = np.repeat(judged, np.diff(history.txn_start)) == 1
        seen = [history.op_version[readers & ((history.op_kind & 1) == 0)]]
        if history.lists is not None:
            listed = np.repeat(readers[history.lists.ops], np.diff(history.lists.starts))
            seen.append(history.lists.items[listed])
        writers = history.version_writer[np.concatenate(seen)]
        read_from = np.unique(writers[writers != NOBODY])
        live[read_from[history.txn_status[read_from] == UNKNOWN]] = 1
    return live, judged


def _sources(history: History) -> Int32s:
    """For each version: its writer, or INITIAL, THIN_AIR, ABORTED."""
    source = history.version_writer.copy()
    nobody = source == NOBODY
    gone = np.zeros(len(source), np.bool_)
    gone[~nobody] = history.txn_status[source[~nobody]] == ABORTED
    source[gone] = reads_kernels.ABORTED
    source[nobody] = reads_kernels.THIN_AIR
    if history.initial is not None:
        source[nobody & (history.version_value == history.initial)] = INITIAL
    if history.init_txn != NOBODY:
        source[history.version_writer == history.init_txn] = INITIAL
    return source


def key_writers(history: History, reads: Reads) -> tuple[Int64s, Int32s]:
    """(start, writers): the live writers of key x are writers[start[x]:start[x + 1]], ascending."""
    keys = len(history.key_code)
    columns = history.op_kind, history.op_key, history.op_version, history.txn_start, reads.live, reads.version_final
    start = np.zeros(keys + 1, np.int64)
    reads_kernels.count_key_writers(*columns, _stamps(keys), start)
    start = np.cumsum(start)
    writers = np.empty(int(start[-1]), np.int32)
    reads_kernels.list_key_writers(*columns, _stamps(keys), start[:-1].copy(), writers)
    return start, writers


def _by_pattern(
    names: "str | tuple[str, ...]", counts: Int64s, examples: Int64s
) -> tuple[dict[str, int], dict[str, list[int]]]:
    found = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    kept = {name: row[: found[name]].tolist() for name, row in zip(names, examples, strict=True) if name in found}
    return found, kept


def _read_lists(
    history: History, judged: Int8s, source: Int32s, found: dict[str, int], shown: dict[str, list[int]]
) -> Int32s:
    """Judge the lists; adds to ``found`` and ``shown``, and returns the version order that they fix."""
    lists = history.lists
    if lists is None:
        return np.empty((0, 3), np.int32)
    accel.prepare(4 * len(lists.items) + 4 * len(lists.ops), list_kernels)
    owners = (np.searchsorted(history.txn_start, lists.ops, side="right") - 1).astype(np.int32)
    longest = _stamps(len(history.key_code))
    list_kernels.find_longest(lists.ops, judged[owners], lists.starts, history.op_key, longest)
    counts, examples = np.zeros(5, np.int64), np.zeros((5, EXAMPLES), np.int64)
    edges: Int32s = list_kernels.check_lists(
        lists.ops, owners, judged[owners], lists.starts, lists.items,
        history.op_kind, history.op_key, history.op_version, history.txn_start, source, longest, counts, examples,
    )  # fmt: skip
    more, kept = _by_pattern(("a", "b", "e", DUPLICATE, INCOMPATIBLE), counts, examples)
    for name, n in more.items():
        found[name] = found.get(name, 0) + n
        shown.setdefault(name, []).extend(int(lists.ops[i]) for i in kept[name])
    return edges
