"""Execute a generated workload on a small multi-version store, one transaction after another in commit order.

The bits of the level (``levels.table``) decide which versions a transaction sees; ``generate`` explains each rule.
"""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS

# AT_COMMIT alone: a transaction misses fewer than this many of the last transactions of another session.
MISSING = 4


def scramble(number, salt):
    """Return a pseudo-random number below 2**31. No step exceeds 63 bits, so plain Python computes the same number."""
    h = (number & 0x7FFFFFFF) * 0x41C64E6D + ((number >> 31) + salt) * 0x2545F491
    h = ((h ^ (h >> 29)) & 0x7FFFFFFF) * 0x369DEA0F
    return (h ^ (h >> 31)) & 0x7FFFFFFF


def join(seen, session, other):
    """Add what session ``other`` has seen to what ``session`` has seen: the maximum of two vectors."""
    for p in range(len(seen)):
        if seen[other, p] > seen[session, p]:
            seen[session, p] = seen[other, p]


def learn_versions(seen, session, op_kind, op_key, begin, end, newest, writer, order, place):
    """WRITERS: make the session see each version that its transaction will overwrite."""
    for o in range(begin, end):
        if op_kind[o] == 1:
            version = newest[op_key[o]]
            if version >= 0:
                c = writer[version]
                if place[c] >= seen[session, order[c]]:
                    join(seen, session, order[c])


def newest_overwritten(horizon, op_kind, op_key, begin, end, newest, writer):
    """WRITERS of a prefix: return the horizon, moved past every version that the transaction overwrites."""
    for o in range(begin, end):
        if op_kind[o] == 1:
            version = newest[op_key[o]]
            if version >= 0 and writer[version] >= horizon:
                horizon = writer[version] + 1
    return horizon


def first_before(version, horizon, previous, writer):
    """Return the newest version that committed before ``horizon``, or -1."""
    while version >= 0 and writer[version] >= horizon:
        version = previous[version]
    return version


def first_seen(version, session, seen, previous, writer, order, place):
    """Return the newest version that the session's vector covers, or -1."""
    while version >= 0:
        c = writer[version]
        if place[c] < seen[session, order[c]]:
            break
        version = previous[version]
    return version


def first_arrived(version, now, session, committed, salt, previous, writer, order, place):
    """AT_COMMIT alone: return the newest version that has arrived at the session, or -1.

    Each transaction misses the last few transactions of every other session.
    """
    while version >= 0:
        p = order[writer[version]]
        if p == session:
            break
        if place[writer[version]] < committed[p] - scramble(int(now) * len(committed) + int(p), salt) % MISSING:
            break
        version = previous[version]
    return version


def execute(sees, order, lag, peer, salt, operations, keys, op_kind, op_key, op_value):
    """Fill ``op_value`` and return the number of versions.

    ``order[c]`` is the session of commit c. Operations are stored session by session.
    """
    transactions = len(order)
    sessions = int(order.max()) + 1 if transactions else 0
    per_session = transactions // max(sessions, 1)
    writes = int(op_kind.sum())
    previous, writer, made_value = np.empty(writes, np.int32), np.empty(writes, np.int32), np.empty(writes, np.int32)
    newest, made = np.full(keys, -1, np.int32), np.zeros(keys, np.int32)
    own = np.full(keys, -1, np.int32)  # the last transaction that wrote the key
    place = np.empty(transactions, np.int32)  # position of a commit in its session
    committed, last = np.zeros(sessions, np.int32), np.full(sessions, -1, np.int32)
    vectors = sees & (TRANSITIVE | PREFIX) == TRANSITIVE
    seen = np.zeros((sessions if vectors else 1, sessions if vectors else 1), np.int32)
    versions = 0
    for c in range(transactions):
        s = order[c]
        place[c] = committed[s]
        begin = (int(s) * per_session + int(committed[s])) * operations
        end = begin + operations
        horizon = c if sees & EVERYTHING else max(c - int(lag[c]), 0)
        if vectors:
            if peer[c] >= 0:
                join(seen, s, peer[c])
            if sees & WRITERS:
                learn_versions(seen, s, op_kind, op_key, begin, end, newest, writer, order, place)
        elif sees & (PREFIX | EVERYTHING) == PREFIX:
            horizon = max(horizon, int(last[s]) + 1)
            if sees & WRITERS:
                horizon = newest_overwritten(horizon, op_kind, op_key, begin, end, newest, writer)
        for o in range(begin, end):
            k = op_key[o]
            if op_kind[o] == 1:
                made[k] += 1
                own[k] = c
                op_value[o] = made[k]
            elif own[k] == c:
                op_value[o] = made[k]  # transactions run one by one, so the last value is its own
            else:
                if vectors:
                    version = first_seen(newest[k], s, seen, previous, writer, order, place)
                elif sees & (AT_COMMIT | PREFIX) == AT_COMMIT:
                    version = first_arrived(newest[k], c, s, committed, salt, previous, writer, order, place)
                else:
                    if not sees & AT_COMMIT:
                        horizon = min(c, horizon + scramble(o, salt) % (int(lag[c]) // 4 + 2))
                    version = first_before(newest[k], horizon, previous, writer)
                op_value[o] = made_value[version] if version >= 0 else 0
        for o in range(begin, end):
            k = op_key[o]
            if op_kind[o] == 1 and own[k] == c:
                own[k] = -1  # only its last write of a key becomes a version
                previous[versions], writer[versions], made_value[versions] = newest[k], c, made[k]
                newest[k] = versions
                versions += 1
        committed[s] += 1
        last[s] = c
        if vectors:
            seen[s, s] = committed[s]
    return versions
