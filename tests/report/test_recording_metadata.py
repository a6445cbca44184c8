"""``report.recording_metadata``: the database, the times and the SQL of a recorded history in reports."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from collecting import gather, lines

from plume_py.api import check, page, text
from plume_py.cli.main import cli
from plume_py.collect.adapter import Setup
from plume_py.collect.registry import open_adapter

ABOUT = {
    "database": "SomeDB",
    "version": "1.2",
    "settings": {"a": "b"},
    "isolation": ["repeatable read"],
    "workload": {"workload": "register", "seed": 7},
    "node": "<b>node",
    "begin": "2026-01-01T00:00:00Z",
    "sql": {
        "begin": "BEGIN ISOLATION LEVEL :isolation",
        "r": "SELECT v FROM t WHERE k = :key",
        "w": "UPDATE t SET v = :value WHERE k = :key",
    },
}


def txn(id: str, session: int, start: int, *ops: list) -> dict:
    """Its times are milliseconds."""
    told = {"isolation": "repeatable read", "start": 1_700_000_000_000 + start, "end": 1_700_000_000_500 + start}
    return {"id": id, "session": session, "ops": list(ops), "status": "committed", **told}


def lost_update(path: Path, about: object = ABOUT) -> str:
    recorded = [
        {"initial": 0, "ticks_per_second": 1000, "collected": about},
        txn("a", 0, 0, ["r", "it's", 0], ["r", "other", 0], ["w", "it's", 1]),
        txn("b", 1, 250, ["r", "it's", 0], ["w", "it's", 2]),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in recorded))
    return str(path)


def test_text_shows_the_run_the_times_and_the_sql(tmp_path) -> None:
    told = text(check(lost_update(tmp_path / "h.jsonl"), "SI"))
    for words in (
        "database  SomeDB",
        "version   1.2",
        "seed=7",
        "a=b",
        "isolation repeatable read",
        "node      <b>node",
    ):
        assert words in told, words
    assert "2023-11-14 22:13:20.000000 UTC to 2023-11-14 22:13:20.500000 UTC" in told
    sent = [line.strip() for line in told.splitlines() if line.strip().endswith((";", "-- 0"))]
    assert sent[:5] == [
        "BEGIN ISOLATION LEVEL REPEATABLE READ;",
        "SELECT v FROM t WHERE k = 'it''s';  -- 0",
        "SELECT v FROM t WHERE k = 'other';  -- 0",
        "UPDATE t SET v = 1 WHERE k = 'it''s';",
        "COMMIT;",
    ]


def test_reports_without_violations_stay_short(tmp_path) -> None:
    assert "SomeDB" not in text(check(lost_update(tmp_path / "h.jsonl"), "RC"))


def test_json_has_the_metadata_by_name(tmp_path) -> None:
    path = lost_update(tmp_path / "h.jsonl")
    ran = CliRunner().invoke(cli, ["check", path, "--level", "SI", "--format", "jsonl"])
    result = json.loads(ran.output)
    assert result["run"]["database"] == "SomeDB"
    first = result["violations"][0]["transactions"][0]
    assert (first["start"], first["end"]) == (1_700_000_000, 1_700_000_000.5)
    assert first["sql"][-1] == "COMMIT;"


def test_page_places_transactions_by_their_times(tmp_path, browser) -> None:
    path = tmp_path / "page.html"
    page(check(lost_update(tmp_path / "h.jsonl"), "SI"), path)
    browser.open(path)
    assert "SomeDB" in browser.run("document.querySelector('.run').textContent")
    assert "By the clock: 750 ms" in browser.run("document.querySelector('.timeline').textContent")
    lefts = browser.run("[...document.querySelectorAll('.clock .bar-txn')].map((b) => b.style.left)")
    assert lefts[0] == "0%" and lefts[1].startswith("33.3")
    assert "UPDATE t SET v = 2 WHERE k = 'it''s';" in browser.run(
        "[...document.querySelectorAll('.sql')].map((e) => e.textContent).join('')"
    )
    assert "in full" in browser.run("document.querySelector('.transactions summary').textContent")
    assert browser.complaints() == []


@pytest.mark.parametrize(
    "about", [None, 3, [], {}, {"sql": 3}, {"sql": {"r": 3}}, {"database": {"x": [1, {}]}, "url": 1}]
)
def test_odd_headers_do_no_harm(tmp_path, about) -> None:
    result = check(lost_update(tmp_path / "h.jsonl", about), "SI")
    assert result.ok is False
    assert all(not t.sql for v in result.violations for t in v.transactions)


@pytest.mark.parametrize("start", [-(2**62), 2**62])
def test_odd_times_do_no_harm(tmp_path, start) -> None:
    path = tmp_path / "h.jsonl"
    lost_update(path)
    odd = (
        path.read_text().replace('"start": 1700000000000', f'"start": {start}').replace('_second": 1000', '_second": 1')
    )
    path.write_text(odd.replace('"end": 1700000000500', f'"end": {start + 1}'))
    result = check(path, "SI")
    assert text(result) and page(result)


def test_times_recorded_in_seconds_are_shown_unchanged(tmp_path) -> None:
    """As ``collect`` did before it counted nanoseconds."""
    path = tmp_path / "h.jsonl"
    lost_update(path)
    seconds = re.sub(r": 1700000000(\d\d\d)", r": 1700000000.\1", path.read_text())
    path.write_text(seconds.replace('"ticks_per_second": 1000, ', ""))
    assert "2023-11-14 22:13:20.250000 UTC to 2023-11-14 22:13:20.750000 UTC" in text(check(path, "SI"))


def test_collect_records_the_metadata(tmp_path) -> None:
    out = tmp_path / "h.jsonl"
    gather(f"sqlite:///{tmp_path}/db", out, transactions=3)
    about = lines(out)[0]["collected"]
    assert about["node"] and about["workload"]["seed"] == 0
    assert about["sql"]["begin"] == "BEGIN" and about["sql"]["r"].startswith("SELECT v FROM")


def test_sql_of_list_histories_appends(tmp_path) -> None:
    told = open_adapter(Setup(f"sqlite:///{tmp_path}/db", lists=True)).statements()
    assert told["append"].endswith("SET v = v || :value WHERE k = :key") and "w" not in told


def test_a_history_that_is_not_kept_is_not_named() -> None:
    ran = CliRunner().invoke(cli, ["test", "--sessions", "2", "--transactions", "3"])
    assert ran.exit_code == 0, ran.output
    assert "isocheck-" not in ran.output and "SQLite" in ran.output
