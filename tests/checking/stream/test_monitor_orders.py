"""The monitor in every order: against the oracle at every prefix, and against ``check`` at the end."""

import random

import oracle
import pytest
from small_histories import build, close, crowded, random_lists, random_order, random_times
from test_monitor import arrived, explained_otherwise

from plume_py import InputError, Monitor, check
from plume_py.levels import WEAK
from plume_py.levels.orders import NONE, REALTIME, SESSION

WATCHED = (NONE, SESSION, REALTIME)


def drawn(rng):
    """(sessions, initial, times) of a small history, some of registers and some of lists."""
    while True:
        make = rng.choice((close, crowded, oracle.random_history, random_lists))
        sessions = make(rng)
        initial, times = None if make is random_lists else 0, random_times(rng, sessions)
        try:
            build(sessions, initial, times)
            oracle.Facts(sessions, initial)
        except (InputError, ValueError):
            continue
        return sessions, initial, times


def by_end(sessions, times):
    """All (session, place) as they end, as far as that is known; each session's in its order."""
    spans = iter(times)
    latest, found = 0, []
    for s, session in enumerate(sessions):
        latest = 0
        for i in range(len(session)):
            begin, end = next(spans)
            latest = max(latest, begin or 0, end or 0)
            found.append((latest, s, i))
    return [(s, i) for _, s, i in sorted(found)]


def fed(rng, sessions, times, monitor, each=lambda taken, held, violations: None):
    """Feed everything, mostly in some order that keeps each session's, now and then by when they ended."""
    span = iter(times)
    spans = [[next(span) for _ in session] for session in sessions]
    taken = [0] * len(sessions)
    for s, i in by_end(sessions, times) if rng.random() < 0.3 else list(random_order(rng, sessions)):
        status, ops = sessions[s][i]
        begin, end = spans[s][i]
        held = monitor.holding
        violations = monitor.feed(s, ops, status=status, id=f"{s}.{i}", begin=begin, end=end)
        taken[s] += 1
        each(taken, held, violations)
    return monitor


def compare(rng, order):
    sessions, initial, times = drawn(rng)
    monitor = Monitor(WEAK, initial=initial, order=order)
    has_lists = initial is None

    def at_prefix(taken, held, violations):
        span = iter(times)
        spans = [[next(span) for _ in session] for session in sessions]
        known = [time for n, mine in zip(taken, spans, strict=True) for time in mine[:n]]
        prefix = arrived(sessions, taken, initial)
        facts = oracle.Facts(prefix, initial, order=order, times=known)
        where = order, prefix, known
        if order == REALTIME and all(begin is None for begin, _ in known):
            assert monitor.holding == WEAK, where
            assert violations == [], where
            return
        if has_lists:  # a list waits until all its elements have arrived
            return
        assert monitor.holding == tuple(level for level in WEAK if oracle.satisfies(facts, level)), where
        patterns = oracle.patterns_of(facts)
        for violation in violations:
            assert violation.order == order
            assert violation.tap in patterns or explained_otherwise(violation, patterns), (violation, where)

    fed(rng, sessions, times, monitor, at_prefix)
    result, expected = monitor.close(), check(build(sessions, initial, times), WEAK, order=order)
    assert {level: (v.ok, v.taps, v.order) for level, v in result.levels.items()} == {
        level: (v.ok, v.taps, v.order) for level, v in expected.levels.items()
    }, (order, sessions, times)
    if expected.ok is not None:
        facts = oracle.Facts(sessions, initial, order=order, times=times)
        assert {level: v.ok for level, v in result.levels.items()} == {
            level: oracle.satisfies(facts, level) for level in WEAK
        }, (order, sessions, times)
    return result.ok


@pytest.mark.parametrize("order", WATCHED)
def test_every_prefix_agrees_with_the_oracle(order):
    rng = random.Random(1)
    answers = [compare(rng, order) for _ in range(150)]
    assert answers.count(True) > 20
    assert answers.count(False) > 20


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
def test_every_prefix_in_real_time_agrees_with_the_oracle_at_length(seed):
    rng = random.Random(1000 + seed)
    for _ in range(1000):
        compare(rng, REALTIME)


# With a window


def compare_windows(seed, count):
    """What a monitor with a window decides in real time is right; how much it forgot, and how often it decided."""
    rng = random.Random(seed)
    forgotten, decided = 0, {True: 0, False: 0, None: 0}
    shape = {"txns": (6, 14), "keys": (1, 2), "sessions": (1, 3)}
    for _ in range(count):
        sessions = oracle.random_history(rng, failed=rng.choice((0, 0.05, 0.2)), wild=0.01, **shape)
        times = random_times(rng, sessions)
        levels = rng.choice([["TCC"], ["RA"], ["RC"], list(WEAK)])
        try:
            expected = check(build(sessions, 0, times), levels, order=REALTIME)
            monitor = Monitor(levels, order=REALTIME, initial=0, window=rng.randint(1, 3))
            fed(rng, sessions, times, monitor)
        except InputError:
            continue
        result = monitor.close()
        for level, verdict in result.levels.items():
            assert verdict.ok in (None, expected.levels[level].ok), (level, sessions, times)
        forgotten += monitor.transactions - monitor.history().transactions
        decided[result.ok] += 1
    return forgotten, decided


@pytest.mark.parametrize("seed", range(3))
def test_a_window_never_makes_a_verdict_in_real_time_wrong(seed):
    forgotten, decided = compare_windows(seed, 60)
    assert forgotten > 20
    assert min(decided[True], decided[False]) > 5, decided


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_window_never_makes_a_verdict_in_real_time_wrong_in_many_histories(seed):
    compare_windows(seed, 500)
