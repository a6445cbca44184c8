"""Kernels for the axioms of the levels: the edges that reads force, and the events they raise.

The ingest kernels and ``list_orders`` call them. A level forces "t2 before t1" if t3 reads x from t1 although t2, which
also writes x, is visible to t3 at that level. (Plume, section 4.2, finds these edges in a complete history.) A forced
edge goes into the level's commit order or layer (``order_kernels``). An edge that would close a cycle is an event. A
read of the initial state with a visible writer t2 is also an event.

While everything arrives in commit order (IN_ORDER), readers are not indexed and most checks end early. The first
exception makes ``leave_commit_order`` index all readers and check all reads again.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import order_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.order_kernels import CAUSAL, CYCLE
from plume_py.checking.stream.table_kernels import (
    EDGE,
    EDGE_FROM,
    EDGE_LEVEL,
    EDGE_LIST,
    EDGE_READ,
    EDGE_TO,
    EDGES,
    EVENTS,
    FIRST_OP,
    FIRST_READ,
    HEADS,
    IN_ORDER,
    KEY,
    LAST,
    LAST_READ,
    LAST_READER,
    LENGTH,
    NEWEST,
    NEWS,
    NEXT_IN,
    NEXT_OUT,
    OFFSET,
    OLDER,
    OP,
    ORDERED,
    OUT,
    OUT_OF_ORDER,
    PARTICIPATES,
    POSITION,
    READ_IN,
    READER,
    READERS,
    READS,
    REAL_TIME,
    SAME,
    SEEN,
    SESSION,
    SESSIONS,
    SOURCE,
    STEPS,
    TXNS,
    WRITES,
)
from plume_py.history.model import INITIAL
from plume_py.history.times import NO_TIME

# Levels, as layers and as entries of ``m.levels``. CI is entry 0.
LEVELS = RC, RA, TCC = 1, 2, 3

# Kinds of events: patterns of a single read (TAP-b to TAP-f, TAP-j), and events of the graph.
B, C, D, E, F, J = 1, 2, 3, 4, 5, 6
CAUSAL_CYCLE, STALE, FORCED_CYCLE, AMBIGUOUS, MIXED_USE = 7, 8, 9, 10, 11

# Steps that a commit order may take before a layer is cheaper: in any case, and for each transaction.
STEPS_AT_FIRST, STEPS_PER_TXN = 1_000_000, 300


def start_participating(m, t):
    """Index the writes of t, which from now on participates in violations."""
    m.txn[t, PARTICIPATES] = 1
    for o in range(m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]):
        if m.op_kind[o] & LAST:
            tables.index_writer(m, t, m.op[o, KEY])


def check_reads(m, t):
    """Check the resolved reads of a new transaction t at each level."""
    first, last = m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]
    for r in range(first, last):
        p = m.read[r, SOURCE]
        if p >= 0 and not m.txn[p, PARTICIPATES]:
            activate(m, p)
    for r in range(first, last):
        p = m.read[r, SOURCE]
        if p < INITIAL:
            continue
        if p >= 0 and m.txn[p, SEEN] != t:
            m.txn[p, SEEN] = t
            check_source(m, t, p, r, first, last)
        check_session_order(m, t, r)
        check_real_time(m, t, r)
        if m.levels[TCC]:
            check_causal(m, t, r)
    if m.n[OUT_OF_ORDER]:
        leave_commit_order(m)


def leave_commit_order(m):
    """Index and check what was skipped while everything arrived in commit order. Do nothing the second time."""
    if not m.n[IN_ORDER]:
        return
    m.n[IN_ORDER] = 0
    m.n[OUT_OF_ORDER] = 0
    for r in range(m.n[READS]):
        if m.read[r, SOURCE] >= INITIAL:
            tables.index_reader(m, r)
    for r in range(m.n[READS]):
        if m.read[r, SOURCE] >= INITIAL:
            check_late_read(m, m.read[r, READER], r)


def check_late_read(m, t, r):
    """Check one read r of transaction t at each level, also against the other reads of t."""
    check_pairs(m, t, r)
    check_session_order(m, t, r)
    check_real_time(m, t, r)
    if m.levels[TCC]:
        check_causal(m, t, r)


def check_source(m, t, p, r, first, last):
    """Check RC and RA for transaction t, which reads from p first with read r.

    RC: later reads of t must not miss the writes of p. RA: no read of t may. Loops over the shorter of the reads and
    the writes.
    """
    if not m.levels[RC] and not m.levels[RA]:
        return
    if m.txn[p + 1, FIRST_OP] - m.txn[p, FIRST_OP] > 2 * (last - first):
        for q in range(first, last):
            if tables.writes(m, p, m.op[m.read[q, OP], KEY]):
                check_pair(m, p, r, q)
        return
    for o in range(m.txn[p, FIRST_OP], m.txn[p + 1, FIRST_OP]):
        x = m.op[o, KEY]
        if m.op_kind[o] & WRITES and m.key[x, READ_IN] == t:
            q = m.key[x, LAST_READ]
            while q >= 0:
                check_pair(m, p, r, q)
                q = m.read[q, SAME]


def check_pair(m, t2, r, q):
    """Force edges of RC and RA if read r is from t2, which also wrote the key that read q got from another source."""
    if m.read[q, SOURCE] < INITIAL or m.read[q, SOURCE] == t2:
        return
    if m.levels[RC] and r < q:
        force_before_source(m, RC, t2, q)
    if m.levels[RA]:
        force_before_source(m, RA, t2, q)


def check_session_order(m, t, r):
    """Check RA: read r of t against the last earlier writer in the session of t."""
    if m.levels[RA]:
        slot = tables.find_slot(m, m.op[m.read[r, OP], KEY], m.txn[t, SESSION], False)
        t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1) if slot >= 0 else -1
        if t2 >= 0:
            force_before_source(m, RA, t2, r)


def check_real_time(m, t, r):
    """Check RA in real time: read r of t against the last writer in each other session that ended before t began."""
    if not m.levels[RA] or not m.n[REAL_TIME] or m.begin[t] == NO_TIME:
        return
    x, t1 = m.op[m.read[r, OP], KEY], m.read[r, SOURCE]
    heads = m.key[x, HEADS]
    if heads < 0 or (m.n[IN_ORDER] and newest_writer_except(m, x, t) == t1):
        return
    layer = CAUSAL if m.n[ORDERED + RA] else RA
    for at in range(m.lists[heads, OFFSET], m.lists[heads, OFFSET] + m.lists[heads, LENGTH], 2):
        s = m.pool[at]
        comes_last = t1 != INITIAL and m.row[layer, t1, s] >= m.pool[at + 1]
        if s != m.txn[t, SESSION] and not comes_last:
            t2 = order_kernels.last_ended_writer(m, tables.find_slot(m, x, s, False), s, m.begin[t])
            if t2 >= 0:
                force_before_source(m, RA, t2, r)


def newest_writer_except(m, x, t):
    """Return the participating writer of x that arrived last, other than t."""
    return m.key[x, OLDER] if m.key[x, NEWEST] == t else m.key[x, NEWEST]


def check_causal(m, t, r):
    """Check TCC: read r of t against the last writer of its key in each session that is causally before t.

    Earlier writers of a session precede its last one in session order.
    """
    reads, lists, pool, row = m.read, m.lists, m.pool, m.row
    x, t1 = m.op[reads[r, OP], KEY], reads[r, SOURCE]
    heads = m.key[x, HEADS]
    if heads < 0:
        return
    if m.n[IN_ORDER] and newest_writer_except(m, x, t) == t1:  # all other writers arrived before t1, in commit order
        return
    layer = CAUSAL if m.n[ORDERED + TCC] else TCC
    for at in range(lists[heads, OFFSET], lists[heads, OFFSET] + lists[heads, LENGTH], 2):
        s = pool[at]
        if t1 == INITIAL or row[layer, t1, s] < pool[at + 1]:  # otherwise t1 is after all writers of s
            slot = tables.find_slot(m, x, s, False)
            t2 = tables.last_writer(m, slot, order_kernels.count_before(m, CAUSAL, t, s))
            if t2 == t:  # on a causal cycle t is before itself
                t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1)
            if t2 >= 0 and t2 != t1:
                force_before_source(m, TCC, t2, r)


def add_late_real_time_edges(m, t):
    """Add the real-time edges from t, which has just arrived, to transactions that arrived earlier and began later."""
    if not m.n[REAL_TIME]:
        return
    for s in range(m.n[SESSIONS]):
        later = order_kernels.began_after(m, t, s)
        if later >= 0:
            leave_commit_order(m)
            add_late_edge(m, later, t, -1)
            if m.levels[RA]:
                check_later_readers(m, t, s)


def check_later_readers(m, t, s):
    """Check RA in real time: the reads in session s of keys of t, by transactions that began after t ended."""
    for o in range(m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]):
        slot = tables.find_slot(m, m.op[o, KEY], s, False) if m.op_kind[o] & LAST else -1
        if slot < 0 or m.slot[slot, READERS] < 0:
            continue
        number = m.slot[slot, READERS]
        for at in range(m.lists[number, LENGTH] - 1, -1, -1):
            r = m.pool[m.lists[number, OFFSET] + at]
            began = m.begin[m.read[r, READER]]
            if began > m.end[t]:
                force_before_source(m, RA, t, r)
            elif began > NO_TIME:
                break


def add_late_edge(m, t, p, r):
    """Add the late edge p -> t at every level. The causal order comes last because the layers build on it.

    The edge is due to read r or, if r is -1, to real time.
    """
    for level in range(RC, TCC + 1):
        if m.levels[level] and not insert_edge(m, level, p, t):
            report_event(m, FORCED_CYCLE, level, p, t, r, -1)
    m.n[NEWS] = 0
    if order_kernels.add_edge(m, CAUSAL, p, t) == CYCLE:
        report_event(m, CAUSAL_CYCLE, 0, p, t, r, -1)
    elif m.levels[TCC]:
        for i in range(m.n[NEWS]):
            for position in range(m.news[i, 3] + 1, m.news[i, 4] + 1):
                t2 = tables.at_position(m, m.news[i, 2], position)
                if m.txn[t2, PARTICIPATES]:
                    become_visible(m, t2, m.news[i, 0], m.news[i, 1])


def become_visible(m, t2, s, position):
    """Check TCC for t2, which is now causally before session s from ``position`` on.

    The first read of each key implies the edges of all later ones.
    """
    for o in range(m.txn[t2, FIRST_OP], m.txn[t2 + 1, FIRST_OP]):
        if not m.op_kind[o] & LAST:
            continue
        slot = tables.find_slot(m, m.op[o, KEY], s, False)
        if slot < 0 or m.slot[slot, LAST_READER] < position:
            continue
        number = m.slot[slot, READERS]
        at = tables.readers_before(m, number, position)
        while at < m.lists[number, LENGTH]:
            r = m.pool[m.lists[number, OFFSET] + at]
            if m.read[r, SOURCE] != t2 and m.read[r, READER] != t2:
                force_before_source(m, TCC, t2, r)
                break
            at += 1


def check_pairs(m, t, r):
    """Check RC and RA: read r against each other read of its transaction t, in both roles."""
    if not m.levels[RC] and not m.levels[RA]:
        return
    p = m.read[r, SOURCE]
    x = m.op[m.read[r, OP], KEY]
    for q in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
        other = m.read[q, SOURCE]
        if q == r or other < INITIAL or other == p:
            continue
        if other >= 0 and tables.writes(m, other, x):
            check_pair(m, other, q, r)
        if p >= 0 and tables.writes(m, p, m.op[m.read[q, OP], KEY]):
            check_pair(m, p, r, q)


def activate(m, u):
    """Make u, of unknown outcome, participate because a committed transaction read from it. Check later readers."""
    leave_commit_order(m)
    start_participating(m, u)
    if m.n[REAL_TIME]:
        add_real_time_past(m, u)
    s, position = m.txn[u, SESSION], m.txn[u, POSITION]
    if m.levels[RA]:
        for o in range(m.txn[u, FIRST_OP], m.txn[u + 1, FIRST_OP]):
            if m.op_kind[o] & LAST:
                check_own_session(m, u, m.op[o, KEY], s, position)
    if m.levels[TCC]:
        for b in range(m.n[SESSIONS]):
            first = position + 1 if b == s else order_kernels.first_after(m, CAUSAL, u, b)
            if first > 0:
                become_visible(m, u, b, first)


def add_real_time_past(m, u):
    """Add the real-time edges into u, whose begin counts from now on."""
    order_kernels.index_begin(m, u)
    for s in range(m.n[SESSIONS]):
        earlier = order_kernels.ended_before(m, u, s)
        if earlier >= 0:
            add_late_edge(m, u, earlier, -1)


def check_own_session(m, u, x, s, position):
    """Check RA: the reads of x after u in its session, up to the next transaction there that writes x."""
    slot = tables.find_slot(m, x, s, False)
    number = m.slot[slot, READERS]
    if number < 0:
        return
    for at in range(tables.readers_before(m, number, position + 1), m.lists[number, LENGTH]):
        r = m.pool[m.lists[number, OFFSET] + at]
        if tables.last_writer(m, slot, m.txn[m.read[r, READER], POSITION] - 1) != u:
            return
        force_before_source(m, RA, u, r)


def report_event(m, kind, level, a, b, r, i):
    """Record an event of this kind, with transactions a and b, read r and list i, and mark the violated levels.

    Level 0 means CI for kind J, else RC and stronger levels. AMBIGUOUS and MIXED_USE mark none. Beyond the capacity of
    ``m.event``, levels are marked but events are dropped.
    """
    at = m.n[EVENTS]
    if at < len(m.event):
        m.event[at, 0] = kind
        m.event[at, 1] = level
        m.event[at, 2] = a
        m.event[at, 3] = b
        m.event[at, 4] = r
        m.event[at, 5] = i
        m.n[EVENTS] += 1
    if kind == J:
        m.broken[0] = 1
    elif level > 0:
        m.broken[level] = 1
    elif kind != AMBIGUOUS and kind != MIXED_USE:
        for broken in range(1, 4):
            m.broken[broken] = 1


def has_layer(m, layer):
    return layer == CAUSAL or (m.levels[layer] and not m.n[ORDERED + layer])


def force_before_source(m, level, t2, r):
    """Force t2 before the source of read r at this level."""
    t1 = m.read[r, SOURCE]
    if t1 == t2:
        return
    if t1 == INITIAL:
        report_event(m, STALE, level, t2, m.read[r, READER], r, -1)
        return
    add_forced_edge(m, level, t2, t1, r, -1)


def add_forced_edge(m, level, u, v, r, i):
    """Force u before v at this level, because of read r or list i. The other one is -1."""
    ordered = m.n[ORDERED + level] != 0
    if order_kernels.before(m, CAUSAL if ordered else level, u, v) or (ordered and is_recorded(m, level, u, v)):
        return
    if m.n[IN_ORDER] and (u > v or m.n[EDGES] == len(m.edge)):
        m.n[OUT_OF_ORDER] = 1  # leave_commit_order will find the edge again
        return
    if ordered and m.n[EDGES] == len(m.edge):
        switch_to_layer(m, level)  # a commit order needs all edges recorded, a layer does not
    if not insert_edge(m, level, u, v):
        report_event(m, FORCED_CYCLE, level, u, v, r, i)
    elif m.n[EDGES] < len(m.edge):
        record_edge(m, level, u, v, r, i)


def insert_edge(m, level, u, v):
    """Insert u -> v into the level's commit order or layer. Return False if the edge closes a cycle."""
    if m.n[ORDERED + level]:
        if m.n[STEPS + level] < STEPS_AT_FIRST + STEPS_PER_TXN * m.n[TXNS]:
            return order_kernels.insert_into_order(m, level, u, v)
        switch_to_layer(m, level)
    return order_kernels.add_edge(m, level, u, v) != CYCLE


def is_recorded(m, level, u, v):
    """Return whether the edge is among the last eight into v."""
    edges = m.edge
    e = m.txn[v, EDGE]
    for _ in range(8):
        if e < 0:
            return False
        if edges[e, EDGE_FROM] == u and edges[e, EDGE_LEVEL] == level:
            return True
        e = edges[e, NEXT_IN]
    return False


def record_edge(m, level, u, v, r, i):
    e = m.n[EDGES]
    m.n[EDGES] += 1
    m.edge[e, EDGE_FROM] = u
    m.edge[e, EDGE_TO] = v
    m.edge[e, EDGE_READ] = r
    m.edge[e, EDGE_LIST] = i
    m.edge[e, EDGE_LEVEL] = level
    m.edge[e, NEXT_IN] = m.txn[v, EDGE]
    m.edge[e, NEXT_OUT] = m.txn[u, OUT]
    m.txn[v, EDGE] = e
    m.txn[u, OUT] = e


def switch_to_layer(m, level):
    """Replace the level's commit order by a layer: the causal order with the edges recorded so far."""
    m.n[ORDERED + level] = 0
    order_kernels.copy_layer(m, level)
    for e in range(m.n[EDGES]):
        if m.edge[e, EDGE_LEVEL] == level:
            order_kernels.add_edge(m, level, m.edge[e, EDGE_FROM], m.edge[e, EDGE_TO])
