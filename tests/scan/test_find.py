"""The candidates of a scan and their recognition (scan/find.py, storage.py, worker.py)."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py.base.errors import InputError, IsocheckError
from plume_py.cli.main import cli
from plume_py.scan.find import find
from plume_py.scan.settings import SKIPPED, ScanTask, Settings
from plume_py.scan.worker import check_one

SMALL = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",1],["r","y",0]]}]]}'
EDN = "{:type :ok, :process 0, :f :txn, :value [[:append 1 2]]}\n"
COBRA = b"S" + bytes(7) + b"\x01" + b"C" + bytes(7) + b"\x01"
VIPER = '{"value": [["w", 5, 1, true]]}\n'


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def names(tmp_path, *paths):
    return sorted(os.path.relpath(task.path, tmp_path) for task in find(map(str, paths or [tmp_path])))


def outcome(path, named=False, **settings):
    return check_one(ScanTask(0, str(path), 0, named), Settings(**settings))


def test_a_folder_that_is_one_history_counts_as_one(tmp_path):
    write(tmp_path / "store/test/run1", history__edn=EDN, results__edn="{:valid? true}", jepsen__log="INFO\n")
    write(tmp_path / "store/test/run1/n1", db__log="Starting\n")
    write(tmp_path / "cobra/hist-1", T1__log=COBRA, T2__log=b"")
    write(tmp_path / "viper", J1__log=VIPER, J2__log=VIPER)
    write(tmp_path / "isovista/json", J1__log=VIPER)
    write(tmp_path / "plain", history__edn=EDN, other__edn=EDN)
    write(tmp_path / "mixed", a__json=SMALL, b__json=SMALL, run__log="Starting the run\n")
    (tmp_path / "store/latest").symlink_to(tmp_path / "store/test/run1")
    found = names(tmp_path)
    assert found == [
        "cobra/hist-1", "isovista", "mixed/a.json", "mixed/b.json", "mixed/run.log", "plain/history.edn",
        "plain/other.edn", "store/test/run1", "viper",
    ]  # fmt: skip
    outcomes = {name: outcome(tmp_path / name).outcome for name in found}
    assert outcomes.pop("mixed/run.log") == SKIPPED
    assert set(outcomes.values()) == {"holds"}


def test_hidden_files_links_and_pipes(tmp_path):
    write(tmp_path / ".git", a__json=SMALL)
    write(tmp_path / "x", a__json=SMALL)
    (tmp_path / "x/.hidden.json").write_text(SMALL)
    (tmp_path / "x/link.json").symlink_to(tmp_path / "x/a.json")
    (tmp_path / "x/nowhere.json").symlink_to(tmp_path / "x/none.json")
    (tmp_path / "x/loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "x/pipe.json")
    assert names(tmp_path) == ["x/a.json", "x/link.json"]


def test_pipes_and_devices_are_not_read(tmp_path):
    """A worker's standard input is where its tasks come from, and a pipe may never end."""
    with pytest.raises(IsocheckError, match="standard input"):
        find(["-"])
    (tmp_path / "list").write_text("-\n")
    assert [task.path for task in find([f"@{tmp_path / 'list'}"])] == ["./-"]
    os.mkfifo(tmp_path / "pipe")
    answer = outcome(tmp_path / "pipe", named=True)
    assert answer.outcome == "unreadable" and "not a regular file" in json.loads(answer.payload)["error"]


def test_each_history_once_and_the_largest_first(tmp_path):
    write(tmp_path, a__json=SMALL, b__json=SMALL + " " * 100, c__txt=SMALL + " " * 50)
    found = find([str(tmp_path), str(tmp_path / "a.json"), f"{tmp_path}/*.json", f"{tmp_path}/../{tmp_path.name}"])
    assert [Path(task.path).name for task in found] == ["b.json", "c.txt", "a.json"]
    assert [task.number for task in found] == [0, 1, 2]


def test_lists_and_globs(tmp_path):
    write(tmp_path / "a/b", one__json=SMALL)
    write(tmp_path, two__json=SMALL)
    listed = tmp_path / "files.list"
    listed.write_text(f"# histories\n{tmp_path}/a\n\n{tmp_path}/two.json\n")
    assert names(tmp_path, f"@{listed}") == ["a/b/one.json", "two.json"]
    assert names(tmp_path, f"{tmp_path}/**/*.json") == ["a/b/one.json", "two.json"]
    with pytest.raises(InputError, match="cannot read the list"):
        find([f"@{tmp_path}/none"])
    listed.write_bytes(b"\x1f\x8b\0\0\n")
    with pytest.raises(InputError, match="not a list of paths"):
        find([f"@{listed}"])
    odd = tmp_path / "form\x0cfeed\u2028.json"
    odd.write_text(SMALL)
    listed.write_text(f"{odd}\r\n", newline="")
    assert [task.path for task in find([f"@{listed}"])] == [str(odd)], "only a line feed ends a line"


def test_globs_with_circular_links_end(tmp_path):
    """Two links that lead back make 2^40 paths before the system says stop."""
    write(tmp_path / "x/y", one__json=SMALL)
    write(tmp_path / "x/.hidden", three__json=SMALL)
    for name in ("a", "b"):
        (tmp_path / f"x/{name}").symlink_to(tmp_path)
    (tmp_path / "x/y/latest").symlink_to(tmp_path / "x")
    assert names(tmp_path, f"{tmp_path}/**/*.json") == ["x/y/one.json"]
    assert names(tmp_path, f"{tmp_path}/**/**/y/../y/o?e.js[o]n") == ["x/y/one.json"]
    assert names(tmp_path, f"{tmp_path}/*/y/latest/y/*.json") == ["x/y/latest/y/one.json"], "a link that was named"
    assert names(tmp_path, f"{tmp_path}/x/.*/*.json") == ["x/.hidden/three.json"]
    assert names(tmp_path, f"{tmp_path}/x/**") == ["x/y/one.json"]


def test_a_glob_in_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path / "x", one__json=SMALL)
    monkeypatch.chdir(tmp_path)
    assert [task.path for task in find(["*/*.json"])] == [task.path for task in find(["**/*.json"])] == ["x/one.json"]


def test_a_glob_that_matches_nothing_is_reported(tmp_path):
    write(tmp_path, one__json=SMALL)
    (task,) = find([f"{tmp_path}/*.txt"])
    assert check_one(task, Settings()).outcome == "unreadable"


def test_a_folder_that_cannot_be_listed_is_reported_as_unreadable(tmp_path, monkeypatch):
    write(tmp_path / "open", one__json=SMALL)
    write(tmp_path / "secret", two__json=SMALL)
    write(tmp_path / "open/json", J1__log=VIPER)
    listing = {function: getattr(os, function) for function in ("scandir", "listdir")}

    def closed(function):
        def call(path="."):
            if Path(path).name in ("secret", "json"):
                raise PermissionError(13, "Permission denied", path)
            return listing[function](path)

        return call

    for function in listing:  # chmod does not keep root out
        monkeypatch.setattr(os, function, closed(function))
    for path in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/**"):
        assert names(tmp_path, path) == ["open/json", "open/one.json", "secret"]
    answer = outcome(tmp_path / "secret")
    assert answer.outcome == "unreadable"
    assert json.loads(answer.payload)["error"] == f"{tmp_path}/secret: Permission denied"


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("README.md", b"# title\n", "not a history"),
        ("notes.txt", b"hello\n", "not a history"),
        ("package.json", b'{"name": "x"}', "not a history"),
        ("results.edn", b"{:valid? true}", "not a history"),
        ("log.jsonl", b'{"level":"info"}\n{"level":"warn"}\n', "not a history"),
        ("results.jsonl", b'{"history":"a.json","ops":1}\n{"history":"b.json"}\n', "not a history"),
        ("report.json", b'{"tool":{"name":"isocheck","version":"1"},"results":[{"sessions":2}]}', "not a history"),
        ("docker.yml", b"version: 3\n", "not a history"),
        ("empty.log", b"", "empty"),
    ],
)
def test_a_file_that_is_no_history_is_skipped_unless_the_user_named_it(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    answer = outcome(tmp_path / name)
    assert (answer.outcome, answer.payload.decode()) == (SKIPPED, reason)
    assert outcome(tmp_path / name, named=True).outcome == "unreadable"


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("cut.json", b'{"initial": 0, "sess', "cut off"),
        ("string.json", b'{"story": "it was [a dark', "cut off"),
        ("cut.jsonl", b'{"initial": 0', "cut off"),
        ("cut.edn", b"[{:index 0", ""),
        ("empty.json", b"", "the file is empty"),
        ("blank.json", b"\n\n", ""),
        ("empty.txt", b"", "the file is empty"),
        ("empty.txt.gz", gzip.compress(b"", mtime=0), "the file is empty"),
        ("empty.edn", b"", "the file is empty"),
    ],
)
def test_the_history_of_a_crashed_run_is_unreadable(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    answer = outcome(tmp_path / name)
    assert answer.outcome == "unreadable" and reason in json.loads(answer.payload)["error"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("histories/**/*.json")), ids=lambda path: path.stem)
def test_every_history_of_this_repository_is_recognised(path):
    assert outcome(path).outcome in ("holds", "violated", "undecided")


def test_missing_unreadable_and_oddly_named_files(tmp_path):
    odd = os.fsencode(tmp_path) + b"/odd-\xff\n.json"
    Path(os.fsdecode(odd)).write_text(SMALL)
    target = tmp_path / "r.jsonl"
    done = CliRunner().invoke(
        cli, ["scan", str(tmp_path), str(tmp_path / "none.json"), "--results", str(target), "--quiet"]
    )
    assert done.exit_code == 4
    found = {line["history"]: line for line in map(json.loads, target.read_text().splitlines())}
    assert found.pop(str(tmp_path / "none.json"))["error"] == f"{tmp_path / 'none.json'}: No such file or directory"
    ((name, line),) = found.items()
    assert line["outcome"] == "holds" and name.endswith("odd-\\udcff\n.json")
    again = CliRunner().invoke(cli, ["scan", str(tmp_path), "--results", str(target), "--resume", "--format", "json"])
    assert json.loads(again.output)["run"]["same"] == 1, "and our own results are not taken for a history"


def test_a_folder_of_logs_changes_with_each_of_them(tmp_path):
    write(tmp_path, T1__log=COBRA, T2__log=COBRA)
    first = json.loads(outcome(tmp_path).payload)["hash"]
    write(tmp_path, T2__log=b"")
    second = json.loads(outcome(tmp_path).payload)["hash"]
    os.rename(tmp_path / "T1.log", tmp_path / "T3.log")
    assert len({first, second, json.loads(outcome(tmp_path).payload)["hash"]}) == 3


def test_a_given_format_overrides_recognition(tmp_path):
    (tmp_path / "x.dat").write_text(SMALL)
    assert outcome(tmp_path / "x.dat", input_format="json").outcome == "holds"
    assert outcome(tmp_path / "x.dat", input_format="edn").outcome == "unreadable"


def test_a_defect_is_undecided_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "x.json").write_text(SMALL)
    monkeypatch.setattr("plume_py.checking.check.check", lambda *a, **k: 1 // 0)
    answer = outcome(tmp_path / "x.json")
    assert answer.outcome == "undecided"
    assert "a defect in isocheck: ZeroDivisionError" in answer.payload.decode()


def test_urls_of_a_local_folder(tmp_path):
    pytest.importorskip("fsspec")
    write(tmp_path / "h/run", history__edn=EDN, results__edn="{:valid? true}")
    write(tmp_path / "h", a__json=SMALL, notes__txt="hello\n")
    write(tmp_path / "h/cobra", T1__log=COBRA)
    target = tmp_path / "r.jsonl"
    done = CliRunner().invoke(
        cli, ["scan", f"file://{tmp_path}/h", "--results", str(target), "--format", "json", "--jobs", "1"]
    )
    document = json.loads(done.output)
    assert document["summary"]["outcomes"]["holds"] == 3 and document["run"]["skipped"] == {"not a history": 1}
    histories = {line["history"] for line in map(json.loads, target.read_text().splitlines())}
    assert histories == {f"file://{tmp_path}/h/{name}" for name in ("a.json", "run", "cobra")}
    shutil.rmtree(tmp_path / "h/run")
    done = CliRunner().invoke(cli, ["scan", f"file://{tmp_path}/none.json", "--format", "json", "--jobs", "1"])
    assert done.exit_code == 4
    assert "cannot be fetched" in json.loads(done.output)["summary"]["unreadable"][0]["error"]


def test_urls_of_other_file_systems():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/a.json", SMALL.encode())
    memory.pipe("/bucket/deep/b.json", SMALL.encode() + b"  ")
    memory.pipe("/bucket/logs/T1.log", COBRA)
    found = find(["memory://bucket"])
    assert [task.path for task in found] == [f"memory:///bucket/{n}" for n in ("deep/b.json", "a.json", "logs")]
    assert [task.path for task in find(["memory://bucket/*.json"])] == ["memory:///bucket/a.json"]
    assert [check_one(task, Settings()).outcome for task in found] == ["holds"] * 3
    with pytest.raises(IsocheckError, match="nosuch"):
        find(["nosuch://bucket"])
