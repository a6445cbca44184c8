"""Tests of ``--set`` in the adapters, with poolers and with servers that only speak a protocol."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from collecting import gather, lines
from program import wait_until

from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.registry import open_adapter
from plume_py.collect.server import free_port

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


# --- MariaDB


def test_mariadb_settings_that_are_numbers_are_not_quoted(mariadb):
    numbers = {"lock_wait_timeout": "7", "long_query_time": "2.5", "sql_mode": "ANSI"}
    adapter = open_adapter(Setup(mariadb.url, session_settings=numbers))
    assert adapter.ask("SELECT @@lock_wait_timeout, @@long_query_time")[0] == (7, 2.5)
    assert "ANSI" in adapter.ask("SELECT @@sql_mode")[0][0]
    adapter.leave()


def test_a_mysql_server_without_innodb_is_accepted(mariadb, monkeypatch):
    """Like Dolt, the server lacks the variable of the lock timeout."""
    import pymysql

    execute = pymysql.cursors.Cursor.execute

    def unknown(cursor, query, *rest):
        if "innodb_lock_wait_timeout" in query:
            raise pymysql.OperationalError(1193, "Unknown system variable 'innodb_lock_wait_timeout'")
        return execute(cursor, query, *rest)

    monkeypatch.setattr(pymysql.cursors.Cursor, "execute", unknown)
    adapter = open_adapter(Setup(mariadb.url))
    assert adapter.version()
    adapter.leave()


# --- PostgreSQL


def test_the_header_omits_settings_that_the_server_lacks(postgresql, monkeypatch):
    """Like H2, the server speaks the protocol but has no setting fsync."""
    from plume_py.collect.adapters import postgresql as module

    monkeypatch.setattr(module, "_HEADER_SETTINGS", ("no_such_setting", "fsync"))
    adapter = open_adapter(Setup(postgresql.url))
    assert adapter.settings() == {"fsync": "off"}
    adapter.leave()


def test_postgresql_detects_deadlocks_early_if_the_user_may_set_that(postgresql, monkeypatch):
    from plume_py.collect.adapters import postgresql as module

    monkeypatch.setattr(module, "_DEADLOCK", {"deadlock_timeout": "70ms"})
    administrator = open_adapter(Setup(postgresql.url))
    assert administrator.settings()["deadlock_timeout"] == "70ms"
    administrator.ask("CREATE ROLE nobody_special LOGIN PASSWORD 'not-a-word'")
    try:
        where = postgresql.url.partition("@")[2]
        anybody = open_adapter(Setup(f"postgresql://nobody_special:not-a-word@{where}"))
        assert anybody.settings()["deadlock_timeout"] == "50ms", "as the server has it"
        anybody.leave()
    finally:
        administrator.ask("DROP ROLE nobody_special")
        administrator.leave()


@pytest.fixture
def pooler(postgresql):
    """Start pgbouncer in front of the server, with three connections and one per transaction."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed; on Debian: apt-get install pgbouncer")
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="isocheck-pooler-"))
    ini = folder / "pgbouncer.ini"
    ini.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={postgresql.port} user=isocheck password={postgresql.password}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 3\n"
    )
    as_user = {"user": "nobody"} if os.geteuid() == 0 else {}
    folder.chmod(0o755)
    process = subprocess.Popen([PGBOUNCER, "-q", str(ini)], **as_user)
    try:
        wait_until(lambda: _listens(port), alive=process)
        yield f"postgresql://isocheck:not-a-word@127.0.0.1:{port}/postgres"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_no_prepared_statements_are_used_behind_a_pooler(pooler, tmp_path):
    from plume_py import check, load

    shape = {"isolation": "repeatable read", "level": "SI", "sessions": 8, "transactions": 60}
    collected = gather(pooler, tmp_path / "h.jsonl", **shape)
    assert collected.audit.ok and collected.counts["committed"] > 100 and not collected.counts["unknown"]
    assert not any("prepared" in reason for reason in collected.reasons)
    assert check(load(tmp_path / "h.jsonl"), "SI").ok


def test_settings_are_rejected_behind_a_pooler(pooler):
    with pytest.raises(IsocheckError, match="pooler"):
        open_adapter(Setup(pooler, session_settings={"synchronous_commit": "off"})).version()


# --- SQLite


def test_sqlite_begins_with_the_lock_at_level_immediate(tmp_path):
    out = tmp_path / "h.jsonl"
    collected = gather(f"sqlite:///{tmp_path}/x.db", out, isolation="immediate", workload="tpcc", keys=1)
    assert collected.counts["aborted"] == 0, "nobody reads first and is refused the lock then"
    recorded = lines(out)
    assert recorded[0]["collected"]["sql"]["begin immediate"] == "BEGIN IMMEDIATE"
    assert {line["isolation"] for line in recorded[1:]} == {"immediate"}


def test_reports_show_the_begin_statement_of_the_transaction(tmp_path):
    from plume_py.report.recording_metadata import _Line, _statements

    sql = {"begin": "BEGIN", "begin immediate": "BEGIN IMMEDIATE"}
    assert next(_statements(_Line([], isolation="immediate"), sql)) == "BEGIN IMMEDIATE;"
    assert next(_statements(_Line([], isolation="serializable"), sql)) == "BEGIN;"
