"""The second engine: search a commit order, with memory of the states that have none.

Transactions are placed one after the other. A transaction that reads from a snapshot is placed in two events, snapshot
and commit; the transactions committed at its snapshot are visible to it. A state is the progress of each session. That
suffices, because a version cannot be overwritten before its snapshot readers have read it. Only if visibility is
transitive without prefixes, the version orders and the visible sets are also part of the state. For PSI,
``VersionSearch`` searches version orders instead.

The engine shares only the history and its resolved reads with the main engine; tests compare the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from plume_py.base.bits import bits, members
from plume_py.checking.graph.reads import Reads
from plume_py.checking.graph.realtime import RealTime
from plume_py.checking.strong.minimal.facts import Facts, gather
from plume_py.checking.strong.minimal.saturation import saturate
from plume_py.history.model import INITIAL, History
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.levels.visibility import reads_from_snapshot, visible_set


@dataclass(frozen=True)
class SearchResult:
    """``ok`` is None if the budget was spent first; ``order`` is a commit order that shows the level."""

    ok: bool | None
    order: list[int] | None = None
    states: int = 0


def search(
    history: History,
    level: str | Mapping[int, str],
    budget: int,
    reads: Reads | None = None,
    real_time: RealTime | None = None,
) -> SearchResult:
    """Decide whether ``history`` satisfies ``level``, and ``real_time`` if given, with at most ``budget`` states.

    ``level`` is a level that a transaction can have, or a mapping from transactions to such levels.
    """
    facts = gather(history, level, reads, real_time=real_time)
    return SearchResult(False) if facts.broken else search_facts(facts, budget)


def search_facts(facts: Facts, budget: int) -> SearchResult:
    """Decide facts in which every single read is right."""
    before = saturate(facts)
    if before is None:
        return SearchResult(False)
    if all(sees & (TRANSITIVE | PREFIX | WRITERS) == TRANSITIVE | WRITERS for sees in facts.sees):
        versions = VersionSearch(facts, before)
        ok, order = versions.run(budget)
        return SearchResult(ok, [facts.number[t] for t in order] if ok else None, versions.states)
    return _Search(facts, before).run(budget)


class _Search:
    """Depth-first search over events: event 2t is the snapshot of t, event 2t + 1 its commit."""

    def __init__(self, facts: Facts, before: list[int]) -> None:
        self.facts = facts
        self.before = before  # per event, as bits: events that must come first
        # Whether the state includes more than the progress of the sessions.
        self.whole = any(sees & (TRANSITIVE | PREFIX) == TRANSITIVE for sees in facts.sees)
        self.split = [reads_from_snapshot(sees) for sees in facts.sees]
        self.placed = 0
        self.order: list[int] = []
        self.place = [-1] * facts.count
        self.sees = [0] * facts.count  # per placed transaction, as bits
        self.current = [INITIAL] * facts.keys  # last writer of each key
        self.open_writers = [len(writers) for writers in facts.writers]  # per key, number not yet placed
        # Snapshot readers of the current version that have not read yet; and all reads not done yet.
        self.waiting = [0] * facts.keys
        self.to_read = [sum(map(len, readers.values())) for readers in facts.readers]
        self.open_snapshots = 0  # transactions with WRITERS between snapshot and commit, as bits
        self.done = 0  # committed transactions, as bits
        self.next = [0] * len(facts.sessions)
        self.at = [s for t in range(facts.count) for s, session in enumerate(facts.sessions) if t in session]
        for x in range(facts.keys):
            self._recount(x)

    def run(self, budget: int) -> SearchResult:
        """Search; remember every dead end."""
        failed: set[object] = set()
        path: list[tuple[int, list[int], object]] = []  # (events placed at that choice, remaining choices, its state)
        trail: list[int] = []
        states = 0
        while True:
            alive = self._advance(trail)
            if alive and len(self.order) == self.facts.count:
                return SearchResult(True, [self.facts.number[t] for t in self.order], states)
            state = self._state() if alive else None
            if alive and state not in failed:
                states += 1
                if states > budget:
                    return SearchResult(None, None, states)
                choices = self._choices()
                choices.reverse()
                path.append((len(trail), choices, state))
            while path and not path[-1][1]:
                failed.add(path.pop()[2])
            if not path:
                return SearchResult(False, None, states)
            depth, choices, _ = path[-1]
            while len(trail) > depth:
                self._undo(trail.pop())
            self._do(choices.pop(), trail)

    def _state(self) -> object:
        if not self.whole:
            return self.placed
        writers = tuple(tuple(sorted(w for w in ws if self.place[w] >= 0)) for ws in self.facts.writers)
        versions = tuple(tuple(sorted(ws, key=self.place.__getitem__)) for ws in writers)
        return self.placed, versions, tuple(self.sees)

    def _advance(self, trail: list[int]) -> bool:
        """Place all events that can be placed without loss; return False if some event can never be placed."""
        moved = True
        while moved:
            moved = False
            for event in self._ready():
                if self.placed >> event & 1 or not self._is_ready(event):
                    continue
                fits = self._fits(event)
                if fits is None:
                    return False
                if fits and self._harmless(event):
                    self._do(event, trail)
                    moved = True
        return True

    def _ready(self) -> list[int]:
        """Return the next event of each session."""
        events = []
        for at, session in zip(self.next, self.facts.sessions, strict=True):
            if at < len(session):
                t = session[at]
                snapshot = self.split[t] and not self.placed >> 2 * t & 1
                events.append(2 * t + (not snapshot))
        return events

    def _is_ready(self, event: int) -> bool:
        return self.before[event] & ~self.placed == 0

    def _choices(self) -> list[int]:
        events = [e for e in self._ready() if self._is_ready(e) and self._fits(e)]
        return sorted(events, key=lambda e: (self.before[e].bit_count(), e))

    def _fits(self, event: int) -> bool | None:
        """Return whether the event may come next; None if it never may."""
        t, facts = event >> 1, self.facts
        sees = facts.sees[t]
        if event & 1 == 0:
            clash = sees & WRITERS and facts.conflicts[t] & self.open_snapshots
            return not clash and self._reads_current(t)
        if sees & EVERYTHING and not self._reads_current(t):
            return False
        if not sees & PREFIX and not self._reads_well(t, self._visible(t)):
            return None  # the visible set can only grow
        own = {x for x, t1 in facts.reads[t] if sees & EVERYTHING}
        blocked = any(self.waiting[x] > (x in own) for x in facts.writes[t])
        return not blocked and not facts.conflicts[t] & self.open_snapshots & ~(1 << t)

    def _reads_current(self, t: int) -> bool:
        return all(self.current[x] == t1 for x, t1 in self.facts.reads[t])

    def _reads_well(self, t: int, seen: int) -> bool:
        facts = self.facts
        for position, (x, t1) in enumerate(facts.reads[t]):
            premise = seen
            if not facts.sees[t] & AT_COMMIT:
                premise = bits(s for _, s in facts.reads[t][:position] if s != INITIAL)
            at = -1 if t1 == INITIAL else self.place[t1]
            for t2 in facts.writers[x]:
                if t2 not in (t1, t) and premise >> t2 & 1 and self.place[t2] > at:
                    return False
        return True

    def _visible(self, t: int) -> int:
        """Return what is visible to t if it comes next.

        Of the placed transactions, the least set that its level allows.
        """
        facts = self.facts
        return visible_set(facts.sees[t], facts.direct[t], facts.conflicts[t], self.done, self.sees)

    def _harmless(self, event: int) -> bool:
        """Return whether placing the event next loses no solution.

        A snapshot only helps others, except that with WRITERS others may not commit before its own commit. A commit
        disturbs no other transaction if none is still to write its keys, or to read another version of them.
        """
        t, facts = event >> 1, self.facts
        if event & 1 == 0:
            return not facts.sees[t] & WRITERS or not facts.conflicts[t] & ~self.done
        own = [x for x, _ in facts.reads[t]] if not self.split[t] else []
        for x in facts.writes[t]:
            if self.open_writers[x] > 1 or self.to_read[x] > own.count(x) + len(facts.readers[x].get(t, ())):
                return False
        return True

    def _do(self, event: int, trail: list[int]) -> None:
        t, facts = event >> 1, self.facts
        trail.append(event)
        self.placed |= 1 << event
        if event & 1 == 0:
            self.sees[t] = self._visible(t)
            self._count_reads(t, -1)
            if facts.sees[t] & WRITERS:
                self.open_snapshots |= 1 << t
            return
        if not self.split[t]:
            self.sees[t] = self._visible(t)
            self._count_reads(t, -1)
        self.open_snapshots &= ~(1 << t)
        self.place[t] = len(self.order)
        self.order.append(t)
        self.done |= 1 << t
        self.next[self.at[t]] += 1
        for x in facts.writes[t]:
            self.open_writers[x] -= 1
            self.current[x] = t
            self._recount(x)

    def _undo(self, event: int) -> None:
        t, facts = event >> 1, self.facts
        self.placed &= ~(1 << event)
        if event & 1:
            self.order.pop()
            self.place[t] = -1
            self.done &= ~(1 << t)
            self.next[self.at[t]] -= 1
            if self.split[t] and facts.sees[t] & WRITERS:
                self.open_snapshots |= 1 << t
            for x in facts.writes[t]:
                self.open_writers[x] += 1
                placed = [w for w in facts.writers[x] if self.place[w] >= 0]
                self.current[x] = max(placed, key=self.place.__getitem__, default=INITIAL)
                self._recount(x)
        if event & 1 == 0 or not self.split[t]:
            self._count_reads(t, 1)
            self.sees[t] = 0
            self.open_snapshots &= ~(1 << t)

    def _count_reads(self, t: int, by: int) -> None:
        for x, _ in self.facts.reads[t]:
            self.to_read[x] += by
            self._recount(x)

    def _recount(self, x: int) -> None:
        readers = self.facts.readers[x].get(self.current[x], ())
        self.waiting[x] = sum(self.facts.sees[r] & PREFIX != 0 and not self._has_read(r) for r in readers)

    def _has_read(self, t: int) -> bool:
        event = 2 * t if self.split[t] else 2 * t + 1
        return bool(self.placed >> event & 1)


# PSI: PSI holds if the writers of each key can be ordered such that session order, reads-from and version order
# (together: visibility) are acyclic, and no reader sees a version newer than the one it read. So a reader that sees
# another version puts it before the one it read; for the remaining pairs both orders are tried. Most commit orders
# differ only in ways that do not matter at PSI, so searching them is slower.


# After this many dead ends the search restarts, with the keys of most dead ends first; doubled each time.
PATIENCE = 8


class VersionSearch:
    """Depth-first search over pairs of writers; ``states`` counts the pairs tried."""

    def __init__(self, facts: Facts, before: list[int]) -> None:
        """``before``: per event, the events that come before it in every valid order."""
        self.facts = facts
        # Per transaction, as bits: its visible set. At PSI it contains everything known to come before.
        self.before = [bits(event >> 1 for event in members(before[2 * t + 1])) for t in range(facts.count)]
        self.touched: list[int] = []  # transactions whose reads must be examined again
        self.writers = [bits(writers) for writers in facts.writers]
        self.trouble = [0] * facts.keys  # dead ends per key
        self.states = 0

    def run(self, budget: int) -> tuple[bool | None, list[int]]:
        """Return whether a version order exists, None if the budget is spent; and a commit order if it does."""
        known, patience = self.before, PATIENCE
        while True:
            self.before = list(known)
            ok = self._descend(budget, patience)
            if ok is not None or self.states > budget:
                break
            patience *= 2
        return ok, sorted(range(self.facts.count), key=self._likely) if ok else []

    def _descend(self, budget: int, patience: int) -> bool | None:
        """Order pair after pair; return None after too many dead ends, or if the budget is spent."""
        other_way: list[tuple[list[int], int, int, int]] = []  # known orders, and the reversed pair
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
        """Return a sort key: transactions that see fewer others come first."""
        return self.before[t].bit_count(), t

    def _order(self, a: int, b: int) -> bool:
        self.touched.clear()
        return self._add(a, b) and self._propagate()

    def _add(self, a: int, b: int) -> bool:
        """Make a, and all that a sees, visible to b; return False if that is a cycle."""
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
        """Return two writers of a key, neighbours in the likely order, without a known order."""
        for x in keys:
            for a, b in pairwise(sorted(self.facts.writers[x], key=self._likely)):
                if not self.before[b] >> a & 1:
                    return a, b, x
        return None
