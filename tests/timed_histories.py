"""All tiny histories with all that their times can say, and what the oracle makes of them in each order.

Nothing of the code under test is used: histories are plain data, reads and writes of numbered transactions.
"""

from functools import cache
from itertools import chain, combinations, pairwise, permutations, product

import oracle

ORDERS = ("none", "session", "realtime", "realtime-per-key")
LEVELS = oracle.LEVELS[1:]
INITIAL = oracle.INITIAL


def contents(txns, keys, rereads=False):
    """Who reads what from whom and writes what: for each a tuple of (key, writer), in order, and of keys.

    Everybody reads from those with smaller numbers; each history without a cycle of reads can be numbered so.
    """
    for writes in product(list(_subsets(range(keys))), repeat=txns):
        for reads in product(*(_reads(t, writes, keys, rereads) for t in range(txns))):
            if all(r or w for r, w in zip(reads, writes, strict=True)):
                yield reads, writes


def _reads(t, writes, keys, rereads):
    versions = [(x, u) for x in range(keys) for u in (INITIAL, *range(t)) if u == INITIAL or x in writes[u]]
    chosen = (s for s in _subsets(versions) if rereads or len({x for x, _ in s}) == len(s))
    return [order for some in chosen for order in permutations(some)]


def _subsets(things):
    return list(chain.from_iterable(combinations(things, size) for size in range(len(things) + 1)))


def sessions(txns):
    """All ways to run them in sessions: sequences of transactions, each session once."""
    if txns == 0:
        return [()]
    found = set()
    for some in sessions(txns - 1):
        found.add(((txns - 1,), *some))
        for s, session in enumerate(some):
            for at in range(len(session) + 1):
                found.add((*some[:s], (*session[:at], txns - 1, *session[at:]), *some[s + 1 :]))
    return sorted({tuple(sorted(way)) for way in found})


@cache
def interval_orders(txns):
    """Who had ended before whom began, in all ways that intervals can have it, each with such intervals."""
    some = [(begin, end) for begin in range(txns) for end in range(begin, txns)]
    return {_ended(spans): spans for spans in product(some, repeat=txns)}


def _ended(spans):
    return frozenset((a, b) for a, b in permutations(range(len(spans)), 2) if spans[a][1] < spans[b][0])


def timed_runs(txns):
    """Sessions with times that agree with them: (sessions, pairs in session order, pairs in real time, intervals)."""
    for way in sessions(txns):
        so = frozenset(pair for session in way for pair in combinations(session, 2))
        for early, spans in interval_orders(txns).items():
            if all(pair in early for session in way for pair in pairwise(session)):
                yield way, so, early, spans


def judged(txns, keys, rereads=False):
    """The distinct verdicts that there are: sets of (level, order) that hold in some history; and how many it has.

    A level asks for nothing but the reads, the writes and the order that counts, so the oracle is asked once for each.
    """
    runs, found, histories = list(timed_runs(txns)), set(), 0
    for reads, writes in contents(txns, keys, rereads):
        known = {}
        touched = [{x for x, _ in r} | set(w) for r, w in zip(reads, writes, strict=True)]
        for way, so, early, spans in runs:
            near = frozenset((a, b) for a, b in early if touched[a] & touched[b])
            holds = []
            for order, counts in zip(ORDERS, (frozenset(), so, so | early, so | near), strict=True):
                if counts not in known:
                    known[counts] = _verdicts(reads, writes, way, spans, order)
                holds += [(level, order) for level in known[counts]]
            found.add(frozenset(holds))
            histories += 1
    return found, histories


def _verdicts(reads, writes, way, spans, order):
    run = [t for session in way for t in session]
    plain = [[("committed", _ops(t, reads[t], writes[t])) for t in session] for session in way]
    facts = oracle.Facts(plain, 0, True, order, [spans[t] for t in run])
    return [level for level in LEVELS if oracle.satisfies(facts, level)]


def _ops(t, reads, writes):
    return [*(("r", x, u + 1) for x, u in reads), *(("w", x, t + 1) for x in writes)]
