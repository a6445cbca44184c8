"""The oracle's rules for lists (decision 6) against one that has none and builds every list from every commit order."""

import random
from itertools import permutations
from types import SimpleNamespace

import oracle
import oracle_mixed
import oracle_replay
import pytest
from list_cases import CASES, history, patterns_of
from list_histories import random_list_history


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    text, levels, patterns = CASES[case]
    sessions = history(text)
    assert {level for level, ok in oracle.verdicts(sessions, None).items() if ok} == set(levels.split())
    assert {level for level, ok in oracle_replay.verdicts(sessions).items() if ok} == set(levels.split()) - {"CI"}
    assert oracle.patterns(sessions, None) == patterns_of(patterns)


def compare(seed, count, txns=(2, 5)):
    """The verdicts of both, and the patterns that explain those of the first; returns what was seen."""
    rng = random.Random(seed)
    broken, kept = set(), set()
    for _ in range(count):
        sessions = random_list_history(rng, txns=txns)
        found, by_level = oracle.verdicts(sessions, None), oracle.taps(sessions, None)
        built = oracle_replay.verdicts(sessions)
        assert {level: found[level] for level in built} == built, sessions
        for level in oracle.LETTERS:
            assert found[level] == (not by_level[level]), (level, sessions)
        broken |= by_level["TCC"]
        kept.add(tuple(level for level, ok in found.items() if ok))
    return broken, kept


def test_rules_and_replay_agree():
    broken, kept = compare(3, 2000)
    assert broken == oracle.LETTERS["TCC"]
    assert kept >= {tuple(holds.split()) for _, holds, _ in CASES.values()}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 120))
def test_rules_and_replay_agree_on_100_000_histories(seed):
    compare(seed, 5000)


@pytest.mark.full
def test_rules_and_replay_agree_on_larger_histories():
    compare(200, 5000, txns=(6, 6))


def replayed(replay, levels):
    """Is there an arbitration order whose lists are those that were read, and that keeps each one's level?"""
    for order in permutations(replay.live):
        sources = oracle_replay.built(replay, order)
        if sources is not None and keeps(replay, levels, list(order), sources):
            return True
    return False


def keeps(replay, levels, order, sources):
    reads = {t: [sources[key] for key in sorted(sources) if key[0] == t] for t in order}
    facts = SimpleNamespace(
        so=replay.so,
        wr={(w, t) for (t, _), (_, w) in sources.items()},
        writes=replay.wrote,
        reads=reads,
        others=lambda x, t1, t3: [t2 for t2 in replay.writers[x] if t2 not in (t1, t3)],
    )
    sees = {}
    for n, t in enumerate(order):
        sees[t] = oracle_mixed.visible(facts, levels, order[:n], sees, t)
        if not oracle_mixed.reads_well(facts, levels, order[:n], sees[t], t):
            return False
    return True


def test_rules_and_replay_agree_on_mixed_levels():
    rng = random.Random(3)
    held = 0
    for _ in range(1500):
        sessions = random_list_history(rng, txns=(2, 5), defects=0.2)
        facts = oracle.Facts(sessions, None)
        levels = oracle_mixed.random_levels(rng, facts)
        holds = oracle_mixed.holds(facts, levels)
        assert holds == replayed(oracle_replay.Replay(sessions), levels), (levels, sessions)
        held += holds
    assert 300 < held < 1200


def test_registers_beside_lists_are_replayed_too():
    """The replay knows registers: on histories of nothing else it agrees with the older oracle."""
    rng = random.Random(5)
    for _ in range(300):
        sessions = oracle.random_history(rng, txns=(2, 4))
        try:
            found = oracle.verdicts(sessions)
        except ValueError:  # ambiguous: not a history
            continue
        facts = oracle.Facts(sessions)
        if facts.init_txn is None:
            built = oracle_replay.verdicts(sessions, 0)
            assert {level: found[level] for level in built} == built, sessions


def test_an_echo_has_no_name():  # decision 2
    """T3 rightly reads x from T1: T2's x comes later by causality, and only the reader of both keys is wrong."""
    text = ["wx3"], ["rx3 wx9 wy1"], ["rx3 ry1"], ["rx9"], ["rx9"], ["rx9"]
    sessions = [[("committed", [(op[0], op[1], int(op[2:])) for op in body.split()]) for body in s] for s in text]
    assert {(name[0], *name[1:4]) for name in oracle.named_triples(oracle.Facts(sessions))} == {("k", 0, 1, 2)}
