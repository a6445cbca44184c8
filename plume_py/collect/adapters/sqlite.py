"""Adapter for SQLite, with the standard library: one file in WAL mode, with a connection per session."""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from plume_py.base.atomic_files import HAS_LOCKS, lock, locked
from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import LostError, Setup, promises
from plume_py.collect.adapters.sql import SqlAdapter, SqlConnection
from plume_py.collect.table_setup import is_name
from plume_py.levels.databases import SQLITE

_COLUMNS = [("k",), ("v",)]


class SqliteAdapter(SqlAdapter):
    """A database file."""

    name = "SQLite"
    isolations = promises(SQLITE)
    driver = sqlite3
    placeholder = "?"
    register_type = "INTEGER"
    begin_statements: Mapping[str, str] = {"immediate": "BEGIN IMMEDIATE"}

    def __init__(self, setup: Setup) -> None:
        """Accept ``sqlite:///relative/file`` or ``sqlite:////absolute/file``."""
        super().__init__(setup)
        self._claim: int | None = None
        form, self._path = setup.url[:10], unquote(setup.url[10:])
        if form != "sqlite:///" or self._path in ("", ":memory:"):
            raise IsocheckError("SQLite needs a file that all sessions can open; write sqlite:///test.db")

    def version(self) -> str:
        """Return the version of the library."""
        return sqlite3.sqlite_version

    def settings(self) -> dict[str, str]:
        names = ("journal_mode", "synchronous")
        return {name: str(self.ask(f"PRAGMA {name}")[0][0]) for name in names}

    def create(self, keys: Sequence[str]) -> None:
        """Create the table in WAL mode. A locked file next to the database shows that the run is alive."""
        self.ask("PRAGMA journal_mode = WAL")
        if is_name(self.setup.table):
            self._claim = os.open(self._claim_path(self.setup.table), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            lock(self._claim)
        super().create(keys)

    @override
    def drop(self) -> None:
        super().drop()
        if self._claim is not None:
            self._unclaim(self.setup.table)
            os.close(self._claim)
            self._claim = None

    @override
    def tables(self) -> list[str]:
        names = [str(row[0]) for row in self.ask("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [n for n in names if is_name(n) and self.ask("SELECT name FROM pragma_table_info(?)", [n]) == _COLUMNS]

    @override
    def is_alive(self, table: str) -> bool | None:
        if not HAS_LOCKS:
            return None
        try:
            handle = os.open(self._claim_path(table), os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # not a run of this adapter
            return None
        try:
            return not locked(handle)
        finally:
            os.close(handle)

    @override
    def drop_table(self, table: str) -> None:
        super().drop_table(table)
        self._unclaim(table)

    def _claim_path(self, table: str) -> str:
        return f"{self._path}-{table}"

    def _unclaim(self, table: str) -> None:
        with suppress(OSError):
            os.unlink(self._claim_path(table))

    def connect(self) -> SqlConnection:
        return _SqliteConnection(self)

    def is_rejection(self, error: Exception) -> bool:
        """Return whether the database was busy, the snapshot stale, the call interrupted, or a constraint violated."""
        return isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError)

    @override
    def cut(self, connection: Any) -> None:
        with suppress(sqlite3.Error):
            connection.interrupt()

    def open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, timeout=self.setup.timeout, isolation_level=None, check_same_thread=False
            )
            # NORMAL survives the end of a process, but not a power failure, which is not tested here.
            connection.execute("PRAGMA synchronous = NORMAL")
            for name, value in self.setup.session_settings.items():
                if not name.replace("_", "").isalnum() or not value.isalnum():
                    raise IsocheckError(f"not a setting of SQLite: {name!r:.40}")
                connection.execute(f"PRAGMA {name} = {value}")
        except sqlite3.Error as error:
            raise LostError(f"{self._path}: {error}") from None
        return connection


class _SqliteConnection(SqlConnection):
    def begin(self, isolation: str) -> None:
        self.run(self.adapter.begin_statements.get(isolation, self.adapter.begin_statement))

    def begin_reading(self, isolation: str) -> None:
        self.run(self.adapter.begin_statement)  # a read-only transaction needs no lock

    def is_undone_at_commit(self, error: Exception) -> bool:
        """Return whether the transaction is still open: then nothing is committed, and it will be rolled back."""
        return bool(self.connection.in_transaction)

    def rollback(self) -> None:
        if self.connection.in_transaction:  # some errors roll back already
            super().rollback()
