"""``stream.monitor`` in every order: against the oracle at every prefix, and against ``check`` at the end."""

import random

import oracle
import pytest
from small_histories import build, close, crowded, random_lists, random_order, random_times
from test_monitor import arrived, explained_otherwise

from plume_py import InputError, Monitor, check
from plume_py.base.errors import LimitError
from plume_py.checking.stream import monitored_history
from plume_py.checking.stream.batch import FedTransaction
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.levels import WEAK
from plume_py.levels.orders import NONE, PER_KEY, REALTIME, SESSION

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


def test_a_window_never_makes_a_verdict_in_real_time_wrong():
    forgotten, decided = compare_windows(0, 60)
    assert forgotten > 20
    assert min(decided[True], decided[False]) > 5, decided


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_window_never_makes_a_verdict_in_real_time_wrong_in_many_histories(seed):
    compare_windows(seed, 500)


@pytest.mark.parametrize("levels", ["RA", list(WEAK)], ids=["RA", "all"])
def test_a_forgotten_transaction_still_precedes_later_ones_in_real_time(levels):
    """Long after two sessions have overwritten x a third one, which did nothing of note, still sees the beginning."""
    monitor = Monitor(levels, order=REALTIME, initial=0, window=4)
    assert monitor.feed("c", [("w", "z", 1)], begin=0, end=1) == []
    for i in range(200):
        ops = [("r", "x", i), ("w", "x", i + 1)]
        assert monitor.feed(i % 2, ops, begin=10 * i + 2, end=10 * i + 9) == []
        assert monitor.feed("c", [("r", "z", 1)], begin=10 * i + 10, end=10 * i + 11) == []
    assert monitor.history().transactions < 40
    (violation, *_) = monitor.feed("c", [("r", "x", 0)], begin=3000, end=3001)
    assert violation.tap in "km"
    assert not monitor.close().ok


@pytest.mark.parametrize(("window", "ok"), [(None, False), (4, None)])
def test_a_transaction_that_arrives_too_late_for_forgotten_ones_leaves_the_verdict_open(window, ok):
    """Its session has seen them, and yet it says that it had ended before they began."""
    monitor = Monitor("TCC", order=REALTIME, initial=0, window=window)
    for i in range(200):
        begin, end = (10 * i + 2, 10 * i + 9) if i < 100 else (None, None)
        monitor.feed(i % 2, [("r", "x", i), ("w", "x", i + 1)], begin=begin, end=end)
        monitor.feed("c", [("r", "x", i + 1)])
    assert monitor.close().ok
    monitor.feed("c", [("r", "z", 0)], begin=0, end=1)
    verdict = monitor.close().levels["TCC"]
    assert verdict.ok is ok
    assert verdict.reason == (
        None if ok is False else "1 transactions arrived after others of their time had been forgotten"
    )


# What it says


def stale(monitor):
    """r began after w had ended, and did not see it."""
    monitor.feed("a", [("w", "x", 1)], begin=0, end=10, id="w")
    return monitor.feed("b", [("r", "x", 0)], begin=20, end=30, id="r")


def test_level_names_state_the_order():
    monitor = Monitor(["StrongRA", "strong-read-committed"], initial=0, per_second=1000)
    (violation,) = stale(monitor)
    assert (violation.tap, violation.order) == ("k", REALTIME)
    assert "w had ended (at 0.010 s) before r began (at 0.020 s)" in violation.steps[0].because
    assert monitor.holding == ("StrongRC",)
    result = monitor.close()
    assert {name: (v.ok, v.order, v.holds_in) for name, v in result.levels.items()} == {
        "StrongRC": (True, REALTIME, None),
        "StrongRA": (False, REALTIME, SESSION),
    }


@pytest.mark.parametrize(
    ("levels", "order", "window", "why"),
    [
        (["RA", "StrongRA"], SESSION, None, "cannot watch realtime and session order"),
        ("RA", PER_KEY, None, "cannot watch realtime-per-key order"),
        ("SSER", SESSION, None, "cannot watch SSER"),
        ("RA", NONE, 5, "use no window"),
    ],
)
def test_unsupported_levels_orders_and_windows_are_rejected(levels, order, window, why):
    with pytest.raises(ValueError, match=why):
        Monitor(levels, order=order, window=window)


def test_without_times_real_time_is_undecided_and_no_violation_is_reported():
    for window in (None, 5):
        monitor = Monitor(WEAK, order=REALTIME, initial=0, window=window)
        assert monitor.feed("a", [("w", "x", 1)]) == []
        assert monitor.feed("a", [("r", "x", 0)]) == []
        assert monitor.holding == WEAK
        result = monitor.close()
        assert result.ok is None
        assert {verdict.reason for verdict in result.levels.values()} == {
            "the history does not say when its transactions began and ended"
        }


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ((5, 3), (6, 7), "line 1: T1 ends (at 3) before it begins (at 5)"),
        ((1, 5), (4, 7), "line 2: T2 begins (at 4) before T1, which its session ran first (line 1), was over (at 5)"),
        ((1, 9), (None, 7), "line 2: T2 ends (at 7) before T1"),
        ((1, 2**63), (None, 7), "line 1: not a time: 9223372036854775808"),
    ],
)
@pytest.mark.parametrize("order", WATCHED)
def test_impossible_times_are_rejected(first, second, why, order):
    monitor = Monitor("TCC", order=order)
    spans = enumerate((first, second), 1)
    with pytest.raises(InputError) as error:
        list(monitor.feed_all([FedTransaction("a", [], line=n, start=begin, end=end) for n, (begin, end) in spans]))
    assert why in str(error.value)


@pytest.mark.parametrize("status", ["aborted", "unknown"])
def test_transactions_that_do_not_participate_add_no_real_time_order(status):
    """When the second of the session began is not known: that the first began after w had ended says nothing of it."""
    monitor = Monitor(WEAK, order=REALTIME, initial=0)
    monitor.feed("a", [("w", "x", 1)], begin=0, end=1)
    monitor.feed("b", [("r", "x", 0), ("w", "x", 2)], status=status, begin=5, end=6)
    monitor.feed("b", [("r", "x", 0)], end=9)
    assert monitor.close().ok


def test_without_order_the_number_of_transactions_is_limited(monkeypatch):
    monkeypatch.setattr(monitored_history, "MOST_SINGLE_SESSIONS", 50)
    monitor = Monitor("TCC", order=NONE, initial=0)
    for i in range(100):
        monitor.feed("a", [("w", "x", i + 1)])
    assert monitor.holding == ("TCC",)
    with pytest.raises(LimitError, match="run isocheck check --order none"):
        monitor.feed("a", [("r", "x", 0)])


@pytest.mark.parametrize("compiled", ["never", "always"])
@pytest.mark.parametrize("pattern", [None, "stale-read", "non-monotonic-snapshot"])
def test_larger_histories_agree_with_check_however_they_arrive(monkeypatch, compiled, pattern):
    monkeypatch.setenv("ISOCHECK_COMPILE", compiled)
    history = generate("SSER", sessions=6, transactions=30, operations=4, keys=40)
    if pattern is not None:
        history, _ = inject(history, {pattern: 1}, seed=1)
    txns = [history.transaction(t) for t in range(history.transactions)]
    arrivals = [FedTransaction(t.session, t.ops, t.status, t.id, start=t.begin, end=t.end) for t in txns]
    for order in WATCHED:
        expected = check(history, WEAK, order=order)
        assert expected.ok is (pattern is None or order != REALTIME)
        for stream in (arrivals, sorted(arrivals, key=lambda one: one.end)):
            monitor = Monitor(WEAK, order=order, initial=0)
            shown = list(monitor.feed_all(stream))
            result = monitor.close()
            assert {level: (v.ok, v.taps) for level, v in result.levels.items()} == {
                level: (v.ok, v.taps) for level, v in expected.levels.items()
            }
            assert bool(shown) is (expected.ok is False)


@pytest.mark.parametrize("spelling", ["weak", " Weak ", ["weak"], ["weak", "RA"]])
def test_groups_of_levels_are_watched(spelling):
    assert Monitor(spelling).levels == list(WEAK)


def test_all_levels_cannot_be_watched():
    with pytest.raises(ValueError, match="cannot watch PC PSI SER SI; use some of CI RC RA TCC"):
        Monitor("all")
