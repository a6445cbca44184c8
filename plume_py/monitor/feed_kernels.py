"""The kernel that takes in one transaction after the other, and what each level makes of it.

A level forces "t2 before t1" because t3 read x from t1 although t2, which also wrote x, comes before t3 in the sense
of the level. Every such edge goes into the level's layer of ``reach_kernels``; one that would close a cycle is an
event, and so is a read of the initial state when some t2 exists. Reads whose writer has not arrived wait.
"""

# mypy: allow-untyped-defs

from plume_py.monitor import reach_kernels as reach
from plume_py.monitor import table_kernels as tables
from plume_py.monitor.reach_kernels import CAUSAL, CYCLE, NEW
from plume_py.monitor.table_kernels import (
    ABORTED,
    ABORTED_SOURCE,
    AFTER_OWN,
    COMMITTED,
    EDGE,
    EDGES,
    EVENTS,
    FINAL,
    FIRST_OP,
    FIRST_READ,
    HAS_INITIAL,
    HEADS,
    IMPLICIT_READS,
    INIT_TXN,
    INITIAL,
    INITIAL_CODE,
    INITIAL_WRITTEN,
    KEY,
    LAST_READ,
    LENGTH,
    LIVE,
    LOST_EVENTS,
    NEWS,
    NEXT,
    OFFSET,
    OP,
    OPS,
    OWN,
    OWN_VERSION,
    PENDING,
    POSITION,
    READ_IN,
    READER,
    READERS,
    READS,
    SAME,
    SECOND,
    SEEN,
    SEEN_BY,
    SESSION,
    SESSIONS,
    SOURCE,
    STATUS,
    TRIVIAL,
    TXNS,
    USE,
    VERSION,
    WAITING,
    WAITS,
    WRITER,
    WRITTEN,
)

# Kinds of events: a pattern of a single read (its letter's place in "abcdefj"), and those of the graph.
B, C, D, E, F, J = 1, 2, 3, 4, 5, 6
CAUSAL_CYCLE, STALE, FORCED_CYCLE, AMBIGUOUS, MIXED_USE = 7, 8, 9, 10, 11

# Layers, and entries of ``m.asked``: CI is entry 0.
RC, RA, TCC = 1, 2, 3


def note(m, kind, level, a, b, r):
    """Something is wrong: at a level (0: at all from RC on), with transactions a and b and read r."""
    at = m.n[EVENTS]
    if at == len(m.event):
        m.n[LOST_EVENTS] += 1
    else:
        m.event[at, 0] = kind
        m.event[at, 1] = level
        m.event[at, 2] = a
        m.event[at, 3] = b
        m.event[at, 4] = r
        m.n[EVENTS] += 1
    if kind == J:
        m.broken[0] = 1
    elif level > 0:
        m.broken[level] = 1
    elif kind != AMBIGUOUS and kind != MIXED_USE:
        for broken in range(1, 4):
            m.broken[broken] = 1


def take_all(m, first, last, kinds, keys, values, ends, sessions, statuses, patient):
    """Take in the transactions first .. last - 1 of a batch; stops after one with events, unless ``patient``.

    Transaction i of the batch has the operations ends[i] .. ends[i + 1] - 1. Returns how many are done.
    """
    for i in range(first, last):
        t = m.n[TXNS]
        m.txn[t, SESSION] = sessions[i]
        m.txn[t, STATUS] = statuses[i]
        for o in range(ends[i], ends[i + 1]):
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
        note(m, MIXED_USE, 0, t, x, -1)


def take(m, t):
    """Take in one transaction, whose session, status and operations are in the tables already."""
    m.n[TXNS] += 1
    m.txn[t + 1, FIRST_OP] = m.n[OPS]
    number = m.session[m.txn[t, SESSION]]
    m.txn[t, POSITION] = m.lists[number, LENGTH] + 1
    m.txn[t, FIRST_READ] = m.n[READS]
    m.txn[t, EDGE] = -1
    m.txn[t, SEEN] = -1
    m.txn[t, LIVE] = 0
    begin, end = m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]
    note_writers(m, t, begin, end)
    for layer in range(CAUSAL, TCC + 1):
        if has_layer(m, layer):
            reach.start_row(m, layer, t)
    tables.insert(m, number, m.txn[t, POSITION] - 1, t)
    if m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        take_reads(m, t, begin, end)
        become_live(m, t)
    m.txn[t + 1, FIRST_READ] = m.n[READS]
    for layer in range(CAUSAL, TCC + 1):
        if has_layer(m, layer):
            reach.finish_row(m, layer, t)
    judge(m, t)
    serve_waiting(m, t, begin, end)


def has_layer(m, layer):
    """Is this layer kept?"""
    return layer == CAUSAL or (m.asked[layer] and not m.n[TRIVIAL + layer])


def note_writers(m, t, begin, end):
    """t wrote these versions; the last one of each key is final."""
    for o in range(end - 1, begin - 1, -1):
        x, v = m.op[o, KEY], m.op[o, VERSION]
        if m.op_kind[o] & 1:
            if m.version[v, WRITER] < 0:
                m.version[v, WRITER] = t
                m.version[v, FINAL] = m.key[x, OWN] != t
                m.version[v, WRITTEN] = 0
                if m.version[v, SEEN_BY] >= 0 and m.n[HAS_INITIAL] and m.version_value[v] == m.n[INITIAL_CODE]:
                    m.n[INITIAL_WRITTEN] = 1
            elif m.version[v, WRITER] != t:
                m.version[v, SECOND] = t
                if m.version[v, SEEN_BY] >= 0:
                    note(m, AMBIGUOUS, 0, m.version[v, SEEN_BY], v, -1)
            m.key[x, OWN] = t


def take_reads(m, t, begin, end):
    """The reads of a committed t, in program order; those from outside become rows of ``m.read``."""
    for o in range(begin, end):
        x, v = m.op[o, KEY], m.op[o, VERSION]
        if m.op_kind[o] & 1:
            m.version[v, WRITTEN] = 1
            m.key[x, OWN] = -2 - t  # from here on t has written x
            m.key[x, OWN_VERSION] = v
            continue
        if m.version[v, SEEN_BY] < 0:
            m.version[v, SEEN_BY] = t
        if m.version[v, SECOND] >= 0:
            note(m, AMBIGUOUS, 0, t, v, -1)
        w = m.version[v, WRITER]
        if w == t:
            if not m.version[v, WRITTEN]:
                note(m, C, 0, t, t, o)
            elif m.key[x, OWN_VERSION] != v:
                note(m, E, 0, t, t, o)
            continue
        r = m.n[READS]
        m.n[READS] += 1
        m.read[r, OP] = o
        m.read[r, READER] = t
        m.read[r, NEXT] = -1
        m.read[r, AFTER_OWN] = m.key[x, OWN] == -2 - t
        m.read[r, SAME] = m.key[x, LAST_READ] if m.key[x, READ_IN] == t else -1
        m.key[x, READ_IN] = t
        m.key[x, LAST_READ] = r
        resolve(m, r, t, v, w)
        if m.read[r, SOURCE] >= 0:
            for layer in range(CAUSAL, TCC + 1):
                if has_layer(m, layer):
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
        note(m, B, 0, t, w, m.read[r, OP])
    else:
        settle(m, r, w)


def settle(m, r, source):
    """Read r is from ``source``: what that alone shows."""
    m.read[r, SOURCE] = source
    o, t = m.read[r, OP], m.read[r, READER]
    x, v = m.op[o, KEY], m.op[o, VERSION]
    if source >= 0 and not m.version[v, FINAL]:
        note(m, F, 0, t, source, o)
    if m.read[r, AFTER_OWN]:
        note(m, D, 0, t, source, o)
    tables.index_reader(m, r)
    q = last_read_of(m, t, x)
    while q >= 0:
        other = m.read[q, SOURCE]
        if other != source and other >= INITIAL:
            note(m, J, 0, t, source, r)
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


def become_live(m, t):
    """The writes of t count."""
    m.txn[t, LIVE] = 1
    for o in range(m.txn[t, FIRST_OP], m.txn[t + 1, FIRST_OP]):
        if is_last_write(m, t, o):
            tables.index_writer(m, t, m.op[o, KEY])


def is_last_write(m, t, o):
    """Is operation o the last write of its key in t? (Where a version was written twice the first writer has it.)"""
    v = m.op[o, VERSION]
    if not m.op_kind[o] & 1:
        return False
    if m.version[v, WRITER] == t and m.version[v, FINAL]:
        return True
    return m.version[v, SECOND] >= 0 and no_write_after(m, t, o)


def no_write_after(m, t, o):
    """Does t not write the key of operation o again?"""
    for p in range(o + 1, m.txn[t + 1, FIRST_OP]):
        if m.op_kind[p] & 1 and m.op[p, KEY] == m.op[o, KEY]:
            return False
    return True


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
        if m.asked[TCC]:
            judge_causal(m, t, r)


def judge_source(m, t, p, r, first, last):
    """t first read from p with read r: what p wrote must be seen by the later reads (RC), or all reads (RA)."""
    if not m.asked[RC] and not m.asked[RA]:
        return
    if m.txn[p + 1, FIRST_OP] - m.txn[p, FIRST_OP] > 2 * (last - first):
        for q in range(first, last):
            if tables.writes(m, p, m.op[m.read[q, OP], KEY]):
                judge_pair(m, p, r, q)
        return
    for o in range(m.txn[p, FIRST_OP], m.txn[p + 1, FIRST_OP]):
        x = m.op[o, KEY]
        if m.op_kind[o] & 1 and m.key[x, READ_IN] == t:
            q = m.key[x, LAST_READ]
            while q >= 0:
                judge_pair(m, p, r, q)
                q = m.read[q, SAME]


def judge_pair(m, t2, r, q):
    """Read r is from t2, which wrote what read q of the same transaction saw from another."""
    if m.read[q, SOURCE] < INITIAL or m.read[q, SOURCE] == t2:
        return
    if m.asked[RC] and r < q:
        force(m, RC, t2, q)
    if m.asked[RA]:
        force(m, RA, t2, q)


def judge_session(m, t, r):
    """Read atomic, for what the own session wrote before t."""
    if m.asked[RA]:
        slot = tables.find_slot(m, m.op[m.read[r, OP], KEY], m.txn[t, SESSION], False)
        t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1)
        if t2 >= 0:
            force(m, RA, t2, r)


def judge_causal(m, t, r):
    """TCC: the last writer of each session that comes causally before t; session order stands for the others."""
    x, t1 = m.op[m.read[r, OP], KEY], m.read[r, SOURCE]
    heads = m.key[x, HEADS]
    if heads < 0:
        return
    layer = CAUSAL if m.n[TRIVIAL + TCC] else TCC
    for at in range(m.lists[heads, OFFSET], m.lists[heads, OFFSET] + m.lists[heads, LENGTH], 2):
        s = m.pool[at]
        if t1 == INITIAL or m.row[layer, t1, s] < m.pool[at + 1]:  # otherwise t1 comes after all of them
            slot = tables.find_slot(m, x, s, False)
            t2 = tables.last_writer(m, slot, reach.known(m, CAUSAL, t, s))
            if t2 == t:  # on a causal cycle t comes before itself
                t2 = tables.last_writer(m, slot, m.txn[t, POSITION] - 1)
            if t2 >= 0 and t2 != t1:
                force(m, TCC, t2, r)


def force(m, level, t2, r):
    """The level wants t2 before the source of read r."""
    t1 = m.read[r, SOURCE]
    if t1 == t2:
        return
    if t1 == INITIAL:
        note(m, STALE, level, t2, m.read[r, READER], r)
        return
    order(m, level, t2, t1, r)


def order(m, level, u, v, r):
    """The level wants u before v, because of read r (or, if that is below 0, of a list).

    As long as this and all edges before agree with the order of arrival, that is a commit order, and the level has no
    need of a layer: its edges are only written down.
    """
    trivial = m.n[TRIVIAL + level] != 0
    if reach.before(m, CAUSAL if trivial else level, u, v):
        return
    if trivial and (u >= v or m.n[EDGES] == len(m.edge)):
        leave_trivial(m, level)
        trivial = False
    outcome = NEW if trivial else reach.add_edge(m, level, u, v)
    if outcome == CYCLE:
        note(m, FORCED_CYCLE, level, u, v, r)
    elif outcome == NEW and m.n[EDGES] < len(m.edge):
        e = m.n[EDGES]
        m.n[EDGES] += 1
        m.edge[e, 0] = u
        m.edge[e, 1] = r
        m.edge[e, 2] = level
        m.edge[e, 3] = m.txn[v, EDGE]
        m.edge[e, 4] = v
        m.txn[v, EDGE] = e


def leave_trivial(m, level):
    """From here on the level has its own layer: the causal one, and the edges written down so far."""
    m.n[TRIVIAL + level] = 0
    reach.copy_layer(m, level)
    for e in range(m.n[EDGES]):
        if m.edge[e, 2] == level:
            reach.add_edge(m, level, m.edge[e, 0], m.edge[e, 4])


def serve_waiting(m, t, begin, end):
    """Reads that waited for what t wrote."""
    for o in range(begin, end):
        v = m.op[o, VERSION]
        if not m.op_kind[o] & 1 or m.version[v, WRITER] != t:
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
    if p == m.n[INIT_TXN]:
        settle(m, r, INITIAL)
    elif m.txn[p, STATUS] == ABORTED:
        m.read[r, SOURCE] = ABORTED_SOURCE
        note(m, B, 0, t, p, m.read[r, OP])
        return
    else:
        if not m.txn[p, LIVE]:
            activate(m, p)
        settle(m, r, p)
        learn_of(m, t, p, r)
    judge_again(m, t, r)


def learn_of(m, t, p, r):
    """The late edge p -> t, in every layer; the causal one last, since the others build on it."""
    for layer in range(RC, TCC + 1):
        if m.asked[layer]:
            if m.n[TRIVIAL + layer]:
                leave_trivial(m, layer)
            if reach.add_edge(m, layer, p, t) == CYCLE:
                note(m, FORCED_CYCLE, layer, p, t, r)
    m.n[NEWS] = 0
    if reach.add_edge(m, CAUSAL, p, t) == CYCLE:
        note(m, CAUSAL_CYCLE, 0, p, t, r)
    elif m.asked[TCC]:
        for i in range(m.n[NEWS]):
            for position in range(m.news[i, 3] + 1, m.news[i, 4] + 1):
                t2 = tables.at_position(m, m.news[i, 2], position)
                if m.txn[t2, LIVE]:
                    become_visible(m, t2, m.news[i, 0], m.news[i, 1])


def become_visible(m, t2, s, position):
    """TCC: from ``position`` on, session s has t2 before it. The first read of each key stands for those after it."""
    for o in range(m.txn[t2, FIRST_OP], m.txn[t2 + 1, FIRST_OP]):
        if not is_last_write(m, t2, o):
            continue
        slot = tables.find_slot(m, m.op[o, KEY], s, False)
        if slot < 0 or m.slot[slot, READERS] < 0:
            continue
        number = m.slot[slot, READERS]
        at = tables.readers_before(m, number, position)
        while at < m.lists[number, LENGTH]:
            r = m.pool[m.lists[number, OFFSET] + at]
            if m.read[r, SOURCE] != t2 and m.read[r, READER] != t2:
                force(m, TCC, t2, r)
                break
            at += 1


def judge_again(m, t, r):
    """What a late read r means to each level, beside the other reads of its transaction."""
    p = m.read[r, SOURCE]
    x = m.op[m.read[r, OP], KEY]
    if m.asked[RC] or m.asked[RA]:
        for q in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
            other = m.read[q, SOURCE]
            if q == r or other < INITIAL or other == p:
                continue
            if other >= 0 and tables.writes(m, other, x):
                judge_pair(m, other, q, r)
            if p >= 0 and tables.writes(m, p, m.op[m.read[q, OP], KEY]):
                judge_pair(m, p, r, q)
    judge_session(m, t, r)
    if m.asked[TCC]:
        judge_causal(m, t, r)


def activate(m, u):
    """u, of unknown outcome, was read from: its writes count, also for those that have it before them already."""
    become_live(m, u)
    s, position = m.txn[u, SESSION], m.txn[u, POSITION]
    if m.asked[RA]:
        for o in range(m.txn[u, FIRST_OP], m.txn[u + 1, FIRST_OP]):
            if is_last_write(m, u, o):
                judge_own_session(m, u, m.op[o, KEY], s, position)
    if m.asked[TCC]:
        for b in range(m.n[SESSIONS]):
            first = position + 1 if b == s else reach.first_after(m, CAUSAL, u, b)
            if first > 0:
                become_visible(m, u, b, first)


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
