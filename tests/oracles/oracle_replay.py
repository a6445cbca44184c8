"""A second oracle for lists, more naive still: every list is built anew from every commit order (decision 6).

Given a commit order, the version of x that u writes is all that the writers of x up to u appended. A read shows the
version of some writer, followed by the reader's own appends so far; what it shows after own appends is the version of
the last writer before the reader. There are no patterns here: nothing is known but what an order builds, and a level
holds when its axiom (the table of levels) is kept under some order whose lists are those that were read. For PSI, the
orders are chosen key by key. Histories are as for ``oracle``; keys with registers may stand beside those with lists.
"""

from itertools import combinations, permutations, product

LEVELS = ("RC", "RA", "TCC", "PC", "PSI", "SI", "SER")
INITIAL = -1


class Replay:
    """The transactions that count, what they wrote, and what has to be read."""

    def __init__(self, sessions, initial=None):
        self.initial = initial
        self.txns = [txn for session in sessions for txn in session]
        session = [s for s, txns in enumerate(sessions) for _ in txns]
        shown = {
            (x, v) for status, ops in self.txns if status == "committed" for kind, x, value in ops if kind == "r"
            for v in (value if isinstance(value, list | tuple) else [value])
        }  # fmt: skip
        self.live = [
            t for t, (status, ops) in enumerate(self.txns)
            if status == "committed" or (status == "unknown" and any(op[1:] in shown for op in ops if op[0] != "r"))
        ]  # fmt: skip
        self.so = {(a, b) for a, b in combinations(self.live, 2) if session[a] == session[b]}
        self.wrote = {t: _wrote(self.txns[t][1]) for t in self.live}
        self.keys = sorted({x for t in self.live for _, x, _ in self.txns[t][1]})
        self.writers = {x: [t for t in self.live if x in self.wrote[t]] for x in self.keys}
        self.reads = [
            (t, at, x, value) for t in self.live if self.txns[t][0] == "committed"
            for at, (kind, x, value) in enumerate(self.txns[t][1]) if kind == "r"
        ]  # fmt: skip

    def version(self, x, order):
        """What x holds after the writers in ``order``."""
        return [v for t in order for v in self.wrote[t][x]]

    def source(self, t, at, x, value, order):
        """Whose version the read at ``at`` of t shows, given the order of the writers of x; None if nobody's.

        A register that the reader wrote itself has no source outside; it must show the last own write.
        """
        own = _wrote(self.txns[t][1][:at]).get(x, [])
        if not isinstance(value, list | tuple):
            return self._register(t, x, value, own)
        last = order.index(t) if own else None  # so many writers come before t
        for n in range(len(order) + 1):
            w = order[n - 1] if n else INITIAL
            if w != t and last in (None, n) and self.version(x, order[:n]) + own == list(value):
                return w
        return None

    def _register(self, t, x, value, own):
        if own:
            return t if value == own[-1] else None
        found = [w for w in self.writers[x] if w != t and self.wrote[w][x][-1] == value]
        return found[0] if found else INITIAL if value == self.initial else None

    def sources(self, orders):
        """(reader, position) -> (key, writer), if the lists are built as they were read; else None."""
        found = {}
        for t, at, x, value in self.reads:
            if x in orders:
                w = self.source(t, at, x, value, orders[x])
                if w is None:
                    return None
                if w != t:
                    found[t, at] = x, w
        return found


def _wrote(ops):
    """key -> all values, in program order."""
    wrote = {}
    for kind, x, value in ops:
        if kind != "r":
            wrote.setdefault(x, []).append(value)
    return wrote


def _closure(pairs):
    closed = set(pairs)
    while True:
        more = {(a, d) for a, b in closed for c, d in closed if b == c} - closed
        if not more:
            return closed
        closed |= more


def premise(replay, level, place, sources, t2, t3, at):
    """Does the level ask t3 to see t2 at this read? (the table of levels, word by word)"""
    wr = {(w, t) for (t, _), (_, w) in sources.items()}
    direct = {a for a, b in replay.so | wr if b == t3}
    if level == "RC":
        return any(t == t3 and before < at and w == t2 for (t, before), (_, w) in sources.items())
    if level == "RA":
        return t2 in direct
    if level == "TCC":
        return (t2, t3) in _closure(replay.so | wr)
    if level == "SER":
        return place[t2] < place[t3]
    if level == "SI":
        conflicts = {t4 for t4 in replay.live if place[t4] < place[t3] and replay.wrote[t4].keys() & replay.wrote[t3]}
        direct |= conflicts
    return any(place[t2] <= place[t4] for t4 in direct)


def obeys(replay, level, order, sources):
    """premise(t2, t3) implies t2 before t1, for every read of x by t3 from t1 and every other writer t2 of x."""
    place = {INITIAL: -1} | {t: at for at, t in enumerate(order)}
    return all(
        place[t2] < place[t1]
        for (t3, at), (x, t1) in sources.items()
        for t2 in replay.writers[x]
        if t2 not in (t1, t3) and premise(replay, level, place, sources, t2, t3, at)
    )


def built(replay, order):
    """The sources of all reads under a commit order that keeps SO and WR; None if it is none or builds other lists."""
    place = {INITIAL: -1} | {t: at for at, t in enumerate(order)}
    if any(place[a] > place[b] for a, b in replay.so):
        return None
    sources = replay.sources({x: [t for t in order if x in replay.wrote[t]] for x in replay.keys})
    if sources is None or any(place[w] > place[t] for (t, _), (_, w) in sources.items()):
        return None
    return sources


def shows(replay, level, order):
    """Does this very order show the level? For PSI, it gives the version orders."""
    sources = built(replay, order)
    if sources is not None and level == "PSI":
        return _psi(replay, {x: [t for t in order if x in replay.wrote[t]] for x in replay.keys})
    return sources is not None and obeys(replay, level, order, sources)


def _psi(replay, orders):
    """((SO u WR u WW)+ ; RW?) is irreflexive."""
    sources = replay.sources(orders)
    if sources is None:
        return False
    wr = {(w, t) for (t, _), (_, w) in sources.items() if w != INITIAL}
    ww = {pair for order in orders.values() for pair in combinations(order, 2)}
    rw = set()
    for (t, _), (x, w) in sources.items():
        newer = orders[x] if w == INITIAL else orders[x][orders[x].index(w) + 1 :]
        rw |= {(t, t2) for t2 in newer if t2 != t}
    before = _closure(replay.so | wr | ww)
    return not any(a == b or (b, a) in rw for a, b in before)


def _some_version_orders(replay):
    """Orders of the writers, key by key, that build each key's lists."""
    choices = []
    for x in replay.keys:
        orders = [list(order) for order in permutations(replay.writers[x])]
        choices.append([order for order in orders if replay.sources({x: order}) is not None])
    return (dict(zip(replay.keys, chosen, strict=True)) for chosen in product(*choices))


def verdicts(sessions, initial=None):
    """level -> does it hold? CI is not here: it has no order."""
    replay = Replay(sessions, initial)
    held = {"PSI"} if any(_psi(replay, orders) for orders in _some_version_orders(replay)) else set()
    for order in permutations(replay.live):
        sources = built(replay, order)
        if sources is not None:
            held |= {level for level in LEVELS if level not in held | {"PSI"} and obeys(replay, level, order, sources)}
        if len(held | {"PSI"}) == len(LEVELS):
            break
    return {level: level in held for level in LEVELS}
