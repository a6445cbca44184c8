"""graph/causal: vector clocks in blocks of any width and tree clocks give one relation and one verdict."""

import random
from collections.abc import Iterator

import numpy as np
import oracle
import pytest

from plume_py import HistoryBuilder, check
from plume_py.base.kernels import dispatch
from plume_py.checking.graph import causal, clock_kernels, tree_clock_kernels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.weak import edge_kernels, triples_kernels
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.generate import generate
from plume_py.history.model import History

LEVELS = ["CI", "RC", "RA", "TCC"]
KERNELS = clock_kernels, tree_clock_kernels, edge_kernels, triples_kernels


@pytest.fixture(params=["never", "always"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Plain kernels, then compiled ones."""
    dispatch.uncompile(*KERNELS)
    monkeypatch.setenv("ISOCHECK_COMPILE", request.param)
    yield request.param
    dispatch.uncompile(*KERNELS)


def built(sessions: list) -> History:
    builder = HistoryBuilder(initial=0)
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            builder.add(s, ops, status=status)
    return builder.build()


def random_reads(rng: random.Random, sessions: int, transactions: int, keys: int) -> History:
    """Each writes some keys and reads what any other wrote, past or future: mostly on causal cycles."""
    owners = sorted(rng.randrange(sessions) for _ in range(transactions))
    builder = HistoryBuilder(initial=0)
    for t, s in enumerate(owners):
        sources = [rng.randrange(max(0, t - 9), min(transactions, t + 2)) for _ in range(rng.randrange(3))]
        reads = [("r", f"k{p % keys}", p + 1) for p in sources if p != t]
        builder.add(s, [*reads, ("w", f"k{t % keys}", t + 1)])
    return builder.build()


def horizons(analysis: Analysis) -> np.ndarray:
    """By transaction and session: the first that is not causally before."""
    found = np.full((analysis.history.transactions, analysis.history.sessions), -1)
    for block in analysis.clocks():
        row = clock_kernels.empty_row(block)
        for t in range(analysis.history.transactions):
            row = clock_kernels.row_of(block, t, t == 0, row)
            for s in range(block.low, block.high):
                found[t, s] = clock_kernels.horizon(block, t, s)
                assert found[t, s] == analysis.history.session_start[s] + row[s - block.low]
    return found


def reachable(analysis: Analysis) -> np.ndarray:
    """The same by search, without clocks."""
    history, reads = analysis.history, analysis.reads
    found = np.empty((history.transactions, history.sessions), np.int64)
    for t in range(history.transactions):
        seen, todo = set(), [t]
        while todo:
            u = todo.pop()
            sources = reads.read_source[reads.read_start[u] : reads.read_start[u + 1]].tolist()
            if u > history.session_start[history.txn_session[u]]:
                sources.append(u - 1)
            fresh = {p for p in sources if p >= 0} - seen
            seen |= fresh
            todo += fresh
        found[t] = history.session_start[:-1]
        for p in seen:
            s = history.txn_session[p]
            found[t, s] = max(found[t, s], p + 1)
    return found


def edges(weak: WeakLevels) -> list[list[int]]:
    return sorted(weak.commit_order("TCC").forced.edges.tolist())


def variants(history: History, monkeypatch: pytest.MonkeyPatch) -> Iterator[WeakLevels]:
    """Trees, a search for each row, and vectors in blocks of 1 session, of 3, of all."""
    yield WeakLevels(Analysis(history, "tree"))
    yield WeakLevels(Analysis(history, "none"))
    for width in (1, 3, history.sessions):
        monkeypatch.setattr(causal, "CLOCK_BYTES", width * history.transactions)  # short sessions: a byte each
        yield WeakLevels(Analysis(history, "vector"))


def assert_equal(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, *vectors = variants(history, monkeypatch)
    expected = reachable(tree.analysis)
    for weak in (tree, *vectors):
        assert np.array_equal(horizons(weak.analysis), expected)
        assert edges(weak) == edges(tree)
        assert weak.commit_order("TCC").forced.stale == tree.commit_order("TCC").forced.stale
        assert [weak.holds(level) for level in LEVELS] == [tree.holds(level) for level in LEVELS]


def test_tiny_histories(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    for _ in range(60):
        history = built(oracle.random_history(rng))
        if history.transactions:
            assert_equal(history, monkeypatch)


@pytest.mark.parametrize("guarantee", ["SER", "TCC", "RA", "RC"])
@pytest.mark.parametrize("sessions", [2, 7, 40])
def test_generated_histories(guarantee: str, sessions: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = generate(guarantee, sessions=sessions, transactions=120 // sessions, operations=4, keys=8, seed=sessions)
    assert_equal(history, monkeypatch)


@pytest.mark.parametrize("seed", range(8))
def test_causal_cycles(seed: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    history = random_reads(rng, sessions=2 + 2 * seed, transactions=60, keys=5)
    assert not Analysis(history).causal.acyclic
    assert_equal(history, monkeypatch)


@pytest.mark.parametrize("seed", range(3))
def test_trees_with_a_hashed_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with more sessions than a whole table has room for."""
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    dispatch.uncompile(*KERNELS)
    monkeypatch.setattr(tree_clock_kernels, "WHOLE_TABLE", 0)
    assert_equal(random_reads(random.Random(seed), sessions=9, transactions=40, keys=5), monkeypatch)
    assert_equal(generate("SER", sessions=12, transactions=5, operations=3, keys=8, seed=seed), monkeypatch)


@pytest.mark.parametrize("clock", ["tree", "vector", "none"])
def test_agrees_with_the_axioms(clock: causal.ClockKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal, "CLOCK_BYTES", 1)  # vectors one session at a time
    rng = random.Random(3)
    for _ in range(300):
        sessions = oracle.random_history(rng)
        result = check(built(sessions), LEVELS, clock=clock)
        expected, taps = oracle.verdicts(sessions), oracle.taps(sessions)
        for level in LEVELS:
            assert result.levels[level].ok == expected[level]
            assert set(result.levels[level].taps) == taps[level]


@pytest.mark.parametrize("longest", [255, 256, 65_535, 65_536])
def test_counts_are_wide_enough(longest: int) -> None:
    builder = HistoryBuilder(initial=0)
    for i in range(longest):
        builder.add("long", [("w", "x", i + 1)])
    builder.add("reader", [("r", "x", longest)])
    analysis = Analysis(builder.build(), "vector")
    block = next(analysis.clocks())
    assert clock_kernels.horizon(block, longest, 0) == longest
    assert WeakLevels(analysis).holds("TCC")


def test_trees_are_given_up_when_too_many_steps_are_needed() -> None:
    analysis = Analysis(generate("SER", sessions=30, transactions=5, operations=6, keys=10))
    assert causal.tree_clocks(analysis.history, analysis.reads, analysis.causal, limit=100) is None
    assert causal.tree_clocks(analysis.history, analysis.reads, analysis.causal) is not None


def test_auto_takes_trees_for_many_sessions_that_know_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal, "MANY_SESSIONS", 20)
    monkeypatch.setattr(causal, "ENTRIES_PER_STEP", 2)
    strangers, friends = HistoryBuilder(initial=0), HistoryBuilder(initial=0)
    for i in range(200):
        strangers.add(i % 50, [("r", i % 50, max(0, i - 49)), ("w", i % 50, i + 1)])
        friends.add(i % 50, [*(("r", p, p + 1) for p in range(max(0, i - 9), i)), ("w", i, i + 1)])
    tree = Analysis(strangers.build()).whole_clocks
    vector = Analysis(friends.build()).whole_clocks
    assert tree is not None
    assert tree.clock.size == 0
    assert vector is not None
    assert vector.clock.size > 0
