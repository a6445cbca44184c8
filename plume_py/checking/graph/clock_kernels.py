"""Kernels of causal clocks: clock[t, s - low] counts the transactions of session s that are causally before t.

These are always the first ones of the session. Rows cover a block of sessions, low .. high - 1, so that memory stays
bounded. Counts are as narrow as the longest session allows, because memory bandwidth dominates. Transactions come in
topological order; the members of a causal cycle are consecutive and share one row.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import order_kernels, shared_kernels
from plume_py.checking.graph.records import Clocks, Predecessors


def horizon(clocks: Clocks, t, s):
    """Return the first transaction of session s that is not causally before t; ``clocks`` must cover s."""
    if clocks.clock.shape[1] > 0:
        return clocks.session_start[s] + clocks.clock[t, s - clocks.low]
    return learnt_horizon(clocks, t, s)


def learnt_horizon(clocks: Clocks, t, s):
    """Return the same from tree clocks; see ``Clocks`` for the columns.

    Sorted by ``learnt``, what one session learns about another is in the order in which it learns it.
    """
    own = clocks.txn_session[t]
    begin, end = clocks.session_start[s], clocks.session_start[s + 1]
    low = first = clocks.learner_start[own]
    high = clocks.learner_start[own + 1]
    while low < high:
        middle = (low + high) // 2
        p = clocks.learnt[middle]
        if p < begin or (p < end and clocks.learner[middle] <= t):
            low = middle + 1
        else:
            high = middle
    known = t if own == s else begin
    if low > first and clocks.learnt[low - 1] >= known:
        return clocks.learnt[low - 1] + 1
    return known


def empty_row(clocks: Clocks):
    return np.zeros(clocks.high - clocks.low, clocks.clock.dtype)


def row_of(clocks: Clocks, t, first, row):
    """Return the counts of t by session.

    Call it for each t in turn: ``row`` is the last result, unless t is the ``first``.
    """
    if clocks.clock.shape[1] > 0:
        return clocks.clock[t]
    own, previous = clocks.txn_session[t], shared_kernels.previous(clocks.txn_session, t)
    begin = t
    if first or previous < 0:
        for j in range(len(row)):
            row[j] = 0
        begin = clocks.session_start[own]
    for i in range(clocks.log_start[begin], clocks.log_start[t + 1]):
        p = clocks.log[i]
        count_up_to(row, clocks.low, p, clocks.txn_session[p], clocks.session_start)
    if previous >= 0:
        count_up_to(row, clocks.low, previous, own, clocks.session_start)
    return row


def join(clock, t, p):
    """clock[t] := the entrywise maximum of clock[t] and clock[p]."""
    ours, theirs = clock[t], clock[p]
    for j in range(len(ours)):
        ours[j] = max(ours[j], theirs[j])


def learn(clock, low, t, p, session, session_start):
    """Add p and everything before p to the row of t, unless t knows p already."""
    if low <= session < low + clock.shape[1]:
        if session_start[session] + clock[t, session - low] > p:
            return
        join(clock, t, p)
        count_up_to(clock[t], low, p, session, session_start)
    else:
        join(clock, t, p)


def count_up_to(row, low, p, session, session_start):
    """Count the transactions of p's session up to p."""
    if low <= session < low + len(row):
        row[session - low] = max(row[session - low], p - session_start[session] + 1)


def vector_clocks(order, component, session_start, graph: Predecessors, low, clock):
    """Fill the rows of one block."""
    txn_session, read_start, read_source, extra_start, extra_source = graph
    i = 0
    while i < len(order):
        first = order[i]
        end = i + 1
        while end < len(order) and component[order[end]] == component[first] >= 0:
            end += 1
        if end == i + 1:
            start_row(clock, low, first, txn_session, session_start)
            for e in range(extra_start[first], extra_start[first + 1]):  # real time first: then most reads are known
                p = extra_source[e]
                learn(clock, low, first, p, txn_session[p], session_start)
            for r in range(read_start[first], read_start[first + 1]):
                p = read_source[r]
                if p >= 0:
                    learn(clock, low, first, p, txn_session[p], session_start)
        else:
            cycle_row(order[i:end], component, session_start, graph, low, clock)
        i = end


def start_row(clock, low, t, txn_session, session_start):
    """Initialize the row of t with the row of its predecessor in the session."""
    p = shared_kernels.previous(txn_session, t)
    if p >= 0:
        copy_row(clock, p, t)
        count_up_to(clock[t], low, p, txn_session[p], session_start)
    else:
        clear_row(clock, t)


def copy_row(clock, source, target):
    """Copy a row entry by entry: assigning slices costs the compiler seconds."""
    for j in range(clock.shape[1]):
        clock[target, j] = clock[source, j]


def clear_row(clock, t):
    for j in range(clock.shape[1]):
        clock[t, j] = 0


def cycle_row(members, component, session_start, graph: Predecessors, low, clock):
    """Fill the rows of a causal cycle, in which each transaction is before all, itself included.

    One row, computed in the first member's row, serves all members.
    """
    txn_session, first = graph.txn_session, members[0]
    clear_row(clock, first)
    for t in members:
        i = 0
        p = order_kernels.predecessor(graph, t, i)
        while p != -2:
            if p >= 0 and component[p] != component[first]:
                learn(clock, low, first, p, txn_session[p], session_start)
            i += 1
            p = order_kernels.predecessor(graph, t, i)
    for t in members:
        count_up_to(clock[first], low, t, txn_session[t], session_start)
    for t in members[1:]:
        copy_row(clock, first, t)


def searched_clocks(session_start, graph: Predecessors, low, clock):
    """Fill the same rows, each by its own backward search."""
    transactions = clock.shape[0]
    found_by = np.full(transactions, -1, np.int32)  # the last t whose search visited it
    stack = np.empty(transactions + 1, np.int32)
    for t in range(transactions):
        clear_row(clock, t)
        stack[0] = t
        depth = 1
        while depth > 0:
            depth -= 1
            u = stack[depth]
            i = 0
            p = order_kernels.predecessor(graph, u, i)
            while p != -2:
                if p >= 0 and found_by[p] != t:
                    found_by[p] = t
                    count_up_to(clock[t], low, p, graph.txn_session[p], session_start)
                    stack[depth] = p
                    depth += 1
                i += 1
                p = order_kernels.predecessor(graph, u, i)


def not_before(clocks: Clocks, early, late, verdict):
    """verdict[i] := early[i] is not causally before late[i], if ``clocks`` cover the session of early[i]."""
    for i in range(len(early)):
        s = clocks.txn_session[early[i]]
        if clocks.low <= s < clocks.high:
            verdict[i] = early[i] >= horizon(clocks, late[i], s)
