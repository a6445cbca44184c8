"""Two applications on SQLAlchemy, by psycopg 3 and psycopg 2: their logs get the levels of the same SQL by hand.

The logs are those of PostgreSQL 15 with log_statement = 'all', the schemas those of ``pg_dump -s``.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from plume_py.cli.main import cli

FOLDER = Path(__file__).parent / "sqlalchemy"
FILLS = {"bank": "insert_account", "shop": "insert_customers"}
APPS = [(app, driver) for app in FILLS for driver in ("psycopg", "psycopg2")]


def run(*arguments):
    result = CliRunner().invoke(cli, [*map(str, arguments), "--format", "json"])
    assert result.output, result.exception
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize(("app", "driver"), APPS)
@pytest.mark.parametrize("catalogue", ["postgresql", "mysql", "mixiso"])
def test_allocate_gives_a_log_the_levels_of_the_sql_file(app, driver, catalogue) -> None:
    log = ("--from-log", FOLDER / f"{app}-{driver}.log", "--schema", FOLDER / f"{app}.schema.sql")
    options = ("--catalogue", catalogue, "--brief")
    code, found = run("allocate", *log, "--exclude", FILLS[app], *options)
    by_hand = run("allocate", FOLDER / f"{app}.sql", *options)[1]
    assert code == 0 and levels(found) == levels(by_hand)
    if (app, catalogue) == ("bank", "postgresql"):  # SmallBank: what SQLAlchemy rolls back has read
        assert levels(found)["read_account"] == "SER" and levels(found)["update_checking"] == "RC"


def levels(found):
    return {row["name"]: row["level"] for row in found["groups"]}


@pytest.mark.parametrize(("app", "driver"), APPS)
def test_infer_gives_a_log_the_answer_of_the_sql_file(app, driver, tmp_path) -> None:
    by_hand = FOLDER / f"{app}.sql"
    invariant = by_hand.read_text().partition("-- invariant")
    schema = tmp_path / f"{app}.sql"
    schema.write_text((FOLDER / f"{app}.schema.sql").read_text() + invariant[1] + invariant[2])
    log = FOLDER / f"{app}-{driver}.log"
    code, found = run("infer", schema, "--from-log", log, "--exclude", FILLS[app], "--rows", 2, "--steps", 1)
    own = run("infer", by_hand, "--rows", 2, "--steps", 1)
    assert code == own[0] == 1 and found["alone"] == own[1]["alone"] != []
    assert [(t["name"], t["level"]) for t in sorted(found["transactions"], key=lambda t: t["name"])] == [
        (t["name"], t["level"]) for t in sorted(own[1]["transactions"], key=lambda t: t["name"])
    ]
