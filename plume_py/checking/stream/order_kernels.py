"""Kernels that maintain the orders between transactions while edges arrive in any order.

The ingest and level kernels call them. There are three representations.

Layers answer whether u comes before v. Layer 0 is the causal order; layers 1, 2, 3 add the edges that RC, RA, TCC
force. A layer stores, per transaction, how many transactions of each session come before it (a vector clock). ``m.row``
has the counts at arrival. Later increases go to ``m.late``: Fenwick trees of maxima per pair of sessions, with the node
for position i in the row of the transaction at i. A late edge thus costs a few steps, not one per later transaction.
``m.late_max`` and ``m.has_late`` avoid the trees while nothing is late. ``m.last_row`` has the counts at the present
end of each session.

Commit orders rank all transactions, at first by arrival (Pearce and Kelly's dynamic topological sort). An edge u -> v
that agrees with the ranks is free. Otherwise only transactions ranked from v to u are visited and moved. Streams arrive
nearly in commit order, so ranks are far cheaper than layers. ``m.n[STEPS + level]`` counts the visits; beyond a limit
the caller changes to a layer.

Real time is not stored as pairs. Times grow within a session, so the last transaction that ended before t represents
all earlier ones. ``m.ended`` and ``m.begun`` list the transactions per session whose end or begin counts. Aborted ones
are in neither. One of unknown outcome has no end, and a begin only once it was read from.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.table_kernels import (
    COMMITTED,
    EDGE,
    EDGE_FROM,
    EDGE_LEVEL,
    EDGE_TO,
    FIRST_READ,
    INIT_TXN,
    LENGTH,
    NEWS,
    NEXT,
    NEXT_IN,
    NEXT_OUT,
    OFFSET,
    OUT,
    PARTICIPATES,
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

# Rows of ``m.scratch``: counts per session.
SOURCE_ROW, TARGET_ROW = 0, 1

KNOWN, NEW, CYCLE = 0, 1, 2

AFTER, BEFORE = 0, 1  # rows of ``m.affected``


def count_before(m, layer, t, b):
    """Return how many transactions of session b come before t."""
    txns = m.txn
    s = txns[t, SESSION]
    value = m.row[layer, t, b]
    if m.late_max[layer, s, b] > value:
        position = txns[t, POSITION]
        while position > 0:
            value = max(value, m.late[layer, tables.at_position(m, s, position), b])
            position -= position & -position
    return value


def has_before(m, layer, t, b, enough):
    """Return whether at least ``enough`` transactions of session b come before t."""
    txns = m.txn
    if m.row[layer, t, b] >= enough:
        return True
    s = txns[t, SESSION]
    if m.late_max[layer, s, b] < enough:
        return False
    position = txns[t, POSITION]
    while position > 0:
        if m.late[layer, tables.at_position(m, s, position), b] >= enough:
            return True
        position -= position & -position
    return False


def before(m, layer, u, v):
    return has_before(m, layer, v, m.txn[u, SESSION], m.txn[u, POSITION])


def copy_counts(m, layer, t, into):
    """Set ``m.scratch[into]`` to the counts of t for all sessions."""
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
    """Initialize the row of a new transaction t with the counts of its session."""
    row, now = m.row, m.last_row
    s = m.txn[t, SESSION]
    for b in range(m.n[SESSIONS]):
        row[layer, t, b] = now[layer, s, b]
    row[layer, t, s] = m.txn[t, POSITION] - 1


def join_past(m, layer, t, p):
    """Add p, and all transactions before p, to the past of a new transaction t."""
    row, scratch = m.row, m.scratch
    c = m.txn[p, SESSION]
    if row[layer, t, c] >= m.txn[p, POSITION]:
        return
    copy_counts(m, layer, p, SOURCE_ROW)
    for b in range(m.n[SESSIONS]):
        row[layer, t, b] = max(row[layer, t, b], scratch[SOURCE_ROW, b])
    row[layer, t, c] = max(row[layer, t, c], m.txn[p, POSITION])


def finish_row(m, layer, t):
    """Make the row of a new transaction t the present row of its session."""
    s = m.txn[t, SESSION]
    for b in range(m.n[SESSIONS]):
        m.last_row[layer, s, b] = m.row[layer, t, b]


def copy_layer(m, layer):
    """Initialize a layer as a copy of the causal order."""
    for t in range(m.n[TXNS]):
        for b in range(m.n[SESSIONS]):
            m.row[layer, t, b] = m.row[CAUSAL, t, b]
            if m.late[CAUSAL, t, b] > 0:
                m.late[layer, t, b] = m.late[CAUSAL, t, b]
    for s in range(m.n[SESSIONS]):
        m.has_late[layer, s] = m.has_late[CAUSAL, s]
        for b in range(m.n[SESSIONS]):
            m.late_max[layer, s, b] = m.late_max[CAUSAL, s, b]
            m.last_row[layer, s, b] = m.last_row[CAUSAL, s, b]


def first_after(m, layer, v, b):
    """Return the position of the first transaction of session b that is v or comes after v; 0 if there is none."""
    s, position = m.txn[v, SESSION], m.txn[v, POSITION]
    if b == s:
        return position
    if m.last_row[layer, b, s] < position:
        return 0
    last = tables.length_of(m, b)
    low = min(count_before(m, layer, v, b), last - 1)  # transactions before v are not after it
    step = 1
    high = low + step
    while high < last and not has_before(m, layer, tables.at_position(m, b, high), s, position):
        low = high
        step *= 2
        high = low + step
    high = min(high, last)
    while high - low > 1:
        middle = (low + high) // 2
        if has_before(m, layer, tables.at_position(m, b, middle), s, position):
            high = middle
        else:
            low = middle
    return high


def add_edge(m, layer, u, v):
    """Add u -> v and propagate it to all transactions after v. Return KNOWN, NEW, or CYCLE (nothing changes then).

    In the causal layer ``m.news`` gets a row per increase: (session, first position, other session, old count, new
    count).
    """
    if before(m, layer, u, v):
        return KNOWN
    if u == v or before(m, layer, v, u):
        return CYCLE
    c = m.txn[u, SESSION]
    copy_counts(m, layer, u, SOURCE_ROW)
    m.scratch[SOURCE_ROW, c] = m.txn[u, POSITION]
    for b in range(m.n[SESSIONS]):
        position = first_after(m, layer, v, b)
        if position > 0:
            propagate(m, layer, c, b, position)
    return NEW


def propagate(m, layer, c, b, position):
    """Raise the counts of session b from ``position`` on to the source row, which ends in session c."""
    scratch, late = m.scratch, m.late
    w = tables.at_position(m, b, position)
    if has_before(m, layer, w, c, scratch[SOURCE_ROW, c]):
        return
    if layer == CAUSAL:
        copy_counts(m, layer, w, TARGET_ROW)
        for d in range(m.n[SESSIONS]):
            if scratch[SOURCE_ROW, d] > scratch[TARGET_ROW, d]:
                record_news(m, b, position, d, scratch[TARGET_ROW, d], scratch[SOURCE_ROW, d])
    m.has_late[layer, b] = 1
    sessions, end = m.n[SESSIONS], tables.length_of(m, b)
    for d in range(sessions):
        m.late_max[layer, b, d] = max(m.late_max[layer, b, d], scratch[SOURCE_ROW, d])
        m.last_row[layer, b, d] = max(m.last_row[layer, b, d], scratch[SOURCE_ROW, d])
    while position <= end:
        node = tables.at_position(m, b, position)
        for d in range(sessions):
            late[layer, node, d] = max(late[layer, node, d], scratch[SOURCE_ROW, d])
        position += position & -position


def record_news(m, b, position, d, old, value):
    at = m.n[NEWS]
    m.n[NEWS] += 1
    m.news[at, 0] = b
    m.news[at, 1] = position
    m.news[at, 2] = d
    m.news[at, 3] = old
    m.news[at, 4] = value


def index_times(m, t):
    """Index the begin and end of a new transaction t if it is committed."""
    if m.n[REAL_TIME] and m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN]:
        index_begin(m, t)
        if m.end[t] > NO_TIME:
            number = m.ended[m.txn[t, SESSION]]
            tables.insert(m, number, m.lists[number, LENGTH], t)


def index_begin(m, t):
    """Index the begin of t, if known. t may be late within its session."""
    if m.begin[t] > NO_TIME:
        number = m.begun[m.txn[t, SESSION]]
        tables.insert(m, number, tables.writers_up_to(m, number, m.txn[t, POSITION]), t)


def last_ended(m, s, moment):
    """Return the last transaction of session s that ended before ``moment``, or -1."""
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
    """Return the first transaction of session s that began after ``moment``, or -1."""
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
    """Return the last transaction of another session s that is known to have ended before t began, or -1."""
    if m.begin[t] == NO_TIME or s == m.txn[t, SESSION]:
        return -1
    return last_ended(m, s, m.begin[t])


def began_after(m, t, s):
    """Return the first transaction of another session s that is known to have begun after t ended, or -1."""
    ended = m.txn[t, STATUS] == COMMITTED and t != m.n[INIT_TXN] and m.end[t] > NO_TIME
    if not ended or s == m.txn[t, SESSION]:
        return -1
    return first_begun(m, s, m.end[t])


def last_ended_writer(m, slot, s, moment):
    """Return the last committed transaction of session s that wrote the slot's key and ended before ``moment``, or
    -1.
    """
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
    """Add all transactions that ended before a new transaction t began to its past."""
    if not m.n[REAL_TIME] or m.txn[t, STATUS] != COMMITTED or t == m.n[INIT_TXN]:
        return
    for s in range(m.n[SESSIONS]):
        u = ended_before(m, t, s)
        if u >= 0:
            join_past(m, layer, t, u)


def append_to_order(m, level, t):
    """Rank a new transaction t last."""
    m.rank[level, t] = t


def insert_into_order(m, level, u, v):
    """Make the commit order agree with the edge u -> v. Return False if the edge closes a cycle."""
    low, high = m.rank[level, v], m.rank[level, u]
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
    """Append t to ``m.affected[row]`` if it is new and ranked from ``low`` to ``high``. Return the length."""
    m.n[STEPS + level] += 1
    if m.mark[t] == m.n[STAMP] or m.rank[level, t] < low or m.rank[level, t] > high:
        return count
    m.mark[t] = m.n[STAMP]
    m.affected[row, count] = t
    return count + 1


def find_after(m, level, v, u, high):
    """Collect the transactions after v ranked up to ``high``. Return their number, or -1 if u is one of them."""
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
    """Collect the transactions that lead to u and are ranked from ``low`` on; return their number."""
    high = m.rank[level, u]
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
        if m.n[REAL_TIME] and m.txn[t, PARTICIPATES]:
            for b in range(m.n[SESSIONS]):
                earlier = ended_before(m, t, b)
                if earlier >= 0:
                    count = visit(m, level, BEFORE, count, earlier, low, high)
    return count


def rearrange(m, level, after, leading):
    """Reassign the ranks of all collected transactions: first those before u, then those after v, each in old order."""
    sort_by_rank(m, level, AFTER, after)
    sort_by_rank(m, level, BEFORE, leading)
    i = j = 0
    for k in range(leading + after):  # all ranks, ascending
        if j == after or (i < leading and m.rank[level, m.affected[BEFORE, i]] < m.rank[level, m.affected[AFTER, j]]):
            m.free_ranks[k] = m.rank[level, m.affected[BEFORE, i]]
            i += 1
        else:
            m.free_ranks[k] = m.rank[level, m.affected[AFTER, j]]
            j += 1
    for k in range(leading + after):
        t = m.affected[BEFORE, k] if k < leading else m.affected[AFTER, k - leading]
        m.rank[level, t] = m.free_ranks[k]


def sort_by_rank(m, level, row, count):
    """Sort the first ``count`` entries of a row by rank, with Shell's method: few entries, and no extra memory."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            t = m.affected[row, i]
            j = i
            while j >= gap and m.rank[level, m.affected[row, j - gap]] > m.rank[level, t]:
                m.affected[row, j] = m.affected[row, j - gap]
                j -= gap
            m.affected[row, j] = t
        gap //= 3
