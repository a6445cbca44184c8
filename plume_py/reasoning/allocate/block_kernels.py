"""Compute the blocks (biconnected components) of the static dependency graph of instances.

Two instances are adjacent if they share a cell that one of them may write, or a session. Within one block they stay
connected when any third instance is removed.

The full graph is quadratic in the accesses to a cell, so a ring through the accessing instances replaces its edges. The
accessing instances of a cell with several writers stay connected whichever of them is removed, as do three or more
instances of a session. The ring has the same property, and the graph stays as small as the workload. A cell with a
single writer becomes a star.
"""
# mypy: allow-untyped-defs

import numpy as np


def rings(kw_start, kw, kr_start, kr, kr_place, s_start, s_member, reads):
    """Return the edges of the sparse graph, and one representative edge per cell, read and session.

    Input: writers ``kw`` and readers ``kr`` of each cell as flat arrays with starts; ``kr_place[j]``: the index of the
    read behind ``kr[j]``; ``s_member``: the instances of each session; ``reads``: the number of reads. Returns edges
    (a[i], b[i]); ``cell_edge`` (-1 unless the cell has several writers); ``read_edge`` (-1 unless another instance is
    the cell's single writer); ``session_edge`` (-1 for sessions of one instance).
    """
    cells = len(kw_start) - 1
    bound = len(kw) + len(kr) + len(s_member)
    a = np.empty(bound, np.int32)
    b = np.empty(bound, np.int32)
    cell_edge = np.full(cells, -1, np.int32)
    read_edge = np.full(reads, -1, np.int32)
    session_edge = np.full(len(s_start) - 1, -1, np.int32)
    n = 0
    for x in range(cells):
        writers = kw_start[x + 1] - kw_start[x]
        if writers == 1:
            w = kw[kw_start[x]]
            for j in range(kr_start[x], kr_start[x + 1]):
                if kr[j] != w:
                    a[n] = w
                    b[n] = kr[j]
                    read_edge[kr_place[j]] = n
                    n += 1
        elif writers > 1:
            cell_edge[x] = n
            n = merged_ring(a, b, n, kw, kw_start[x], kw_start[x + 1], kr, kr_start[x], kr_start[x + 1])
    for s in range(len(s_start) - 1):
        if s_start[s + 1] - s_start[s] > 1:
            session_edge[s] = n
            n = merged_ring(a, b, n, s_member, s_start[s], s_start[s + 1], s_member, 0, 0)
    return a[:n], b[:n], cell_edge, read_edge, session_edge


def merged_ring(a, b, n, first, i, i_end, second, j, j_end):
    """Append a ring through the members of two ascending lists to a and b, and return the number of edges.

    Each member occurs once in the ring. Two members give one edge.
    """
    start = -1
    last = -1
    count = 0
    while i < i_end or j < j_end:
        if j >= j_end or (i < i_end and first[i] <= second[j]):
            member = first[i]
            i += 1
        else:
            member = second[j]
            j += 1
        if member == last:
            continue
        if last < 0:
            start = member
        else:
            a[n] = last
            b[n] = member
            n += 1
        last = member
        count += 1
    if count > 2:
        a[n] = last
        b[n] = start
        n += 1
    return n


def blocks(nodes, a, b):
    """Return the block of each edge. Two edges share a block exactly if a simple cycle contains both (Tarjan)."""
    start, to, edge = incidence(nodes, a, b)
    block = np.full(len(a), -1, np.int32)
    seen = np.zeros(nodes, np.int32)  # time of first visit, from 1
    low = np.zeros(nodes, np.int32)
    cursor = start[:-1].copy()
    came_by = np.full(nodes, -1, np.int32)
    path = np.empty(nodes, np.int32)
    open_edges = np.empty(len(a), np.int32)
    opened = 0
    clock = 0
    count = 0
    for root in range(nodes):
        if seen[root]:
            continue
        clock += 1
        seen[root] = clock
        low[root] = clock
        path[0] = root
        depth = 1
        while depth:
            v = path[depth - 1]
            if cursor[v] < start[v + 1]:
                e = edge[cursor[v]]
                u = to[cursor[v]]
                cursor[v] += 1
                if e == came_by[v]:
                    continue
                if not seen[u]:
                    open_edges[opened] = e
                    opened += 1
                    clock += 1
                    seen[u] = clock
                    low[u] = clock
                    came_by[u] = e
                    path[depth] = u
                    depth += 1
                elif seen[u] < seen[v]:
                    open_edges[opened] = e
                    opened += 1
                    low[v] = min(low[v], seen[u])
                continue
            depth -= 1
            if depth:
                parent = path[depth - 1]
                low[parent] = min(low[parent], low[v])
                if low[v] >= seen[parent]:
                    e = -1
                    while e != came_by[v]:
                        opened -= 1
                        e = open_edges[opened]
                        block[e] = count
                    count += 1
    return block


def incidence(nodes, a, b):
    """Return the edges at each node as flat arrays: starts, other ends, edge numbers."""
    start = np.zeros(nodes + 1, np.int32)
    for e in range(len(a)):
        start[a[e] + 1] += 1
        start[b[e] + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    at = start[:-1].copy()
    to = np.empty(2 * len(a), np.int32)
    edge = np.empty(2 * len(a), np.int32)
    for e in range(len(a)):
        to[at[a[e]]] = b[e]
        edge[at[a[e]]] = e
        at[a[e]] += 1
        to[at[b[e]]] = a[e]
        edge[at[b[e]]] = e
        at[b[e]] += 1
    return start, to, edge
