"""Tests of verify/violations.py: single violations of lists, true and false, and violations of many transactions."""

import json

import pytest
from test_verify import built, run
from test_verify_lists import START, append, claim_of, committed, read, refuted, showing, shown, step

from plume_py.verify import judge_entry, violations
from plume_py.verify.claims import HistoryClaim


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def test_patterns_of_single_lists():
    split = committed(append("x", 1, 2), append("x", 3), read("x", 1, 3, 2))
    wr = step("T1", "WR", "T3", "x", value=2)
    for proof in (("T3",), ("T1 T3",), ("T1 T3", wr)):
        assert not refuted(split, "torn-append", *proof), proof
    for proof in (
        ("T1",),
        ("T2 T3",),
        ("T1 T2 T3",),
        ("T2 T3", step("T2", "WR", "T3", "x")),
        ("T1 T3", step("T3", "WR", "T1", "x")),
        ("T1 T3", step("nobody", "WR", "T3", "x")),
        ("T1 T3", step("T1", "WW", "T3", "x")),
        ("T1 T3", wr, wr),
    ):
        assert refuted(split, "torn-append", *proof), proof
    assert refuted(split, "torn-append", "T3", keys=["y"])
    assert refuted(split, "torn-append", "T3", level="RA")
    for tap in (*"abcdef", "duplicate-element", "incompatible-order"):
        assert refuted(split, tap, "T3"), tap


@pytest.mark.parametrize(
    ("tap", "reader"),
    [
        ("a", read("x", 9, 1, 2)),
        ("c", read("x", 1, 2, 4) + append("x", 4)),
        ("c", append("x", 4) + read("x", 1, 5, 2, 4) + append("x", 5)),
        ("d", append("x", 4) + read("x", 1, 2)),
        ("d", append("x", 4) + read("x")),
        ("d", append("x", 4) + read("x", 4, 1, 2)),
        ("e", append("x", 4, 5) + read("x", 1, 2, 4)),
        ("e", append("x", 4, 5) + read("x", 4, 1, 2, 5)),
        ("e", append("x", 4) + read("x", 1, 2, 4, 4)),
        ("f", read("x", 1)),
        ("f", append("x", 4) + read("x", 1, 4)),
        ("duplicate-element", read("x", 1, 2, 1, 2)),
        ("torn-append", read("x", 2)),
        ("torn-append", read("x", 2, 1)),
        ("torn-append", append("x", 4) + read("x", 2, 4)),
    ],
)
def test_each_flaw_of_a_list_proves_one_pattern(tap, reader):
    history = committed(append("x", 1, 2), reader)
    names = (*"abcdef", "duplicate-element", "torn-append", "incompatible-order")
    assert [name for name in names if not refuted(history, name, "T2")] == [tap]
    assert showing(history, "T1 T2") == set()


def test_an_aborted_element_is_found_at_any_position():
    history = built([[("aborted", append("x", 1))], [("committed", append("x", 2))], [("committed", read("x", 1, 2))]])
    assert not refuted(history, "b", "T3")
    assert not refuted(history, "b", "T1 T3", step("T1", "WR", "T3", "x"))
    assert refuted(history, "b", "T2 T3", step("T2", "WR", "T3", "x"))


def test_lists_that_are_no_prefixes_of_each_other_prove_incompatible_orders():
    history = committed(append("x", 1), append("x", 2), read("x", 1, 2), read("x", 2, 1), read("x", 1))
    assert not refuted(history, "incompatible-order", "T3 T4")
    assert refuted(history, "incompatible-order", "T3 T5")
    # an own append tells as much: both come right after the initial state
    history = committed(append("x", 1) + read("x", 1), append("x", 2) + read("x", 2))
    assert not refuted(history, "incompatible-order", "T1 T2")
    # what is wrong by itself tells no order
    history = committed(append("x", 1, 2), append("x", 3), read("x", 1, 2, 3), read("x", 2, 3))
    assert refuted(history, "incompatible-order", "T3 T4")


def ww(a, b, x, reader):
    return step(a, "WW", b, x, reader=reader)


def test_version_order_steps_from_shown_and_missing_appends():
    history = committed(
        append("x", 1) + append("y", 1), append("x", 2) + append("y", 2), read("x", 1, 2), read("y", 2), read("x")
    )
    shown_first, never_shown = ww("T1", "T2", "x", "T3"), ww("T2", "T1", "y", "T4")
    assert not refuted(history, "version-order-cycle", "T1 T2 T3 T4", shown_first, never_shown)
    for false in (
        ww("T1", "T2", "y", "T4"),  # the other way round
        ww("T2", "T1", "x", "T3"),
        ww("T2", "T1", "y", "T3"),  # who did not read it
        ww("T2", "T1", "x", "T5"),  # the empty list shows nothing
        ww("T2", "T3", "y", "T4"),  # no writer
        step("T2", "WW", "T1", "y"),
    ):
        assert refuted(history, "version-order-cycle", "T1 T2 T3 T4 T5", shown_first, false), false


def test_an_own_append_follows_the_list_that_it_extends():
    history = committed(
        append("x", 1) + append("y", 1), append("x", 2) + read("x", 1, 2) + append("y", 2), read("y", 2)
    )
    saw, unseen = step("T1", "WR", "T2", "x", value=1), ww("T2", "T1", "y", "T3")
    assert not refuted(history, "version-order-cycle", "T1 T2 T3", ww("T1", "T2", "x", "T2"), unseen)
    assert not refuted(history, "version-order-cycle", "T1 T2 T3", saw, unseen)
    assert refuted(history, "version-order-cycle", "T1 T2 T3", step("T1", "WR", "T2", "x", value=2), unseen)


def test_a_value_appended_twice_and_never_read():
    """It stands in no list, so it must not be taken for the other's where a reader's later appends are added."""
    history = committed(append("x", 1) + read("x", 1) + append("x", 5), append("x", 5, 6), append("x", 7))
    back = step("T2", "WR", "T1", "x")
    assert "-WR->" in refuted(history, "version-order-cycle", "T1 T2 T3", ww("T1", "T2", "x", "T1"), back)[0]
    assert "-WW->" in refuted(history, "version-order-cycle", "T1 T2 T3", ww("T2", "T3", "x", "T1"), back)[0]
    assert "-WW->" in refuted(history, "version-order-cycle", "T1 T2 T3", ww("T2", "T1", "x", "T1"), back)[0]
    first = [("committed", append("x", 5)), ("committed", append("x", 1) + read("x", 1) + append("x", 5))]
    assert showing(built([first]), "T1 T2") == set()
    before = step("T1", "SO", "T2")
    assert not refuted(built([first]), "version-order-cycle", "T1 T2", before, ww("T2", "T1", "x", "T2"))


def test_a_torn_list_implies_no_order():
    history = committed(append("x", 1, 2), append("x", 3), read("x", 1, 3))
    assert refuted(history, "version-order-cycle", "T1 T2 T3", ww("T1", "T2", "x", "T3"), ww("T2", "T1", "x", "T3"))
    cut = committed(append("x", 1), append("x", 2, 3), append("x", 4), read("x", 1, 2))  # TAP-f does
    assert "chain" not in refuted(cut, "version-order-cycle", "T1 T2 T4", ww("T1", "T2", "x", "T4"))[0]


def test_a_weak_cycle_with_a_missing_append():
    history = built([[("committed", append("x", 1)), ("committed", read("x", 2))], [("committed", append("x", 2))]])
    forced = step("T1", "CM", "T3", "x", reader="T2", evidence=[step("T1", "SO", "T2")])
    unseen = ww("T3", "T1", "x", "T2")
    assert not refuted(history, "l", "T1 T2 T3", unseen, forced)
    assert refuted(history, "k", "T1 T2 T3", unseen, forced)
    assert refuted(history, "l", "T1 T2 T3", ww("T1", "T3", "x", "T2"), forced)


def test_fractured_reads_behind_an_own_append():
    history = committed(append("z", 2) + read("z", 1, 2) + read("y"), append("z", 1) + append("y", 1))
    saw = step("T2", "WR", "T1", "z", value=1)
    forced = step("T2", "CM", START, "y", reader="T1", evidence=[saw])
    assert not refuted(history, "h", "T1 T2", forced, keys=["z", "y"])
    assert not refuted(history, "k", "T1 T2", forced, keys=["z", "y"])
    late = committed(read("y") + append("z", 2) + read("z", 1, 2), append("z", 1) + append("y", 1))
    assert refuted(late, "h", "T1 T2", forced, keys=["z", "y"])  # RC: it saw T2 only afterwards
    assert not refuted(late, "k", "T1 T2", forced, keys=["z", "y"])


def test_two_sources_behind_own_appends():
    history = committed(append("x", 1), read("x") + append("x", 2) + read("x", 1, 2))
    initial, other = step(START, "WR", "T2", "x", value=None), step("T1", "WR", "T2", "x", value=1)
    assert not refuted(history, "j", "T1 T2", initial, other)
    assert refuted(history, "j", "T1 T2", other, other)
    assert refuted(history, "j", "T1 T2", initial, step("T1", "WR", "T2", "x", value=2))
    same = committed(append("x", 1), read("x", 1) + append("x", 2) + read("x", 1, 2))
    assert refuted(same, "j", "T1 T2", initial, other)


# Many transactions


def test_a_claim_of_many_transactions_is_decided():
    """Those that have nothing to do with each other are tried apart; where that does not help, it is said."""
    many = [append(f"k{i}", 1) for i in range(1500)]
    history = committed(*many, append("x", 1) + read("y"), append("y", 1) + read("x"))
    everyone = " ".join(f"T{i + 1}" for i in range(1502))
    assert not refuted(history, "cycle", everyone, level="SER")
    assert refuted(history, "cycle", everyone, level="SI")
    together = built([[("committed", [("w", "x", i + 1)])] for i in range(30)] + [[("committed", [("r", "x", 99)])]])
    claim = claim_of(shown(together, *(f"T{i + 1}" for i in range(30))), "cycle", (), ["x"], "SER")
    entry = HistoryClaim(history="h", levels={}, violations=[claim])
    assert judge_entry(together, entry).refuted  # any order will do


def test_a_violation_of_too_many_transactions_is_undecided(tmp_path, monkeypatch):
    """All of them write x, so that no order can be left out; with less to look at it is proved."""
    sessions = [[{"ops": [["r", "y", 0], ["w", "x", 1]]}], [{"ops": [["r", "x", 0], ["w", "y", 1]]}]]
    sessions += [[{"ops": [["w", "x", i]]}] for i in range(2, 32)]
    path, report = tmp_path / "h.json", tmp_path / "report.json"
    path.write_text(json.dumps({"initial": 0, "sessions": sessions}))
    result = json.loads(run("check", path, "--level", "SER", "--format", "json")[1])
    (violation,) = result["results"][0]["violations"]
    more = [{"id": f"T{i + 1}", "session": i, "place": f"sessions[{i}][0]"} for i in range(2, 32)]
    violation["transactions"] += [txn | {"ops": [["w", "x", i]]} for i, txn in enumerate(more, 2)]
    report.write_text(json.dumps(result))
    monkeypatch.setattr(violations, "ORDERS", 2_000)
    assert run("verify", path, report) == (
        3,
        "undecided: violation 1 (write-skew): its 32 transactions have too many orders to try them all\n",
    )
    violation["steps"], violation["transactions"] = [], violation["transactions"][2:]
    report.write_text(json.dumps(result))
    assert run("verify", path, report) == (
        1,
        "refuted: violation 1 (write-skew): its transactions have a commit order that keeps SER\n",
    )
