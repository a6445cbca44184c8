"""``isocheck bench`` (bench/run.py, tables.py): the points, their measurement, and the tables and plots."""

import csv
import io
import sys
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from plume_py.base.child_process import run_command
from plume_py.bench import run, tables
from plume_py.bench.run import SHAPE, Point, points, varied
from plume_py.cli.main import cli


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def isocheck(*arguments):
    return CliRunner().invoke(cli, [*map(str, arguments)])


def plan(levels=("TCC",), **lists):
    shape = {name: lists.get(name.replace("-", "_"), (value,)) for name, value in SHAPE.items()}
    return list(points(shape, levels, ("auto",), 0))


def measured(point, **what):
    known = {"verdict": "holds", "seconds": 2.0, "cpu": 1.0, "megabytes": 50.0, "stages": {"load": 0.5, "edges": 0.25}}
    return run.Measured(point, **(known | what))


def test_every_combination_is_a_point():
    found = plan(levels=("TCC", "RA"), sessions=(2, 5), distribution=("uniform", "zipfian"))
    assert len(found) == 8
    assert varied(found) == ["sessions", "distribution", "level"]
    assert found[0].shape == found[1].shape  # one history, two questions


def test_a_bench_writes_rows_and_plots(tmp_path):
    out = tmp_path / "profile"
    done = isocheck("bench", "--sessions", "2,3", "--transactions", 4, "--operations", 3, "--keys", 9, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [["2", "holds"], ["3", "holds"]]
    first, second = csv.DictReader((out / "bench.csv").open())
    assert (first["sessions"], second["sessions"]) == ("2", "3")
    assert float(first["cpu seconds"]) > 0
    assert float(first["load"]) > 0
    assert float(second["megabytes"]) > 10
    for name in ("seconds.svg", "memory.svg", "stages.svg"):
        ElementTree.parse(out / name)


def test_without_a_numeric_parameter_there_is_no_plot():
    found = [measured(point) for point in plan(distribution=("uniform", "zipfian"))]
    assert tables.plots(found) == {}
    assert tables.as_text(found).splitlines()[1].startswith("uniform")


def test_a_check_that_was_stopped_says_how_long_it_ran():
    found = [measured(plan()[0], verdict=run.STOPPED, seconds=7.0, stages={})]
    assert "> 7" in tables.as_text(found)
    (row,) = csv.DictReader(io.StringIO(tables.as_csv(found)))
    assert row["verdict"] == "stopped"


def test_each_combination_of_other_parameters_is_a_line():
    found = [measured(point) for point in plan(levels=("TCC", "RA"), sessions=(2, 5, 10), keys=(10, 20))]
    seconds = tables.plots(found)["seconds.svg"]
    assert all(f">{line}</text>" in seconds for line in ("10 keys, TCC", "20 keys, RA"))


def test_a_process_is_ended_when_its_time_is_up():
    done = run_command([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert done.is_timed_out
    assert done.seconds < 50


def test_parameters_that_generate_rejects_are_one_line(tmp_path):
    point = Point({**SHAPE, "sessions": 2**20, "transactions": 2**20}, "TCC", "auto")
    with pytest.raises(run.IsocheckError, match=r"choose smaller sizes"):
        run.write(point, tmp_path / "history.txt")


@pytest.mark.parametrize("words", [("--sessions", "2,x"), ("--level", "TCC,NOPE"), ("--sessions", "")])
def test_a_list_with_an_invalid_value_is_a_usage_error(words):
    done = isocheck("bench", *words)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_a_preset_gives_sizes_and_other_options_change_them(tmp_path):
    path = tmp_path / "history.txt"
    done = isocheck("generate", path, "--preset", "generalrh", "--sessions", 2, "--transactions", 5)
    assert done.exit_code == 0, done.stderr
    assert "10 transactions, 200 operations" in done.stderr
    kinds = [line[0] for line in path.read_text().splitlines()]
    assert kinds.count("r") > 0.8 * len(kinds)
