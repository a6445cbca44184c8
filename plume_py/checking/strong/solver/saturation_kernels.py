"""Kernels of saturation: infer rows that every commit order must obey, and build graphs of nodes from them.

Rows are (a, b, relation, key, read). The commit of transaction t is node t, its snapshot is node ``snapshot_node[t]``;
a SER transaction has its commit as snapshot. ``sees[t]`` has the bits of t's level (levels.table). Rows become node
edges:

- SO, WR, a -> b: b commits after a. The snapshot of b contains a, and with it all that committed before a if b sees a
PREFIX, or else all that a's own snapshot contains.
- WW, a -> b: b commits after a, which is visible to b if b has WRITERS.
- RW, a -> b: a does not see b, so b commits after any prefix that a sees.

``clock[v][s - low]`` counts the transactions of session s that commit at node v or before it. ``seen`` counts those
visible to a transaction, itself included; it has no rows if all levels see prefixes.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import ClockBlock, Columns, ExternalReads, KeyGroups, KeyWriters, ReadVersions
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS

SO, WR, WW, RW = 0, 1, 2, 3


# Inference: rows


def add(rows, count, a, b, relation, key, read):
    rows = shared_kernels.with_room(rows, count)
    rows[count, 0] = a
    rows[count, 1] = b
    rows[count, 2] = relation
    rows[count, 3] = key
    rows[count, 4] = read
    return rows


def seen_writers(
    sees,
    snapshot_node,
    reads: ExternalReads,
    columns: Columns,
    writers: KeyWriters,
    groups: KeyGroups,
    changed,
    block: ClockBlock,
):
    """Infer WW(t2, t1): t3 read x from t1, and t2, another writer of x, is known to be visible to t3.

    Of the writers in one session, the last one implies the others. A t1 of -1 (the initial state) is a contradiction.
    Only transactions t3 that are ``changed`` are examined: more is known of their visible set than in the last round.
    """
    read_start, _, read_key, read_source = reads
    session_start, key_writers = columns.session_start, writers.txn
    key_group, group_start, group_session = groups
    low, clock, seen = block
    rows, count = np.empty((64, 5), np.int32), 0
    width = clock.shape[1]
    for t3 in range(len(read_start) - 1):
        if not changed[t3] or not sees[t3] & TRANSITIVE:
            continue
        for r in range(read_start[t3], read_start[t3 + 1]):
            x, t1 = read_key[r], read_source[r]
            for g in range(key_group[x], key_group[x + 1]):
                j = group_session[g] - low
                if j < 0 or j >= width:
                    continue
                known = 0
                if snapshot_node[t3] != t3 or sees[t3] & EVERYTHING:  # otherwise no prefixes are visible
                    known = clock[snapshot_node[t3], j]
                if not sees[t3] & PREFIX:
                    known = max(known, seen[t3, j])
                if known == 0:
                    continue
                first = session_start[group_session[g]]
                at = shared_kernels.lower_bound(key_writers, group_start[g], group_start[g + 1], first + known)
                if at > group_start[g] and key_writers[at - 1] == t3:
                    at -= 1
                if at == group_start[g]:
                    continue
                t2 = key_writers[at - 1]
                if t2 == t1 or (t1 >= 0 and t2 < first + clock[t1, j]):
                    continue
                rows = add(rows, count, t2, t1, WW, x, r)
                count += 1
    return rows[:count]


def earlier_writers(
    sees, snapshot_node, columns: Columns, writers: KeyWriters, groups: KeyGroups, changed, block: ClockBlock
):
    """Infer WW(a, b) where b has WRITERS: a, a writer of the same key, is known to commit before b.

    With EVERYTHING, a is visible to b anyway. Only transactions b that are ``changed`` are examined.
    """
    session_start = columns.session_start
    key_writers, writer_key = writers
    key_group, group_start, group_session = groups
    low, clock, seen = block
    rows, count = np.empty((64, 5), np.int32), 0
    width = clock.shape[1]
    for i in range(len(key_writers)):
        b = key_writers[i]
        if not changed[b] or sees[b] & (WRITERS | EVERYTHING) != WRITERS:
            continue
        x = writer_key[i]
        for g in range(key_group[x], key_group[x + 1]):
            j = group_session[g] - low
            if j < 0 or j >= width or clock[b, j] == 0:
                continue
            first = session_start[group_session[g]]
            at = shared_kernels.lower_bound(key_writers, group_start[g], group_start[g + 1], first + clock[b, j])
            if at > group_start[g] and key_writers[at - 1] == b:
                at -= 1
            if at == group_start[g]:
                continue
            a = key_writers[at - 1]
            known = clock[snapshot_node[b], j] if sees[b] & PREFIX else seen[b, j]
            if a >= first + known:
                rows = add(rows, count, a, b, WW, x, -1)
                count += 1
    return rows[:count]


def first_after(t1, j, begin, end, first, writers, clock):
    """Return the index of the first writer of begin .. end - 1 (one session) that is known to commit after t1."""
    while begin < end:
        middle = (begin + end) // 2
        if clock[writers[middle], j] > t1 - first:
            end = middle
        else:
            begin = middle + 1
    return begin


def changed_rows(before, clock):
    """Return by row whether it differs from the last round."""
    changed = np.zeros(len(clock), np.uint8)
    for v in range(len(clock)):
        for j in range(clock.shape[1]):
            if before[v, j] != clock[v, j]:
                changed[v] = 1
                break
    return changed


def overtaken(columns: Columns, writers: KeyWriters, writer_version, groups: KeyGroups, before, clock, rows, out):
    """out[v] := 1 for versions (t1, x) with a writer of x that is newly known to commit after t1.

    Only their nearest overwriters may have changed. ``rows`` are the changed rows of ``clock``; both clocks cover all
    sessions.
    """
    session_start = columns.session_start
    key_writers, writer_key = writers
    key_group, group_start, group_session = groups
    for i in range(len(key_writers)):
        t2 = key_writers[i]
        if not rows[t2]:
            continue
        x = writer_key[i]
        for g in range(key_group[x], key_group[x + 1]):
            s = group_session[g]
            if before[t2, s] == clock[t2, s]:
                continue
            first = session_start[s]
            begin = shared_kernels.lower_bound(key_writers, group_start[g], group_start[g + 1], first + before[t2, s])
            end = shared_kernels.lower_bound(key_writers, begin, group_start[g + 1], first + clock[t2, s])
            for k in range(begin, end):
                if writer_version[k] >= 0:
                    out[writer_version[k]] = 1


def overwriters(
    sees, columns: Columns, versions: ReadVersions, writers: KeyWriters, groups: KeyGroups, changed, block: ClockBlock
):
    """Infer RW(t3, t2): t3 read x from t1, and t2, another writer of x, is known to commit after t1.

    Of the writers in one session, the first one implies the others, and so does a writer before another such one. If t3
    also writes x and has WRITERS, it commits before t2: then the row is WW(t3, t2). Only versions that are ``changed``
    are examined, see ``overtaken``.
    """
    txn_session, session_start, key_writers = columns.txn_session, columns.session_start, writers.txn
    version_start, version_txn, version_key, version_read, read_txn, read_also_writes = versions
    key_group, group_start, group_session = groups
    low, clock, _ = block
    rows, count = np.empty((64, 5), np.int32), 0
    width = clock.shape[1]
    found = np.empty(len(session_start), np.int32)
    for v in range(len(version_txn)):
        if not changed[v]:
            continue
        t1, x = version_txn[v], version_key[v]
        j = low if t1 < 0 else txn_session[t1]
        first = 0 if t1 < 0 else session_start[j]
        j -= low
        if j < 0 or j >= width:
            continue
        many = 0
        for g in range(key_group[x], key_group[x + 1]):
            at = group_start[g]
            if t1 >= 0:
                if group_session[g] == j + low:
                    at = shared_kernels.lower_bound(key_writers, at, group_start[g + 1], t1 + 1)
                else:
                    at = first_after(t1, j, at, group_start[g + 1], first, key_writers, clock)
            if at < group_start[g + 1]:
                found[many] = key_writers[at]
                many += 1
        for i in range(many):
            t2 = found[i]
            behind = -1  # another overwriter known to commit before t2; -2: several
            for k in range(many):
                s = txn_session[found[k]]
                if k != i and low <= s < low + width and found[k] - session_start[s] < clock[t2, s - low]:
                    if behind != -1:
                        behind = -2
                        break
                    behind = found[k]
            if behind == -2:
                continue
            for k in range(version_start[v], version_start[v + 1]):
                r = version_read[k]
                t3 = read_txn[r]
                # t3 itself may be before t2 because of this very row
                if t3 == t2 or not sees[t3] & TRANSITIVE or (behind >= 0 and behind != t3):
                    continue
                relation = RW
                if read_also_writes[r] and sees[t3] & (WRITERS | EVERYTHING) == WRITERS:
                    relation = WW
                    s = txn_session[t3] - low
                    if 0 <= s < width and t3 - session_start[s + low] < clock[t2, s]:
                        continue  # known already
                rows = add(rows, count, t3, t2, relation, x, r)
                count += 1
    return rows[:count]


def static_rows(
    sees, participates, txn_start, op_kind, op_key, txn_session, read_start, read_key, read_source,
    key_start, key_writers,
):  # fmt: skip
    """Infer WW(t2, t1) for readers t3 without TRANSITIVE, whose visible set does not depend on the commit order.

    With AT_COMMIT: t2 is before t3 in its session, or t3 read from t2. Otherwise: t3 read from t2 before it read x from
    t1.
    """
    rows, count = np.empty((64, 5), np.int32), 0
    keys = len(key_start) - 1
    last_writer = np.full(keys, -1, np.int32)
    for t3 in range(len(read_start) - 1):
        if not sees[t3] & TRANSITIVE:
            at_commit = sees[t3] & AT_COMMIT != 0
            for r in range(read_start[t3], read_start[t3 + 1]):
                x, t1 = read_key[r], read_source[r]
                if at_commit and last_writer[x] >= 0:
                    t2 = last_writer[x]
                    if t2 != t1 and shared_kernels.precedes(txn_session, t2, t3):
                        rows = add(rows, count, t2, t1, WW, x, r)
                        count += 1
                end = read_start[t3 + 1] if at_commit else r
                for k in range(read_start[t3], end):
                    t2 = read_source[k]
                    if t2 < 0 or t2 == t1 or t2 == t3:
                        continue
                    at = shared_kernels.lower_bound(key_writers, key_start[x], key_start[x + 1], t2)
                    if at < key_start[x + 1] and key_writers[at] == t2:
                        rows = add(rows, count, t2, t1, WW, x, r)
                        count += 1
        if participates[t3]:
            for o in range(txn_start[t3], txn_start[t3 + 1]):
                if op_kind[o] & 1:
                    last_writer[op_key[o]] = t3
    return rows[:count]


def count_open(writers: KeyWriters, columns: Columns, groups: KeyGroups, clock):
    """Return the number of pairs of writers of a key without a known order. ``clock`` covers all sessions."""
    txn_session, session_start = columns.txn_session, columns.session_start
    key_writers, writer_key = writers
    key_group, group_start, group_session = groups
    count = 0
    for i in range(len(key_writers)):
        t = key_writers[i]
        s = txn_session[t]
        x = writer_key[i]
        for g in range(key_group[x], key_group[x + 1]):
            other = group_session[g]
            if other <= s:
                continue
            before = shared_kernels.lower_bound(
                key_writers, group_start[g], group_start[g + 1], session_start[other] + clock[t, other]
            )
            after = first_after(t, s, before, group_start[g + 1], session_start[s], key_writers, clock)
            count += after - before
    return count


# Graphs of nodes


def node_edges(source, target, relation, sees, snapshot_node, mixes_snapshots, out_from, out_to, out_row):
    """Fill the node edges of rows; return their number.

    See the module for the edges; ``mixes_snapshots`` as in SolverColumns.
    """
    count = 0
    for i in range(len(source)):
        a, b = source[i], target[i]
        kind = relation[i]
        if kind == RW:
            if sees[a] & PREFIX or (mixes_snapshots and sees[a] & TRANSITIVE):
                out_from[count] = snapshot_node[a]
                out_to[count] = b
                out_row[count] = i
                count += 1
            continue
        brings = kind != WW or sees[b] & WRITERS != 0  # does it make a visible to b?
        if brings and sees[b] & (PREFIX | EVERYTHING) == PREFIX:
            out_from[count] = a
            out_to[count] = snapshot_node[b]
            out_row[count] = i
            count += 1
            continue
        out_from[count] = a
        out_to[count] = b
        out_row[count] = i
        count += 1
        if mixes_snapshots and brings and not sees[b] & PREFIX:
            out_from[count] = snapshot_node[a]
            out_to[count] = snapshot_node[b]
            out_row[count] = i
            count += 1
    return count


def successors(nodes, source, target, start, order):
    """Group edges by source: v has the edges order[start[v]:start[v + 1]]. ``start`` is 0 before."""
    for i in range(len(source)):
        start[source[i] + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    at = start.copy()
    for i in range(len(source)):
        order[at[source[i]]] = i
        at[source[i]] += 1


def topological(nodes, start, edges, target, order):
    """Fill ``order`` (Kahn's algorithm, first in, first out); return the number of nodes placed."""
    degree = np.zeros(nodes, np.int32)
    for i in range(len(target)):
        degree[target[i]] += 1
    count = 0
    for v in range(nodes):
        if degree[v] == 0:
            order[count] = v
            count += 1
    at = 0
    while at < count:
        v = order[at]
        at += 1
        for i in range(start[v], start[v + 1]):
            w = target[edges[i]]
            degree[w] -= 1
            if degree[w] == 0:
                order[count] = w
                count += 1
    return count


def reach_clocks(order, start, edges, target, transactions, txn_session, session_start, low, clock):
    """clock[v][s - low] := the number of transactions of session s that commit at v or before it.

    ``clock`` is 0 before.
    """
    width = clock.shape[1]
    for v in order:
        if v < transactions:
            s = txn_session[v]
            if low <= s < low + width:
                count = v - session_start[s] + 1
                if clock[v, s - low] < count:
                    clock[v, s - low] = count
        for i in range(start[v], start[v + 1]):
            w = target[edges[i]]
            for j in range(width):
                if clock[w, j] < clock[v, j]:
                    clock[w, j] = clock[v, j]


def cheapest_path(begin, end, component, start, edges, target, weight, limit, distance, parent, touched, deque):
    """Find a path begin -> end inside one component with least weight (0 or 1 per edge); return the weight, or -1.

    The weight is at most ``limit``. ``parent[v]`` becomes the edge that reached v; ``distance`` is -1 before and after.
    ``deque`` has twice as many entries as there are edges, and two more.
    """
    middle = len(deque) // 2
    head = tail = middle
    deque[tail] = begin
    tail += 1
    distance[begin] = 0
    touched[0] = begin
    count = 1
    found = -1
    while head < tail:
        v = deque[head]
        head += 1
        if v == end:
            found = distance[v]
            break
        for i in range(start[v], start[v + 1]):
            e = edges[i]
            w = target[e]
            if component[w] != component[end]:
                continue
            d = distance[v] + weight[e]
            if d > limit or (distance[w] >= 0 and distance[w] <= d):
                continue
            if distance[w] < 0:
                touched[count] = w
                count += 1
            distance[w] = d
            parent[w] = e
            if weight[e] == 0:
                head -= 1
                deque[head] = w
            else:
                deque[tail] = w
                tail += 1
    for i in range(count):
        distance[touched[i]] = -1
    return found
