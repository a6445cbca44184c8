"""Kernels for topological orders, strongly connected components and shortest paths of transactions."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Predecessors


def topological_order(session_start, graph: Predecessors, order):
    """Fill ``order``, advancing the sessions in turn; return the number of transactions placed.

    A session waits for one unplaced predecessor at a time, so no successor lists are needed. Transactions without a
    place are on a cycle or after one.
    """
    read_start, read_source, extra_start, extra_from = (
        graph.read_start, graph.read_source, graph.extra_start, graph.extra_source,
    )  # fmt: skip
    sessions = len(session_start) - 1
    transactions = len(read_start) - 1
    placed = np.zeros(transactions, np.uint8)
    waiting = np.full(transactions, -1, np.int32)  # by transaction: the first session waiting for it
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


def predecessor(graph: Predecessors, t, i):
    """Return the i-th predecessor of t; -1 if that entry is empty, -2 after the last one."""
    if i == 0:
        return shared_kernels.previous(graph.txn_session, t)
    i -= 1
    reads = graph.read_start[t + 1] - graph.read_start[t]
    if i < reads:
        return graph.read_source[graph.read_start[t] + i]
    i -= reads
    if i < graph.extra_start[t + 1] - graph.extra_start[t]:
        return graph.extra_source[graph.extra_start[t] + i]
    return -2


def neighbours_among(nodes, number, graph: Predecessors):
    """Return (start, target): for each of ``nodes``, its predecessors among them.

    Targets are given by ``number``, which is -1 for all other transactions.
    """
    start = np.zeros(len(nodes) + 1, np.int64)
    room = 0
    for t in nodes:
        room += 1 + graph.read_start[t + 1] - graph.read_start[t] + graph.extra_start[t + 1] - graph.extra_start[t]
    target = np.empty(room, np.int32)
    count = 0
    for v in range(len(nodes)):
        i = 0
        p = predecessor(graph, nodes[v], i)
        while p != -2:
            if p >= 0 and number[p] >= 0:
                target[count] = number[p]
                count += 1
            i += 1
            p = predecessor(graph, nodes[v], i)
        start[v + 1] = count
    return start, target[:count]


def components(start, target, order, component):
    """Compute strongly connected components (Tarjan's algorithm, without recursion); return their number.

    The neighbours of v are target[start[v]:start[v + 1]]. ``component`` gets the component number of each node.
    ``order`` gets the nodes component by component, each after the components that it reaches.
    """
    nodes = len(start) - 1
    index = np.full(nodes, -1, np.int32)
    low = np.zeros(nodes, np.int32)
    at = start[:nodes].copy()
    on_stack = np.zeros(nodes, np.uint8)
    stack = np.empty(nodes, np.int32)
    path = np.empty(nodes, np.int32)
    stacked = counted = placed = found = 0
    for root in range(nodes):
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
            v = path[depth]
            if at[v] < start[v + 1]:
                w = target[at[v]]
                at[v] += 1
                if index[w] < 0:
                    index[w] = low[w] = counted
                    counted += 1
                    stack[stacked] = w
                    stacked += 1
                    on_stack[w] = 1
                    depth += 1
                    path[depth] = w
                elif on_stack[w] and index[w] < low[v]:
                    low[v] = index[w]
                continue
            if low[v] == index[v]:
                while True:
                    stacked -= 1
                    member = stack[stacked]
                    on_stack[member] = 0
                    component[member] = found
                    order[placed] = member
                    placed += 1
                    if member == v:
                        break
                found += 1
            depth -= 1
            if depth >= 0 and low[v] < low[path[depth]]:
                low[path[depth]] = low[v]
    return found


def shortest_path(begin, end, allowed, moments, graph: Predecessors, parent, queue):
    """Search backwards, breadth first, from ``end`` to ``begin`` through allowed transactions; return success.

    ``begin`` may equal ``end``. Nodes numbered from ``moments`` on are auxiliary and cost nothing. ``parent`` (-1
    before) then leads from each node to its successor. ``queue`` has two entries per transaction, and two more.
    """
    head = len(queue) // 2
    tail = head + 1
    queue[head] = end
    while head < tail:
        t = queue[head]
        head += 1
        i = 0
        while True:
            p = predecessor(graph, t, i)
            i += 1
            if p == -2:
                break
            if p == begin:
                parent[begin] = t
                return True
            if p >= 0 and allowed[p] and p != end and parent[p] < 0:
                parent[p] = t
                if p >= moments:
                    head -= 1
                    queue[head] = p
                else:
                    queue[tail] = p
                    tail += 1
    return False
