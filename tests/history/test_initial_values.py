"""Initial values that a format does not fix: keys of formats/viper.py, and values of formats/cobra.py."""

import json
import struct

import pytest

from plume_py import check, load
from plume_py.base.errors import InputError
from plume_py.checking.minimize import minimize
from plume_py.verify import judge_entry, read_claim


def viper(folder, *logs):
    folder.mkdir(exist_ok=True)
    for number, log in enumerate(logs):
        text = "".join(json.dumps(line if isinstance(line, dict) else {"value": line}) + "\n" for line in log)
        (folder / f"J{number}.log").write_text(text)
    return folder


def taps(path):
    result = check(load(path))
    return result.violations[0].tap if result.violations else ""


def test_the_only_unwritten_value_of_a_key_is_its_initial_value(tmp_path):
    path = viper(tmp_path / "v", [[["r", 5, 77], ["w", 5, 78]], [["r", "k", "a"]]], [[["r", 5, 78], ["r", 6, -3]]])
    assert check(load(path)).ok
    assert load(path).initial_values == {5: 77, 6: -3, "k": "a"}


def test_several_unwritten_values_are_thin_air(tmp_path):
    assert taps(viper(tmp_path / "v", [[["r", 5, 77]]], [[["r", 5, 76]]])) == "a"
    assert taps(viper(tmp_path / "v", [[["r", 5, 0]]], [[["r", 5, 76]]])) == "a"


def test_reads_of_aborted_transactions_determine_no_initial_value(tmp_path):
    path = viper(tmp_path / "v", [[["r", 5, 77]]], [[["r", 5, 76], ["w", 6, 1, False]]])
    assert check(load(path)).ok
    first = {"value": [["w", 5, 1]], "isInitial": True}
    assert check(load(viper(tmp_path / "w", [first, [["w", 5, 1]]], [[["r", 5, 1], ["w", 6, 1, False]]]))).ok


@pytest.mark.parametrize(
    "initial",
    [
        [["w", 5, 1, True], ["w", 6, 1, True]],
        [["r", 5, 1], ["w", 6, 1]],
        [["range", "nil", "nil", [{"id": 5, "val": 1}, {"id": 6, "val": 1}]]],
    ],
)
def test_a_marked_transaction_is_the_initial_state(tmp_path, initial):
    first = {"value": initial, "isInitial": True}
    path = viper(tmp_path / "v", [first], [[["w", 5, 2, True]], [["r", 5, 1, False]]], [[["r", 7, 0]]])
    result = check(load(path))
    assert [level for level, verdict in result.levels.items() if verdict.ok] == ["CI", "RC"]
    assert result.violations[0].tap == "k"


def test_other_values_than_the_stated_one_are_thin_air(tmp_path):
    first = {"value": [["w", 5, 1]], "isInitial": True}
    assert taps(viper(tmp_path / "v", [first], [[["r", 5, 3]]])) == "a"
    assert taps(viper(tmp_path / "v", [{**first, "isInitial": False}], [[["r", 5, 1]]])) == ""


@pytest.mark.parametrize(
    ("logs", "problem"),
    [
        ([[[["r", 1, 1]], {"value": [], "isInitial": True}]], "line 2: an initial transaction behind another one"),
        ([[{"value": [["w", 5, 1]], "isInitial": True}, [["w", 5, 1]], [["r", 5, 1]]]], "a transaction wrote it too"),
        (
            [[{"value": [["w", 5, 1]], "isInitial": True}, {"value": [["w", 5, 2]], "isInitial": True}]],
            "second initial",
        ),
        ([[{"value": [["range", 1, 2, [3]]], "isInitial": True}]], "not a range"),
        ([[{"value": [], "isInitial": 1}]], "line 1"),
        ([[[["range", 1, 2, []]]]], "not supported"),
    ],
)
def test_malformed_viper_logs_are_rejected(tmp_path, logs, problem):
    with pytest.raises(InputError, match=problem):
        load(viper(tmp_path / "v", *logs))


def test_violations_of_viper_logs_are_verified_and_minimized(tmp_path):
    from plume_py.report.json import document

    path = viper(tmp_path / "v", [[["w", 5, 2], ["w", 9, 1]], [["r", 5, 77], ["r", 8, 4]]], [[["r", 9, 1]]])
    history = load(path)
    result = check(history)
    assert result.violations[0].tap == "k"
    (entry,) = read_claim(document([result]).encode())
    assert judge_entry(history, entry).refuted == []
    small = minimize(history, "RA")
    assert small.tap == "k" and small.history.initial_values == {5: 77}


UNIVERSAL = 0xABDDEFEE


def cobra(folder, *logs):
    """``logs``: transactions of (kind, write id, key, hash)."""
    folder.mkdir(exist_ok=True)
    for number, log in enumerate(logs):
        content = b""
        for t, ops in enumerate(log):
            id = number * 100 + t
            content += b"S" + struct.pack(">q", id)
            for kind, *fields in ops:
                content += kind.encode() + (struct.pack(">q", 1) if kind == "R" else b"") + struct.pack(">3q", *fields)
            content += b"C" + struct.pack(">q", id)
        (folder / f"T{number}.log").write_bytes(content)
    return folder


def test_writes_with_the_universal_id_differ_by_their_hash(tmp_path):
    log = [[("W", UNIVERSAL, 1, -8)], [("W", UNIVERSAL, 1, 9)], [("W", 9, 1, 9)]]
    reads = [[("R", UNIVERSAL, 1, -8)], [("R", UNIVERSAL, 1, 9)], [("R", 9, 1, 3)], [("R", 0xDEADBEEF, 2, 5)]]
    history = load(cobra(tmp_path / "c", log, reads))
    assert check(history).ok
    assert [txn.ops[0].value for txn in list(history)[1]] == ["0xabddefee:18446744073709551608", "0xabddefee:9", 9, 0]


def test_the_same_universal_write_of_two_transactions_is_ambiguous(tmp_path):
    log = [[("W", UNIVERSAL, 1, 8)], [("W", UNIVERSAL, 1, 8)], [("R", UNIVERSAL, 1, 8)]]
    with pytest.raises(InputError, match="ambiguous read"):
        load(cobra(tmp_path / "c", log))


def test_a_universal_read_without_a_write_is_thin_air(tmp_path):
    assert taps(cobra(tmp_path / "c", [[("W", 8, 1, 7)]], [[("R", UNIVERSAL, 1, 8)]])) == "a"
