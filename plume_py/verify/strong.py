"""Strong and mixed levels by the axioms: one commit order, and the least visibility that all levels ask for together.

A transaction sees its session and those it read from; at PSI and SI, also all earlier writers of what it writes. At TCC
and PSI it sees, too, whom these see; at PC and SI all that come before one of them; at SER all that come before itself.
Of what it sees it must read the newest version of each key; at RC, of what it has read from so far.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from plume_py.history.atoms import Atom
from plume_py.text import shown
from plume_py.verify.told import START, Told

CLOSED = ("TCC", "PSI")
FIRST_WINS = ("PSI", "SI")
SNAPSHOT = ("PC", "SI")
STRONG = ("PC", "PSI", "SI", "SER")

# A sight: the first so many of the order, and, by session, the last one that is seen.
Sight = tuple[int, dict[int, int]]
NOTHING: Sight = (0, {})


class Replay:
    """Transactions placed one after the other, each judged when it is placed."""

    def __init__(self, told: Told, level: Callable[[int], str], only: set[int] | None = None) -> None:
        """With ``only``, the history is cut down to these transactions; reads from others are left out."""
        self.told, self.level, self.only = told, level, only
        self.pasts = any(level(t) in CLOSED for t in told.live if only is None or t in only)
        self.order: list[int] = []
        self.place: dict[int, int] = {START: -1}
        self.sight: dict[int, Sight] = {}
        self.writers: defaultdict[Atom, list[int]] = defaultdict(list)  # places, ascending
        self.wrote_sight: dict[Atom, Sight] = {}  # what the writers of a key have seen, and themselves

    def reads(self, t: int) -> list[tuple[Atom, int]]:
        """What t read from whom."""
        found = self.told.reads[t]
        return found if self.only is None else [(x, t1) for x, t1 in found if t1 == START or t1 in self.only]

    def direct(self, t: int) -> set[int]:
        """Its session predecessor and those it read from."""
        found = {t1 for _, t1 in self.reads(t) if t1 != START}
        previous = self.told.previous.get(t)
        while previous is not None and self.only is not None and previous not in self.only:
            previous = self.told.previous.get(previous)
        return found if previous is None else found | {previous}

    def put(self, t: int) -> list[str]:
        """Place t; what is wrong with that."""
        level = self.level(t)
        sight = self._sight(t, level)
        problems = [
            f"{self.told.name(t)} read {shown(x)} from {self.told.name(t1)}, but {level} wants it to see "
            f"{self.told.name(t2)}, which wrote {shown(x)} too and stands later in the order"
            for x, t1, t2 in self._judged(t, level, sight)
            if self.place[t2] > self.place[t1]
        ]
        self.place[t] = len(self.order)
        self.order.append(t)
        self.sight[t] = sight
        mine = self._with(NOTHING, t)
        for x in self.told.wrote[t]:
            self.writers[x].append(self.place[t])
            self.wrote_sight[x] = _joined(self.wrote_sight.get(x, NOTHING), mine)
        return problems

    def seen_places(self, t: int) -> set[int]:
        """Whom t sees, as places in the order."""
        level, (prefix, past) = self.level(t), self.sight[t]
        if level in ("RC", "RA"):
            session = {a for a in self.order if a < t and self.told.session[a] == self.told.session[t]}
            return {self.place[a] for a in self.direct(t) | session}
        seen = set(range(prefix))
        if level in CLOSED:
            seen |= {at for at, a in enumerate(self.order) if past.get(self.told.session[a], START) >= a}
        return seen

    def _with(self, sight: Sight, t: int) -> Sight:
        """``sight``, and t, and all that t sees."""
        prefix, past = self.sight[t]
        if self.level(t) == "SER":
            prefix = self.place[t] + 1
        if self.pasts:
            session = self.told.session[t]
            past = {**past, session: max(past.get(session, START), t)}
        return _joined(sight, (prefix, past))

    def _sight(self, t: int, level: str) -> Sight:
        if level == "SER":
            return len(self.order), {}
        direct = self.direct(t)
        sight = NOTHING
        if self.pasts:
            for a in direct:
                sight = self._with(sight, a)
        if level in SNAPSHOT:
            last = max((self.place[a] + 1 for a in direct), default=0)
            if level == "SI":
                last = max([last, *(self.writers[x][-1] + 1 for x in self.told.wrote[t] if self.writers[x])])
            sight = max(last, sight[0]), sight[1]
        elif level == "PSI":
            for x in self.told.wrote[t]:
                sight = _joined(sight, self.wrote_sight.get(x, NOTHING))
        return sight

    def _judged(self, t: int, level: str, sight: Sight) -> Iterator[tuple[Atom, int, int]]:
        """(x, t1, the newest t2 that must be seen, or START) for each read."""
        before: set[int] = set()
        known = self.direct(t) if level == "RA" else set()
        for x, t1 in self.reads(t):
            if level == "RC":
                yield x, t1, self._newest_of(x, before)
                before.add(t1)
            elif level == "RA":
                session = [w for w in self.told.writers.get(x, {}).get(self.told.session[t], ()) if w in self.place]
                yield x, t1, self._newest_of(x, known | set(session))
            else:
                yield x, t1, self._newest_seen(x, level, sight)

    def _newest_of(self, x: Atom, among: set[int]) -> int:
        writers = (w for w in among if w != START and x in self.told.wrote[w])
        return max(writers, key=self.place.__getitem__, default=START)

    def _newest_seen(self, x: Atom, level: str, sight: Sight) -> int:
        prefix, past = sight
        places = self.writers[x]
        at = bisect_left(places, prefix)
        newest = self.order[places[at - 1]] if at else START
        if level in CLOSED:
            for later in reversed(places[at:]):
                w = self.order[later]
                if past.get(self.told.session[w], START) >= w:
                    return w
        return newest


def _joined(one: Sight, other: Sight) -> Sight:
    if not one[1] or not other[1]:
        return max(one[0], other[0]), one[1] or other[1]
    past = dict(one[1])
    for session, last in other[1].items():
        if past.get(session, START) < last:
            past[session] = last
    return max(one[0], other[0]), past


def all_orders_fail(told: Told, level: Callable[[int], str], only: set[int], budget: int) -> bool | None:
    """Do these transactions alone leave no commit order? None if there are too many orders to try."""
    probe = Replay(told, level, only)
    before = {t: probe.direct(t) for t in only}
    for a, b in _shown_orders(told, only, strong=any(level(t) in STRONG for t in told.live)):
        before[b].add(a)
    left = budget

    def fails(order: list[int]) -> bool | None:
        nonlocal left
        if len(order) == len(only):
            return False
        for t in sorted(only.difference(order)):
            if before[t] <= set(order):
                left -= 1
                if left < 0:
                    return None
                replay = Replay(told, level, only)
                for earlier in order:
                    replay.put(earlier)
                if not replay.put(t):
                    answer = fails([*order, t])
                    if not answer:
                        return answer
        return True

    return fails([])


def _shown_orders(told: Told, only: set[int], strong: bool) -> Iterator[tuple[int, int]]:
    """What lists say about the order of these transactions."""
    for x, lists in told.lists.items():
        for items in lists:
            kept = [t for t in told.appended(x, items) if t in only]
            yield from ((a, b) for a, b in pairwise(kept) if a != b)
        if strong:
            shown_by = told.appended(x, told.longest(x))
            kept = [t for t in shown_by if t in only]
            mine = [t for t in only if x in told.wrote[t] and t not in shown_by]
            yield from ((kept[-1], t) for t in mine if kept)
