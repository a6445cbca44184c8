"""Adapter for PostgreSQL, and for servers that speak its protocol, with psycopg 3."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import AbortedError, Connection, LostError, Setup, first_line, promises
from plume_py.collect.adapters.sql import SqlAdapter, SqlConnection
from plume_py.collect.deadline import shut
from plume_py.levels.databases import POSTGRESQL

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise IsocheckError("PostgreSQL needs the driver psycopg; install it with: pip install 'psycopg[binary]'") from None

# SQLSTATEs of rejections: constraint violations (class 23), serialization failures and deadlocks (class 40), cancelled
# statements (57014), lock timeouts (55P03). The exception in class 40 leaves open whether the commit happened.
_REJECTION_CLASSES = ("23", "40")
_REJECTION_STATES = ("57014", "55P03")
_COMPLETION_UNKNOWN = "40003"
# Results of a successful statement.
_DONE = (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)

# Settings for the header of the history.
_HEADER_SETTINGS = (
    "fsync",
    "synchronous_commit",
    "max_connections",
    "default_transaction_isolation",
    "deadlock_timeout",
)
# Finds tables that may belong to a run; the comment marks tables whose run shows its name to the server.
_TABLES = (
    "SELECT relname FROM pg_class c WHERE relkind = 'r' AND relname LIKE 'isocheck\\_%%' AND pg_table_is_visible(oid)"
    " AND (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute"
    " WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) = '{k,v}'"
)
_DIRECT = "isocheck: a run connected without a pooler"
# Clients in a deadlock wait this long until the server looks for the cycle. The default of one second would take most
# of a run. Only some users may change it.
_DEADLOCK = {"deadlock_timeout": "50ms"}


class PostgresAdapter(SqlAdapter):
    """A PostgreSQL server."""

    name = "PostgreSQL"
    isolations = promises(POSTGRESQL)
    mixture = POSTGRESQL.mixture
    can_kill = True
    driver = psycopg
    begin_statement = "BEGIN ISOLATION LEVEL :isolation"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._application = f"isocheck {setup.table}"
        self._is_pooled: bool | None = None  # by a pooler; None before the first connection
        self._own_settings = dict(_DEADLOCK)

    def version(self) -> str:
        """Return ``server_version``, and learn which statement begins a transaction."""
        self._choose_begin_statement()
        return str(self._scalar("SHOW server_version"))

    def _choose_begin_statement(self) -> None:
        """Choose the statement that begins a transaction.

        Servers that only speak the protocol, such as H2, may need a separate statement for the isolation level.
        """
        try:
            self.ask("BEGIN ISOLATION LEVEL READ COMMITTED")
        except psycopg.ProgrammingError:
            self.begin_statement = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL :isolation; BEGIN"
        else:
            self.ask("ROLLBACK")

    @override
    def create(self, keys: Sequence[str]) -> None:
        super().create(keys)
        if not self._is_pooled:  # a pooler does not always show our name to the server
            with suppress(psycopg.Error):
                self.ask(f"COMMENT ON TABLE {self.setup.table} IS '{_DIRECT}'")

    @override
    def tables(self) -> list[str]:
        return [str(row[0]) for row in self.ask(_TABLES)]

    @override
    def is_alive(self, table: str) -> bool | None:
        direct = self.ask(f"{_TABLES} AND relname = %s AND obj_description(c.oid, 'pg_class') = %s", [table, _DIRECT])
        if not direct:
            return None
        return bool(self.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", [f"isocheck {table}"]))

    def settings(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for name in _HEADER_SETTINGS:
            with suppress(psycopg.Error):  # other servers that speak the protocol lack some
                known[name] = str(self._scalar(f"SHOW {name}"))
        return known

    def is_replica(self) -> bool:
        """Return whether the server is a standby, which is always in recovery."""
        with suppress(psycopg.ProgrammingError):  # another server that speaks the protocol
            return bool(self._scalar("SELECT pg_is_in_recovery()"))
        return False

    def variants(self, isolation: str) -> tuple[str, ...]:
        """Return repeatable read for serializable, which standbys reject."""
        return ("repeatable read",) if isolation == "serializable" else ()

    def connect(self) -> SqlConnection:
        return _PostgresConnection(self)

    def is_rejection(self, error: Exception) -> bool:
        state = _state(error)
        return state[:2] in _REJECTION_CLASSES or state in _REJECTION_STATES

    def describe(self, error: Exception) -> str:
        """Return the first line of the message, and its SQLSTATE."""
        state = _state(error)
        return f"{first_line(error)} ({state})" if state else first_line(error)

    def kill(self, connection: Connection) -> None:
        assert isinstance(connection, _PostgresConnection)
        with suppress(psycopg.Error):  # it is gone already
            self.ask("SELECT pg_terminate_backend(%s)", [connection.backend])

    def is_waiting(self, connection: Connection) -> bool:
        assert isinstance(connection, _PostgresConnection)
        return bool(self.ask("SELECT cardinality(pg_blocking_pids(%s)) > 0", [connection.backend])[0][0])

    def end_leftovers(self) -> bool:
        """Terminate the backends of the run, and return whether any remain."""
        others = "FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        if self._is_pooled:  # idle backends belong to the pooler and do nothing for us
            others += " AND state <> 'idle'"
        try:
            self.ask(f"SELECT pg_terminate_backend(pid) {others}", [self._application])
            return bool(self.ask(f"SELECT pid {others}", [self._application]))
        except psycopg.OperationalError:
            raise
        except psycopg.DatabaseError:  # another server that speaks the protocol lacks this table
            return False

    def open(self) -> Any:
        """Return a connection with timeouts for statements and locks."""
        connection = self._connect()
        try:
            with self.guarded(connection):
                self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: Any) -> None:
        if self._is_pooled is None:
            self._is_pooled = _is_pooled(connection)
        if self._is_pooled:
            self._adapt_to_pooler(connection)
            return
        self._apply_own_settings(connection)
        for name, value in self.setup.session_settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])

    @override
    def cut(self, connection: Any) -> None:
        with suppress(OSError, psycopg.Error):  # it may be closed already
            shut(connection.fileno())

    @override
    def fileno(self, connection: Any) -> int:
        return int(connection.fileno())

    def _connect(self) -> Any:
        limit = max(1, round(1000 * self.setup.timeout))
        # Serializable counts a scan of the whole table, which is cheap for a small one, as a read of every row.
        own = f"-c lock_timeout={limit} -c statement_timeout={limit} -c enable_seqscan=off"
        theirs = conninfo_to_dict(self.setup.url).get("options") or ""  # for example a search_path
        how: dict[str, Any] = {
            "autocommit": True,  # BEGIN and COMMIT are ours
            "connect_timeout": max(2, round(self.setup.timeout)),
            "application_name": self._application,
        }
        try:
            return psycopg.connect(self.setup.url, options=f"{theirs} {own}".strip(), **how)
        except psycopg.OperationalError as error:
            if theirs or "startup parameter" not in str(error):  # poolers reject "options"
                raise
            return psycopg.connect(self.setup.url, **how)

    def _adapt_to_pooler(self, connection: Any) -> None:
        """Avoid state that is bound to a server connection: behind a pooler, another client may use it next.

        Prepared statements are such state: each driver connection numbers its own, and could meet another client's.
        """
        if self.setup.session_settings:
            connection.close()
            raise IsocheckError(
                "there is a pooler between isocheck and PostgreSQL, so a setting is nobody's own:"
                " leave --set out, or give the address of the server itself"
            )
        self.can_kill = False  # the backend numbers are the pooler's
        connection.prepare_threshold = None

    def _apply_own_settings(self, connection: Any) -> None:
        """Apply our own settings, as far as this user may."""
        for name, value in list(self._own_settings.items()):
            try:
                connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            except psycopg.Error:
                if connection.broken:
                    raise
                self._own_settings.pop(name, None)  # later connections may not either

    def _scalar(self, query: str) -> object:
        return self.ask(query)[0][0]


class _PostgresConnection(SqlConnection):
    """Session connection that calls libpq directly: psycopg's cursors take longer than the remaining transaction."""

    def __init__(self, adapter: PostgresAdapter) -> None:
        super().__init__(adapter)
        self.backend = self.connection.info.backend_pid
        self._libpq = self.connection.pgconn
        self._encoding = self.connection.info.encoding
        self._prepared: dict[str, bytes] = {}  # query -> name in the server; empty behind a pooler
        self._answer: Any = None
        self._warnings: list[str] = []  # since COMMIT was sent
        self.connection.add_notice_handler(self._notice)

    def with_placeholders(self, words: str) -> str:
        return words.replace(":value", "$2").replace(":key", "$1")

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> None:
        if not parameters:
            self._answer = self._checked(self._libpq.exec_(query.encode()))
            return
        values = [str(parameter).encode(self._encoding) for parameter in reversed(parameters)]  # the key is the last
        if self.connection.prepare_threshold is None:
            self._answer = self._checked(self._libpq.exec_params(query.encode(), values))
            return
        if query not in self._prepared:
            name = f"isocheck_{len(self._prepared)}".encode()
            self._checked(self._libpq.prepare(name, query.encode()))
            self._prepared[query] = name
        self._answer = self._checked(self._libpq.exec_prepared(self._prepared[query], values))

    def _checked(self, answer: Any) -> Any:
        if answer.status not in _DONE:
            raise psycopg.errors.error_from_result(answer, self._encoding)
        return answer

    def next_row(self) -> tuple[bytes | None, ...] | None:
        if not self._answer.ntuples:
            return None
        return (self._answer.get_value(0, 0),)

    def changed_rows(self) -> int:
        return self._answer.command_tuples or 0

    def begin(self, isolation: str) -> None:
        for statement in self.adapter.begin_statement.replace(":isolation", isolation.upper()).split("; "):
            self.run(statement)

    def commit(self) -> None:
        self._warnings.clear()
        super().commit()
        answer = (self._answer.command_status or b"").decode("ascii", "backslashreplace")
        if answer == "ROLLBACK":  # an earlier statement failed
            raise AbortedError("COMMIT was answered by ROLLBACK")
        if self.adapter.begin_statement == PostgresAdapter.begin_statement and answer != "COMMIT":
            raise LostError(f"COMMIT was answered by {answer!r:.40}")
        if self._warnings:
            # Usually a wait for synchronous standbys was cancelled. The server has committed, but a standby that
            # replaces it may lack the transaction, so the outcome is unknown.
            raise LostError(f"COMMIT was answered with a warning: {self._warnings[0]:.200}")

    def _notice(self, diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING" or diagnostic.severity == "WARNING":
            self._warnings.append(" ".join((diagnostic.message_primary or "").split()))

    def is_undone(self, error: Exception) -> bool:
        """Return whether the error comes from the server, because every such error undoes the transaction."""
        return bool(_state(error)) and not self.connection.broken

    def is_undone_at_commit(self, error: Exception) -> bool:
        certain = self.adapter.is_rejection(error) and _state(error) != _COMPLETION_UNKNOWN
        return certain and not self.connection.broken


def _is_pooled(connection: Any) -> bool:
    """Return whether there is a pooler: then the backend's process number is not the one received on connecting."""
    try:
        backend = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    except psycopg.Error:
        return False
    return bool(backend != connection.info.backend_pid)


def _state(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""
