"""Tests of ``collect.client.arrivals``, ``--rate``, ``--think`` and the throughput of a run."""

import json
import re
from itertools import islice, pairwise

import pytest
from click.testing import CliRunner
from collecting import Scripted, gather, lines

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.collect.client import TICKS_PER_SECOND, arrivals
from plume_py.collect.workload import Shape
from plume_py.history.throughput import STATUSES, Disturbance, speed


@pytest.mark.parametrize("how", ["fixed", "poisson"])
def test_arrivals_of_all_sessions_together_meet_the_rate(how):
    shape = Shape(sessions=4, rate=100.0, arrivals=how, seed=3)
    everyone = sorted(at for session in range(4) for at in islice(arrivals(shape, session), 500))
    within = [at for at in everyone if at < 4 * TICKS_PER_SECOND]
    assert 330 <= len(within) <= 470
    assert list(islice(arrivals(shape, 1), 50)) == list(islice(arrivals(shape, 1), 50))
    if how == "fixed":
        assert within == [number * TICKS_PER_SECOND // 100 for number in range(400)]


def test_latency_counts_from_the_due_time(tmp_path):
    # A thousand per second are due in each session, and every transaction pauses: the queue can only grow.
    shape = {"sessions": 1, "transactions": 30, "rate": 1000.0, "arrivals": "fixed", "pause": 1.0, "operations": (3, 3)}
    collected = gather("", tmp_path / "h.jsonl", adapter=Scripted(), **shape)
    recorded = lines(tmp_path / "h.jsonl")[1:]
    assert all(txn["due"] <= txn["start"] for txn in recorded)
    assert [txn["due"] - recorded[0]["due"] for txn in recorded] == [number * 10**6 for number in range(30)]
    waits = [txn["start"] - txn["due"] for txn in recorded]
    assert waits[-1] > waits[0]
    longest = max(txn["end"] - txn["due"] for txn in recorded)
    assert collected.speed.latency.longest == pytest.approx(longest / 10**6)


def test_no_transaction_begins_before_its_due_time(tmp_path):
    collected = gather("", tmp_path / "h.jsonl", adapter=Scripted(), sessions=2, transactions=10, rate=200.0)
    assert collected.counts["committed"] == 20 and collected.speed.asked == 200.0
    assert all(txn["due"] <= txn["start"] for txn in lines(tmp_path / "h.jsonl")[1:])


def test_sessions_think_between_transactions(tmp_path):
    gather("", tmp_path / "h.jsonl", adapter=Scripted(), sessions=1, transactions=20, think=4.0)
    recorded = lines(tmp_path / "h.jsonl")
    assert recorded[0]["collected"]["workload"]["think"] == 4.0 and "due" not in recorded[1]
    pauses = [b["start"] - a["end"] for a, b in pairwise(recorded[1:])]
    assert sum(pauses) > 19 * 10**6  # 4 ms on average, each drawn from 0 to 8


def test_a_time_limit_does_not_wait_for_due_transactions(tmp_path):
    how = {"seconds": 0.2}
    collected = gather("", tmp_path / "h.jsonl", adapter=Scripted(), sessions=2, rate=0.01, how=how)
    assert collected.transactions == 0 and collected.seconds < 60


def test_rate_and_think_exclude_each_other(tmp_path):
    with pytest.raises(IsocheckError, match="leave --think out"):
        gather("", tmp_path / "h.jsonl", adapter=Scripted(), rate=10.0, think=1.0)


def test_throughput_and_latency_of_a_run():
    ended = [(0.05 * i, 0.001 * (i + 1), 0 if i % 4 else 1) for i in range(200)]
    found = speed(ended, 10.0, 20.0, [Disturbance("kill of n1", 2.0, 3.0)])
    assert len(found.stretches) == 20 and {round(each.seconds, 6) for each in found.stretches} == {0.5}
    assert sum(each.counts["committed"] for each in found.stretches) == 150
    assert sum(each.counts["aborted"] for each in found.stretches) == 50
    assert (found.latency.median, found.latency.longest) == (pytest.approx(100.0), pytest.approx(200.0))
    assert found.latency.median < found.latency.p95 < found.latency.p99 <= found.latency.longest
    assert speed([], 3.0).latency is None and speed([(0.5, 0.1, 2)], 3.0).latency is None


@pytest.mark.parametrize("seconds", [0.001, 0.3, 4.0, 59.0, 500.0, 7300.0])
def test_intervals_cover_the_run_and_are_not_too_many(seconds):
    stretches = speed([(seconds, seconds / 2, 0)], seconds).stretches
    assert 1 <= len(stretches) <= 40
    assert sum(each.seconds for each in stretches) == pytest.approx(seconds)
    assert stretches[-1].counts["committed"] == 1


def test_the_test_command_prints_and_draws_the_throughput(tmp_path):
    report = str(tmp_path / "page.html")
    words = ["test", "broken:?bug=none", "--sessions", "2", "--transactions", "20", "--report", report]
    ended = CliRunner().invoke(cli, [*words, "--format", "json", "--rate", "500"])
    assert ended.exit_code == 0, ended.output
    assert re.search(r"latency +median .* ms, .*; counted from when they were due, 500 per second", ended.stderr)
    found = json.loads(ended.stdout)["results"][0]["speed"]
    counts = {status: sum(each[status] for each in found["series"]) for status in STATUSES}
    assert found["rate"] == 500 and sum(counts.values()) == 40
    assert f"{counts['committed']} committed, {counts['aborted']} aborted, 0 unknown;" in ended.stderr
    assert set(found["latency_ms"]) == {"median", "p95", "p99", "longest"}
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg ") >= 2 and "Latency of committed transactions" in page


@pytest.mark.parametrize("words", [["--rate", "0"], ["--rate", "nan"], ["--think", "-1"], ["--arrivals", "never"]])
def test_an_invalid_pace_is_rejected(words):
    ended = CliRunner().invoke(cli, ["test", "broken:?bug=none", *words])
    assert ended.exit_code == 2 and "Traceback" not in ended.output
