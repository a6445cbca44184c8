"""Prediction by trying everything, written from docs/predict.md; shares nothing with ``plume_py.reasoning.predict``.

A history is plain data as for ``oracle``: sessions of transactions ``(status, ops)``, here committed or of unknown
outcome, initial value 0, values unique per key.
"""

from itertools import product

import oracle

END = None  # the boundary of a session that runs to its end


class Plain:
    """The observed run: events by session (reads of own writes are none), and who wrote what."""

    def __init__(self, sessions):
        sessions = self.sessions = [[txn for txn in session if _counts(txn, sessions)] for session in sessions]
        self.events = []  # by session: (transaction of the session, place in it, kind, key, value)
        for session in sessions:
            events = [(t, i, *op) for t, (_, ops) in enumerate(session) for i, op in enumerate(ops)]
            own = {(t, i) for t, i, kind, key, _ in events if kind == "r" and _writes(session[t], key, end=i)}
            self.events.append([event for event in events if event[:2] not in own])
        self.writer = {}  # (key, value) -> (session, position)
        self.values = {}  # key -> values, the initial one first
        for s, events in enumerate(self.events):
            for position, (t, i, kind, key, value) in enumerate(events):
                self.values.setdefault(key, [0])
                if kind == "w" and not _writes(sessions[s][t], key, start=i + 1):
                    self.writer[key, value] = (s, position)
                    self.values[key].append(value)

    def known(self, s, p, changed):
        """Is it known what this event saw? Of a read of unknown outcome, only where it was free to choose."""
        t, _, kind, _, _ = self.events[s][p]
        return kind == "w" or self.sessions[s][t][0] == "committed" or (s, p) in changed

    def boundaries(self, strict):
        """Every choice of boundaries: a read position per session (relaxed: the last read of a transaction) or END."""
        for events in self.events:
            reads = [p for p, event in enumerate(events) if event[2] == "r"]
            if not strict:
                reads = [p for p in reads if not any(q > p and events[q][0] == events[p][0] for q in reads)]
            yield [END, *reads]


def _counts(txn, sessions):
    """Committed, or read by somebody who is."""
    committed = [ops for session in sessions for status, ops in session if status == "committed"]
    seen = {op[1:] for ops in committed for op in ops if op[0] == "r"}
    return txn[0] == "committed" or any(op[0] == "w" and op[1:] in seen for op in txn[1])


def _writes(txn, key, start=0, end=None):
    return any(op[:2] == ("w", key) for op in txn[1][start:end])


def runs(sessions, strict):
    """Every run within a boundary, as sessions of committed transactions, and the same with later writes.

    Those are what a boundary transaction wrote behind its boundary in the observed run.
    """
    plain = Plain(sessions)
    for ends in product(*plain.boundaries(strict)):
        inside = [_inside(events, end, strict) for events, end in zip(plain.events, ends, strict=True)]
        free = [
            (s, p)
            for s, (events, end) in enumerate(zip(plain.events, ends, strict=True))
            for p in inside[s]
            if end is not END and events[p][2] == "r" and (p == end if strict else events[p][0] == events[end][0])
        ]
        for values in product(*(plain.values[plain.events[s][p][3]] for s, p in free)):
            run = _run(plain, ends, inside, dict(zip(free, values, strict=True)))
            if run is not None:
                yield run


def _inside(events, end, strict):
    if end is END:
        return range(len(events))
    if strict:
        return range(end + 1)
    return [p for p, event in enumerate(events) if event[0] <= events[end][0]]


def _run(plain, ends, inside, changed):
    """The run with these boundaries and changed reads, or None if it is against the rules."""
    edges = set()
    for s, events in enumerate(plain.events):
        for p in inside[s]:
            t, _, kind, key, value = events[p]
            if t:
                edges.add(((s, t - 1), (s, t)))
            value = changed.get((s, p), value)
            if kind == "r" and value != 0 and plain.known(s, p, changed):
                s1, p1 = plain.writer[key, value]
                t1 = plain.events[s1][p1][0]
                if p1 not in inside[s1] or (s1, t1) == (s, t) or (s1 == s and t1 > t):
                    return None
                edges.add(((s1, t1), (s, t)))
    after = oracle._closure(edges)
    if any(a == b for a, b in after):
        return None
    cut = {(s, plain.events[s][end][0]) for s, end in enumerate(ends) if end is not END}
    late = {b for a, b in after if a in cut}
    run, committed, there = [], [], set()
    for s, session in enumerate(plain.sessions):
        kept, later = [[] for _ in session], [[] for _ in session]
        for p, (t, _, kind, key, value) in enumerate(plain.events[s]):
            if (s, t) in late:
                continue
            if p in inside[s] and not plain.known(s, p, changed):
                there.add((s, t))
            elif p in inside[s]:
                kept[t].append((kind, key, changed.get((s, p), value)))
            elif kind == "w" and (kept[t] or (s, t) in there):
                later[t].append((kind, key, value))
        run.append([("committed", ops) for ops in kept if ops])
        committed.append([("committed", ops + more) for ops, more in zip(kept, later, strict=True) if ops or more])
    return run, committed


def predictable(sessions, level, strict, target="SER", cache=None):
    """Is there a run that keeps the level, later writes included, and breaks the target without them?"""
    cache = {} if cache is None else cache
    return any(
        not _holds(run, target, cache) and _holds(committed, level, cache) for run, committed in runs(sessions, strict)
    )


def _holds(run, level, cache):
    name = repr(run)
    facts = cache.get(name)
    if facts is None:
        facts = cache[name] = oracle.Facts(run, 0)
        facts.verdicts = {}
    if level not in facts.verdicts:
        facts.verdicts[level] = oracle.satisfies(facts, level)
    return facts.verdicts[level]


def random_observed(rng, txns=(2, 5), keys=(1, 2), ops=(1, 3), sessions=(2, 3), again=False):
    """A serial run of a few transactions; ``again``: with reads of own writes, and several writes of a key."""
    names = ["x", "y", "z"][: rng.randint(*keys)]
    latest, made = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    result = [[] for _ in range(rng.randint(*sessions))]
    for _ in range(rng.randint(*txns)):
        body, wrote = [], {}
        for _ in range(rng.randint(*ops)):
            key = rng.choice(names)
            if key in wrote and not again:
                continue
            if rng.random() < 0.5:
                body.append(("r", key, wrote.get(key, latest[key])))
            else:
                made[key] += 1
                wrote[key] = made[key]
                body.append(("w", key, made[key]))
        for kind, key, value in body:
            if kind == "w":
                latest[key] = value
        rng.choice(result).append(("committed", body))
    return [[txn for txn in session if txn[1]] for session in result]
