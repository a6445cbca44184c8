"""The benchmarks run at all, and their parts count right."""

import csv
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from paths import ROOT

from benchmarks import check, collect, hot_key, measure, plot, tables, workloads


def bench(*args):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *args], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_startup_runs_and_keeps_its_table(tmp_path):
    done = bench("--quick", "--only", "startup", "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "isocheck stats tiny.json" in done.stdout
    rows = list(csv.DictReader((tmp_path / "startup.csv").open()))
    assert len(rows) == 5
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_an_unknown_part_is_refused():
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr


def test_a_check_is_measured_in_parts_that_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(workloads, "WORK", tmp_path)
    tiny = workloads.Workload("tiny", 3, 9, 4, 10)
    found = measure.run(check.command(tiny.file("TCC"), "TCC"))
    parts = check.phases(found)
    assert tuple(parts) == check.PHASES
    assert sum(parts.values()) == pytest.approx(found.seconds)
    assert parts["start"] > 0
    assert found.megabytes > 10
    assert [path.name for path in tmp_path.iterdir()] == ["3x3x4-10-uniform-TCC.txt"]


def test_a_failing_command_stops_the_benchmark():
    with pytest.raises(SystemExit, match="ended with 3"):
        measure.run([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.parametrize("guarantee", ["SER", "TCC"])
def test_the_hot_key_history_holds_and_everybody_writes_the_key(tmp_path, guarantee):
    import plume_py
    from plume_py.checking.graph.analysis import Analysis
    from plume_py.checking.weak.decide import WeakLevels

    path = tmp_path / "hot.txt"
    path.write_text("".join(hot_key.history(guarantee, 4, 5)))
    history = plume_py.load(path)
    assert all(("w", hot_key.HOT) in {op[:2] for op in txn.ops} for session in history for txn in session)
    assert WeakLevels(Analysis(history)).holds("TCC")


def test_tables_and_plots(tmp_path, capsys):
    rows = [
        {"name": "a<b", "seconds": 0.5, "n": 1234, "limit": None},
        {"name": "c", "seconds": 12.0, "n": 5, "limit": 1.0},
    ]
    tables.show("Title", rows)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["c", "12.00", "5", "1.00"]
    tables.save(tmp_path / "t.csv", rows)
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "a<b,0.5000,1234,"
    plot.save_bars(tmp_path / "t.svg", "a < b", [plot.Bar("x & y", {"load": 1.0, "check": 2.0}, 2.5)], "target")
    assert ElementTree.parse(tmp_path / "t.svg").getroot().tag.endswith("svg")
    plot.save_bars(tmp_path / "s.svg", "shares", [plot.Bar("x", {"SI": 75.0, "SER": 25.0})], shares=True)
    texts = [
        text.text for text in ElementTree.parse(tmp_path / "s.svg").getroot().iter("{http://www.w3.org/2000/svg}text")
    ]
    assert texts == ["shares", "SI", "SER", "x", "75", "25"]


def test_the_synthesis_problems_run_and_are_as_expected(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.synth", "--quick", "--only", "TCC | PC", "--results", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "synth.csv").open()))
    assert [row["problem"] for row in rows] == ["TCC | PC", "TCC | PC@vis"]
    assert {row["verdict"] for row in rows} == {"UNSAT"}  # three transactions are too few
    assert "no cross" in (tmp_path / "synth.md").read_text()


def test_there_are_46_synthesis_problems():
    from benchmarks.synth_problems import TASKS

    assert len({task.name for task in TASKS}) == 46
    kinds = [task.kind for task in TASKS]
    assert [kinds.count(kind) for kind in dict.fromkeys(kinds)] == [11, 14, 11, 10]


@pytest.mark.full
def test_strong_levels_are_measured_holding_and_broken(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.strong_made", "--quick", "--only", "zipfian", "--results", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "strong-made.csv").open()))
    assert len(rows) == 8
    verdicts = {(row["made"], row["judged"]): row["verdict"] for row in rows}
    assert verdicts["SER", "SER"] == verdicts["SER", "SI"] == verdicts["SI", "SI"] == "holds"
    assert verdicts["TCC", "SER"] == verdicts["TCC", "SI"] == "broken"
    assert all(float(row["400"]) > 0 and row["growth"] and row["worst"] for row in rows)


def test_planted_patterns_are_measured_by_stage():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.strong", "--quick", "--only", "400 x 10|lost-update"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "lost-update" in done.stdout


def test_the_page_of_confirmations_counts_what_came_of_predictions():
    from collections import Counter

    from benchmarks import confirm

    defined = Counter(asked=2, predicted=2, validated=1, **{"postgresql confirmed": 1, "mariadb refused": 2})
    ours = Counter(asked=2, predicted=1, validated=1, **{"postgresql confirmed": 1})
    counts = {("voter", "TCC", "none"): defined, ("voter", "TCC", "postgresql"): ours}
    page = confirm.page(counts, ["PostgreSQL 15"], 1, 60.0)
    assert "| voter | TCC | 2 | 1 | 0 | 0 | 0 | read committed | 1 / 0 / 0 | read committed | 0 / 0 / 2 |" in page
    assert "| voter | TCC | read committed | 1 | 1 | 1 / 0 / 0 |" in page
    assert "as postgresql runs it: 2 asked, 1 predicted, 1 validated" in page


def test_the_table_of_the_collector_has_its_place():
    rows = [
        {"sessions": sessions, "tool": tool, "transactions/s": 1234, "CPU ms": 0.5}
        for sessions in collect.SESSIONS
        for tool in collect.TOOLS
    ]
    assert collect.table(rows).count("| 1,234 / 0.50 ") == len(rows)
    assert all(collect.PAGE.read_text().count(mark) == 1 for mark in collect.MARKS)
