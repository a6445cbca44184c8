"""Kernels for the monitor's tables: hash tables, growing lists in one shared pool, and indexes of readers and writers.

All other kernels of the monitor use them. ``m`` is a ``State`` (see ``state``): tables with a row per transaction,
operation, read, version, key, and so on. This module names their columns. The caller makes room before kernels run, so
kernels never grow an array.
"""

# mypy: allow-untyped-defs

# Entries of ``m.n``.
TXNS, OPS, READS, VERSIONS, KEYS, SLOTS, LISTS, POOL, EDGES, EVENTS, PENDING, SESSIONS = range(12)
HAS_INITIAL, INITIAL_CODE, INIT_TXN, INITIAL_WRITTEN, NEWS = range(12, 17)
STAMP, UNKNOWN_OPS = 20, 29
# IN_ORDER: all edges so far agree with the order of arrival, so readers are not indexed and late checks are skipped.
# OUT_OF_ORDER: an edge disagreed; ``level_kernels.leave_commit_order`` must do the skipped work.
IN_ORDER, OUT_OF_ORDER = 30, 31
# REAL_TIME: whether transactions are also ordered by real time.
REAL_TIME = 32
# Per level, at ORDERED + level and STEPS + level: whether the level keeps a commit order instead of a layer, and the
# number of steps spent on that order.
ORDERED, STEPS = 21, 25

# Columns of ``m.txn``. PARTICIPATES: it is committed, or of unknown outcome and read by a committed transaction. EDGE,
# OUT: the latest forced edge into it, and out of it. READ_BY: the latest read from it. SEEN: the latest
# reader for which it was checked as a source.
SESSION, POSITION, STATUS, FIRST_OP, FIRST_READ, PARTICIPATES, EDGE, OUT, READ_BY, SEEN = range(10)
# Columns of ``m.op``.
KEY, VERSION = range(2)
# Columns of ``m.read``: the reads of committed transactions from other transactions.
# NEXT: the next read that waits for the same version or, once resolved, the next read from the same transaction.
# SAME: the transaction's previous read of the key. AFTER_OWN: the transaction wrote the key before this read.
OP, SOURCE, READER, NEXT, SAME, AFTER_OWN = range(6)
# Columns of ``m.version``. SECOND: another writer of it. FINAL: whether it is its writer's last write of the key.
# WAITING: the first read that waits for its writer. SEEN_BY: a committed reader. WRITTEN: its write was reached in
# program order, so a later read by its writer is not TAP-c.
VERSION_KEY, WRITER, SECOND, FINAL, WAITING, SEEN_BY, WRITTEN = range(7)
# Columns of ``m.key``. HEADS: a list of the sessions that write it, each followed by the position of its last writer.
# USE: 0 for a register, 1 for a list, -1 until known. NEWEST, OLDER: the two participating writers that arrived last.
# OWN: the latest writer t, or -2 - t once its write was reached in program order; OWN_VERSION: the version it wrote.
# READ_IN, LAST_READ: the latest committed reader, and its last read.
HEADS, OWN, OWN_VERSION, READ_IN, LAST_READ, USE, NEWEST, OLDER = range(8)
# Columns of ``m.slot``: the writers and readers of one key in one session. HEAD: the index of its entry in HEADS.
# LAST_READER: the position of its last reader.
SLOT_KEY, SLOT_SESSION, WRITERS, READERS, HEAD, LAST_READER = range(6)
# Columns of ``m.edge``, the forced edges. EDGE_READ, EDGE_LIST: the read or the list that forces it; the other is -1.
EDGE_FROM, EDGE_TO, EDGE_READ, EDGE_LIST, EDGE_LEVEL, NEXT_IN, NEXT_OUT = range(7)
# Columns of ``m.lists``.
OFFSET, LENGTH, CAPACITY = range(3)

# ``SOURCE`` of a read whose source is neither a participating transaction nor INITIAL.
ABORTED_SOURCE, WAITS = -3, -4

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2

# Bits of ``m.op_kind``: a write; an operation on a list; the transaction's last write of the key.
WRITES, OF_LIST, LAST = 1, 2, 4


def mixed(a, b):
    h = (int(a) * 0x1E3779B97F4A7C15 + int(b) * 0x3F58476D1CE4E5B9) & 0x7FFFFFFFFFFFFFFF
    h ^= h >> 29
    h = (h * 0x14D049BB133111EB) & 0x7FFFFFFFFFFFFFFF
    return h ^ (h >> 32)


def intern_key(m, code):
    """Return the number of the key with this code; add the key if it is new."""
    key_hash, key_code = m.key_hash, m.key_code
    mask = len(key_hash) - 1
    at = mixed(code, 1) & mask
    while key_hash[at] >= 0:
        if key_code[key_hash[at]] == code:
            return key_hash[at]
        at = (at + 1) & mask
    x = m.n[KEYS]
    m.n[KEYS] += 1
    key_hash[at] = x
    key_code[x] = code
    for column in range(m.key.shape[1]):
        m.key[x, column] = -1
    return x


def intern_version(m, x, value):
    """Return the number of the version of key x that has this value; add the version if it is new."""
    version_hash, version_value, versions = m.version_hash, m.version_value, m.version
    mask = len(version_hash) - 1
    at = mixed(value, x) & mask
    while version_hash[at] >= 0:
        v = version_hash[at]
        if version_value[v] == value and versions[v, VERSION_KEY] == x:
            return v
        at = (at + 1) & mask
    v = m.n[VERSIONS]
    m.n[VERSIONS] += 1
    version_hash[at] = v
    version_value[v] = value
    for column in range(m.version.shape[1]):
        versions[v, column] = -1
    versions[v, VERSION_KEY] = x
    return v


def find_slot(m, x, s, make):
    """Return the number of the slot of key x and session s. If there is none, add it if ``make``, else return -1."""
    slot_hash, slots = m.slot_hash, m.slot
    mask = len(slot_hash) - 1
    at = mixed(s, x) & mask
    while slot_hash[at] >= 0:
        slot = slot_hash[at]
        if slots[slot, SLOT_KEY] == x and slots[slot, SLOT_SESSION] == s:
            return slot
        at = (at + 1) & mask
    if not make:
        return -1
    slot = m.n[SLOTS]
    m.n[SLOTS] += 1
    slot_hash[at] = slot
    slots[slot, SLOT_KEY] = x
    slots[slot, SLOT_SESSION] = s
    slots[slot, WRITERS] = -1
    slots[slot, READERS] = -1
    slots[slot, HEAD] = -1
    slots[slot, LAST_READER] = 0
    return slot


def open_session(m, s):
    """Create the lists of a new session s: its transactions, and those with a known end and a known begin."""
    m.session[s] = new_list(m)
    m.ended[s] = new_list(m)
    m.begun[s] = new_list(m)


def new_list(m):
    number = m.n[LISTS]
    m.n[LISTS] += 1
    m.lists[number, OFFSET] = m.n[POOL]
    m.lists[number, LENGTH] = 0
    m.lists[number, CAPACITY] = 0
    return number


def insert(m, number, at, item):
    """Insert ``item`` into a list, before entry ``at``. Fast at the end of the list, the usual case."""
    lists, pool = m.lists, m.pool
    length, offset = lists[number, LENGTH], lists[number, OFFSET]
    if length == lists[number, CAPACITY]:
        capacity = max(2, 2 * length)
        moved = m.n[POOL]
        m.n[POOL] += capacity
        for i in range(length):
            pool[moved + i] = pool[offset + i]
        lists[number, OFFSET] = offset = moved
        lists[number, CAPACITY] = capacity
    for i in range(length, at, -1):
        pool[offset + i] = pool[offset + i - 1]
    pool[offset + at] = item
    lists[number, LENGTH] = length + 1


def at_position(m, s, position):
    """Return the transaction at ``position`` of session s. Positions count from 1."""
    return m.pool[m.lists[m.session[s], OFFSET] + position - 1]


def length_of(m, s):
    return m.lists[m.session[s], LENGTH]


def writers_up_to(m, number, position):
    """Return how many transactions of a list are at or before ``position`` of their session."""
    lists, txns, pool = m.lists, m.txn, m.pool
    low, high = 0, lists[number, LENGTH]
    offset = lists[number, OFFSET]
    if high and txns[pool[offset + high - 1], POSITION] <= position:
        return high
    while low < high:
        middle = (low + high) // 2
        if txns[pool[offset + middle], POSITION] <= position:
            low = middle + 1
        else:
            high = middle
    return low


def readers_before(m, number, position):
    """Return how many reads of a list belong to transactions before ``position`` of their session."""
    lists, txns, reads, pool = m.lists, m.txn, m.read, m.pool
    low, high = 0, lists[number, LENGTH]
    offset = lists[number, OFFSET]
    if high and txns[reads[pool[offset + high - 1], READER], POSITION] < position:
        return high
    while low < high:
        middle = (low + high) // 2
        if txns[reads[pool[offset + middle], READER], POSITION] < position:
            low = middle + 1
        else:
            high = middle
    return low


def last_writer(m, slot, position):
    """Return the last participating writer of a slot at or before ``position`` of its session, or -1."""
    number = m.slot[slot, WRITERS]
    if number < 0:
        return -1
    found = writers_up_to(m, number, position)
    return m.pool[m.lists[number, OFFSET] + found - 1] if found else -1


def writes(m, t, x):
    """Return whether the participating transaction t writes key x."""
    slot = find_slot(m, x, m.txn[t, SESSION], False)
    return slot >= 0 and last_writer(m, slot, m.txn[t, POSITION]) == t


def add_head(m, x, slot):
    """Add the slot's session to the sessions that write key x (HEADS)."""
    if m.key[x, HEADS] < 0:
        m.key[x, HEADS] = new_list(m)
    number = m.key[x, HEADS]
    m.slot[slot, HEAD] = m.lists[number, LENGTH]
    insert(m, number, m.lists[number, LENGTH], m.slot[slot, SLOT_SESSION])
    insert(m, number, m.lists[number, LENGTH], 0)


def index_writer(m, t, x):
    """Index the participating transaction t as a writer of key x."""
    if t > m.key[x, NEWEST]:
        m.key[x, OLDER] = m.key[x, NEWEST]
        m.key[x, NEWEST] = t
    txns, slots, pool, lists = m.txn, m.slot, m.pool, m.lists
    slot = find_slot(m, x, txns[t, SESSION], True)
    if slots[slot, WRITERS] < 0:
        slots[slot, WRITERS] = new_list(m)
        add_head(m, x, slot)
    number = slots[slot, WRITERS]
    at = writers_up_to(m, number, txns[t, POSITION])
    if at == 0 or pool[lists[number, OFFSET] + at - 1] != t:
        insert(m, number, at, t)
        last = lists[m.key[x, HEADS], OFFSET] + slots[slot, HEAD] + 1
        pool[last] = max(pool[last], txns[t, POSITION])


def index_reader(m, r):
    """Index read r, whose source is known, in the slot of its key and session."""
    reads, txns, slots = m.read, m.txn, m.slot
    t = reads[r, READER]
    slot = find_slot(m, m.op[reads[r, OP], KEY], txns[t, SESSION], True)
    if slots[slot, READERS] < 0:
        slots[slot, READERS] = new_list(m)
    slots[slot, LAST_READER] = max(slots[slot, LAST_READER], txns[t, POSITION])
    number = slots[slot, READERS]
    insert(m, number, readers_before(m, number, txns[t, POSITION] + 1), r)


def rehash(table, first, second):
    """Fill an empty hash table with i for each of the distinct pairs (first[i], second[i])."""
    mask = len(table) - 1
    for i in range(len(first)):
        at = mixed(first[i], second[i]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = i
