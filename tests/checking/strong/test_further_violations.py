"""strong/further_violations: each level lists its patterns, also after other violations of the same history."""

import random
from dataclasses import replace
from itertools import count

import numpy as np
import oracle
import pytest
from small_histories import build
from verify_problems import ALL, problems

from plume_py import HistoryBuilder, check
from plume_py.checking.graph.subhistory import without_operations
from plume_py.checking.strong import further_violations
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.levels import weaker_levels

STRONG = ("PC", "PSI", "SI", "SER")
AGAINST = {
    "lost-update": {"PSI", "SI", "SER"},
    "long-fork": {"PC", "SI", "SER"},
    "write-skew": {"SER"},
    "read-only-anomaly": {"SER"},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def planted(patterns, seed=1):
    made = generate("SER", sessions=6, transactions=40, operations=6, keys=30, seed=seed)
    return inject(made, patterns, seed)[0]


@pytest.mark.parametrize("strong", AGAINST)
@pytest.mark.parametrize("weak", "abcdefghijklmn")
def test_a_strong_pattern_beside_a_weak_one(weak, strong):
    history = planted({weak: 1, strong: 1})
    result = check(history, ALL)
    assert weak in result.levels["TCC"].taps
    assert strong not in result.levels["TCC"].taps
    for level in STRONG:
        assert result.levels[level].ok is False
        assert weak in result.levels[level].taps
        assert (strong in result.levels[level].taps) == (level in AGAINST[strong])
    assert result.counts[strong] >= 1
    assert problems(history, ALL) == []


@pytest.mark.parametrize("level", ["SER", "SI"])
def test_strong_patterns_beside_each_other(level):
    history = planted({"lost-update": 5, "long-fork": 1, "write-skew": 1})
    taps = {pattern for pattern, against in AGAINST.items() if level in against} - {"read-only-anomaly"}
    assert set(check(history, level).levels[level].taps) == taps
    verdicts = check(history, ALL).levels
    assert verdicts["PC"].taps == ("long-fork",)
    assert verdicts["PSI"].taps == ("lost-update",)


def test_several_examples_of_one_pattern():
    history = planted({"write-skew": 3})
    for wanted in (1, 2, 3):
        result = check(history, "SER", max_examples=wanted)
        assert [violation.tap for violation in result.violations] == ["write-skew"] * wanted
        members = [frozenset(txn.id for txn in violation.transactions) for violation in result.violations]
        assert len(set(members)) == wanted
        assert result.counts == {"write-skew": 3}
        assert not result.counts_exact


def test_declared_levels_get_further_violations():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0), ("w", "x", 1)], level="SI")
    builder.add("b", [("r", "x", 0), ("w", "x", 2)], level="SER")
    builder.add("c", [("r", "y", 7)], level="RC")
    history = builder.build()
    result = check(history, "declared")
    assert result.levels["declared"].taps == ("a", "lost-update")
    assert [violation.level for violation in result.violations] == ["RC", "declared"]
    assert problems(history, "declared") == []


def test_healthy_histories_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(further_violations.FurtherViolations, "search", lambda *_: pytest.fail("nothing is broken"))
    history = planted({})
    assert check(history, ALL).ok
    assert check(planted({"write-skew": 1}), ["PC", "PSI", "SI"]).ok


def test_without_examples_only_the_levels_are_decided(monkeypatch):
    monkeypatch.setattr(
        further_violations.FurtherViolations, "search", lambda *_: pytest.fail("no examples are wanted")
    )
    result = check(planted({"a": 1, "lost-update": 1}), ALL, max_examples=0)
    assert result.levels["SER"].taps == ("a",)
    assert check(planted({"lost-update": 1}), "SER", max_examples=0).levels["SER"].taps == ("lost-update",)


@pytest.mark.parametrize("steps", [0, 1_000_000, 3_000_000])
def test_a_bound_on_work_ends_it_and_changes_no_verdict(monkeypatch, steps):
    """What it did not look at is not claimed to be absent."""
    history = planted({"a": 1, "lost-update": 1})
    assert check(history, ALL).levels["SER"].taps == ("a", "lost-update")
    monkeypatch.setattr(further_violations, "STEPS", steps)
    monkeypatch.setattr(further_violations, "STEPS_PER_OPERATION", 0)
    result = check(history, ALL)
    assert [level for level in ALL if result.levels[level].ok] == ["CI"]
    assert not result.counts_exact
    assert "(at least 1)" in str(result)


def test_the_clock_decides_nothing(monkeypatch):
    """A clock that jumps ahead by a minute whenever it is asked changes nothing but the times that are printed."""
    calm = [result_of(history) for history in two_broken()]
    now = count(1e9, 60.0)
    for name in ("monotonic", "perf_counter", "time"):
        monkeypatch.setattr(f"time.{name}", lambda: next(now))
    assert [result_of(history) for history in two_broken()] == calm


def two_broken():
    yield planted({"a": 1, "lost-update": 1, "write-skew": 1, "long-fork": 1})
    yield generate("SI", seed=1, sessions=5, transactions=30, operations=6, keys=40)


def result_of(history):
    return replace(check(history, ALL), seconds={})


def test_verdicts_are_those_of_the_oracle():
    rng = random.Random(3)
    for _ in range(300):
        sessions = oracle.random_history(rng, txns=(3, 6), wild=0.1)
        facts = oracle.Facts(sessions)
        result = check(build(sessions), ALL)
        for level in ALL:
            assert result.levels[level].ok == oracle.satisfies(facts, level), sessions
            assert bool(result.levels[level].taps) != result.levels[level].ok
        for violation in result.violations:
            against = [level for level in ALL if violation.level in {level, *weaker_levels(level)}]
            assert all(violation.tap in result.levels[level].taps for level in against), sessions


def test_operations_are_left_out_of_lists_too():
    builder = HistoryBuilder()
    builder.add("a", [("append", "x", 1), ("r", "x", (1,)), ("append", "y", 2), ("r", "y", (2,))])
    builder.add("b", [("r", "x", (1,)), ("append", "x", 3), ("r", "y", ())])
    history = builder.build()
    for gone in ([1], [1, 6], [3, 4], [1, 3, 4, 6]):
        mask = np.zeros(history.operations, np.bool_)
        mask[gone] = True
        left = without_operations(history, mask)
        ops = [op for t in range(2) for op in history.transaction(t).ops]
        kept = [op for t in range(2) for op in left.transaction(t).ops]
        assert kept == [op for at, op in enumerate(ops) if at not in gone]
        assert left.transactions == 2
