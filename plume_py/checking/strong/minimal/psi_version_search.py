"""The search for PSI: not over commit orders, most of which make no difference there, but over version orders.

PSI holds if the writers of each key can be ordered such that session order, reads-from and version order (together:
visibility) have no cycle and no reader sees a version that is newer than the one it read. So whoever sees another
version puts it before the one it read; where nothing of that kind decides, both orders are tried.
"""

from itertools import pairwise

from plume_py.base.bits import bits, members
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.history.model import INITIAL

# Dead ends after which the search begins anew, with the keys that made trouble first; doubled each time.
PATIENCE = 8


class VersionSearch:
    """Depth first over pairs of writers; ``states`` counts the pairs that had to be tried."""

    def __init__(self, facts: Facts, before: list[int]) -> None:
        """``before``: what comes before each event anyway."""
        self.facts = facts
        # Per transaction, as bits: those that it sees. Everything that comes before it at PSI it sees.
        self.before = [bits(event >> 1 for event in members(before[2 * t + 1])) for t in range(facts.count)]
        self.touched: list[int] = []  # whose reads are to be looked at again
        self.writers = [bits(writers) for writers in facts.writers]
        self.trouble = [0] * facts.keys  # dead ends per key
        self.states = 0

    def run(self, budget: int) -> tuple[bool | None, list[int]]:
        """Is there such an order? None: the budget is spent. With a commit order if there is."""
        known, patience = self.before, PATIENCE
        while True:
            self.before = list(known)
            ok = self._descend(budget, patience)
            if ok is not None or self.states > budget:
                break
            patience *= 2
        return ok, sorted(range(self.facts.count), key=self._likely) if ok else []

    def _descend(self, budget: int, patience: int) -> bool | None:
        """Order pair after pair; None if there are too many dead ends, or the budget is spent."""
        other_way: list[tuple[list[int], int, int, int]] = []  # what was known, and the pair the other way round
        keys = sorted(range(self.facts.keys), key=lambda x: -self.trouble[x])
        while True:
            pair = self._open_pair(keys)
            if pair is None:
                return True
            self.states += 1
            if self.states > budget:
                return None
            a, b, x = pair
            other_way.append((list(self.before), b, a, x))
            alive = self._order(a, b)
            while not alive and other_way:
                self.before, a, b, x = other_way.pop()
                self.trouble[x] += 1
                patience -= 1
                alive = self._order(a, b)
            if not alive:
                return False
            if patience < 0:
                return None

    def _likely(self, t: int) -> tuple[int, int]:
        """Who sees less comes first."""
        return self.before[t].bit_count(), t

    def _order(self, a: int, b: int) -> bool:
        self.touched.clear()
        return self._add(a, b) and self._propagate()

    def _add(self, a: int, b: int) -> bool:
        """b sees a, and all that a sees; False if that is a cycle."""
        if a == b or self.before[a] >> b & 1:
            return False
        if not self.before[b] >> a & 1:
            earlier = self.before[a] | 1 << a
            for t, known in enumerate(self.before):
                if t == b or known >> b & 1:
                    self.before[t] |= earlier
                    self.touched.append(t)
        return True

    def _propagate(self) -> bool:
        while self.touched:
            t = self.touched.pop()
            for x, t1 in self.facts.reads[t]:
                newer = self.before[t] & self.writers[x] & ~(1 << t)
                if t1 == INITIAL and newer:
                    return False
                if t1 != INITIAL and not all(self._add(t2, t1) for t2 in members(newer & ~(1 << t1 | self.before[t1]))):
                    return False
        return True

    def _open_pair(self, keys: list[int]) -> tuple[int, int, int] | None:
        """Two writers of a key, neighbours as it seems, that could still go either way."""
        for x in keys:
            for a, b in pairwise(sorted(self.facts.writers[x], key=self._likely)):
                if not self.before[b] >> a & 1:
                    return a, b, x
        return None
