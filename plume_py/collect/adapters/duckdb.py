"""Adapter for DuckDB: one file, with all sessions in this process."""

from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import AnswerError, LostError, Setup, promises
from plume_py.collect.adapters.sql import SqlAdapter, SqlConnection
from plume_py.levels.databases import DUCKDB

try:
    import duckdb
except ImportError:
    raise IsocheckError("DuckDB needs its package; install it with: pip install duckdb") from None


class DuckdbAdapter(SqlAdapter):
    """A database file, opened once; each session has a connection to it."""

    name = "DuckDB"
    isolations = promises(DUCKDB)
    driver = duckdb
    placeholder = "?"

    def __init__(self, setup: Setup) -> None:
        """Accept ``duckdb:///relative/file`` or ``duckdb:////absolute/file``."""
        super().__init__(setup)
        form, self._path = setup.url[:10], unquote(setup.url[10:])
        if form != "duckdb:///" or not self._path:
            raise IsocheckError("DuckDB needs a file; write duckdb:///test.duckdb")
        self._database: Any = None

    @override
    def version(self) -> str:
        return str(duckdb.__version__)

    @override
    def tables(self) -> list[str]:
        query = (
            "SELECT table_name FROM information_schema.columns WHERE table_name LIKE 'isocheck%' GROUP BY table_name"
            " HAVING string_agg(column_name, ',' ORDER BY ordinal_position) = 'k,v'"
        )
        return [str(row[0]) for row in self.ask(query)]

    @override
    def is_alive(self, table: str) -> bool:
        return False  # a file belongs to one process at a time

    @override
    def connect(self) -> SqlConnection:
        return _DuckdbConnection(self)

    def is_rejection(self, error: Exception) -> bool:
        """Return whether DuckDB rejected the statement: interrupt, violated constraint, or conflict.

        The statements that fail because of an earlier conflict count as well.
        """
        return isinstance(error, duckdb.TransactionException | duckdb.ConstraintException | duckdb.InterruptException)

    def open(self) -> Any:
        """Return a connection to the file, which remains open until ``drop``."""
        try:
            if self._database is None:
                self._database = duckdb.connect(self._path)
            connection = self._database.cursor()
            for name, value in self.setup.session_settings.items():
                if not name.replace("_", "").isalnum() or not value.isalnum():
                    raise IsocheckError(f"not a setting of DuckDB: {name!r:.40}")
                connection.execute(f"SET {name} = {value}")
        except duckdb.Error as error:
            raise LostError(f"{self._path}: {error}") from None
        return connection

    @override
    def cut(self, connection: Any) -> None:
        with suppress(duckdb.Error):
            connection.interrupt()

    def drop(self) -> None:
        """Drop the table and close the file."""
        super().drop()
        if self._database is not None:
            self._database.close()
            self._database = None


class _DuckdbConnection(SqlConnection):
    def begin(self, isolation: str) -> None:
        self.run("BEGIN")

    def is_undone_at_commit(self, error: Exception) -> bool:
        return isinstance(error, duckdb.TransactionException)

    def rollback(self) -> None:
        with suppress(duckdb.TransactionException):  # a commit that fails has rolled back
            self.cursor.execute("ROLLBACK")

    def _change(self, query: str, value: int | str, key: str) -> None:
        """Run an UPDATE, which answers with the number of changed rows."""
        self.run(query, (value, key))
        if self.cursor.fetchone() != (1,):
            raise AnswerError(f"an UPDATE of the row of {key} did not change one row")
