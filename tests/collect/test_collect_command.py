"""Tests of the commands ``isocheck collect`` and ``isocheck test``, and of ``collect.registry``."""

import json
import os
import re

import pytest
from collecting import lines
from paths import ROOT
from program import isocheck

from plume_py import check, load
from plume_py.base.passwords import without_password
from plume_py.cli.main import main
from plume_py.collect.adapter import normalize_isolation
from plume_py.collect.registry import adapter_class
from plume_py.collect.workload import workload_names

# An adapter that cannot run. It must be rejected before anything runs.
UNSURE = """
from plume_py.collect.adapter import Promise
from plume_py.collect.adapters.broken import BrokenAdapter

class Unsure(BrokenAdapter):
    isolations = {"whatever": Promise(None), "serializable": Promise("SER")}
    mixture = "side by side they are worth nothing"
    def create(self, keys):
        raise AssertionError
"""


def test_the_test_command_works_without_an_installed_database(tmp_path):
    run = isocheck("test", "--transactions", 20, "--history", tmp_path / "h.jsonl")
    assert run.returncode == 0 and "SER  holds" in run.stdout and "agrees with the history" in run.stdout
    assert (tmp_path / "h.jsonl").exists()


def test_the_test_command_shows_violations(tmp_path):
    run = isocheck(
        "test", "broken:?bug=stale-reads", "--pause", 0.2, "--transactions", 50, "--out", tmp_path / "pictures",
        "--report", tmp_path / "r.html", env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 1 and "SER  violated" in run.stdout
    assert list((tmp_path / "pictures").glob("*.dot")) and (tmp_path / "r.html").exists()
    kept = re.search(r"the history is kept in (\S+)", run.stderr)
    assert kept is not None and not check(load(kept[1]), "SER").ok


def test_a_mix_of_levels_prints_a_note_about_its_guarantees(tmp_path):
    (tmp_path / "unsure.py").write_text(UNSURE.replace("raise AssertionError", "super().create(keys)"))
    mix = ["--mix", "SER=1,Serializable=1,whatever=2", "--transactions", 10]
    run = isocheck("collect", f"{tmp_path}/unsure.py:Unsure", *mix, "--out", tmp_path / "h.jsonl")
    assert run.returncode == 0 and "note      side by side they are worth nothing" in run.stdout
    assert lines(tmp_path / "h.jsonl")[0]["collected"]["mix"] == {"serializable": 2, "whatever": 2}
    run = isocheck("collect", f"{tmp_path}/unsure.py:Unsure", "--transactions", 10, "--out", tmp_path / "other.jsonl")
    assert run.returncode == 0 and "note" not in run.stdout


def test_a_history_that_could_not_be_checked_is_kept(tmp_path, monkeypatch, capsys):
    """The violation may not occur again in another run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("plume_py.cli.test._check", interrupt)
    monkeypatch.setattr("sys.argv", ["isocheck", "test", "broken:", "--transactions", "5"])
    with pytest.raises(SystemExit) as end:
        main()
    kept = re.search(r"the history is kept in (\S+)", capsys.readouterr().err)
    assert end.value.code == 130 and kept is not None and load(kept[1]).transactions == 40


def interrupt(*_):
    raise KeyboardInterrupt


def test_expect_replaces_the_documented_level():
    run = isocheck("test", "broken:?bug=write-skew", "--expect", "SI", "--transactions", 40, "--format", "json")
    assert run.returncode == 0
    assert list(json.loads(run.stdout)["results"][0]["levels"]) == ["SI"]


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["collect", "nonsense", "--out", "h"], 2, "not the address of a database"),
        (["collect", "ftp://u:secret@x/", "--out", "h"], 2, "not the address of a database"),
        (["collect", "--out", "h"], 2, "give the URL of a database, or --managed"),
        (["collect", "broken:?bug=what", "--out", "h"], 2, "unknown bug"),
        (["collect", "broken:?bug=stale-reads&chance=2", "--out", "h"], 2, "a number from 0 to 1"),
        (["collect", "broken:", "--isolation", "RC", "--out", "h"], 2, "has no isolation level 'RC'; it has serial"),
        (["collect", "broken:", "--faults", "pause", "--out", "h"], 2, "use --managed"),
        (["collect", "broken:", "--faults", "kill-connection", "--out", "h"], 2, "leave kill-connection out"),
        (["collect", "broken:", "--faults", "earthquake", "--out", "h"], 2, "'earthquake' is not a fault"),
        (["collect", "broken:", "--mix", "RC:2", "--out", "h"], 2, "is not a part of a mix"),
        (["collect", "broken:", "--operations", "5-2", "--out", "h"], 2, "is not a length"),
        (["collect", "broken:", "--out", "/nowhere/h"], 2, "cannot write /nowhere/h"),
        (["collect", "sqlite:///:memory:", "--out", "h"], 2, "needs a file"),
        (["collect", "sqlite:////nowhere/t.db", "--out", "h"], 4, "cannot set up the table"),
        (["collect", "sqlite:t.db", "--out", "h"], 2, "write sqlite:///test.db"),
        (
            ["collect", "mysql://u:secret@h:abc/db", "--out", "h"],
            2,
            "not the address of a server: 'mysql://u@h:abc/db'",
        ),
        (["collect", "mysql://u:secret@h:99999/db", "--out", "h"], 2, "not the address of a server"),
        (["collect", "mysql://u:secret@[::1/db", "--out", "h"], 2, "not the address of a server"),
        (["collect", "mysql://u:sec?ret@h/db", "--out", "h"], 2, "not the address of a server"),
        (["collect", "no_such_module:Class", "--out", "h"], 2, "cannot import no_such_module"),
        (["collect", "no_such.py:Class", "--out", "h"], 2, "no such file"),
        (["collect", "json:JSONDecoder", "--out", "h"], 2, "is not an adapter"),
        (["test", "unsure.py:Unsure"], 2, "nothing is promised at whatever"),
        (["test", "unsure.py:Unsure", "--mix", "whatever=1,SER=1"], 2, "nothing is promised at whatever"),
        (["collect", "broken:", "--transactions", "0", "--out", "h"], 3, "nothing committed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_prints_one_line(arguments, code, words, tmp_path, monkeypatch, capsys):
    if arguments[1].startswith("mysql:"):
        pytest.importorskip("pymysql")
    (tmp_path / "unsure.py").write_text(UNSURE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["isocheck", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = "".join(capsys.readouterr())
    assert end.value.code == code, printed
    assert words in printed and "secret" not in printed and "defect" not in printed
    assert {path.name for path in tmp_path.iterdir()} <= {"unsure.py", "__pycache__", "h"}, (
        "nothing is left lying about"
    )


def test_choices_of_options_agree_with_the_modules():
    from plume_py.cli import collect_options as options
    from plume_py.collect.client import ARRIVALS
    from plume_py.collect.cluster import MANAGED
    from plume_py.collect.faults import KINDS
    from plume_py.collect.nodes import READ_FROM

    assert list(options.WORKLOADS) == workload_names() and options.ARRIVALS == ARRIVALS
    assert list(options.MANAGED) == list(MANAGED) and options.FAULTS == KINDS and options.READ_FROM == READ_FROM


# --- addresses and adapters


def test_passwords_are_not_printed_or_recorded():
    assert without_password("postgresql://me:secret@host:5/db?x=1") == "postgresql://me@host:5/db?x=1"
    assert without_password("postgresql://host/db?password=secret&x=1") == "postgresql://host/db?x=1"
    assert without_password("postgresql://host/db?sslpassword=secret&PassWord=secret&x=1") == "postgresql://host/db?x=1"
    assert without_password("postgresql://host/db?%70assword=secret") == "postgresql://host/db"
    for odd in "?#/@:[ \n":
        assert without_password(f"mysql://me:sec{odd}ret@host:5/db") == "mysql://me@host:5/db"
    assert without_password("file.py:Class?x=a@b") == "file.py:Class?x=a@b"
    assert without_password("sqlite:///t.db") == "sqlite:///t.db"
    assert normalize_isolation("Read_Committed") == normalize_isolation("read-committed") == "read committed"


def test_an_adapter_is_found_in_a_module(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    assert adapter_class("plume_py.collect.adapters.sqlite:SqliteAdapter").name == "SQLite"


def test_the_adapter_in_the_documentation_works_as_a_file(tmp_path):
    page = (ROOT / "docs" / "collect.md").read_text()
    example = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class Dictionary" in block)
    (tmp_path / "dictionary.py").write_text(example.partition("# Run it")[0])
    run = isocheck(
        "test", f"{tmp_path}/dictionary.py:Dictionary", "--workload", "append", "--transactions", 30, cwd=tmp_path
    )
    assert run.returncode == 0 and "SER  holds" in run.stdout, run.stderr
