"""Statement logs of a real PostgreSQL as input of ``allocate``, ``robust`` and ``infer``."""

import json
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.collect.managed import SERVERS

SCHEMA = "CREATE TABLE account (id INT PRIMARY KEY, owner TEXT NOT NULL, balance INT NOT NULL);\n"
PREFIXES = ("%m [%p] ", "%c %q%u@%d ")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """What a server writes while two sessions work, with either prefix."""
    try:
        SERVERS["postgresql"].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with SERVERS["postgresql"]() as managed:
        with psycopg.connect(managed.url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET log_statement = 'all'")
            for number, prefix in enumerate(PREFIXES):
                admin.execute(f"ALTER SYSTEM SET log_line_prefix = '{prefix}'")
                admin.execute("SELECT pg_reload_conf()")
                _work(managed.url, number)
        written = Path(managed.folder, "server.log").read_text()
    path = tmp_path_factory.mktemp("log") / "postgresql.log"
    path.write_text(written)
    return path


def _work(url, number):
    """Withdrawals and transfers in two sessions, of which one is rolled back and one fails."""
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        one.execute(SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS"))
        one.execute("INSERT INTO account VALUES (%s, 'it''s', 100), (%s, 'b', 100)", [10 * number + 1, 10 * number + 2])
        one.commit()
        for client, source, target in ((one, 1, 2), (two, 2, 1), (one, 2, 1)):
            source, target = 10 * number + source, 10 * number + target
            client.execute("SELECT balance FROM account WHERE id = %s", [source])
            client.execute("UPDATE account SET balance = balance - 7\n WHERE id = %s AND balance >= 7", [source])
            client.execute("UPDATE account SET balance = balance + 7 WHERE id = %s", [target])
            client.commit()
        two.execute("DELETE FROM account WHERE id = %s", [10 * number + 1])
        two.rollback()
        with pytest.raises(psycopg.errors.UniqueViolation):
            two.execute("INSERT INTO account VALUES (%s, 'c', 0)", [10 * number + 1])
        two.rollback()


def run(*arguments):
    result = CliRunner().invoke(cli, list(map(str, arguments)))
    return result.exit_code, result.output


def test_programs_are_read_from_a_real_log(log, tmp_path) -> None:
    code, told = run("allocate", "--from-log", log, "--catalogue", "postgresql", "--brief")
    assert code == 0, told
    assert "8 transactions of 2 programs; left out: 2 rolled back, 2 failed" in told
    assert "UPDATE account SET balance = balance - :p2 WHERE id = :p1 AND balance >= :p2;" in told
    assert "update_account" in told and "insert_account" in told
    (tmp_path / "schema.sql").write_text(SCHEMA)
    options = ("--from-log", log, "--schema", tmp_path / "schema.sql", "--format", "json")
    code, told = run("allocate", *options)
    found = json.loads(told)
    assert code == 0 and {row["name"] for row in found["groups"]} == {"insert_account", "update_account"}
    assert "-- transaction: update_account(" in found["programs"]
    assert run("robust", *options, "--levels", "*=SER")[0] == 0


def test_infer_takes_transactions_from_a_log(log, tmp_path) -> None:
    """Nothing is known of the parameters: an owner may be anybody, and so somebody's whom the invariant forbids."""
    invariant = "-- invariant: somebody\nNOT EXISTS (SELECT 1 FROM account WHERE owner = 'nobody');\n"
    (tmp_path / "app.sql").write_text(SCHEMA + invariant)
    code, told = run("infer", tmp_path / "app.sql", "--from-log", log, "--brief")
    assert code == 1 and "-- transaction: update_account(" in told
    assert "insert_account  no level keeps the invariant" in told
    refused = CliRunner().invoke(cli, ["infer", "doctors", "--from-log", str(log)])
    assert "of a SQL file" in str(refused.exception)


def test_a_workload_and_a_log_together_are_an_error(log) -> None:
    assert run("allocate")[0] == 2 and run("allocate", "smallbank", "--from-log", log)[0] == 2
