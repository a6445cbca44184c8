"""Kernels that build a commit order greedily, and that check a commit order by the axioms alone."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import NodeEdges, Predecessors, SolverArrays, Spans, Visibility
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS

# Maximum number of violations per read: the newest ones suffice.
PER_READ = 4


def axiom_violations(
    order, arrays: SolverArrays, graph: Predecessors, spans: Spans, session_start, keys, seen
):  # fmt: skip
    """Return the violations of the axioms by ``order``, which extends SO and WR: rows (t1, t2, t3, r).

    t3 reads x from t1 at read r, t2 wrote x after t1, and t2 is visible to t3. The visible set of t3 is the least that
    its level and the levels of the transactions visible to it require: the first ``prefix[t3]`` transactions of the
    order and, without PREFIX, the counts by session in ``seen``. ``seen`` has a row per transaction if some level is
    TRANSITIVE without PREFIX, else none. ``graph`` has the direct predecessors: session, sources, and in real time
    auxiliary nodes.
    """
    sees, participates = arrays.sees, arrays.participates
    read_key, write_start, write_key = arrays.read_key, arrays.write_start, arrays.write_key
    txn_session, read_start, read_source, time_start, time_source = graph
    rows, count = np.empty((64, 4), np.int32), 0
    transactions = len(sees)
    place = np.full(transactions, -1, np.int32)
    prefix = np.zeros(transactions, np.int32)
    visibility = Visibility(sees, place, prefix, seen, txn_session, session_start)
    reach = np.zeros(transactions, np.int32)  # by auxiliary node: length of the prefix with all transactions that ended
    reached = -1  # the last auxiliary node visited
    previous = np.full(len(txn_session), -1, np.int32)  # in the session: the previous participating one
    last = -1
    for t in range(transactions):
        if participates[t]:
            previous[t] = last if last >= 0 and shared_kernels.precedes(txn_session, last, t) else -1
            last = t
    latest = np.full(keys, -1, np.int32)  # by key: its last write so far; ``before`` leads to the previous one
    before = np.empty(len(write_key), np.int32)
    owner = np.empty(len(write_key), np.int32)
    placed = 0
    for at in range(len(order)):
        t3 = order[at]
        place[t3] = at
        bits = sees[t3]
        own = add_visible(previous[t3], t3, visibility)
        for r in range(read_start[t3], read_start[t3 + 1]):
            own = max(own, add_visible(read_source[r], t3, visibility))
        for i in range(time_start[t3], time_start[t3 + 1]):
            a = time_source[i]
            if participates[a]:
                own = max(own, add_visible(a, t3, visibility))
                continue
            # An auxiliary node is as late as its predecessors, which are all placed by now.
            first = session_start[txn_session[a]]
            for m in range(max(reached + 1, first), a + 1):
                if m > first:
                    reach[m] = reach[m - 1]
                    prefix[m] = add_visible(m - 1, m, visibility)
                for k in range(time_start[m], time_start[m + 1]):
                    b = time_source[k]
                    reach[m] = max(reach[m], place[b] + 1)
                    prefix[m] = max(prefix[m], add_visible(b, m, visibility))
            reached = max(reached, a)
            by_moment = add_visible(a, t3, visibility)
            own = max(own, reach[a] if bits & (PREFIX | EVERYTHING) == PREFIX else by_moment)
        if bits & EVERYTHING:
            own = at
        elif bits & WRITERS:
            for i in range(write_start[t3], write_start[t3 + 1]):
                write = latest[write_key[i]]
                while write >= 0:
                    t2 = owner[write]
                    own = max(own, add_visible(t2, t3, visibility))
                    if bits & PREFIX or sees[t2] & WRITERS:
                        break  # all earlier writers are visible to t2, or in the prefix
                    write = before[write]
        prefix[t3] = own
        for r in range(read_start[t3], read_start[t3 + 1]):
            x, t1 = read_key[r], read_source[r]
            write = latest[x]
            told = 0
            while write >= 0 and owner[write] != t1:
                t2 = owner[write]
                if is_visible(t2, t3, r, visibility, graph, spans):
                    rows = add(rows, count, t1, t2, t3, r)
                    count += 1
                    told += 1
                    if told == PER_READ:
                        break
                write = before[write]
        for i in range(write_start[t3], write_start[t3 + 1]):
            owner[placed] = t3
            before[placed] = latest[write_key[i]]
            latest[write_key[i]] = placed
            placed += 1
    return rows[:count]


def add_visible(a, t, visibility: Visibility):
    """Make a visible to t; return the length of the prefix of the order visible to t then."""
    sees, place, prefix, seen, txn_session, session_start = visibility
    if a < 0:
        return 0
    if len(seen) > 0:
        for j in range(seen.shape[1]):
            if seen[t, j] < seen[a, j]:
                seen[t, j] = seen[a, j]
        s = txn_session[a]
        seen[t, s] = max(seen[t, s], a - session_start[s] + 1)
    if sees[t] & (PREFIX | EVERYTHING) == PREFIX or sees[a] & EVERYTHING:
        return place[a] + 1
    return prefix[a]


def is_visible(t2, t3, r, visibility: Visibility, graph: Predecessors, spans: Spans):
    """Return whether t2 is visible to t3 at its read r."""
    sees, place, prefix, seen, txn_session, session_start = visibility
    read_start, read_source = graph.read_start, graph.read_source
    bits = sees[t3]
    if not bits & TRANSITIVE:
        if bits & AT_COMMIT and (
            shared_kernels.precedes(txn_session, t2, t3) or shared_kernels.ended_before(spans.begin, spans.end, t2, t3)
        ):
            return True
        end = read_start[t3 + 1] if bits & AT_COMMIT else r
        for k in range(read_start[t3], end):
            if read_source[k] == t2:
                return True
        return False
    if place[t2] < prefix[t3]:
        return True
    if not bits & PREFIX:
        s = txn_session[t2]
        return t2 - session_start[s] < seen[t3, s]
    return False


def add(rows, count, t1, t2, t3, r):
    rows = shared_kernels.with_room(rows, count)
    rows[count, 0] = t1
    rows[count, 1] = t2
    rows[count, 2] = t3
    rows[count, 3] = r
    return rows


# --- Greedy order

QUEUED, WAITING, PUT_OFF, PLACED = 1, 2, 3, 4
LOOK_THROUGH = 64  # number of delayed transactions examined for each choice


def commits_immediately(t, degree, arrays: SolverArrays, pending, current, lock):
    """Return whether t can commit right after its snapshot: only its snapshot is missing, and no key blocks it."""
    return degree[t] == 1 and blocking_key(t, arrays, True, pending, current, lock) < 0


def greedy_order(graph: NodeEdges, arrays: SolverArrays, versions, order):
    """Fill ``order`` with an order of the nodes that extends the edges; return how many were placed.

    Fewer mean a cycle.

    Heuristic: most reads should return the latest version. A commit that would overwrite a version waits until all
    readers of the version have taken their snapshots. A transaction takes its snapshot as late as possible. If all
    wait, the one that waits longest proceeds; ``axiom_violations`` then reports what that violates.
    """
    start, edges, target = graph
    (
        sees, participates, snapshot_node, read_start, read_key, read_version, read_counts,
        write_start, write_key, write_version, initial_version,
    ) = arrays  # fmt: skip
    nodes, transactions = len(order), len(sees)
    degree = np.zeros(nodes, np.int32)
    for i in range(len(target)):
        degree[target[i]] += 1
    owner = np.full(nodes, -1, np.int32)  # of a snapshot node with PREFIX
    for t in range(transactions):
        if snapshot_node[t] != t and snapshot_node[t] < nodes and sees[t] & (PREFIX | EVERYTHING) == PREFIX:
            owner[snapshot_node[t]] = t
    pending = np.zeros(versions, np.int32)  # by version: readers without a snapshot yet
    for r in range(len(read_key)):
        pending[read_version[r]] += read_counts[r]
    current = initial_version.copy()  # by key; -1: a version without readers
    lock = np.full(len(current), -1, np.int32)  # by key: the transaction that has a snapshot and will write it
    state = np.zeros(nodes, np.uint8)
    queue = np.empty(nodes, np.int32)  # a ring; it contains a node at most once
    put_off = np.empty(nodes, np.int32)
    blocked = np.empty(nodes, np.int32)  # commits by the time at which they began to wait
    waiting = np.full(len(current), -1, np.int32)  # by key: the first commit waiting for it
    next_waiting = np.full(transactions, -1, np.int32)
    head = tail = queued = delayed = 0
    first_blocked = many_blocked = 0
    placed = 0
    for v in range(nodes):
        if degree[v] == 0:
            queue[tail] = v
            tail = (tail + 1) % nodes
            queued += 1
            state[v] = QUEUED
    while placed < nodes:
        forced = False
        if queued > 0:
            v = queue[head]
            head = (head + 1) % nodes
            queued -= 1
            if state[v] != QUEUED:
                continue
        elif delayed > 0:
            best = -1
            for i in range(min(delayed, LOOK_THROUGH)):
                t = owner[put_off[i]]
                if commits_immediately(t, degree, arrays, pending, current, lock):
                    best = i
                    break
            if best < 0:
                for i in range(min(delayed, LOOK_THROUGH)):
                    if blocks_a_commit(owner[put_off[i]], read_start, read_key, read_counts, waiting) and may_lock(
                        owner[put_off[i]], sees, write_start, write_key, lock
                    ):
                        best = i
                        break
            if best < 0:
                for i in range(min(delayed, LOOK_THROUGH)):
                    if may_lock(owner[put_off[i]], sees, write_start, write_key, lock):
                        best = i
                        break
            best = max(best, 0)
            v = put_off[best]
            for i in range(best, delayed - 1):
                put_off[i] = put_off[i + 1]
            delayed -= 1
            forced = True
        else:
            while first_blocked < many_blocked and state[blocked[first_blocked]] != WAITING:
                first_blocked += 1
            if first_blocked == many_blocked:
                break  # a cycle
            v = blocked[first_blocked]
            forced = True
        t = owner[v]
        if t >= 0:
            together = commits_immediately(t, degree, arrays, pending, current, lock)
            if not together and not forced:
                state[v] = PUT_OFF
                put_off[delayed] = v
                delayed += 1
                continue
        elif v < transactions and participates[v] and not forced:
            looks = sees[v] & (PREFIX | EVERYTHING) != PREFIX
            x = blocking_key(v, arrays, looks, pending, current, lock)
            if x >= 0:
                if many_blocked == nodes:  # make room: drop commits that no longer wait
                    kept = 0
                    for i in range(first_blocked, many_blocked):
                        if state[blocked[i]] == WAITING:
                            blocked[kept] = blocked[i]
                            kept += 1
                    first_blocked, many_blocked = 0, kept
                state[v] = WAITING
                blocked[many_blocked] = v
                many_blocked += 1
                next_waiting[v] = waiting[x]
                waiting[x] = v
                continue
        for both in range(2):
            if both == 1:
                if t < 0 or not together:
                    break
                v = t
            state[v] = PLACED
            order[placed] = v
            placed += 1
            for i in range(start[v], start[v + 1]):
                w = target[edges[i]]
                degree[w] -= 1
                if degree[w] == 0:
                    queue[tail] = w
                    tail = (tail + 1) % nodes
                    queued += 1
                    state[w] = QUEUED
            looker = owner[v] if owner[v] >= 0 else v
            is_look = owner[v] >= 0 or (v < transactions and sees[v] & (PREFIX | EVERYTHING) != PREFIX)
            if is_look and looker < transactions:
                for r in range(read_start[looker], read_start[looker + 1]):
                    if read_counts[r]:
                        pending[read_version[r]] -= 1
                        if pending[read_version[r]] == 0 and waiting[read_key[r]] >= 0:
                            w = waiting[read_key[r]]
                            waiting[read_key[r]] = -1
                            while w >= 0:
                                if state[w] == WAITING:
                                    state[w] = QUEUED
                                    queue[tail] = w
                                    tail = (tail + 1) % nodes
                                    queued += 1
                                w = next_waiting[w]
            if owner[v] >= 0 and sees[looker] & WRITERS:
                for i in range(write_start[looker], write_start[looker + 1]):
                    lock[write_key[i]] = looker
            if v < transactions:
                for i in range(write_start[v], write_start[v + 1]):
                    x = write_key[i]
                    current[x] = write_version[i]
                    if lock[x] == v:
                        lock[x] = -1
                    w = waiting[x]
                    waiting[x] = -1
                    while w >= 0:
                        if state[w] == WAITING:
                            state[w] = QUEUED
                            queue[tail] = w
                            tail = (tail + 1) % nodes
                            queued += 1
                        w = next_waiting[w]
    return placed


def blocking_key(t, arrays: SolverArrays, looks, pending, current, lock):
    """Return a key that t must not write yet, or -1.

    With ``looks``, the snapshot is now, so t's own reads do not block.
    """
    read_start, read_version, read_counts = arrays.read_start, arrays.read_version, arrays.read_counts
    write_start, write_key = arrays.write_start, arrays.write_key
    if looks:
        for r in range(read_start[t], read_start[t + 1]):
            pending[read_version[r]] -= read_counts[r]
    found = -1
    for i in range(write_start[t], write_start[t + 1]):
        x = write_key[i]
        if (current[x] >= 0 and pending[current[x]] > 0) or (lock[x] >= 0 and lock[x] != t):
            found = x
            break
    if looks:
        for r in range(read_start[t], read_start[t + 1]):
            pending[read_version[r]] += read_counts[r]
    return found


def blocks_a_commit(t, read_start, read_key, read_counts, waiting):
    """Return whether some commit may be waiting for the snapshot of t."""
    for r in range(read_start[t], read_start[t + 1]):
        if read_counts[r] and waiting[read_key[r]] >= 0:
            return True
    return False


def may_lock(t, sees, write_start, write_key, lock):
    """Return whether the keys that t writes are free."""
    if sees[t] & WRITERS:
        for i in range(write_start[t], write_start[t + 1]):
            if lock[write_key[i]] >= 0:
                return False
    return True
