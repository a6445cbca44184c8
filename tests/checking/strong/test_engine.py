"""solver/engine: the strong levels against the brute-force oracle, and properties of histories of any size."""

import json
import random

import oracle
import pytest
from paths import HISTORIES
from small_histories import all_histories, build, close, crowded, random_lists

from plume_py import HistoryBuilder, check, load
from plume_py.base.kernels import dispatch
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver import greedy_order_kernels, saturation_kernels
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.strong.solver.unsat_core import Core
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.history.model import NOBODY
from plume_py.levels import weaker_levels
from plume_py.verify import verify_entry, verify_witness
from plume_py.verify.claims import WitnessClaim, read_claim

STRONG = ("PC", "PSI", "SI", "SER")
KERNELS = (saturation_kernels, greedy_order_kernels)


def decided(sessions, initial=0):
    """(facts, level -> decision) of a history whose reads are well; None for others."""
    facts = oracle.Facts(sessions, initial)
    if facts.found & oracle.BASE:
        return None
    analysis = Analysis(build(sessions, initial))
    return facts, analysis, {level: StrongEngine(analysis, level).decide() for level in STRONG}


def cut_down(sessions, core: Core):
    """The history with the transactions of a core alone, without reads from others."""
    kept, number = [], 0
    writer = {
        (x, v): t for t, (_, ops) in enumerate(txn for session in sessions for txn in session)
        for kind, x, v in ops if kind != "r"
    }  # fmt: skip
    for session in sessions:
        kept.append([])
        for status, ops in session:
            if number in core.transactions:
                mine = [
                    op for op in ops
                    if op[0] != "r" or isinstance(op[2], tuple) or writer.get(op[1:], number) in core.transactions
                ]  # fmt: skip
                # an unknown outcome counts because it was read; its own reads are not judged
                unknown = [op for op in mine if op[0] != "r"]
                kept[-1].append(("committed", unknown if status == "unknown" else mine))
            number += 1
    return kept


def compare(seed, count, make=close, initial=0):
    rng = random.Random(seed)
    compared = 0
    while compared < count:
        sessions = make(rng)
        try:
            found = decided(sessions, initial)
        except ValueError:  # ambiguous: not a history
            continue
        if found is None:
            continue
        facts, analysis, decisions = found
        for level, decision in decisions.items():
            assert decision.ok == oracle.satisfies(facts, level), (level, sessions)
            if decision.ok:
                order = [analysis.history.txn_label[t] for t in decision.order]
                assert verify_witness(analysis.history, WitnessClaim(level=level, order=order)) == [], (level, sessions)
            elif make is not random_lists:
                small = oracle.Facts(cut_down(sessions, decision.core), initial)
                assert not oracle.satisfies(small, level), (level, sessions, decision.core)
        compared += 1


@pytest.mark.parametrize("make", [close, crowded])
def test_random_histories_agree_with_the_oracle(make):
    compare(1, 120, make)


def test_list_histories_agree_with_the_oracle():
    compare(2, 150, random_lists, None)


def test_a_core_contains_the_reasons_of_forced_edges():
    """T2 commits before T1 only because of T4, which the contradiction itself does not mention."""
    ops = ["wx3", "rx3 wx5 ry0"], ["wx7 wy1", "rx7", "rx5 wy2 wx8"], ["rx0 ry0"], ["ry0 wx4"]
    sessions = [[("committed", [(o[0], o[1], int(o[2])) for o in t.split()]) for t in session] for session in ops]
    facts, _, decisions = decided(sessions)
    assert not decisions["PSI"].ok
    assert not oracle.satisfies(facts, "PSI")
    assert not oracle.satisfies(oracle.Facts(cut_down(sessions, decisions["PSI"].core)), "PSI")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 150))
def test_100_000_random_histories_agree_with_the_oracle(seed):
    compare(seed, 2000, crowded if seed % 4 == 0 else close)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 110))
def test_10_000_list_histories_agree_with_the_oracle(seed):
    compare(seed, 1000, random_lists, None)


def test_compiled_kernels_agree_with_the_oracle(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    try:
        compare(3, 100)
        compare(3, 100, crowded)
    finally:
        dispatch.uncompile(*KERNELS)


def test_histories_of_two_transactions_agree_with_the_oracle():
    for sessions in [*all_histories(1), *all_histories(2)][::4]:
        found = decided(sessions)
        if found is not None:
            for level, decision in found[2].items():
                assert decision.ok == oracle.satisfies(found[0], level), (level, sessions)


def test_narrow_blocks_of_clocks_change_nothing(monkeypatch):
    monkeypatch.setattr("plume_py.checking.strong.solver.saturation.CLOCK_BYTES", 1)
    compare(4, 150)
    compare(4, 60, crowded)


def generated(guarantee, **options):
    small = {"sessions": 6, "transactions": 40, "operations": 6, "keys": 30, "seed": 1}
    return generate(guarantee, **{**small, **options})


@pytest.mark.parametrize("guarantee", STRONG)
@pytest.mark.parametrize("distribution", ["uniform", "zipfian"])
def test_generated_histories_keep_their_level_and_the_lattice(guarantee, distribution):
    history = generated(guarantee, distribution=distribution)
    levels = check(history, [*STRONG, "TCC"]).levels
    assert levels[guarantee].ok
    for level, verdict in levels.items():
        assert not verdict.ok or all(levels[weak].ok for weak in weaker_levels(level) & levels.keys())


PLANTED = {
    "lost-update": {"PSI", "SI", "SER"},
    "write-skew": {"SER"},
    "long-fork": {"PC", "SI", "SER"},
    "read-only-anomaly": {"SER"},
}


@pytest.mark.parametrize("pattern", PLANTED)
@pytest.mark.parametrize("seed", range(3))
def test_planted_patterns_are_found_and_proved(pattern, seed):
    history, [planted] = inject(generated("SER"), {pattern: 1}, seed)
    result = check(history, STRONG, name="planted")
    assert {level for level, verdict in result.levels.items() if not verdict.ok} == PLANTED[pattern]
    assert {violation.tap for violation in result.violations} == {pattern}
    names = {history.txn_label[t] for t in planted.transactions}
    for violation in result.violations:
        assert {shown.id for shown in violation.transactions} <= names
    from plume_py.report.json import line

    assert verify_entry(history, read_claim(line(result).encode())[0]) == []


@pytest.mark.parametrize("level", STRONG)
def test_verify_rejects_a_wrong_witness(level):
    history = generated("SER")
    decision = StrongEngine(Analysis(history), level).decide()
    order = [history.txn_label[t] for t in decision.order]
    assert verify_witness(history, WitnessClaim(level=level, order=order)) == []
    rng = random.Random(5)
    refuted = 0
    for _ in range(20):
        a, b = sorted(rng.sample(range(len(order)), 2))
        swapped = [*order[:a], order[b], *order[a + 1 : b], order[a], *order[b + 1 :]]
        refuted += bool(verify_witness(history, WitnessClaim(level=level, order=swapped)))
    assert refuted > 10


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("**/*.json")), ids=lambda path: path.stem)
def test_examples_fit_the_lattice(path):
    if "sessions" not in json.loads(path.read_text()):
        return
    levels = check(load(str(path)), ["SER", "SI", "PSI", "PC", "TCC", "RA", "RC"]).levels
    for level, verdict in levels.items():
        assert verdict.ok is not None
        assert not verdict.ok or all(levels[weak].ok for weak in weaker_levels(level) & levels.keys())


@pytest.mark.parametrize(("guarantee", "level"), [("SER", "PSI"), ("SI", "PSI"), ("SI", "SI"), ("SER", "SER")])
def test_blind_writes_leave_much_open(guarantee, level):
    """Hardly any reads: the search has to make choices, and at PSI to borrow an order of SI."""
    history = generate(
        guarantee, sessions=30, transactions=8, operations=3, keys=20, read_share=0.2, distribution="uniform", seed=1
    )
    decision = StrongEngine(Analysis(history), level).decide()
    assert decision.ok
    assert decision.stats["choices"] > 0
    order = [history.txn_label[t] for t in decision.order]
    assert verify_witness(history, WitnessClaim(level=level, order=order)) == []


@pytest.mark.parametrize("seed", range(3))
def test_an_explicit_initial_transaction_changes_nothing(seed):
    """It needs no level of its own, either. A guess that it is initial gives no other verdict than that it is not."""
    rng = random.Random(seed)
    for _ in range(20):
        sessions = close(rng)
        levels = [[rng.choice(STRONG) for _ in session] for session in sessions]
        guess = with_setup(sessions, levels).build()
        if guess.init_txn == NOBODY:
            continue
        implicit = HistoryBuilder(initial=0)
        for number, session in enumerate(sessions):
            for (status, ops), level in zip(session, levels[number], strict=True):
                implicit.add(number, ops, status=status, level=level)
        explicit, plain = (with_setup(sessions, levels).build(init_txn=choice) for choice in ("first", "none"))
        assert strong_verdicts(explicit, "declared") == strong_verdicts(implicit.build(), "declared"), sessions
        assert strong_verdicts(guess) == strong_verdicts(plain), sessions


def with_setup(sessions, levels):
    """The same transactions after one that writes "old", which they read instead of the initial value."""
    builder = HistoryBuilder(declared=False, implicit_initial=False)
    keys = sorted({op[1] for session in sessions for _, ops in session for op in ops})
    builder.add("setup", [("w", key, "old") for key in keys])
    for number, session in enumerate(sessions):
        for (status, ops), level in zip(session, levels[number], strict=True):
            ops = [(kind, x, "old" if v == 0 else v) for kind, x, v in ops]
            builder.add(number, ops, status=status, level=level)
    return builder


def strong_verdicts(history, *more):
    return {name: verdict.ok for name, verdict in check(history, [*STRONG, *more]).levels.items()}
