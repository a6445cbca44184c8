"""Folders of Jepsen runs (detect.py) and history.txt (formats/jepsen_text.py)."""

import os

import pytest
from click.testing import CliRunner

from plume_py.base.errors import InputError
from plume_py.cli.main import cli
from plume_py.history.load import load
from plume_py.scan.find import find
from plume_py.scan.settings import ScanTask, Settings
from plume_py.scan.worker import check_one

OPERATION = "{:type %s, :process 0, :f :txn, :value [[:append 1 1] [:r 1 [1]]], :index %d}\n"
EDN = OPERATION % (":invoke", 0) + OPERATION % (":ok", 1)
TEXT = "0\t:invoke\t:txn\t[[:append 1 1] [:r 1 nil]]\n0\t:ok\t:txn\t[[:append 1 1] [:r 1 [1]]]\n"
FILES = {
    "history.edn": EDN,
    "history.txt": TEXT,
    "jepsen.log": "INFO\n",
    "results.edn": "{:valid? true}\n",
    "test.jepsen": "JEPSEN\0\0\0\1",
}


def run(store, name, files):
    """A run of a test in a store, with the links that Jepsen makes."""
    folder = store / "my-test" / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_text(FILES[file])
    for link in (store / "latest", store / "current", store / "my-test/latest"):
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(folder, link.parent))
    return folder


def ops(history):
    return [[tuple(op) for op in txn.ops] for session in history for txn in session]


def test_a_run_is_one_history(tmp_path):
    folder = run(tmp_path / "store", "20260101T120000.000Z", FILES)
    store = tmp_path / "store"
    for path in (folder, store / "latest", store / "current", store / "my-test/latest", folder / "history.txt"):
        assert ops(load(path)) == [[("append", 1, 1), ("r", 1, (1,))]]
    assert load(folder).format == "edn"
    for path in (store, store / "my-test"):
        with pytest.raises(InputError, match=r"several Jepsen runs; check one, such as .*latest"):
            load(path)
    (store / "latest").unlink()
    with pytest.raises(InputError, match=r"several Jepsen runs; check one, such as .*current"):
        load(store)


@pytest.mark.parametrize("beside", [["jepsen.log"], ["test.jepsen", "results.edn"], []])
def test_a_run_with_history_txt_alone(tmp_path, beside):
    folder = run(tmp_path, "1", ["history.txt", *beside])
    assert load(folder).format == "jepsen-txt"
    assert ops(load(folder)) == [[("append", 1, 1), ("r", 1, (1,))]]


def test_a_run_in_binary_form_alone(tmp_path):
    folder = run(tmp_path, "1", ["test.jepsen", "jepsen.log"])
    for path, problem in ((folder, "a Jepsen run without history.edn"), (folder / "test.jepsen", "binary format")):
        with pytest.raises(InputError, match=problem) as error:
            load(path)
        assert "jepsen.store/write-history!" in str(error.value)
        assert "\n" not in str(error.value)


def test_a_scan_finds_each_run_once(tmp_path):
    store = tmp_path / "store"
    run(store, "1", FILES)
    run(store, "2", ["history.txt", "jepsen.log"])
    run(store, "3", ["test.jepsen", "jepsen.log", "results.edn"])
    run(store, "4", ["history.edn", "history.txt"])
    found = find([str(store), str(store / "latest"), str(store / "*/latest")])
    assert sorted(os.path.relpath(task.path, store) for task in found) == [f"my-test/{n}" for n in "1234"]
    outcomes = {task.path[-1]: check_one(ScanTask(0, task.path, 0, False), Settings()).outcome for task in found}
    assert outcomes == {"1": "holds", "2": "holds", "3": "unreadable", "4": "holds"}


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("[[:append 1 2] [:w 1 3]]", 4, "key 1 is used both as a list and as a register"),
        ("[[:r 1 [[2] 3]]]", 4, "a list inside a list: [:r 1 [[2] 3]]"),
        ("[[:r 1 [nil]]]", 4, "nil inside a list: [:r 1 [nil]]"),
        ("[[:r 1 #{2}]]", 4, "a set is no list: it has no order: [:r 1 #{2}]"),
        ("[[:append 1 2] [:append 1 [3]]]", 4, "a list appended at once: [:append 1 [3]]"),
        ("[[:append 1 2]]} {:type :ok :process 1 :value [[:r 1 [2 2]]]", 1, ""),
    ],
)
def test_bad_input_takes_one_line(tmp_path, value, code, message):
    path = tmp_path / "h.edn"
    path.write_text(f"{{:type :ok :process 0 :f :txn :value {value}}}\n")
    ran = CliRunner().invoke(cli, ["check", str(path), "--level", "RC"])
    assert ran.exit_code == code
    assert message in ran.stderr
    assert ran.stderr.count("\n") == (code == 4)
    if code == 1:
        assert "DuplicateElement" in ran.stdout


# --- history.txt


def text_history(tmp_path, text):
    path = tmp_path / "history.txt"
    path.write_bytes(text.encode())
    return load(path)


def test_history_txt(tmp_path):
    loaded = text_history(
        tmp_path,
        ":nemesis\t:info\t:start\tnil\n"
        '0\t:invoke\t:txn\t[[:w :x "a\\tb"] [:r :y nil]]\n'
        "1\t:invoke\t:txn\t[[:w :x 2]]\n"
        '0\t:ok\t:txn\t[[:w :x "a\\tb"] [:r :y nil]]\r\n'
        "\n"
        "1\t:fail\t:txn\t[[:w :x 2]]\tan error } that\tgoes on\n"
        'over "two lines [\n'
        "1\t:invoke\t:txn\t[[:w :x 3]]\n"
        "1\t:info\t:txn\t[[:w :x 3]]\t:timeout\n"
        "2\t:invoke\t:txn\t[[:w :x 4]]",
    )
    assert loaded.format == "jepsen-txt"
    assert [[(txn.status, *txn.ops) for txn in session] for session in loaded] == [
        [("committed", ("w", ":x", "a\tb"), ("r", ":y", None))],
        [("aborted", ("w", ":x", 2)), ("unknown", ("w", ":x", 3))],
        [("unknown", ("w", ":x", 4))],
    ]
    assert loaded.txn_line is not None
    assert loaded.txn_line.tolist() == [4, 6, 9, 10]


def test_history_txt_of_registers(tmp_path):
    loaded = text_history(
        tmp_path, "0\t:invoke\t:write\t[5 1]\n0\t:ok\t:write\t[5 1]\n1\t:invoke\t:read\t[5 nil]\n1\t:ok\t:read\t[5 1]\n"
    )
    assert ops(loaded) == [[("w", 5, 1)], [("r", 5, 1)]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t:ok\t:txn\t[[:w 1 2]]\nwhat is this\n", "line 2: not an operation; a line has 0, :ok, :txn and"),
        ("0\t:ok\t:txn\n", "line 1: an operation without a value"),
        ("0\t:ok\t:txn\t[]\n1\t:ok\t:txn\t[[:w 1 2]\n", "line 2: a closing bracket of the wrong kind"),
        ("0\t:ok\t:txn\t[]} {:type :ok :process 0 :value []\n", "two operations on a line"),
        ("0\t:ok\t:txn\t[[:w 1 [2]]]\n", r"line 1: a list can only be read: \[:w 1 \[2\]\]"),
        ("0\t:ok\t:txn\t[] 1\n", "line 1: a map with a key but no value"),
        (":nemesis\t:info\t:kill\tnil\n", "no client operations"),
    ],
)
def test_broken_history_txt(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        text_history(tmp_path, text)
    assert "\n" not in str(error.value)
    assert "column" not in str(error.value)
