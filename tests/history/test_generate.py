"""generate.py and inject.py: generated histories satisfy exactly their level; each recipe shows its pattern."""

from itertools import pairwise

import numpy as np
import pytest
from oracle import LEVELS, patterns, verdicts

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history import generate_kernels as kernels
from plume_py.history.builder import HistoryBuilder
from plume_py.history.generate import DISTRIBUTIONS, GUARANTEES, draw_keys, generate
from plume_py.history.inject import RECIPES, inject
from plume_py.levels import weaker_levels
from plume_py.levels.orders import level_of

SMALL = {"sessions": 3, "transactions": 2, "operations": 4, "keys": 3}
COLUMNS = ("op_kind", "op_key", "op_version", "txn_start", "txn_session", "session_start", "version_value")


def plain(history):
    """A history as the oracle wants it."""
    return [[(txn.status, txn.ops) for txn in session] for session in history]


def same(one, other):
    return all(np.array_equal(getattr(one, column), getattr(other, column)) for column in COLUMNS)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_generated_history_satisfies_its_level_and_violates_stronger_ones(guarantee):
    broken = dict.fromkeys(LEVELS, 0)
    for seed in range(250):
        found = verdicts(plain(generate(guarantee, **SMALL, seed=seed)))
        assert found[level_of(guarantee)], seed
        for level in LEVELS:
            broken[level] += not found[level]
    promised = {level_of(guarantee)} | weaker_levels(level_of(guarantee))
    assert {level for level in LEVELS if broken[level]} == set(LEVELS) - promised


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize(("sessions", "transactions"), [(1, 5), (2, 3), (6, 1), (5, 1)])
def test_a_generated_history_satisfies_its_level_in_other_shapes(guarantee, sessions, transactions):
    for seed in range(40):
        shape = {"sessions": sessions, "transactions": transactions, "operations": 3, "keys": 2}
        assert verdicts(plain(generate(guarantee, **shape, read_share=0.6, seed=seed)))[level_of(guarantee)], seed


def test_causal_histories_usually_violate_stronger_levels():
    shape = {"sessions": 4, "transactions": 2, "operations": 4, "keys": 2}
    found = [verdicts(plain(generate("TCC", **shape, seed=seed))) for seed in range(60)]
    assert sum(not verdict["SI"] for verdict in found) > 30


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_compiled_and_plain_kernel_generate_the_same_history(guarantee, monkeypatch):
    shape = {"sessions": 6, "transactions": 30, "operations": 8, "keys": 20, "seed": 5}
    try:
        monkeypatch.setenv("ISOCHECK_COMPILE", "never")
        dispatch.uncompile(kernels)
        interpreted = generate(guarantee, **shape)
        monkeypatch.setenv("ISOCHECK_COMPILE", "always")
        compiled = generate(guarantee, **shape)
        assert hasattr(kernels.execute, "py_func")
    finally:
        dispatch.uncompile(kernels)
    assert same(interpreted, compiled)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_seed_reproduces_its_history(guarantee):
    histories = [generate(guarantee, **SMALL, seed=seed) for seed in (1, 1, 2)]
    assert same(histories[0], histories[1])
    assert not same(histories[0], histories[2])


def test_default_size_is_the_papers():
    history = generate()
    assert (history.sessions, history.transactions, history.operations) == (25, 5000, 100_000)
    assert history.format == "generated"
    assert abs(float(np.mean(history.op_kind)) - 0.5) < 0.01
    assert history.initial_value == 0
    assert history.warnings == ()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_distributions(distribution):
    counts = np.bincount(draw_keys(np.random.default_rng(3), distribution, 1000, 200_000), minlength=1000)
    assert len(counts) == 1000
    if distribution == "uniform":
        assert counts.max() < 2 * counts.min() + 100
    elif distribution == "hotspot":
        assert abs(counts[:200].sum() / 200_000 - 0.8) < 0.01
        assert counts[200:].min() > 0
    else:
        blocks = [int(counts[begin:end].sum()) for begin, end in pairwise((0, 1, 10, 100))]
        assert counts[0] > 1.7 * counts[1] > 3 * counts[9]
        assert max(blocks[1:]) < 1.3 * min(blocks[1:]), "each decade of ranks gets about the same share"


@pytest.mark.parametrize("keys", [1, 2, 4])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_very_few_keys(distribution, keys):
    drawn = draw_keys(np.random.default_rng(0), distribution, keys, 500)
    assert set(drawn.tolist()) == set(range(keys))


@pytest.mark.parametrize("empty", ["sessions", "transactions", "operations"])
def test_empty_histories(empty):
    history = generate("PSI", **(SMALL | {empty: 0}))
    assert history.operations == 0


@pytest.mark.parametrize(
    "wrong", [{"guarantee": "CI"}, {"keys": 0}, {"read_share": 1.5}, {"sessions": -1}, {"distribution": "normal"}]
)
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(InputError):
        generate(**wrong)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_one_hot_key_is_not_searched_deeper_and_deeper(guarantee, monkeypatch):
    """With one key, versions are numbered as they commit: a search from v to w takes v - w steps."""
    steps = []

    def counting(search):
        def counted(version, *rest):
            found = search(version, *rest)
            steps.append(int(version) - int(found))
            return found

        return counted

    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    dispatch.uncompile(kernels)
    for name in ("first_before", "first_seen", "first_arrived"):
        monkeypatch.setattr(kernels, name, counting(getattr(kernels, name)))
    generate(guarantee, sessions=10, transactions=600, operations=2, keys=1)
    third = len(steps) // 3
    assert sum(steps[-third:]) <= 1.5 * sum(steps[:third]) + 100
    assert max(steps) < 300


def exactly(tap, found):
    """A non-repeatable read (j) is a fractured one (k or l), too; every other pattern stands alone."""
    return found == {tap} or (tap == "j" and found in ({"j", "k"}, {"j", "l"}))


@pytest.mark.parametrize("tap", sorted(RECIPES))
@pytest.mark.parametrize("initial", [0, 1, None, "none"])
def test_each_injection_is_exactly_its_pattern(tap, initial):
    for seed in range(8):
        history, (injection,) = inject(HistoryBuilder(initial=initial).build(), {tap: 1}, seed)
        assert exactly(tap, patterns(plain(history), initial))
        assert injection.tap == tap
        assert injection.transactions == tuple(range(history.transactions))
        assert set(injection.keys) == {op.key for session in history for txn in session for op in txn.ops}


@pytest.mark.parametrize("tap", sorted(RECIPES))
def test_injection_does_not_change_the_history(tap):
    before = generate("SER", **SMALL)
    after, injections = inject(before, {tap: 2}, seed=4)
    sessions = list(after)
    assert sessions[: before.sessions] == list(before)
    assert exactly(tap, patterns(plain(after)))
    assert [injection.tap for injection in injections] == [tap, tap]
    fresh = {key for injection in injections for key in injection.keys}
    assert fresh.isdisjoint({op.key for session in before for txn in session for op in txn.ops})


def two_strings():
    builder = HistoryBuilder(initial="void")
    builder.add("alice", [("w", "x", "one"), ("r", "y", "void")], id="a1", level="SI", line=3)
    builder.add("bob", [("r", "x", "one")])
    return builder.build()


def test_all_patterns_at_once():
    counts = dict.fromkeys(RECIPES, 2)
    history, injections = inject(two_strings(), counts, seed=9)
    assert patterns(plain(history), "void") == set(RECIPES)
    assert sorted(injection.tap for injection in injections) == sorted(list(RECIPES) * 2)
    planted = [t for injection in injections for t in injection.transactions]
    assert planted == list(range(2, history.transactions))
    labels = [str(txn.id) for session in history for txn in session]
    assert len(set(labels)) == len(labels)
    assert same(history, inject(two_strings(), counts, seed=9)[0])


def test_injection_needs_no_initial_state():
    builder = HistoryBuilder(implicit_initial=False)
    builder.add(0, [("w", 5, 1)])
    history, _ = inject(builder.build(), dict.fromkeys(RECIPES, 5))
    assert patterns(plain(history), "nothing") == set(RECIPES)


def test_nothing_to_inject():
    before = generate("SI", **SMALL)
    after, injections = inject(before, {})
    assert same(before, after)
    assert injections == []


@pytest.mark.parametrize("counts", [{"z": 1}, {"a": -1}])
def test_wrong_injections_are_rejected(counts):
    with pytest.raises(InputError):
        inject(generate("SER", **SMALL), counts)
