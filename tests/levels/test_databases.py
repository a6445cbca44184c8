"""Tests of levels/databases: collect, allocate and infer agree with the one table of databases."""

import pytest

from plume_py.cli.allocate_options import CATALOGUES as OFFERED_CATALOGUES
from plume_py.cli.infer import STORES as OFFERED_STORES
from plume_py.collect.registry import SCHEMES, adapter_class
from plume_py.levels import NAMES, RUNNABLE
from plume_py.levels.databases import DATABASES, MYSQL
from plume_py.reasoning.allocate.catalogue import CATALOGUES
from plume_py.reasoning.infer.execution.server import STORE_OF
from plume_py.reasoning.infer.statement_models import STORES

SETTINGS = [(database, setting) for database in DATABASES.values() for setting in database.settings]
ROWS = pytest.mark.parametrize(
    "database, setting", SETTINGS, ids=[f"{database.name}-{setting.name}" for database, setting in SETTINGS]
)
# Schemes of addresses that are other names for a database, and stores that are.
ALSO = {"postgres": "postgresql", "mariadb": "mysql", "valkey": "redis", "mixiso-levels": "mixiso"}

DRIVERS = {
    "postgresql": "psycopg",
    "postgres": "psycopg",
    "mysql": "pymysql",
    "mariadb": "pymysql",
    "duckdb": "duckdb",
    "sqlalchemy": "sqlalchemy",
    "firebird": "firebird.driver",
}


def adapter_of(scheme):
    if scheme in DRIVERS:
        pytest.importorskip(DRIVERS[scheme])
    return adapter_class(f"{scheme}:")


def database_of(name):
    return DATABASES[ALSO.get(name, name)]


@ROWS
def test_every_row_has_a_reason_and_its_source(database, setting):
    assert len(setting.why.split()) >= 3 and not setting.why.endswith(".")
    assert setting.source
    assert setting.promises in (None, *NAMES) and setting.safe_as in (None, *RUNNABLE)
    assert setting.safe_as is not None or not setting.readers_only
    assert not setting.beside_weaker or database[setting.beside_weaker] is not setting


@pytest.mark.parametrize("database", DATABASES.values(), ids=lambda database: database.name)
def test_settings_have_distinct_names(database):
    spelled = [setting.name for setting in database.settings]
    assert len(set(spelled)) == len(spelled)
    assert database.default in ("", *spelled)
    safe = [setting.safe_as for setting in database.settings if setting.safe_as]
    assert len(set(safe)) == len(safe), "allocate could not say which one it means"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_collect_promises_what_the_table_says(scheme):
    adapter, database = adapter_of(scheme), database_of(scheme)
    assert {name: promise.level for name, promise in adapter.isolations.items()} == {
        setting.name.lower(): setting.promises for setting in database.settings
    }
    assert next(iter(adapter.isolations)) == (database.default or database.settings[0].name).lower()
    for setting in database.settings:
        remark = adapter.isolations[setting.name.lower()].remark
        assert remark == (setting.why if setting.surprising else "")
    assert adapter.mixture == database.mixture


@pytest.mark.parametrize("name", CATALOGUES)
def test_allocate_counts_on_what_the_table_says(name):
    catalogue, database = CATALOGUES[name], DATABASES[name]
    assert catalogue.engine_names == {s.safe_as: s.name for s in database.settings if s.safe_as}
    assert catalogue.levels.items() <= catalogue.engine_names.items()
    assert len(catalogue.adjustments) == sum(bool(s.readers_only) + bool(s.beside_weaker) for s in database.settings)


@pytest.mark.parametrize("name", STORES)
def test_infer_runs_statements_as_the_table_says(name):
    store, database = STORES[name], database_of(name)
    settings = [setting for setting in database.settings if setting.model]
    assert [store.setting_names[level.name] for level in store.levels] == [setting.name for setting in settings]
    for level, setting in zip(store.levels, settings, strict=True):
        assert {field: getattr(level, field) for field in vars(setting.model)} == vars(setting.model)
        assert (store.beside_weaker_partners(level) is not level) == bool(setting.beside_weaker)
        assert store.setting_names[store.name_beside_weaker(level)] == (setting.beside_weaker or setting.name)


def test_every_row_is_used_by_a_command():
    read = {database_of(name).name for name in (*SCHEMES, *CATALOGUES, *STORES)}
    assert read == set(DATABASES)


def test_the_command_line_offers_every_database():
    assert tuple(CATALOGUES) == OFFERED_CATALOGUES
    assert tuple(STORES) == OFFERED_STORES
    assert set(STORE_OF.values()) <= set(STORES)


def test_innodb_has_different_answers_for_three_commands():
    setting = MYSQL["REPEATABLE READ"]
    assert (setting.promises, setting.safe_as, setting.readers_only) == ("SI", "PC", True)
    assert (setting.model.select, setting.model.write) == ("snapshot", "current")
    assert adapter_of("mysql").isolations["repeatable read"].level == "SI"
    assert CATALOGUES["mysql"].levels["PC"] == STORES["mysql"].setting_names["RR"] == "REPEATABLE READ"
