"""Kernels that know at any time which transaction comes before which, while edges arrive in any order.

Of each other session a transaction knows the first so-and-so many, and along its own session that number only grows:
for two sessions it is a step function. ``m.row[layer, t]`` holds it as it was when t arrived. What is learnt later,
about transactions that are in the past already, is kept apart: as updates "from position i on at least so many", in a
Fenwick tree of maxima whose node for position i is stored in the row of the transaction at i. A late edge thus costs a
few steps and not one for each transaction after it, and as long as nothing is late no tree is looked at (``m.most`` has
the largest update per pair of sessions).

Layer 0 is the causal order; layers 1, 2, 3 are what RC, RA, TCC make of it by force.
"""

# mypy: allow-untyped-defs

from plume_py.monitor import table_kernels as tables
from plume_py.monitor.table_kernels import LATE_UPDATES, NEWS, POSITION, SESSION, SESSIONS, TXNS

CAUSAL = 0

KNOWN, NEW, CYCLE = 0, 1, 2


def known(m, layer, t, b):
    """How many transactions of session b come before t."""
    s = m.txn[t, SESSION]
    value = m.row[layer, t, b]
    if m.most[layer, s, b] > value:
        position = m.txn[t, POSITION]
        while position > 0:
            value = max(value, m.late[layer, tables.at_position(m, s, position), b])
            position -= position & -position
    return value


def knows(m, layer, t, b, enough):
    """Do at least ``enough`` transactions of session b come before t?"""
    if m.row[layer, t, b] >= enough:
        return True
    s = m.txn[t, SESSION]
    if m.most[layer, s, b] < enough:
        return False
    position = m.txn[t, POSITION]
    while position > 0:
        if m.late[layer, tables.at_position(m, s, position), b] >= enough:
            return True
        position -= position & -position
    return False


def before(m, layer, u, v):
    """Does u come before v?"""
    return knows(m, layer, v, m.txn[u, SESSION], m.txn[u, POSITION])


def update(m, layer, s, position, b, value):
    """From ``position`` on session s knows at least ``value`` transactions of session b."""
    m.n[LATE_UPDATES] += 1
    m.most[layer, s, b] = max(m.most[layer, s, b], value)
    m.now[layer, s, b] = max(m.now[layer, s, b], value)
    end = tables.length_of(m, s)
    while position <= end:
        t = tables.at_position(m, s, position)
        if m.late[layer, t, b] < value:
            m.late[layer, t, b] = value
        position += position & -position


def start_row(m, layer, t):
    """A new transaction begins with what its session knows."""
    s, position = m.txn[t, SESSION], m.txn[t, POSITION]
    if position > 1:
        previous = tables.at_position(m, s, position - 1)
        for b in range(m.n[SESSIONS]):
            m.row[layer, t, b] = m.row[layer, previous, b]
            if m.most[layer, s, b] > m.row[layer, t, b]:
                m.row[layer, t, b] = known(m, layer, previous, b)
    m.row[layer, t, s] = position - 1


def join(m, layer, t, p):
    """A new t learns of p and of all that comes before p."""
    c = m.txn[p, SESSION]
    if m.row[layer, t, c] >= m.txn[p, POSITION]:
        return
    for b in range(m.n[SESSIONS]):
        value = m.row[layer, p, b]
        if m.most[layer, c, b] > value and m.most[layer, c, b] > m.row[layer, t, b]:
            value = known(m, layer, p, b)
        m.row[layer, t, b] = max(m.row[layer, t, b], value)
    m.row[layer, t, c] = max(m.row[layer, t, c], m.txn[p, POSITION])


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
    for d in range(m.n[SESSIONS]):
        m.scratch[layer, d] = known(m, layer, u, d)
    m.scratch[layer, c] = m.txn[u, POSITION]
    for b in range(m.n[SESSIONS]):
        position = first_after(m, layer, v, b)
        if position > 0:
            tell(m, layer, c, b, position)
    return NEW


def tell(m, layer, c, b, position):
    """Session b, from ``position`` on, learns what ``m.scratch`` says."""
    w = tables.at_position(m, b, position)
    if knows(m, layer, w, c, m.scratch[layer, c]):
        return
    for d in range(m.n[SESSIONS]):
        value = m.scratch[layer, d]
        if value > m.row[layer, w, d]:
            old = known(m, layer, w, d)
            if value > old:
                update(m, layer, b, position, d, value)
                if layer == CAUSAL:
                    note_news(m, b, position, d, old, value)


def note_news(m, b, position, d, old, value):
    """Remember what is new."""
    at = m.n[NEWS]
    m.n[NEWS] += 1
    m.news[at, 0] = b
    m.news[at, 1] = position
    m.news[at, 2] = d
    m.news[at, 3] = old
    m.news[at, 4] = value
