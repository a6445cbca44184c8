"""Derive the orders that hold in every commit order of a small history, which leaves the search few choices.

Ordered are events: a transaction that reads from a snapshot has a snapshot (event 2t) and a commit (2t + 1); for all
others, both are the commit. (The same idea for large histories: ``solver.saturation``.)
"""

from itertools import pairwise

from plume_py.base.bits import bits, members
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.history.model import INITIAL
from plume_py.levels.table import AT_COMMIT, PREFIX, TRANSITIVE, WRITERS
from plume_py.levels.visibility import reads_from_snapshot


def saturate(facts: Facts) -> list[int] | None:
    """Return, per event, the bit set of events before it in every valid order, or None if every order fails."""
    order = _Order(facts)
    order.add_known()
    while order.changed and not order.cyclic:
        order.close()
        if not order.cyclic:
            order.add_forced()
    return None if order.cyclic else order.before


class _Order:
    """Edges between events. They are collected per round, and closed once per round."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.after: list[set[int]] = [set() for _ in range(2 * facts.count)]
        self.before = [0] * (2 * facts.count)
        self.changed = True
        self.cyclic = False
        self.commits = bits(2 * t + 1 for t in range(facts.count))
        self.past = [0] * facts.count  # commits earlier in the session, as bits
        # Transactions read from, directly before in the session, or ended before.
        self.near = [{t1 for _, t1 in reads if t1 != INITIAL} for reads in facts.reads]
        for session in facts.sessions:
            for a, b in pairwise(session):
                self.past[b] = self.past[a] | 1 << (2 * a + 1)
                self.near[b].add(a)
        for t, ended in enumerate(facts.ended):
            self.near[t].update(members(ended))

    def snapshot(self, t: int) -> int:
        return 2 * t + (not reads_from_snapshot(self.facts.sees[t]))

    def add(self, a: int, b: int) -> None:
        """Add event a before event b."""
        if a == b or self.before[a] >> b & 1:
            self.cyclic = True
        elif not self.before[b] >> a & 1:
            self.changed = True
            self.after[a].add(b)

    def close(self) -> None:
        """Compute the transitive closure."""
        self.changed = False
        before = [0] * len(self.after)
        missing = [0] * len(self.after)
        for later in self.after:
            for b in later:
                missing[b] += 1
        ready = [event for event, n in enumerate(missing) if n == 0]
        placed = 0
        while ready:
            a = ready.pop()
            placed += 1
            earlier = before[a] | 1 << a
            for b in self.after[a]:
                before[b] |= earlier
                missing[b] -= 1
                if missing[b] == 0:
                    ready.append(b)
        self.before, self.cyclic = before, placed < len(self.after)

    def precedes(self, a: int, b: int) -> bool:
        return bool(self.before[b] >> a & 1)

    def add_known(self) -> None:
        facts = self.facts
        for session in facts.sessions:
            for a, b in pairwise(session):
                self.add(2 * a + 1, self.snapshot(b))
        for t in range(facts.count):
            if reads_from_snapshot(facts.sees[t]):
                self.add(2 * t, 2 * t + 1)
            for _, t1 in facts.reads[t]:
                if t1 != INITIAL:
                    self.add(2 * t1 + 1, self.snapshot(t))
            for s in members(facts.ended[t]):
                self.add(2 * s + 1, self.snapshot(t))
        for a, b in facts.versions:
            self.add(2 * a + 1, 2 * b + 1)

    def add_forced(self) -> None:
        """Add what the levels force, one round."""
        facts = self.facts
        sees = self._must_see()
        for t in range(facts.count):
            if facts.sees[t] & WRITERS and reads_from_snapshot(facts.sees[t]):
                self._keep_writers_apart(t)
            for position, (x, t1) in enumerate(facts.reads[t]):
                for t2 in facts.writers[x]:
                    if t2 in (t1, t) or self.cyclic:
                        continue
                    if facts.sees[t] & AT_COMMIT:
                        seen = bool(sees[t] >> (2 * t2 + 1) & 1)
                    else:
                        seen = any(t2 == s for _, s in facts.reads[t][:position])
                    self._read_instead(t, t1, t2, seen)

    def _read_instead(self, t: int, t1: int, t2: int, seen: bool) -> None:
        """Add the order that follows from t's read of t1's version, where t2 is another writer of the key."""
        if seen and t1 == INITIAL:
            self.cyclic = True
        elif seen:
            self.add(2 * t2 + 1, 2 * t1 + 1)
        elif self.facts.sees[t] & PREFIX and (t1 == INITIAL or self.precedes(2 * t1 + 1, 2 * t2 + 1)):
            self.add(self.snapshot(t), 2 * t2 + 1)

    def _keep_writers_apart(self, t: int) -> None:
        """Order other writers of t's keys: none commits between t's snapshot and its commit."""
        for other in members(self.facts.conflicts[t]):
            if self.precedes(2 * t, 2 * other + 1):
                self.add(2 * t + 1, 2 * other + 1)
            if self.precedes(2 * other + 1, 2 * t + 1):
                self.add(2 * other + 1, 2 * t)

    def _must_see(self) -> list[int]:
        """Return, per transaction, the commits visible to it in every valid order as far as known, as bits."""
        facts, sees = self.facts, [0] * self.facts.count
        for t in sorted(range(facts.count), key=lambda t: self.before[2 * t + 1].bit_count()):
            if facts.sees[t] & PREFIX:
                sees[t] = self.before[self.snapshot(t)] & self.commits
                continue
            near = list(self.near[t])
            if facts.sees[t] & WRITERS:
                near += [s for s in members(facts.conflicts[t]) if self.precedes(2 * s + 1, 2 * t + 1)]
            sees[t] = self.past[t] | bits(2 * s + 1 for s in near)
            if facts.sees[t] & TRANSITIVE:
                for s in near:
                    sees[t] |= sees[s]
        return sees
