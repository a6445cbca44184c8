"""Records of arrays that kernels take as one argument.

Numba passes a named tuple as its arrays, and unpacks it at each call from Python. So records are for kernels that are
called once per history or round.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py.history.model import History, Int8s, Int32s, Int64s

Counts = npt.NDArray[np.integer[Any]]


class Columns(NamedTuple):
    """Operations, transactions and sessions, as in ``History``."""

    op_kind: Int8s
    op_key: Int32s
    op_version: Int32s
    txn_start: Int64s
    txn_session: Int32s
    session_start: Int32s

    @staticmethod
    def of(history: History) -> "Columns":
        return Columns(*(getattr(history, name) for name in Columns._fields))


class Versions(NamedTuple):
    """By version.

    Its writer, its source as in ``reads_kernels``, and whether it is its writer's last write of the key.
    """

    writer: Int32s
    source: Int32s
    final: Int8s


class ExternalReads(NamedTuple):
    """Reads of other transactions' writes: operation, key, source (-1: initial).

    Transaction t has the reads start[t] .. start[t + 1] - 1.
    """

    start: Int64s
    op: Int32s
    key: Int32s
    source: Int32s


class Writers(NamedTuple):
    """The participating writers of key x, ascending: txn[start[x]:start[x + 1]]."""

    start: Int64s
    txn: Int32s


class KeyGroups(NamedTuple):
    """The writers of each key, grouped by session.

    Key x has the groups key_group[x] .. key_group[x + 1] - 1. Group g consists of the writers group_start[g] ..
    group_start[g + 1] - 1 of ``Writers.txn``, all of one session.
    """

    key_group: Int64s
    group_start: Int64s
    group_session: Int32s


class Predecessors(NamedTuple):
    """Direct predecessors of each transaction t: t - 1 in its session, the writers that it read from (-1: the initial
    state), and ``extra`` edges, such as real time.
    """

    txn_session: Int32s
    read_start: Int64s
    read_source: Int32s
    extra_start: Int64s
    extra_source: Int32s


class Clocks(NamedTuple):
    """Causal clocks of sessions low .. high - 1; call ``clock_kernels.horizon``.

    Either vectors, in ``clock``, or tree clocks if ``clock`` has no columns; tree clocks cover all sessions. With t, a
    session learns of the transactions ``log[log_start[t]:log_start[t + 1]]`` and of all before them. The same, sorted
    by session and by what was ``learnt``, from ``learner_start[s]`` to ``learner_start[s + 1]``, with the ``learner``
    t.
    """

    low: int
    high: int
    txn_session: Int32s
    session_start: Int32s
    clock: Counts
    log_start: Int64s
    log: Int32s
    learner_start: Int64s
    learnt: Int32s
    learner: Int32s


class Spans(NamedTuple):
    """Start and end times if real time is included, else empty. NO_TIME: unknown, or not participating."""

    begin: Int64s
    end: Int64s

    @staticmethod
    def none() -> "Spans":
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))


class Slots(NamedTuple):
    """Reads and writes in slot order; see ``edge_kernels.lay_out_slots``.

    Slot i has the reads read_start[i] .. read_start[i + 1] - 1 (key, source and number of each), and writes in the same
    way.
    """

    read_start: Int64s
    write_start: Int64s
    read_key: Int32s
    read_source: Int32s
    read_number: Int32s
    write_key: Int32s


class Cycles(NamedTuple):
    """The components of the weak levels' commit orders, by transaction; -1 off every cycle."""

    rc: Int32s
    ra: Int32s
    tcc: Int32s


class Triples(NamedTuple):
    """Per name: the number of triples, and those kept: kept[i, j] is (t1, t2, t3, r) for j < found[i]."""

    counts: Int64s
    kept: Int32s
    found: Int64s


class Logs(NamedTuple):
    """The parts of tree clocks other than table and nodes.

    Session ``txn_session[t]`` learns the nodes start[t] .. end[t] - 1 with t. ``sizes`` counts table entries, nodes and
    steps; ``stack`` has room for nested nodes.
    """

    txn_session: Int32s
    session_start: Int32s
    start: Int64s
    end: Int64s
    sizes: Int64s
    stack: Int64s


class Findings(NamedTuple):
    """Per pattern: the number of occurrences, and operations (or lists) that show it."""

    counts: Int64s
    examples: Int64s

    @staticmethod
    def none(patterns: int, room: int) -> "Findings":
        return Findings(np.zeros(patterns, np.int64), np.zeros((patterns, room), np.int64))


class ListColumns(NamedTuple):
    """Operation ``ops[i]`` of ``txn[i]`` read list i, ``items[starts[i]:starts[i + 1]]``; see ``list_kernels``.

    ``own_appends`` fills ``own_first`` and ``own_count``; ``chain_appends`` fills the last five, which link the appends
    of one transaction to one key.
    """

    ops: Int64s
    txn: Int32s
    judged: Int8s
    starts: Int64s
    items: Int32s
    own_first: Int32s
    own_count: Int32s
    op_kind: Int8s
    op_key: Int32s
    op_version: Int32s
    txn_start: Int64s
    writer: Int32s
    source: Int32s
    following: Int32s
    remaining: Int32s
    version_op: Int32s
    times: Int32s
    opens: Int8s


class References(NamedTuple):
    """Per key its reference (see ``list_kernels``), as rows (list or -1, base, size, whole).

    ``items`` and their ``owners`` begin at ``base``. ends[k] is 1 if position k holds its owner's last append. at[v] is
    the position of v, counted from ``base``. Only the first ``whole`` elements are consecutive per writer: the list's
    reader may have appended after an incomplete last writer.
    """

    rows: Int64s
    items: Int32s
    owners: Int32s
    ends: Int8s
    at: Int32s


class NodeEdges(NamedTuple):
    """The edges from node v, by number: edges[start[v]:start[v + 1]]; edge e leads to target[e]."""

    start: Int64s
    edges: Int32s
    target: Int32s


class SolverArrays(NamedTuple):
    """Levels, reads and writes for the kernels of the strong levels; see ``SolverColumns``."""

    sees: Int8s
    participates: Int8s
    snapshot_node: Int32s
    read_start: Int64s
    read_key: Int32s
    read_version: Int32s
    read_counts: Int8s
    write_start: Int64s
    write_key: Int32s
    write_version: Int32s
    initial_version: Int32s


class Visibility(NamedTuple):
    """What each transaction sees in a commit order; see ``greedy_order_kernels.axiom_violations``."""

    sees: Int8s
    place: Int32s
    prefix: Int32s
    seen: Int32s
    txn_session: Int32s
    session_start: Int32s


class KeyWriters(NamedTuple):
    """Pairs of a writer and a key, sorted by key and writer."""

    txn: Int32s
    key: Int32s


class ReadVersions(NamedTuple):
    """The versions that are read: writer (-1: initial) and key of each, and its reads, one per transaction.

    Version v has the reads read[start[v]:start[v + 1]]. By read: its ``reader``, and whether that also writes the key.
    """

    start: Int64s
    txn: Int32s
    key: Int32s
    read: Int32s
    reader: Int32s
    also_writes: Int8s


class ClockBlock(NamedTuple):
    """Clocks of one round of inference, for the sessions from ``low`` on; see ``saturation_kernels``."""

    low: int
    clock: Int32s
    seen: Int32s
