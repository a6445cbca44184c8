"""Tests of the adapters for PostgreSQL and MariaDB with private servers. A missing server is skipped."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from program import PATIENCE, PROGRAM, lines_in, wait_until

from plume_py import check, load
from plume_py.base.errors import IsocheckError
from plume_py.base.processes import tree
from plume_py.collect.adapter import Setup
from plume_py.collect.client import Isolation
from plume_py.collect.cluster import MANAGED
from plume_py.collect.faults import KINDS, OF_NODES
from plume_py.collect.registry import open_adapter
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape

ONE_SERVER = [kind for kind in KINDS if kind not in OF_NODES]

# A violation needs luck: maximum number of runs, each with its own seed.
RUNS = 6


def gather(server, isolation, out, *, settings=None, how=None, timeout=60.0, **shape):
    shape = Shape(**{"sessions": 6, "transactions": 40, "keys": 6, "seed": 0, **shape})
    setup = Setup(server.url, f"t{time.monotonic_ns()}", shape.lists, timeout, settings or {})
    adapter = open_adapter(setup)
    plan = Plan(shape, [Isolation(isolation, None)], str(out), timeout=timeout, **(how or {}))
    collected = collect(adapter, plan, server)
    assert collected.audit is not None, collected.audit_problem
    assert collected.audit.ok, collected.audit.problems
    assert not collected.given_up and collected.counts["committed"]
    return collected


def verdict(server, isolation, tmp_path, *, holds, breaks=(), **options):
    """Each run must satisfy ``holds``; one of several runs must violate all of ``breaks``."""
    for seed in range(RUNS):
        gather(server, isolation, tmp_path / "h.jsonl", seed=seed, **options)
        result = check(load(tmp_path / "h.jsonl"), [*holds, *breaks])
        assert [level for level in holds if not result.levels[level].ok] == []
        if all(result.levels[level].ok is False for level in breaks):
            return result
    raise AssertionError(f"{breaks} never broke")


# --- PostgreSQL


def test_postgresql_read_committed_satisfies_rc_and_violates_ra(postgresql, tmp_path):
    verdict(postgresql, "read committed", tmp_path, holds=["RC"], breaks=["RA", "TCC"], pause=0.3)


def test_postgresql_repeatable_read_satisfies_si_and_violates_ser(postgresql, tmp_path):
    options = {"holds": ["SI"], "breaks": ["SER"], "workload": "write-skew", "pause": 0.3}
    result = verdict(postgresql, "repeatable read", tmp_path, **options)
    assert any(violation.transactions for violation in result.violations)


@pytest.mark.parametrize("workload", ["register", "append", "write-skew"])
def test_postgresql_serializable_is_serializable(workload, postgresql, tmp_path):
    verdict(postgresql, "serializable", tmp_path, holds=["SER"], workload=workload, pause=0.3)


def test_postgresql_keeps_options_from_the_address(postgresql):
    import psycopg

    url = f"{postgresql.url}?options=-c%20default_transaction_isolation%3Dserializable"
    adapter = open_adapter(Setup(url))
    assert adapter.settings()["default_transaction_isolation"] == "serializable"
    with psycopg.connect(postgresql.url) as connection:
        usual = connection.execute("SHOW default_transaction_isolation").fetchone()[0]
    assert usual == open_adapter(Setup(postgresql.url)).settings()["default_transaction_isolation"] == "read committed"


def test_postgresql_serializable_satisfies_ser_during_faults(postgresql, tmp_path):
    faults_and_then(postgresql, tmp_path)


# --- MariaDB


def test_mariadb_read_committed_satisfies_rc_and_violates_ra(mariadb, tmp_path):
    verdict(mariadb, "read committed", tmp_path, holds=["RC"], breaks=["RA"], pause=0.3)


def test_mariadb_repeatable_read_loses_updates(mariadb, tmp_path):
    options = {"holds": ["PC"], "breaks": ["SI"], "workload": "smallbank", "keys": 3, "pause": 0.3}
    verdict(mariadb, "repeatable read", tmp_path, **options)


def test_mariadb_repeatable_read_satisfies_si_with_innodb_snapshot_isolation(mariadb, tmp_path):
    adapter = open_adapter(Setup(mariadb.url))
    if "innodb_snapshot_isolation" not in adapter.settings():
        pytest.skip("this MariaDB does not know innodb_snapshot_isolation")
    settings = {"innodb_snapshot_isolation": "ON"}
    verdict(mariadb, "repeatable read", tmp_path, holds=["SI"], workload="smallbank", keys=3, settings=settings)


@pytest.mark.parametrize("workload", ["register", "append"])
def test_mariadb_serializable_is_serializable(workload, mariadb, tmp_path):
    verdict(mariadb, "serializable", tmp_path, holds=["SER"], workload=workload, pause=0.3)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_mariadb_ends_connections_of_a_run_right_after_a_server_start(is_restarted, mariadb, monkeypatch):
    """After a restart the same thread numbers may belong to other connections, which must remain."""
    adapter = open_adapter(Setup(mariadb.url))
    adapter.admin()
    left = adapter.connect()
    if is_restarted:
        adapter.close_admin()
    ask = adapter.ask

    def young(query, *more):
        return [(name, "0" if name == "Uptime" else value) for name, value in ask(query, *more)]

    with monkeypatch.context() as patch:
        patch.setattr(adapter, "ask", lambda query, *more: (young if "STATUS" in query else ask)(query, *more))
        adapter.settle()
    numbers = {row[0] for row in ask("SHOW PROCESSLIST")}
    assert (left.thread in numbers) is is_restarted
    left.close()
    adapter.leave()


def test_mariadb_has_no_account_without_a_password(mariadb):
    import pymysql

    root = {"host": "127.0.0.1", "port": mariadb.port, "user": "root"}
    with pymysql.connect(**root, password=mariadb.password) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT User, Host, JSON_VALUE(Priv, '$.authentication_string'), JSON_VALUE(Priv, '$.account_locked')"
            " FROM mysql.global_priv"
        )
        accounts = cursor.fetchall()
    assert [(user, host) for user, host, password, locked in accounts if not password and not locked] == []
    assert {(user, host) for user, host, _, locked in accounts if not locked} == {
        ("root", "localhost"),
        ("root", "127.0.0.1"),
    }


def test_mariadb_serializable_satisfies_ser_during_faults(mariadb, tmp_path):
    faults_and_then(mariadb, tmp_path)


# --- both


def faults_and_then(server, tmp_path):
    """Every kind of fault happens; what the server confirmed is in its table, and SER holds.

    On a slow machine little happens in six seconds: then it has more of them, until enough has happened.
    """
    for seconds in (6.0, 20.0, 60.0, 180.0):
        how = {"faults": ONE_SERVER, "fault_interval": 0.1, "seconds": seconds}
        collected = gather(
            server, "serializable", tmp_path / f"h{seconds}.jsonl", how=how, timeout=0.5, workload="append",
            transactions=100_000, rotate=500, keys=20,
        )  # fmt: skip
        assert not collected.fault_problem
        assert collected.audit.ok
        history = load(tmp_path / f"h{seconds}.jsonl")
        assert check(history, "SER").ok
        happened = set(collected.faults) == set(ONE_SERVER) and collected.audit.confirmed > 50
        if happened and collected.counts["unknown"] and history.sessions > 6:
            break
    assert set(collected.faults) == set(ONE_SERVER)
    assert collected.audit.confirmed > 50
    assert collected.counts["unknown"], "every other pause begins before a commit and outlasts its client"
    assert 6 < history.sessions <= 6 + collected.counts["unknown"]


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_transactions_at_different_levels_satisfy_their_levels(name, request, tmp_path):
    server = request.getfixturevalue(name)
    out = tmp_path / "h.jsonl"
    arguments = ["collect", server.url, "--mix", "RC=2,SI=1,SER=1", "--transactions", "20", "--out", str(out)]
    run = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    header, *transactions = map(json.loads, out.read_text().splitlines())
    assert {transaction["level"] for transaction in transactions} == {"RC", "SI", "SER"}
    assert server.password not in out.read_text() and header["collected"]["mix"]
    assert "declared" in check(load(out), "declared").levels


@pytest.fixture
def open_folder():
    """Return a folder that the server's user can access, unlike the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="collect-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "redis", "postgresql-standby"])
def test_a_managed_run_leaves_no_process_or_folder(name, open_folder, child):
    try:
        MANAGED[name].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    out = open_folder / "h.jsonl"
    run = child(
        [*PROGRAM, "collect", "--managed", name, "--transactions", "1000000", "--out", str(out)],
        env={**os.environ, "TMPDIR": str(open_folder)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: lines_in(out) >= 100, run)
    processes = tree(run.pid)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    wait_until(lambda: not list(open_folder.glob("isocheck-*")))
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))
    assert len(processes) > 2, "a server, and its keeper"
    assert check(load(out), "RC").ok


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/x", "mysql://nobody@127.0.0.1:1/x"])
def test_an_unreachable_server_prints_one_line(url, tmp_path):
    command = [*PROGRAM, "test", url, "--history", str(tmp_path / "h")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 4 and len(run.stderr.splitlines()) == 1
    assert "is the server running" in run.stderr
