"""The common base of the adapters for SQL databases: a table of keys and values, and its statements.

Drivers follow Python's DB-API: connections create cursors, and error classes have the same names in each driver.
"""

import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from types import ModuleType
from typing import Any

from plume_py.collect.adapter import (
    AbortedError,
    Adapter,
    AnswerError,
    Connection,
    LostError,
    Setup,
    Value,
    first_line,
    to_value,
)
from plume_py.collect.deadline import LARGEST_ANSWER
from plume_py.collect.table_setup import is_name

# Seconds for the server to end connections that the run left behind.
SETTLED_WITHIN = 20.0
# Maximum bytes per key in one answer, and minimum number of keys inserted per second.
BYTES_PER_KEY, KEYS_PER_SECOND = 400, 500


class SqlAdapter(Adapter):
    """A database with one table. An admin connection, which takes no part in the run, creates, reads and drops it."""

    driver: ModuleType
    placeholder = "%s"  # placeholder of a parameter
    key_type = "TEXT"
    register_type, list_type = "BIGINT", "TEXT"
    table_options = ""  # appended to CREATE TABLE
    concatenation = "v || {}"
    begin_statement = "BEGIN"  # may contain :isolation
    begin_statements: Mapping[str, str] = {}  # isolation level -> its special BEGIN

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._admin: Any = None
        self._since = 0.0  # when the admin connection was opened, monotonic clock
        self._keys = 0  # number of keys in the table
        self._asking = threading.RLock()  # threads share the admin connection, one at a time

    @abstractmethod
    def open(self) -> Any:
        """Return a connection of the driver that leaves BEGIN and COMMIT to the adapter."""

    @abstractmethod
    def connect(self) -> "SqlConnection":
        """Return a new connection for one session."""

    @abstractmethod
    def is_rejection(self, error: Exception) -> bool:
        """Return whether the error belongs to normal operation: a conflict, a violated constraint or a timeout."""

    def describe(self, error: Exception) -> str:
        """Return the server's message on one line."""
        return first_line(error)

    def statements(self) -> dict[str, str]:
        table, where = self.setup.table, "WHERE k = :key"
        change = (
            {"append": f"UPDATE {table} SET v = {self.concatenation.format(':value')} {where}"}
            if self.setup.lists
            else {"w": f"UPDATE {table} SET v = :value {where}"}
        )
        begin_statements = {f"begin {isolation}": words for isolation, words in self.begin_statements.items()}
        return {"begin": self.begin_statement, **begin_statements, "r": f"SELECT v FROM {table} {where}", **change}

    def create(self, keys: Sequence[str]) -> None:
        """Create the table and its rows, in one transaction if the database can do that."""
        table, placeholder = self.setup.table, self.placeholder
        kind, initial = (self.list_type, "") if self.setup.lists else (self.register_type, 0)
        try:
            connection = self.admin()
            with self.waiting(len(keys)), closing(connection.cursor()) as cursor:
                cursor.execute("BEGIN")
                cursor.execute(
                    f"CREATE TABLE {table} (k {self.key_type} PRIMARY KEY, v {kind} NOT NULL){self.table_options}"
                )
                cursor.executemany(
                    f"INSERT INTO {table} VALUES ({placeholder}, {placeholder})", [(key, initial) for key in keys]
                )
                cursor.execute("COMMIT")
        except (self.driver.Error, LostError):
            self.close_admin()  # a transaction may be open
            raise
        self._keys = len(keys)

    def contents(self) -> dict[str, Value]:
        rows = self.ask(f"SELECT k, v FROM {self.setup.table}")
        return {key: to_value(value, self.setup.lists) for key, value in rows}

    def drop(self) -> None:
        """Drop the table and close the admin connection."""
        try:
            self.ask(f"DROP TABLE IF EXISTS {self.setup.table}")
        finally:
            self.close_admin()

    def drop_table(self, table: str) -> None:
        assert is_name(table)
        self.ask(f"DROP TABLE {table}")

    def beat(self) -> None:
        """Use the admin connection, so that it remains connected."""
        self.ask("SELECT 1")

    def leave(self) -> None:
        self.close_admin()

    def settle(self) -> None:
        """End the connections that the run left behind, and wait until they have ended."""
        deadline, problem = time.monotonic() + SETTLED_WITHIN, ""
        while time.monotonic() < deadline:
            try:
                if not self.end_leftovers():
                    return
                problem = "connections of the run were still open"
            except (self.driver.Error, LostError) as error:
                problem = self.describe(error)
                self.close_admin()
            time.sleep(0.1)
        raise LostError(f"after {SETTLED_WITHIN:.0f} s: {problem}")

    def end_leftovers(self) -> bool:
        """End connections of the run that the server still has. Return False if there are none."""
        return False

    def cut(self, connection: Any) -> None:
        """Make the waiting call of a driver's connection fail."""
        return

    def fileno(self, connection: Any) -> int:
        """Return the file descriptor of a driver's connection, or -1 if there is none."""
        return -1

    def waiting(self, keys: int = 0) -> AbstractContextManager[None]:
        """Return a context manager that guards a wait of the admin connection for work on ``keys`` keys."""
        connection, seconds = self._admin, self.setup.patience + keys / KEYS_PER_SECOND
        max_bytes = LARGEST_ANSWER + BYTES_PER_KEY * max(keys, self._keys)
        return self.guarded(connection, seconds, max_bytes)

    def guarded(
        self, connection: Any, seconds: float | None = None, max_bytes: int = LARGEST_ANSWER
    ) -> AbstractContextManager[None]:
        """Return a context manager that guards a wait for a driver's connection."""
        limit = self.setup.patience if seconds is None else seconds
        return self.setup.guard.wait(limit, partial(self.cut, connection), partial(self.fileno, connection), max_bytes)

    def admin(self) -> Any:
        """Return the admin connection, opening it if necessary."""
        if self._admin is None:
            self._admin = self.open()
            self._since = time.monotonic()
        return self._admin

    def close_admin(self) -> None:
        """Close the admin connection. The next use opens a new one."""
        if self._admin is not None:
            with suppress(self.driver.Error, LostError), self.waiting():
                self._admin.close()
            self._admin = None

    def ask(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement on the admin connection.

        Retry once if the connection was lost, as in a restart.
        """
        with self._asking:
            try:
                return self._ask(query, parameters)
            except (self.driver.OperationalError, self.driver.InterfaceError):
                self.close_admin()
                return self._ask(query, parameters)

    def _ask(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        connection = self.admin()
        try:
            with self.waiting(), closing(connection.cursor()) as cursor:
                cursor.execute(query, parameters)
                return list(cursor.fetchall()) if cursor.description else []
        except LostError:
            self.close_admin()
            raise


class SqlConnection(Connection):
    """Connection of one session, on top of a connection and a cursor of the driver."""

    def __init__(self, adapter: SqlAdapter) -> None:
        self.adapter = adapter
        self.connection = adapter.open()
        self.cursor = self.connection.cursor()
        self._lists = adapter.setup.lists
        self._sql = {kind: self.with_placeholders(words) for kind, words in adapter.statements().items()}

    def with_placeholders(self, words: str) -> str:
        """Return a statement with the driver's placeholders."""
        return words.replace(":value", self.adapter.placeholder).replace(":key", self.adapter.placeholder)

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement. Errors are the driver's."""
        self.cursor.execute(query, parameters)

    def next_row(self) -> Any:
        """Return the next row of the answer, or None."""
        return self.cursor.fetchone()

    def changed_rows(self) -> int:
        """Return the number of rows that the statement changed."""
        return int(self.cursor.rowcount)

    def is_undone(self, error: Exception) -> bool:
        """Return whether this error of a statement means that the transaction is undone, at the latest by ROLLBACK."""
        return self.adapter.is_rejection(error)

    @abstractmethod
    def is_undone_at_commit(self, error: Exception) -> bool:
        """Return whether it is certain after this error of COMMIT that nothing was committed."""

    def run(self, query: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement of the transaction. If it fails, raise AbortedError or LostError."""
        try:
            self.execute(query, parameters)
        except self.adapter.driver.Error as error:
            raise self._failure(error, self.is_undone(error)) from None

    def read(self, key: str) -> Value:
        self.run(self._sql["r"], (key,))
        row = self.next_row()
        return to_value(None if row is None else row[0], self._lists)

    def write(self, key: str, value: int) -> None:
        self._change(self._sql["w"], value, key)

    def append(self, key: str, value: int) -> None:
        self._change(self._sql["append"], f",{value}", key)

    def commit(self) -> None:
        try:
            self.execute("COMMIT")
        except self.adapter.driver.Error as error:
            raise self._failure(error, self.is_undone_at_commit(error)) from None

    def rollback(self) -> None:
        self.run("ROLLBACK")

    def close(self) -> None:
        with suppress(self.adapter.driver.Error):
            self.connection.close()

    def abandon(self) -> None:
        self.adapter.cut(self.connection)

    def fileno(self) -> int:
        return self.adapter.fileno(self.connection)

    def _failure(self, error: Exception, undone: bool) -> Exception:
        return (AbortedError if undone else LostError)(self.adapter.describe(error))

    def _change(self, query: str, value: int | str, key: str) -> None:
        self.run(query, (value, key))
        if self.changed_rows() != 1:
            raise AnswerError(f"an UPDATE of the row of {key} changed {self.changed_rows()} rows")
