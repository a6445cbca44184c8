"""Histories of a few transactions: fixed, random, and all histories of a given size."""

from itertools import product

import oracle
import oracle_mixed

from plume_py import HistoryBuilder


def build(sessions, initial=0, times=None):
    builder = HistoryBuilder(initial)
    spans = iter(times or ())
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            begin, end = next(spans, (None, None))
            builder.add(s, ops, status=status, begin=begin, end=end)
    return builder.build()


def random_times(rng, sessions):
    """(begin, end) of each transaction, as its session has them; now and then one is not known."""
    longest, known = rng.choice((4, 8, 12, 40)), rng.choice((1.0, 1.0, 0.8))
    times = []
    for session in sessions:
        moments = sorted(rng.randrange(longest) for _ in range(2 * len(session)))
        spans = zip(moments[::2], moments[1::2], strict=True)
        times += [tuple(m if rng.random() < known else None for m in span) for span in spans]
    return times


def with_levels(sessions, initial, rng):
    """The history, each transaction with a level of its own."""
    builder = HistoryBuilder(initial)
    for number, session in enumerate(sessions):
        builder.session(number)
        for status, ops in session:
            builder.add(number, ops, status=status, level=rng.choice(oracle_mixed.LEVELS))
    return builder.build()


def history(*sessions):
    """``history(["rx0 wx1"], ["rx0 wx2"])``: sessions of transactions of one-letter keys."""
    return build(
        [
            [("committed", [(op[0], op[1], int(op[2:])) for op in txn.split()]) for txn in session]
            for session in sessions
        ]
    )


def spelled(patterns):
    """The oracle's names of list violations in the checker's words."""
    names = {
        "duplicate": "duplicate-element",
        "torn": "torn-append",
        "incompatible": "incompatible-order",
        "version order": "version-order-cycle",
    }
    return {names.get(pattern, pattern) for pattern in patterns}


ECHOES = [
    [("committed", [("w", "x", 3)])],
    [("committed", [("r", "x", 3), ("w", "x", 9), ("w", "y", 1)])],
    [("committed", [("r", "x", 3), ("r", "y", 1)])],
    *([("committed", [("r", "x", 9)])] for _ in range(3)),
]


def random_lists(rng):
    """Tiny list-append histories: mostly prefixes of one order per key, now and then a mangled list."""
    keys = ["x", "y"][: rng.randint(1, 2)]
    order = {x: [] for x in keys}
    plan = []
    for _ in range(rng.randint(2, 5)):
        body = []
        for _ in range(rng.randint(1, 3)):
            x = rng.choice(keys)
            if rng.random() < 0.5:
                order[x].append(len(order[x]) + 1)
                body.append(("append", x, order[x][-1]))
            else:
                body.append(("r", x, None))
        plan.append(body)
    for x in keys:
        if rng.random() < 0.3:
            rng.shuffle(order[x])
    sessions = [[] for _ in range(rng.randint(1, 3))]
    for body in plan:
        ops = [(kind, x, random_prefix(rng, order[x]) if kind == "r" else value) for kind, x, value in body]
        status = rng.choice(("aborted", "unknown")) if rng.random() < 0.1 else "committed"
        rng.choice(sessions).append((status, ops))
    return sessions


def random_prefix(rng, order):
    seen = order[: rng.randint(0, len(order))]
    if rng.random() < 0.1:
        seen = [*seen, rng.randint(1, 6)]
    if len(seen) > 1 and rng.random() < 0.05:
        seen = seen[::-1]
    return tuple(seen)


OPERATIONS = [("w", "x"), ("w", "y"), ("r", "x"), ("r", "y")]


BODIES = [body for length in (1, 2) for body in product(OPERATIONS, repeat=length)]


SHAPES = {1: [(1,)], 2: [(2,), (1, 1)], 3: [(3,), (2, 1), (1, 1, 1)]}


def all_histories(transactions):
    """All histories of so many transactions of 1 or 2 operations over x and y, up to the names of keys and sessions.

    A read sees 0, or any value written to its key anywhere, its own transaction included.
    """
    for bodies in product(BODIES, repeat=transactions):
        flat = [op for body in bodies for op in body]
        if flat[0][1] == "y":
            continue  # the same with x and y exchanged
        written = {"x": 0, "y": 0}
        values = []
        for kind, x in flat:
            written[x] += kind == "w"
            values.append(written[x] if kind == "w" else None)
        choices = [[v] if kind == "w" else range(written[x] + 1) for (kind, x), v in zip(flat, values, strict=True)]
        for chosen in product(*choices):
            ops = [(kind, x, value) for (kind, x), value in zip(flat, chosen, strict=True)]
            for shape in SHAPES[transactions]:
                yield arrange(bodies, ops, shape)


def arrange(bodies, ops, shape):
    sessions, at, txn = [], 0, 0
    for size in shape:
        session = []
        for body in bodies[txn : txn + size]:
            session.append(("committed", ops[at : at + len(body)]))
            at += len(body)
        txn += size
        sessions.append(session)
    return sessions


def close(rng):
    """Histories that nearly always keep the weak levels, so that the strong engine has to decide."""
    return oracle.random_history(rng, wild=0.01, failed=0.05)


def crowded(rng):
    """A few keys, many blind writes: orders of writers are left open."""
    return oracle.random_history(rng, txns=(5, 7), keys=(2, 3), sessions=(3, 5), ops=(1, 3), wild=0, failed=0.02)


def random_order(rng, sessions):
    """All (session, place) in some order that keeps each session's."""
    left = [s for s, session in enumerate(sessions) for _ in session]
    if rng.random() < 0.7:
        rng.shuffle(left)
    elif rng.random() < 0.5:
        left.reverse()
    taken = [0] * len(sessions)
    for s in left:
        yield s, taken[s]
        taken[s] += 1
