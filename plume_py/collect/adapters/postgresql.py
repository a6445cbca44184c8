"""PostgreSQL, with psycopg 3."""

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

# Violated constraints (23), serialization failures and deadlocks (40); statements that were cancelled, also for having
# waited too long for a lock. The exception in class 40 says that it does not know whether there was a commit.
_REFUSED_CLASSES = ("23", "40")
_REFUSED_STATES = ("57014", "55P03")
_COMPLETION_UNKNOWN = "40003"
# What the server answers if it did what it was asked to.
_DONE = (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)

# Settings for the header of the history.
_TOLD = ("fsync", "synchronous_commit", "max_connections", "default_transaction_isolation", "deadlock_timeout")
# Tables that may be of a run, and the comment of those whose run shows its name to the server.
_TABLES = (
    "SELECT relname FROM pg_class c WHERE relkind = 'r' AND relname LIKE 'isocheck\\_%%' AND pg_table_is_visible(oid)"
    " AND (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute"
    " WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) = '{k,v}'"
)
_DIRECT = "isocheck: a run connected without a pooler"
# Clients that wait for each other wait so long until the server looks for the cycle. A second, which is usual, is most
# of a run; only some users may set it.
_DEADLOCK = {"deadlock_timeout": "50ms"}


class PostgresAdapter(SqlAdapter):
    """A server of PostgreSQL."""

    name = "PostgreSQL"
    isolations = promises(POSTGRESQL)
    mixture = POSTGRESQL.mixture
    can_kill = True
    driver = psycopg
    beginning = "BEGIN ISOLATION LEVEL :isolation"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._application = f"isocheck {setup.table}"
        self._is_pooled: bool | None = None  # is there a pooler between us and the server? Known after the first answer
        self._own_settings = dict(_DEADLOCK)

    def version(self) -> str:
        """``server_version``; by then it is known how to begin."""
        self._learn_to_begin()
        return str(self._scalar("SHOW server_version"))

    def _learn_to_begin(self) -> None:
        """Servers that only speak the protocol, as H2, may want to be told the isolation before."""
        try:
            self.ask("BEGIN ISOLATION LEVEL READ COMMITTED")
        except psycopg.ProgrammingError:
            self.beginning = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL :isolation; BEGIN"
        else:
            self.ask("ROLLBACK")

    @override
    def create(self, keys: Sequence[str]) -> None:
        super().create(keys)
        if not self._is_pooled:  # a pooler shows the server a name now and then only
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
        """What decides how much a commit is worth."""
        known: dict[str, str] = {}
        for name in _TOLD:
            with suppress(psycopg.Error):  # servers that only speak the protocol do not know all of them
                known[name] = str(self._scalar(f"SHOW {name}"))
        return known

    def is_replica(self) -> bool:
        """A standby is always recovering."""
        with suppress(psycopg.ProgrammingError):  # a server that only speaks the protocol
            return bool(self._scalar("SELECT pg_is_in_recovery()"))
        return False

    def variants(self, isolation: str) -> tuple[str, ...]:
        """Standbys refuse to be serializable; repeatable read is the most that they have."""
        return ("repeatable read",) if isolation == "serializable" else ()

    def connect(self) -> SqlConnection:
        """By its application name it can be told from others'."""
        return _Connection(self)

    def is_refusal(self, error: Exception) -> bool:
        """By its SQLSTATE."""
        state = _state(error)
        return state[:2] in _REFUSED_CLASSES or state in _REFUSED_STATES

    def describe(self, error: Exception) -> str:
        """The first line of what the server said, and its SQLSTATE."""
        state = _state(error)
        return f"{first_line(error)} ({state})" if state else first_line(error)

    def kill(self, connection: Connection) -> None:
        """``pg_terminate_backend``."""
        assert isinstance(connection, _Connection)
        with suppress(psycopg.Error):  # it is gone already
            self.ask("SELECT pg_terminate_backend(%s)", [connection.backend])

    def is_waiting(self, connection: Connection) -> bool:
        """``pg_blocking_pids``."""
        assert isinstance(connection, _Connection)
        return bool(self.ask("SELECT cardinality(pg_blocking_pids(%s)) > 0", [connection.backend])[0][0])

    def end_leftovers(self) -> bool:
        """The backends whose clients have gone."""
        others = "FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        if self._is_pooled:  # what is idle there is the pooler's, and not at work for us
            others += " AND state <> 'idle'"
        try:
            self.ask(f"SELECT pg_terminate_backend(pid) {others}", [self._application])
            return bool(self.ask(f"SELECT pid {others}", [self._application]))
        except psycopg.OperationalError:
            raise
        except psycopg.DatabaseError:  # a server that only speaks the protocol, and keeps no such table
            return False

    def open(self) -> Any:
        """With limits of time for statements and locks."""
        connection = self._dialled()
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
            self._take_care(connection)
            return
        self._prefer(connection)
        for name, value in self.setup.session_settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])

    @override
    def cut(self, connection: Any) -> None:
        with suppress(OSError, psycopg.Error):  # it may be closed already
            shut(connection.fileno())

    @override
    def fileno(self, connection: Any) -> int:
        return int(connection.fileno())

    def _dialled(self) -> Any:
        limit = max(1, round(1000 * self.setup.timeout))
        # A scan of the whole table, which is cheap for a small one, would count as a read of every row.
        own = f"-c lock_timeout={limit} -c statement_timeout={limit} -c enable_seqscan=off"
        theirs = conninfo_to_dict(self.setup.url).get("options") or ""  # a search_path, say
        how: dict[str, Any] = {
            "autocommit": True,  # BEGIN and COMMIT are ours
            "connect_timeout": max(2, round(self.setup.timeout)),
            "application_name": self._application,
        }
        try:
            return psycopg.connect(self.setup.url, options=f"{theirs} {own}".strip(), **how)
        except psycopg.OperationalError as error:
            if theirs or "startup parameter" not in str(error):  # which poolers refuse, as it is for one connection
                raise
            return psycopg.connect(self.setup.url, **how)

    def _take_care(self, connection: Any) -> None:
        """What belongs to a connection of the server may be met by another client's transaction behind a pooler.

        So are prepared statements: each connection of the driver numbers its own, and may be answered by another's.
        """
        if self.setup.session_settings:
            connection.close()
            raise IsocheckError(
                "there is a pooler between isocheck and PostgreSQL, so a setting is nobody's own:"
                " leave --set out, or give the address of the server itself"
            )
        self.can_kill = False  # the numbers of backends are the pooler's
        connection.prepare_threshold = None

    def _prefer(self, connection: Any) -> None:
        """Our own settings, as far as this user may set them."""
        for name, value in list(self._own_settings.items()):
            try:
                connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            except psycopg.Error:
                if connection.broken:
                    raise
                self._own_settings.pop(name, None)  # nor may the others

    def _scalar(self, query: str) -> object:
        return self.ask(query)[0][0]


class _Connection(SqlConnection):
    """Statements go to libpq, which psycopg stands on: cursors take more time than all the rest of a transaction."""

    def __init__(self, adapter: PostgresAdapter) -> None:
        super().__init__(adapter)
        self.backend = self.connection.info.backend_pid
        self._libpq = self.connection.pgconn
        self._encoding = self.connection.info.encoding
        self._prepared: dict[str, bytes] = {}  # what the server calls them; behind a pooler none
        self._answer: Any = None
        self._warnings: list[str] = []  # since COMMIT was sent
        self.connection.add_notice_handler(self._notice)

    def marked(self, words: str) -> str:
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

    def row(self) -> tuple[bytes | None, ...] | None:
        if not self._answer.ntuples:
            return None
        return (self._answer.get_value(0, 0),)

    def changed(self) -> int:
        return self._answer.command_tuples or 0

    def begin(self, isolation: str) -> None:
        for statement in self.adapter.beginning.replace(":isolation", isolation.upper()).split("; "):
            self.run(statement)

    def commit(self) -> None:
        self._warnings.clear()
        super().commit()
        answer = (self._answer.command_status or b"").decode("ascii", "backslashreplace")
        if answer == "ROLLBACK":  # there was an error before
            raise AbortedError("COMMIT was answered by ROLLBACK")
        if self.adapter.beginning == PostgresAdapter.beginning and answer != "COMMIT":
            raise LostError(f"COMMIT was answered by {answer!r:.40}")
        if self._warnings:
            # The usual one: a wait for synchronous standbys was cancelled. The server has committed, but a standby
            # that replaces it may lack the transaction, so "committed" would be too much.
            raise LostError(f"COMMIT was answered with a warning: {self._warnings[0]:.200}")

    def _notice(self, diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING" or diagnostic.severity == "WARNING":
            self._warnings.append(" ".join((diagnostic.message_primary or "").split()))

    def is_undone(self, error: Exception) -> bool:
        """Any error undoes a transaction, if it comes from the server."""
        return bool(_state(error)) and not self.connection.broken

    def is_undone_at_commit(self, error: Exception) -> bool:
        certain = self.adapter.is_refusal(error) and _state(error) != _COMPLETION_UNKNOWN
        return certain and not self.connection.broken


def _is_pooled(connection: Any) -> bool:
    """Does somebody else answer for the server? Then the number of the backend is not what we were told at first."""
    try:
        backend = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    except psycopg.Error:
        return False
    return bool(backend != connection.info.backend_pid)


def _state(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""
