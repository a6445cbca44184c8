"""A brute-force oracle for histories in which every transaction has a level of its own.

It is written from the definitions alone: there must be one arbitration order AR, a total order that extends session
order, reads-from and the version orders that lists show, and one visibility VIS within AR, such that every transaction
keeps the axioms of its own level. Axioms only ever ask for more visibility, and what a reader may see only ever shrinks
with it, so for each AR the least VIS is the one to judge. It is found from first to last: what T sees depends on what
comes before T in AR. A history is plain data, as for ``oracle``.
"""

from oracle import BASE, INITIAL

LEVELS = ("RC", "RA", "TCC", "PC", "PSI", "SI", "SER")

TRANSITIVE = {"TCC", "PSI"}  # T' vis S vis T  =>  T' vis T
PREFIX = {"PC", "SI"}  # T' ar S vis T  =>  T' vis T
NO_CONFLICT = {"PSI", "SI"}  # T' ar T, both write some key  =>  T' vis T
TOTAL = {"SER"}  # T' ar T  =>  T' vis T


def visible(facts, level, order, sees, t):
    """The least set that T must see when it comes right after ``order``; ``sees`` has that of all before it."""
    seen = {s for s in order if (s, t) in facts.so or (s, t) in facts.wr}
    if level[t] in NO_CONFLICT:
        seen |= {s for s in order if facts.writes[s].keys() & facts.writes[t].keys()}
    if level[t] in TRANSITIVE:
        seen |= {a for s in seen for a in sees[s]}  # once is enough if those sets are closed; else until nothing is new
        while any(sees[s] - seen for s in seen):
            seen |= {a for s in seen for a in sees[s]}
    if level[t] in PREFIX and seen:
        seen |= set(order[: max(map(order.index, seen))])
    return set(order) if level[t] in TOTAL else seen


def reads_well(facts, level, order, seen, t):
    """Does each read of t show the last visible version?"""
    place = {s: at for at, s in enumerate(order)} | {INITIAL: -1}
    for position, (x, t1) in enumerate(facts.reads[t]):
        before = {s for _, s in facts.reads[t][:position]} if level[t] == "RC" else seen
        for t2 in facts.others(x, t1, t):
            if t2 in before and place[t2] > place[t1]:
                return False
    return True


def arbitration(facts, level):
    """An arbitration order that shows the levels (a mapping from transactions), or None."""
    if facts.found & BASE:
        return None
    before = {t: set() for t in facts.live}
    for a, b in facts.co | facts.ww:
        before[b].add(a)
    order, sees = [], {}

    def extend():
        if len(order) == len(facts.live):
            return True
        for t in facts.live:
            if t not in sees and before[t] <= sees.keys():
                seen = visible(facts, level, order, sees, t)
                if reads_well(facts, level, order, seen, t):
                    sees[t] = seen
                    order.append(t)
                    if extend():
                        return True
                    order.pop()
                    del sees[t]
        return False

    return order if extend() else None


def holds(facts, level):
    """Can the history come about when t runs at ``level[t]``?"""
    return arbitration(facts, level) is not None


def random_levels(rng, facts):
    """A level per transaction, drawn from all or from a few."""
    some = rng.sample(LEVELS, rng.randint(1, len(LEVELS)))
    return {t: rng.choice(some) for t in facts.live}
