"""The weak levels against the brute-force oracle: verdicts and patterns, on random and on all small histories."""

import random
from collections import Counter
from itertools import product

import oracle
import pytest

from plume_py import HistoryBuilder, check
from plume_py.checking.graph import causal
from plume_py.levels import WEAK


def build(sessions, initial=0):
    builder = HistoryBuilder(initial)
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            builder.add(s, ops, status=status)
    return builder.build()


def agrees(sessions, initial=0):
    """Do engine and oracle agree on every weak level, and on the patterns of each?"""
    facts = oracle.Facts(sessions, initial)
    taps = oracle.taps(sessions, initial)
    result = check(build(sessions, initial), WEAK)
    holds = {level: oracle.satisfies(facts, level) for level in WEAK}
    triples = Counter(name for name, *_ in oracle.named_triples(facts))
    return (
        all(
            (verdict.ok, set(verdict.taps)) == (holds[level], spelled(taps[level]))
            for level, verdict in result.levels.items()
        )
        and all(holds[level] is not bool(taps[level]) for level in WEAK)  # what is broken has a name
        and {name: n for name, n in result.counts.items() if name in "hiklmn"} == triples
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


def compare_random(seed, count, make=oracle.random_history):
    rng = random.Random(seed)
    compared = 0
    for _ in range(count):
        sessions = make(rng)
        try:
            same = agrees(sessions, None if make is random_lists else 0)
        except ValueError:  # ambiguous: not a history
            continue
        assert same, sessions
        compared += 1
    assert compared > count / 2


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_agree_with_the_oracle(seed):
    compare_random(seed, 700)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 210))
def test_300_000_random_histories_agree_with_the_oracle(seed):
    compare_random(seed, 3000)


ECHOES = [
    [("committed", [("w", "x", 3)])],
    [("committed", [("r", "x", 3), ("w", "x", 9), ("w", "y", 1)])],
    [("committed", [("r", "x", 3), ("r", "y", 1)])],
    *([("committed", [("r", "x", 9)])] for _ in range(3)),
]


@pytest.mark.parametrize("clock", ["vector", "tree"])
@pytest.mark.parametrize("block", [1, causal.CLOCK_BYTES])
def test_a_reader_that_is_right_is_not_counted(monkeypatch, clock, block):
    """Those who read (x, 9) saw the newest x; that T2 would have to come before T1 is the third one's fault."""
    monkeypatch.setattr(causal, "CLOCK_BYTES", block)
    result = check(build(ECHOES), WEAK, clock=clock, max_examples=9)
    assert result.counts == {"k": 1}
    assert [violation.tap for violation in result.violations] == ["k"]


def test_clocks_in_narrow_blocks_change_nothing(monkeypatch):
    monkeypatch.setattr(causal, "CLOCK_BYTES", 1)
    compare_random(77, 700)


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


@pytest.mark.parametrize("seed", range(2))
def test_list_histories_agree_with_the_oracle(seed):
    compare_random(seed, 700, random_lists)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 120))
def test_60_000_list_histories_agree_with_the_oracle(seed):
    compare_random(seed, 3000, random_lists)


# --- all histories of a small scope -----------------------------------------------------------------------------------

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


def test_all_histories_of_two_transactions_agree_with_the_oracle():
    count = 0
    for sessions in [*all_histories(1), *all_histories(2)]:
        assert agrees(sessions), sessions
        count += 1
    assert count == 1060


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_all_histories_of_three_transactions_agree_with_the_oracle(part):
    for i, sessions in enumerate(all_histories(3)):
        if i % 20 == part:
            assert agrees(sessions), sessions
