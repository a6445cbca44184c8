"""Adapter for MySQL and MariaDB (InnoDB), with PyMySQL."""

import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.base.passwords import redacted
from plume_py.collect.adapter import Connection, Setup, promises, split_address
from plume_py.collect.adapters.sql import SqlAdapter, SqlConnection
from plume_py.levels.databases import MYSQL

try:
    import pymysql
except ImportError:
    raise IsocheckError("MySQL and MariaDB need the driver PyMySQL; install it with: pip install pymysql") from None

# Errors of a statement that leave the connection usable: lock wait timeout, deadlock, statement timeout, "record has
# changed since last read" (innodb_snapshot_isolation), query interrupted.
_REJECTIONS = (1205, 1213, 1020, 1317, 1969, 3024)
# Violated constraints, which also leave it usable: keys, references, checks (MariaDB, MySQL).
_CONSTRAINTS = (1062, 1451, 1452, 4025, 3819)
# Errors of COMMIT after which nothing was committed.
_COMMIT_REJECTIONS = (1213, 1020)


def _integer(text: str) -> int | str:
    """Return the integer that a server prints like this, otherwise the text.

    Python's int() would also accept 1_0, +1, blanks and digits of other scripts.
    """
    number = int(text)
    return number if str(number) == text else text


def _tolerant(decode: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a decoder that returns the text unchanged if ``decode`` fails.

    The driver's own decoder would end the connection.
    """

    def decoded(text: str) -> Any:
        try:
            return decode(text)
        except (ValueError, ArithmeticError):
            return text

    return decoded


# The driver's conversions: of our values by Python type, of the server's values by MySQL type number.
_CONVERSIONS: dict[Any, Callable[..., Any]] = {
    kind: _tolerant(_integer if convert is int else convert) if isinstance(kind, int) else convert
    for kind, convert in pymysql.converters.conversions.items()
}
_FORM = "write mysql://user:password@host:3306/database, special characters of the password like %40"


class MysqlAdapter(SqlAdapter):
    """A MySQL or MariaDB server."""

    name = "MySQL"
    isolations = promises(MYSQL)
    can_kill = True
    driver = pymysql
    begin_statement = "SET SESSION TRANSACTION ISOLATION LEVEL :isolation; START TRANSACTION"
    key_type = "VARCHAR(190) CHARACTER SET latin1 COLLATE latin1_bin"  # compares byte by byte
    list_type = "MEDIUMTEXT"
    table_options = " ENGINE=InnoDB"
    concatenation = "CONCAT(v, {})"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._where = _parameters(setup.url)
        self._threads: dict[int, float] = {}  # our connections' thread number -> time of request

    def version(self) -> str:
        """Return ``VERSION()``, and set the adapter's name, which MariaDB reports there."""
        version = str(self.ask("SELECT VERSION()")[0][0])
        self.name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
        return version

    @override
    def create(self, keys: Sequence[str]) -> None:
        with suppress(pymysql.MySQLError):  # other servers that speak the protocol
            if not self._is_galera():
                self.table_options = f"{type(self).table_options} COMMENT='{self._comment()}'"
        self.beat()
        super().create(keys)

    @override
    def beat(self) -> None:
        with suppress(pymysql.ProgrammingError, pymysql.InternalError):
            self.ask("SELECT GET_LOCK(%s, 0)", [self.setup.table])

    @override
    def tables(self) -> list[str]:
        ours = "TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'isocheck\\_%%'"
        columns = "GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION)"
        query = f"SELECT TABLE_NAME, {columns} FROM information_schema.COLUMNS WHERE {ours} GROUP BY TABLE_NAME"
        return [str(name) for name, names in self.ask(query, []) if names == "k,v"]

    @override
    def is_alive(self, table: str) -> bool | None:
        """Return whether the run's admin connection holds the lock named ``table``. Servers do not share such locks."""
        comment = (
            "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"
        )
        if self._is_galera() or self.ask(comment, [table]) != [(self._comment(),)]:
            return None
        return bool(self.ask("SELECT IS_USED_LOCK(%s)", [table])[0][0] is not None)

    def _is_galera(self) -> bool:
        return any(value == "ON" for _, value in self.ask("SHOW VARIABLES LIKE 'wsrep_on'"))

    def _comment(self) -> str:
        server = str(self.ask("SELECT CONCAT(@@hostname, ':', @@port, ':', @@server_id)")[0][0])
        return f"isocheck on {re.sub('[^A-Za-z0-9:._-]', '_', server)}"

    def settings(self) -> dict[str, str]:
        names = "'innodb_flush_log_at_trx_commit','sync_binlog','innodb_snapshot_isolation','tx_isolation',"
        names += "'wsrep_on','wsrep_sync_wait',"
        rows = self.ask(f"SHOW VARIABLES WHERE Variable_name IN ({names}'transaction_isolation')")
        return {str(name): str(value) for name, value in rows}

    def connect(self) -> SqlConnection:
        """Return a connection, and remember its thread so that it can be ended later."""
        asked = time.monotonic()
        connection = _MysqlConnection(self)
        self._threads[connection.thread] = asked
        return connection

    def connect_session(self, session: int) -> SqlConnection:
        """Connect and run a query: a cluster node without a majority accepts connections, but rejects all queries."""
        connection = self.connect()
        try:
            with self.guarded(connection.connection):
                connection.run(f"SELECT k FROM {self.setup.table} LIMIT 1")
        except BaseException:
            connection.close()
            raise
        return connection

    def is_rejection(self, error: Exception) -> bool:
        return _number(error) in (*_REJECTIONS, *_CONSTRAINTS)

    def describe(self, error: Exception) -> str:
        """Return the server's message and its number."""
        said = " ".join(str(argument) for argument in error.args[1:2]) or type(error).__name__
        return redacted(f"{said} ({error.args[0]})" if error.args else said)

    def kill(self, connection: Connection) -> None:
        assert isinstance(connection, _MysqlConnection)
        self._end_thread(connection.thread)

    def is_waiting(self, connection: Connection) -> bool:
        assert isinstance(connection, _MysqlConnection)
        waits = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %s AND trx_state = 'LOCK WAIT'"
        return bool(self.ask(waits, [connection.thread]))

    def end_leftovers(self) -> bool:
        """End the run's threads that the server lists. Return False if there are none."""
        left = self._ours() & {int(row[0]) for row in self.ask("SHOW PROCESSLIST")}
        for thread in left:
            self._end_thread(thread)
        return bool(left)

    def _end_thread(self, thread: int) -> None:
        with suppress(pymysql.MySQLError):  # it has ended already
            self.ask(f"KILL {thread}")

    def _ours(self) -> set[int]:
        """Return the server's threads that are certainly ours. After a restart their numbers belong to others.

        A thread is ours if it was requested after ``began``, an upper bound for the start of the server. The bound
        follows from ``Uptime``, in whole seconds, and from the time at which the admin connection was opened.
        """
        uptime = float(self.ask("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])
        began = min(time.monotonic() - uptime + 2, self._since)
        ours = {thread for thread, asked in self._threads.items() if asked > began}
        return ours - {int(self.admin().thread_id())}

    def open(self) -> Any:
        """Return a connection with timeouts for locks and answers."""
        limit = max(1, round(self.setup.timeout))
        connection: Any = pymysql.connect(
            **self._where,
            autocommit=True,  # START TRANSACTION and COMMIT are ours
            connect_timeout=max(2, limit),
            read_timeout=2 * limit + 2,  # the server gives up first, so that its answer arrives
            write_timeout=2 * limit + 2,
            charset="utf8mb4",
            conv=_CONVERSIONS,
            defer_connect=True,
        )
        try:
            with self.guarded(connection):
                connection.connect()
                self._set_up(connection, limit)
        except BaseException:
            self.cut(connection)
            raise
        return connection

    def _set_up(self, connection: Any, limit: int) -> None:
        with connection.cursor() as cursor:
            with suppress(pymysql.MySQLError):  # other servers that speak the protocol may lack it
                cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {limit}")
            for name, value in self.setup.session_settings.items():
                if not name.replace("_", "").isalnum():
                    raise IsocheckError(f"not the name of a setting: {name!r:.40}")
                cursor.execute(f"SET SESSION {name} = %s", [_literal(value)])

    @override
    def cut(self, connection: Any) -> None:
        with suppress(OSError, AttributeError):
            connection._sock.shutdown(socket.SHUT_RDWR)

    @override
    def fileno(self, connection: Any) -> int:
        return int(connection._sock.fileno())


class _MysqlConnection(SqlConnection):
    def __init__(self, adapter: MysqlAdapter) -> None:
        super().__init__(adapter)
        self.thread = int(self.connection.thread_id())
        self._isolation = ""

    def begin(self, isolation: str) -> None:
        if isolation != self._isolation:
            self.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}")
            self._isolation = isolation
        self.run("START TRANSACTION")

    def is_undone_at_commit(self, error: Exception) -> bool:
        return _number(error) in _COMMIT_REJECTIONS


def _literal(value: str) -> str | int | float:
    """Return the value of a setting for the driver. Numbers must be unquoted, or the server rejects them."""
    for kind in (int, float):
        with suppress(ValueError):
            number: int | float = kind(value)
            if number - number == 0:  # neither inf nor nan
                return number
    return value


def _number(error: Exception) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _parameters(url: str) -> dict[str, Any]:
    """Return the driver's connection parameters from an address."""
    parts, port = split_address(url, "the address of a server", _FORM)
    if not parts.path.strip("/"):
        raise IsocheckError(f"the address names no database; {_FORM}")
    where: dict[str, Any] = {
        "host": parts.hostname or "127.0.0.1",
        "port": port or 3306,
        "user": unquote(parts.username or "root"),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
    }
    sockets = parse_qs(parts.query).get("unix_socket")
    return {**where, "unix_socket": sockets[0]} if sockets else where
