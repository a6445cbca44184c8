"""All statements of the levels agree, level by level, on every tiny history there is.

What a level is, is said once (levels.table) and on purpose restated: by the kernels in columns, by the small engine, by
``verify``, by synthesis as formulas, and by two oracles. Here all of them judge the same histories, each by itself.
"""

import random
from collections import Counter
from functools import cache
from itertools import chain

import numpy as np
import oracle
import oracle_mixed
import pytest
from small_histories import build
from synth_histories import every_history, plain, random_concrete

from plume_py import check
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.minimal.search import search
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.levels import (
    CODES,
    LEVELS,
    NAMES,
    RUNNABLE,
    STRONG,
    STRONGEST_FIRST,
    WEAK,
    visibility_bits,
    weaker_levels,
)
from plume_py.levels.table import AT_COMMIT, WRITERS
from plume_py.levels.visibility import visible_set
from plume_py.reasoning.synth.formulas import DEFINITIONS
from plume_py.reasoning.synth.problem import witness_of
from plume_py.verify.facts import HistoryFacts
from plume_py.verify.strong import all_orders_fail

UPDATE_ATOMIC = AT_COMMIT | WRITERS  # a level that the checker does not have, and synthesis has


def by_bits(facts, bits):
    """Is there a commit order in which everyone reads the newest of what these bits let it see?"""
    before = {t: {a for a, b in facts.co | facts.ww if b == t} for t in facts.live}
    order, visible = [], []

    def places(transactions):
        return sum(1 << order.index(s) for s in transactions if s in order)

    def fits(t):
        direct = places(s for s in facts.live if (s, t) in facts.so | facts.wr)
        rivals = places(s for s in facts.live if facts.writes[s].keys() & facts.writes[t].keys())
        mine = visible_set(bits, direct, rivals, (1 << len(order)) - 1, visible, placed=True)
        so_far = 0
        for x, t1 in facts.reads[t]:
            after = -1 if t1 == oracle.INITIAL else order.index(t1)
            newer = places(facts.others(x, t1, t)) >> (after + 1) << (after + 1)
            if newer & (mine if bits & AT_COMMIT else so_far):
                return None
            so_far |= places({t1} - {oracle.INITIAL})
        return mine

    def extend():
        if len(order) == len(facts.live):
            return True
        for t in facts.live:
            if t not in order and before[t] <= set(order):
                mine = fits(t)
                if mine is not None:
                    order.append(t)
                    visible.append(mine)
                    if extend():
                        return True
                    order.pop()
                    visible.pop()
        return False

    return not facts.found & oracle.BASE and extend()


@cache
def prepared(concrete):
    sessions = plain(concrete)
    return oracle.Facts(sessions), build(sessions)


@cache
def tiny_histories():
    """All of a few small scopes, and some larger ones, among them with reads of a key from two others."""
    scopes = (2, 2, 3), (3, 1, 3)
    rng = random.Random(7)
    larger = [random_concrete(rng, txns=(4, 5), keys=(2, 3)) for _ in range(120)]
    return [*chain.from_iterable(every_history(*scope).values() for scope in scopes), *larger]


def statements(concrete, level):
    """By whom, and whether the history keeps the level."""
    facts, history = prepared(concrete)
    yield "oracle", oracle.satisfies(facts, level)
    yield "check", check(history, level, max_examples=0).levels[level].ok
    yield "synthesis", witness_of(DEFINITIONS[level], concrete) is not None
    if level not in RUNNABLE:
        return
    everyone = dict.fromkeys(facts.live, level)
    codes = np.full(history.transactions, CODES[level], np.uint8)
    told = HistoryFacts(history)
    yield "bits", by_bits(facts, visibility_bits(level))
    yield "oracle of mixed levels", oracle_mixed.holds(facts, everyone)
    yield "columns", StrongEngine(Analysis(history), codes).decide().ok
    yield "small engine", search(history, level, 10_000).ok
    yield "verify", all_orders_fail(told, lambda t: level, set(told.live), 10_000) is False


def agree(level, histories):
    answers = Counter()
    for concrete in histories:
        found = dict(statements(concrete, level))
        assert len(set(found.values())) == 1, (found, concrete.short())
        answers[found["check"]] += 1
    return answers


@pytest.mark.parametrize("level", NAMES)
def test_all_statements_of_a_level_agree(level):
    answers = agree(level, tiny_histories())
    assert answers[True] and answers[False], answers


@pytest.mark.full
@pytest.mark.parametrize("level", NAMES)
def test_all_statements_of_a_level_agree_on_every_history_of_three_transactions(level):
    agree(level, every_history(3, 2, 2).values())


def test_a_level_of_new_bits_means_what_its_formula_says():
    answers = Counter()
    for concrete in tiny_histories():
        formula = witness_of(DEFINITIONS["UA"], concrete) is not None
        assert by_bits(prepared(concrete)[0], UPDATE_ATOMIC) == formula, concrete.short()
        answers[formula] += 1
    assert answers[True] and answers[False]


# What follows from the bits


def test_the_lattice_is_that_of_the_bits():
    assert WEAK == ("CI", "RC", "RA", "TCC")
    assert STRONG == ("SER", "SI", "PSI", "PC")
    assert weaker_levels("SI") == {"CI", "RC", "RA", "TCC", "PC", "PSI"}
    assert LEVELS["RA"].weaker == ("RC", "CI") and LEVELS["SI"].weaker == ("PC", "PSI")
    for at, name in enumerate(STRONGEST_FIRST):
        assert not weaker_levels(name) & set(STRONGEST_FIRST[:at])


def test_a_level_implies_what_every_history_shows():
    for concrete in tiny_histories():
        holds = {name: oracle.satisfies(prepared(concrete)[0], name) for name in NAMES}
        for name, ok in holds.items():
            assert not ok or all(holds[other] for other in weaker_levels(name)), (name, concrete.short())
