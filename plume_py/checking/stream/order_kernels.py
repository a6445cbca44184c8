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

# mypy: allow-untyped-defs
# mypy: allow-untyped-defs
from plume_py.checking.stream.table_kernels import (
    COMMITTED,
    EDGE,
    EDGE_FROM,
    EDGE_LEVEL,
    EDGE_TO,
    FIRST_READ,
    INIT_TXN,
    LATE_UPDATES,
    LENGTH,
    LIVE,
    NEWS,
    NEXT,
    NEXT_IN,
    NEXT_OUT,
    OFFSET,
    OUT,
    POSITION,
    READ_BY,
    READER,
    REAL_TIME,
    SESSION,
    SESSIONS,
    SOURCE,
    STAMP,
    STATUS,
    STEPS,
    TXNS,
    WRITERS,
)
from plume_py.history.times import NO_TIME

CAUSAL = 0

# Rows of ``m.scratch``.
SOURCE_ROW, TARGET_ROW = 0, 1

KNOWN, NEW, CYCLE = 0, 1, 2

AFTER, BEFORE = 0, 1  # rows of ``m.affected``


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


def enter_times(m, t):
    """The times of a new t count from now on, if it has committed."""
    if m.n[REAL_TIME] and m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        enter_begin(m, t)
        if m.end[t] > NO_TIME:
            number = m.ended[m.txn[t, SESSION]]
            tables.insert(m, number, m.lists[number, LENGTH], t)


def enter_begin(m, t):
    """When t began counts from now on."""
    if m.begin[t] > NO_TIME:
        number = m.begun[m.txn[t, SESSION]]
        tables.insert(m, number, tables.writers_up_to(m, number, m.txn[t, POSITION]), t)


def last_ended(m, s, moment):
    """The last transaction of session s that had ended before ``moment``, or -1."""
    number = m.ended[s]
    offset = m.lists[number, OFFSET]
    low, high = 0, m.lists[number, LENGTH]
    if high and m.end[m.pool[offset + high - 1]] < moment:
        return m.pool[offset + high - 1]
    while low < high:
        middle = (low + high) // 2
        if m.end[m.pool[offset + middle]] < moment:
            low = middle + 1
        else:
            high = middle
    return m.pool[offset + low - 1] if low else -1


def first_begun(m, s, moment):
    """The first transaction of session s that began after ``moment``, or -1."""
    number = m.begun[s]
    offset, length = m.lists[number, OFFSET], m.lists[number, LENGTH]
    low, high = 0, length
    if length == 0 or m.begin[m.pool[offset + length - 1]] <= moment:
        return -1
    while low < high:
        middle = (low + high) // 2
        if m.begin[m.pool[offset + middle]] <= moment:
            low = middle + 1
        else:
            high = middle
    return m.pool[offset + low]


def ended_before(m, t, s):
    """The last of session s that is known to have ended before t, of another session, began; or -1."""
    if m.begin[t] == NO_TIME or s == m.txn[t, SESSION]:
        return -1
    return last_ended(m, s, m.begin[t])


def began_after(m, t, s):
    """The first of session s that is known to have begun after t, of another session, had ended; or -1."""
    ended = m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN] and m.end[t] > NO_TIME
    if not ended or s == m.txn[t, SESSION]:
        return -1
    return first_begun(m, s, m.end[t])


def last_ended_writer(m, slot, s, moment):
    """The last live writer of the slot's key in session s that had ended before ``moment``, or -1."""
    number = m.slot[slot, WRITERS]
    u = last_ended(m, s, moment)
    if number < 0 or u < 0:
        return -1
    at = tables.writers_up_to(m, number, m.txn[u, POSITION]) - 1
    while at >= 0:
        writer = m.pool[m.lists[number, OFFSET] + at]
        if m.txn[writer, STATUS] == COMMITTED and m.end[writer] > NO_TIME:
            return writer
        at -= 1
    return -1


def join_ended(m, layer, t):
    """A new t learns of all that had ended before it began."""
    if not m.n[REAL_TIME] or m.txn[t, STATUS] != COMMITTED or t == m.n[INIT_TXN]:
        return
    for s in range(m.n[SESSIONS]):
        u = ended_before(m, t, s)
        if u >= 0:
            join(m, layer, t, u)


def append(m, level, t):
    """A new t comes last."""
    m.place[level, t] = t


def put_before(m, level, u, v):
    """Make the order agree with the edge u -> v; False if that closes a cycle."""
    low, high = m.place[level, v], m.place[level, u]
    if high < low:
        return True
    if u == v:
        return False
    m.n[STAMP] += 1
    after = find_after(m, level, v, u, high)
    if after < 0:
        return False
    m.n[STAMP] += 1
    leading = find_before(m, level, u, low)
    rearrange(m, level, after, leading)
    return True


def visit(m, level, row, count, t, low, high):
    """Put t among those found, unless it is there or stands outside; returns how many there are."""
    m.n[STEPS + level] += 1
    if m.mark[t] == m.n[STAMP] or m.place[level, t] < low or m.place[level, t] > high:
        return count
    m.mark[t] = m.n[STAMP]
    m.affected[row, count] = t
    return count + 1


def find_after(m, level, v, u, high):
    """All that follow v and stand at most at ``high``; returns how many, or -1 if u is one of them."""
    count = visit(m, level, AFTER, 0, v, 0, high)
    done = 0
    while done < count:
        t = m.affected[AFTER, done]
        done += 1
        if t == u:
            return -1
        s = m.txn[t, SESSION]
        if m.txn[t, POSITION] < tables.length_of(m, s):
            count = visit(m, level, AFTER, count, tables.at_position(m, s, m.txn[t, POSITION] + 1), 0, high)
        r = m.txn[t, READ_BY]
        while r >= 0:
            count = visit(m, level, AFTER, count, m.read[r, READER], 0, high)
            r = m.read[r, NEXT]
        e = m.txn[t, OUT]
        while e >= 0:
            if m.edge[e, EDGE_LEVEL] == level:
                count = visit(m, level, AFTER, count, m.edge[e, EDGE_TO], 0, high)
            e = m.edge[e, NEXT_OUT]
        if m.n[REAL_TIME]:
            for b in range(m.n[SESSIONS]):
                later = began_after(m, t, b)
                if later >= 0:
                    count = visit(m, level, AFTER, count, later, 0, high)
    return count


def find_before(m, level, u, low):
    """All that lead to u and stand at least at ``low``; returns how many."""
    high = m.place[level, u]
    count = visit(m, level, BEFORE, 0, u, low, high)
    done = 0
    while done < count:
        t = m.affected[BEFORE, done]
        done += 1
        if m.txn[t, POSITION] > 1:
            previous = tables.at_position(m, m.txn[t, SESSION], m.txn[t, POSITION] - 1)
            count = visit(m, level, BEFORE, count, previous, low, high)
        for r in range(m.txn[t, FIRST_READ], m.txn[t + 1, FIRST_READ]):
            if m.read[r, SOURCE] >= 0:
                count = visit(m, level, BEFORE, count, m.read[r, SOURCE], low, high)
        e = m.txn[t, EDGE]
        while e >= 0:
            if m.edge[e, EDGE_LEVEL] == level:
                count = visit(m, level, BEFORE, count, m.edge[e, EDGE_FROM], low, high)
            e = m.edge[e, NEXT_IN]
        if m.n[REAL_TIME] and m.txn[t, LIVE]:
            for b in range(m.n[SESSIONS]):
                earlier = ended_before(m, t, b)
                if earlier >= 0:
                    count = visit(m, level, BEFORE, count, earlier, low, high)
    return count


def rearrange(m, level, after, leading):
    """Those that lead to u, and then those that follow v, take the places of all of them, each in their old order."""
    by_place(m, level, AFTER, after)
    by_place(m, level, BEFORE, leading)
    i = j = 0
    for k in range(leading + after):  # all places, ascending
        if j == after or (i < leading and m.place[level, m.affected[BEFORE, i]] < m.place[level, m.affected[AFTER, j]]):
            m.free_places[k] = m.place[level, m.affected[BEFORE, i]]
            i += 1
        else:
            m.free_places[k] = m.place[level, m.affected[AFTER, j]]
            j += 1
    for k in range(leading + after):
        t = m.affected[BEFORE, k] if k < leading else m.affected[AFTER, k - leading]
        m.place[level, t] = m.free_places[k]


def by_place(m, level, row, count):
    """Sort those found by where they stand (Shell's method: they are few, and it needs no room)."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            t = m.affected[row, i]
            j = i
            while j >= gap and m.place[level, m.affected[row, j - gap]] > m.place[level, t]:
                m.affected[row, j] = m.affected[row, j - gap]
                j -= gap
            m.affected[row, j] = t
        gap //= 3
