"""Replay commit orders by the axioms of the levels, one level per transaction; used for strong and declared levels.

The replay computes the least visibility that the levels require together. Visible to a transaction t are:

- at every level: its session predecessors, the transactions that it reads from, and those before it in real time;
- at PSI and SI: also the earlier writers of the keys that t writes;
- at TCC and PSI: also everything that is visible to these transactions;
- at PC and SI: also everything that commits before one of these transactions;
- at SER: everything that commits before t.

Of the visible writers of a key, t must read the newest one; at RC, of the writers that it has read from so far.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from plume_py.base.text import key_text
from plume_py.history.value_codes import Atom
from plume_py.verify.facts import START, HistoryFacts

TRANSITIVE = ("TCC", "PSI")
PREFIX = ("PC", "SI")
STRONG = ("PC", "PSI", "SI", "SER")

# A set of visible transactions: the length of a prefix of the order, and by session the last visible transaction.
Visible = tuple[int, dict[int, int]]
NOTHING: Visible = (0, {})


class OrderReplay:
    """A commit order that grows by one transaction at a time. Each transaction is checked when it is appended."""

    def __init__(self, facts: HistoryFacts, level: Callable[[int], str], only: set[int] | None = None) -> None:
        """With ``only``, replay the history of these transactions, without their reads from others."""
        self.facts, self.level, self.only = facts, level, only
        self.by_session = any(level(t) in TRANSITIVE for t in facts.live if only is None or t in only)
        self.order: list[int] = []
        self.position: dict[int, int] = {START: -1}
        self.visible: dict[int, Visible] = {}
        self.writers: defaultdict[Atom, list[int]] = defaultdict(list)  # positions, ascending
        self.visible_to_writers: dict[Atom, Visible] = {}  # of each key, including the writers themselves

    def reads(self, t: int) -> list[tuple[Atom, int]]:
        found = self.facts.reads[t]
        return found if self.only is None else [(x, t1) for x, t1 in found if t1 == START or t1 in self.only]

    def direct(self, t: int) -> set[int]:
        """Return the session predecessor of t, the transactions that it read from, and those before it in real time."""
        found = {t1 for _, t1 in self.reads(t) if t1 != START} | self.facts.ended_before(t, self.only)
        previous = self.facts.previous.get(t)
        while previous is not None and self.only is not None and previous not in self.only:
            previous = self.facts.previous.get(previous)
        return found if previous is None else found | {previous}

    def append(self, t: int) -> list[str]:
        """Append t to the order; return the reads of t that violate its level, as messages."""
        level = self.level(t)
        visible = self._visible(t, level)
        problems = [
            f"{self.facts.name(t)} read {key_text(x)} from {self.facts.name(t1)}, but {level} wants it to see "
            f"{self.facts.name(t2)}, which wrote {key_text(x)} too and stands later in the order"
            for x, t1, t2 in self._newest_visible_writers(t, level, visible)
            if self.position[t2] > self.position[t1]
        ]
        self.position[t] = len(self.order)
        self.order.append(t)
        self.visible[t] = visible
        added = self._including(NOTHING, t)
        for x in self.facts.wrote[t]:
            self.writers[x].append(self.position[t])
            self.visible_to_writers[x] = _union(self.visible_to_writers.get(x, NOTHING), added)
        return problems

    def undo(self, t: int, visible_to_writers: dict[Atom, Visible | None]) -> None:
        """Undo the last ``append``, of t. The second argument has the former values for the keys that t wrote."""
        self.order.pop()
        del self.position[t], self.visible[t]
        for x, visible in visible_to_writers.items():
            self.writers[x].pop()
            if visible is None:
                del self.visible_to_writers[x]
            else:
                self.visible_to_writers[x] = visible

    def visible_positions(self, t: int) -> set[int]:
        """Return the positions in the order of all transactions that are visible to t."""
        level, (prefix, past) = self.level(t), self.visible[t]
        if level in ("RC", "RA"):
            earlier = {a for a in self.order if a < t and self.facts.session[a] == self.facts.session[t]}
            earlier |= {a for a in self.order if self.facts.precedes_in_real_time(a, t)}
            return {self.position[a] for a in self.direct(t) | earlier}
        positions = set(range(prefix))
        if level in TRANSITIVE:
            positions |= {at for at, a in enumerate(self.order) if past.get(self.facts.session[a], START) >= a}
        return positions

    def _including(self, visible: Visible, t: int) -> Visible:
        """Return ``visible`` with t and everything visible to t."""
        prefix, past = self.visible[t]
        if self.level(t) == "SER":
            prefix = self.position[t] + 1
        if self.by_session:
            session = self.facts.session[t]
            past = {**past, session: max(past.get(session, START), t)}
        return _union(visible, (prefix, past))

    def _visible(self, t: int, level: str) -> Visible:
        """Return what is visible to t if it commits next."""
        if level == "SER":
            return len(self.order), {}
        direct = self.direct(t)
        visible = NOTHING
        if self.by_session:
            for a in direct:
                visible = self._including(visible, a)
        if level in PREFIX:
            last = max((self.position[a] + 1 for a in direct), default=0)
            if level == "SI":
                last = max([last, *(self.writers[x][-1] + 1 for x in self.facts.wrote[t] if self.writers[x])])
            visible = max(last, visible[0]), visible[1]
        elif level == "PSI":
            for x in self.facts.wrote[t]:
                visible = _union(visible, self.visible_to_writers.get(x, NOTHING))
        return visible

    def _newest_visible_writers(self, t: int, level: str, visible: Visible) -> Iterator[tuple[Atom, int, int]]:
        """Yield (x, t1, t2) for each read by t: t2 is the newest writer of x that is visible to the read, or START."""
        before: set[int] = set()
        direct = self.direct(t) if level == "RA" else set()
        for x, t1 in self.reads(t):
            if level == "RC":
                yield x, t1, self._newest_of(x, before)
                before.add(t1)
            elif level == "RA":
                by_session = self.facts.writers.get(x, {})
                in_session = [w for w in by_session.get(self.facts.session[t], ()) if w in self.position]
                timed = {w for ws in by_session.values() for w in ws if self.facts.precedes_in_real_time(w, t)}
                yield x, t1, self._newest_of(x, direct | set(in_session) | (timed & self.position.keys()))
            else:
                yield x, t1, self._newest_visible(x, level, visible)

    def _newest_of(self, x: Atom, among: set[int]) -> int:
        writers = (w for w in among if w != START and x in self.facts.wrote[w])
        return max(writers, key=self.position.__getitem__, default=START)

    def _newest_visible(self, x: Atom, level: str, visible: Visible) -> int:
        prefix, past = visible
        positions = self.writers[x]
        at = bisect_left(positions, prefix)
        newest = self.order[positions[at - 1]] if at else START
        if level in TRANSITIVE:
            for later in reversed(positions[at:]):
                w = self.order[later]
                if past.get(self.facts.session[w], START) >= w:
                    return w
        return newest


def _union(one: Visible, other: Visible) -> Visible:
    if not one[1] or not other[1]:
        return max(one[0], other[0]), one[1] or other[1]
    past = dict(one[1])
    for session, last in other[1].items():
        if past.get(session, START) < last:
            past[session] = last
    return max(one[0], other[0]), past


def all_orders_fail(facts: HistoryFacts, level: Callable[[int], str], only: set[int], budget: int) -> bool | None:
    """Return whether no commit order of these transactions satisfies their levels; None if there are too many orders.

    Transactions that share no session or key, not even through others, never meet in an axiom. Such groups are tried
    separately, each with the whole budget of partial orders.
    """
    answers = [_group_fails(facts, level, group, budget) for group in _groups(facts, only)]
    return True if True in answers else None if None in answers else False


def _groups(facts: HistoryFacts, only: set[int]) -> list[set[int]]:
    """Return the groups of transactions connected by sessions and keys; with real time, a single group."""
    if facts.ended:
        return [only]
    members: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    for t in only:
        members["session", facts.session[t]].append(t)
        for x in {*facts.wrote[t], *(x for x, _ in facts.reads[t])}:
            members["key", x].append(t)
    linked: dict[int, set[int]] = {t: {t} for t in only}
    for several in members.values():
        for a, b in pairwise(several):
            one, other = sorted((linked[a], linked[b]), key=len)
            if one is not other:
                other |= one
                linked.update(dict.fromkeys(one, other))
    return list({id(group): group for group in linked.values()}.values())


def _group_fails(facts: HistoryFacts, level: Callable[[int], str], only: set[int], budget: int) -> bool | None:
    """Return whether every order of one group fails, or None if the budget is spent.

    The search is depth first without recursion: ``untried[n]`` are the candidates left for position n.
    """
    replay = OrderReplay(facts, level, only)
    before = {t: replay.direct(t) for t in only}
    for a, b in _list_orders(facts, only):
        before[b].add(a)
    appended: list[tuple[int, dict[Atom, Visible | None]]] = []  # the arguments of ``undo``
    untried = [[t for t in sorted(only, reverse=True) if not before[t]]]
    while untried:
        if len(appended) == len(untried):
            replay.undo(*appended.pop())
        if not untried[-1]:
            untried.pop()
            continue
        budget -= 1
        if budget < 0:
            return None
        t = untried[-1].pop()
        appended.append((t, {x: replay.visible_to_writers.get(x) for x in facts.wrote[t]}))
        if not replay.append(t):
            if len(appended) == len(only):
                return False
            done = replay.position.keys()
            untried.append([t for t in sorted(only - done, reverse=True) if before[t] <= done])
    return True


def _list_orders(facts: HistoryFacts, only: set[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs (earlier, later) that lists show; an appender that is not in a list comes after all that are."""
    for x in {x for t in only for x in facts.wrote[t]}:
        for read in facts.lists.orders.get(x, ()):
            writers = facts.lists.writers(read)
            kept = [t for t in writers if t in only]
            yield from pairwise(kept)
            late = only.difference(writers) if kept else ()
            yield from ((kept[-1], t) for t in late if x in facts.wrote[t])
