"""The kernel that takes in one transaction after the other. Reads whose writer has not arrived wait."""

# mypy: allow-untyped-defs

from plume_py.checking.stream import level_kernels as forcing
from plume_py.checking.stream import level_kernels as judges
from plume_py.checking.stream import order_kernels as orders
from plume_py.checking.stream import order_kernels as reach
from plume_py.checking.stream import order_kernels as times
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
    IMPLICIT_READS,
    IN_ORDER,
    INIT_TXN,
    INITIAL_CODE,
    INITIAL_WRITTEN,
    KEY,
    LAST,
    LAST_READ,
    LENGTH,
    LIVE,
    NEXT,
    OF_LIST,
    OP,
    OPS,
    OUT,
    OWN,
    OWN_VERSION,
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


def take_all(m, first, last, kinds, keys, values, starts, sessions, statuses, begins, ends, patient):
    """Take in the transactions first .. last - 1 of a batch; stops after one with events, unless ``patient``.

    Transaction i of the batch has the operations starts[i] .. starts[i + 1] - 1. Returns how many are done.
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
            note_use(m, x, kinds[o], values[o], t)
            m.op[at, KEY] = x
            m.op[at, VERSION] = tables.intern_version(m, x, values[o])
        take(m, t)
        if m.n[EVENTS] and not patient:
            return i + 1
    return last


def note_use(m, x, kind, value, t):
    """A key is a register or a list, not both; a read of the initial value may be of either."""
    if kind == 0 and m.n[HAS_INITIAL] and value == m.n[INITIAL_CODE]:
        return
    if m.key[x, USE] < 0:
        m.key[x, USE] = kind >> 1
    elif m.key[x, USE] != kind >> 1:
        forcing.note(m, MIXED_USE, 0, t, x, -1, -1)


def take(m, t):
    """Take in one transaction, whose session, status and operations are in the tables already."""
    m.n[TXNS] += 1
    m.txn[t + 1, FIRST_OP] = m.n[OPS]
    number = m.session[m.txn[t, SESSION]]
    m.txn[t, POSITION] = m.lists[number, LENGTH] + 1
    m.txn[t, FIRST_READ] = m.n[READS]
    m.txn[t, EDGE] = -1
    m.txn[t, OUT] = -1
    m.txn[t, READ_BY] = -1
    m.txn[t, SEEN] = -1
    m.txn[t, LIVE] = 0
    begin, end = m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]
    note_writers(m, t, begin, end)
    for layer in range(CAUSAL, TCC + 1):
        if forcing.has_layer(m, layer):
            reach.start_row(m, layer, t)
            times.join_ended(m, layer, t)
    tables.insert(m, number, m.txn[t, POSITION] - 1, t)
    times.enter_times(m, t)
    if m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        take_reads(m, t, begin, end)
        judges.become_live(m, t)
    m.txn[t + 1, FIRST_READ] = m.n[READS]
    for layer in range(CAUSAL, TCC + 1):
        if forcing.has_layer(m, layer):
            reach.finish_row(m, layer, t)
    for level in range(RC, TCC + 1):
        if m.levels[level] and not forcing.has_layer(m, level):
            orders.append(m, level, t)
    if m.txn[t, STATUS] == UNKNOWN:
        m.n[UNKNOWN_OPS] += end - begin
    judges.put_before_later(m, t)
    judges.judge(m, t)
    serve_waiting(m, t, begin, end)


def note_writers(m, t, begin, end):
    """t wrote these versions; the last one of each key is final."""
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
                    forcing.note(m, AMBIGUOUS, 0, m.version[v, SEEN_BY], v, -1, -1)
            m.key[x, OWN] = t


def take_reads(m, t, begin, end):
    """The reads of a committed t, in program order; those from outside become rows of ``m.read``."""
    for o in range(begin, end):
        x, v = m.op[o, KEY], m.op[o, VERSION]
        if m.op_kind[o] & WRITES:
            m.version[v, WRITTEN] = 1
            m.key[x, OWN] = -2 - t  # from here on t has written x
            m.key[x, OWN_VERSION] = v
            continue
        if m.version[v, SEEN_BY] < 0:
            m.version[v, SEEN_BY] = t
        if m.version[v, SECOND] >= 0:
            forcing.note(m, AMBIGUOUS, 0, t, v, -1, -1)
        w = m.version[v, WRITER]
        if w == t:
            if not m.version[v, WRITTEN]:
                forcing.note(m, C, 0, t, t, o, -1)
            elif m.key[x, OWN_VERSION] != v:
                forcing.note(m, E, 0, t, t, o, -1)
            continue
        r = m.n[READS]
        m.n[READS] += 1
        m.read[r, OP] = o
        m.read[r, READER] = t
        m.read[r, NEXT] = -1
        m.read[r, AFTER_OWN] = m.key[x, OWN] == -2 - t and not m.op_kind[o] & OF_LIST  # lists are judged apart
        m.read[r, SAME] = m.key[x, LAST_READ] if m.key[x, READ_IN] == t else -1
        m.key[x, READ_IN] = t
        m.key[x, LAST_READ] = r
        resolve(m, r, t, v, w)
        if m.read[r, SOURCE] >= 0:
            for layer in range(CAUSAL, TCC + 1):
                if forcing.has_layer(m, layer):
                    reach.join(m, layer, t, m.read[r, SOURCE])


def resolve(m, r, t, v, w):
    """From whom a new read r of version v, written by w (or nobody yet), is."""
    if w < 0 and m.n[HAS_INITIAL] and m.version_value[v] == m.n[INITIAL_CODE]:
        m.n[IMPLICIT_READS] += 1
        settle(m, r, INITIAL)
    elif w < 0:
        m.read[r, SOURCE] = WAITS
        m.read[r, NEXT] = m.version[v, WAITING]
        m.version[v, WAITING] = r
        m.n[PENDING] += 1
    elif w == m.n[INIT_TXN]:
        settle(m, r, INITIAL)
    elif m.txn[w, STATUS] == ABORTED:
        m.read[r, SOURCE] = ABORTED_SOURCE
        forcing.note(m, B, 0, t, w, m.read[r, OP], -1)
    else:
        settle(m, r, w)


def settle(m, r, source):
    """Read r is from ``source``: what that alone shows."""
    m.read[r, SOURCE] = source
    o, t = m.read[r, OP], m.read[r, READER]
    x, v = m.op[o, KEY], m.op[o, VERSION]
    if source >= 0 and not m.version[v, FINAL]:
        forcing.note(m, F, 0, t, source, o, -1)
    if m.read[r, AFTER_OWN]:
        forcing.note(m, D, 0, t, source, o, -1)
    if not m.n[IN_ORDER]:
        tables.index_reader(m, r)
    if source >= 0:
        m.read[r, NEXT] = m.txn[source, READ_BY]
        m.txn[source, READ_BY] = r
    q = last_read_of(m, t, x)
    while q >= 0:
        other = m.read[q, SOURCE]
        if other != source and other >= INITIAL:
            forcing.note(m, J, 0, t, source, r, -1)
            return
        q = m.read[q, SAME]


def last_read_of(m, t, x):
    """The last read of x by t, from which SAME leads to those before."""
    if m.key[x, READ_IN] == t:
        return m.key[x, LAST_READ]
    for r in range(m.txn[t + 1, FIRST_READ] - 1, m.txn[t, FIRST_READ] - 1, -1):
        if m.op[m.read[r, OP], KEY] == x:
            return r
    return -1


def serve_waiting(m, t, begin, end):
    """Reads that waited for what t wrote."""
    for o in range(begin, end):
        v = m.op[o, VERSION]
        if not m.op_kind[o] & WRITES or m.version[v, WRITER] != t:
            continue
        r = m.version[v, WAITING]
        m.version[v, WAITING] = -1
        while r >= 0:
            following = m.read[r, NEXT]
            m.n[PENDING] -= 1
            settle_late(m, r, t)
            r = following


def settle_late(m, r, p):
    """Read r of a transaction in the past is from p, which has just arrived."""
    t = m.read[r, READER]
    judges.catch_up(m)
    if p == m.n[INIT_TXN]:
        settle(m, r, INITIAL)
    elif m.txn[p, STATUS] == ABORTED:
        m.read[r, SOURCE] = ABORTED_SOURCE
        forcing.note(m, B, 0, t, p, m.read[r, OP], -1)
        return
    else:
        if not m.txn[p, LIVE]:
            judges.activate(m, p)
        settle(m, r, p)
        judges.learn_of(m, t, p, r)
    judges.judge_late(m, t, r)


def reindex(m):
    """Build the lists of sessions, writers, readers and waiting reads for the transactions in the tables."""
    for t in range(m.n[TXNS]):
        tables.insert(m, m.session[m.txn[t, SESSION]], m.txn[t, POSITION] - 1, t)
    for t in range(m.n[TXNS]):
        times.enter_times(m, t)
        if m.txn[t, LIVE]:
            judges.become_live(m, t)
            if m.n[REAL_TIME] and m.txn[t, STATUS] == UNKNOWN:
                times.enter_begin(m, t)
        for r in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
            if m.read[r, SOURCE] >= INITIAL:
                tables.index_reader(m, r)  # the commit orders, which follow NEXT, are not kept in a window
            elif m.read[r, SOURCE] == WAITS:
                v = m.op[m.read[r, OP], VERSION]
                m.read[r, NEXT] = m.version[v, WAITING]
                m.version[v, WAITING] = r
                m.n[PENDING] += 1
