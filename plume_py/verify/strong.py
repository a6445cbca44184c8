"""Strong and mixed levels by the axioms: one commit order, and the least visibility that all levels ask for together.

A transaction sees its session, those it read from and, where real time counts, those that had ended before it began; at
PSI and SI, also all earlier writers of what it writes. At TCC and PSI it sees, too, whom these see; at PC and SI all
that come before one of them; at SER all that come before itself. Of what it sees it must read the newest version of
each key; at RC, of what it has read from so far.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from plume_py.base.text import key_text
from plume_py.history.value_codes import Atom
from plume_py.verify.facts import START, HistoryFacts

CLOSED = ("TCC", "PSI")
FIRST_WINS = ("PSI", "SI")
SNAPSHOT = ("PC", "SI")
STRONG = ("PC", "PSI", "SI", "SER")

# What is visible: the first so many of the order, and, by session, the last one that is seen.
Visible = tuple[int, dict[int, int]]
NOTHING: Visible = (0, {})


class OrderReplay:
    """Transactions placed one after the other, each judged when it is placed."""

    def __init__(self, facts: HistoryFacts, level: Callable[[int], str], only: set[int] | None = None) -> None:
        """With ``only``, the history is cut down to these transactions; reads from others are left out."""
        self.facts, self.level, self.only = facts, level, only
        self.pasts = any(level(t) in CLOSED for t in facts.live if only is None or t in only)
        self.order: list[int] = []
        self.place: dict[int, int] = {START: -1}
        self.visible: dict[int, Visible] = {}
        self.writers: defaultdict[Atom, list[int]] = defaultdict(list)  # places, ascending
        self.writers_saw: dict[Atom, Visible] = {}  # what the writers of a key have seen, and themselves

    def reads(self, t: int) -> list[tuple[Atom, int]]:
        """What t read from whom."""
        found = self.facts.reads[t]
        return found if self.only is None else [(x, t1) for x, t1 in found if t1 == START or t1 in self.only]

    def direct(self, t: int) -> set[int]:
        """Its session predecessor, those it read from, and those that real time puts before it."""
        found = {t1 for _, t1 in self.reads(t) if t1 != START} | self.facts.ended_before(t, self.only)
        previous = self.facts.previous.get(t)
        while previous is not None and self.only is not None and previous not in self.only:
            previous = self.facts.previous.get(previous)
        return found if previous is None else found | {previous}

    def put(self, t: int) -> list[str]:
        """Place t; what is wrong with that."""
        level = self.level(t)
        visible = self._visible(t, level)
        problems = [
            f"{self.facts.name(t)} read {key_text(x)} from {self.facts.name(t1)}, but {level} wants it to see "
            f"{self.facts.name(t2)}, which wrote {key_text(x)} too and stands later in the order"
            for x, t1, t2 in self._judged(t, level, visible)
            if self.place[t2] > self.place[t1]
        ]
        self.place[t] = len(self.order)
        self.order.append(t)
        self.visible[t] = visible
        mine = self._with(NOTHING, t)
        for x in self.facts.wrote[t]:
            self.writers[x].append(self.place[t])
            self.writers_saw[x] = _joined(self.writers_saw.get(x, NOTHING), mine)
        return problems

    def take_back(self, t: int, writers_saw: dict[Atom, Visible | None]) -> None:
        """Undo the last ``put``, of t; ``writers_saw`` is what stood there before for what it wrote."""
        self.order.pop()
        del self.place[t], self.visible[t]
        for x, visible in writers_saw.items():
            self.writers[x].pop()
            if visible is None:
                del self.writers_saw[x]
            else:
                self.writers_saw[x] = visible

    def seen_places(self, t: int) -> set[int]:
        """Whom t sees, as places in the order."""
        level, (prefix, past) = self.level(t), self.visible[t]
        if level in ("RC", "RA"):
            session = {a for a in self.order if a < t and self.facts.session[a] == self.facts.session[t]}
            session |= {a for a in self.order if self.facts.in_time(a, t)}
            return {self.place[a] for a in self.direct(t) | session}
        seen = set(range(prefix))
        if level in CLOSED:
            seen |= {at for at, a in enumerate(self.order) if past.get(self.facts.session[a], START) >= a}
        return seen

    def _with(self, visible: Visible, t: int) -> Visible:
        """``visible``, and t, and all that t sees."""
        prefix, past = self.visible[t]
        if self.level(t) == "SER":
            prefix = self.place[t] + 1
        if self.pasts:
            session = self.facts.session[t]
            past = {**past, session: max(past.get(session, START), t)}
        return _joined(visible, (prefix, past))

    def _visible(self, t: int, level: str) -> Visible:
        if level == "SER":
            return len(self.order), {}
        direct = self.direct(t)
        visible = NOTHING
        if self.pasts:
            for a in direct:
                visible = self._with(visible, a)
        if level in SNAPSHOT:
            last = max((self.place[a] + 1 for a in direct), default=0)
            if level == "SI":
                last = max([last, *(self.writers[x][-1] + 1 for x in self.facts.wrote[t] if self.writers[x])])
            visible = max(last, visible[0]), visible[1]
        elif level == "PSI":
            for x in self.facts.wrote[t]:
                visible = _joined(visible, self.writers_saw.get(x, NOTHING))
        return visible

    def _judged(self, t: int, level: str, visible: Visible) -> Iterator[tuple[Atom, int, int]]:
        """(x, t1, the newest t2 that must be seen, or START) for each read."""
        before: set[int] = set()
        known = self.direct(t) if level == "RA" else set()
        for x, t1 in self.reads(t):
            if level == "RC":
                yield x, t1, self._newest_of(x, before)
                before.add(t1)
            elif level == "RA":
                session = [w for w in self.facts.writers.get(x, {}).get(self.facts.session[t], ()) if w in self.place]
                in_time = {w for ws in self.facts.writers.get(x, {}).values() for w in ws if self.facts.in_time(w, t)}
                yield x, t1, self._newest_of(x, known | set(session) | (in_time & self.place.keys()))
            else:
                yield x, t1, self._newest_seen(x, level, visible)

    def _newest_of(self, x: Atom, among: set[int]) -> int:
        writers = (w for w in among if w != START and x in self.facts.wrote[w])
        return max(writers, key=self.place.__getitem__, default=START)

    def _newest_seen(self, x: Atom, level: str, visible: Visible) -> int:
        prefix, past = visible
        places = self.writers[x]
        at = bisect_left(places, prefix)
        newest = self.order[places[at - 1]] if at else START
        if level in CLOSED:
            for later in reversed(places[at:]):
                w = self.order[later]
                if past.get(self.facts.session[w], START) >= w:
                    return w
        return newest


def _joined(one: Visible, other: Visible) -> Visible:
    if not one[1] or not other[1]:
        return max(one[0], other[0]), one[1] or other[1]
    past = dict(one[1])
    for session, last in other[1].items():
        if past.get(session, START) < last:
            past[session] = last
    return max(one[0], other[0]), past


def all_orders_fail(facts: HistoryFacts, level: Callable[[int], str], only: set[int], budget: int) -> bool | None:
    """Do these transactions alone leave no commit order? None if there are too many orders to try.

    Those that share neither session nor key, directly or by others, do not meet in any axiom: such groups are tried one
    after the other. Each may use all of the budget.
    """
    answers = [_group_fails(facts, level, group, budget) for group in _groups(facts, only)]
    return True if True in answers else None if None in answers else False


def _groups(facts: HistoryFacts, only: set[int]) -> list[set[int]]:
    """Transactions that are linked by sessions and keys; by real time all of them are."""
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
    """Depth first, without recursion: ``untried[n]`` are those that may still stand in place n."""
    replay = OrderReplay(facts, level, only)
    before = {t: replay.direct(t) for t in only}
    for a, b in _list_orders(facts, only):
        before[b].add(a)
    placed: list[tuple[int, dict[Atom, Visible | None]]] = []
    untried = [[t for t in sorted(only, reverse=True) if not before[t]]]
    while untried:
        if len(placed) == len(untried):
            replay.take_back(*placed.pop())
        if not untried[-1]:
            untried.pop()
            continue
        budget -= 1
        if budget < 0:
            return None
        t = untried[-1].pop()
        placed.append((t, {x: replay.writers_saw.get(x) for x in facts.wrote[t]}))
        if not replay.put(t):
            if len(placed) == len(only):
                return False
            done = replay.place.keys()
            untried.append([t for t in sorted(only - done, reverse=True) if before[t] <= done])
    return True


def _list_orders(facts: HistoryFacts, only: set[int]) -> Iterator[tuple[int, int]]:
    """What lists tell about the order of these transactions; whom they do not show comes after all that they show."""
    for x in {x for t in only for x in facts.wrote[t]}:
        for read in facts.lists.orders.get(x, ()):
            writers = facts.lists.writers(read)
            kept = [t for t in writers if t in only]
            yield from pairwise(kept)
            late = only.difference(writers) if kept else ()
            yield from ((kept[-1], t) for t in late if x in facts.wrote[t])
