"""Adapter for Firebird, with firebird-driver: a server, or a file that its library opens without one."""

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import LostError, Setup, first_line, promises, split_address
from plume_py.collect.adapters.sql import SqlAdapter, SqlConnection
from plume_py.levels.databases import FIREBIRD

try:
    from firebird import driver
    from firebird.driver import Isolation, tpb
except ImportError:
    raise IsocheckError("Firebird needs its driver; install it with: pip install firebird-driver") from None

_FORM = "write firebird://user:password@host:3050/path/to/file.fdb, or firebird:///file.fdb without a server"
_KINDS = {
    "snapshot": Isolation.SNAPSHOT,
    "snapshot table stability": Isolation.SERIALIZABLE,
    "read committed": Isolation.READ_COMMITTED_RECORD_VERSION,
}
# SQLSTATEs: conflicts, deadlocks and lock timeouts; a file that does not exist.
_REFUSED, _NO_FILE = "40001", "08001"


class FirebirdAdapter(SqlAdapter):
    """A database file, kept by a server or by the library itself."""

    name = "Firebird"
    isolations = promises(FIREBIRD)
    driver = driver
    placeholder = "?"
    key_type = "VARCHAR(190)"
    list_type = "VARCHAR(30000)"
    concatenation = "v || CAST({} AS VARCHAR(30))"
    begin_statement = "SET TRANSACTION NO WAIT :isolation"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if setup.session_settings:
            raise IsocheckError("Firebird has no settings of a connection: leave --set out")
        parts, port = split_address(setup.url, "an address", _FORM)
        path = unquote(parts.path[1:] if not parts.hostname else parts.path)
        if not path:
            raise IsocheckError(f"the address names no file; {_FORM}")
        self._is_remote = parts.hostname is not None
        self._place = f"{parts.hostname}/{port or 3050}:{path}" if self._is_remote else path
        self._user = {"user": unquote(parts.username or "SYSDBA"), "password": unquote(parts.password or "masterkey")}

    @override
    def version(self) -> str:
        return str(self.ask("SELECT rdb$get_context('SYSTEM', 'ENGINE_VERSION') FROM rdb$database")[0][0])

    @override
    def tables(self) -> list[str]:
        query = (
            "SELECT TRIM(r.rdb$relation_name), (SELECT LIST(TRIM(f.rdb$field_name)) FROM rdb$relation_fields f"
            " WHERE f.rdb$relation_name = r.rdb$relation_name) FROM rdb$relations r"
            " WHERE r.rdb$relation_name STARTING WITH 'ISOCHECK'"
        )
        return [str(name).lower() for name, columns in self.ask(query) if sorted(str(columns).split(",")) == ["K", "V"]]

    @override
    def is_alive(self, table: str) -> bool | None:
        """Return False if no other connection is open, otherwise None: connections have no names."""
        others = "SELECT 1 FROM mon$attachments WHERE mon$attachment_id <> CURRENT_CONNECTION AND mon$system_flag = 0"
        return None if self.ask(others) else False

    @override
    def beat(self) -> None:
        self.ask("SELECT 1 FROM rdb$database")

    @override
    def connect(self) -> SqlConnection:
        return _FirebirdConnection(self)

    @override
    def is_rejection(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == _REFUSED

    def open(self) -> Any:
        """Return a connection to the file. Create a local file that does not exist."""
        try:
            return driver.connect(self._place, **self._user)
        except driver.DatabaseError as error:
            if self._is_remote or getattr(error, "sqlstate", None) != _NO_FILE:
                raise LostError(first_line(error)) from None
            return driver.create_database(self._place, **self._user, overwrite=False)

    def create(self, keys: Sequence[str]) -> None:
        """Create the table and commit it before the insertion, because only a committed table can be used."""
        table, (kind, initial) = self.setup.table, (self.list_type, "") if self.setup.lists else (self.register_type, 0)
        self.ask(f"CREATE TABLE {table} (k {self.key_type} NOT NULL PRIMARY KEY, v {kind} NOT NULL)")
        connection = self.admin()
        with closing(connection.cursor()) as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(key, initial) for key in keys])
        connection.commit()

    def drop(self) -> None:
        """Drop the table if it exists; IF EXISTS needs Firebird 5."""
        try:
            if self.ask("SELECT 1 FROM rdb$relations WHERE rdb$relation_name = ?", [self.setup.table.upper()]):
                self.ask(f"DROP TABLE {self.setup.table}")
        finally:
            self.close_admin()

    def _ask(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        connection = self.admin()
        with closing(connection.cursor()) as cursor:
            cursor.execute(query, parameters)
            rows = list(cursor.fetchall()) if cursor.description else []
        connection.commit()
        return rows


class _FirebirdConnection(SqlConnection):
    def begin(self, isolation: str) -> None:
        # NO WAIT, because Firebird looks for deadlocks only every ten seconds.
        self.connection.begin(tpb(_KINDS[isolation], lock_timeout=0))

    def is_undone_at_commit(self, error: Exception) -> bool:
        return self.adapter.is_rejection(error)

    def commit(self) -> None:
        try:
            self.connection.commit()
        except driver.Error as error:
            raise self._failure(error, self.is_undone_at_commit(error)) from None

    def rollback(self) -> None:
        with suppress(driver.Error):
            self.connection.rollback()
