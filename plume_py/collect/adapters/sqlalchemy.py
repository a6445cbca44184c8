"""Adapter for each database with an SQLAlchemy dialect: ``sqlalchemy+`` and an address of SQLAlchemy."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import AbortedError, Adapter, Connection, LostError, Setup, Value, first_line, to_value
from plume_py.collect.adapter import promises as promises_of
from plume_py.collect.table_setup import is_name
from plume_py.levels.databases import SQLALCHEMY

try:
    import sqlalchemy
    from sqlalchemy import exc
except ImportError:
    raise IsocheckError("SQLAlchemy is not installed; install it with: pip install sqlalchemy") from None

PREFIX = "sqlalchemy+"
# SQLSTATE class of a transaction that was rolled back, and the state in it that leaves the outcome open.
_ROLLED_BACK, _COMPLETION_UNKNOWN = "40", "40003"


class SqlalchemyAdapter(Adapter):
    """A database, with a table that SQLAlchemy creates."""

    name = "SQLAlchemy"
    isolations = promises_of(SQLALCHEMY)

    def __init__(self, setup: Setup) -> None:
        """Accept an address such as ``sqlalchemy+sqlite:///test.db`` or ``sqlalchemy+postgresql+psycopg://…``."""
        super().__init__(setup)
        if setup.session_settings:
            raise IsocheckError("settings are said differently by every database: put them into the address, not --set")
        try:
            self.engine = sqlalchemy.create_engine(setup.url.removeprefix(PREFIX), poolclass=sqlalchemy.pool.NullPool)
        except (exc.ArgumentError, exc.NoSuchModuleError, ImportError) as error:
            address = without_password(setup.url)
            raise IsocheckError(f"SQLAlchemy does not take {address!r:.80}: {first_line(error)}") from None
        self.name = f"{self.engine.dialect.name}, by SQLAlchemy"
        kind: Any = sqlalchemy.Text() if setup.lists else sqlalchemy.BigInteger()
        key = sqlalchemy.Column("k", sqlalchemy.String(190), primary_key=True)
        value = sqlalchemy.Column("v", kind, nullable=False)
        self.table = sqlalchemy.Table(setup.table, sqlalchemy.MetaData(), key, value)

    def version(self) -> str:
        """Return the server's version."""
        with self.engine.connect():
            version = self.engine.dialect.server_version_info
        return ".".join(map(str, version or ())) or "unknown"

    def settings(self) -> dict[str, str]:
        """Return the name of the driver and the version of SQLAlchemy."""
        return {"driver": self.engine.dialect.driver, "sqlalchemy": sqlalchemy.__version__}

    def create(self, keys: Sequence[str]) -> None:
        initial: Any = "" if self.setup.lists else 0
        with self.engine.begin() as connection:
            self.table.create(connection)
            connection.execute(self.table.insert(), [{"k": key, "v": initial} for key in keys])

    @override
    def connect(self) -> Connection:
        return _SqlalchemyConnection(self)

    def contents(self) -> dict[str, Value]:
        with self.engine.connect() as connection:
            rows = connection.execute(sqlalchemy.select(self.table.c.k, self.table.c.v)).all()
        return {key: to_value(value, self.setup.lists) for key, value in rows}

    def drop(self) -> None:
        with self.engine.begin() as connection:
            self.table.drop(connection, checkfirst=True)

    def tables(self) -> list[str]:
        inspector = sqlalchemy.inspect(self.engine)
        names = [name for name in inspector.get_table_names() if is_name(name)]
        return [name for name in names if [column["name"] for column in inspector.get_columns(name)] == ["k", "v"]]

    def drop_table(self, table: str) -> None:
        assert is_name(table)
        with self.engine.begin() as connection:
            sqlalchemy.Table(table, sqlalchemy.MetaData()).drop(connection, checkfirst=True)

    def statements(self) -> dict[str, str]:
        """Return the statements approximately, because placeholders differ between dialects."""
        table, where = self.setup.table, "WHERE k = :key"
        change = "append" if self.setup.lists else "w"
        value = "v || :value" if self.setup.lists else ":value"
        begin = "-- isolation_level=':isolation'"
        return {
            "begin": begin,
            "r": f"SELECT v FROM {table} {where}",
            change: f"UPDATE {table} SET v = {value} {where}",
        }


class _SqlalchemyConnection(Connection):
    def __init__(self, adapter: SqlalchemyAdapter) -> None:
        table = adapter.table
        self._lists = adapter.setup.lists
        self._select = sqlalchemy.select(table.c.v).where(table.c.k == sqlalchemy.bindparam("key"))
        new: Any = sqlalchemy.bindparam("new")
        change = table.c.v + new if self._lists else new
        self._update = table.update().where(table.c.k == sqlalchemy.bindparam("key")).values(v=change)
        self._connection = adapter.engine.connect()
        self._isolation = ""
        self._transaction: Any = None

    def begin(self, isolation: str) -> None:
        try:
            if isolation != self._isolation:
                self._connection = self._connection.execution_options(isolation_level=isolation.upper())
                self._isolation = isolation
            self._transaction = self._connection.begin()
        except exc.ArgumentError as error:
            raise IsocheckError(first_line(error)) from None
        except exc.SQLAlchemyError as error:
            raise self._failure(error) from None

    def read(self, key: str) -> Value:
        row = self._run(self._select, {"key": key}).fetchone()
        return to_value(None if row is None else row[0], self._lists)

    def write(self, key: str, value: int) -> None:
        self._run(self._update, {"key": key, "new": value})

    def append(self, key: str, value: int) -> None:
        self._run(self._update, {"key": key, "new": f",{value}"})

    def commit(self) -> None:
        try:
            self._transaction.commit()
        except exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None) or ""
            certain = state.startswith(_ROLLED_BACK) and state != _COMPLETION_UNKNOWN
            raise (AbortedError if certain and not error.connection_invalidated else LostError)(
                _message(error)
            ) from None

    def rollback(self) -> None:
        if self._transaction is not None:
            self._transaction.rollback()

    def close(self) -> None:
        with suppress(exc.SQLAlchemyError):
            self._connection.close()

    def _run(self, statement: Any, parameters: dict[str, Any]) -> Any:
        try:
            return self._connection.execute(statement, parameters)
        except exc.SQLAlchemyError as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> Exception:
        """Return the error to raise for a failure before COMMIT.

        A server that still answers rolls the transaction back.
        """
        lost = not isinstance(error, exc.DBAPIError) or error.connection_invalidated
        return (LostError if lost else AbortedError)(_message(error))


def _message(error: Exception) -> str:
    return first_line(getattr(error, "orig", None) or error)
