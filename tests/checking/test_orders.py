"""No order, session order and real time: both engines, ``verify`` and ``--witness`` against the oracle."""

import json
import random
from itertools import permutations

import numpy as np
import oracle
import oracle_mixed
import pytest
from small_histories import build, close, crowded, random_lists, random_times

from plume_py import HistoryBuilder, check
from plume_py.base.errors import InputError
from plume_py.checking.declared import LevelMap
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.minimal.search import search
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.witness import write_witness
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.levels import NAMES, RUNNABLE
from plume_py.levels.orders import ORDERS, PER_KEY, REALTIME, level_request
from plume_py.report.json import line
from plume_py.verify import read_claim, verify_entry, verify_witness

TIMED = (REALTIME, PER_KEY)


def drawn(rng):
    """(sessions, initial, times, history) of a small history with times."""
    while True:
        make = rng.choice((close, crowded, random_lists))
        sessions = make(rng)
        times, initial = random_times(rng, sessions), None if make is random_lists else 0
        try:
            history = build(sessions, initial, times)
            oracle.Facts(sessions, initial)
        except (InputError, ValueError):
            continue
        if history.times is not None:
            return sessions, initial, times, history


def compare(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        sessions, initial, times, history = drawn(rng)
        for order in ORDERS:
            facts = oracle.Facts(sessions, initial, order=order, times=times)
            result = check(history, "all", order=order)
            where = order, sessions, times
            assert {name: result.levels[name].ok for name in NAMES} == {
                level: oracle.satisfies(facts, level) for level in NAMES
            }, where
            in_time = {name: verdict.ok for name, verdict in result.levels.items() if name not in NAMES}
            assert in_time == in_real_time(sessions, initial, times, facts), where
            assert verify_entry(history, read_claim(line(result).encode())[0]) == [], where
            if not facts.found & oracle.BASE:
                second_engine(history, order, facts, where)
                mixed(rng, history, order, facts, where)


def in_real_time(sessions, initial, times, facts):
    """What "all" also means for a history with times: StrongSI if SI holds in session order, SSER if SER does."""
    if facts.order != "session":
        return {}
    later = oracle.Facts(sessions, initial, order="realtime", times=times)
    named = {"SI": "StrongSI", "SER": "SSER"}
    return {named[level]: oracle.satisfies(later, level) for level in named if oracle.satisfies(facts, level)}


def second_engine(history, order, facts, where):
    analysis = Analysis(history, order=order)
    for level in RUNNABLE:
        found = search(analysis.history, level, 10**6, analysis.reads, analysis.real_time)
        assert found.ok == oracle.satisfies(facts, level), (level, where)


def mixed(rng, history, order, facts, where):
    levels = oracle_mixed.random_levels(rng, facts)
    analysis = Analysis(history, order=order)
    codes = np.array([1 + NAMES.index(levels.get(t, "RC")) for t in range(analysis.history.transactions)], np.uint8)
    assert StrongEngine(analysis, codes).decide().ok == oracle_mixed.holds(facts, levels), (levels, where)


def test_every_order_agrees_with_the_oracle():
    compare(1, 150)


@pytest.mark.full
def test_every_order_agrees_with_the_oracle_at_length():
    compare(2, 25_000)


def test_commit_orders_are_witnesses(tmp_path):
    rng = random.Random(3)
    path = tmp_path / "witness.json"
    for _ in range(60):
        sessions, _, times, history = drawn(rng)
        for order in ORDERS:
            result = check(history, "all", order=order, max_examples=0)
            for level in RUNNABLE:
                if result.levels[level].ok:
                    write_witness(history, level, str(path), order=order)
                    claim = read_claim(path.read_bytes())
                    assert verify_witness(history, claim) == [], (order, level, sessions, times)


def test_a_commit_order_against_real_time_is_none(tmp_path):
    rng = random.Random(4)
    path = tmp_path / "witness.json"
    refuted = 0
    while refuted < 40:
        sessions, initial, times, history = drawn(rng)
        if not check(history, "SER", order=REALTIME, max_examples=0).ok:
            continue
        write_witness(history, "SSER", str(path))
        document = json.loads(path.read_text())
        assert document["between"] == REALTIME
        facts = oracle.Facts(sessions, initial, order=REALTIME, times=times)
        number = {history.txn_label[t]: t for t in facts.live}
        for other in list(permutations(document["order"]))[:24]:
            place = {number[name]: at for at, name in enumerate(other)}
            if any(place[a] > place[b] for a, b in facts.so):
                claim = read_claim(json.dumps({**document, "order": other}).encode())
                assert verify_witness(history, claim) != [], (other, sessions, times)
                refuted += 1


# What it says


def stale():
    """r began after w had ended, and did not see it."""
    builder = HistoryBuilder(initial=0, per_second=1000)
    builder.add("a", [("w", "x", 1)], begin=0, end=10, id="w")
    builder.add("b", [("r", "x", 0)], begin=20, end=30, id="r")
    return builder.build()


def test_names_say_the_order():
    result = check(stale(), ["SER", "SSER", "strong-snapshot-isolation", "strong-session-serializable"])
    assert {name: (verdict.ok, verdict.order) for name, verdict in result.levels.items()} == {
        "SER": (True, "session"),
        "StrongSI": (False, "realtime"),
        "SSER": (False, "realtime"),
        "StrongSessionSER": (True, "session"),
    }
    assert "w had ended (at 0.010 s) before r began (at 0.020 s)" in result.violations[0].steps[0].because
    assert result.violations[0].headline.endswith("although w, which had ended before it began, had overwritten it")
    assert result.levels["SSER"].holds_in == "session"


@pytest.mark.parametrize("spelling", ["strict-serializable", "Strict Serializability", "sser", "strict_serializable"])
def test_spellings(spelling):
    assert level_request(spelling) == level_request("SSER")


def test_a_violation_that_needs_session_order_names_the_order_in_which_it_holds():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)])
    builder.add("a", [("r", "x", 0)])
    history = builder.build()
    result = check(history, "SER")
    assert (result.ok, result.levels["SER"].holds_in) == (False, "none")
    assert "SER  violated: TAP-k FracturedReadCO (1); holds if sessions may be reordered" in str(result)
    assert check(history, "SER", order="none").ok


def test_without_times_real_time_is_undecided():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)])
    verdict = check(builder.build(), "SSER").levels["SSER"]
    assert verdict.ok is None
    assert "when its transactions began" in verdict.reason


def test_only_a_common_key_puts_transactions_in_order():
    """The third saw the second and missed the first, which had ended before the second began."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], begin=0, end=10)
    builder.add("b", [("w", "y", 1)], begin=20, end=30)
    builder.add("c", [("r", "x", 0), ("r", "y", 1)], begin=5, end=40)
    history = builder.build()
    assert {order: check(history, "SER", order=order).ok for order in ORDERS} == {
        "none": True,
        "session": True,
        "realtime": False,
        "realtime-per-key": True,
    }


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ((5, 3), (6, 7), "T1 ends (at 3) before it begins (at 5)"),
        ((1, 5), (4, 7), "T2 begins (at 4) before T1, which its session ran first (sessions[0][0]), was over (at 5)"),
        ((1, None), (0, 7), "T2 begins (at 0) before T1"),
        ((1, 9), (None, 7), "T2 ends (at 7) before T1"),
    ],
)
def test_times_that_cannot_be(first, second, why):
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], begin=first[0], end=first[1])
    builder.add("a", [("w", "x", 2)], begin=second[0], end=second[1])
    with pytest.raises(InputError) as error:
        builder.build()
    assert why in str(error.value)


def test_an_unknown_outcome_has_no_end():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], status="unknown", begin=0, end=1)
    builder.add("b", [("r", "x", 0)], begin=5, end=6)
    builder.add("b", [("r", "x", 1)], begin=7, end=8)
    assert check(builder.build(), "SSER").ok


def test_generated_histories_are_strict():
    history = generate("SSER", sessions=8, transactions=40, operations=5, keys=50)
    assert history.times is not None
    assert check(history, "all", order=REALTIME).ok
    overlapping = int(np.sum(history.times.end[:40, None] >= history.times.begin[None, 40:80]))
    assert 100 < overlapping < 1600, "neither all in a row nor all at once"


@pytest.mark.parametrize("pattern", ["stale-read", "non-monotonic-snapshot"])
def test_planted_violations_of_real_time_are_found_there_alone(pattern):
    history = generate("SSER", sessions=6, transactions=20, operations=4, keys=30)
    for seed in range(4):
        planted, where = inject(history, {pattern: 2}, seed=seed)
        result = check(planted, ["SER", "SSER"], max_examples=10)
        assert [result.levels[name].ok for name in ("SER", "SSER")] == [True, False]
        shown = {t.id for violation in result.violations for t in violation.transactions}
        assert shown <= {planted.txn_label[t] for each in where for t in each.transactions}
        assert verify_entry(planted, read_claim(line(result).encode())[0]) == []


def test_nothing_of_real_time_is_planted_without_times():
    with pytest.raises(InputError, match="without times"):
        inject(generate("SER", sessions=2, transactions=2), {"stale-read": 1})


@pytest.mark.parametrize("order", ORDERS)
def test_levels_by_session_mean_the_sessions_of_the_file(order):
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], begin=0, end=10)
    builder.add("a", [("r", "x", 0)], begin=20, end=30)
    builder.add("b", [("r", "x", 0)], begin=0, end=3)
    history = builder.build()
    by_session = LevelMap({}, {"a": "SI", "b": "SER"})
    assert check(history, "declared", order=order, level_map=by_session).ok == (order == "none")


def test_a_proof_is_not_lost_beside_a_stricter_order():
    history = stale()
    result = check(history, ["SER", "SSER"], order=PER_KEY)
    assert [verdict.ok for verdict in result.levels.values()] == [False, False]
    assert verify_entry(history, read_claim(line(result).encode())[0]) == []


def test_a_transaction_that_began_after_another_ended_is_no_initial_state():
    builder = HistoryBuilder(declared=False)
    builder.add("a", [("w", "x", 1)], begin=100, end=105)
    builder.add("b", [("r", "x", 1)], begin=10, end=20)
    assert check(builder.build(), "SSER").ok is False


def test_declared_levels_have_witnesses_in_real_time(tmp_path):
    path = tmp_path / "witness.json"
    history = generate("SSER", sessions=3, transactions=4, operations=3, keys=5)
    write_witness(history, "declared", str(path), assume="SI", order=REALTIME)
    assert verify_witness(history, read_claim(path.read_bytes())) == []


@pytest.mark.parametrize("status", ["aborted", "unknown"])
@pytest.mark.parametrize("order", TIMED)
def test_aborted_transactions_pass_no_real_time_order_on(status, order):
    """When the second of the session began is not known: that the first began after w had ended says nothing of it."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], begin=0, end=1)
    builder.add("b", [("r", "x", 0), ("w", "x", 2)], status=status, begin=5, end=6)
    builder.add("b", [("r", "x", 0)], end=9)
    assert check(builder.build(), "SER", order=order).ok


def planted_stale(seed=3):
    """SER holds, SSER does not."""
    return inject(generate("SSER", sessions=3, transactions=10, operations=5, keys=20), {"stale-read": 1}, seed)[0]


def test_all_levels_include_real_time_where_there_are_times():
    result = check(planted_stale())
    assert result.levels["SER"].ok and result.levels["SSER"].ok is False and result.levels["StrongSI"].ok is False
    assert list(result.levels) == [*NAMES, "StrongSI", "SSER"]
    assert str(result).splitlines()[0].endswith("strongest level kept: SER; broken: StrongSI, SSER (G-single-realtime)")
    holds = check(generate("SSER", sessions=3, transactions=10, operations=5, keys=20))
    assert holds.ok and str(holds).splitlines()[0].endswith("serializability (SER), also in real time")


def test_real_time_is_checked_only_where_it_can_say_more():
    """What is violated in session order is violated in real time, and named levels or orders are all that counts."""
    skewed = inject(generate("SSER", sessions=3, transactions=10, operations=5, keys=20), {"write-skew": 1}, 1)[0]
    assert [name for name in check(skewed).levels if name not in NAMES] == ["StrongSI"]
    assert list(check(planted_stale(), "SER").levels) == ["SER"]
    assert set(check(planted_stale(), order="none").levels) == set(NAMES)
    assert set(check(HistoryBuilder(0).build()).levels) == set(NAMES)


def test_without_examples_the_weaker_order_is_still_reported():
    for examples in (0, 1):
        assert check(planted_stale(), "SSER", max_examples=examples).levels["SSER"].holds_in == "session"
