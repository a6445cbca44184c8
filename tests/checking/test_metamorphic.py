"""Properties that need no oracle: what must not change a verdict, and what must follow from it."""

import random

import paths
import pytest

import plume_py
from plume_py import HistoryBuilder, check
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.levels import WEAK, weaker_levels

SHARED = paths.SHARED / "histories"
SIZES = {"sessions": 8, "transactions": 40, "operations": 8, "keys": 40}
PLANTED = {"h": 1, "k": 2, "m": 1, "n": 1}


def history(guarantee="TCC", seed=0, planted=None):
    made = generate(guarantee, seed=seed, **SIZES)
    return inject(made, planted, seed)[0] if planted else made


def rebuilt(original, *, key=lambda k: k, value=lambda k, v: v, order=lambda sessions: sessions):
    """The same history with other names for keys and values, or its sessions in another order."""
    builder = HistoryBuilder(original.initial_value)
    for s, session in order(list(enumerate(original))):
        builder.session(s)
        for txn in session:
            builder.add(s, [(op.kind, key(op.key), value(op.key, op.value)) for op in txn.ops], status=txn.status)
    return builder.build()


def outcome(some):
    """Verdicts, patterns and counts: all that must not depend on names."""
    result = check(some, WEAK)
    return {level: (v.ok, v.taps) for level, v in result.levels.items()}, result.counts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("guarantee", ["RC", "RA", "TCC"])
def test_renaming_and_reordering_change_nothing(guarantee, seed):
    original = history(guarantee, seed, PLANTED)
    shuffle = random.Random(seed).shuffle

    def shuffled(sessions):
        shuffle(sessions)
        return sessions

    expected = outcome(original)
    assert outcome(rebuilt(original, key=lambda k: f"key-{k}")) == expected
    assert (
        outcome(rebuilt(original, value=lambda k, v: v if v == original.initial_value else v + 1_000_000)) == expected
    )
    assert outcome(rebuilt(original, order=shuffled)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_fresh_key_never_mends_a_violation(seed):
    original = history("TCC", seed, PLANTED)
    builder = HistoryBuilder(original.initial_value)
    for s, session in enumerate(original):
        for i, txn in enumerate(session):
            builder.add(s, [*txn.ops, ("w", "fresh", f"{s}.{i}")], status=txn.status)
    before, after = outcome(original)[0], outcome(builder.build())[0]
    assert {level for level in WEAK if not before[level][0]} <= {level for level in WEAK if not after[level][0]}


@pytest.mark.parametrize("guarantee", ["SER", "SI", "PSI", "PC", "TCC", "RA", "RC"])
@pytest.mark.parametrize("seed", range(3))
def test_the_guaranteed_level_and_all_weaker_ones_hold(guarantee, seed):
    holding = {level for level, (ok, _) in outcome(history(guarantee, seed))[0].items() if ok}
    promised = ({guarantee} | weaker_levels(guarantee)) & set(WEAK)
    assert promised <= holding
    for level in holding:
        assert weaker_levels(level) <= holding


@pytest.mark.parametrize("letter", "abcdefghijklmn")
def test_a_planted_pattern_is_found_where_it_was_planted(letter):
    planted, places = inject(history("SER", seed=3), {letter: 2}, seed=1)
    result = check(planted, WEAK, max_examples=10)
    also = {"j": {"j", "k", "l"}}.get(letter, {letter})
    assert letter in result.counts and set(result.counts) <= also
    for place in places:
        named = {planted.txn_label[t] for t in place.transactions}
        assert any(v.tap == letter and {t.id for t in v.transactions} <= named for v in result.violations)


@pytest.mark.skipif(not SHARED.exists(), reason="the corpus of published histories is not here")
@pytest.mark.parametrize(
    "path, holds, broken",
    [
        ("papers/isolde_ra_counterexample.json", "RC", "RA"),
        ("polysi/violations/yugabyte/yugabyte.txt", "RC", "RA"),
        ("polysi/violations/dgraph/history.bincode", "RA", "TCC"),
        ("isovista/bugs/dgraph_si.txt", "RA", "TCC"),
        ("polysi/violations/galera/galera.txt", "TCC", None),
    ],
)
def test_known_bugs_break_the_level_they_are_known_for(path, holds, broken):
    result = check(plume_py.load(SHARED / path), WEAK)
    assert result.levels[holds].ok
    assert broken is None or result.levels[broken].ok is False
