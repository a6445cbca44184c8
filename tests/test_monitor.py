"""The monitor against the brute-force oracle at every prefix, and against ``check`` at the end."""

import random

import oracle
import pytest
from test_weak import build, random_lists

from plume_py import InputError, Monitor, check
from plume_py.levels import WEAK


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


def arrived(sessions, taken, initial):
    """What has arrived, without the reads whose writer has not."""
    prefix = [session[:n] for session, n in zip(sessions, taken, strict=True)]
    written = {(x, v) for session in prefix for _, ops in session for kind, x, v in ops if kind != "r"}
    return [
        [
            (status, [(kind, x, v) for kind, x, v in ops if kind != "r" or v == initial or (x, v) in written])
            for status, ops in session
        ]
        for session in prefix
    ]


def compare_prefixes(rng, sessions):
    """Feed ``sessions``; at every step a level must be broken just if the oracle says so, and be explained then."""
    monitor = Monitor(WEAK, initial=0)
    taken = [0] * len(sessions)
    for s, i in random_order(rng, sessions):
        held = monitor.holding
        status, ops = sessions[s][i]
        violations = monitor.feed(s, ops, status=status, id=f"{s}.{i}")
        taken[s] += 1
        prefix = arrived(sessions, taken, 0)
        facts = oracle.Facts(prefix, 0)
        assert monitor.holding == tuple(level for level in WEAK if oracle.satisfies(facts, level)), prefix
        assert violations or monitor.holding == held
        patterns = oracle.patterns(prefix)
        for violation in violations:
            assert violation.tap in patterns or explained_otherwise(violation, patterns), (violation, prefix)
    return monitor


def explained_otherwise(violation, patterns):
    """Alone, the transactions of a counterexample may lack a causal path that the whole history has."""
    return {"i": "h", "l": "k", "n": "m"}.get(violation.tap) in patterns


def compare_end(sessions, monitor, initial=0):
    result, expected = monitor.close(), check(build(sessions, initial), WEAK)
    assert {level: v.ok for level, v in result.levels.items()} == {level: v.ok for level, v in expected.levels.items()}
    assert {level: v.taps for level, v in result.levels.items()} == {
        level: v.taps for level, v in expected.levels.items()
    }


def compare_random(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        sessions = oracle.random_history(rng)
        try:
            build(sessions)
        except InputError:
            continue
        compare_end(sessions, compare_prefixes(rng, sessions))


@pytest.mark.parametrize("seed", range(4))
def test_every_prefix_of_random_histories_agrees_with_the_oracle(seed):
    compare_random(seed, 150)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 125))
def test_every_prefix_of_many_random_histories_agrees_with_the_oracle(seed):
    compare_random(seed, 2000)


def feed_in_window(rng, sessions, window, levels=WEAK):
    monitor = Monitor(levels, initial=0, window=window)
    for s, i in random_order(rng, sessions):
        status, ops = sessions[s][i]
        monitor.feed(s, ops, status=status, id=f"{s}.{i}")
    return monitor


def compare_windows(seed, count, **shape):
    """What a monitor with a window decides is right; returns how much it forgot, and how often it decided."""
    rng = random.Random(seed)
    forgotten = decided = 0
    for _ in range(count):
        sessions = oracle.random_history(rng, failed=0.05, wild=0.01, **shape)
        levels = rng.choice([["TCC"], ["RA"], ["RC"], list(WEAK)])
        try:
            expected = check(build(sessions), levels)
            monitor = feed_in_window(rng, sessions, rng.randint(1, 3), levels)
        except InputError:
            continue
        result = monitor.close()
        for level, verdict in result.levels.items():
            assert verdict.ok in (None, expected.levels[level].ok), (level, sessions)
        forgotten += monitor.transactions - monitor.history().transactions
        decided += result.ok is not None
    return forgotten, decided


@pytest.mark.parametrize("seed", range(3))
def test_a_window_never_makes_a_verdict_wrong(seed):
    forgotten, decided = compare_windows(seed, 100, txns=(6, 14), keys=(1, 2), sessions=(1, 3))
    assert forgotten > 50
    assert decided > 50


@pytest.mark.parametrize("seed", range(2))
def test_lists_agree_with_check(seed):
    rng = random.Random(seed)
    for _ in range(100):
        sessions = random_lists(rng)
        try:
            build(sessions, None)
        except InputError:
            continue
        monitor = Monitor(WEAK)
        for s, i in random_order(rng, sessions):
            status, ops = sessions[s][i]
            monitor.feed(s, ops, status=status, id=f"{s}.{i}")
        compare_end(sessions, monitor, None)
