"""Tests of ``collect.client`` and ``audit``: recorded outcomes are right whatever fails."""

import json
import random
import sqlite3
import threading
import time

import pytest
from collecting import Scripted, ScriptedConnection, gather, lines, scripted

from plume_py import check, load
from plume_py.base.errors import InputError, IsocheckError
from plume_py.collect import client
from plume_py.collect.adapter import Setup
from plume_py.collect.audit import audit
from plume_py.collect.client import Isolation
from plume_py.collect.recorder import Recorder
from plume_py.collect.registry import open_adapter
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape, Workload
from plume_py.history.times import NO_TIME


def test_a_rejected_transaction_is_aborted_and_the_session_continues(tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {2: "refuse", 5: "refuse"})
    assert [line["status"] for line in recorded].count("aborted") == 2 == collected.counts["aborted"]
    assert {line["session"] for line in recorded} == {0} and adapter.connections == 1
    assert collected.audit.ok


@pytest.mark.parametrize("script", ["lose before", "lose after"])
def test_no_answer_to_a_commit_is_unknown_and_ends_the_session(script, tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {3: script}, read_only=0, write_only=1)
    assert [line["status"] for line in recorded[:4]] == ["committed", "committed", "unknown", "committed"]
    assert [line["session"] for line in recorded[:4]] == [0, 0, 0, 1]
    assert adapter.connections == 2 and collected.audit.ok
    assert check(load(tmp_path / "h.jsonl"), "SER").ok


def test_a_connection_lost_before_commit_means_aborted(tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {"write": 4}, read_only=0, write_only=1)
    aborted = [line for line in recorded if line["status"] == "aborted"]
    assert len(aborted) == 1 and aborted[0]["ops"][-1][2] == 4, "the write that failed may have been seen"
    assert {line["session"] for line in recorded} == {0} and adapter.connections == 2 and collected.audit.ok


def test_retries_are_new_transactions(tmp_path):
    _, _, recorded = scripted(
        tmp_path, {1: "refuse", 2: "refuse"}, how={"retries": 5}, transactions=1, read_only=0, write_only=1
    )
    assert [line["status"] for line in recorded] == ["aborted", "aborted", "committed"]
    assert len({line["id"] for line in recorded}) == 3
    assert len({op[2] for line in recorded for op in line["ops"]}) == sum(len(line["ops"]) for line in recorded)


def test_a_server_that_hangs_does_not_block_the_collector(tmp_path):
    _, collected, recorded = scripted(tmp_path, {4: "hang"}, timeout=0.2, read_only=0, write_only=1)
    assert recorded[3]["status"] == "unknown" and collected.counts["committed"] == 29


def test_a_server_that_stays_down_ends_the_run(tmp_path):
    class Gone(Scripted):
        def connect(self):
            raise OSError("connection refused")

    adapter = Gone()
    shape = Shape(sessions=2, transactions=5)
    recorder = Recorder(str(tmp_path / "h.jsonl"), {"initial": 0})
    task = client.RunState(adapter, shape, Workload(shape), [], recorder, threading.Event(), give_up=0.3)
    player = client.Client(task, 0)
    player.start()
    player.join(10)
    assert "connection refused" in player.given_up
    recorder.close()


def test_a_table_that_cannot_be_created_prints_one_line(tmp_path):
    class Refusing(Scripted):
        def create(self, keys):
            raise RuntimeError("permission denied\nCONTEXT: …")

    with pytest.raises(InputError) as error:
        gather("", tmp_path / "h.jsonl", adapter=Refusing())
    assert "permission denied" in str(error.value) and "\n" not in str(error.value)


def test_random_failures_never_cause_a_false_alarm(tmp_path):
    """The store is serializable, so every history of it satisfies SER whatever fails."""
    rng = random.Random(1)
    for _ in range(15):
        script = {rng.randrange(1, 60): rng.choice(["refuse", "lose before", "lose after"]) for _ in range(12)}
        _, collected, _ = scripted(tmp_path, script, sessions=3, keys=3)
        assert collected.audit.ok
        assert check(load(tmp_path / "h.jsonl"), "SER").ok


def test_a_client_does_not_commit_after_the_history_was_closed(tmp_path):
    """A commit after the end of the history would not be recorded."""
    shape = Shape(sessions=1, transactions=3, read_only=0, write_only=1)
    recorder = Recorder(str(tmp_path / "h.jsonl"), {"initial": 0})
    store = Scripted()
    workload = Workload(shape)
    store.create(workload.keys)
    task = client.RunState(store, shape, workload, [Isolation("serializable", "SER")], recorder, threading.Event())
    recorder.close()
    client.Client(task, 0).run()
    assert store.commits == 0 and not any(store.data.values()) and len(lines(tmp_path / "h.jsonl")) == 1


class Full(Recorder):
    """A recorder whose disk is full after a few transactions."""

    def record(self, transaction):
        if self.counts["committed"] > 5:
            self.problem = "cannot write h.jsonl: No space left on device"
        super().record(transaction)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("fault", ["no folder", "disk full", "interrupted twice"])
def test_a_run_that_fails_removes_its_table(fault, keep, tmp_path, monkeypatch):
    def interrupt(recorded):
        if fault == "interrupted twice":
            raise KeyboardInterrupt

    if fault == "disk full":
        monkeypatch.setattr("plume_py.collect.run.Recorder", Full)
    out = tmp_path / ("nowhere/h.jsonl" if fault == "no folder" else "h.jsonl")
    adapter = open_adapter(Setup(f"sqlite:///{tmp_path}/t.db"))
    plan = Plan(Shape(transactions=2000), [Isolation("serializable", "SER")], str(out), keep_table=keep)
    with pytest.raises((IsocheckError, KeyboardInterrupt)):
        collect(adapter, plan, None, interrupt)
    tables = (
        sqlite3.connect(tmp_path / "t.db").execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    )
    assert bool(tables) == keep


# --- the audit


def history(tmp_path, *transactions):
    path = tmp_path / "h.jsonl"
    header = {"initial": 0}
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *transactions)))
    return str(path)


@pytest.mark.parametrize(
    "table, problem",
    [
        ({"x": 2}, None),
        ({"x": 1}, "itself overwrote"),
        ({"x": 3}, "which was aborted"),
        ({"x": 4}, None),
        ({"x": 9}, "no transaction wrote"),
        ({"x": 0}, "has its initial value"),
        ({}, "not in the table"),
    ],
)
def test_the_audit_of_registers_finds_each_disagreement(table, problem, tmp_path):
    path = history(
        tmp_path,
        {"id": "a", "ops": [["w", "x", 1], ["w", "x", 2]], "status": "committed"},
        {"id": "b", "ops": [["w", "x", 3]], "status": "aborted"},
        {"id": "c", "ops": [["w", "x", 4]], "status": "unknown"},
    )
    found = audit(path, table)
    assert found.ok == (problem is None)
    assert problem is None or problem in found.problems[0]


@pytest.mark.parametrize(
    "table, problem",
    [
        ([1, 2], None),
        ([1, 2, 4], None),
        ([2], "lacks 1"),
        ([1, 2, 2], "twice"),
        ([1, 3, 2], "which was aborted"),
        ([1, 2, 7], "no transaction wrote"),
    ],
)
def test_the_audit_of_lists_finds_each_disagreement(table, problem, tmp_path):
    path = history(
        tmp_path,
        {"id": "a", "ops": [["append", "x", 1], ["append", "x", 2], ["r", "x", [1, 2]]], "status": "committed"},
        {"id": "b", "ops": [["append", "x", 3]], "status": "aborted"},
        {"id": "c", "ops": [["append", "x", 4]], "status": "unknown"},
    )
    found = audit(path, {"x": table})
    assert found.ok == (problem is None)
    assert problem is None or problem in found.problems[0]


@pytest.mark.parametrize(
    "table, status, start, problem",
    [
        (1, "committed", 30, "which had ended before b began"),
        (2, "committed", 30, None),
        (1, "committed", 15, None),  # concurrent: either may have written last
        (1, "committed", None, None),
        (1, "aborted", 30, None),
        (1, "unknown", 30, None),
    ],
)
def test_the_audit_reports_a_register_without_its_last_write(table, status, start, problem, tmp_path):
    times = {} if start is None else {"start": start, "end": 90}
    path = history(
        tmp_path,
        {"id": "a", "ops": [["w", "x", 1]], "status": "committed", "start": 10, "end": 20},
        {"id": "b", "ops": [["w", "x", 2]], "status": status, **times},
    )
    found = audit(path, {"x": table})
    assert found.ok == (problem is None)
    assert problem is None or problem in found.problems[0]


def test_a_transaction_of_unknown_outcome_may_write_last(tmp_path):
    """Its client gave up at ``end``, but the transaction may have ended later."""
    path = history(
        tmp_path,
        {"id": "a", "ops": [["w", "x", 1]], "status": "unknown", "start": 10, "end": 20},
        {"id": "b", "ops": [["w", "x", 2]], "status": "committed", "start": 30, "end": 40},
    )
    assert audit(path, {"x": 1}).ok


def test_the_audit_reports_a_lost_register_write(tmp_path):
    class Forgetful(Scripted):
        def contents(self):
            return {key: min(value, 20) for key, value in self.data.items()}

    collected = gather("", tmp_path / "h.jsonl", adapter=Forgetful(), sessions=1, keys=1, read_only=0, write_only=1)
    assert "which had ended before" in collected.audit.problems[-1]


def test_times_do_not_follow_the_wall_clock_backwards(tmp_path, monkeypatch):
    wall = iter(range(10**6, 0, -1))
    monkeypatch.setattr(time, "time_ns", lambda: next(wall))
    _, _, recorded = scripted(tmp_path, {})
    times = [time for line in recorded for time in (line["start"], line["end"])]
    assert times == sorted(times)


class Timing(Scripted):
    """Records when a transaction reaches the store, and when the store answers the commit."""

    def __init__(self):
        super().__init__()
        self.noted = {}

    def connect(self):
        store = self

        class Connection(ScriptedConnection):
            def begin(self, isolation):
                self.begun = client.now()
                super().begin(isolation)

            def commit(self):
                super().commit()
                store.noted[threading.current_thread().name, len(store.noted)] = (self.begun, client.now())

        return Connection(store)


def test_recorded_times_enclose_the_transaction(tmp_path):
    """``start`` precedes the first statement, and ``end`` follows the answer to COMMIT."""
    adapter = Timing()
    gather("", tmp_path / "h.jsonl", adapter=adapter, sessions=3, transactions=20)
    header, *recorded = lines(tmp_path / "h.jsonl")
    assert header["ticks_per_second"] == 10**9
    for number in range(3):
        inside = [span for (name, _), span in adapter.noted.items() if name == f"session {number}"]
        outside = [(line["start"], line["end"]) for line in recorded if line["session"] == number]
        assert len(inside) == len(outside) == 20
        assert all(start <= begun <= ended <= end for (begun, ended), (start, end) in zip(inside, outside, strict=True))
    times = load(tmp_path / "h.jsonl").times
    assert times.per_second == 10**9 and (times.end >= times.begin).all()


def test_a_transaction_of_unknown_outcome_has_a_start_but_no_end(tmp_path):
    """Its line contains the time at which the client gave up, but only as information."""
    _, _, recorded = scripted(tmp_path, {3: "lose before"}, read_only=0, write_only=1)
    history = load(tmp_path / "h.jsonl")
    unknown = next(t for t in range(history.transactions) if history.transaction(t).status == "unknown")
    line = next(line for line in recorded if line["status"] == "unknown")
    assert history.times.begin[unknown] == line["start"] and history.times.end[unknown] == NO_TIME
    assert line["end"] > line["start"]
