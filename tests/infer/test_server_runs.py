"""Programs on real servers: tests of execution.server and execution.client; skipped without servers."""

import json

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.collect.managed import SERVERS
from plume_py.reasoning.infer.execution.client import Load
from plume_py.reasoning.infer.execution.server import (
    OPEN,
    SAFE,
    STORE_OF,
    UNSAFE,
    SqlServer,
    expectation,
    level_assignments,
)
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES


def needs(kind):
    try:
        SERVERS[kind].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_real_server_loses_updates_at_weak_levels_only(kind):
    needs(kind)
    program = load("counters")
    weak, *_, strong = STORES[STORE_OF[kind]].levels
    with SqlServer(program, kind) as server:
        for seed in range(10):
            lost = server.run({"read_and_write": weak, "in_place": weak}, Load(seconds=0.5, seed=seed))
            assert lost.commits and not lost.problems
            if lost.broken:
                break
        kept = server.run({"read_and_write": strong, "in_place": weak}, Load(seconds=0.5))
    assert lost.broken == ["counted"]
    assert kept.broken == [] and kept.commits and not kept.problems


def test_the_command_runs_a_sql_file_on_a_server():
    needs("postgresql")
    path = ROOT / "docs" / "examples" / "booking.sql"
    result = CliRunner().invoke(cli, ["infer", str(path), "--brief", "--run", "postgresql", "--run-seconds", "0.5"])
    assert "count_then_lock=SER lock_then_count=SER  [found safe]  holds" in result.output
    assert "of 1 where every transaction is at a level found safe, 0 broke the invariant" in result.output
    assert result.exit_code == 0


def test_vectors_are_all_assignments_or_variants_of_the_inferred_one():
    store = STORES["mysql"]
    names = ["a", "b"]
    inferred = {"a": store.levels[2], "b": store.levels[0]}
    kept, broken = "no violation found", "violated"
    answers = {"a": {"RC": broken, "RR": broken, "SER": kept}, "b": {"RC": kept, "RR": "undecided", "SER": kept}}
    assert len(list(level_assignments(store, names, inferred, answers, True))) == 9
    some = [
        {name: level.name for name, level in vector.items()}
        for vector in level_assignments(store, names, inferred, answers, False)
    ]
    assert some == [{"a": "SER", "b": "RC"}, {"a": "RC", "b": "RC"}, {"a": "RR", "b": "RC"}]
    told = [
        expectation(store, dict(zip(names, (store.levels[i], store.levels[j]), strict=True)), answers)
        for i, j in ((2, 0), (2, 1), (1, 1))
    ]
    assert told == [SAFE, OPEN, UNSAFE]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_violation_at_levels_found_safe_is_reported_with_its_schedule(kind):
    """Without steps of others every level looks safe. The server violates the invariant and sets the exit code."""
    needs(kind)
    options = ["--steps", "0", "--brief", "--run", kind]
    result = CliRunner().invoke(cli, ["infer", "counters", *options, "--run-seconds", "2"])
    assert result.exit_code == 1, result.output
    told = result.output[result.output.index("found safe, but the server breaks counted at") :]
    assert "read_and_write=RC in_place=RC" in told and "broken: counted" in told
    assert told.count("COMMIT") >= 2 and "UPDATE counter SET" in told and "first:" in told and "last:" in told
    found = CliRunner().invoke(cli, ["infer", "counters", *options, "--run-seconds", "2", "--format", "json"])
    (vector,) = json.loads(found.output)["run"]["vectors"]
    assert found.exit_code == 1 and vector["found safe"] and vector["standing"] == "found safe"
    assert {"calls", "statements", "initial", "final", "broken"} == set(vector["schedule"])
    assert [step["statement"] for step in vector["schedule"]["statements"]].count("COMMIT") == len(
        vector["schedule"]["calls"]
    )


TEXTS = r"""
CREATE TABLE a (k INT PRIMARY KEY, v VARCHAR(50));
INSERT INTO a VALUES (1, '\'), (2, ', 3); DROP TABLE a; -- ');

-- transaction: f()
UPDATE a SET v = '\''' WHERE k = 2;

-- invariant: I
NOT EXISTS (SELECT 1 FROM a WHERE v = '\\');
"""


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_texts_with_quotes_and_backslashes_reach_the_server_unchanged(kind, tmp_path):
    """In standard SQL a backslash is an ordinary character. MariaDB needs a setting for that."""
    needs(kind)
    (tmp_path / "texts.sql").write_text(TEXTS)
    program = load(str(tmp_path / "texts.sql"))
    with SqlServer(program, kind) as server:
        outcome = server.run({"f": STORES[STORE_OF[kind]].levels[-1]}, Load(seconds=0.2))
        connection = server.adapter.connect()
        server.reset(cursor := connection.cursor)
        cursor.execute("SELECT v FROM a ORDER BY k")
        assert [v for (v,) in cursor.fetchall()] == ["\\", ", 3); DROP TABLE a; -- "]
        connection.close()
    assert outcome.commits and not outcome.broken and not outcome.problems
