"""Kernels for graphs of nodes: the commit of transaction t is node t, what it can see (its view) is node ``view[t]``.

The view of a SER transaction is its commit: there ``view[t]`` is t. Edges between transactions (rows) become edges
between nodes here. No kernel knows a level by its name; ``sees[t]`` are the bits of levels.table:

- SO, WR, a -> b: b commits after a. The view of b contains a, and with it all that committed before a if b sees a
  PREFIX, or else all that a's own view contains.
- WW, a -> b: b commits after a, and sees it if it sees all WRITERS of its keys.
- RW, a -> b: a does not see b, so b commits after whatever prefix a sees.
"""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS

SO, WR, WW, RW = 0, 1, 2, 3


def node_edges(source, target, relation, sees, view, views, out_from, out_to, out_row):
    """The node edges of rows; ``views``: do views of levels without prefixes matter? Returns how many edges."""
    count = 0
    for i in range(len(source)):
        a, b = source[i], target[i]
        kind = relation[i]
        if kind == RW:
            if sees[a] & PREFIX or (views and sees[a] & TRANSITIVE):
                out_from[count] = view[a]
                out_to[count] = b
                out_row[count] = i
                count += 1
            continue
        brings = kind != WW or sees[b] & WRITERS != 0  # does it make a visible to b?
        if brings and sees[b] & (PREFIX | EVERYTHING) == PREFIX:
            out_from[count] = a
            out_to[count] = view[b]
            out_row[count] = i
            count += 1
            continue
        out_from[count] = a
        out_to[count] = b
        out_row[count] = i
        count += 1
        if views and brings and not sees[b] & PREFIX:
            out_from[count] = view[a]
            out_to[count] = view[b]
            out_row[count] = i
            count += 1
    return count


def successors(nodes, source, target, start, order):
    """Group edges by source: those of v are order[start[v]:start[v + 1]]. ``start`` is 0 everywhere before."""
    for i in range(len(source)):
        start[source[i] + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    at = start.copy()
    for i in range(len(source)):
        order[at[source[i]]] = i
        at[source[i]] += 1


def topological(nodes, start, edges, target, order):
    """Kahn's algorithm, first come first served; returns how many nodes found a place."""
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
    """clock[v][s - low] := how many transactions of session s commit at v or before it. ``clock`` is 0 before."""
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
    """A path begin -> end inside one component with least weight (0 or 1 per edge), at most ``limit``.

    ``parent[v]`` becomes the edge by which v was reached (``distance`` is -1 before, and is so again afterwards).
    ``deque`` has room for twice as many entries as there are edges, and two. Returns the weight, or -1.
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
