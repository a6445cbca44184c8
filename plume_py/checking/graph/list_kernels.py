"""Kernels of list reads: which elements are external, which are the reader's own, and which patterns the list shows.

A list that t reads under key x is an external part P, the version visible to t, followed by t's own appends so far. In
P, each writer's appends are consecutive, complete and in program order. The *reference* of a key is its longest list
without a fault, extended by all appends of its reader if it shows any. All other lists of the key must be prefixes of
it; writers that it does not show come after it.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Columns, Findings, ListColumns, References

# Rows of ``counts``, ``examples`` and ``fault``, in the order of ``reads.PATTERNS``.
THIN_AIR, ABORTED, FUTURE, NOT_OWN, NOT_LAST, INTERMEDIATE, DUPLICATE, TORN, INCOMPATIBLE = range(9)

# ``source`` of an element that an aborted transaction appended, as in reads_kernels.
FROM_ABORTED = -3


def chain_appends(c: ListColumns, stamp, first):
    """Link the appends of each transaction to each key.

    ``stamp`` is -1 per key; ``times`` and ``opens`` are 0 per version. following[o] is the next append or -1, and
    remaining[o] the number of appends after o. version_op[v] is the first operation that appends v, of times[v] such
    operations. opens[v] is 1 if that is its transaction's first append to the key.
    """
    op_kind, op_key, op_version, txn_start = c.op_kind, c.op_key, c.op_version, c.txn_start
    following, remaining = c.following, c.remaining
    for t in range(len(txn_start) - 1):
        for o in range(txn_start[t + 1] - 1, txn_start[t] - 1, -1):
            if op_kind[o] != 3:
                continue
            x = op_key[o]
            following[o] = first[x] if stamp[x] == t else -1
            remaining[o] = remaining[first[x]] + 1 if stamp[x] == t else 0
            stamp[x] = t
            first[x] = o
            c.version_op[op_version[o]] = o
            c.times[op_version[o]] += 1
        for o in range(txn_start[t], txn_start[t + 1]):
            if op_kind[o] == 3 and first[op_key[o]] == o:
                c.opens[op_version[o]] = 1


def own_appends(c: ListColumns, stamp, first):
    """Fill own_count, the number of appends of the reader to the key so far, and own_first, its first append or -1.

    ``stamp`` is -1 per key; ``first`` has an entry per key.
    """
    made = np.zeros(len(stamp), np.int32)  # by key, of the current transaction
    t, at = -1, 0
    for i in range(len(c.ops)):
        if c.txn[i] != t:
            t = c.txn[i]
            at = c.txn_start[t]
            for o in range(at, c.txn_start[t + 1]):
                if c.op_kind[o] == 3 and stamp[c.op_key[o]] != t:
                    stamp[c.op_key[o]] = t
                    first[c.op_key[o]] = o
                    made[c.op_key[o]] = 0
        while at < c.ops[i]:
            if c.op_kind[at] == 3:
                made[c.op_key[at]] += 1
            at += 1
        x = c.op_key[c.ops[i]]
        c.own_first[i] = first[x] if stamp[x] == t else -1
        c.own_count[i] = made[x] if stamp[x] == t else 0


def extent(c, i):
    """Return the length of list i with all appends of its reader, if it shows any."""
    later = c.remaining[c.own_first[i]] + 1 - c.own_count[i] if c.own_count[i] else 0
    return c.starts[i + 1] - c.starts[i] + later


def find_faults(c, i, seen, tick, fault):
    """Find the faults of list i without comparing it to others: fault[p] := the last position of pattern p, or -1.

    Returns the last element of P, or -1. Rows of ``seen``, by version: a tick, and the number of occurrences since that
    tick. ``tick`` is a number that is not in ``seen`` yet.
    """
    o, t = c.ops[i], c.txn[i]
    end = c.starts[i + 1]
    for p in range(len(fault)):
        fault[p] = -1
    due = c.own_first[i]  # the reader's append that must come next
    taken, misplaced, after_own = 0, False, False
    last, block, place, length, whole = -1, -1, -1, 0, True  # block: the append that has to follow in P
    for k in range(c.starts[i], end):
        v = c.items[k]
        if c.writer[v] == t:
            if c.version_op[v] > o:
                fault[FUTURE] = k
                continue
            after_own = True
            if due >= 0 and c.op_version[due] == v and taken < c.own_count[i]:
                taken += 1
                due = c.following[due]
            else:
                misplaced = True
            continue
        misplaced = misplaced or after_own or taken > 0
        after_own = False
        last = v
        seen[v, 1] = seen[v, 1] + 1 if seen[v, 0] == tick else 1
        seen[v, 0] = tick
        if seen[v, 1] > max(1, c.times[v]):
            seen[v, 1] -= 1
            fault[DUPLICATE] = k
            continue
        if block >= 0 and c.op_version[block] == v:
            block = c.following[block]
            place = k
            length += 1
            continue
        if block >= 0:
            fault[TORN] = place
        block = -1
        if c.source[v] == FROM_ABORTED:
            fault[ABORTED] = k
        elif c.source[v] < 0:
            fault[THIN_AIR] = k
        else:
            whole = c.opens[v] == 1
            if not whole:
                fault[TORN] = k
            block = c.following[c.version_op[v]]
            place = k
            length = 1
    if misplaced or taken != c.own_count[i]:
        fault[NOT_LAST if after_own else NOT_OWN] = end
    if block >= 0:
        alone = whole and (fault[TORN] < 0 or count_of(c, i, c.writer[c.items[place]], seen) == length)
        fault[INTERMEDIATE if alone else TORN] = place
    return last


def count_of(c, i, writer, seen):
    """Return the number of elements of ``writer`` in list i, without repetitions; resets their counts in ``seen``."""
    count = 0
    for k in range(c.starts[i], c.starts[i + 1]):
        v = c.items[k]
        if c.writer[v] == writer:
            count += seen[v, 1]
            seen[v, 1] = 0
    return count


def is_clean(fault):
    """Return whether the list shows a version order: no fault, but its last writer may be incomplete."""
    for p in range(len(fault)):
        if p != INTERMEDIATE and fault[p] >= 0:
            return False
    return True


def set_reference(c, i, base, references):
    """Store list i as the reference of its key, from ``base`` on; return its length.

    An append of the reader after all reads may have the same number as another transaction's: therefore the owners.
    """
    external = c.starts[i + 1] - c.starts[i] - c.own_count[i]
    size = extent(c, i)
    append = -1  # the operation of the next element, if known
    for k in range(size):
        if k < external:
            v = c.items[c.starts[i] + k]
            owner = c.writer[v]
            append = c.version_op[v] if append < 0 else append
        else:
            append = c.own_first[i] if k == external else append
            v = c.op_version[append]
            owner = c.txn[i]
        append = c.following[append]
        references.items[base + k] = v
        references.owners[base + k] = owner
        references.ends[base + k] = append < 0
        if references.at[v] < 0:
            references.at[v] = k
    return size


def agreed_length(c, i, references):
    """Return the length of P if list i is a prefix of its reference, or else -1.

    If list i shows appends of its reader, they must follow there as well.
    """
    rows, items, owners, at = references.rows, references.items, references.owners, references.at
    x = c.op_key[c.ops[i]]
    base, size, whole = rows[x, 1], max(0, rows[x, 2]), max(0, rows[x, 3])
    begin = c.starts[i]
    length = c.starts[i + 1] - begin - c.own_count[i]
    if length < 0 or length > whole:
        return -1
    for k in range(length):
        if c.items[begin + k] != items[base + k]:
            return -1
    own = c.own_first[i]
    where = at[c.op_version[own]] if own >= 0 else -1
    if c.own_count[i]:
        last = where + c.remaining[own]
        if where != length or last >= size or owners[base + last] != c.txn[i]:
            return -1
        for k in range(c.own_count[i]):
            if c.items[begin + length + k] != c.op_version[own]:
                return -1
            own = c.following[own]
    elif 0 <= where < length:
        return -1
    return length


def note(counts, examples, pattern, i):
    if counts[pattern] < examples.shape[1]:
        examples[pattern, counts[pattern]] = i
    counts[pattern] += 1


def add(edges, count, a, b, i):
    edges = shared_kernels.with_room(edges, count)
    edges[count, 0] = a
    edges[count, 1] = b
    edges[count, 2] = -1
    edges[count, 3] = i
    return edges


def find_references(c: ListColumns, keys, seen, at):
    """Return the reference of each key. Usually the longest list has no fault, and only that one is examined."""
    reference = np.full((keys, 4), -1, np.int64)
    fault = np.empty(9, np.int64)
    longest = np.zeros(keys, np.int64)
    unclean = np.zeros(keys, np.uint8)
    for i in range(len(c.ops)):
        x = c.op_key[c.ops[i]]
        if c.judged[i] and extent(c, i) > longest[x]:
            longest[x] = extent(c, i)
            reference[x, 0] = i
    for x in range(keys):
        i = reference[x, 0]
        if i >= 0:
            find_faults(c, i, seen, i, fault)
            if not is_clean(fault):
                unclean[x], reference[x, 0], longest[x] = 1, -1, 0
    for i in range(len(c.ops)):
        x = c.op_key[c.ops[i]]
        if unclean[x] and c.judged[i] and extent(c, i) > longest[x]:
            find_faults(c, i, seen, len(c.ops) + i, fault)
            if is_clean(fault):
                longest[x] = extent(c, i)
                reference[x, 0] = i
    items, owners = np.empty(longest.sum(), np.int32), np.empty(longest.sum(), np.int32)
    references = References(reference, items, owners, np.zeros(longest.sum(), np.uint8), at)
    base = 0
    for x in range(keys):
        if reference[x, 0] >= 0:
            reference[x, 1] = base
            i = reference[x, 0]
            size = set_reference(c, i, base, references)
            external = c.starts[i + 1] - c.starts[i] - c.own_count[i]
            reference[x, 2] = size
            reference[x, 3] = external if external and not references.ends[base + external - 1] else size
            base += size
    return references


def check_lists(c: ListColumns, seen, references: References, last, findings: Findings):
    """Count the faults of lists; last[i] := the last element of P, or -1. Return the orders of writers.

    Rows (t1, t2, -1, i): in list i, t1's appends directly precede t2's.
    """
    counts, examples = findings
    edges, count = np.empty((64, 4), np.int32), 0
    fault = np.empty(9, np.int64)
    for i in range(len(c.ops)):
        if not c.judged[i]:
            continue
        x = c.op_key[c.ops[i]]
        base = references.rows[x, 1]
        length = agreed_length(c, i, references)
        if length >= 0:
            last[i] = references.items[base + length - 1] if length else -1
            if length and not references.ends[base + length - 1]:
                note(counts, examples, INTERMEDIATE, i)
            if references.rows[x, 0] != i:
                continue
        else:
            last[i] = find_faults(c, i, seen, 2 * len(c.ops) + i, fault)
            for p in range(len(fault)):
                if fault[p] >= 0:
                    note(counts, examples, p, i)
            if not is_clean(fault):
                continue
            note(counts, examples, INCOMPATIBLE, i)
        previous = -1
        for k in range(c.starts[i], c.starts[i + 1]):
            writer = c.writer[c.items[k]]
            if previous >= 0 and previous != writer:
                edges = add(edges, count, previous, writer, i)
                count += 1
            previous = writer
    return edges[:count]


def unseen_appends(columns: Columns, participates, references: References, stamp):
    """Return rows (t1, t2, -1, i): t1 is the last writer in the reference of a key, list i; t2 is a writer not in it.

    ``stamp`` is -1 per key.
    """
    op_kind, op_key, op_version, txn_start = columns.op_kind, columns.op_key, columns.op_version, columns.txn_start
    reference, owners, at = references.rows, references.owners, references.at
    edges, count = np.empty((64, 4), np.int32), 0
    for t in range(len(txn_start) - 1):
        if not participates[t]:
            continue
        for o in range(txn_start[t], txn_start[t + 1]):
            x = op_key[o]
            if op_kind[o] == 3 and stamp[x] != t:
                stamp[x] = t
                base, size, where = reference[x, 1], reference[x, 2], at[op_version[o]]
                if size > 0 and (where < 0 or owners[base + where] != t):
                    edges = add(edges, count, owners[base + size - 1], t, reference[x, 0])
                    count += 1
    return edges[:count]
