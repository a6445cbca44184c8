"""A small multi-version store that executes a workload, one transaction after another in commit order.

What a transaction sees depends on the level only, which comes as bits (levels.table); ``generate`` explains why each
rule keeps its level.
"""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS

# AT_COMMIT alone: how many transactions of another session may be missing from what it shows.
MISSING = 4


def scramble(number, salt):
    """A pseudo-random number below 2**31, in steps that never overflow 63 bits (so that plain Python agrees)."""
    h = (number & 0x7FFFFFFF) * 0x41C64E6D + ((number >> 31) + salt) * 0x2545F491
    h = ((h ^ (h >> 29)) & 0x7FFFFFFF) * 0x369DEA0F
    return (h ^ (h >> 31)) & 0x7FFFFFFF


def join(seen, session, other):
    """``session`` learns what ``other`` knows."""
    for p in range(len(seen)):
        if seen[other, p] > seen[session, p]:
            seen[session, p] = seen[other, p]


def learn_versions(seen, session, op_kind, op_key, begin, end, newest, writer, order, place):
    """WRITERS: before it overwrites a version, a transaction must have seen it."""
    for o in range(begin, end):
        if op_kind[o] == 1:
            version = newest[op_key[o]]
            if version >= 0:
                c = writer[version]
                if place[c] >= seen[session, order[c]]:
                    join(seen, session, order[c])


def newest_overwritten(horizon, op_kind, op_key, begin, end, newest, writer):
    """WRITERS of a prefix: the horizon, moved past every version that the transaction overwrites."""
    for o in range(begin, end):
        if op_kind[o] == 1:
            version = newest[op_key[o]]
            if version >= 0 and writer[version] >= horizon:
                horizon = writer[version] + 1
    return horizon


def first_before(version, horizon, previous, writer):
    """The newest version that committed before ``horizon``."""
    while version >= 0 and writer[version] >= horizon:
        version = previous[version]
    return version


def first_seen(version, session, seen, previous, writer, order, place):
    """The newest version that the session's vector covers."""
    while version >= 0:
        c = writer[version]
        if place[c] < seen[session, order[c]]:
            break
        version = previous[version]
    return version


def first_arrived(version, now, session, committed, salt, previous, writer, order, place):
    """AT_COMMIT alone: the newest version that arrived; each transaction misses the last few of every other session."""
    while version >= 0:
        p = order[writer[version]]
        if p == session:
            break
        if place[writer[version]] < committed[p] - scramble(int(now) * len(committed) + int(p), salt) % MISSING:
            break
        version = previous[version]
    return version


def execute(sees, order, lag, peer, salt, operations, keys, op_kind, op_key, op_value):
    """Fill ``op_value``: order[c] is the session of commit c, and the operations stand session by session."""
    transactions = len(order)
    sessions = int(order.max()) + 1 if transactions else 0
    per_session = transactions // max(sessions, 1)
    writes = int(op_kind.sum())
    previous, writer, made_value = np.empty(writes, np.int32), np.empty(writes, np.int32), np.empty(writes, np.int32)
    newest, made = np.full(keys, -1, np.int32), np.zeros(keys, np.int32)
    own = np.full(keys, -1, np.int32)  # the last transaction that wrote the key
    place = np.empty(transactions, np.int32)  # of a commit in its session
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
                op_value[o] = made[k]  # transactions run one by one: the last value made is this one's own
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
