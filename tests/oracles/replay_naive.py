"""Decide by the definitions alone whether a commit order is a witness: every list is built in that order.

Histories are those of ``oracle``: sessions of transactions ``(status, ops)``; the initial value is 0, that of lists the
empty list. Also tiny random histories of lists.
"""

INITIAL = -1
LEVELS = ("RC", "RA", "TCC", "PC", "PSI", "SI", "SER")


def closure(pairs):
    """The transitive closure of a relation."""
    found = set(pairs)
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return found


class Naive:
    """A history, and who counts in it."""

    def __init__(self, sessions):
        self.txns = [txn for session in sessions for txn in session]
        self.session = [s for s, session in enumerate(sessions) for _ in session]
        made = {(x, v): t for t, (_, ops) in enumerate(self.txns) for kind, x, v in ops if kind != "r"}
        committed = {t for t, (status, _) in enumerate(self.txns) if status == "committed"}
        seen = {
            made.get((x, v))
            for t in committed
            for kind, x, value in self.txns[t][1]
            if kind == "r"
            for v in (value if isinstance(value, list) else [value])
        }
        self.live = sorted(committed | {t for t in seen if t is not None and self.txns[t][0] == "unknown"})
        self.so = {(a, b) for a in self.live for b in self.live if a < b and self.session[a] == self.session[b]}

    def appends(self, t, x):
        return [v for kind, y, v in self.txns[t][1] if kind != "r" and y == x]

    def version(self, order, u, x):
        """The list of x as u leaves it."""
        items = []
        for t in order[: order.index(u) + 1] if u != INITIAL else ():
            items += self.appends(t, x)
        return items

    def sources(self, order, t):
        """(x, whom it was read from) of each read that saw another, in program order; None if a read is impossible."""
        found = []
        earlier = order[: order.index(t)]
        for position, (kind, x, value) in enumerate(self.txns[t][1]):
            if kind != "r" or self.txns[t][0] != "committed":
                continue
            own = [v for k, y, v in self.txns[t][1][:position] if k != "r" and y == x]
            writers = [INITIAL, *(u for u in earlier if self.appends(u, x))]
            if isinstance(value, list):
                if own:
                    writers = writers[-1:]
                fitting = [u for u in writers if self.version(order, u, x) + own == value]
            elif own:
                if value != own[-1]:
                    return None
                continue
            else:
                fitting = [u for u in writers if value == (0 if u == INITIAL else self.appends(u, x)[-1])]
            if not fitting:
                return None
            found.append((x, fitting[0]))
        return found

    def shows(self, order):
        """The levels that ``order`` shows."""
        order = list(order)
        reads = {t: self.sources(order, t) for t in order}
        before = {(a, b) for i, a in enumerate(order) for b in order[i + 1 :]}
        if None in reads.values() or not self.so <= before:
            return set()
        wr = {(u, t) for t in order for _, u in reads[t] if u != INITIAL}
        return {level for level in LEVELS if self._obeys(level, order, reads, before, self.so | wr)}

    def _obeys(self, level, order, reads, before, direct):
        ahead = {(a, b) for a, b in before} | {(a, a) for a in order} | {(INITIAL, a) for a in order}
        if level == "PSI":
            return self._is_parallel_snapshot(order, reads, before, direct)
        causal = closure(direct)
        for t3 in order:
            for position, (x, t1) in enumerate(reads[t3]):
                for t2 in order:
                    if t2 in (t1, t3) or not self.appends(t2, x) or (t2, t1) in ahead:
                        continue
                    premise = {
                        "RC": t2 in [u for _, u in reads[t3][:position]],
                        "RA": (t2, t3) in direct,
                        "TCC": (t2, t3) in causal,
                        "PC": any((t4, t3) in direct and (t2, t4) in ahead for t4 in order),
                        "SI": any(
                            (t2, t4) in ahead and ((t4, t3) in direct or (self._collide(t4, t3) and (t4, t3) in before))
                            for t4 in order
                        ),
                        "SER": (t2, t3) in before,
                    }
                    if premise[level]:
                        return False
        return True

    def _is_parallel_snapshot(self, order, reads, before, direct):
        ww = {(a, b) for a, b in before if self._collide(a, b)}
        rw = {
            (t3, t2)
            for t3 in order
            for x, t1 in reads[t3]
            for t2 in order
            if t2 != t3 and self.appends(t2, x) and (t1 == INITIAL or (t1, t2) in before)
        }
        return not any((b, a) in rw for a, b in closure(direct | ww))

    def _collide(self, a, b):
        return {y for k, y, _ in self.txns[a][1] if k != "r"} & {y for k, y, _ in self.txns[b][1] if k != "r"}


def random_lists(rng, txns=(2, 5)):
    """A run of transactions one after the other, some on old snapshots; then, mostly, a list is spoilt a little."""
    keys = ["x", "y"][: rng.randint(1, 2)]
    sessions = [[] for _ in range(rng.randint(1, 4))]
    state = {x: [] for x in keys}
    history = [state]  # the state at first, and after each transaction that counts
    fresh = dict.fromkeys(keys, 0)
    old, torn = (
        rng.choice((0, 0.3, 0.8)),
        rng.choice((0, 0, 0.2, 0.7)),
    )  # how often a snapshot, or a single read, is old
    for _ in range(rng.randint(*txns)):
        status = rng.choice(("committed",) * 8 + ("unknown", "aborted"))
        seen = rng.choice(history) if rng.random() < old else state
        done, own = [], {x: [] for x in keys}
        for _ in range(rng.randint(1, 4)):
            x = rng.choice(keys)
            if rng.random() < 0.55:
                fresh[x] += 1
                done.append(("append", x, fresh[x]))
                own[x].append(fresh[x])
            else:
                base = rng.choice([*history, seen])[x] if rng.random() < torn else seen[x]
                done.append(("r", x, (state[x] if own[x] else base) + own[x]))
        rng.choice(sessions).append((status, done))
        if status == "committed" or (status == "unknown" and rng.random() < 0.5):
            state = {x: state[x] + own[x] for x in keys}
            history.append(state)
    if rng.random() < 0.6:
        _spoil(rng, sessions, fresh)
    return sessions


def _spoil(rng, sessions, fresh):
    """Change one list, or take one append out of all of them."""
    reads = [
        (ops, i)
        for session in sessions
        for _, ops in session
        for i, (kind, _, value) in enumerate(ops)
        if kind == "r" and value
    ]
    if not reads:
        return
    ops, i = rng.choice(reads)
    _, x, items = ops[i]
    at = rng.randrange(len(items))
    how = rng.randrange(6)
    if how == 0:
        gone = items[at]
        for some, j in reads:
            if some[j][1] == x:
                some[j] = ("r", x, [v for v in some[j][2] if v != gone])
        return
    changed = list(items)
    if how == 1:
        del changed[at]
    elif how == 2:
        rng.shuffle(changed)
    elif how == 3:
        changed.insert(rng.randint(0, len(items)), rng.randint(1, fresh[x] + 1))
    elif how == 4:
        changed = changed[:at]
    else:
        other = rng.randrange(len(items))
        changed[at], changed[other] = changed[other], changed[at]
    ops[i] = ("r", x, changed)
