"""All runs of a tiny workload in which each instance has a level of its own, from MixIso's definitions alone.

A run is an arbitration order and, for each transaction, the set of earlier ones that it sees, closed as its level asks.
Reads then show the last visible write. A conditional write happens or not. An allocation is attacked by looking for a
run whose reads no serial order of the same transactions explains; or, where that is asked (``left``), its reads and
what is left in the cells at the end, as a later reader of all would see it. Nothing here is shared with the package but
the data.
"""

from itertools import permutations, product

SEES_SESSION = {"RA", "TCC", "PC", "PSI", "SI", "SER"}
TRANSITIVE = {"TCC", "PSI"}
PREFIX = {"PC", "SI"}
NO_CONFLICT = {"PSI", "SI"}


class Txn:
    """Accesses in order: ("r" | "w" | "u", cell, conditional)."""

    def __init__(self, session, ops):
        self.session, self.ops = session, ops


def outcomes(txn):
    """Each way its conditional accesses may turn out: (external reads, writes)."""
    maybe = [i for i, op in enumerate(txn.ops) if op[2]]
    for chosen in product((True, False), repeat=len(maybe)):
        dropped = {i for i, happens in zip(maybe, chosen, strict=True) if not happens}
        reads, writes = [], set()
        for i, (kind, cell, _) in enumerate(txn.ops):
            if i in dropped:
                continue
            if kind != "w" and cell not in writes and cell not in reads:
                reads.append(cell)
            if kind != "r":
                writes.add(cell)
        yield tuple(reads), frozenset(writes)


def serial_reads(sets, so, left=False):
    """What the reads can show when the transactions run one after the other, and what they leave."""
    found = set()
    for order in permutations(range(len(sets))):
        place = {t: i for i, t in enumerate(order)}
        if any(place[a] > place[b] for a, b in so):
            continue
        last, shown = {}, [()] * len(sets)
        for t in order:
            reads, writes = sets[t]
            shown[t] = tuple(last.get(x, -1) for x in reads)
            last.update(dict.fromkeys(writes, t))
        found.add((tuple(shown), tuple(sorted(last.items()))) if left else tuple(shown))
    return found


def visible_sets(t, level, order, sees, sets, so):
    """All sets of earlier transactions that t may see."""
    must = {s for s in order if (s, t) in so}
    if level == "SER":
        must = set(order)
    if level in NO_CONFLICT:
        must |= {s for s in order if sets[s][1] & sets[t][1]}
    free = [s for s in order if s not in must]
    for chosen in product((False, True), repeat=len(free)):
        seen = must | {s for s, yes in zip(free, chosen, strict=True) if yes}
        if level in TRANSITIVE and any(not sees[s] <= seen for s in seen):
            continue
        if level in PREFIX and seen and len(seen) != max(map(order.index, seen)) + 1:
            continue
        yield seen


def bad_run(txns, levels, left=False):
    """A run that is not serializable: (arbitration, what each sees, sets, what its reads show), or None."""
    so = {(a, b) for b in range(len(txns)) for a in range(b) if txns[a].session == txns[b].session}
    for sets in product(*(list(outcomes(txn)) for txn in txns)):
        run = _search([], {}, {}, sets, levels, so, serial_reads(sets, so, left), left)
        if run:
            return run
    return None


def _search(order, sees, shown, sets, levels, so, serial, left):
    if len(order) == len(sets):
        reads = tuple(shown[t] for t in range(len(sets)))
        last = {x: t for t in order for x in sets[t][1]}
        told = (reads, tuple(sorted(last.items()))) if left else reads
        return None if told in serial else (list(order), dict(sees), sets, reads)
    for t in range(len(sets)):
        if t in sees or any(b == t and a not in sees for a, b in so):
            continue
        for seen in visible_sets(t, levels[t], order, sees, sets, so):
            last = [s for s in order if s in seen]
            shows = tuple(next((s for s in reversed(last) if x in sets[s][1]), -1) for x in sets[t][0])
            run = _search([*order, t], {**sees, t: seen}, {**shown, t: shows}, sets, levels, so, serial, left)
            if run:
                return run
    return None
