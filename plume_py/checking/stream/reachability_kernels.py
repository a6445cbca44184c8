"""Kernels that know at any time which transaction comes before which, while edges arrive in any order.

Of each other session a transaction knows the first so-and-so many, and along its own session that number only grows:
for two sessions it is a step function. ``m.row[layer, t]`` holds it as it was when t arrived. What is learnt later,
about transactions that are in the past already, is kept apart: as updates "from position i on at least so many", in a
Fenwick tree of maxima whose node for position i is stored in the row of the transaction at i. A late edge thus costs a
few steps and not one for each transaction after it, and as long as nothing is late no tree is looked at (``m.most`` has
the largest update per pair of sessions, ``m.has_late`` says whether a session has any). ``m.now`` is what each session
knows at its present end.

Layer 0 is the causal order; layers 1, 2, 3 are what RC, RA, TCC make of it by force.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.table_kernels import LATE_UPDATES, NEWS, POSITION, SESSION, SESSIONS, TXNS

CAUSAL = 0

# Rows of ``m.scratch``.
SOURCE_ROW, TARGET_ROW = 0, 1

KNOWN, NEW, CYCLE = 0, 1, 2


def known(m, layer, t, b):
    """How many transactions of session b come before t."""
    txns = m.txn
    s = txns[t, SESSION]
    value = m.row[layer, t, b]
    if m.most[layer, s, b] > value:
        position = txns[t, POSITION]
        while position > 0:
            value = max(value, m.late[layer, tables.at_position(m, s, position), b])
            position -= position & -position
    return value


def knows(m, layer, t, b, enough):
    """Do at least ``enough`` transactions of session b come before t?"""
    txns = m.txn
    if m.row[layer, t, b] >= enough:
        return True
    s = txns[t, SESSION]
    if m.most[layer, s, b] < enough:
        return False
    position = txns[t, POSITION]
    while position > 0:
        if m.late[layer, tables.at_position(m, s, position), b] >= enough:
            return True
        position -= position & -position
    return False


def before(m, layer, u, v):
    """Does u come before v?"""
    return knows(m, layer, v, m.txn[u, SESSION], m.txn[u, POSITION])


def all_known(m, layer, t, into):
    """``m.scratch[into]`` := what t knows, of all sessions at once."""
    row, late, scratch = m.row, m.late, m.scratch
    sessions = m.n[SESSIONS]
    for b in range(sessions):
        scratch[into, b] = row[layer, t, b]
    s = m.txn[t, SESSION]
    if not m.has_late[layer, s]:
        return
    position = m.txn[t, POSITION]
    while position > 0:
        node = tables.at_position(m, s, position)
        for b in range(sessions):
            scratch[into, b] = max(scratch[into, b], late[layer, node, b])
        position -= position & -position


def start_row(m, layer, t):
    """A new transaction begins with what its session knows."""
    row, now = m.row, m.now
    s = m.txn[t, SESSION]
    for b in range(m.n[SESSIONS]):
        row[layer, t, b] = now[layer, s, b]
    row[layer, t, s] = m.txn[t, POSITION] - 1


def join(m, layer, t, p):
    """A new t learns of p and of all that comes before p."""
    row, scratch = m.row, m.scratch
    c = m.txn[p, SESSION]
    if row[layer, t, c] >= m.txn[p, POSITION]:
        return
    all_known(m, layer, p, SOURCE_ROW)
    for b in range(m.n[SESSIONS]):
        row[layer, t, b] = max(row[layer, t, b], scratch[SOURCE_ROW, b])
    row[layer, t, c] = max(row[layer, t, c], m.txn[p, POSITION])


def finish_row(m, layer, t):
    """The row of a new t is complete: it is what its session knows now."""
    s = m.txn[t, SESSION]
    for b in range(m.n[SESSIONS]):
        m.now[layer, s, b] = m.row[layer, t, b]


def copy_layer(m, layer):
    """Begin a layer as the causal order is now."""
    for t in range(m.n[TXNS]):
        for b in range(m.n[SESSIONS]):
            m.row[layer, t, b] = m.row[CAUSAL, t, b]
            if m.late[CAUSAL, t, b] > 0:
                m.late[layer, t, b] = m.late[CAUSAL, t, b]
    for s in range(m.n[SESSIONS]):
        m.has_late[layer, s] = m.has_late[CAUSAL, s]
        for b in range(m.n[SESSIONS]):
            m.most[layer, s, b] = m.most[CAUSAL, s, b]
            m.now[layer, s, b] = m.now[CAUSAL, s, b]


def first_after(m, layer, v, b):
    """The position of the first transaction of session b that is v or comes after it; 0 if there is none."""
    s, position = m.txn[v, SESSION], m.txn[v, POSITION]
    if b == s:
        return position
    if m.now[layer, b, s] < position:
        return 0
    last = tables.length_of(m, b)
    low = min(known(m, layer, v, b), last - 1)  # what comes before v does not come after it; mostly the rest is near
    step = 1
    high = low + step
    while high < last and not knows(m, layer, tables.at_position(m, b, high), s, position):
        low = high
        step *= 2
        high = low + step
    high = min(high, last)
    while high - low > 1:
        middle = (low + high) // 2
        if knows(m, layer, tables.at_position(m, b, middle), s, position):
            high = middle
        else:
            low = middle
    return high


def add_edge(m, layer, u, v):
    """u comes before v: tell all that come after v. Returns KNOWN, NEW, or CYCLE, and then nothing is changed.

    ``m.news`` has what is new in the causal order: from a position of a session on, so many instead of so many
    transactions of another session are known.
    """
    if before(m, layer, u, v):
        return KNOWN
    if u == v or before(m, layer, v, u):
        return CYCLE
    c = m.txn[u, SESSION]
    all_known(m, layer, u, SOURCE_ROW)
    m.scratch[SOURCE_ROW, c] = m.txn[u, POSITION]
    for b in range(m.n[SESSIONS]):
        position = first_after(m, layer, v, b)
        if position > 0:
            tell(m, layer, c, b, position)
    return NEW


def tell(m, layer, c, b, position):
    """Session b, from ``position`` on, learns what the source row says, which is about a transaction of session c."""
    scratch, late = m.scratch, m.late
    w = tables.at_position(m, b, position)
    if knows(m, layer, w, c, scratch[SOURCE_ROW, c]):
        return
    if layer == CAUSAL:
        all_known(m, layer, w, TARGET_ROW)
        for d in range(m.n[SESSIONS]):
            if scratch[SOURCE_ROW, d] > scratch[TARGET_ROW, d]:
                note_news(m, b, position, d, scratch[TARGET_ROW, d], scratch[SOURCE_ROW, d])
    m.n[LATE_UPDATES] += 1
    m.has_late[layer, b] = 1
    sessions, end = m.n[SESSIONS], tables.length_of(m, b)
    for d in range(sessions):
        m.most[layer, b, d] = max(m.most[layer, b, d], scratch[SOURCE_ROW, d])
        m.now[layer, b, d] = max(m.now[layer, b, d], scratch[SOURCE_ROW, d])
    while position <= end:
        node = tables.at_position(m, b, position)
        for d in range(sessions):
            late[layer, node, d] = max(late[layer, node, d], scratch[SOURCE_ROW, d])
        position += position & -position


def note_news(m, b, position, d, old, value):
    """Remember what is new."""
    at = m.n[NEWS]
    m.n[NEWS] += 1
    m.news[at, 0] = b
    m.news[at, 1] = position
    m.news[at, 2] = d
    m.news[at, 3] = old
    m.news[at, 4] = value
