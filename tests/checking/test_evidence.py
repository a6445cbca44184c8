"""checking/evidence: detection rates against the oracle on the changed history, conflicts and advice by hand."""

import json
import random

import oracle
import pytest
from click.testing import CliRunner
from small_histories import build, random_times

from plume_py import HistoryBuilder, check
from plume_py.base.limits import Limits
from plume_py.checking.evidence import evidence_of
from plume_py.checking.evidence.evidence import conflicts
from plume_py.checking.evidence.stale_read_mutants import Versions, levels_detecting, stale_reads
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.weak.decide import WeakLevels
from plume_py.cli.main import cli
from plume_py.history.model import COMMITTED
from plume_py.levels import NAMES


def changed(sessions, history, stale):
    """The history with one read changed, for the oracle."""
    first = [0]
    for session in sessions:
        first += [first[-1] + len(session)]
    copied = [[(status, list(ops)) for status, ops in session] for session in sessions]
    s = int(history.txn_session[stale.reader])
    ops = copied[s][stale.reader - first[s]][1]
    at = stale.op - int(history.txn_start[stale.reader])
    ops[at] = (*ops[at][:2], stale.value)
    return copied


def test_a_stale_read_is_detected_by_the_levels_that_the_changed_history_violates():
    rng = random.Random(11)
    asked, seen, broken = 0, 0, 0
    for _ in range(400):
        sessions = oracle.random_history(rng, wild=0.0)
        history = build(sessions)
        weak = WeakLevels(Analysis(history))
        if not weak.holds("RC"):
            continue
        versions = Versions(weak.analysis, weak.witness("RC"))
        for stale in stale_reads(versions, 4, 0):
            found = set(levels_detecting(versions, [stale], NAMES, Limits()))
            truth = {level for level, ok in oracle.verdicts(changed(sessions, history, stale)).items() if not ok}
            assert found <= truth, sessions
            asked, seen, broken = asked + 1, seen + len(found), broken + len(truth)
    assert asked > 300
    assert seen >= 0.98 * broken  # a window may leave out what has nothing to do with the read, and rarely more


def test_conflicts_are_the_pairs_that_overlap_and_touch_a_key():
    rng = random.Random(5)
    some = 0
    for _ in range(200):
        sessions = oracle.random_history(rng)
        history = build(sessions, times=random_times(rng, sessions))
        found = conflicts(history)
        pairs = set() if found is None else set(found.pairs)
        assert pairs == by_hand(history)
        some += bool(pairs)
    assert some > 50


def by_hand(history):
    timed = []
    for t in range(history.transactions):
        txn = history.transaction(t)
        if history.txn_status[t] == COMMITTED and txn.begin is not None and txn.end is not None:
            touched = {op.key for op in txn.ops}
            timed.append((t, txn, touched, {op.key for op in txn.ops if op.kind == "w"}))
    return {
        (t, u)
        for t, a, touched, wrote in timed
        for u, b, touched_too, wrote_too in timed
        if t < u
        and a.session != b.session
        and a.begin <= b.end
        and b.begin <= a.end
        and (touched & wrote_too or wrote & touched_too)
    }


def test_a_chain_of_updates_has_a_detection_rate_and_lists_impossible_anomalies():
    builder = HistoryBuilder(initial=0)
    for i in range(40):
        builder.add(i % 2, [("r", "x", i), ("w", "x", i + 1)])
    history = builder.build()
    found = evidence_of(history, check(history).levels)
    assert found.tried == 20
    assert found.levels_detecting["SER"] == found.levels_detecting["SI"] == 20
    assert found.conflicts is None
    assert [name for name, _ in found.unseen] == [
        "aborted read", "intermediate read", "non-repeatable read", "fractured read",
    ]  # fmt: skip
    assert evidence_of(history, check(history).levels) == found


def test_without_a_conflict_nothing_is_noticed():
    builder = HistoryBuilder(initial=0)
    for i in range(10):
        builder.add(i, [("w", f"k{i}", 1)], begin=2 * i, end=2 * i + 1)
        builder.add(i, [("r", f"k{i}", 1)], begin=100 + 2 * i, end=101 + 2 * i)
    history = builder.build()
    found = evidence_of(history, check(history).levels)
    assert found.conflicts == 0
    assert {"lost update", "write skew"} <= {name for name, _ in found.unseen}


@pytest.mark.parametrize("levels", [["RC"], ["TCC"], ["SI"]])
def test_levels_that_follow_are_judged_too(levels):
    builder = HistoryBuilder(initial=0)
    for i in range(10):
        builder.add(i % 3, [("r", "x", i), ("w", "x", i + 1)])
    history = builder.build()
    assert set(evidence_of(history, check(history, levels).levels).levels_detecting) >= {*levels, "RC"}


def test_no_evidence_is_computed_if_no_level_holds():
    builder = HistoryBuilder(initial=0)
    builder.add(0, [("w", "x", 1)], status="aborted")
    builder.add(1, [("r", "x", 1)])
    history = builder.build()
    assert evidence_of(history, check(history, "RC").levels) is None


def test_the_command_says_it(tmp_path):
    path = tmp_path / "h.json"
    path.write_text('{"initial":0,"sessions":[[{"ops":[["w","x",1]]},{"ops":[["r","x",1]]}]]}')
    said = CliRunner().invoke(cli, ["check", str(path), "--evidence"])
    assert said.exit_code == 0
    assert "evidence: had one read been one version stale" in said.output
    document = json.loads(CliRunner().invoke(cli, ["check", str(path), "--evidence", "--format", "json"]).output)
    evidence = document["results"][0]["evidence"]
    assert evidence["tried"] == 1 and evidence["noticed"]["RA"] == 1
    assert "evidence" not in CliRunner().invoke(cli, ["check", str(path), "--format", "json"]).output


def test_without_times_there_is_no_evidence_in_real_time(tmp_path):
    """The levels are undecided, and the other history has its result."""
    for name, times in (("untimed", ""), ("timed", ',"start":1,"end":2')):
        content = f'{{"initial":0,"sessions":[[{{"ops":[["w","x",1]]{times}}}]]}}'
        (tmp_path / f"{name}.json").write_text(content)
    files = [str(tmp_path / f"{name}.json") for name in ("untimed", "timed")]
    done = CliRunner().invoke(cli, ["check", *files, "--level", "RC", "--evidence", "--order", "realtime"])
    assert done.exit_code == 3
    assert "undecided: the history does not say when its transactions began" in done.output
    assert "2 histories: 1 holds, 1 undecided" in done.output
