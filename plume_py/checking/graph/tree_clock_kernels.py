"""Kernels of tree clocks, kept for every transaction, so that a join costs only what changes.

Mathur et al. 2022; Plume, section 4.3. Each transaction t logs what its session learnt with it, as nodes (p, size) in
preorder: p and everything before p is before t, and the next ``size`` nodes were learnt through p. Old transactions are
read long after their sessions advanced, so logs are never changed: the clock of t is the sum of its session's logs up
to t. A session that knows p's session up to q joins p's clock from the logs of q + 1 .. p alone. It skips a known node
with all nodes learnt through it.

The table of what sessions know of each other is read much more often than written. Up to some thousand sessions it is
an array with one value per pair; beyond that a hash table of rows (pair, value).
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import shared_kernels
from plume_py.checking.graph.records import Columns, ExternalReads, Logs

# Maximum number of entries of an array table (64 MB). A hash table is several times slower if sessions know much.
WHOLE_TABLE = 1 << 23


def new_table(sessions, learners):
    """Return an empty table. ``learners`` counts the sessions, and causal cycles, which also learn."""
    pairs = int(sessions) * int(learners)  # 32 bits may not be enough for them
    if pairs <= WHOLE_TABLE:
        return np.full((pairs, 1), -1, np.int64)
    return np.full((1024, 2), -1, np.int64)


def is_whole(table):
    return table.shape[1] == 1


def slot_of(table, key):
    """Return the row of ``key`` in a hash table, or the free row where it belongs; free rows have key -1."""
    mask = table.shape[0] - 1
    at = (((key ^ key >> 29) & 0x7FFFFFFF) * 0x9E3779B1 >> 15) & mask  # in steps that never overflow
    while table[at, 0] >= 0 and table[at, 0] != key:
        at = (at + 1) & mask
    return at


def pair(own, s, sessions):
    """Return the key of what session ``own`` knows about session s."""
    return np.int64(own) * sessions + s


def known(table, key):
    """Return the value of ``key``, or -1."""
    if is_whole(table):
        return table[key, 0]
    at = slot_of(table, key)
    return table[at, 1] if table[at, 0] >= 0 else -1


def table_with_room(table, sizes, more):
    """Return the table with room for ``more`` entries, in a new array if necessary.

    ``sizes[0]`` counts hash entries.
    """
    if is_whole(table) or 2 * (sizes[0] + more) <= table.shape[0]:
        return table
    rows = table.shape[0]
    while rows < 2 * (sizes[0] + more):
        rows *= 2
    larger = np.full((rows, 2), -1, np.int64)
    for i in range(table.shape[0]):
        if table[i, 0] >= 0:
            at = slot_of(larger, table[i, 0])
            larger[at, 0] = table[i, 0]
            larger[at, 1] = table[i, 1]
    return larger


def put(table, sizes, key, value):
    if is_whole(table):
        table[key, 0] = value
        return
    at = slot_of(table, key)
    if table[at, 0] < 0:
        table[at, 0] = key
        sizes[0] += 1
    table[at, 1] = value


def nodes_with_room(nodes, sizes, more):
    """Return the nodes with room for ``more``, in a new array if necessary. ``sizes[1]`` counts them."""
    room = nodes.shape[0]
    if sizes[1] + more <= room:
        return nodes
    while room < sizes[1] + more:
        room *= 2
    larger = np.empty((room, 2), np.int32)
    larger[: sizes[1]] = nodes[: sizes[1]]
    return larger


def append(nodes, sizes, p):
    count = sizes[1]
    nodes[count, 0] = p
    nodes[count, 1] = 0
    sizes[1] = count + 1


def copy_nodes(table, nodes, logs: Logs, begin, end, own):
    """Let session ``own`` learn the nodes begin .. end - 1 that it does not know yet; there must be room."""
    txn_session, sizes, stack = logs.txn_session, logs.sizes, logs.stack
    sessions = len(logs.session_start) - 1
    depth, steps = 0, 0
    i = begin
    while i < end or depth > 0:
        if depth > 0 and (i >= end or i >= stack[depth - 1, 1]):
            depth -= 1
            nodes[stack[depth, 0], 1] = sizes[1] - stack[depth, 0] - 1
            continue
        steps += 1
        p, size = nodes[i, 0], nodes[i, 1]
        key = pair(own, txn_session[p], sessions)
        if known(table, key) >= p:
            i += 1 + size
            continue
        put(table, sizes, key, p)
        stack[depth, 0] = sizes[1]
        stack[depth, 1] = i + 1 + size
        depth += 1
        append(nodes, sizes, p)
        i += 1
    sizes[2] += steps


def learn(table, nodes, logs: Logs, p, own):
    """Let session ``own`` learn p and everything before it; return table and nodes."""
    sizes = logs.sizes
    s = logs.txn_session[p]
    sessions = len(logs.session_start) - 1
    key = pair(own, s, sessions)
    q = known(table, key)
    if q >= p:
        return table, nodes
    first = q + 1 if q >= 0 else logs.session_start[s]
    more = 1
    for t in range(first, p + 1):
        more += logs.end[t] - logs.start[t]
    # Make room for everything first: arrays that the loops below could replace are slow.
    table, nodes = table_with_room(table, sizes, min(more, sessions)), nodes_with_room(nodes, sizes, more)
    put(table, sizes, key, p)
    root = sizes[1]
    append(nodes, sizes, p)
    # Oldest first: a log holds only what was new then, so skipping a node requires the logs before it.
    for t in range(first, p + 1):
        if logs.start[t] < logs.end[t]:
            copy_nodes(table, nodes, logs, logs.start[t], logs.end[t], own)
    sizes[2] += p + 1 - first
    nodes[root, 1] = sizes[1] - root - 1
    return table, nodes


def know_own_past(table, sizes, t, txn_session, sessions):
    """Register the session predecessor of t, which needs no node; return the table."""
    p = shared_kernels.previous(txn_session, t)
    if p >= 0:
        key = pair(txn_session[t], txn_session[t], sessions)
        if known(table, key) < p:
            table = table_with_room(table, sizes, 1)
            put(table, sizes, key, p)
    return table


def tree_clocks(order, component, columns: Columns, reads: ExternalReads, limit, log_start, log_end):
    """Fill ``log_start``, ``log_end`` and return the nodes; return None if that takes about ``limit`` steps or more.

    Steps are rationed per transaction, so that histories whose sessions know too much of each other fail early.
    """
    txn_session, session_start = columns.txn_session, columns.session_start
    sessions = len(session_start) - 1
    table = new_table(sessions, sessions + (component.max() + 1 if len(component) else 0))
    nodes = np.empty((1024, 2), np.int32)
    sizes = np.zeros(3, np.int64)  # entries of the table, nodes, steps
    stack = np.empty((2 * sessions + 2, 2), np.int64)  # nested nodes: twice the same session only on a cycle
    logs = Logs(txn_session, session_start, log_start, log_end, sizes, stack)
    i = 0
    cycles = 0
    while i < len(order) and sizes[2] <= limit // 8 + limit // len(order) * i:
        t = order[i]
        end = i + 1
        while end < len(order) and component[order[end]] == component[t] >= 0:
            end += 1
        if end == i + 1:
            log_start[t] = sizes[1]
            own = txn_session[t]
            table = know_own_past(table, sizes, t, txn_session, sessions)
            for r in range(reads.start[t], reads.start[t + 1]):
                p = reads.source[r]
                if p >= 0:
                    table, nodes = learn(table, nodes, logs, p, own)
            log_end[t] = sizes[1]
        else:
            table, nodes = learn_cycle(order[i:end], sessions + cycles, table, nodes, logs, component, reads)
            cycles += 1
        i = end
    return nodes[: sizes[1]] if i == len(order) else None


def learn_cycle(members, extra, table, nodes, logs: Logs, component, reads: ExternalReads):
    """Let the members of a causal cycle learn each other, themselves included; return table and nodes.

    The shared knowledge is gathered once, as if by an ``extra`` session, and then copied to the session of each member.
    """
    txn_session, session_start, sizes = logs.txn_session, logs.session_start, logs.sizes
    cycle = component[members[0]]
    begin = sizes[1]
    for t in members:
        p = shared_kernels.previous(txn_session, t)
        if p >= 0 and component[p] != cycle:
            table, nodes = learn(table, nodes, logs, p, extra)
        for r in range(reads.start[t], reads.start[t + 1]):
            p = reads.source[r]
            if p >= 0 and component[p] != cycle:
                table, nodes = learn(table, nodes, logs, p, extra)
    for t in members:
        if t + 1 == session_start[txn_session[t] + 1] or component[t + 1] != cycle:
            nodes = nodes_with_room(nodes, sizes, 1)
            append(nodes, sizes, t)  # the last member per session implies the earlier ones
    end = sizes[1]
    for t in members:
        logs.start[t] = sizes[1]
        p = shared_kernels.previous(txn_session, t)
        if p < 0 or component[p] != cycle:
            table = know_own_past(table, sizes, t, txn_session, len(session_start) - 1)
            table = table_with_room(table, sizes, min(end - begin, len(session_start) - 1))
            nodes = nodes_with_room(nodes, sizes, end - begin)
            copy_nodes(table, nodes, logs, begin, end, txn_session[t])
        logs.end[t] = sizes[1]
    return table, nodes


def in_order(nodes, log_start, log_end, start, log):
    """Copy the nodes transaction by transaction: t has the nodes start[t] .. start[t + 1] - 1."""
    count = 0
    for t in range(len(log_start)):
        for i in range(log_start[t], log_end[t]):
            log[count] = nodes[i, 0]
            count += 1
        start[t + 1] = count


def sort_learnt(start, log, txn_session, learner_start, learnt, learner):
    """Sort, per session, what it learnt, with the transaction of the session that learnt it.

    Two stable passes: by the session learnt about, then by the session that learns, in the order of learning.
    """
    sessions = len(learner_start) - 1
    about = np.zeros(sessions + 1, np.int64)
    for t in range(len(txn_session)):
        learner_start[txn_session[t] + 1] += start[t + 1] - start[t]
        for i in range(start[t], start[t + 1]):
            about[txn_session[log[i]] + 1] += 1
    for s in range(sessions):
        about[s + 1] += about[s]
        learner_start[s + 1] += learner_start[s]
    by_session = np.empty((len(log), 2), np.int32)
    for t in range(len(txn_session)):
        for i in range(start[t], start[t + 1]):
            s = txn_session[log[i]]
            by_session[about[s], 0] = log[i]
            by_session[about[s], 1] = t
            about[s] += 1
    at = learner_start.copy()
    for i in range(len(log)):
        s = txn_session[by_session[i, 1]]
        learnt[at[s]] = by_session[i, 0]
        learner[at[s]] = by_session[i, 1]
        at[s] += 1
