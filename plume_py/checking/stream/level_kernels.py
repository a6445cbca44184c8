"""The kernels of the levels: what the reads of a transaction, once resolved, mean to each of them.

A level forces "t2 before t1" because t3 read x from t1 although t2, which also wrote x, comes before t3 in the sense
of the level; what becomes of that is in ``force_kernels``.
"""

# mypy: allow-untyped-defs

# mypy: allow-untyped-defs
from plume_py.checking.stream import order_kernels as orders
from plume_py.checking.stream import order_kernels as reach
from plume_py.checking.stream import order_kernels as times
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
    LIVE,
    LOST_EVENTS,
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

# Layers, and entries of ``m.asked``: CI is entry 0.
LEVELS = RC, RA, TCC = 1, 2, 3

# Kinds of events: a pattern of a single read (its letter's place in "abcdefj"), and those of the graph.
B, C, D, E, F, J = 1, 2, 3, 4, 5, 6
CAUSAL_CYCLE, STALE, FORCED_CYCLE, AMBIGUOUS, MIXED_USE = 7, 8, 9, 10, 11

# How many steps a commit order may take before a layer is better: at first, and for each transaction.
STEPS_AT_FIRST, STEPS_PER_TXN = 1_000_000, 300


def become_live(m, t):
    """The writes of t count."""
    m.txn[t, LIVE] = 1
    for o in range(m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]):
        if m.op_kind[o] & LAST:
            tables.index_writer(m, t, m.op[o, KEY])


def judge(m, t):
    """What the reads of a new t, as far as they are resolved, mean to each level."""
    first, last = m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]
    for r in range(first, last):
        p = m.read[r, SOURCE]
        if p >= 0 and not m.txn[p, LIVE]:
            activate(m, p)
    for r in range(first, last):
        p = m.read[r, SOURCE]
        if p < INITIAL:
            continue
        if p >= 0 and m.txn[p, SEEN] != t:
            m.txn[p, SEEN] = t
            judge_source(m, t, p, r, first, last)
        judge_session(m, t, r)
        judge_ended(m, t, r)
        if m.levels[TCC]:
            judge_causal(m, t, r)
    if m.n[OUT_OF_ORDER]:
        catch_up(m)


def catch_up(m):
    """Something is not in commit order: index and judge what was left undone while everything was."""
    if not m.n[IN_ORDER]:
        return
    m.n[IN_ORDER] = 0
    m.n[OUT_OF_ORDER] = 0
    for r in range(m.n[READS]):
        if m.read[r, SOURCE] >= INITIAL:
            tables.index_reader(m, r)
    for r in range(m.n[READS]):
        if m.read[r, SOURCE] >= INITIAL:
            judge_late(m, m.read[r, READER], r)


def judge_late(m, t, r):
    """What a read means to each level, beside the other reads of its transaction."""
    judge_pairs(m, t, r)
    judge_session(m, t, r)
    judge_ended(m, t, r)
    if m.levels[TCC]:
        judge_causal(m, t, r)


def judge_source(m, t, p, r, first, last):
    """t first read from p with read r: what p wrote must be seen by the later reads (RC), or all reads (RA)."""
    if not m.levels[RC] and not m.levels[RA]:
        return
    if m.txn[p + 1, FIRST_OP] - m.txn[p, FIRST_OP] > 2 * (last - first):
        for q in range(first, last):
            if tables.writes(m, p, m.op[m.read[q, OP], KEY]):
                judge_pair(m, p, r, q)
        return
    for o in range(m.txn[p, FIRST_OP], m.txn[p + 1, FIRST_OP]):
        x = m.op[o, KEY]
        if m.op_kind[o] & WRITES and m.key[x, READ_IN] == t:
            q = m.key[x, LAST_READ]
            while q >= 0:
                judge_pair(m, p, r, q)
                q = m.read[q, SAME]


def judge_pair(m, t2, r, q):
    """Read r is from t2, which wrote what read q of the same transaction saw from another."""
    if m.read[q, SOURCE] < INITIAL or m.read[q, SOURCE] == t2:
        return
    if m.levels[RC] and r < q:
        force(m, RC, t2, q)
    if m.levels[RA]:
        force(m, RA, t2, q)


def judge_session(m, t, r):
    """Read atomic, for what the own session wrote before t."""
    if m.levels[RA]:
        slot = tables.find_slot(m, m.op[m.read[r, OP], KEY], m.txn[t, SESSION], False)
        t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1) if slot >= 0 else -1
        if t2 >= 0:
            force(m, RA, t2, r)


def judge_ended(m, t, r):
    """Read atomic in real time: the last writer of each other session that had ended before t began."""
    if not m.levels[RA] or not m.n[REAL_TIME] or m.begin[t] == NO_TIME:
        return
    x, t1 = m.op[m.read[r, OP], KEY], m.read[r, SOURCE]
    heads = m.key[x, HEADS]
    if heads < 0 or (m.n[IN_ORDER] and newest_but(m, x, t) == t1):
        return
    layer = CAUSAL if m.n[ORDERED + RA] else RA
    for at in range(m.lists[heads, OFFSET], m.lists[heads, OFFSET] + m.lists[heads, LENGTH], 2):
        s = m.pool[at]
        comes_last = t1 != INITIAL and m.row[layer, t1, s] >= m.pool[at + 1]
        if s != m.txn[t, SESSION] and not comes_last:
            t2 = times.last_ended_writer(m, tables.find_slot(m, x, s, False), s, m.begin[t])
            if t2 >= 0:
                force(m, RA, t2, r)


def newest_but(m, x, t):
    """The last live writer of x to arrive, t aside."""
    return m.key[x, OLDER] if m.key[x, NEWEST] == t else m.key[x, NEWEST]


def judge_causal(m, t, r):
    """TCC: the last writer of each session that comes causally before t; session order stands for the others."""
    reads, lists, pool, row = m.read, m.lists, m.pool, m.row
    x, t1 = m.op[reads[r, OP], KEY], reads[r, SOURCE]
    heads = m.key[x, HEADS]
    if heads < 0:
        return
    if m.n[IN_ORDER] and newest_but(m, x, t) == t1:  # then there is nothing to do: all others arrived before t1
        return
    layer = CAUSAL if m.n[ORDERED + TCC] else TCC
    for at in range(lists[heads, OFFSET], lists[heads, OFFSET] + lists[heads, LENGTH], 2):
        s = pool[at]
        if t1 == INITIAL or row[layer, t1, s] < pool[at + 1]:  # otherwise t1 comes after all of them
            slot = tables.find_slot(m, x, s, False)
            t2 = tables.last_writer(m, slot, reach.known(m, CAUSAL, t, s))
            if t2 == t:  # on a causal cycle t comes before itself
                t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1)
            if t2 >= 0 and t2 != t1:
                force(m, TCC, t2, r)


def put_before_later(m, t):
    """Real time: t has just arrived, and had ended before some began that are here already."""
    if not m.n[REAL_TIME]:
        return
    for s in range(m.n[SESSIONS]):
        later = times.began_after(m, t, s)
        if later >= 0:
            catch_up(m)
            learn_of(m, later, t, -1)
            if m.levels[RA]:
                judge_later_readers(m, t, s)


def judge_later_readers(m, t, s):
    """Read atomic in real time: what those of session s read who began after t had ended."""
    for o in range(m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]):
        slot = tables.find_slot(m, m.op[o, KEY], s, False) if m.op_kind[o] & LAST else -1
        if slot < 0 or m.slot[slot, READERS] < 0:
            continue
        number = m.slot[slot, READERS]
        for at in range(m.lists[number, LENGTH] - 1, -1, -1):
            r = m.pool[m.lists[number, OFFSET] + at]
            began = m.begin[m.read[r, READER]]
            if began > m.end[t]:
                force(m, RA, t, r)
            elif began > NO_TIME:
                break


def learn_of(m, t, p, r):
    """The late edge p -> t, at every level; the causal order comes last, since the layers build on it.

    It is there because of read r, or if that is -1, of real time.
    """
    for level in range(RC, TCC + 1):
        if m.levels[level] and not settle_edge(m, level, p, t):
            note(m, FORCED_CYCLE, level, p, t, r, -1)
    m.n[NEWS] = 0
    if reach.add_edge(m, CAUSAL, p, t) == CYCLE:
        note(m, CAUSAL_CYCLE, 0, p, t, r, -1)
    elif m.levels[TCC]:
        for i in range(m.n[NEWS]):
            for position in range(m.news[i, 3] + 1, m.news[i, 4] + 1):
                t2 = tables.at_position(m, m.news[i, 2], position)
                if m.txn[t2, LIVE]:
                    become_visible(m, t2, m.news[i, 0], m.news[i, 1])


def become_visible(m, t2, s, position):
    """TCC: from ``position`` on, session s has t2 before it. The first read of each key stands for those after it."""
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
                force(m, TCC, t2, r)
                break
            at += 1


def judge_pairs(m, t, r):
    """RC and RA: a read r beside the other reads of its transaction, each of which may be the one that is judged."""
    if not m.levels[RC] and not m.levels[RA]:
        return
    p = m.read[r, SOURCE]
    x = m.op[m.read[r, OP], KEY]
    for q in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
        other = m.read[q, SOURCE]
        if q == r or other < INITIAL or other == p:
            continue
        if other >= 0 and tables.writes(m, other, x):
            judge_pair(m, other, q, r)
        if p >= 0 and tables.writes(m, p, m.op[m.read[q, OP], KEY]):
            judge_pair(m, p, r, q)


def activate(m, u):
    """u, of unknown outcome, was read from: its writes count, also for those that have it before them already."""
    catch_up(m)
    become_live(m, u)
    if m.n[REAL_TIME]:
        put_behind_ended(m, u)
    s, position = m.txn[u, SESSION], m.txn[u, POSITION]
    if m.levels[RA]:
        for o in range(m.txn[u, FIRST_OP], m.txn[u + 1, FIRST_OP]):
            if m.op_kind[o] & LAST:
                judge_own_session(m, u, m.op[o, KEY], s, position)
    if m.levels[TCC]:
        for b in range(m.n[SESSIONS]):
            first = position + 1 if b == s else reach.first_after(m, CAUSAL, u, b)
            if first > 0:
                become_visible(m, u, b, first)


def put_behind_ended(m, u):
    """When u, of unknown outcome, began counts from now on."""
    times.enter_begin(m, u)
    for s in range(m.n[SESSIONS]):
        earlier = times.ended_before(m, u, s)
        if earlier >= 0:
            learn_of(m, u, earlier, -1)


def judge_own_session(m, u, x, s, position):
    """Read atomic: the reads of x after u in its session, up to the next transaction there that writes x."""
    slot = tables.find_slot(m, x, s, False)
    number = m.slot[slot, READERS]
    if number < 0:
        return
    for at in range(tables.readers_before(m, number, position + 1), m.lists[number, LENGTH]):
        r = m.pool[m.lists[number, OFFSET] + at]
        if tables.last_writer(m, slot, m.txn[m.read[r, READER], POSITION] - 1) != u:
            return
        force(m, RA, u, r)


def note(m, kind, level, a, b, r, i):
    """Something is wrong: at a level (0: at all from RC on), with transactions a and b, and read r or list i."""
    at = m.n[EVENTS]
    if at == len(m.event):
        m.n[LOST_EVENTS] += 1
    else:
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
    """Is this layer kept?"""
    return layer == CAUSAL or (m.levels[layer] and not m.n[ORDERED + layer])


def force(m, level, t2, r):
    """The level wants t2 before the source of read r."""
    t1 = m.read[r, SOURCE]
    if t1 == t2:
        return
    if t1 == INITIAL:
        note(m, STALE, level, t2, m.read[r, READER], r, -1)
        return
    order(m, level, t2, t1, r, -1)


def order(m, level, u, v, r, i):
    """The level wants u before v, because of read r or list i; the other one is -1."""
    ordered = m.n[ORDERED + level] != 0
    if reach.before(m, CAUSAL if ordered else level, u, v) or (ordered and is_noted(m, level, u, v)):
        return
    if m.n[IN_ORDER] and (u > v or m.n[EDGES] == len(m.edge)):
        m.n[OUT_OF_ORDER] = 1  # it will be found again
        return
    if ordered and m.n[EDGES] == len(m.edge):
        leave_order(m, level)  # an order needs all edges, a layer does not
    if not settle_edge(m, level, u, v):
        note(m, FORCED_CYCLE, level, u, v, r, i)
    elif m.n[EDGES] < len(m.edge):
        note_edge(m, level, u, v, r, i)


def settle_edge(m, level, u, v):
    """u comes before v at this level: tell its commit order, or its layer. False if that closes a cycle."""
    if m.n[ORDERED + level]:
        if m.n[STEPS + level] < STEPS_AT_FIRST + STEPS_PER_TXN * m.n[TXNS]:
            return orders.put_before(m, level, u, v)
        leave_order(m, level)
    return reach.add_edge(m, level, u, v) != CYCLE


def is_noted(m, level, u, v):
    """Is that edge among the last few into v?"""
    edges = m.edge
    e = m.txn[v, EDGE]
    for _ in range(8):
        if e < 0:
            return False
        if edges[e, EDGE_FROM] == u and edges[e, EDGE_LEVEL] == level:
            return True
        e = edges[e, NEXT_IN]
    return False


def note_edge(m, level, u, v, r, i):
    """Write an edge down."""
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


def leave_order(m, level):
    """From here on the level has its own layer: the causal one, and the edges written down so far."""
    m.n[ORDERED + level] = 0
    reach.copy_layer(m, level)
    for e in range(m.n[EDGES]):
        if m.edge[e, EDGE_LEVEL] == level:
            reach.add_edge(m, level, m.edge[e, EDGE_FROM], m.edge[e, EDGE_TO])
