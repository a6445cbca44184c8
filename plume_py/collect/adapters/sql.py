"""What adapters of SQL databases share: a table of keys and values, an administrator who keeps it, its statements.

Drivers are those of Python's DB-API: connections make cursors, and the names of errors are the same in all of them.
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

# Seconds that the server gets to end what the run has left behind.
SETTLED_WITHIN = 20.0
# Of each key in the table: the bytes that it may have in one answer, and how many keys are made per second at least.
BYTES_PER_KEY, KEYS_PER_SECOND = 400, 500


class SqlAdapter(Adapter):
    """A database with one table, kept by a connection that takes no part in the run."""

    driver: ModuleType
    mark = "%s"  # stands for a parameter in a statement
    key_type = "TEXT"
    register_type, list_type = "BIGINT", "TEXT"
    engine = ""  # follows the columns of the table
    concatenation = "v || {}"
    beginning = "BEGIN"  # with :isolation where it is told
    beginnings: Mapping[str, str] = {}  # of isolations that have one of their own

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._admin: Any = None
        self._since = 0.0  # when the administrator connected, by the monotonic clock
        self._keys = 0  # in the table
        self._asking = threading.RLock()  # the administrator answers several threads, one after the other

    @abstractmethod
    def open(self) -> Any:
        """A connection of the driver, which leaves BEGIN and COMMIT to us."""

    @abstractmethod
    def connect(self) -> "SqlConnection":
        """A connection of its own, for one session."""

    @abstractmethod
    def is_refusal(self, error: Exception) -> bool:
        """Does the server refuse what it may: is it a conflict, a constraint, a limit of time?"""

    def describe(self, error: Exception) -> str:
        """What the server said, on one line."""
        return first_line(error)

    def statements(self) -> dict[str, str]:
        """Those of ``SqlConnection``."""
        table, where = self.setup.table, "WHERE k = :key"
        change = (
            {"append": f"UPDATE {table} SET v = {self.concatenation.format(':value')} {where}"}
            if self.setup.lists
            else {"w": f"UPDATE {table} SET v = :value {where}"}
        )
        beginnings = {f"begin {isolation}": words for isolation, words in self.beginnings.items()}
        return {"begin": self.beginning, **beginnings, "r": f"SELECT v FROM {table} {where}", **change}

    def create(self, keys: Sequence[str]) -> None:
        """The table with its rows, in one transaction where the database can do that."""
        table, mark = self.setup.table, self.mark
        kind, initial = (self.list_type, "") if self.setup.lists else (self.register_type, 0)
        try:
            administrator = self.administrator()
            with self.waiting(len(keys)), closing(administrator.cursor()) as cursor:
                cursor.execute("BEGIN")
                cursor.execute(f"CREATE TABLE {table} (k {self.key_type} PRIMARY KEY, v {kind} NOT NULL){self.engine}")
                cursor.executemany(f"INSERT INTO {table} VALUES ({mark}, {mark})", [(key, initial) for key in keys])
                cursor.execute("COMMIT")
        except (self.driver.Error, LostError):
            self.close_administrator()  # a transaction may be open
            raise
        self._keys = len(keys)

    def contents(self) -> dict[str, Value]:
        """All rows."""
        rows = self.ask(f"SELECT k, v FROM {self.setup.table}")
        return {key: to_value(value, self.setup.lists) for key, value in rows}

    def drop(self) -> None:
        """Remove the table; the administrator leaves."""
        try:
            self.ask(f"DROP TABLE IF EXISTS {self.setup.table}")
        finally:
            self.close_administrator()

    def drop_table(self, table: str) -> None:
        """``DROP TABLE``."""
        assert is_name(table)
        self.ask(f"DROP TABLE {table}")

    def beat(self) -> None:
        """The administrator stays connected."""
        self.ask("SELECT 1")

    def leave(self) -> None:
        """The administrator goes."""
        self.close_administrator()

    def settle(self) -> None:
        """End what was left behind, and wait until it has ended."""
        deadline, problem = time.monotonic() + SETTLED_WITHIN, ""
        while time.monotonic() < deadline:
            try:
                if not self.end_leftovers():
                    return
                problem = "connections of the run were still open"
            except (self.driver.Error, LostError) as error:
                problem = self.describe(error)
                self.close_administrator()
            time.sleep(0.1)
        raise LostError(f"after {SETTLED_WITHIN:.0f} s: {problem}")

    def end_leftovers(self) -> bool:
        """End the connections of the run that the server still has; False if it has none."""
        return False

    def cut(self, connection: Any) -> None:
        """Make the waiting call of a connection of the driver fail."""
        return

    def fileno(self, connection: Any) -> int:
        """Return the file descriptor of a connection of the driver, -1 if there is none."""
        return -1

    def waiting(self, keys: int = 0) -> AbstractContextManager[None]:
        """Guard a wait of the administrator, who works on so many ``keys`` at once."""
        administrator, seconds = self._admin, self.setup.patience + keys / KEYS_PER_SECOND
        most = LARGEST_ANSWER + BYTES_PER_KEY * max(keys, self._keys)
        return self.guarded(administrator, seconds, most)

    def guarded(
        self, connection: Any, seconds: float | None = None, most: int = LARGEST_ANSWER
    ) -> AbstractContextManager[None]:
        """Guard a wait on a connection of the driver."""
        limit = self.setup.patience if seconds is None else seconds
        return self.setup.guard.wait(limit, partial(self.cut, connection), partial(self.fileno, connection), most)

    def administrator(self) -> Any:
        """The connection that keeps the table."""
        if self._admin is None:
            self._admin = self.open()
            self._since = time.monotonic()
        return self._admin

    def close_administrator(self) -> None:
        """Let go of it; the next one who needs it gets a new one."""
        if self._admin is not None:
            with suppress(self.driver.Error, LostError), self.waiting():
                self._admin.close()
            self._admin = None

    def ask(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement of the administrator; once more if its connection was lost, as in a restart."""
        with self._asking:
            try:
                return self._ask(query, parameters)
            except (self.driver.OperationalError, self.driver.InterfaceError):
                self.close_administrator()
                return self._ask(query, parameters)

    def _ask(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        administrator = self.administrator()
        try:
            with self.waiting(), closing(administrator.cursor()) as cursor:
                cursor.execute(query, parameters)
                return list(cursor.fetchall()) if cursor.description else []
        except LostError:
            self.close_administrator()
            raise


class SqlConnection(Connection):
    """A session's connection; ``cursor`` is the driver's."""

    def __init__(self, adapter: SqlAdapter) -> None:
        self.adapter = adapter
        self.connection = adapter.open()
        self.cursor = self.connection.cursor()
        self._lists = adapter.setup.lists
        self._sql = {kind: self.marked(words) for kind, words in adapter.statements().items()}

    def marked(self, words: str) -> str:
        """A statement with the driver's marks for its parameters."""
        return words.replace(":value", self.adapter.mark).replace(":key", self.adapter.mark)

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> None:
        """Have the driver do it; errors are its own."""
        self.cursor.execute(query, parameters)

    def row(self) -> Any:
        """The next one of the answer, None if there is none."""
        return self.cursor.fetchone()

    def changed(self) -> int:
        """The number of rows that the statement has changed."""
        return int(self.cursor.rowcount)

    def is_undone(self, error: Exception) -> bool:
        """After this answer to a statement: is the transaction undone, or will it be by a rollback?"""
        return self.adapter.is_refusal(error)

    @abstractmethod
    def is_undone_at_commit(self, error: Exception) -> bool:
        """After this answer to COMMIT: is it certain that nothing was committed?"""

    def run(self, query: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement of the transaction."""
        try:
            self.execute(query, parameters)
        except self.adapter.driver.Error as error:
            raise self._failure(error, self.is_undone(error)) from None

    def read(self, key: str) -> Value:
        """By its row."""
        self.run(self._sql["r"], (key,))
        row = self.row()
        return to_value(None if row is None else row[0], self._lists)

    def write(self, key: str, value: int) -> None:
        """In its row."""
        self._change(self._sql["w"], value, key)

    def append(self, key: str, value: int) -> None:
        """At the end of the text in its row."""
        self._change(self._sql["append"], f",{value}", key)

    def commit(self) -> None:
        """``COMMIT``."""
        try:
            self.execute("COMMIT")
        except self.adapter.driver.Error as error:
            raise self._failure(error, self.is_undone_at_commit(error)) from None

    def rollback(self) -> None:
        """``ROLLBACK``."""
        self.run("ROLLBACK")

    def close(self) -> None:
        """Also if it is broken."""
        with suppress(self.adapter.driver.Error):
            self.connection.close()

    def abandon(self) -> None:
        """By the driver's connection."""
        self.adapter.cut(self.connection)

    def fileno(self) -> int:
        """Of the driver's connection."""
        return self.adapter.fileno(self.connection)

    def _failure(self, error: Exception, undone: bool) -> Exception:
        return (AbortedError if undone else LostError)(self.adapter.describe(error))

    def _change(self, query: str, value: int | str, key: str) -> None:
        self.run(query, (value, key))
        if self.changed() != 1:
            raise AnswerError(f"an UPDATE of the row of {key} changed {self.changed()} rows")
