"""Every violation that is reported is confirmed by ``verify``, on random histories with failed transactions."""

import random

import oracle
import pytest
from list_histories import random_list_history
from paths import ROOT
from small_histories import build, with_levels
from verify_problems import ALL, problems

from plume_py import check, load
from plume_py.base.errors import InputError
from plume_py.report.json import line
from plume_py.verify import read_claim, verify_entry

DECLARED = "declared"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


# Generators of histories, each with the initial value of what it makes: a line for each kind.


def failing(rng):
    """Many transactions that abort or end without an answer, some of them seen."""
    return oracle.random_history(rng, txns=(2, 7), sessions=(1, 3), wild=0.05, failed=0.4)


def healthy(rng):
    """Reads that are nearly always well: what is broken are strong levels."""
    return oracle.random_history(rng, txns=(3, 7), sessions=(2, 4), wild=0.01, failed=0.2)


def wild(rng):
    """Weak patterns all over, and strong ones besides."""
    return oracle.random_history(rng, txns=(4, 8), sessions=(2, 5), ops=(1, 3), wild=0.1, failed=0.1)


KINDS = [(failing, 0), (healthy, 0), (wild, 0), (random_list_history, None)]


def confirm(seed, count, make, initial):
    """As many histories, at all levels at once, at one alone, and at a level per transaction."""
    rng = random.Random(seed)
    for _ in range(count):
        sessions = make(rng)
        try:
            history = with_levels(sessions, initial, rng)
        except InputError:  # ambiguous: not a history
            continue
        for levels in (ALL, rng.choice(ALL), DECLARED):
            assert not problems(history, levels), (levels, sessions)


@pytest.mark.parametrize(("make", "initial"), KINDS)
def test_random_histories(make, initial):
    confirm(1, 400, make, initial)


@pytest.mark.full
@pytest.mark.parametrize(("make", "initial"), KINDS)
def test_many_random_histories(make, initial):
    confirm(2, 50_000 // len(KINDS) + 1, make, initial)


# Transactions that do not count


def committed(*ops):
    return "committed", list(ops)


def test_every_violated_level_has_a_violation():
    """PC and PSI are broken in ways of one name, and neither level implies the other."""
    history = load(ROOT / "histories" / "TCC" / "forced-edges-do-not-feed-back.json")
    (entry,) = read_claim(line(check(history, ALL, name="h")).encode())
    assert {claim.level for claim in entry.violations} == {"PC", "PSI"}
    assert not verify_entry(history, entry)


def test_an_aborted_transaction_takes_no_part_in_an_argument():
    sessions = [
        [committed(("w", "x", 1)), ("aborted", [("w", "y", 9)]), committed(("r", "y", 0))],
        [committed(("r", "x", 0), ("w", "y", 2))],
    ]
    history = build(sessions)
    result = check(history, ALL)
    assert [level for level in ALL if not result.levels[level].ok] == ["SER"]
    (violation,) = result.violations
    assert violation.level == "SER"
    assert [txn.id for txn in violation.transactions] == ["T1", "T3", "T4"]
    assert [(step.source, step.relation, step.target) for step in violation.steps][:1] == [("T1", "SO", "T3")]
    assert problems(history, ALL) == []
