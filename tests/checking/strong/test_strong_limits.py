"""Limits of time and memory end in "undecided" with the reason, never in another answer."""

import json

import pytest
from click.testing import CliRunner

from plume_py import check
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.memory import in_use
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.weak.decide import WeakLevels
from plume_py.cli.main import cli
from plume_py.history.formats.json_writer import write_json
from plume_py.history.generate import generate


@pytest.fixture(scope="module")
def history():
    return generate("SER", sessions=6, transactions=12, operations=6, keys=12, seed=1)


class Countdown(Limits):
    """Reached at the n-th time it is asked."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def check(self, progress=str):
        self.times -= 1
        if self.times < 0:
            raise LimitError(f"stopped: {progress()}")


def test_a_limit_may_be_reached_anywhere(history):
    analysis = Analysis(history)
    answers = []
    for times in range(200):
        decision = StrongEngine(analysis, "SI", limits=Countdown(times)).decide()
        answers.append(decision.ok)
        if decision.ok is not None:
            break
        assert decision.reason.startswith("stopped: ")
        assert decision.order is None
        assert decision.core is None
    assert answers[-1] is True
    assert len(answers) > 3


def test_the_reason_of_undecided_includes_the_progress(history):
    analysis = Analysis(history)
    reasons = []
    for times in range(200):
        decision = StrongEngine(analysis, "PSI", limits=Countdown(times)).decide()
        if decision.ok is not None:
            break
        reasons.append(decision.reason)
    assert "edges known" in reasons[0]
    assert "pairs of writers" in reasons[-1]
    assert "largest component" in reasons[-1]


def test_no_time_at_all(history):
    result = check(history, ["RC", "TCC", "SI", "SER"], limits=Limits(timeout=1e-9))
    assert {verdict.ok for verdict in result.levels.values()} == {None}
    assert all("stopped after" in verdict.reason for verdict in result.levels.values())


def test_memory_that_is_used_up(history):
    analysis = Analysis(history)
    assert WeakLevels(analysis).holds("TCC")
    decision = StrongEngine(analysis, "SER", limits=Limits(max_memory=in_use() // 2)).decide()
    assert decision.ok is None
    assert "MB of memory" in decision.reason


def test_out_of_memory_is_undecided(history, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("plume_py.checking.strong.solver.saturation.commit_graph", fail)
    decision = StrongEngine(Analysis(history), "SER").decide()
    assert (decision.ok, decision.reason) == (None, "stopped: no more memory to be had")


def run(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


@pytest.fixture
def path(history, tmp_path):
    target = tmp_path / "history.json"
    target.write_bytes(b"".join(write_json(history).chunks))
    return target


def test_limits_from_the_command_line(path):
    stopped = run("check", path, "--level", "SER", "--timeout", "0.000001", "--format", "json")
    assert stopped.exit_code == 3
    verdict = json.loads(stopped.stdout)["results"][0]["levels"]["SER"]
    assert verdict["ok"] is None
    assert "stopped after" in verdict["reason"]
    assert run("check", path, "--level", "SER", "--max-memory", "1M").exit_code == 3
    assert run("check", path, "--level", "SER", "--timeout", "60", "--max-memory", "8GiB").exit_code == 0


@pytest.mark.parametrize("size", ["", "4X", "-1", "0", "G"])
def test_bad_sizes(path, size):
    assert run("check", path, "--max-memory", size).exit_code == 2


def test_bad_timeouts(path):
    assert run("check", path, "--timeout", "0").exit_code == 2


@pytest.mark.parametrize("command", ["check", "scan"])
def test_a_limit_that_is_no_number_is_wrong_usage(command):
    result = CliRunner().invoke(cli, [command, "histories/demo.json", "--timeout", "nan"])
    assert result.exit_code == 2
    assert "nan" in result.stderr


@pytest.mark.parametrize("limits", [Limits(timeout=1e-9), Limits(max_memory=1)])
def test_single_patterns_stay_within_limits(limits):
    result = check(generate("SER", sessions=2, transactions=2, operations=2, keys=2), taps=["m", "j"], limits=limits)
    assert [verdict.ok for verdict in result.levels.values()] == [None, None]
    assert all("stopped" in verdict.reason for verdict in result.levels.values())
