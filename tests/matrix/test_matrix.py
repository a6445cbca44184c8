"""``isocheck matrix`` (matrix/cells.py, tables.py): cells run once, their outcomes are kept, and rows combine them."""

import json

import pytest
from click.testing import CliRunner

from plume_py.cli.main import cli
from plume_py.matrix.cells import Cell, Outcome, Target, cells
from plume_py.matrix.tables import html, markdown, rows, text


def matrix(*arguments):
    return CliRunner().invoke(cli, ["matrix", *map(str, arguments)])


def outcome(levels, violations=(), evidence=None, begin="2026-11-18T12:00:00Z"):
    result = {
        "transactions": 100,
        "levels": {name: {"ok": ok} for name, ok in levels.items()},
        "violations": list(violations),
        "run": {"database": "Toy", "version": "1", "begin": begin},
    }
    return Outcome(
        ("test",),
        result | ({"evidence": evidence} if evidence else {}),
        50,
        "",
        ("a/h-cycle-1.svg", "a/h-lost-update-1.svg", "a/h-tap-m-1.svg"),
    )


def row_of(*outcomes, isolation="repeatable read"):
    target = Target("mariadb", True)
    done = [(Cell(target, isolation, f"w{n}", ()), each) for n, each in enumerate(outcomes)]
    (found,) = rows(done)
    return found


def test_a_level_holds_if_every_run_keeps_it():
    found = row_of(outcome({"RC": True, "RA": True, "SI": True}), outcome({"RC": True, "RA": True, "SI": False}))
    assert found.held == ("RA",)
    assert (found.promise, found.verdict) == ("SI", "broken")


def test_a_violation_is_a_column_by_its_names_and_says_when():
    transactions = [{"end": 1795003203.5}, {"end": 1795003202.0}]
    lost = {"tap": "lost-update", "aliases": ["lost-update", "G-single"], "transactions": transactions, "steps": []}
    found = row_of(outcome({"RC": True, "SI": False}, [lost]))
    picture = ("w0", "a/h-lost-update-1.svg")
    assert found.anomalies == {"P4": picture, "G-single": picture}
    assert found.first_violation == pytest.approx(3.5)


@pytest.mark.parametrize(("relation", "seen"), [("RT", True), ("SO", False)])
def test_stale_is_what_only_real_time_forbids(relation, seen):
    steps = [{"relation": "WR"}, {"relation": "CM", "evidence": [{"relation": relation}]}]
    late = {"tap": "k", "aliases": ["G-single"], "order": "realtime", "transactions": [], "steps": steps}
    assert ("stale" in row_of(outcome({"SER": True}, [late])).anomalies) == seen


def test_evidence_adds_up_at_the_promised_level():
    half = {"tried": 20, "noticed": {"SI": 10}}
    all_of_them = {"tried": 20, "noticed": {"SI": 20}}
    assert row_of(outcome({"SI": True}, (), half), outcome({"SI": True}, (), all_of_them)).noticed == 75


def test_a_level_that_did_not_run_is_not_kept():
    found = row_of(Outcome(("test",), None, error="no <b>server</b> | here"))
    assert found.verdict == "not run"
    assert "&lt;b&gt;" in html([found]) and "<b>" not in html([found])
    assert "\\|" in markdown([found])
    assert "no <b>server" in text([found])


def test_passwords_are_shown_nowhere():
    target = Target("postgresql://me:secret@host/db", False)
    (cell,) = cells([target], ["serializable"], ["register"], ())
    assert "secret" in " ".join(cell.words)
    assert "secret" not in f"{cell.shown} {cell.slug} {target.title}"


def test_sqlite_keeps_what_it_promises_and_is_not_run_twice(tmp_path):
    few = ("--workload", "register", "--transactions", 5, "--sessions", 2, "--pause", 0, "--out", tmp_path / "m")
    few = ("--isolation", "serializable", *few)
    first = matrix("sqlite", *few, "--format", "json")
    assert first.exit_code == 0, first.output
    (row,) = json.loads(first.stdout)["rows"]
    assert (row["held"], row["verdict"], row["transactions"]) == (["SER"], "kept", 10)
    again = matrix("sqlite", *few)
    assert "done before" in again.stderr
    assert "kept" in again.stdout
    assert (tmp_path / "m" / "matrix.html").read_text().startswith("<!doctype html>")


def test_a_store_with_a_bug_is_reported_as_broken(tmp_path):
    few = ("--workload", "register", "--transactions", 30, "--pause", 1, "--out", tmp_path / "m")
    found = matrix("broken:?bug=lost-update", "--isolation", "serializable", *few)
    assert found.exit_code == 1, found.output
    assert "broken" in found.stdout


def test_an_unreachable_database_is_reported_once_in_one_line(tmp_path):
    found = matrix("postgresql://localhost:1/none", "--isolation", "serializable", "--out", tmp_path / "m")
    assert found.exit_code == 3
    assert "Traceback" not in found.output
    assert found.stderr.count("/4 ") == 1
