"""Tests of the adapters for DuckDB, SQLAlchemy and Firebird, and of addresses."""

import pytest
from collecting import gather

from plume_py import check, load
from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.registry import adapter_class, open_adapter

# A violation needs luck: maximum number of runs, each with its own seed.
RUNS = 6


def verdict(url, out, *, holds, breaks=(), level="SER", **shape):
    """Each run must satisfy ``holds``; one of several runs must violate all of ``breaks``."""
    for seed in range(RUNS):
        collected = gather(url, out, level=level, seed=seed, **shape)
        assert collected.audit.ok and not collected.given_up and not collected.notes
        result = check(load(out), [*holds, *breaks])
        assert [name for name in holds if not result.levels[name].ok] == []
        if all(result.levels[name].ok is False for name in breaks):
            return
    raise AssertionError(f"{breaks} never broke")


@pytest.mark.parametrize("workload", ["write-skew", "append"])
def test_duckdb_satisfies_si(workload, tmp_path):
    pytest.importorskip("duckdb")
    breaks = ["SER"] if workload == "write-skew" else []
    url = f"duckdb:///{tmp_path}/x.duckdb"
    verdict(url, tmp_path / "h", holds=["SI"], breaks=breaks, isolation="snapshot", workload=workload, pause=1, keys=3)


def test_sqlalchemy_on_sqlite_reads_outside_transactions(tmp_path):
    """pysqlite begins a transaction only at its first write."""
    pytest.importorskip("sqlalchemy")
    url = f"sqlalchemy+sqlite:///{tmp_path}/x.db"
    verdict(url, tmp_path / "h", holds=["RC"], breaks=["RA"], pause=1, read_first=0, read_only=0.5)


def test_sqlalchemy_works_with_postgresql(postgresql, tmp_path):
    pytest.importorskip("sqlalchemy")
    url = postgresql.url.replace("postgresql://", "sqlalchemy+postgresql+psycopg://")
    verdict(url, tmp_path / "h", holds=["SER"], pause=0.3)
    verdict(url, tmp_path / "h", holds=["SER"], workload="append")


def test_sqlalchemy_reports_addresses_that_it_rejects():
    pytest.importorskip("sqlalchemy")
    with pytest.raises(IsocheckError, match="does not take"):
        open_adapter(Setup("sqlalchemy+nonsense://x"))


@pytest.mark.parametrize(
    "isolation, holds, breaks",
    [("snapshot", "SI", "SER"), ("snapshot table stability", "RC", None), ("read committed", "RC", "RA")],
)
def test_firebird_satisfies_and_violates_the_documented_levels(isolation, holds, breaks, tmp_path):
    pytest.importorskip("firebird.driver")
    url = f"firebird:///{tmp_path}/x.fdb"
    try:
        open_adapter(Setup(url)).version()
    except Exception as missing:  # the library, or its part that opens files
        pytest.skip(
            f"Firebird is not installed ({str(missing)[:60]}); on Debian: apt-get install firebird3.0-server-core"
        )
    shape = {"workload": "write-skew" if breaks == "SER" else "register", "pause": 1, "keys": 3}
    verdict(url, tmp_path / "h", holds=[holds], breaks=[breaks] if breaks else [], isolation=isolation, **shape)


@pytest.mark.parametrize(
    "url, words",
    [
        ("redis://x:notaport", "redis://:password@host"),
        ("etcd://x:notaport", "etcd://host"),
        ("duckdb:x", "duckdb:///"),
        ("firebird://host", "firebird://user"),
    ],
)
def test_invalid_addresses_are_rejected(url, words):
    try:
        adapter_class(url)
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with pytest.raises(IsocheckError, match=words):
        open_adapter(Setup(url))


@pytest.mark.parametrize("url", ["redis://127.0.0.1", "etcd://127.0.0.1"])
def test_settings_are_rejected_by_databases_without_settings(url):
    with pytest.raises(IsocheckError, match="leave --set out"):
        open_adapter(Setup(url, session_settings={"a": "b"}))
