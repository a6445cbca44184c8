"""Levels that the checker does not have, by trying every witness: plain sets, and nothing of the code under test.

A history is a list of (session, reads, writes): reads as (key, writer or None for the initial state), in session order.
"""

from itertools import combinations, permutations


class Tiny:
    def __init__(self, txns):
        self.txns = txns
        self.all = range(len(txns))
        self.so = {(a, b) for a, b in combinations(self.all, 2) if txns[a][0] == txns[b][0]}
        self.wr = {(u, t) for t in self.all for _, u in txns[t][1] if u is not None}
        self.base = self.so | self.wr

    def writes(self, t):
        return self.txns[t][2]

    def orders(self):
        """Every total order that contains session order and reads-from, as a set of pairs."""
        for order in permutations(self.all):
            pairs = {(order[i], order[j]) for i in self.all for j in range(i + 1, len(order))}
            if self.base <= pairs:
                yield pairs

    def witnesses(self):
        """Every such order with every visibility between it and what must be seen."""
        for ar in self.orders():
            free = sorted(ar - self.base)
            for size in range(len(free) + 1):
                for chosen in combinations(free, size):
                    vis = self.base | set(chosen)
                    if self.reads_are_last(ar, vis):
                        yield ar, vis

    def reads_are_last(self, order, seen):
        """Whoever is seen and wrote what was read comes before whom it was read from."""
        for t3 in self.all:
            for x, t1 in self.txns[t3][1]:
                for t2 in self.all:
                    late = t2 not in (t1, t3) and x in self.writes(t2) and (t2, t3) in seen
                    if late and (t1 is None or (t2, t1) not in order):
                        return False
        return True

    def conflict(self, a, b):
        return bool(set(self.writes(a)) & set(self.writes(b)))


def ua(h):
    return any(all(pair in vis for pair in ar if h.conflict(*pair)) for ar, vis in h.witnesses())


def nlu(h):
    def kept(ar, vis):
        for t in h.all:
            for x in h.writes(t):
                earlier = [a for a in h.all if (a, t) in ar and x in h.writes(a)]
                last = [a for a in earlier if all(b == a or (b, a) in ar for b in earlier)]
                if any((a, t) not in vis for a in last):
                    return False
        return True

    return any(kept(ar, vis) for ar, vis in h.witnesses())


def monotonic_reads(h):
    return any(all((a, c) in vis for a, b in vis for b2, c in h.so if b == b2) for _, vis in h.witnesses())


def update_ser(h):
    return any(h.reads_are_last(co, {(a, b) for a, b in co if h.writes(b)}) for co in h.orders())


def read_your_writes(h):
    return any(h.reads_are_last(co, h.so) for co in h.orders())


LEVELS = {
    "UA": ua,
    "NLU": nlu,
    "UpdateSer": update_ser,
    "MonotonicReads": monotonic_reads,
    "ReadYourWrites": read_your_writes,
}
