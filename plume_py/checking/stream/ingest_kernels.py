"""Kernels that add transactions to the monitor's tables one by one, and resolve their reads.

``monitor`` calls ``take_batch``; ``garbage_collection`` calls ``reindex``. A read finds its writer by value. A read
whose writer has not arrived waits in the version's list and is resolved when the writer arrives. Patterns of single
reads (TAP-b to TAP-f, TAP-j) become events here; the axioms of the levels are in ``level_kernels``.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import level_kernels, order_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.level_kernels import AMBIGUOUS, MIXED_USE, RC, TCC, B, C, D, E, F, J
from plume_py.checking.stream.order_kernels import CAUSAL
from plume_py.checking.stream.table_kernels import (
    ABORTED,
    ABORTED_SOURCE,
    AFTER_OWN,
    COMMITTED,
    EDGE,
    EVENTS,
    FINAL,
    FIRST_OP,
    FIRST_READ,
    HAS_INITIAL,
    IN_ORDER,
    INIT_TXN,
    INITIAL_CODE,
    INITIAL_WRITTEN,
    KEY,
    LAST,
    LAST_READ,
    LENGTH,
    NEXT,
    OF_LIST,
    OP,
    OPS,
    OUT,
    OWN,
    OWN_VERSION,
    PARTICIPATES,
    PENDING,
    POSITION,
    READ_BY,
    READ_IN,
    READER,
    READS,
    REAL_TIME,
    SAME,
    SECOND,
    SEEN,
    SEEN_BY,
    SESSION,
    SOURCE,
    STATUS,
    TXNS,
    UNKNOWN,
    UNKNOWN_OPS,
    USE,
    VERSION,
    WAITING,
    WAITS,
    WRITER,
    WRITES,
    WRITTEN,
)
from plume_py.history.model import INITIAL


def take_batch(m, first, last, kinds, keys, values, starts, sessions, statuses, begins, ends, patient):
    """Take in transactions first .. last - 1 of a batch; stop after one with events, unless ``patient``.

    Transaction i has the operations starts[i] .. starts[i + 1] - 1 of ``kinds``, ``keys`` and ``values``. The other
    arrays have an entry per transaction. Return the number of the next transaction.
    """
    for i in range(first, last):
        t = m.n[TXNS]
        m.txn[t, SESSION] = sessions[i]
        m.txn[t, STATUS] = statuses[i]
        m.begin[t] = begins[i]
        m.end[t] = ends[i]
        for o in range(starts[i], starts[i + 1]):
            at = m.n[OPS]
            m.n[OPS] += 1
            x = tables.intern_key(m, keys[o])
            m.op_kind[at] = kinds[o]
            record_key_use(m, x, kinds[o], values[o], t)
            m.op[at, KEY] = x
            m.op[at, VERSION] = tables.intern_version(m, x, values[o])
        take_transaction(m, t)
        if m.n[EVENTS] and not patient:
            return i + 1
    return last


def record_key_use(m, x, kind, value, t):
    """Record that key x is a register or a list. Raise an event if it is both; initial values fit both."""
    if kind == 0 and m.n[HAS_INITIAL] and value == m.n[INITIAL_CODE]:
        return
    if m.key[x, USE] < 0:
        m.key[x, USE] = kind >> 1
    elif m.key[x, USE] != kind >> 1:
        level_kernels.report_event(m, MIXED_USE, 0, t, x, -1, -1)


def take_transaction(m, t):
    """Take in transaction t, whose session, status, times and operations are in the tables already."""
    m.n[TXNS] += 1
    m.txn[t + 1, FIRST_OP] = m.n[OPS]
    number = m.session[m.txn[t, SESSION]]
    m.txn[t, POSITION] = m.lists[number, LENGTH] + 1
    m.txn[t, FIRST_READ] = m.n[READS]
    m.txn[t, EDGE] = -1
    m.txn[t, OUT] = -1
    m.txn[t, READ_BY] = -1
    m.txn[t, SEEN] = -1
    m.txn[t, PARTICIPATES] = 0
    begin, end = m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]
    record_writers(m, t, begin, end)
    for layer in range(CAUSAL, TCC + 1):
        if level_kernels.has_layer(m, layer):
            order_kernels.start_row(m, layer, t)
            order_kernels.join_ended(m, layer, t)
    tables.insert(m, number, m.txn[t, POSITION] - 1, t)
    order_kernels.index_times(m, t)
    if m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        take_reads(m, t, begin, end)
        level_kernels.start_participating(m, t)
    m.txn[t + 1, FIRST_READ] = m.n[READS]
    for layer in range(CAUSAL, TCC + 1):
        if level_kernels.has_layer(m, layer):
            order_kernels.finish_row(m, layer, t)
    for level in range(RC, TCC + 1):
        if m.levels[level] and not level_kernels.has_layer(m, level):
            order_kernels.append_to_order(m, level, t)
    if m.txn[t, STATUS] == UNKNOWN:
        m.n[UNKNOWN_OPS] += end - begin
    level_kernels.add_late_real_time_edges(m, t)
    level_kernels.check_reads(m, t)
    resolve_waiting_reads(m, t, begin, end)


def record_writers(m, t, begin, end):
    """Record t as the writer of its versions. The last write of each key is final."""
    for o in range(end - 1, begin - 1, -1):
        x, v = m.op[o, KEY], m.op[o, VERSION]
        if m.op_kind[o] & WRITES:
            last = m.key[x, OWN] != t
            if last:
                m.op_kind[o] |= LAST
            if m.version[v, WRITER] < 0:
                m.version[v, WRITER] = t
                m.version[v, FINAL] = last
                m.version[v, WRITTEN] = 0
                if m.version[v, SEEN_BY] >= 0 and m.n[HAS_INITIAL] and m.version_value[v] == m.n[INITIAL_CODE]:
                    m.n[INITIAL_WRITTEN] = 1
            elif m.version[v, WRITER] != t:
                m.version[v, SECOND] = t
                if m.version[v, SEEN_BY] >= 0:
                    level_kernels.report_event(m, AMBIGUOUS, 0, m.version[v, SEEN_BY], v, -1, -1)
            m.key[x, OWN] = t


def take_reads(m, t, begin, end):
    """Resolve the reads of a committed t in program order. Reads from other transactions become rows of ``m.read``."""
    for o in range(begin, end):
        x, v = m.op[o, KEY], m.op[o, VERSION]
        if m.op_kind[o] & WRITES:
            m.version[v, WRITTEN] = 1
            m.key[x, OWN] = -2 - t  # the write of t has been reached
            m.key[x, OWN_VERSION] = v
            continue
        if m.version[v, SEEN_BY] < 0:
            m.version[v, SEEN_BY] = t
        if m.version[v, SECOND] >= 0:
            level_kernels.report_event(m, AMBIGUOUS, 0, t, v, -1, -1)
        w = m.version[v, WRITER]
        if w == t:
            if not m.version[v, WRITTEN]:
                level_kernels.report_event(m, C, 0, t, t, o, -1)
            elif m.key[x, OWN_VERSION] != v:
                level_kernels.report_event(m, E, 0, t, t, o, -1)
            continue
        r = m.n[READS]
        m.n[READS] += 1
        m.read[r, OP] = o
        m.read[r, READER] = t
        m.read[r, NEXT] = -1
        m.read[r, AFTER_OWN] = m.key[x, OWN] == -2 - t and not m.op_kind[o] & OF_LIST  # ``list_orders`` checks lists
        m.read[r, SAME] = m.key[x, LAST_READ] if m.key[x, READ_IN] == t else -1
        m.key[x, READ_IN] = t
        m.key[x, LAST_READ] = r
        find_source(m, r, t, v, w)
        if m.read[r, SOURCE] >= 0:
            for layer in range(CAUSAL, TCC + 1):
                if level_kernels.has_layer(m, layer):
                    order_kernels.join_past(m, layer, t, m.read[r, SOURCE])


def find_source(m, r, t, v, w):
    """Find the source of a new read r of version v, whose writer is w, or -1 if the writer has not arrived."""
    if w < 0 and m.n[HAS_INITIAL] and m.version_value[v] == m.n[INITIAL_CODE]:
        resolve_read(m, r, INITIAL)
    elif w < 0:
        m.read[r, SOURCE] = WAITS
        m.read[r, NEXT] = m.version[v, WAITING]
        m.version[v, WAITING] = r
        m.n[PENDING] += 1
    elif w == m.n[INIT_TXN]:
        resolve_read(m, r, INITIAL)
    elif m.txn[w, STATUS] == ABORTED:
        m.read[r, SOURCE] = ABORTED_SOURCE
        level_kernels.report_event(m, B, 0, t, w, m.read[r, OP], -1)
    else:
        resolve_read(m, r, w)


def resolve_read(m, r, source):
    """Set the source of read r, and raise the events of patterns of this read alone."""
    m.read[r, SOURCE] = source
    o, t = m.read[r, OP], m.read[r, READER]
    x, v = m.op[o, KEY], m.op[o, VERSION]
    if source >= 0 and not m.version[v, FINAL]:
        level_kernels.report_event(m, F, 0, t, source, o, -1)
    if m.read[r, AFTER_OWN]:
        level_kernels.report_event(m, D, 0, t, source, o, -1)
    if not m.n[IN_ORDER]:
        tables.index_reader(m, r)
    if source >= 0:
        m.read[r, NEXT] = m.txn[source, READ_BY]
        m.txn[source, READ_BY] = r
    q = last_read_of(m, t, x)
    while q >= 0:
        other = m.read[q, SOURCE]
        if other != source and other >= INITIAL:
            level_kernels.report_event(m, J, 0, t, source, r, -1)
            return
        q = m.read[q, SAME]


def last_read_of(m, t, x):
    """Return the last read of key x by t, or -1. SAME leads to the reads before it."""
    if m.key[x, READ_IN] == t:
        return m.key[x, LAST_READ]
    for r in range(m.txn[t + 1, FIRST_READ] - 1, m.txn[t, FIRST_READ] - 1, -1):
        if m.op[m.read[r, OP], KEY] == x:
            return r
    return -1


def resolve_waiting_reads(m, t, begin, end):
    """Resolve the reads that waited for the versions of t."""
    for o in range(begin, end):
        v = m.op[o, VERSION]
        if not m.op_kind[o] & WRITES or m.version[v, WRITER] != t:
            continue
        r = m.version[v, WAITING]
        m.version[v, WAITING] = -1
        while r >= 0:
            following = m.read[r, NEXT]
            m.n[PENDING] -= 1
            resolve_late_read(m, r, t)
            r = following


def resolve_late_read(m, r, p):
    """Resolve read r of an earlier transaction, whose writer p has just arrived."""
    t = m.read[r, READER]
    level_kernels.leave_commit_order(m)
    if p == m.n[INIT_TXN]:
        resolve_read(m, r, INITIAL)
    elif m.txn[p, STATUS] == ABORTED:
        m.read[r, SOURCE] = ABORTED_SOURCE
        level_kernels.report_event(m, B, 0, t, p, m.read[r, OP], -1)
        return
    else:
        if not m.txn[p, PARTICIPATES]:
            level_kernels.activate(m, p)
        resolve_read(m, r, p)
        level_kernels.add_late_edge(m, t, p, r)
    level_kernels.check_late_read(m, t, r)


def reindex(m):
    """Rebuild the lists of sessions, writers, readers, times and waiting reads from the transactions in the tables."""
    for t in range(m.n[TXNS]):
        tables.insert(m, m.session[m.txn[t, SESSION]], m.txn[t, POSITION] - 1, t)
    for t in range(m.n[TXNS]):
        order_kernels.index_times(m, t)
        if m.txn[t, PARTICIPATES]:
            level_kernels.start_participating(m, t)
            if m.n[REAL_TIME] and m.txn[t, STATUS] == UNKNOWN:
                order_kernels.index_begin(m, t)
        for r in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
            if m.read[r, SOURCE] >= INITIAL:
                tables.index_reader(m, r)  # NEXT serves commit orders, which a window does not keep
            elif m.read[r, SOURCE] == WAITS:
                v = m.op[m.read[r, OP], VERSION]
                m.read[r, NEXT] = m.version[v, WAITING]
                m.version[v, WAITING] = r
                m.n[PENDING] += 1
