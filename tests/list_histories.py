"""Random tiny histories of lists: mostly correct ones, built from a simulated run, and ones with a planted defect.

A run has an order of the transactions for each key (the commit order, now and then another), and each transaction sees
what a database of some level would show it: all before it, a snapshot, a causal past, or anything. A read shows what
was appended up to the last writer that is seen, and own appends at the end. Then lists are mangled: ``DEFECTS`` has one
function per way of lying. A history may have a register beside its lists. Its shape is that of ``oracle``; no
value of a key has two writers, and the initial value is None.
"""

from dataclasses import dataclass, field

LISTS, REGISTER = ("x", "y", "u"), "z"
MODELS = ("serial", "snapshot", "snapshot", "causal", "causal", "stale", "any")


@dataclass
class Run:
    """A plan of (session, status, operations), and what each transaction sees."""

    plan: list
    order: dict  # key -> the transactions whose writes count, in version order
    model: str
    sees: list = field(default_factory=list)


def random_list_history(rng, *, txns=(2, 6), defects=0.4, failed=0.15, register=0.12):
    """Sessions of (status, operations); with a probability of ``defects`` something in it is wrong on purpose."""
    run = _random_run(rng, max(rng.randint(*txns), rng.randint(*txns)), failed, register)
    sessions = [[] for _ in range(1 + max(s for s, _, _ in run.plan))]
    for t, (s, status, _) in enumerate(run.plan):
        sessions[s].append((status, _with_values(rng, run, t)))
    while rng.random() < defects:
        rng.choice(DEFECTS)(rng, sessions)
        defects /= 2
    return [[(status, [tuple(op) for op in ops]) for status, ops in session] for session in sessions]


def _random_run(rng, txns, failed, register):
    keys = [*LISTS[: rng.choice((1, 2, 2, 2, 3))], *([REGISTER] if rng.random() < register else [])]
    sessions, made, plan = rng.randint(1, 5), dict.fromkeys(keys, 0), []
    for _ in range(txns):
        status = rng.choice(("aborted", "unknown")) if rng.random() < failed else "committed"
        plan.append((rng.randrange(sessions), status, _random_body(rng, keys, made)))
    order = {}
    for x in keys:
        writes = [t for t, (_, _, ops) in enumerate(plan) if any(op[:2] in (("append", x), ("w", x)) for op in ops)]
        order[x] = [t for t in writes if plan[t][1] == "committed" or (plan[t][1] == "unknown" and rng.random() < 0.5)]
        if rng.random() < 0.08:
            rng.shuffle(order[x])
    return Run(plan, order, rng.choice(MODELS))


def _random_body(rng, keys, made):
    """Anything, or reads of all keys and then some writes: what write skews and forks are made of. Then a look back."""
    share = rng.choice((0, 0.4, 0.6, 1))
    wanted = [(rng.choice(keys), rng.random() < share) for _ in range(max(rng.randint(1, 4), rng.randint(1, 4)))]
    if rng.random() < 0.5:
        reads = [(x, False) for x in rng.sample(keys, len(keys))]
        wanted = reads + [(rng.choice(keys), True) for _ in range(rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.3:
        wanted.append((wanted[-1][0], False))
    body = []
    for x, write in wanted:
        again = ("append", x, made[x]) in body and rng.random() < 0.03  # the same element twice by one transaction
        made[x] += write and not again
        body.append(("r" if not write else "w" if x == REGISTER else "append", x, made[x] if write else None))
    return body


def _with_values(rng, run, t):
    """The operations of t with what its reads show."""
    run.sees.append(_visible(rng, run, t))
    done = []
    for kind, x, value in run.plan[t][2]:
        if kind == "r":
            seen = _elements(run, _seen_writers(rng, run, t, x, bool(_own(done, x))), x) + _own(done, x)
            value = list(seen) if x != REGISTER else seen[-1] if seen else None
        done.append((kind, x, value))
    return done


def _visible(rng, run, t):
    """The transactions that t sees: its session, often all whose lists it adds to, and some others."""
    if run.model == "serial":
        return set(range(t))
    sees = {u for u in range(t) if run.plan[u][0] == run.plan[t][0]}
    for order in run.order.values():
        if t in order and rng.random() < 0.6:
            sees |= {u for u in order if u < t}
    if run.model == "causal":
        sees |= {u for u in range(t) if rng.random() < 0.3}
        return sees.union(*(run.sees[u] for u in sees))
    least = max(sees, default=-1) + 1
    return set(range(rng.randint(least, rng.choice((least, t, t)))))


def _seen_writers(rng, run, t, x, added):
    """The writers of x up to the last that t sees; what t adds to is mostly all that comes before it."""
    order = run.order[x]
    before = order[: order.index(t)] if t in order else order
    if added and rng.random() < 0.9:
        return before
    sees = run.sees[t]
    if run.model == "any" or (run.model == "stale" and rng.random() < 0.3):
        sees = set(range(rng.randint(0, t + 2 * (rng.random() < 0.2))))
    return before[: max((n for n, u in enumerate(before, 1) if u in sees), default=0)]


def _elements(run, writers, x):
    return [v for u in writers for v in _own(run.plan[u][2], x)]


def _own(ops, x):
    return [value for kind, y, value in ops if kind != "r" and y == x]


# Ways of lying. Each changes the lists that were read, in place, if the history has the right ones


def _reads(sessions, enough=0):
    """(operations, index) of every read of a list with enough elements."""
    return [
        (ops, i) for session in sessions for _, ops in session for i, (kind, x, value) in enumerate(ops)
        if kind == "r" and x != REGISTER and len(value) >= enough
    ]  # fmt: skip


def _some_read(rng, sessions, change, enough=0):
    """Change one list."""
    found = _reads(sessions, enough)
    if found:
        ops, i = rng.choice(found)
        x = ops[i][1]
        ops[i] = ("r", x, change(list(ops[i][2])))


def _appends(sessions, wanted=("committed", "aborted", "unknown")):
    return [
        (x, value) for session in sessions for status, ops in session if status in wanted
        for kind, x, value in ops if kind == "append"
    ]  # fmt: skip


def lose(rng, sessions):
    """Nobody's list shows some append."""
    if _appends(sessions):
        x, value = rng.choice(_appends(sessions))
        for ops, i in _reads(sessions):
            if ops[i][1] == x:
                ops[i] = ("r", x, [v for v in ops[i][2] if v != value])


def drop(rng, sessions):
    """One list lacks an element."""
    _some_read(rng, sessions, lambda items: _without(items, rng.randrange(len(items))), 1)


def _without(items, i):
    return items[:i] + items[i + 1 :]


def swap(rng, sessions):
    """Two elements have changed places, in one list or in all that show both."""
    found = _reads(sessions, 2)
    if not found:
        return
    ops, i = rng.choice(found)
    x, items = ops[i][1], ops[i][2]
    a, b = rng.sample(items, 2)
    everywhere = rng.random() < 0.5
    for other, j in found:
        if (other is ops and j == i) or (everywhere and other[j][1] == x and {a, b} <= set(other[j][2])):
            other[j] = ("r", x, [b if v == a else a if v == b else v for v in other[j][2]])


def move(rng, sessions):
    """An element stands elsewhere: its block is split, or out of place."""

    def change(items):
        value = items.pop(rng.randrange(len(items)))
        items.insert(rng.randint(0, len(items)), value)
        return items

    _some_read(rng, sessions, change, 2)


def cut(rng, sessions):
    """A list ends early, maybe within a block, maybe before the own appends."""
    _some_read(rng, sessions, lambda items: items[: rng.randrange(len(items))], 1)


def repeat(rng, sessions):
    def change(items):
        items.insert(rng.randint(0, len(items)), rng.choice(items))
        return items

    _some_read(rng, sessions, change, 1)


def forget_own(rng, sessions):
    """A list lacks own appends that were made before."""
    found = [(ops, i) for ops, i in _reads(sessions, 1) if set(_own(ops[:i], ops[i][1])) & set(ops[i][2])]
    if found:
        ops, i = rng.choice(found)
        own = _own(ops[:i], ops[i][1])
        gone = rng.sample(own, rng.randint(1, len(own)))
        ops[i] = ("r", ops[i][1], [v for v in ops[i][2] if v not in gone])


def foresee(rng, sessions):
    """A list shows an own append that is made only later."""
    found = [(ops, i) for ops, i in _reads(sessions) if _own(ops[i:], ops[i][1])]
    if found:
        ops, i = rng.choice(found)
        x, items = ops[i][1], list(ops[i][2])
        items.insert(rng.randint(0, len(items)), rng.choice(_own(ops[i:], x)))
        ops[i] = ("r", x, items)


def invent(rng, sessions):
    """A list shows what nobody appended, or any append of anybody."""
    found = _reads(sessions)
    if found:
        ops, i = rng.choice(found)
        x, items = ops[i][1], list(ops[i][2])
        made = [v for y, v in _appends(sessions) if y == x and v not in items]
        items.insert(rng.randint(0, len(items)), rng.choice([*made, 99]))
        ops[i] = ("r", x, items)


def resurrect(rng, sessions):
    """A list shows an append of a transaction that aborted or whose outcome is unknown."""
    made = _appends(sessions, ("aborted", "unknown"))
    found = [(ops, i) for ops, i in _reads(sessions) if any(y == ops[i][1] for y, _ in made)]
    if found:
        ops, i = rng.choice(found)
        x, items = ops[i][1], list(ops[i][2])
        at = rng.choice((len(items), rng.randint(0, len(items))))
        items.insert(at, rng.choice([v for y, v in made if y == x]))
        ops[i] = ("r", x, items)


DEFECTS = (lose, lose, drop, swap, move, cut, cut, repeat, forget_own, foresee, invent, resurrect)
