"""A brute-force oracle for tiny histories, written from the definitions alone and sharing nothing with the engine.

A history is plain data: a list of sessions, each a list of transactions ``(status, ops)``, where an operation is
``("r" | "w" | "append", key, value)`` and a list read has a list or tuple as its value. Transactions are numbered
session by session, as in the engine, and ``INITIAL`` stands for the initial state. Which order between transactions
counts is said literally: pairs of one session, and pairs of which one had ended before the other began.

A level holds when some total commit order obeys its axiom, so commit orders are simply tried, one transaction at a
time. Every axiom speaks about what precedes the reader t3; it is therefore judged when t3 is placed, and an order that
already breaks it is not continued. For PSI all version orders are tried, key by key.
"""

from itertools import combinations, permutations

import oracle_lists

LEVELS = ("CI", "RC", "RA", "TCC", "PC", "PSI", "SI", "SER")
INITIAL = -1

# What spoils every level but CI; the last four are the list violations that have no letter.
BASE = frozenset("abcdefg") | {"duplicate", "torn", "incompatible", "version order"}
LETTERS = {"CI": frozenset("j"), "RC": BASE | set("hi"), "RA": BASE | set("hijkl"), "TCC": BASE | set("hijklmn")}


class Facts:
    """What a history says by itself: who read what from whom, SO, WR, CO, and the patterns a-g and j."""

    def __init__(self, sessions, initial=0, declared=True, order="session", times=None, first=False):
        """``order``: none, session, realtime, realtime-per-key; ``times``: (begin, end) of each, None if not known.

        ``first``: the first transaction is the initial state if it can be (decision 3).
        """
        self.order, self.times = order, times
        self.txns = [txn for session in sessions for txn in session]
        self.session = [s for s, session in enumerate(sessions) for _ in session]
        self.initial = initial
        self.init_txn = self._find_init_txn(sessions, declared) if first else None
        self.found = set()
        self.writes = [_writes(ops) for _, ops in self.txns]
        self.writer = self._find_writers()
        self.live = self._find_live()
        self.reads = {t: [] for t in self.live}  # (key, writer), program order, what others wrote only
        self.lists = {}  # key -> its clean lists, each followed by what its reader adds
        for t in self.live:
            if self.txns[t][0] == "committed":
                self._judge_reads(t)
        self._relate()

    def _find_init_txn(self, sessions, declared):
        """The transaction that sets up the initial state, if the history carries one (decision 3)."""
        if self.times and any(end is not None and self.times[0][0] is not None and end < self.times[0][0]
                              for _, end in self.times[1:]):  # fmt: skip
            return None
        busy = [session for session in sessions if session]
        if len(busy) < 2 or len(busy[0]) != 1 or busy[0][0][0] != "committed":
            return None
        ops = busy[0][0][1]
        keys = {op[1] for status, other in self.txns for op in other if status == "committed"}
        if any(op[0] != "w" for op in ops) or sorted(map(repr, keys)) != sorted(repr(op[1]) for op in ops):
            return None
        if declared and any(op[2] != self.initial for op in ops):
            return None
        written = {(op[1], op[2]) for _, other in self.txns for op in other if op[0] != "r"}
        for status, other in self.txns:
            for kind, x, value in other:
                if status == "committed" and kind == "r" and value == self.initial and (x, value) not in written:
                    return None
        return 0

    def _find_writers(self):
        """(key, value) -> writer; values that two transactions wrote must not be read (decision 5)."""
        writer, twice = {}, set()
        for t, (_, ops) in enumerate(self.txns):
            for kind, x, value in ops:
                if kind != "r" and writer.setdefault((x, value), t) != t:
                    twice.add((x, value))
        for status, ops in self.txns:
            for kind, x, value in ops:
                if kind == "r" and status == "committed" and twice.intersection((x, v) for v in _seen(value)):
                    raise ValueError(f"ambiguous read of {x!r}")
        return writer

    def _find_live(self):
        """Committed transactions, and those of unknown outcome from which a committed one read (decision 4)."""
        live = {t for t, (status, _) in enumerate(self.txns) if status == "committed"}
        seen = {(x, v) for t in live for kind, x, value in self.txns[t][1] if kind == "r" for v in _seen(value)}
        read_from = {self.writer[version] for version in seen if version in self.writer}
        unknown = {t for t in read_from if self.txns[t][0] == "unknown"}
        return sorted((live | unknown) - {self.init_txn})

    def _judge_reads(self, t):
        ops = self.txns[t][1]
        for position, (kind, x, value) in enumerate(ops):
            if kind == "r":
                judge = self._judge_list if isinstance(value, list | tuple) else self._judge_read
                judge(t, x, value, _written(ops[:position], x), _written(ops[position:], x))
        for x in {x for x, _ in self.reads[t]}:
            if len({t1 for y, t1 in self.reads[t] if y == x}) > 1:
                self.found.add("j")

    def _judge_read(self, t, x, value, own, later):
        if value in own:
            if value != own[-1]:
                self.found.add("e")
            return
        if value in later:
            self.found.add("c")
            return
        t1 = self.writer.get((x, value), INITIAL)
        if t1 == self.init_txn:
            t1 = INITIAL
        elif t1 == INITIAL and value != self.initial:
            self.found.add("a")
            return
        elif t1 != INITIAL and self.txns[t1][0] == "aborted":
            self.found.add("b")
            return
        elif t1 != INITIAL and self.writes[t1][x] != value:
            self.found.add("f")
        if own:
            self.found.add("d")
        self.reads[t].append((x, t1))

    def _judge_list(self, t, x, items, own, later):
        """A list is read from the writer of the last element that others appended (decision 6)."""
        part, defects = oracle_lists.split(list(items), own, later)
        writers = {v: self.writer.get((x, v)) for v in part}
        appends = {v: _written(self.txns[w][1], x) for v, w in writers.items() if w is not None}
        aborted = {v for v, w in writers.items() if w is not None and self.txns[w][0] == "aborted"}
        defects |= oracle_lists.judge(part, appends.get, aborted.__contains__)
        self.found |= defects
        if defects <= {"f"}:
            self.lists.setdefault(x, []).append(part + own + later if own else part)
        if not part:
            self.reads[t].append((x, INITIAL))
        elif part[-1] in appends.keys() - aborted:
            self.reads[t].append((x, writers[part[-1]]))

    def _relate(self):
        self.writers = {}
        for t in self.live:
            for x in self.writes[t]:
                self.writers.setdefault(x, []).append(t)
        self._order_lists()
        self.so = set()
        if self.order != "none":
            self.so = {(a, b) for a, b in combinations(self.live, 2) if self.session[a] == self.session[b]}
        if self.order.startswith("realtime"):
            self.so |= {(a, b) for a, b in permutations(self.live, 2) if self._ended_before(a, b)}
        self.wr = {(t1, t3) for t3 in self.live for _, t1 in self.reads[t3] if t1 != INITIAL}
        self.co = _closure(self.so | self.wr)
        if any(a == b for a, b in self.co):
            self.found.add("g")
        elif any(a == b for a, b in _closure(self.co | self.ww)):
            self.found.add("version order")

    def _ended_before(self, a, b):
        end, begin = self.times[a][1], self.times[b][0]
        if self.txns[a][0] == "unknown" or end is None or begin is None or end >= begin:
            return False
        touched = [{x for _, x, _ in self.txns[t][1]} for t in (a, b)]
        return self.order == "realtime" or bool(touched[0] & touched[1])

    def _order_lists(self):
        """What lists tell about the order of writers, at every level from RC up."""
        self.ww, self.unseen = set(), set()
        for x, lists in self.lists.items():
            order = oracle_lists.KeyOrder(lists, lambda v, x=x: self.writer[x, v])
            self.ww |= set(order.shown())
            self.unseen |= order.unseen(self.writers.get(x, ()))
            if not order.compatible:
                self.found.add("incompatible")
        self.ww |= self.unseen

    def others(self, x, t1, t3):
        """Every t2 of an axiom: a writer of x other than t1 and t3."""
        return [t2 for t2 in self.writers.get(x, ()) if t2 not in (t1, t3)]


def _seen(value):
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _writes(ops):
    """key -> last value written."""
    return {x: value for kind, x, value in ops if kind != "r"}


def _written(ops, x):
    """All that these operations wrote or appended to x."""
    return [value for kind, y, value in ops if kind != "r" and y == x]


def _closure(pairs):
    """The transitive closure of a relation."""
    after = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)
    for middle in list(after):
        for reached in after.values():
            if middle in reached:
                reached |= after[middle]
    return {(a, b) for a, reached in after.items() for b in reached}


def triples(facts, level):
    """Every (t1, t2, t3, x) for which the premise of RC, RA or TCC holds."""
    found = set()
    for t3 in facts.live:
        for position, (x, t1) in enumerate(facts.reads[t3]):
            if level == "RC":
                before = {t2 for _, t2 in facts.reads[t3][:position]}
            else:
                relation = facts.so | facts.wr if level == "RA" else facts.co
                before = {t2 for t2 in facts.live if (t2, t3) in relation}
            found |= {(t1, t2, t3, x) for t2 in facts.others(x, t1, t3) if t2 in before}
    return found


def named_triples(facts):
    """(letter, t1, t2, t3, x) for every triple that breaks a weak level, by its one name (decision 2).

    A non-repeatable read is therefore j, and its triples are k or l as well: it is fractured, too. A triple whose t2
    comes before t1 by causality alone contradicts nothing, and has no name.
    """
    named = {}
    for level, causal, forced in (("RC", "h", "i"), ("RA", "k", "l"), ("TCC", "m", "n")):
        demands = triples(facts, level)
        order = _closure(facts.co | facts.ww | {(t2, t1) for t1, t2, _, _ in demands if t1 != INITIAL})
        for triple in demands - named.keys():
            t1, t2, _, _ = triple
            if t1 == INITIAL or ((t1, t2) in order and (t2, t1) not in facts.co):
                named[triple] = causal if t1 == INITIAL or (t1, t2) in facts.co else forced
    return {(letter, *triple) for triple, letter in named.items()}


def patterns(sessions, initial=0, declared=True):
    """Every pattern of the history: the letters a to n (and the list violations, which have names)."""
    return patterns_of(Facts(sessions, initial, declared))


def patterns_of(facts):
    """The same, of what it says by itself."""
    return frozenset(facts.found | {name[0] for name in named_triples(facts)})


def taps(sessions, initial=0, declared=True):
    """level -> the patterns that count against it."""
    found = patterns(sessions, initial, declared)
    return {level: found & LETTERS.get(level, LETTERS["TCC"]) for level in LEVELS}


def _some_commit_order(facts, obeys, known):
    """A total order that extends the known one, every member of which obeys; or None."""
    before = {t: set() for t in facts.live}
    for a, b in known:
        before[b].add(a)
    place = {INITIAL: -1}

    def extend():
        if len(place) > len(facts.live):
            return True
        for t in facts.live:
            if t not in place and before[t] <= place.keys() and obeys(place, t):
                place[t] = len(place) - 1
                if extend():
                    return True
                del place[t]
        return False

    return sorted(facts.live, key=place.get) if extend() else None


def _static(facts, level):
    demands = {t: set() for t in facts.live}
    for t1, t2, t3, _ in triples(facts, level):
        demands[t3].add((t1, t2))
    return lambda place, t3: all(place[t2] < place[t1] for t1, t2 in demands[t3])


def _snapshot(facts, level):
    """PC, SI and SER: the premise holds for every t2 up to some horizon of the commit order."""
    direct = facts.so | facts.wr

    def in_snapshot(t4, t3):
        if level == "SER" or (t4, t3) in direct:
            return True
        return level == "SI" and not facts.writes[t4].keys().isdisjoint(facts.writes[t3])

    def obeys(place, t3):
        horizon = max((at for t4, at in place.items() if t4 != INITIAL and in_snapshot(t4, t3)), default=-1)
        for x, t1 in facts.reads[t3]:
            for t2 in facts.others(x, t1, t3):
                if t2 in place and place[t1] < place[t2] <= horizon:
                    return False
        return True

    return obeys


def commit_order(facts, level):
    """A commit order that shows ``level`` (RC, RA, TCC, PC, SI, SER), or None."""
    if facts.found & BASE:
        return None
    axiom = _static if level in ("RC", "RA", "TCC") else _snapshot
    return _some_commit_order(facts, axiom(facts, level), facts.co | facts.ww)


def version_orders(facts):
    """Version orders of all keys (a dict) that show PSI, or None."""
    if facts.found & BASE:
        return None
    return _order_keys(facts, list(facts.writers), {}, facts.co | facts.ww)


def _order_keys(facts, keys, chosen, known):
    if not keys:
        return chosen
    x, rest = keys[0], keys[1:]
    for versions in permutations(facts.writers[x]):
        if any((b, a) in known for a, b in combinations(versions, 2)):
            continue
        order = _closure(known | set(combinations(versions, 2)))
        so_far = {**chosen, x: versions}
        if not any(a == b for a, b in order) and not any((b, a) in order for a, b in _rw(facts, so_far)):
            found = _order_keys(facts, rest, so_far, order)
            if found is not None:
                return found
    return None


def _rw(facts, chosen):
    """Anti-dependencies: t3 read x from t1 and t2 made a later version."""
    for t3 in facts.live:
        for x, t1 in facts.reads[t3]:
            versions = chosen.get(x, ())
            later = versions if t1 == INITIAL else versions[versions.index(t1) + 1 :] if t1 in versions else ()
            yield from ((t3, t2) for t2 in later if t2 != t3)


def satisfies(facts, level):
    if level == "CI":
        return "j" not in facts.found
    if level == "PSI":
        return version_orders(facts) is not None
    return commit_order(facts, level) is not None


def verdicts(sessions, initial=0, declared=True):
    """level -> does it hold, whether the first transaction is an ordinary one or, if it can be, the initial state?"""
    ways = [Facts(sessions, initial, declared, first=first) for first in (False, True)]
    return {level: any(satisfies(facts, level) for facts in ways) for level in LEVELS}


def from_document(document):
    """(sessions, initial, declared) of a native JSON document."""
    sessions = [
        [(txn.get("status", "committed"), [tuple(op) for op in txn["ops"]]) for txn in session]
        for session in document["sessions"]
    ]
    initial = document.get("initial")
    return sessions, None if isinstance(initial, list) else initial, "initial" in document


def random_history(rng, *, txns=(2, 6), keys=(1, 3), sessions=(1, 4), ops=(1, 4), wild=0.06, failed=0.15):
    """A tiny history with initial value 0 and values unique per key.

    Transactions are made in a random interleaving of the sessions. A read sees an own write if there is one; else,
    either a final write of any earlier transaction (or the initial state), or the newest in a snapshot, so that strong
    levels are often kept. ``wild`` is the share of reads that see anything: writes of later, aborted or unknown
    transactions, intermediate writes, values that nobody wrote. ``failed`` transactions are aborted or unknown.
    """
    names = ["x", "y", "z"][: rng.randint(*keys)]
    plan, made = _random_plan(rng, names, max(rng.randint(*txns), rng.randint(*txns)), ops)
    result = [[] for _ in range(rng.randint(*sessions))]
    earlier = []  # (session, final writes)
    for body in plan:
        s = rng.randrange(len(result))
        snapshot = _random_snapshot(rng, s, earlier) if rng.random() < 0.7 else None
        done = []
        for kind, x, value in body:
            if kind == "r":
                value = _random_value(rng, x, done, snapshot, earlier)
                if rng.random() < wild:
                    value = rng.randint(0, made[x] + 1)
            done.append((kind, x, value))
        status = rng.choice(("aborted", "unknown")) if rng.random() < failed else "committed"
        if status != "aborted":
            earlier.append((s, _writes(done)))
        result[s].append((status, done))
    return result


def _random_plan(rng, names, txns, ops):
    made = dict.fromkeys(names, 0)
    plan = []
    for _ in range(txns):
        share = rng.choice((0, 0.4, 0.6, 1))  # of writes: read-only and blind transactions are what forks are made of
        body = []
        for _ in range(max(rng.randint(*ops), rng.randint(*ops))):
            x = rng.choice(names)
            write = rng.random() < share
            made[x] += write
            body.append(("w", x, made[x]) if write else ("r", x, None))
        plan.append(body)
    return plan, made


def _random_snapshot(rng, session, earlier):
    """key -> newest value: of a prefix, or of whatever happened to arrive; always of the own session."""
    prefix = rng.randint(0, len(earlier)) if rng.random() < 0.5 else None
    snapshot = {}
    for at, (s, writes) in enumerate(earlier):
        if s == session or (at < prefix if prefix is not None else rng.random() < 0.5):
            snapshot.update(writes)
    return snapshot


def _random_value(rng, x, done, snapshot, earlier):
    own = _writes(done)
    if x in own:
        return own[x]
    if snapshot is not None:
        return snapshot.get(x, 0)
    return rng.choice([0, *(writes[x] for _, writes in earlier if x in writes)])
