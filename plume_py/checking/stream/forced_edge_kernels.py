"""Kernels of what a level forces: "u before v", because of some read or list.

Every such edge goes into the level's commit order or its layer (``order_kernels``, ``reach_kernels``); one that would
close a cycle is an event, and so is a read of the initial state although somebody had to come before.
"""

# mypy: allow-untyped-defs

from plume_py.checking.stream import order_kernels as orders
from plume_py.checking.stream import reachability_kernels as reach
from plume_py.checking.stream.reachability_kernels import CAUSAL, CYCLE
from plume_py.checking.stream.table_kernels import (
    EDGE,
    EDGE_FROM,
    EDGE_LEVEL,
    EDGE_LIST,
    EDGE_READ,
    EDGE_TO,
    EDGES,
    EVENTS,
    IN_ORDER,
    LOST_EVENTS,
    NEXT_IN,
    NEXT_OUT,
    ORDERED,
    OUT,
    OUT_OF_ORDER,
    READER,
    SOURCE,
    STEPS,
    TXNS,
)
from plume_py.history.model import INITIAL

# Kinds of events: a pattern of a single read (its letter's place in "abcdefj"), and those of the graph.
B, C, D, E, F, J = 1, 2, 3, 4, 5, 6
CAUSAL_CYCLE, STALE, FORCED_CYCLE, AMBIGUOUS, MIXED_USE = 7, 8, 9, 10, 11

# How many steps a commit order may take before a layer is better: at first, and for each transaction.
STEPS_AT_FIRST, STEPS_PER_TXN = 1_000_000, 300


def note(m, kind, level, a, b, r, i):
    """Something is wrong: at a level (0: at all from RC on), with transactions a and b, and read r or list i."""
    at = m.n[EVENTS]
    if at == len(m.event):
        m.n[LOST_EVENTS] += 1
    else:
        m.event[at, 0] = kind
        m.event[at, 1] = level
        m.event[at, 2] = a
        m.event[at, 3] = b
        m.event[at, 4] = r
        m.event[at, 5] = i
        m.n[EVENTS] += 1
    if kind == J:
        m.broken[0] = 1
    elif level > 0:
        m.broken[level] = 1
    elif kind != AMBIGUOUS and kind != MIXED_USE:
        for broken in range(1, 4):
            m.broken[broken] = 1


def has_layer(m, layer):
    """Is this layer kept?"""
    return layer == CAUSAL or (m.levels[layer] and not m.n[ORDERED + layer])


def force(m, level, t2, r):
    """The level wants t2 before the source of read r."""
    t1 = m.read[r, SOURCE]
    if t1 == t2:
        return
    if t1 == INITIAL:
        note(m, STALE, level, t2, m.read[r, READER], r, -1)
        return
    order(m, level, t2, t1, r, -1)


def order(m, level, u, v, r, i):
    """The level wants u before v, because of read r or list i; the other one is -1."""
    ordered = m.n[ORDERED + level] != 0
    if reach.before(m, CAUSAL if ordered else level, u, v) or (ordered and is_noted(m, level, u, v)):
        return
    if m.n[IN_ORDER] and (u > v or m.n[EDGES] == len(m.edge)):
        m.n[OUT_OF_ORDER] = 1  # it will be found again
        return
    if ordered and m.n[EDGES] == len(m.edge):
        leave_order(m, level)  # an order needs all edges, a layer does not
    if not settle_edge(m, level, u, v):
        note(m, FORCED_CYCLE, level, u, v, r, i)
    elif m.n[EDGES] < len(m.edge):
        note_edge(m, level, u, v, r, i)


def settle_edge(m, level, u, v):
    """u comes before v at this level: tell its commit order, or its layer. False if that closes a cycle."""
    if m.n[ORDERED + level]:
        if m.n[STEPS + level] < STEPS_AT_FIRST + STEPS_PER_TXN * m.n[TXNS]:
            return orders.put_before(m, level, u, v)
        leave_order(m, level)
    return reach.add_edge(m, level, u, v) != CYCLE


def is_noted(m, level, u, v):
    """Is that edge among the last few into v?"""
    edges = m.edge
    e = m.txn[v, EDGE]
    for _ in range(8):
        if e < 0:
            return False
        if edges[e, EDGE_FROM] == u and edges[e, EDGE_LEVEL] == level:
            return True
        e = edges[e, NEXT_IN]
    return False


def note_edge(m, level, u, v, r, i):
    """Write an edge down."""
    e = m.n[EDGES]
    m.n[EDGES] += 1
    m.edge[e, EDGE_FROM] = u
    m.edge[e, EDGE_TO] = v
    m.edge[e, EDGE_READ] = r
    m.edge[e, EDGE_LIST] = i
    m.edge[e, EDGE_LEVEL] = level
    m.edge[e, NEXT_IN] = m.txn[v, EDGE]
    m.edge[e, NEXT_OUT] = m.txn[u, OUT]
    m.txn[v, EDGE] = e
    m.txn[u, OUT] = e


def leave_order(m, level):
    """From here on the level has its own layer: the causal one, and the edges written down so far."""
    m.n[ORDERED + level] = 0
    reach.copy_layer(m, level)
    for e in range(m.n[EDGES]):
        if m.edge[e, EDGE_LEVEL] == level:
            reach.add_edge(m, level, m.edge[e, EDGE_FROM], m.edge[e, EDGE_TO])
