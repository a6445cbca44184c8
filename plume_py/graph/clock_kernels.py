"""Clock kernels. clock[t, s - low] is the last transaction of session s that is causally before t; -1 if none is.

Rows cover a block of sessions, low .. high - 1, so that memory stays bounded. Transactions come predecessors first;
those of one component (of a causal cycle) come together and share one row.
"""

# mypy: allow-untyped-defs


def join(clock, t, p):
    """clock[t] := the larger of clock[t] and clock[p], entry by entry."""
    for j in range(clock.shape[1]):
        ours, theirs = clock[t, j], clock[p, j]
        clock[t, j] = theirs if theirs > ours else ours


def learn(clock, low, t, p, session):
    """Everything before p, and p itself, is before t; nothing to do where t knows p already."""
    if low <= session < low + clock.shape[1]:
        if clock[t, session - low] >= p:
            return
        join(clock, t, p)
        if clock[t, session - low] < p:
            clock[t, session - low] = p
    else:
        join(clock, t, p)


def vector_clocks(order, component, txn_session, read_start, read_source, low, clock):
    """Fill the rows of one block."""
    i = 0
    while i < len(order):
        first = order[i]
        end = i + 1
        while end < len(order) and component[order[end]] == component[first] >= 0:
            end += 1
        if end == i + 1:
            start_row(clock, low, first, txn_session)
            for r in range(read_start[first], read_start[first + 1]):
                p = read_source[r]
                if p >= 0:
                    learn(clock, low, first, p, txn_session[p])
        else:
            cycle_row(order[i:end], component, txn_session, read_start, read_source, low, clock)
        i = end


def start_row(clock, low, t, txn_session):
    """A row begins as its session left off."""
    if t > 0 and txn_session[t - 1] == txn_session[t]:
        for j in range(clock.shape[1]):
            clock[t, j] = clock[t - 1, j]
        s = txn_session[t] - low
        if 0 <= s < clock.shape[1] and clock[t, s] < t - 1:
            clock[t, s] = t - 1
    else:
        for j in range(clock.shape[1]):
            clock[t, j] = -1


def cycle_row(members, component, txn_session, read_start, read_source, low, clock):
    """On a causal cycle each is before all, itself included: one row, computed in the first member's, for all."""
    first = members[0]
    for j in range(clock.shape[1]):
        clock[first, j] = -1
    for t in members:
        if t > 0 and txn_session[t - 1] == txn_session[t] and component[t - 1] != component[first]:
            learn(clock, low, first, t - 1, txn_session[t])
        for r in range(read_start[t], read_start[t + 1]):
            p = read_source[r]
            if p >= 0 and component[p] != component[first]:
                learn(clock, low, first, p, txn_session[p])
    for t in members:
        s = txn_session[t] - low
        if 0 <= s < clock.shape[1] and clock[first, s] < t:
            clock[first, s] = t
    for t in members[1:]:
        for j in range(clock.shape[1]):
            clock[t, j] = clock[first, j]
