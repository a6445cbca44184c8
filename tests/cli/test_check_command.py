"""``isocheck check`` (cli/check.py, cli/progress.py): exit codes, output formats, and the files that it writes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from paths import ROOT

import plume_py
from plume_py.checking.minimize import minimize
from plume_py.cli.main import cli
from plume_py.cli.progress import WEIGHTS, ProgressEstimate

HOLDS = str(ROOT / "histories/TCC/serial.json")
BREAKS = str(ROOT / "histories/RA/tap-m-co-conflict-cm.json")
SEVERAL = str(ROOT / "histories/none/same-key-backwards.json")
HOSTILE = ['"><script>alert(1)</script>', "a\nb", "\x1b[31mred\x1b[0m", "‮evil", "</text>", "{x|y}", "%n", "k" * 10_000]


def run(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"sessions": [')
    return str(path)


def test_exit_codes_and_their_precedence(broken):
    assert run(HOLDS).exit_code == 0
    assert run(BREAKS).exit_code == 1
    assert run(BREAKS, "--level", "RA").exit_code == 0
    assert run(HOLDS, "--level", "SER", "--timeout", "0.000001").exit_code == 3
    assert run(broken).exit_code == 4
    assert run(HOLDS, "--level", "nonsense").exit_code == 2
    assert run(BREAKS, HOLDS, "--level", "SI").exit_code == 1, "a violation goes before undecided"
    assert run(BREAKS, broken, HOLDS).exit_code == 4, "unreadable goes before a violation"


def test_all_histories_are_processed_whatever_happens_to_one(broken):
    lines = run(broken, BREAKS, HOLDS, "--format", "jsonl").stdout.splitlines()
    results = [json.loads(line) for line in lines]
    assert [r["ok"] for r in results] == [None, False, True]
    assert results[0]["error"] and results[1]["levels"]["TCC"]["taps"] == ["m"]


def test_json_document():
    document = json.loads(run(HOLDS, BREAKS, "--level", "weak", "--format", "json").stdout)
    assert document["tool"]["name"] == "isocheck"
    assert document["summary"] == {"histories": 2, "ok": 1, "violated": 1, "undecided": 0, "unreadable": 0}
    violation = document["results"][1]["violations"][0]
    assert {"tap", "name", "level", "keys", "transactions", "steps", "explanation"} <= violation.keys()
    assert violation["steps"][0].keys() >= {"from", "to", "relation", "key", "because"}


def test_levels_in_any_case_and_by_alias():
    assert "TCC  violated" in run(BREAKS, "--level", "causal").stdout
    assert run(HOLDS, "--level", "Read_Atomic").exit_code == 0


def test_a_violation_of_tcc_violates_the_stronger_levels():
    result = plume_py.check(plume_py.load(BREAKS), ["PC", "PSI", "SI", "SER"])
    assert {(v.ok, v.taps) for v in result.levels.values()} == {(False, ("m",))}
    kept = plume_py.check(plume_py.load(HOLDS), ["PC", "PSI", "SI", "SER"])
    assert {v.ok for v in kept.levels.values()} == {True}


def test_single_patterns():
    assert "TAP-a TAP-h absent" in run(BREAKS, "--tap", "a,h").stdout
    assert run(BREAKS, "--tap", "a,h").exit_code == 0
    assert "TAP-m found" in run(BREAKS, "--tap", "TAP-m").stdout
    assert run(BREAKS, "--tap", "TAP-m").exit_code == 1
    assert run(ROOT / "histories/RC/tap-j-nonrepeatable-read.json", "--tap", "j").exit_code == 1
    for wrong in (["--tap", "z"], ["--tap", ""], ["--tap", "m", "--level", "TCC"]):
        assert run(BREAKS, *wrong).exit_code == 2


def test_quiet_prints_nothing_for_histories_that_hold():
    assert run(HOLDS, "--quiet").stdout == ""
    assert "violated" in run(BREAKS, "--quiet").stdout


def test_text_fits_in_80_columns():
    for path in sorted((ROOT / "histories").glob("*/*.json")):
        name = str(path.relative_to(ROOT))
        result = plume_py.check(plume_py.load(path), ["CI", "RC", "RA", "TCC"], name=name)
        from plume_py.report.text import render

        for line in render(result, style=lambda text, **_: text).splitlines()[1:]:
            assert len(line) <= 80, line


def test_pictures_and_report_are_written(tmp_path):
    report = tmp_path / "report.html"
    assert run(BREAKS, "--out", tmp_path / "pictures", "--report", report).exit_code == 1
    assert list((tmp_path / "pictures").glob("*.dot"))
    assert bool(list((tmp_path / "pictures").glob("*.svg"))) == bool(shutil.which("dot"))
    assert report.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_the_user_chooses_how_pictures_are_drawn(tmp_path):
    assert run(BREAKS, "--out", tmp_path, "--picture", "png", "--picture", "pdf", "--picture", "png").exit_code == 1
    assert {path.suffix for path in tmp_path.iterdir()} == {".dot", ".png", ".pdf"}
    assert next(tmp_path.glob("*.png")).read_bytes().startswith(b"\x89PNG")
    assert next(tmp_path.glob("*.pdf")).read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", BREAKS, "--picture", "png"], "give --out, too"),
        (["check", BREAKS, "--out", "x", "--picture", "gif"], "'gif' is not one of"),
        (["synth", "-a", "SI", "--picture", "png"], "give --out, too"),
        (["infer", "bank", "--picture", "png"], "give --out, too"),
        (["robust", "smallbank", "--picture", "png"], "give --out, too"),
        (["allocate", "smallbank", "--picture", "png"], "give --out, too"),
        (["predict", BREAKS, "--picture", "png"], "give --out, too"),
        (["test", "--picture", "png"], "give --out, too"),
    ],
)
def test_wrong_picture_formats_are_usage_errors(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2 and message in result.output


def test_without_dot_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(BREAKS, "--out", tmp_path / "pictures", "--picture", "svg", "--picture", "pdf")
    assert result.exit_code == 1
    line, _ = result.stderr.splitlines()
    assert "apt-get install graphviz" in line
    assert [path.suffix for path in (tmp_path / "pictures").iterdir()] == [".dot"]


@pytest.mark.parametrize("histories", [[HOLDS], [BREAKS], [SEVERAL, BREAKS]])
def test_format_dot_is_one_graph(histories, tmp_path):
    printed = run(*histories, "--level", "all", "--format", "dot").stdout
    assert printed.count("digraph") == 1
    if shutil.which("dot"):
        target = tmp_path / "x.svg"
        subprocess.run(["dot", "-Tsvg", "-o", target], input=printed.encode(), check=True)
        assert target.read_text().count("</svg>") == 1


def hostile_history(path):
    """A fractured read for each hostile name, which is key, value and transaction id."""
    sessions = []
    for i, name in enumerate(HOSTILE):
        sessions.append([{"id": f"w{i}{name}", "ops": [["w", name, name + "v"], ["w", name + "2", 1]]}])
        sessions.append([{"id": f"r{i}{name}", "ops": [["r", name, None], ["r", name + "2", 1]]}])
    path.write_text(json.dumps({"sessions": sessions}))
    return path


@pytest.mark.parametrize("output", ["text", "json", "jsonl", "junit", "sarif", "github", "dot"])
def test_hostile_names_are_escaped_in_every_format(tmp_path, output):
    path = hostile_history(tmp_path / "hostile.json")
    result = run(path, "--format", output, "--max-examples", len(HOSTILE), "--report", tmp_path / "r.html")
    assert result.exit_code == 1
    assert not any(c in result.stdout for c in ("\x1b", "‮", "\x00"))
    if output != "jsonl" and output != "json":
        assert "k" * 200 not in result.stdout, "long names are shortened for people"
    assert "<script>alert(1)" not in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "histories").glob("[CR]*/*.json")), ids=lambda path: path.stem)
def test_a_minimal_history_fails_in_the_same_way(path, tmp_path):
    history = plume_py.load(path)
    broken = [level for level, v in plume_py.check(history, ["RC", "RA", "TCC"]).levels.items() if v.ok is False]
    small = minimize(history, broken[0])
    assert small.history.operations <= history.operations
    target = tmp_path / "small.json"
    assert run(path, "--level", broken[0], "--minimize", target).exit_code == 1
    again = plume_py.check(plume_py.load(target), broken[0])
    assert small.tap in again.levels[broken[0]].taps


def test_minimize_finds_the_three_transactions_of_the_violation(tmp_path):
    from plume_py.history.generate import generate
    from plume_py.history.inject import inject

    history, _ = inject(generate("SER", sessions=6, transactions=30, operations=6, keys=30), {"m": 1}, seed=2)
    small = minimize(history, "TCC")
    assert small.tap == "m"
    assert small.history.transactions <= 4 and small.history.operations <= 6


def test_minimize_and_witness_need_one_history_and_one_level(tmp_path):
    assert run(HOLDS, BREAKS, "--minimize", tmp_path / "x").exit_code == 2
    assert run(HOLDS, "--level", "weak", "--witness", tmp_path / "x").exit_code == 2


@pytest.mark.parametrize("option", ["--witness", "--minimize", "--report"])
def test_the_history_itself_is_never_overwritten(option, tmp_path):
    copy = tmp_path / "h.json"
    shutil.copy(BREAKS, copy)
    assert run(copy, option, tmp_path / "." / "h.json").exit_code == 2
    assert run(copy, option, "-").exit_code == 2
    assert copy.read_bytes() == Path(BREAKS).read_bytes()


def test_a_check_of_no_level_is_an_error():
    with pytest.raises(ValueError, match="no level"):
        plume_py.check(plume_py.load(HOLDS), [])


def test_progress_never_goes_back_and_never_beyond_its_phase():
    clock = [0.0]
    share = ProgressEstimate(10.0, now=lambda: clock[0])
    seen = []
    for phase in WEIGHTS:
        share.enter(phase)
        for _ in range(5):
            clock[0] += 1.0
            seen.append(share.value())
    assert seen == sorted(seen)
    assert 0 < seen[0] < WEIGHTS["load"] and seen[-1] <= 1.0


def test_progress_shows_the_phase_its_share_and_the_time_left():
    clock = [0.0]
    share = ProgressEstimate(10.0, now=lambda: clock[0])
    share.enter("load")
    assert share.line().split() == ["load", "[", "]", "0%"]
    clock[0] = 5.0
    assert share.line() == f"load     [{'=' * 9:<40}]  22%  0:17 left"


def test_a_history_that_does_not_fit_in_memory_is_undecided(monkeypatch):
    def no_room(*_):
        raise MemoryError

    monkeypatch.setattr("plume_py.history.load.assemble", no_room)
    result = run("check", HOLDS, "--level", "RA", "--level", "TCC")
    assert result.exit_code == 3
    told = " ".join(result.output.split())  # wherever the lines are broken
    assert "RA TCC undecided:" in told and "does not fit in memory" in told
