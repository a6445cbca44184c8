"""minimal/search: the search agrees with the oracle, for every strong level and for declared levels."""

import random

import oracle
import oracle_mixed
import pytest

from plume_py import HistoryBuilder
from plume_py.checking.strong.minimal.search import search
from plume_py.history.generate import generate

STRONG = ("PC", "PSI", "SI", "SER")
PLENTY = 1_000_000


def build(sessions):
    builder = HistoryBuilder(initial=0)
    for number, session in enumerate(sessions):
        builder.session(number)
        for status, ops in session:
            builder.add(number, ops, status=status)
    return builder.build()


def random_facts(seed, count):
    """Tiny histories, most of them without any pattern of single reads, so that orders decide."""
    rng = random.Random(seed)
    for _ in range(count):
        sessions = oracle.random_history(
            rng, txns=(2, rng.choice((6, 7))), wild=rng.choice((0, 0, 0.03)), failed=rng.choice((0, 0.1))
        )
        try:
            yield rng, sessions, oracle.Facts(sessions)
        except ValueError:  # an ambiguous read is bad input
            continue


def agree_on_levels(seed, count):
    for _, sessions, facts in random_facts(seed, count):
        history = build(sessions)
        for level in STRONG:
            found = search(history, level, PLENTY)
            assert found.ok == oracle.satisfies(facts, level), (level, sessions)
            if found.ok and level != "PSI":
                assert shows(facts, level, found.order), (level, sessions, found.order)


def shows(facts, level, order):
    """Does this very order keep the level?"""
    place = {oracle.INITIAL: -1}
    obeys = oracle._snapshot(facts, level)
    for t in order:
        if not obeys(place, t):
            return False
        place[t] = len(place) - 1
    return all(place[a] < place[b] for a, b in facts.co | facts.ww) and len(order) == len(facts.live)


def agree_on_mixed(seed, count):
    for rng, sessions, facts in random_facts(seed, count):
        levels = oracle_mixed.random_levels(rng, facts)
        expected = oracle_mixed.holds(facts, levels)
        assert search(build(sessions), levels, PLENTY).ok == expected, (levels, sessions)


def equal_to_one_level(seed, count):
    for _, sessions, facts in random_facts(seed, count):
        for level in oracle_mixed.LEVELS:
            alike = dict.fromkeys(facts.live, level)
            assert oracle_mixed.holds(facts, alike) == oracle.satisfies(facts, level), (level, sessions)


def test_strong_levels_agree_with_the_oracle():
    agree_on_levels(1, 600)


def test_mixed_levels_agree_with_the_oracle():
    agree_on_mixed(2, 600)


def test_the_mixed_oracle_gives_one_level_its_own_verdict():
    equal_to_one_level(3, 600)


@pytest.mark.full
def test_much_agrees_with_the_oracle():
    agree_on_levels(11, 100_000)
    agree_on_mixed(12, 100_000)
    equal_to_one_level(13, 200_000)


def test_lists_fix_the_version_order():
    builder = HistoryBuilder(initial=None)
    builder.add(0, [("append", "x", 1)], id="a")
    builder.add(1, [("append", "x", 2), ("append", "y", 1)], id="b")
    builder.add(2, [("r", "x", [2, 1]), ("r", "y", [])], id="c")
    history = builder.build()
    assert search(history, "SER", PLENTY).ok is False  # b is before a, so whoever saw a saw b's y
    assert search(history, "PC", PLENTY).ok is False
    assert search(history, "TCC", PLENTY).ok is True
    assert search(history, "PSI", PLENTY).ok is False  # a wrote x after b: it saw b


@pytest.mark.parametrize("level", STRONG)
@pytest.mark.parametrize("keys", [30, 1000])
def test_healthy_histories_of_200_transactions(level, keys):
    history = generate(level, sessions=10, transactions=20, operations=8, keys=keys, seed=keys)
    found = search(history, level, 20_000)
    assert found.ok is True
    assert sorted(found.order) == list(range(200))


def test_a_spent_budget_is_no_verdict():
    history = generate("SER", sessions=20, transactions=10, operations=8, keys=1000, seed=0)
    assert search(history, "SI", 1).ok is None
