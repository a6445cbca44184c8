"""PostgreSQL, with psycopg 3."""

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import (
    AbortedError,
    Adapter,
    Connection,
    LostError,
    Setup,
    Value,
    first_line,
    promises,
    to_list,
)
from plume_py.levels.databases import POSTGRESQL

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise IsocheckError(
        "PostgreSQL needs the driver psycopg; install it with: pip install 'plume-py[postgres]'"
    ) from None

# Answers to COMMIT after which nothing was committed: violated constraints (23), serialization failures and deadlocks
# (40), statements that were cancelled. The exception in class 40 says that it does not know.
_ABORTED_CLASSES = ("23", "40")
_ABORTED_STATES = ("57014",)
_COMPLETION_UNKNOWN = "40003"

SETTLED_WITHIN = 20.0


class PostgresAdapter(Adapter):
    """A server of PostgreSQL."""

    name = "PostgreSQL"
    isolations = promises(POSTGRESQL)
    mixture = POSTGRESQL.mixture
    can_kill = True

    def __init__(self, setup: Setup) -> None:
        """See ``Adapter``."""
        super().__init__(setup)
        self._application = f"isocheck {setup.table}"
        self._admin: psycopg.Connection[Any] | None = None

    def version(self) -> str:
        """``server_version``."""
        return str(self._scalar("SHOW server_version"))

    def settings(self) -> dict[str, str]:
        """What decides how much a commit is worth."""
        names = ("fsync", "synchronous_commit", "max_connections", "default_transaction_isolation")
        return {name: str(self._scalar(f"SHOW {name}")) for name in names}

    def create(self, keys: Sequence[str]) -> None:
        """A table of text keys."""
        kind = "text" if self.setup.lists else "bigint"
        initial: Any = "" if self.setup.lists else 0
        table = sql.Identifier(self.setup.table)
        admin = self._administrator()
        admin.execute(sql.SQL("CREATE TABLE {} (k text PRIMARY KEY, v {} NOT NULL)").format(table, sql.SQL(kind)))
        with admin.cursor() as cursor:
            insert = sql.SQL("INSERT INTO {} VALUES (%s, %s)").format(table)
            cursor.executemany(insert, [(key, initial) for key in keys])

    def connect(self) -> Connection:
        """A connection of its own."""
        return _Connection(self._open(), self.setup)

    def contents(self) -> dict[str, Value]:
        """The whole table."""
        rows = self._retrying("SELECT k, v FROM {}").fetchall()
        return {key: to_list(value) if self.setup.lists else int(value) for key, value in rows}

    def drop(self) -> None:
        """Remove the table."""
        try:
            self._retrying("DROP TABLE IF EXISTS {}")
        finally:
            self._close_admin()

    def kill(self, connection: Connection) -> None:
        """``pg_terminate_backend``."""
        assert isinstance(connection, _Connection)
        try:
            self._administrator().execute("SELECT pg_terminate_backend(%s)", [connection.backend])
        except psycopg.Error:
            self._close_admin()

    def settle(self) -> None:
        """End the backends whose clients have gone, and wait until they have."""
        deadline, problem = time.monotonic() + SETTLED_WITHIN, ""
        others = "FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        while time.monotonic() < deadline:
            try:
                admin = self._administrator()
                admin.execute(f"SELECT pg_terminate_backend(pid) {others}", [self._application])
                row = admin.execute(f"SELECT count(*) {others}", [self._application]).fetchone()
                if row is not None and row[0] == 0:
                    return
                problem = "connections of the run were still open"
            except psycopg.Error as error:
                problem = first_line(error)
                self._close_admin()
            time.sleep(0.1)
        raise LostError(f"after {SETTLED_WITHIN:.0f} s: {problem}")

    def _open(self) -> "psycopg.Connection[Any]":
        limit = max(1, round(1000 * self.setup.timeout))
        # A scan of the whole table, which is cheap for a small one, would count as a read of every row.
        own = f"-c lock_timeout={limit} -c statement_timeout={limit} -c enable_seqscan=off"
        theirs = conninfo_to_dict(self.setup.url).get("options") or ""  # a search_path, say
        connection = psycopg.connect(
            self.setup.url,
            autocommit=True,  # BEGIN and COMMIT are ours
            connect_timeout=max(2, round(self.setup.timeout)),
            application_name=self._application,
            options=f"{theirs} {own}".strip(),
        )
        for name, value in self.setup.session_settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        return connection

    def _administrator(self) -> "psycopg.Connection[Any]":
        if self._admin is None or self._admin.closed:
            self._admin = self._open()
        return self._admin

    def _close_admin(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _scalar(self, query: str) -> object:
        row = self._administrator().execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def _retrying(self, query: str) -> "psycopg.Cursor[Any]":
        """A statement of the administrator; its connection may have been lost in a restart."""
        text = sql.SQL(query).format(sql.Identifier(self.setup.table))
        try:
            return self._administrator().execute(text)
        except psycopg.OperationalError:
            self._close_admin()
            return self._administrator().execute(text)


class _Connection(Connection):
    def __init__(self, connection: "psycopg.Connection[Any]", setup: Setup) -> None:
        self._connection = connection
        self._lists = setup.lists
        self.backend = connection.info.backend_pid
        table = sql.Identifier(setup.table)
        self._select = sql.SQL("SELECT v FROM {} WHERE k = %s").format(table).as_bytes(connection)
        self._update = sql.SQL("UPDATE {} SET v = %s WHERE k = %s").format(table).as_bytes(connection)
        self._extend = sql.SQL("UPDATE {} SET v = v || %s WHERE k = %s").format(table).as_bytes(connection)

    def begin(self, isolation: str) -> None:
        self._run(f"BEGIN ISOLATION LEVEL {isolation.upper()}".encode())

    def read(self, key: str) -> Value:
        row = self._run(self._select, [key]).fetchone()
        if row is None:
            raise LostError(f"the row of {key} is gone")
        return to_list(row[0]) if self._lists else int(row[0])

    def write(self, key: str, value: int) -> None:
        self._one_row(self._run(self._update, [value, key]), key)

    def append(self, key: str, value: int) -> None:
        self._one_row(self._run(self._extend, [f",{value}", key]), key)

    def commit(self) -> None:
        try:
            answer = self._connection.execute(b"COMMIT").statusmessage
        except psycopg.Error as error:
            state = error.sqlstate or ""
            certain = state[:2] in _ABORTED_CLASSES or state in _ABORTED_STATES
            if certain and state != _COMPLETION_UNKNOWN and not self._connection.broken:
                raise AbortedError(_text(error)) from None
            raise LostError(_text(error)) from None
        if answer != "COMMIT":  # the server says ROLLBACK where there was an error before
            raise AbortedError(f"COMMIT was answered by {answer}")

    def rollback(self) -> None:
        self._run(b"ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        try:
            duplicate = os.dup(self._connection.fileno())
            with socket.socket(fileno=duplicate) as same:
                same.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            pass  # it is closed already

    def _run(self, query: bytes, parameters: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        try:
            return self._connection.execute(query, parameters or None)
        except psycopg.Error as error:
            if self._connection.broken or error.sqlstate is None:
                raise LostError(_text(error)) from None
            raise AbortedError(_text(error)) from None

    @staticmethod
    def _one_row(cursor: "psycopg.Cursor[Any]", key: str) -> None:
        if cursor.rowcount != 1:
            raise LostError(f"the row of {key} is gone")


def _text(error: Exception) -> str:
    """The first line of what the server said."""
    state = getattr(error, "sqlstate", None)
    return f"{first_line(error)} ({state})" if state else first_line(error)
