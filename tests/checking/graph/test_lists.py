"""Lists (decision 6): check, watch and verify against the oracles, on named and on random histories."""

import json
import random
from itertools import permutations

import oracle
import oracle_mixed
import oracle_replay
import pytest
from list_cases import CASES, history, patterns_of
from list_histories import random_list_history
from small_histories import random_order, spelled

from plume_py import HistoryBuilder, Monitor, check
from plume_py.checking.witness import write_witness
from plume_py.levels import WEAK
from plume_py.report.json import line
from plume_py.verify import WitnessClaim, read_claim, verify_entry, verify_witness

ORDERED = oracle_replay.LEVELS


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def build(sessions, levels=None):
    """The history for the package; ``levels`` has a level for each transaction that counts."""
    builder = HistoryBuilder(initial=None)
    number = 0
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            builder.add(s, ops, status=status, level=None if levels is None else levels.get(number, "RC"))
            number += 1
    return builder.build()


def random_histories(seed, count, **shape):
    rng = random.Random(seed)
    for _ in range(count):
        yield rng, random_list_history(rng, **shape)


# check


def compare_check(sessions):
    """Verdicts at all levels, and the patterns that explain the weak ones."""
    facts, taps = oracle.Facts(sessions, None), oracle.taps(sessions, None)
    result = check(build(sessions), oracle.LEVELS)
    assert {level: verdict.ok for level, verdict in result.levels.items()} == {
        level: oracle.satisfies(facts, level) for level in oracle.LEVELS
    }, f"{sessions}"
    for level in WEAK:
        assert set(result.levels[level].taps) == spelled(taps[level]), f"{level}: {sessions}"
    return result


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    text, levels, patterns = CASES[case]
    result = compare_check(history(text))
    assert [level for level, verdict in result.levels.items() if verdict.ok] == levels.split()
    assert {tap for level in WEAK for tap in result.levels[level].taps} == spelled(patterns_of(patterns))


@pytest.mark.parametrize("seed", range(6))
def test_random_lists_agree_with_the_oracle(seed):
    for _, sessions in random_histories(seed, 500):
        compare_check(sessions)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 150))
def test_100_000_random_lists_agree_with_the_oracle(seed):
    for _, sessions in random_histories(seed, 2000):
        compare_check(sessions)


def compare_mixed(seed, count):
    """A level per transaction."""
    held = 0
    for rng, sessions in random_histories(seed, count, defects=0.25):
        facts = oracle.Facts(sessions, None)
        levels = oracle_mixed.random_levels(rng, facts)
        holds = oracle_mixed.holds(facts, levels)
        assert check(build(sessions, levels), "declared").levels["declared"].ok == holds, f"{levels}: {sessions}"
        held += holds
    assert 0 < held < count


def test_random_lists_with_a_level_per_transaction_agree_with_the_oracle():
    compare_mixed(7, 500)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 110))
def test_20_000_random_lists_with_a_level_per_transaction_agree_with_the_oracle(seed):
    compare_mixed(seed, 2000)


# watch


def watch(rng, sessions):
    """The transactions arrive in any order; what is called broken on the way must stay so."""
    monitor = Monitor(WEAK, initial=None)
    broken = set()
    for s, i in random_order(rng, sessions):
        status, ops = sessions[s][i]
        monitor.feed(s, ops, status=status, id=f"{s}.{i}")
        assert not broken.intersection(monitor.holding), f"{sessions}"
        broken = set(WEAK) - set(monitor.holding)
    result = monitor.close()
    assert not any(result.levels[level].ok for level in broken), f"{sessions}"
    return result


def compare_watch(rng, sessions):
    facts, taps = oracle.Facts(sessions, None), oracle.taps(sessions, None)
    result = watch(rng, sessions)
    for level in WEAK:
        verdict = result.levels[level]
        assert verdict.ok == oracle.satisfies(facts, level), f"{level}: {sessions}"
        assert set(verdict.taps) == spelled(taps[level]), f"{level}: {sessions}"


@pytest.mark.parametrize("case", CASES)
def test_cases_are_watched(case):
    compare_watch(random.Random(case), history(CASES[case][0]))


@pytest.mark.parametrize("seed", range(3))
def test_random_lists_are_watched(seed):
    for rng, sessions in random_histories(seed, 200):
        compare_watch(rng, sessions)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 130))
def test_30_000_random_lists_are_watched(seed):
    for rng, sessions in random_histories(seed, 1000):
        compare_watch(rng, sessions)


# verify


def compare_verify(sessions, folder):
    """Whatever check says is proved again: each violation, and the commit order of each level that holds."""
    made, facts = build(sessions), oracle.Facts(sessions, None)
    report = line(check(made, oracle.LEVELS, max_examples=3, name="h"))
    if json.loads(report)["violations"]:
        (entry,) = read_claim(report.encode())
        assert verify_entry(made, entry) == [], f"{sessions}"
    for level in ORDERED:
        if oracle.satisfies(facts, level):
            path = folder / "witness.json"
            write_witness(made, level, str(path))
            claim = read_claim(path.read_bytes())
            assert verify_witness(made, claim) == [], f"{level}: {sessions}"
            numbers = [int(label[1:]) - 1 for label in claim.order]
            assert oracle_replay.shows(oracle_replay.Replay(sessions), level, numbers), f"{level}: {sessions}"


@pytest.mark.parametrize("case", CASES)
def test_cases_are_verified(case, tmp_path):
    compare_verify(history(CASES[case][0]), tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_random_lists_are_verified(seed, tmp_path):
    for _, sessions in random_histories(seed, 100):
        compare_verify(sessions, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 130))
def test_30_000_random_lists_are_verified(seed, tmp_path):
    for _, sessions in random_histories(seed, 1000):
        compare_verify(sessions, tmp_path)


def judge_all_orders(sessions):
    """Every order of the transactions that count, as a witness of every level: is it one? By replaying the lists."""
    made, replay = build(sessions), oracle_replay.Replay(sessions)
    judged = {True: 0, False: 0}
    for order in permutations(replay.live):
        for level in ORDERED:
            expected = oracle_replay.shows(replay, level, order)
            claim = WitnessClaim(level=level, order=[f"T{t + 1}" for t in order])
            assert (verify_witness(made, claim) == []) == expected, f"{level}, {order}: {sessions}"
            judged[expected] += 1
    return judged


@pytest.mark.parametrize("case", CASES)
def test_every_order_of_a_case_is_judged_by_its_lists(case):
    judge_all_orders(history(CASES[case][0]))


def test_every_order_of_random_lists_is_judged_by_its_lists():
    shown = [judge_all_orders(sessions) for _, sessions in random_histories(11, 150, txns=(2, 4))]
    assert min(sum(judged[verdict] for judged in shown) for verdict in (True, False)) > 300
