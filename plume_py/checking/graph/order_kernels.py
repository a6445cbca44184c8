"""Kernels for orders and components. The predecessors of t: t - 1 in its session, its sources, and extra ones.

Sources are in ``read_start``/``read_source`` (-1: the initial state), the rest in ``extra_start``/``extra_from``.
"""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.checking.graph import session_kernels


def topological_order(session_start, read_start, read_source, extra_start, extra_from, order):
    """Fill ``order``, sessions advancing in turn; returns how many transactions found a place.

    A session waits for one unplaced predecessor at a time, so no list of successors is needed. What finds no place lies
    on a cycle or after one.
    """
    sessions = len(session_start) - 1
    transactions = len(read_start) - 1
    placed = np.zeros(transactions, np.uint8)
    waiting = np.full(transactions, -1, np.int32)  # by transaction: the first session that waits for it
    next_waiting = np.full(sessions, -1, np.int32)
    queue = np.empty(sessions + 1, np.int32)
    at = session_start.copy()  # the next transaction of each session
    read_at = np.zeros(sessions, np.int64)  # how many of its predecessors are known to be placed
    extra_at = np.zeros(sessions, np.int64)
    size = len(queue)
    head = tail = 0
    for s in range(sessions):
        if session_start[s] < session_start[s + 1]:
            queue[tail] = s
            tail += 1
    count = 0
    while head != tail:
        s = queue[head]
        head = (head + 1) % size
        t = at[s]
        blocker = -1
        i = read_start[t] + read_at[s]
        while i < read_start[t + 1]:
            p = read_source[i]
            if p >= 0 and not placed[p]:
                blocker = p
                break
            i += 1
        read_at[s] = i - read_start[t]
        if blocker < 0:
            i = extra_start[t] + extra_at[s]
            while i < extra_start[t + 1]:
                p = extra_from[i]
                if not placed[p]:
                    blocker = p
                    break
                i += 1
            extra_at[s] = i - extra_start[t]
        if blocker >= 0:
            next_waiting[s] = waiting[blocker]
            waiting[blocker] = s
            continue
        placed[t] = 1
        order[count] = t
        count += 1
        w = waiting[t]
        while w >= 0:
            queue[tail] = w
            tail = (tail + 1) % size
            w = next_waiting[w]
        at[s] = t + 1
        read_at[s] = 0
        extra_at[s] = 0
        if t + 1 < session_start[s + 1]:
            queue[tail] = s
            tail = (tail + 1) % size
    return count


def predecessor(t, i, txn_session, read_start, read_source, extra_start, extra_from):
    """The i-th predecessor of t; -1 if that place is empty, -2 if there are no more."""
    if i == 0:
        return session_kernels.previous(txn_session, t)
    i -= 1
    reads = read_start[t + 1] - read_start[t]
    if i < reads:
        return read_source[read_start[t] + i]
    i -= reads
    if i < extra_start[t + 1] - extra_start[t]:
        return extra_from[extra_start[t] + i]
    return -2


def components(nodes, active, txn_session, read_start, read_source, extra_start, extra_from, order, component):
    """Strongly connected components among the active nodes (Tarjan's algorithm, without recursion).

    ``order`` gets the nodes component by component, predecessors first; ``component`` their numbers. Returns how many.
    """
    transactions = len(txn_session)
    index = np.full(transactions, -1, np.int32)
    low = np.zeros(transactions, np.int32)
    edge = np.zeros(transactions, np.int64)
    on_stack = np.zeros(transactions, np.uint8)
    stack = np.empty(len(nodes), np.int32)
    path = np.empty(len(nodes), np.int32)
    stacked = counted = placed = found = 0
    for root in nodes:
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        index[root] = low[root] = counted
        counted += 1
        stack[stacked] = root
        stacked += 1
        on_stack[root] = 1
        while depth >= 0:
            t = path[depth]
            p = predecessor(t, edge[t], txn_session, read_start, read_source, extra_start, extra_from)
            edge[t] += 1
            if p == -2:
                if low[t] == index[t]:
                    while True:
                        stacked -= 1
                        member = stack[stacked]
                        on_stack[member] = 0
                        component[member] = found
                        order[placed] = member
                        placed += 1
                        if member == t:
                            break
                    found += 1
                depth -= 1
                if depth >= 0 and low[t] < low[path[depth]]:
                    low[path[depth]] = low[t]
            elif p >= 0 and active[p]:
                if index[p] < 0:
                    index[p] = low[p] = counted
                    counted += 1
                    stack[stacked] = p
                    stacked += 1
                    on_stack[p] = 1
                    depth += 1
                    path[depth] = p
                elif on_stack[p] and index[p] < low[t]:
                    low[t] = index[p]
    return found


def shortest_path(begin, end, allowed, txn_session, read_start, read_source, extra_start, extra_from, parent, queue):
    """Search backwards, breadth first, from ``end`` to ``begin`` through allowed transactions; begin may equal end.

    ``parent`` (-1 everywhere before) then leads from begin to end, from each to its successor. Returns success.
    """
    head, tail = 0, 1
    queue[0] = end
    while head < tail:
        t = queue[head]
        head += 1
        i = 0
        while True:
            p = predecessor(t, i, txn_session, read_start, read_source, extra_start, extra_from)
            i += 1
            if p == -2:
                break
            if p == begin:
                parent[begin] = t
                return True
            if p >= 0 and allowed[p] and p != end and parent[p] < 0:
                parent[p] = t
                queue[tail] = p
                tail += 1
    return False
