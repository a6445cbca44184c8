"""The commands ``allocate``, ``robust`` and ``simulate``."""

import json
import sys

import pytest
from click.testing import CliRunner
from paths import EXAMPLES

from plume_py.cli.main import cli, main


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_allocate_prints_levels_cycles_and_histories() -> None:
    result = run("allocate", "smallbank")
    assert result.exit_code == 0
    for line in (
        "smallbank: every workload of these programs, of any number of instances",
        "  WriteCheck       SER",
        "WriteCheck needs SER: at SI it can be the pivot of a cycle",
        "    WriteCheck(n) -RW(Savings_B_n)-> TransactSavings(n)",
    ):
        assert line in result.output


def test_allocate_for_an_engine_names_its_levels() -> None:
    result = run(
        "allocate",
        EXAMPLES / "smallbank.sql",
        "--schema",
        EXAMPLES / "smallbank-schema.sql",
        "--catalogue",
        "postgresql",
    )
    assert result.exit_code == 0
    assert "  DepositChecking  RC   READ COMMITTED" in result.output
    assert "assumed to exist" in " ".join(result.output.split())


def test_levels_of_the_mix_that_collect_runs() -> None:
    """Its programs are those of the example, by name, and need the levels that the page gives them."""
    from plume_py.collect.benchmarks import BENCHMARKS

    result = run(
        "allocate", EXAMPLES / "smallbank-mix.json", "--catalogue", "postgresql", "--brief", "--format", "json"
    )
    levels = {group["name"]: group["level"] for group in json.loads(result.output)["groups"]}
    assert list(levels) == BENCHMARKS["smallbank"](1).names
    assert {name for name, level in levels.items() if level == "SER"} == {"balance", "transact-savings", "write-check"}
    assert set(levels.values()) == {"SER", "SI"}


def test_help_lists_the_commands() -> None:
    listed = [line.split()[0] for line in run("--help").output.splitlines() if line.startswith("  ") and line.strip()]
    assert {"allocate", "robust", "simulate"} <= set(listed)


def test_allocate_writes_json_and_a_file(tmp_path) -> None:
    saved = tmp_path / "levels.json"
    result = run("allocate", "courseware", "--instances", 100, "--format", "json", "--save", saved)
    document = json.loads(result.stdout)
    assert sum(document["counts"].values()) == len(document["groups"]) == 100
    levels = [entry["isolationLevel"] for entry in json.loads(saved.read_text())["templates"]]
    assert levels.count("READ_ATOMIC") == document["counts"]["RA"]
    again = run("robust", saved)
    assert again.exit_code == 0 and "Every run at these levels is serializable." in again.output


def test_saved_programs_are_robust(tmp_path) -> None:
    saved = tmp_path / "levels.json"
    assert run("allocate", "smallbank", "--brief", "--save", saved).exit_code == 0
    assert run("robust", saved).exit_code == 0


def test_robust_prints_and_draws_the_history(tmp_path) -> None:
    result = run("robust", "smallbank", "--levels", "*=SI", "--out", tmp_path)
    assert result.exit_code == 1
    assert "not robust: a critical cycle happens" in result.output and "ReadOnlyAnomaly" in result.output
    assert "form π4 of MixIso's: a pivot at SI, with RW before and after it" in result.output
    (history,) = tmp_path.glob("*.json")
    assert list(tmp_path.glob("*.dot"))
    assert run("check", history, "--level", "declared").exit_code == 0
    assert run("check", history, "--level", "SER").exit_code == 1


def test_robust_writes_json() -> None:
    document = json.loads(run("robust", "smallbank", "--levels", "WriteCheck=SER,*=SI", "--format", "json").output)
    assert document["ok"] is True and document["levels"]["Balance"] == "SI"


@pytest.mark.parametrize(("level", "form"), [("RA", "π1"), ("TCC", "π1"), ("PSI", "π2"), ("PC", "π3"), ("SI", "π4")])
def test_cycles_have_the_papers_names(level, form) -> None:
    levels = f"WriteCheck={level},*=SER"
    document = json.loads(run("robust", "smallbank", "--levels", levels, "--no-sessions", "--format", "json").output)
    assert document["ok"] is False and document["danger"]["form"] == form


def test_cycles_with_session_order_have_no_name_in_the_paper() -> None:
    result = run("robust", EXAMPLES / "three.json", "--levels", "*=RA")
    assert "none of MixIso's: session order is part of it" in result.output


def test_instances_with_parentheses_can_be_named() -> None:
    result = run("allocate", "smallbank", "--brief", "--pin", "Balance=SER")
    assert "  Balance          SER" in result.output


def test_simulate_reports_the_violation_of_a_bug(tmp_path) -> None:
    common = ("simulate", "smallbank", "--instances", 100, "--largest", 5, "--runs", 3, "--allocation", "random")
    assert run(*common).exit_code == 0
    bad = run(*common, "--bug", "no-conflict-check", "--out", tmp_path / "bad.json")
    assert bad.exit_code == 1 and "declared violated in" in bad.output
    assert run("check", tmp_path / "bad.json", "--level", "declared").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("allocate", "nowhere.json"), 4, "nowhere.json: no such file, and no example of this name; give a file"),
        (("allocate", "smallbank", "--pin", "Balance"), 2, "--pin: 'Balance,' has no level"),
        (("allocate", "smallbank", "--pin", "Balance=HIGH"), 2, "--pin: unknown level 'HIGH'"),
        (("allocate", "smallbank", "--pin", "Nobody=SI"), 2, "no program or instance has this name"),
        (("allocate", "smallbank", "--weights", "PSI=-1"), 2, "not of the form LEVEL=COST"),
        (("robust", "smallbank"), 2, "declares no level"),
        (("robust", "smallbank", "--levels", "Balance=SI"), 2, "gives no level for DepositChecking"),
        (("robust", "smallbank", "--levels", "*=RC"), 2, "RC is not offered by mixiso"),
        (("simulate", "smallbank", "--bug", "x"), 2, "has no bug 'x'"),
    ],
)
def test_usage_errors_are_one_line(arguments, code, message, capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["isocheck", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capfd.readouterr().err
    assert stop.value.code == code
    assert message in told and told.count("\n") == 1


def test_levels_may_have_the_engines_names() -> None:
    levels = "Balance=repeatable read,*=SERIALIZABLE"
    assert (
        "Balance would have to be" in run("robust", "smallbank", "--catalogue", "postgresql", "--levels", levels).output
    )
    pinned = run("allocate", "smallbank", "--catalogue", "oracle", "--pin", "Balance=SERIALIZABLE", "--brief")
    assert "  Balance          SI   SERIALIZABLE" in pinned.output


# Drawing so many takes minutes on any machine.
ENDLESS = ("--instances", 10_000_000)


@pytest.mark.parametrize(
    "more", [("allocate", "tpcc"), ("allocate", "tpcc", "--brief"), ("robust", "tpcc", "--levels", "*=SI")]
)
def test_timeout_is_respected(more) -> None:
    stopped = run(*more, *ENDLESS, "--timeout", 0.3)
    assert (stopped.exit_code, stopped.output) == (3, "undecided: stopped after 0.3 s\n")
    document = run(*more, *ENDLESS, "--timeout", 0.3, "--format", "json")
    assert document.exit_code == 3
    told = json.loads(document.output)
    assert told.get("ok") is told.get("groups") is None and "stopped after 0.3 s" in (
        told.get("because"),
        told.get("reason"),
    )


def test_levels_are_printed_without_time_to_explain_them(monkeypatch) -> None:
    from plume_py.base.errors import LimitError
    from plume_py.reasoning.allocate import driver

    def search(*_):
        raise LimitError("stopped after 1 s")

    levels = [line for line in run("allocate", "smallbank", "--brief").output.splitlines() if line.startswith("  ")]
    monkeypatch.setattr(driver, "why_not_weaker", search)
    stopped = run("allocate", "smallbank", "--timeout", 3600)
    assert stopped.exit_code == 3
    assert set(levels) <= set(stopped.output.splitlines())
    assert "note: stopped after 1 s: not every level is explained" in stopped.output
    assert run("allocate", "smallbank", "--timeout", 3600, "--brief").exit_code == 0


def test_simulate_prints_the_runs_completed_before_the_timeout() -> None:
    stopped = run("simulate", "smallbank", "--runs", 100_000, "--timeout", 2)
    assert stopped.exit_code == 3
    if not stopped.output.startswith("undecided: stopped"):
        assert "\n  stopped after 2 s, before all 100000 runs\n" in stopped.output
    nothing = run("simulate", "smallbank", "--instances", 1_000_000, "--timeout", 0.01)
    assert (nothing.exit_code, nothing.output) == (3, "undecided: stopped after 0.01 s\n")


def test_an_undecided_run_does_not_count_as_a_violation(monkeypatch) -> None:
    from plume_py.checking.result import LevelVerdict, Result
    from plume_py.reasoning.allocate import trial

    monkeypatch.setattr(trial, "check", lambda *_, **__: Result("", levels={"SER": LevelVerdict(None, reason="late")}))
    told = run("simulate", "smallbank", "--runs", 2)
    assert told.exit_code == 3
    assert "SER violated in 0 of 2 runs\n  undecided in 2 of 2 runs" in told.output
