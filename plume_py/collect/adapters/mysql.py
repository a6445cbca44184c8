"""MySQL and MariaDB (InnoDB), with PyMySQL."""

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from plume_py.base.errors import IsocheckError
from plume_py.base.passwords import redacted, without_password
from plume_py.collect.adapter import AbortedError, Adapter, Connection, LostError, Setup, Value, promises, to_list
from plume_py.levels.databases import MYSQL

try:
    import pymysql
except ImportError:
    raise IsocheckError(
        "MySQL and MariaDB need the driver PyMySQL; install it with: pip install 'plume-py[mysql]'"
    ) from None

# Errors of a statement that leave the connection usable: lock wait timeout, deadlock, statement timeout, "record has
# changed since last read" (innodb_snapshot_isolation), query interrupted.
_REFUSED = (1205, 1213, 1020, 1317, 1969, 3024)
# Of these, an answer to COMMIT after which nothing was committed.
_REFUSED_COMMIT = (1213, 1020)

SETTLED_WITHIN = 20.0

_FORM = "write mysql://user:password@host:3306/database, special characters of the password like %40"


class MysqlAdapter(Adapter):
    """A server of MySQL or MariaDB."""

    name = "MySQL"
    isolations = promises(MYSQL)
    can_kill = True

    def __init__(self, setup: Setup) -> None:
        """See ``Adapter``."""
        super().__init__(setup)
        self._where = _parameters(setup.url)
        self._admin: Any = None
        self._threads: dict[int, float] = {}  # of our connections, and when each was made

    def version(self) -> str:
        """``VERSION()``; MariaDB says its name there."""
        version = str(self._ask("SELECT VERSION()")[0][0])
        self.name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
        return version

    def settings(self) -> dict[str, str]:
        """What decides how much a commit is worth, and what a snapshot is."""
        names = "'innodb_flush_log_at_trx_commit','sync_binlog','innodb_snapshot_isolation','tx_isolation',"
        rows = self._ask(f"SHOW VARIABLES WHERE Variable_name IN ({names}'transaction_isolation')")
        return {str(name): str(value) for name, value in rows}

    def create(self, keys: Sequence[str]) -> None:
        """An InnoDB table; keys compare byte by byte."""
        kind, initial = ("MEDIUMTEXT", "") if self.setup.lists else ("BIGINT", 0)
        table = self.setup.table
        self._ask(
            f"CREATE TABLE {table} (k VARCHAR(190) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY,"
            f" v {kind} NOT NULL) ENGINE=InnoDB"
        )
        with self._administrator().cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", [(key, initial) for key in keys])

    def connect(self) -> Connection:
        """A connection of its own."""
        connection = self._open()
        self._threads[int(connection.thread_id())] = time.monotonic()
        return _Connection(connection, self.setup)

    def contents(self) -> dict[str, Value]:
        """The whole table."""
        rows = self._ask(f"SELECT k, v FROM {self.setup.table}")
        return {key: to_list(value) if self.setup.lists else int(value) for key, value in rows}

    def drop(self) -> None:
        """Remove the table."""
        try:
            self._ask(f"DROP TABLE IF EXISTS {self.setup.table}")
        finally:
            self._close_admin()

    def kill(self, connection: Connection) -> None:
        """``KILL``."""
        assert isinstance(connection, _Connection)
        self._end_thread(connection.thread)

    def settle(self) -> None:
        """End what was left behind, and wait until it has ended."""
        deadline, problem = time.monotonic() + SETTLED_WITHIN, ""
        while time.monotonic() < deadline:
            try:
                left = self._ours() & {int(row[0]) for row in self._ask("SHOW PROCESSLIST")}
                if not left:
                    return
                problem = "connections of the run were still open"
                for thread in left:
                    self._end_thread(thread)
            except pymysql.MySQLError as error:
                problem = _text(error)
            time.sleep(0.1)
        raise LostError(f"after {SETTLED_WITHIN:.0f} s: {problem}")

    def _end_thread(self, thread: int) -> None:
        with suppress(pymysql.MySQLError):  # it is gone already
            self._ask(f"KILL {thread}")

    def _ours(self) -> set[int]:
        """Threads of the server that are surely ours: after a restart their numbers belong to others."""
        uptime = float(self._ask("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])
        began = time.monotonic() - uptime + 2  # it is told in whole seconds
        ours = {thread for thread, made in self._threads.items() if made > began}
        return ours - {int(self._administrator().thread_id())}

    def _open(self) -> Any:
        limit = max(1, round(self.setup.timeout))
        connection: Any = pymysql.connect(
            **self._where,
            autocommit=True,  # START TRANSACTION and COMMIT are ours
            connect_timeout=max(2, limit),
            read_timeout=2 * limit + 2,  # the server gives up first, so that its answer is known
            write_timeout=2 * limit + 2,
            charset="utf8mb4",
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {limit}")
            for name, value in self.setup.session_settings.items():
                if not name.replace("_", "").isalnum():
                    raise IsocheckError(f"not the name of a setting: {name!r:.40}")
                cursor.execute(f"SET SESSION {name} = %s", [value])
        return connection

    def _administrator(self) -> Any:
        if self._admin is None:
            self._admin = self._open()
        return self._admin

    def _close_admin(self) -> None:
        if self._admin is not None:
            with suppress(pymysql.MySQLError):
                self._admin.close()
            self._admin = None

    def _ask(self, query: str) -> Sequence[Sequence[Any]]:
        """A statement of the administrator; its connection may have been lost in a restart."""
        for attempt in range(2):
            try:
                with self._administrator().cursor() as cursor:
                    cursor.execute(query)
                    return list(cursor.fetchall())
            except (pymysql.OperationalError, pymysql.InterfaceError) as error:
                if attempt or error.args[0] not in (0, 2006, 2013, 2055):
                    raise
                self._close_admin()
        raise AssertionError("the second attempt returns or raises")


class _Connection(Connection):
    def __init__(self, connection: Any, setup: Setup) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._lists = setup.lists
        self.thread = int(connection.thread_id())
        self._select = f"SELECT v FROM {setup.table} WHERE k = %s"
        self._update = f"UPDATE {setup.table} SET v = %s WHERE k = %s"
        self._extend = f"UPDATE {setup.table} SET v = CONCAT(v, %s) WHERE k = %s"
        self._isolation = ""

    def begin(self, isolation: str) -> None:
        if isolation != self._isolation:
            self._run(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}")
            self._isolation = isolation
        self._run("START TRANSACTION")

    def read(self, key: str) -> Value:
        self._run(self._select, [key])
        row = self._cursor.fetchone()
        if row is None:
            raise LostError(f"the row of {key} is gone")
        return to_list(row[0]) if self._lists else int(row[0])

    def write(self, key: str, value: int) -> None:
        self._one_row(self._run(self._update, [value, key]), key)

    def append(self, key: str, value: int) -> None:
        self._one_row(self._run(self._extend, [f",{value}", key]), key)

    def commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _REFUSED_COMMIT:
                raise AbortedError(_text(error)) from None
            raise LostError(_text(error)) from None

    def rollback(self) -> None:
        self._run("ROLLBACK")

    def close(self) -> None:
        with suppress(pymysql.MySQLError):
            self._connection.close()

    def abandon(self) -> None:
        with suppress(OSError, AttributeError):
            self._connection._sock.shutdown(socket.SHUT_RDWR)

    def _run(self, query: str, parameters: Sequence[Any] = ()) -> int:
        try:
            return int(self._cursor.execute(query, parameters or None))
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _REFUSED:
                raise AbortedError(_text(error)) from None
            raise LostError(_text(error)) from None

    @staticmethod
    def _one_row(rows: int, key: str) -> None:
        if rows != 1:
            raise LostError(f"the row of {key} is gone")


def _parameters(url: str) -> dict[str, Any]:
    """What the driver wants to know of the address."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError:
        raise IsocheckError(f"not the address of a server: {without_password(url)!r:.80}; {_FORM}") from None
    if not parts.path.strip("/"):
        raise IsocheckError(f"the address names no database; {_FORM}")
    where: dict[str, Any] = {
        "host": parts.hostname or "127.0.0.1",
        "port": port,
        "user": unquote(parts.username or "root"),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
    }
    sockets = parse_qs(parts.query).get("unix_socket")
    return {**where, "unix_socket": sockets[0]} if sockets else where


def _text(error: Exception) -> str:
    """What the server said, on one line."""
    said = " ".join(str(argument) for argument in error.args[1:2]) or type(error).__name__
    return redacted(f"{said} ({error.args[0]})" if error.args else said)
