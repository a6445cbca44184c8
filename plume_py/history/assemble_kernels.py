"""Kernels of ``assemble``: dense numbers, sorting by transaction, writers of versions, overlapping times."""

# mypy: allow-untyped-defs

import numpy as np


def hash_code(code):
    """Return a 62-bit hash of a 64-bit code. No step exceeds 63 bits, so plain Python computes the same number."""
    h = (code & 0x7FFFFFFF) * 0x5BD1E995 + ((code >> 31) & 0x7FFFFFFF) * 0x2C1B3C6D
    h = (h ^ (h >> 31)) & 0x7FFFFFFF
    return (h * 0x297A2D39) ^ (h >> 11)


def grow(table, hashes, count):
    """Return a hash table of twice the size with the ``count`` entries of ``table``."""
    mask = 2 * len(table) - 1
    bigger = np.full(2 * len(table), -1, np.int32)
    for i in range(count):
        slot = hashes[i] & mask
        while bigger[slot] >= 0:
            slot = (slot + 1) & mask
        bigger[slot] = i
    return bigger


def intern_keys(codes, secret, ids, distinct):
    """Set ids[i] to the dense number of codes[i], by first appearance; return how many numbers there are.

    Uses a hash table; ``secret`` (see ``assemble.SECRET``) is mixed into the hash. ``distinct`` gets the codes.
    """
    table = np.full(1 << 12, -1, np.int32)
    hashes = np.empty(len(distinct), np.int64)
    count = 0
    for i in range(len(codes)):
        code = int(codes[i])
        h = hash_code(code ^ secret)
        slot = h & (len(table) - 1)
        while table[slot] >= 0 and distinct[table[slot]] != code:
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            if 2 * count >= len(table):
                table = grow(table, hashes, count)
                slot = h & (len(table) - 1)
                while table[slot] >= 0:
                    slot = (slot + 1) & (len(table) - 1)
            distinct[count] = code
            hashes[count] = h
            table[slot] = count
            count += 1
        ids[i] = table[slot]
    return count


def intern_dense_keys(codes, lowest, table, ids, distinct):
    """Like ``intern_keys``, for codes close to each other: ``table``, all -1, has an entry per code from ``lowest``."""
    count = 0
    for i in range(len(codes)):
        code = int(codes[i])
        at = code - lowest
        if table[at] < 0:
            distinct[count] = code
            table[at] = count
            count += 1
        ids[i] = table[at]
    return count


def value_ranges(keys, codes, initial, low, high):
    """Set low[key] and high[key] to the least and greatest code of each key, except the code ``initial``."""
    for i in range(len(codes)):
        code = codes[i]
        if code != initial:
            key = keys[i]
            if code < low[key]:
                low[key] = code
            if code > high[key]:
                high[key] = code


def intern_dense_versions(keys, codes, initial, first, base, table, shared, ids, version_key, version_code):
    """Set ids[i] to the dense number of (keys[i], codes[i]), by first appearance; return the count, or -1.

    ``table``, all -1, has the entry ``first[key]`` for the code ``initial`` and ``base[key] + code`` for others.
    With ``shared``, keys share the entries of codes; return -1 if two keys have the same code.
    """
    count = 0
    for i in range(len(codes)):
        key = int(keys[i])
        code = int(codes[i])
        at = first[key] if code == initial else base[key] + code
        v = int(table[at])
        if v < 0:
            version_key[count] = key
            version_code[count] = code
            table[at] = count
            v = count
            count += 1
        elif shared and version_key[v] != key:
            return -1
        ids[i] = v
    return count


def intern_versions(keys, codes, secret, ids, version_key, version_code):
    """Like ``intern_keys``, for pairs (keys[i], codes[i]).

    A table entry holds 31 bits of the hash above the version's number, so nearly every probe needs one memory access.
    """
    size = 1 << 10
    while size < len(codes) + len(codes) // 4:
        size *= 2
    table = np.full(size, -1, np.int64)
    count = 0
    for i in range(len(codes)):
        key = int(keys[i])
        code = int(codes[i])
        h = hash_code(code ^ secret) ^ (key * 0x3779B97F)
        tag = (h >> 24) & 0x7FFFFFFF
        slot = h & (size - 1)
        while True:
            entry = int(table[slot])
            if entry < 0:
                version_key[count] = key
                version_code[count] = code
                table[slot] = (tag << 32) | count
                ids[i] = count
                count += 1
                break
            if entry >> 32 == tag:
                v = entry & 0xFFFFFFFF
                if version_code[v] == code and version_key[v] == key:
                    ids[i] = v
                    break
            slot = (slot + 1) & (size - 1)
    return count


def order_by_txn(op_txn, rank, start, order):
    """Set ``order`` to the operations sorted by the rank of their transaction, stably (a counting sort)."""
    at = start.copy()
    for i in range(len(op_txn)):
        r = rank[op_txn[i]]
        order[at[r]] = i
        at[r] += 1


def find_writers(op_kind, op_version, txn_start, version_writer, version_second):
    """Set version_writer to the first transaction that wrote each version, and version_second to another one."""
    for t in range(len(txn_start) - 1):
        for o in range(txn_start[t], txn_start[t + 1]):
            if op_kind[o] & 1:
                v = op_version[o]
                if version_writer[v] < 0:
                    version_writer[v] = t
                elif version_writer[v] != t and version_second[v] < 0:
                    version_second[v] = t


def first_ambiguous_read(op_kind, op_version, txn_start, txn_status, version_second):
    """Return the first read of a committed transaction whose version two transactions wrote, or -1."""
    for t in range(len(txn_start) - 1):
        if txn_status[t] == 0:
            for o in range(txn_start[t], txn_start[t + 1]):
                if not op_kind[o] & 1 and version_second[op_version[o]] >= 0:
                    return o
    return -1


def first_overlap(txn_session, begin, end, no_time):
    """Return the first (a, b) of one session in which b begins before its predecessor a ended, or (-1, -1)."""
    latest = -1
    for t in range(len(txn_session)):
        if t > 0 and txn_session[t] != txn_session[t - 1]:
            latest = -1
        first = begin[t] if begin[t] > no_time else end[t]
        if latest >= 0 and no_time < first < max(begin[latest], end[latest]):
            return latest, t
        if latest < 0 or max(begin[t], end[t]) > max(begin[latest], end[latest]):
            latest = t
    return -1, -1
