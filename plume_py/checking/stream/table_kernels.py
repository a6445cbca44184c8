"""Kernels for the monitor's tables: hash tables, growing lists in one pool, and what they index.

``m`` is a ``State`` (see ``state``): tables with a row per transaction, operation, read, version, key, ... and named
columns. Room is made before kernels run; they never grow anything.
"""

# mypy: allow-untyped-defs

# Entries of ``m.n``.
TXNS, OPS, READS, VERSIONS, KEYS, SLOTS, LISTS, POOL, EDGES, EVENTS, LOST_EVENTS, PENDING, SESSIONS = range(13)
HAS_INITIAL, INITIAL_CODE, INIT_TXN, IMPLICIT_READS, INITIAL_WRITTEN, LATE_UPDATES, NEWS = range(13, 20)
STAMP, UNKNOWN_OPS = 20, 29
# Has everything come in commit order so far, so that much can be left undone? And must that be made up for now?
IN_ORDER, OUT_OF_ORDER = 30, 31
# Does real time count?
REAL_TIME = 32
# By level, from 1 on: does it keep a commit order instead of a layer, and how many steps has that taken?
ORDERED, STEPS = 21, 25

# Columns of ``m.txn``. LIVE: its writes count. EDGE, OUT: the last edge forced into it, and out of it. READ_BY: the
# last read from it. SEEN: a stamp.
SESSION, POSITION, STATUS, FIRST_OP, FIRST_READ, LIVE, EDGE, OUT, READ_BY, SEEN = range(10)
# Columns of ``m.op``.
KEY, VERSION = range(2)
# Columns of ``m.read``. NEXT: another read that waits for the same version, or that is from the same transaction.
# SAME: the transaction's read of that key before.
# AFTER_OWN: the transaction itself wrote the key before.
OP, SOURCE, READER, NEXT, SAME, AFTER_OWN = range(6)
# Columns of ``m.version``. WAITING: the first read that waits for it. SEEN_BY: a committed reader.
VERSION_KEY, WRITER, SECOND, FINAL, WAITING, SEEN_BY, WRITTEN = range(7)
# Columns of ``m.key``. HEADS: a list of the sessions that write it,
# each followed by the position of its last writer. USE: as a register or as a list, once known.
# NEWEST, OLDER: the two live writers that arrived last.
# The others are stamps with their values.
HEADS, OWN, OWN_VERSION, READ_IN, LAST_READ, USE, NEWEST, OLDER = range(8)
# Columns of ``m.slot``: what one session did with one key. HEAD: where its entry is in HEADS.
# LAST_READER: the position of its last reader.
SLOT_KEY, SLOT_SESSION, WRITERS, READERS, HEAD, LAST_READER = range(6)
# Columns of ``m.edge``. EDGE_READ, EDGE_LIST: the read or the list that is the reason, the other being -1.
EDGE_FROM, EDGE_TO, EDGE_READ, EDGE_LIST, EDGE_LEVEL, NEXT_IN, NEXT_OUT = range(7)
# Columns of ``m.lists``.
OFFSET, LENGTH, CAPACITY = range(3)

# ``SOURCE`` of a read, if it is neither a transaction nor INITIAL.
ABORTED_SOURCE, WAITS = -3, -4

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2

# Bits of ``m.op_kind``: it writes; the key holds a list; it is the transaction's last write of the key.
WRITES, OF_LIST, LAST = 1, 2, 4


def mixed(a, b):
    """A hash of two numbers."""
    h = (int(a) * 0x1E3779B97F4A7C15 + int(b) * 0x3F58476D1CE4E5B9) & 0x7FFFFFFFFFFFFFFF
    h ^= h >> 29
    h = (h * 0x14D049BB133111EB) & 0x7FFFFFFFFFFFFFFF
    return h ^ (h >> 32)


def intern_key(m, code):
    """The number of a key."""
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
    """The number of a value of key x."""
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
    """What session s did with key x: the number of that slot, or -1 if there is none and it is not to be made."""
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
    """The lists of a new session: all its transactions, and those whose end, or beginning, is known."""
    m.session[s] = new_list(m)
    m.ended[s] = new_list(m)
    m.begun[s] = new_list(m)


def new_list(m):
    """An empty list."""
    number = m.n[LISTS]
    m.n[LISTS] += 1
    m.lists[number, OFFSET] = m.n[POOL]
    m.lists[number, LENGTH] = 0
    m.lists[number, CAPACITY] = 0
    return number


def insert(m, number, at, item):
    """Put ``item`` into a list, before its entry ``at``; mostly that is its end."""
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
    """The transaction that is number ``position``, from 1 on, of session s."""
    return m.pool[m.lists[m.session[s], OFFSET] + position - 1]


def length_of(m, s):
    """How many transactions of session s have arrived."""
    return m.lists[m.session[s], LENGTH]


def writers_up_to(m, number, position):
    """How many writers of a list stand at most at ``position`` of their session."""
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
    """How many reads of a list belong to transactions before ``position`` of their session."""
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
    """The last live writer at or before ``position`` of the slot's session, or -1."""
    number = m.slot[slot, WRITERS]
    if number < 0:
        return -1
    found = writers_up_to(m, number, position)
    return m.pool[m.lists[number, OFFSET] + found - 1] if found else -1


def writes(m, t, x):
    """Does live t write x?"""
    slot = find_slot(m, x, m.txn[t, SESSION], False)
    return slot >= 0 and last_writer(m, slot, m.txn[t, POSITION]) == t


def add_head(m, x, slot):
    """The slot's session writes x for the first time."""
    if m.key[x, HEADS] < 0:
        m.key[x, HEADS] = new_list(m)
    number = m.key[x, HEADS]
    m.slot[slot, HEAD] = m.lists[number, LENGTH]
    insert(m, number, m.lists[number, LENGTH], m.slot[slot, SLOT_SESSION])
    insert(m, number, m.lists[number, LENGTH], 0)


def index_writer(m, t, x):
    """Live t writes x."""
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
    """Read r is resolved."""
    reads, txns, slots = m.read, m.txn, m.slot
    t = reads[r, READER]
    slot = find_slot(m, m.op[reads[r, OP], KEY], txns[t, SESSION], True)
    if slots[slot, READERS] < 0:
        slots[slot, READERS] = new_list(m)
    slots[slot, LAST_READER] = max(slots[slot, LAST_READER], txns[t, POSITION])
    number = slots[slot, READERS]
    insert(m, number, readers_before(m, number, txns[t, POSITION] + 1), r)


def rehash(table, first, second):
    """Fill an empty hash table with the numbers of the pairs (first[i], second[i]), all different."""
    mask = len(table) - 1
    for i in range(len(first)):
        at = mixed(first[i], second[i]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = i
