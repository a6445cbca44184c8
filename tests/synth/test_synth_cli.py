"""``isocheck synth``, ``relate`` and ``hierarchy``: output, files, exit codes (report.py, picture.py)."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from paths import ROOT
from program import PATIENCE

from plume_py import check, load

MINE = str(ROOT / "docs" / "my_levels.py")
LEVEL = "from plume_py.reasoning.synth import level\n@level\n"


def test_a_found_history_is_written_and_rechecked(isocheck, tmp_path):
    target = tmp_path / "skew.json"
    code, out, _ = isocheck("synth", "--allow", "SI", "--forbid", "SER", "--minimal", "--out", target)
    assert code == 0
    assert "T1: r(y,0) w(x,1)" in out
    assert "SI by the commit order T1 < T2" in out
    assert "verify proves it again" in out
    assert "WriteSkew" in out
    verdict = check(load(target), ["SI", "SER"]).levels
    assert verdict["SI"].ok and not verdict["SER"].ok


def test_none_within_scope(isocheck):
    code, out, _ = isocheck("synth", "--allow", "SER", "--forbid", "SI", "--txns", 4, "--keys", 3, "--no-blind-writes")
    assert code == 1
    assert "none within scope 4/3/3 transactions/keys/values, no blind writes" in out


def test_several_histories_and_their_pictures(isocheck, tmp_path):
    code, out, _ = isocheck("synth", "-a", "PC", "-f", "SI", "--txns", 2, "--count", 3, "--out", tmp_path / "found")
    assert code == 0
    assert out.count("history ") == 3
    names = {path.name for path in (tmp_path / "found").iterdir()}
    assert {"history-1.json", "history-2.json", "history-3.json", "history-1.dot", "history-1-PC.dot"} <= names
    assert any("lost-update" in name for name in names)
    for number in (1, 2, 3):
        assert not check(load(tmp_path / "found" / f"history-{number}.json"), "SI").ok


def test_json(isocheck):
    code, out, _ = isocheck("synth", "-a", "UA,RA", "-f", "PSI@vis", "--up-to", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["found"] is True
    assert document["allow"] == ["UA", "RA"]
    (history,) = document["histories"]
    assert [w["level"] for w in history["witnesses"]] == ["UA", "RA"]
    assert set(history["witnesses"][0]["sees"]) == set(history["witnesses"][0]["order"])
    assert history["check"]["levels"]["PSI"]["ok"] is False
    assert history["history"]["initial"] == 0
    formula = document["formula"]
    assert 0 < formula["initial_clauses"] <= formula["clauses"]
    assert formula["variables"] > 0


def test_a_picture_of_each_witness(isocheck, tmp_path):
    """As the paper's first figure: everyone in the order of the witness, and who sees whom."""
    isocheck("synth", "-a", "NLU", "-f", "UA", "--values", 4, "--minimal", "--out", tmp_path)
    drawn = (tmp_path / "history-1-NLU.dot").read_text()
    assert "NLU holds: AR is the order from left to right" in drawn
    assert drawn.count("VIS") == 2
    own = ("--define", ROOT / "docs" / "other_levels.py")
    isocheck("synth", "-a", "PL-2,SER@none", "-f", "SER", "--out", tmp_path / "own", *own)
    names = {path.name for path in (tmp_path / "own").iterdir()}
    assert {"history-1-PL-2.dot", "history-1-SER@none.dot"} <= names


def test_a_level_per_transaction(isocheck, tmp_path):
    target = tmp_path / "mixed.json"
    code, out, _ = isocheck("synth", "-a", "declared", "-f", "SER", "--levels", "T1=SI,T2=PC", "--out", target)
    assert code == 0
    assert "T1 at SI" in out
    assert check(load(target), "declared").ok
    assert isocheck("synth", "-a", "declared", "-f", "SER", "--levels", "SER,SER,SER")[0] == 1
    assert isocheck("synth", "-a", "Declared,SI", "-f", "SER", "--levels", "SER,SER")[0] == 1


def test_a_time_limit_ends_in_undecided(isocheck):
    for command in (["synth", "-a", "RA", "-f", "TCC"], ["relate", "RA", "TCC"], ["hierarchy"]):
        for output in ("text", "json"):
            code, out, _ = isocheck(*command, "--timeout", "1e-6", "--format", output)
            assert code == 3
            assert "stopped after" in out
    # even while the formula is written down
    code, _, _ = isocheck("synth", "-a", "SI", "-f", "SER", "--txns", 24, "--keys", 26, "--timeout", 0.5)
    assert code == 3


def test_relate(isocheck):
    code, out, _ = isocheck("relate", "SI@co", "snapshot-isolation@vis", "--txns", 3)
    assert code == 0
    assert out.startswith("SI is equivalent to SI@vis, for all histories of up to 3/2/4")
    code, out, _ = isocheck("relate", "TCC", "RA", "--format", "json")
    document = json.loads(out)
    assert (code, document["relation"]) == (0, "stronger")
    assert document["only_a"]["found"] is False
    assert document["only_b"]["histories"]


def test_relate_with_a_level_from_a_file(isocheck):
    code, out, _ = isocheck("relate", "MonotonicReads", "TCC", "--define", MINE)
    assert code == 0
    assert out.startswith("MonotonicReads is weaker than TCC")
    assert "none of all" in out or "says check" in out


def test_a_file_is_run_once_and_names_are_defined_once(isocheck, tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(f"print('run')\n{LEVEL}def mine(h, w): return w.co[0, 0]")
    two.write_text(one.read_text())
    code, out, _ = isocheck("relate", "mine", "mine", "--define", one, "--txns", 1)
    assert (code, out.count("run\n")) == (0, 1)
    code, _, err = isocheck("relate", "mine", "RA", "--define", one, "--define", two)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "two files define mine" in err


def test_the_solver_is_interrupted(child):
    """Ctrl-C while the solver is at work is no defect."""
    hard = """
from plume_py.cli import main
from plume_py.base.logic import Formula
def pigeons(**_):
    formula = Formula()
    holes = [[formula.variable() for _ in range(13)] for _ in range(14)]
    for hole in holes:
        formula.require(*hole)
    for column in zip(*holes):
        formula.at_most_one(column)
    print("ready", flush=True)
    formula.solve()
main.cli.main = pigeons
main.main()
"""
    run = child(
        [sys.executable, "-c", hard],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=PATIENCE)
    assert (run.returncode, err.strip()) == (130, "interrupted")


def test_hierarchy(isocheck, tmp_path):
    assert isocheck("hierarchy", "SI", "SI@co", "--txns", 2)[1].startswith("SI\n")
    target = tmp_path / "levels.dot"
    code, out, _ = isocheck("hierarchy", "RA", "RA@vis", "TCC", "ReadYourWrites", "--define", MINE, "--out", target)
    assert code == 0
    assert "TCC  above  RA = RA@vis" in out
    assert "ReadYourWrites < RA = RA@vis:" in out
    assert target.read_text().startswith("digraph")
    for form in ("svg", "png", "pdf"):
        isocheck("hierarchy", "SI", "SER", "--txns", 2, "--out", tmp_path / f"drawn.{form}")
        assert (tmp_path / f"drawn.{form}").exists() == (shutil.which("dot") is not None)
    code, out, _ = isocheck("hierarchy", "SI", "SER", "--format", "json", "--txns", 2)
    assert json.loads(out)["classes"] == [["SI"], ["SER"]]


def test_hierarchy_without_dot(isocheck, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = isocheck("hierarchy", "SI", "SER", "--txns", 2, "--out", tmp_path / "levels.png")
    assert code == 0 and "install graphviz" in err
    assert (tmp_path / "levels.dot").read_text().startswith("digraph") and not (tmp_path / "levels.png").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["synth"], 2, "at least one level"),
        (["synth", "-a", "nonsense"], 2, "unknown level 'nonsense'"),
        (["synth", "-a", "SI", "--without", "magic"], 2, "'magic' is not a trick"),
        (["synth", "-a", "SI", "--levels", "SI"], 2, "--levels is for"),
        (["synth", "-a", "declared", "--levels", "SI,CI"], 2, "unknown level 'CI'. Use one of RC"),
        (["synth", "-a", "declared", "--levels", "T2=SI"], 2, "is not of the form"),
        (["synth", "-a", "SI", "--count", "2", "--out", "one.json"], 2, "need a folder"),
        (["synth", "-a", "SI", "--out", "-"], 2, "--out needs a file"),
        (["synth", "-a", "SI", "--txns", "0"], 2, "0 is not in the range"),
        (["synth", "-a", "SI", "--minimal", "--without", "incremental"], 2, "incremental"),
        (["synth", "-a", "SI", "--out", "/dev/null/x"], 2, "cannot write"),
        (["relate", "SI"], 2, "LEVEL"),
        (["relate", "", "SI"], 2, "is empty"),
        (["relate", "SI,SER", "RA"], 2, "is not one level"),
        (["synth", "-a", ""], 2, "is empty"),
        (["synth", "-a", "declared", "--levels", "SI,SI", "--txns", "5"], 2, "names 2 transactions, --txns 5"),
        (["synth", "-a", "declared", "--levels", ",".join(["SI"] * 30)], 2, "a scope of 30 txns"),
        (["hierarchy", "SI", ""], 2, "is empty"),
        (["hierarchy", "SI", "--out", "levels.gif"], 2, "ends in .dot, .svg, .png, .pdf"),
        (["relate", "SI", "X", "--define", "no-such-file.py"], 4, "cannot read"),
    ],
)
def test_wrong_options_are_rejected_in_one_line(isocheck, arguments, code, message):
    found, _, err = isocheck(*arguments)
    assert found == code
    assert message in err


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("x = (", 4, "SyntaxError"),
        ("x = 1", 4, "defines no level"),
        ("import sys; sys.exit(0)", 4, "SystemExit"),
        ("1 / 0", 4, "division by zero"),
        (
            "from plume_py.reasoning.synth import level\n@level\ndef SI(h, w): return 1",
            4,
            "the name of a level already",
        ),
        ("from plume_py.reasoning.synth import level\n@level\ndef mine(h, w): return True", 2, "level mine"),
        (
            "from plume_py.reasoning.synth import level\n@level\ndef mine(h, w): return h.all([not h.so[0, 0]])",
            2,
            "no formula",
        ),
        ("from plume_py.reasoning.synth import level\n@level\ndef mine(h, w): return w.vis[0, 1]", 2, 'form="vis"'),
        ("from plume_py.reasoning.synth import level\n@level\ndef mine(h, w): return h.nothing", 2, "no attribute"),
        (
            "from plume_py.reasoning.synth import level\n@level(form='x')\ndef mine(h, w): return 1",
            4,
            "use co, vis, history or axiom",
        ),
        ("\0", 4, "null bytes"),
        ("class E(Exception):\n  def __str__(self): 1 / 0\nraise E", 4, "E; correct the file"),
        ("raise BaseException('odd')", 4, "BaseException: odd"),
        (LEVEL + "def mine(h, w): raise SystemExit(0)", 2, "level mine: SystemExit"),
        (LEVEL + "def mine(h, w): return 10**30", 2, "no formula"),
        (LEVEL + "def mine(h, w): return w.co[-1, 0]", 2, "INITIAL is none"),
        (
            LEVEL + "def mine(h, w): return 1\n" + "@level(name='mine')\ndef b(h, w): return 1",
            4,
            "'mine' is defined twice",
        ),
        ("from plume_py.reasoning.synth import level\n@level(name=5)\ndef mine(h, w): return 1", 4, "'5' is no name"),
        (
            "from plume_py.reasoning.synth import level\n@level(form='history')\ndef mine(h, w): return w.co[0, 0]",
            2,
            "w.co",
        ),
    ],
)
def test_bad_definitions_are_rejected_in_one_line(isocheck, tmp_path, source, code, message):
    path = tmp_path / "mine.py"
    path.write_text(source)
    found, _, err = isocheck("relate", "mine", "RA", "--define", path)
    assert found == code
    assert message in err
    assert len(err.splitlines()) == 1


def test_found_histories_have_times_that_the_checker_reads(isocheck, tmp_path):
    path = tmp_path / "stale.json"
    code, out, _ = isocheck("synth", "-a", "SER", "-f", "SSER", "--minimal", "--out", path)
    assert code == 0
    assert "[begin,end] by one clock" in out
    assert "re-checked: SSER is broken: says check, and verify proves it again" in out
    written = json.loads(path.read_text())
    assert all({"start", "end"} <= txn.keys() for session in written["sessions"] for txn in session)
    verdicts = check(load(path), ["SER", "SSER"]).levels
    assert (verdicts["SER"].ok, verdicts["SSER"].ok) == (True, False)
    _, out, _ = isocheck("synth", "-a", "SER", "-f", "SSER", "--minimal", "--format", "json")
    (found,) = json.loads(out)["histories"]
    assert found["history"] == {"initial": 0, "sessions": written["sessions"]}
    assert {name: verdict["order"] for name, verdict in found["check"]["levels"].items()} == {
        "SER": "session",
        "SSER": "realtime",
    }


def test_pictures_show_real_time(isocheck, tmp_path):
    assert isocheck("synth", "-a", "SER", "-f", "SSER", "--minimal", "--out", tmp_path)[0] == 0
    drawn = (tmp_path / "history-1.dot").read_text()
    assert "[0,1]" in drawn
    assert ">RT<" in drawn


def test_user_levels_can_be_used_in_orders(isocheck, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from plume_py.reasoning.synth import axiom, level, seen_by\n\n\n"
        "@level\ndef Mine(h, w):\n    return axiom(h, w.co, seen_by(h.so))\n"
    )
    code, out, _ = isocheck("relate", "Mine", "Mine@realtime", "--define", mine, "--txns", 2)
    assert code == 0
    assert out.startswith("Mine is weaker than Mine@realtime")
    mine.write_text(
        "from plume_py.reasoning.synth import level\n\n\n@level\ndef SSER(h, w):\n    return h.so.irreflexive()\n"
    )
    code, _, err = isocheck("relate", "SSER", "SI", "--define", mine)
    assert code == 4
    assert "'SSER' is the name of a level already" in err
