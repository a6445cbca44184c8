"""Programs on real servers; skipped where these are not installed."""

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.collect.managed import SERVERS
from plume_py.infer.language.load import load
from plume_py.infer.run.server import STORE_OF, Load, Server, vectors
from plume_py.infer.stores import STORES


def needs(kind):
    try:
        SERVERS[kind].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_real_server_agrees(kind):
    needs(kind)
    program = load("counters")
    weak, *_, strong = STORES[STORE_OF[kind]].levels
    with Server(program, kind) as server:
        for seed in range(10):
            lost = server.run({"read_and_write": weak, "in_place": weak}, Load(seconds=0.5, seed=seed))
            assert lost.commits and not lost.problems
            if lost.broken:
                break
        kept = server.run({"read_and_write": strong, "in_place": weak}, Load(seconds=0.5))
    assert lost.broken == ["counted"]
    assert kept.broken == [] and kept.commits and not kept.problems


def test_the_command_runs_a_sql_file():
    needs("postgresql")
    path = ROOT / "docs" / "examples" / "booking.sql"
    result = CliRunner().invoke(cli, ["infer", str(path), "--brief", "--run", "postgresql", "--run-seconds", "0.5"])
    assert "count_then_lock=SER lock_then_count=SER  [found safe]  holds" in result.output
    assert "of 1 where every transaction is at a level found safe, 0 broke the invariant" in result.output
    assert result.exit_code == 0


def test_all_vectors():
    store = STORES["mysql"]
    names = ["a", "b"]
    inferred = {"a": store.levels[2], "b": store.levels[0]}
    safe = {"a": {"SER"}, "b": {"RC", "RR", "SER"}}
    assert len(list(vectors(store, names, inferred, safe, True))) == 9
    some = [
        {name: level.name for name, level in vector.items()} for vector in vectors(store, names, inferred, safe, False)
    ]
    assert some == [{"a": "SER", "b": "RC"}, {"a": "RC", "b": "RC"}, {"a": "RR", "b": "RC"}]
