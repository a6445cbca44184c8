"""Predictions on real databases (package confirm), on private servers; without a server, its tests are skipped."""

import json
import re
import threading
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from paths import ROOT
from program import wait_until

from plume_py import HistoryBuilder, check, load
from plume_py.base.errors import InputError
from plume_py.cli.main import cli
from plume_py.collect.adapter import AbortedError, Setup
from plume_py.collect.registry import open_adapter
from plume_py.levels.databases import POSTGRESQL
from plume_py.reasoning.predict.confirm.concurrency_control import concurrency_control
from plume_py.reasoning.predict.confirm.confirmation import ConfirmOptions, confirm, fitting_isolation
from plume_py.reasoning.predict.confirm.script import rest_of, script
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.program import SeededProgram, observed_run, program

ROW = '{"initial":0,"sessions":[%s]}'


def history(*sessions, initial=0):
    builder = HistoryBuilder(initial)
    for s, ops in enumerate(sessions):
        builder.add(s, ops, id=f"T{s + 1}")
    return builder.build(init_txn="none")


LOST_UPDATE = history([("r", "x", 0), ("w", "x", 1)], [("r", "x", 0), ("w", "x", 2)])
WRITE_SKEW = history(
    [("r", "x", 0), ("r", "y", 0), ("w", "x", 1)],
    [("r", "x", 0), ("r", "y", 0), ("w", "y", 2)],
)
FRACTURED = history([("w", "x", 1), ("w", "y", 2)], [("r", "x", 0), ("r", "y", 2)])
APPENDS = history([("r", "x", []), ("append", "x", 1)], [("r", "x", []), ("append", "x", 2)], initial=[])


@contextmanager
def no_thread_is_left():
    """All threads that began meanwhile end; the guard of connections does so after a second without a wait."""
    before = set(threading.enumerate())
    yield
    wait_until(lambda: before.issuperset(threading.enumerate()), note=lambda: str(threading.enumerate()))


def tried(url, what, isolation, tmp_path, target="SER", attempts=3, workload=None, settings=None):
    """What comes of it; nothing is left behind."""
    made = script(what) if workload is None else what
    adapter = open_adapter(Setup(url, "t_confirm", made.lists, 10.0, settings or {}))
    with no_thread_is_left():
        found = confirm(adapter, made, ConfirmOptions(isolation, target, str(tmp_path), attempts), workload)
    with pytest.raises(Exception, match=r"exist|no such table"):
        open_adapter(Setup(url, "t_confirm", made.lists)).contents()
    return found


# --- PostgreSQL


@pytest.mark.parametrize("what", [LOST_UPDATE, WRITE_SKEW, FRACTURED], ids=["lost update", "write skew", "fractured"])
def test_postgresql_read_committed_confirms_the_anomaly(postgresql, tmp_path, what) -> None:
    found = tried(postgresql.url, what, "read committed", tmp_path)
    assert found.verdict == "confirmed" and found.as_predicted and len(found.attempts) == 1
    happened = load(found.attempt.path)
    assert check(happened, "RC").ok and check(happened, "SER").ok is False
    assert found.attempt.result.violations[0].transactions[0].sql


def test_postgresql_repeatable_read_refuses_a_lost_update(postgresql, tmp_path) -> None:
    found = tried(postgresql.url, LOST_UPDATE, "repeatable read", tmp_path)
    assert found.verdict == "refused" and not found.fits
    refusal = found.attempt.played.refusals[0]
    assert refusal.statement.startswith("w(x,") and "40001" in refusal.error
    assert tried(postgresql.url, WRITE_SKEW, "repeatable read", tmp_path).verdict == "confirmed"


def test_postgresql_repeatable_read_shows_one_snapshot(postgresql, tmp_path) -> None:
    found = tried(postgresql.url, FRACTURED, "repeatable read", tmp_path)
    assert found.verdict == "diverged" and not found.fits
    assert any("T2 should read" in line for line in found.attempt.deviations)


def test_postgresql_serializable_refuses_a_write_skew(postgresql, tmp_path) -> None:
    found = tried(postgresql.url, WRITE_SKEW, "serializable", tmp_path)
    assert found.verdict == "refused" and "40001" in found.attempt.played.refusals[0].error


def test_postgresql_confirms_an_anomaly_of_lists(postgresql, tmp_path) -> None:
    assert tried(postgresql.url, APPENDS, "read committed", tmp_path).verdict == "confirmed"


def test_a_prediction_about_lists_is_confirmed(postgresql, tmp_path) -> None:
    file, out = tmp_path / "h.json", str(tmp_path / "p.json")
    file.write_text(
        '{"initial":[],"sessions":[[{"id":"a","ops":[["r","x",[]],["append","x",1]]}],'
        '[{"id":"b","ops":[["r","x",[1]],["append","x",2]]}]]}'
    )
    assert isocheck("predict", str(file), "--boundary", "relaxed", "--out", out).exit_code == 1
    done = isocheck("confirm", out, postgresql.url)
    assert done.exit_code == 1 and "as predicted" in done.output and "v ||" in done.output


# --- MariaDB


def test_mariadb_repeatable_read_loses_updates_without_snapshot_isolation_setting(mariadb, tmp_path) -> None:
    assert tried(mariadb.url, LOST_UPDATE, "repeatable read", tmp_path).verdict == "confirmed"
    found = tried(mariadb.url, FRACTURED, "repeatable read", tmp_path)
    assert found.verdict == "diverged"
    assert tried(mariadb.url, FRACTURED, "read committed", tmp_path).verdict == "confirmed"
    settings = {"innodb_snapshot_isolation": "ON"}
    found = tried(mariadb.url, LOST_UPDATE, "repeatable read", tmp_path, settings=settings)
    assert found.verdict == "refused" and "1020" in found.attempt.played.refusals[0].error


def test_mariadb_serializable_ends_in_a_deadlock(mariadb, tmp_path) -> None:
    """Both have locked what they read, and both wait for the other: left waiting, until the server ends one."""
    found = tried(mariadb.url, LOST_UPDATE, "serializable", tmp_path)
    # 1205 where the machine is so slow that the first one's patience ends before the second one waits
    assert found.verdict == "refused" and re.search("1213|1205", found.attempt.played.refusals[0].error)
    assert found.attempt.played.waited


# --- SQLite


def test_sqlite_refuses_a_lost_update(tmp_path) -> None:
    found = tried(f"sqlite:///{tmp_path / 'test.db'}", LOST_UPDATE, "serializable", tmp_path)
    assert found.verdict == "refused" and "locked" in found.attempt.played.refusals[0].error


def test_a_serial_run_confirms_nothing(tmp_path) -> None:
    serial = history([("w", "x", 1)], [("r", "x", 1), ("w", "x", 2)])
    found = tried(f"sqlite:///{tmp_path / 'test.db'}", serial, "serializable", tmp_path)
    assert found.verdict == "diverged" and found.fits and found.as_predicted


# --- Programs


def predictions(workload, level, boundary, count=3):
    observed = observed_run(workload)
    engine = concurrency_control(POSTGRESQL, "read committed")
    for prediction in predict(observed, level, boundary=boundary, count=count, engine=engine).predictions:
        keys = [observed.key(key) for key in range(len(observed.key_code))]
        yield script(prediction.history, rest_of(observed, prediction.run), keys=keys)


@pytest.mark.parametrize("boundary", ["strict", "relaxed"])
def test_predictions_as_postgresql_runs_them_are_confirmed_there(postgresql, tmp_path, boundary) -> None:
    confirmed = 0
    for seed in range(3):
        workload = SeededProgram(program("smallbank"), seed)
        for made in predictions(workload, "RC", boundary):
            found = tried(postgresql.url, made, "read committed", tmp_path, workload=workload)
            assert found.fits
            assert found.verdict == "confirmed" or found.attempt.played.gave_up
            confirmed += found.verdict == "confirmed"
    assert confirmed


def test_a_program_may_access_keys_that_are_not_in_the_table(tmp_path) -> None:
    """A second vote is for somebody for whom nobody had voted."""
    done = isocheck("predict", "--program", "voter", "--level", "RC", "--boundary", "relaxed", "--format", "json",
                    "--as", "postgresql", "--confirm", "broken:?bug=stale-reads")  # fmt: skip
    (found,) = json.loads(done.stdout)["confirmed"]
    assert not any("not in the table" in line for line in found["deviations"])


# --- Trouble


def test_a_server_without_free_connections_is_a_one_line_error(tmp_path, monkeypatch) -> None:
    from plume_py.collect.adapters.sqlite import SqliteAdapter

    def full(self):
        raise OSError("too many connections")

    monkeypatch.setattr(SqliteAdapter, "connect", full)
    adapter = SqliteAdapter(Setup(f"sqlite:///{tmp_path / 'test.db'}"))
    with pytest.raises(InputError, match="too many connections"):
        confirm(adapter, script(LOST_UPDATE), ConfirmOptions("serializable", "SER", str(tmp_path)))


def test_an_empty_history_is_a_one_line_error() -> None:
    with pytest.raises(InputError, match="0 transactions to send"):
        script(HistoryBuilder(0).build())


def test_the_end_of_the_server_is_a_one_line_error(tmp_path, monkeypatch) -> None:
    from plume_py.collect.adapters.sql import SqlConnection
    from plume_py.collect.adapters.sqlite import SqliteAdapter

    def gone(self, key):
        raise OSError("the connection is gone")

    monkeypatch.setattr(SqlConnection, "read", gone)
    adapter = SqliteAdapter(Setup(f"sqlite:///{tmp_path / 'test.db'}"))
    with (
        no_thread_is_left(),
        pytest.raises(InputError, match="could not be brought to its end: the connection is gone"),
    ):
        confirm(adapter, script(LOST_UPDATE), ConfirmOptions("serializable", "SER", str(tmp_path)))


def test_a_refused_begin_is_a_refusal(tmp_path, monkeypatch) -> None:
    from plume_py.collect.adapters import sqlite

    def refuse(self, isolation):
        raise AbortedError("too many")

    monkeypatch.setattr(sqlite._SqliteConnection, "begin", refuse)
    adapter = sqlite.SqliteAdapter(Setup(f"sqlite:///{tmp_path / 'test.db'}"))
    found = confirm(adapter, script(LOST_UPDATE), ConfirmOptions("serializable", "SER", str(tmp_path), 1))
    assert found.verdict == "refused" and found.attempt.played.refusals[0].statement == "BEGIN"


# --- Command line


def isocheck(*arguments):
    return CliRunner().invoke(cli, list(arguments))


SKEW = '[{"id":"a","ops":[["r","x",0],["w","x",1]]}],[{"id":"b","ops":[["r","x",0],["w","x",2]]}]'


def test_any_history_can_be_confirmed(tmp_path) -> None:
    file = tmp_path / "h.json"
    file.write_text(ROW % SKEW)
    kept = tmp_path / "happened.jsonl"
    done = isocheck("confirm", str(file), "--managed", "sqlite", "--history", str(kept), "--format", "json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["verdict"] == "refused" and data["fits"] is False and data["refusals"][0]["error"]
    assert check(load(kept), "SER").ok


def test_predict_can_confirm_its_predictions(tmp_path) -> None:
    file = tmp_path / "h.json"
    file.write_text(ROW % SKEW.replace('"r","x",0],["w","x",2', '"r","x",1],["w","x",2'))
    done = isocheck("predict", str(file), "--boundary", "relaxed", "--confirm", "sqlite")
    assert done.exit_code == 0 and "refused: the database refuses" in done.output
    assert isocheck("predict", str(file), "--isolation", "SER").exit_code == 2


def test_a_store_with_a_bug_confirms_and_one_without_does_not(tmp_path) -> None:
    file = tmp_path / "h.json"
    file.write_text(ROW % SKEW)
    pictures = tmp_path / "pictures"
    done = isocheck("confirm", str(file), "broken:?bug=lost-update", "--out", str(pictures))
    assert done.exit_code == 1 and "confirmed: the database breaks SER, as predicted" in done.output
    assert (pictures / "h-lost-update-1.dot").exists()
    done = isocheck("confirm", str(file), "broken:?bug=none")
    assert done.exit_code == 0 and "refused: the database refuses COMMIT of" in done.output


def recorded(tmp_path, isolation, database="PostgreSQL"):
    """Two deposits, one after the other, as ``collect`` records them."""
    lines = [
        {"initial": 0, "ticks_per_second": 1, "collected": {"database": database, "isolation": [isolation]}},
        {"id": "a", "session": 0, "ops": [["r", "x", 0], ["w", "x", 1]]},
        {"id": "b", "session": 1, "ops": [["r", "x", 1], ["w", "x", 2]]},
    ]
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def test_the_recorded_database_determines_how_runs_are_predicted(tmp_path) -> None:
    def asked(isolation, *options, database="PostgreSQL"):
        file = recorded(tmp_path, isolation, database)
        done = isocheck("predict", file, "--boundary", "relaxed", "--format", "json", *options)
        data = json.loads(done.stdout)
        return data["level"], data["predicted"], bool(data["notes"])

    assert asked("read committed") == ("RC", True, True)
    assert asked("repeatable read") == ("SI", False, True)
    assert asked("repeatable read", database="MariaDB") == ("PC", True, True)
    assert asked("serializable") == ("TCC", True, True)
    assert asked("read committed", "--level", "PC", "--as", "none") == ("PC", True, False)
    assert asked("serializable", database="something") == ("TCC", True, False)


def test_from_a_recorded_run_to_a_confirmed_lost_update(tmp_path, postgresql) -> None:
    out = str(tmp_path / "predicted.json")
    done = isocheck("predict", recorded(tmp_path, "read committed"), "--boundary", "relaxed", "--out", out)
    assert done.exit_code == 1
    done = isocheck("confirm", out, postgresql.url)
    assert done.exit_code == 1 and "LostUpdate" in done.output and "BEGIN ISOLATION LEVEL READ COMMITTED" in done.output
    done = isocheck("confirm", out, postgresql.url, "--isolation", "repeatable read")
    assert done.exit_code == 0 and "40001" in done.output


def test_user_code_runs_only_if_requested(tmp_path) -> None:
    theatre, out = f"{ROOT / 'docs/examples/theatre.py'}:Theatre", str(tmp_path / "p.json")
    isocheck("predict", "--program", theatre, "--seed", "1", "--boundary", "relaxed", "--out", out)
    done = isocheck("confirm", out, "broken:?bug=lost-update")
    assert done.exit_code == 1 and "only what was recorded is sent" in done.output
    done = isocheck("confirm", out, "broken:?bug=lost-update", "--program", theatre)
    assert done.exit_code == 1 and "assertion failed: 2 tickets sold" in done.output


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ('{"target":"XX"}', "no target"),
        ('{"level":"XX"}', "unknown level 'XX'"),
        ('{"rest":{"a":[["q","x",1]]}}', "not an operation"),
        ('{"rest":{"a":[["r",null]]}}', "not a key"),
        ('{"rest":{"a":[["r","x",["y"]]]}}', "not a key"),
        ('{"rest":7}', "expected"),
        ('{"program":{"name":"smallbank","seed":0,"sessions":1000000,"transactions":1}}', "<= 100"),
    ],
)
def test_the_prediction_field_of_a_file_is_validated(tmp_path, about, told) -> None:
    file = tmp_path / "h.json"
    file.write_text((ROW % SKEW)[:-1] + ',"prediction":' + about + "}")
    done = isocheck("confirm", str(file), "--managed", "sqlite")
    assert isinstance(done.exception, InputError) and told in str(done.exception)


def test_a_missing_database_is_a_one_line_error(tmp_path) -> None:
    pytest.importorskip("psycopg")
    file = tmp_path / "h.json"
    file.write_text(ROW % SKEW)
    done = isocheck("confirm", str(file), "postgresql://u:secret@127.0.0.1:1/db")
    assert isinstance(done.exception, InputError) and "secret" not in str(done.exception)
    assert isocheck("confirm", str(file)).exit_code == 2


def test_fitting_isolation_of_sqlite(tmp_path) -> None:
    sqlite = open_adapter(Setup(f"sqlite:///{tmp_path / 'test.db'}"))
    assert fitting_isolation(sqlite, "RC") == "serializable"


def test_fitting_isolation_of_postgresql(postgresql) -> None:
    adapter = open_adapter(Setup(postgresql.url))
    assert fitting_isolation(adapter, "TCC") == "read committed"
    assert fitting_isolation(adapter, "SI") == "repeatable read"
    assert fitting_isolation(adapter, "RC", "PostgreSQL", "serializable") == "read committed"
    assert fitting_isolation(adapter, "SI", "PostgreSQL", "read committed") == "read committed"
    assert fitting_isolation(adapter, "RC", "MariaDB", "serializable") == "read committed"
