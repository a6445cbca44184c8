"""SQLite, with the standard library: one file, in WAL mode, as many connections as sessions."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import AbortedError, Adapter, Connection, LostError, Setup, Value, promises, to_list
from plume_py.levels.databases import SQLITE


class SqliteAdapter(Adapter):
    """A database file."""

    name = "SQLite"
    isolations = promises(SQLITE)

    def __init__(self, setup: Setup) -> None:
        """``sqlite:///relative/file`` or ``sqlite:////absolute/file``."""
        super().__init__(setup)
        form, self._path = setup.url[:10], unquote(setup.url[10:])
        if form != "sqlite:///" or self._path in ("", ":memory:"):
            raise IsocheckError("SQLite needs a file that all sessions can open; write sqlite:///test.db")
        self._admin: sqlite3.Connection | None = None

    def version(self) -> str:
        """That of the library."""
        return sqlite3.sqlite_version

    def settings(self) -> dict[str, str]:
        """How the file is written."""
        names = ("journal_mode", "synchronous")
        return {name: str(self._administrator().execute(f"PRAGMA {name}").fetchone()[0]) for name in names}

    def create(self, keys: Sequence[str]) -> None:
        """A table in a file that is in WAL mode from now on."""
        admin = self._administrator()
        admin.execute("PRAGMA journal_mode = WAL")
        kind, initial = ("TEXT", "") if self.setup.lists else ("INTEGER", 0)
        admin.execute("BEGIN IMMEDIATE")
        admin.execute(f"CREATE TABLE {self.setup.table} (k TEXT PRIMARY KEY, v {kind} NOT NULL)")
        admin.executemany(f"INSERT INTO {self.setup.table} VALUES (?, ?)", [(key, initial) for key in keys])
        admin.execute("COMMIT")

    def connect(self) -> Connection:
        """A connection of its own, for the thread that uses it."""
        return _Connection(self._open(), self.setup)

    def contents(self) -> dict[str, Value]:
        """The whole table."""
        rows = self._administrator().execute(f"SELECT k, v FROM {self.setup.table}")
        return {key: to_list(value) if self.setup.lists else int(value) for key, value in rows}

    def drop(self) -> None:
        """Remove the table."""
        admin = self._administrator()
        admin.execute(f"DROP TABLE IF EXISTS {self.setup.table}")
        admin.close()
        self._admin = None

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, timeout=self.setup.timeout, isolation_level=None, check_same_thread=False
            )
            # Power failures are not what is tested here; processes may end at any time all the same.
            connection.execute("PRAGMA synchronous = NORMAL")
            for name, value in self.setup.session_settings.items():
                if not name.replace("_", "").isalnum() or not value.isalnum():
                    raise IsocheckError(f"not a setting of SQLite: {name!r:.40}")
                connection.execute(f"PRAGMA {name} = {value}")
        except sqlite3.Error as error:
            raise LostError(f"{self._path}: {error}") from None
        return connection

    def _administrator(self) -> sqlite3.Connection:
        self._admin = self._admin or self._open()
        return self._admin


class _Connection(Connection):
    def __init__(self, connection: sqlite3.Connection, setup: Setup) -> None:
        self._connection = connection
        self._lists = setup.lists
        self._select = f"SELECT v FROM {setup.table} WHERE k = ?"
        self._update = f"UPDATE {setup.table} SET v = ? WHERE k = ?"
        self._extend = f"UPDATE {setup.table} SET v = v || ? WHERE k = ?"

    def begin(self, isolation: str) -> None:
        self._run("BEGIN")

    def read(self, key: str) -> Value:
        row = self._run(self._select, (key,)).fetchone()
        if row is None:
            raise LostError(f"the row of {key} is gone")
        return to_list(row[0]) if self._lists else int(row[0])

    def write(self, key: str, value: int) -> None:
        self._one_row(self._run(self._update, (value, key)), key)

    def append(self, key: str, value: int) -> None:
        self._one_row(self._run(self._extend, (f",{value}", key)), key)

    def commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            # As long as the transaction is open nothing of it is committed, and it will be rolled back.
            if self._connection.in_transaction:
                raise AbortedError(str(error)) from None
            raise LostError(str(error)) from None

    def rollback(self) -> None:
        if self._connection.in_transaction:  # some errors roll back by themselves
            self._run("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.interrupt()

    def _run(self, query: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(query, parameters)
        except sqlite3.OperationalError as error:  # busy, stale snapshot, interrupted
            raise AbortedError(str(error)) from None
        except sqlite3.Error as error:
            raise LostError(str(error)) from None

    @staticmethod
    def _one_row(cursor: sqlite3.Cursor, key: str) -> None:
        if cursor.rowcount != 1:
            raise LostError(f"the row of {key} is gone")
