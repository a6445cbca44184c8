"""The kernel that names every violating triple (t1, t2, t3, x). It runs only if a weak level is violated."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph import clock_kernels, shared_kernels
from plume_py.checking.graph.records import Clocks, Cycles, ExternalReads, KeyGroups, Spans, Triples, Writers


def same_cycle(component, a, b):
    return component[a] >= 0 and component[a] == component[b]


def name_triples(
    reads: ExternalReads, writers: Writers, groups: KeyGroups, clocks: Clocks, spans: Spans, cycles: Cycles,
    levels, depth, budget, triples: Triples,
):  # fmt: skip
    """Find the triples whose t2 is in one block of sessions; return the steps left of ``budget`` (< 0: abandoned).

    Per session, only the last ``depth`` writers t2 of x that t3 knows of are examined. The last one decides whether a
    level is violated, so a small depth skips triples but leaves no level without a pattern.

    Echoes, whose t2 is causally before t1, are left out; the block of t2's session suffices for that. The first
    ``levels`` levels are examined. Names i of ``triples``: 2 * level, + 1 if t1 is not causally before t2. That is
    known only if the block covers all sessions; otherwise the name remains + 0.
    """
    txn_session, key_writers = clocks.txn_session, writers.txn
    whole = clocks.high - clocks.low == len(clocks.session_start) - 1
    read_start, _, read_key, read_source = reads
    key_group, group_start, group_session = groups
    rc, ra, tcc = cycles
    counts, kept, found = triples
    from_stamp = np.full(len(txn_session), -1, np.int32)  # by t2: the last t3 that read from it
    from_first = np.empty(len(txn_session), np.int64)  # and its first read there
    following = np.empty(len(read_key), np.int64)  # by read: the next one of t3 from the same transaction, or -1
    initial = np.full(len(key_group) - 1, -1, np.int64)  # by key: the last read of its initial state in t3
    row = clock_kernels.empty_row(clocks)
    for t3 in range(len(txn_session)):
        row = clock_kernels.row_of(clocks, t3, t3 == 0, row)
        begin, end = read_start[t3], read_start[t3 + 1]
        for r in range(end - 1, begin - 1, -1):
            t2 = read_source[r]
            if t2 < 0:
                if initial[read_key[r]] < begin:
                    initial[read_key[r]] = r
                continue
            following[r] = from_first[t2] if from_stamp[t2] == t3 else -1
            from_stamp[t2] = t3
            from_first[t2] = r
        for r in range(begin, end):
            t1 = read_source[r]
            if t1 >= 0 and rc[t1] < 0 and ra[t1] < 0 and tcc[t1] < 0:
                continue
            x = read_key[r]
            if t1 >= 0:  # only the last read of x from t1: it has the most before it
                later = following[r]
                while later >= 0 and read_key[later] != x:
                    later = following[later]
                    budget -= 1
                if later >= 0:
                    continue
            elif initial[x] != r:
                continue
            for g in range(key_group[x], key_group[x + 1]):
                s = group_session[g]
                if s < clocks.low or s >= clocks.high:
                    continue
                horizon = clocks.session_start[s] + row[s - clocks.low]
                known = shared_kernels.lower_bound(key_writers, group_start[g], group_start[g + 1], horizon)
                for at in range(max(group_start[g], known - depth), known):
                    t2 = key_writers[at]
                    budget -= 1
                    if budget < 0:
                        return budget
                    if t2 == t1 or t2 == t3:
                        continue
                    level = -1
                    reads_t2 = from_stamp[t2] == t3
                    if reads_t2 and from_first[t2] < r and (t1 < 0 or same_cycle(rc, t1, t2)):
                        level = 0
                    elif (
                        levels > 1
                        and (
                            reads_t2
                            or shared_kernels.precedes(txn_session, t2, t3)
                            or shared_kernels.ended_before(spans.begin, spans.end, t2, t3)
                        )
                        and (t1 < 0 or same_cycle(ra, t1, t2))
                    ):
                        level = 1
                    elif levels > 2 and (t1 < 0 or same_cycle(tcc, t1, t2)):
                        level = 2
                    if level < 0 or (t1 >= 0 and t2 < clock_kernels.horizon(clocks, t1, s)):
                        continue  # no cycle, or an echo
                    name = 2 * level
                    if whole and t1 >= clock_kernels.horizon(clocks, t2, txn_session[t1] if t1 >= 0 else 0):
                        name += 1
                    if found[name] < kept.shape[1]:
                        kept[name, found[name], 0] = t1
                        kept[name, found[name], 1] = t2
                        kept[name, found[name], 2] = t3
                        kept[name, found[name], 3] = r
                        found[name] += 1
                    counts[name] += 1
    return budget
