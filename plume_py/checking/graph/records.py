"""What kernels take: arrays that belong together, as one record each.

Numba passes a named tuple as its arrays, so records are for kernels that are called once per history, or once per
round; what those call in their inner loops keeps plain arrays, since every call copies a record.
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
        """The columns of a history."""
        return Columns(*(getattr(history, name) for name in Columns._fields))


class Versions(NamedTuple):
    """By version: its writer, its source as in ``reads_kernels``, and whether it is its writer's last of the key."""

    writer: Int32s
    source: Int32s
    final: Int8s


class ExternalReads(NamedTuple):
    """Reads of what others wrote, those of t from start[t] to start[t + 1]: operation, key, source (-1: initial)."""

    start: Int64s
    op: Int32s
    key: Int32s
    source: Int32s


class Writers(NamedTuple):
    """The live writers of key x, ascending, are txn[start[x]:start[x + 1]]."""

    start: Int64s
    txn: Int32s


class KeyGroups(NamedTuple):
    """The writers of each key split by session.

    Key x has the groups key_group[x] .. key_group[x + 1] - 1. Group g are the writers group_start[g] .. group_start[g +
    1] - 1 of ``Writers.txn``, all of one session.
    """

    key_group: Int64s
    group_start: Int64s
    group_session: Int32s


class Predecessors(NamedTuple):
    """Who comes right before t: t - 1 in its session, its sources (-1: the initial state), and extra ones."""

    txn_session: Int32s
    read_start: Int64s
    read_source: Int32s
    extra_start: Int64s
    extra_source: Int32s


class Clocks(NamedTuple):
    """Which transactions of sessions low .. high - 1 are causally before which others; ask ``clock_kernels.horizon``.

    Either as vectors, in ``clock``, or (where that has no columns) as what sessions learnt, for all of them. With t a
    session learns of the transactions ``log[log_start[t]:log_start[t + 1]]`` and of all before them. The same again by
    session and, from ``learner_start[s]`` to ``learner_start[s + 1]``, by what was ``learnt``, with the ``learner`` t.
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
    """When transactions began and ended, where real time counts; else empty. NO_TIME: not known, or does not count."""

    begin: Int64s
    end: Int64s

    @staticmethod
    def none() -> "Spans":
        """Real time does not count."""
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))


class Slots(NamedTuple):
    """Reads and writes in the order of some slots.

    Slot i has the reads read_start[i] .. read_start[i + 1] - 1 (key, source and number of each), and writes likewise.
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
    """By name: how many triples it has, and those that are kept: kept[i, j] is (t1, t2, t3, r) for j < found[i]."""

    counts: Int64s
    kept: Int32s
    found: Int64s


class Logs(NamedTuple):
    """What tree clocks are made of, besides table and nodes: session ``txn_session[t]`` learns start[t] .. end[t] - 1.

    ``sizes`` counts the entries of the table, nodes, steps; ``stack`` has room for nested nodes.
    """

    txn_session: Int32s
    session_start: Int32s
    start: Int64s
    end: Int64s
    sizes: Int64s
    stack: Int64s


class Findings(NamedTuple):
    """By pattern: how often it occurs, and operations (or lists) that show it."""

    counts: Int64s
    examples: Int64s

    @staticmethod
    def none(patterns: int, room: int) -> "Findings":
        """Nothing found yet."""
        return Findings(np.zeros(patterns, np.int64), np.zeros((patterns, room), np.int64))


class ListColumns(NamedTuple):
    """Operation ``ops[i]`` of ``txn[i]`` read list i, ``items[starts[i]:starts[i + 1]]``; see ``list_kernels``.

    ``own_first`` and ``own_count`` are about the appends of its reader, see ``own_appends``. The last five link the
    appends of one transaction to one key, see ``chain_appends``.
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
    """By key: the longest list that is right by itself, as rows (list or -1, base, size, whole).

    ``items`` and their ``owners`` stand from ``base`` on; ends[k] tells whether its owner's last append stands at k;
    at[v] is where v stands, from ``base`` on. Only the first ``whole`` elements stand together as they should: the
    list's own reader may have added to one whose last writer was incomplete.
    """

    rows: Int64s
    items: Int32s
    owners: Int32s
    ends: Int8s
    at: Int32s
