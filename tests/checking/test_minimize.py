"""checking/minimize: the small history violates the level alone, also as a file, at every level."""

import random

import oracle
import pytest
from click.testing import CliRunner
from small_histories import build, close, crowded, random_lists, with_levels

from plume_py import HistoryBuilder, check, load
from plume_py.base.errors import InputError
from plume_py.base.limits import Limits
from plume_py.checking.declared import LevelMap
from plume_py.checking.minimize import minimize
from plume_py.cli.main import cli
from plume_py.history.formats.json_writer import write_json
from plume_py.levels.patterns import STRONG

LEVELS = ("RC", "RA", "TCC", "PC", "PSI", "SI", "SER", "declared")


def wild(rng):
    return oracle.random_history(rng, wild=0.15, failed=0.25)


def saved(history, path):
    path.write_bytes(b"".join(write_json(history).chunks))
    return load(str(path))


def compare(seed, count, make, initial, path):
    """What is found breaks the level, also when it is read back from a file, and every part of it is needed."""
    rng = random.Random(seed)
    while count > 0:
        try:
            history = with_levels(make(rng), initial, rng)
        except InputError:  # ambiguous
            continue
        for level in LEVELS:
            if check(history, level).levels[level].ok is False:
                small = minimize(history, level)
                assert small.history.transactions <= history.transactions
                again = check(saved(small.history, path), level)
                assert again.levels[level].ok is False
                assert small.tap in again.levels[level].taps
                count -= 1


@pytest.mark.parametrize(("make", "initial"), [(close, 0), (crowded, 0), (wild, 0), (random_lists, None)])
def test_random_histories(make, initial, tmp_path):
    compare(1, 40, make, initial, tmp_path / "small.json")


def without(sessions):
    """Every history that has one transaction or one operation less, and no read of what went."""
    for s, session in enumerate(sessions):
        for t, (status, ops) in enumerate(session):
            for at in [None, *range(len(ops))]:
                left = [] if at is None else [(status, [*ops[:at], *ops[at + 1 :]])]
                gone = ops if at is None else [ops[at]]
                rest = [*sessions[:s], [*session[:t], *left, *session[t + 1 :]], *sessions[s + 1 :]]
                yield without_reads(rest, {op[1:] for op in gone if op[0] != "r"})


def without_reads(sessions, gone):
    wrote = {op[1:] for session in sessions for _, ops in session for op in ops if op[0] != "r"}
    lost = gone - wrote
    return [
        [(status, [op for op in ops if op[0] != "r" or op[1:] not in lost]) for status, ops in session]
        for session in sessions
    ]


def plain(history):
    """A history of registers as the oracle knows it."""
    return [[(txn.status, [tuple(op) for op in txn.ops]) for txn in session] for session in history]


def weakest_broken(sessions):
    """The strong levels that are broken, if only because of those."""
    levels = check(build(sessions), ("TCC", "PC", "PSI", "SI", "SER")).levels
    return {level for level, verdict in levels.items() if not verdict.ok} if levels["TCC"].ok else set()


def smallest(seed, count, make):
    """There are no more transactions than a counterexample shows, and nothing can be left out."""
    rng = random.Random(seed)
    while count > 0:
        sessions = make(rng)
        history, level = build(sessions), rng.choice(("RC", "RA", "TCC", "PC", "PSI", "SI", "SER"))
        result = check(history, level, max_examples=3)
        if not result.violations:
            continue
        count -= 1
        small = minimize(history, level)
        shown = min(len(violation.transactions) for violation in result.violations)
        if not any(txn.status == "unknown" for session in history for txn in session):
            assert small.history.transactions - (small.history.init_txn >= 0) <= shown, (level, sessions)
        if small.tap in STRONG:
            broken = weakest_broken(plain(small.history))
            assert level in broken
            for less in without(plain(small.history)):
                assert weakest_broken(less) != broken, (level, sessions)
        else:
            for less in without(plain(small.history)):
                taps = set(check(build(less), level, max_examples=0).levels[level].taps)
                assert small.tap not in taps or taps - set(result.levels[level].taps), (level, sessions)


@pytest.mark.parametrize("make", [close, crowded, wild])
def test_it_is_never_larger_than_the_counterexample_and_nothing_can_go(make):
    smallest(1, 60, make)


@pytest.mark.full
@pytest.mark.parametrize("make", [close, crowded, wild])
def test_many_are_never_larger_and_nothing_can_go(make):
    smallest(2, 2000, make)


def test_a_reader_that_writes_something_else_becomes_one_that_only_reads():
    """T2 also writes z, which does not matter, but its cycle has another name without it."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1), ("w", "p", 1)])
    builder.add("b", [("r", "y", 0), ("r", "x", 1), ("w", "z", 1)])
    builder.add("c", [("w", "y", 1), ("r", "x", 0)])
    for name in "defg":
        builder.add(name, [("r", "p", 1), ("w", f"own-{name}", 1)])
    history = builder.build()
    assert [violation.tap for violation in check(history, "SER").violations] == ["cycle"]
    small = minimize(history, "SER")
    assert (small.history.transactions, small.history.operations) == (3, 5)
    assert small.tap == "read-only-anomaly"


def test_an_unknown_outcome_takes_its_reader_along():
    """T2 counts only because T4 read its z."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "p", 1)])
    builder.add("b", [("r", "p", 1), ("w", "x", 2), ("w", "z", 1)], status="unknown")
    builder.add("b", [("r", "x", 0)])
    for _ in range(5):
        builder.add("c", [("r", "z", 1)])
    small = minimize(builder.build(), "RA")
    assert [small.history.transaction(t).status for t in range(small.history.transactions)].count("unknown") == 1
    assert (small.history.transactions, small.history.operations) == (3, 4)
    assert small.tap == "k"


def test_lists_that_mean_something_else_without_their_elements():
    t = lambda *ops: ("committed", list(ops))  # noqa: E731
    alone = [
        [
            t(("append", "x", 1)),
            t(("r", "x", (1, 2))),
            t(("append", "x", 2)),
            t(("r", "x", (1, 2, 1))),
            t(("r", "x", ())),
        ]
    ]
    small = minimize(build(alone, None), "SER")
    assert check(small.history, "SER").levels["SER"].ok is False


def test_levels_of_removed_transactions_do_not_matter():
    """T2 at RC makes the weakest level common to all RC; without it the same contradiction has another name."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], level="SI")
    builder.add("a", [("r", "x", 0), ("w", "x", 2)], level="PSI")
    builder.add("a", [("r", "x", 2)], level="RC")
    small = minimize(builder.build(), "declared")
    assert small.history.transactions == 2
    assert [small.history.transaction(t).level for t in range(2)] == ["SI", "PSI"]
    assert small.tap == "k"


def lost_update():
    builder = HistoryBuilder(initial=0)
    for name in "abc":
        builder.add(name, [("r", "x", 0), ("w", "x", name), ("w", f"own-{name}", 1)], id=name)
    return builder.build()


def test_levels_that_the_history_does_not_carry():
    assert minimize(lost_update(), "declared") is None
    for options in ({"assume": "SI"}, {"level_map": LevelMap(sessions=dict.fromkeys("abc", "SI"))}):
        small = minimize(lost_update(), "declared", **options)
        assert small.tap == "lost-update"
        assert [small.history.transaction(t).level for t in range(small.history.transactions)] == ["SI", "SI"]


def test_from_the_command_line(tmp_path):
    path, levels, target = tmp_path / "h.json", tmp_path / "levels.json", tmp_path / "small.json"
    saved(lost_update(), path)
    levels.write_text('{"transactions": {"a": "SI", "b": "PSI", "c": "PC"}}')
    run = lambda *arguments: CliRunner().invoke(cli, list(map(str, arguments)))  # noqa: E731
    result = run("check", path, "--level", "declared", "--levels-file", levels, "--minimize", target)
    assert result.exit_code == 1
    assert "2 transactions, 4 operations, lost-update" in result.stderr
    assert run("check", target, "--level", "declared").exit_code == 1
    target.unlink()
    assert run("check", path, "--level", "declared", "--assume", "SER", "--minimize", target).exit_code == 1
    assert target.exists()


def test_a_time_limit_ends_the_minimization_with_the_smallest_history_so_far():
    small = minimize(lost_update(), "SI", limits=Limits(timeout=1e-9))
    assert check(small.history, "SI").levels["SI"].ok is False
