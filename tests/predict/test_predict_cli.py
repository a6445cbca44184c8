"""The commands ``predict`` and ``explore``."""

import json

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py import check, load
from plume_py.cli.main import cli

DEPOSITS = str(ROOT / "histories/SER/two-deposits.json")


def isocheck(*arguments: str):
    return CliRunner().invoke(cli, list(arguments))


def test_exit_code_is_1_if_predicted_and_0_if_not() -> None:
    assert isocheck("predict", DEPOSITS, "--boundary", "relaxed").exit_code == 1
    done = isocheck("predict", DEPOSITS, "--level", "SI")
    assert done.exit_code == 0 and "none predicted" in done.output


def test_predict_writes_history_trace_and_pictures(tmp_path) -> None:
    out = tmp_path / "run.json"
    done = isocheck("predict", DEPOSITS, "--boundary", "relaxed", "--out", str(out))
    assert done.exit_code == 1
    for path in (out, tmp_path / "run.trace.txt"):
        history = load(str(path))
        assert check(history, "TCC").ok is True and check(history, "SER").ok is False
    assert (tmp_path / "run-lost-update-1.dot").exists()


def test_predict_writes_json() -> None:
    done = isocheck("predict", DEPOSITS, "--boundary", "relaxed", "--format", "json", "--count", "3")
    data = json.loads(done.output)
    assert data["predicted"] is True and data["strategy"] == "exact-relaxed"
    assert data["predictions"][0]["changes"] == [
        {"transaction": "deposit-2", "key": "balance", "observed": "deposit-1", "predicted": None}
    ]
    assert data["dangerous_reads"][0]["who"] == "deposit"


def test_a_history_that_violates_the_target_is_reported(tmp_path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(
        '{"initial":0,"sessions":[[{"ops":[["r","x",0],["w","x",1]]}],[{"ops":[["r","x",0],["w","x",2]]}]]}'
    )
    done = isocheck("predict", str(broken))
    assert done.exit_code == 1 and "LostUpdate" in done.output and "Prediction" not in done.output
    done = isocheck("predict", str(broken), "--even-if-broken")
    assert done.exit_code == 1 and "no read changes" in done.output


def test_predict_in_windows() -> None:
    done = isocheck("predict", DEPOSITS, "--window", "2", "--boundary", "relaxed")
    assert done.exit_code == 1 and "(exact-relaxed, 2 transactions in a row): 1 predicted" in done.output
    assert isocheck("predict", DEPOSITS, "--window", "2", "--even-if-broken").exit_code == 2


def test_sweep_reports_the_safe_levels() -> None:
    done = isocheck("predict", DEPOSITS, "--sweep", "--boundary", "relaxed")
    assert done.exit_code == 1 and done.output.rstrip().endswith(": PSI")


def test_a_program_is_replayed() -> None:
    done = isocheck("predict", "--program", "smallbank", "--seed", "3", "--boundary", "relaxed", "--verbose")
    assert done.exit_code == 1
    assert "replayed: it comes true" in done.output and "Dangerous reads" in done.output and "clauses" in done.output


def test_exit_code_is_0_if_a_prediction_does_not_come_true(monkeypatch) -> None:
    from plume_py.reasoning.predict.store.replay import Validation

    arguments = ("predict", "--program", "smallbank", "--seed", "3", "--boundary", "relaxed")
    monkeypatch.setattr(Validation, "validated", False)
    done = isocheck(*arguments)
    assert done.exit_code == 0 and "it does not come true" in done.output
    assert "did not come true when the program was replayed; there may be another" in done.stderr
    swept = isocheck(*arguments, "--sweep")
    assert "could go wrong" not in swept.output and "none comes true" in swept.output


def test_runs_that_snapshot_isolation_rejects_are_not_predicted() -> None:
    done = isocheck("predict", "--program", "smallbank", "--seed", "2", "--level", "SI")
    assert done.exit_code == 0 and "none predicted" in done.output


def test_a_sweep_of_a_program_replays() -> None:
    done = isocheck("predict", "--program", "smallbank", "--seed", "2", "--sweep")
    assert done.exit_code == 1 and "none predicted" in done.output
    assert done.output.splitlines()[-1].startswith("  cheapest level without a prediction that comes true")


def test_exit_code_is_3_if_undecided(monkeypatch) -> None:
    import plume_py.reasoning.predict.predictor.predictor as predictor
    from plume_py.base.errors import LimitError

    def tired(*_):
        raise LimitError("stopped after 1 s")

    monkeypatch.setattr(predictor.Predictor, "run", tired)
    done = isocheck("predict", DEPOSITS)
    assert done.exit_code == 3 and "undecided: stopped" in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (DEPOSITS, "--program", "voter"),
        ("--program", "voter", "--level", "declared"),
        (DEPOSITS, "--level", "SER"),
        (DEPOSITS, "--level", "SI", "--target", "SI"),
        (DEPOSITS, "--assume", "RC"),
        (DEPOSITS, "--sweep", "--out", "x.json"),
        (DEPOSITS, "--out", DEPOSITS),
        (DEPOSITS, "--timeout", "nan"),
    ],
)
def test_exit_code_is_2_for_usage_errors(arguments) -> None:
    done = isocheck("predict", *arguments)
    assert done.exit_code == 2 and "Traceback" not in done.output


def test_declared_levels_from_a_file(tmp_path) -> None:
    levels = tmp_path / "levels.json"
    levels.write_text('{"transactions": {"deposit-2": "SI"}}')
    both = ("predict", DEPOSITS, "--level", "declared", "--boundary", "relaxed", "--assume")
    assert isocheck(*both, "TCC").exit_code == 1
    assert isocheck(*both, "SI", "--levels-file", str(levels)).exit_code == 0


def test_explore_reports_violations(tmp_path) -> None:
    out = tmp_path / "first.json"
    done = isocheck("explore", "smallbank", "--level", "RC", "--runs", "3", "--out", str(out))
    assert done.exit_code == 1 and "of 3 runs at RC break SER" in done.output
    assert check(load(str(out)), "SER").ok is False
    assert isocheck("explore", "voter", "--level", "declared").exit_code == 2
    done = isocheck("explore", "voter", "--level", "SI", "--runs", "2", "--transactions", "1")
    assert done.exit_code == 0
