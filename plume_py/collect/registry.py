"""Find the adapter of an address: a built-in one by scheme, or one by ``module:Class`` or ``file.py:Class``."""

import importlib
import importlib.util
from types import ModuleType

from plume_py.base.errors import IsocheckError
from plume_py.base.passwords import keep_secret, redacted, without_password
from plume_py.base.user_modules import import_file
from plume_py.collect.adapter import Adapter, Setup

# scheme -> module in plume_py.collect.adapters, class
SCHEMES = {
    "postgresql": ("postgresql", "PostgresAdapter"),
    "postgres": ("postgresql", "PostgresAdapter"),
    "mysql": ("mysql", "MysqlAdapter"),
    "mariadb": ("mysql", "MysqlAdapter"),
    "sqlite": ("sqlite", "SqliteAdapter"),
    "duckdb": ("duckdb", "DuckdbAdapter"),
    "etcd": ("etcd", "EtcdAdapter"),
    "redis": ("redis", "RedisAdapter"),
    "valkey": ("redis", "RedisAdapter"),
    "firebird": ("firebird", "FirebirdAdapter"),
    "sqlalchemy": ("sqlalchemy", "SqlalchemyAdapter"),
    "broken": ("broken", "BrokenAdapter"),
}

_FORMS = (
    "postgresql://…, mysql://…, mariadb://…, sqlite:///file, duckdb:///file, etcd://…, redis://…, firebird://…,"
    " sqlalchemy+…, broken:?bug=…, or your own adapter as file.py:Class"
)


def adapter_class(url: str) -> type[Adapter]:
    """Return the adapter class that ``url`` names. The adapter interprets the part after ``?`` or ``//``."""
    keep_secret(url)
    scheme, colon, rest = url.partition(":")
    if scheme.partition("+")[0] in SCHEMES:
        module, name = SCHEMES[scheme.partition("+")[0]]
        return _checked(getattr(importlib.import_module(f"plume_py.collect.adapters.{module}"), name), url)
    name = rest.partition("?")[0].partition("//")[0]
    if not colon or not name.isidentifier():
        raise IsocheckError(f"not the address of a database: {_quoted(url)}; use {_FORMS}")
    module_of_user = _from_file(scheme) if scheme.endswith(".py") else _from_name(scheme)
    found = getattr(module_of_user, name, None)
    if found is None:
        raise IsocheckError(redacted(f"{scheme} has no class {name}"))
    return _checked(found, url)


def open_adapter(setup: Setup) -> Adapter:
    """Return the adapter for ``setup.url``."""
    return adapter_class(setup.url)(setup)


def _checked(adapter: object, url: str) -> type[Adapter]:
    if not (isinstance(adapter, type) and issubclass(adapter, Adapter)):
        raise IsocheckError(f"{_quoted(url)} is not an adapter: derive it from plume_py.collect.adapter.Adapter")
    return adapter


def _from_file(path: str) -> ModuleType:
    try:
        return import_file(path, "adapter")
    except IsocheckError:
        raise
    except Exception as error:
        raise IsocheckError(redacted(f"{path} cannot be imported: {type(error).__name__}: {error}")) from None


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        message = redacted(f"cannot import {name}: {error}")
        raise IsocheckError(f"{message}; address a database as {_FORMS}") from None


def _quoted(url: str) -> str:
    return repr(without_password(url)[:60])
