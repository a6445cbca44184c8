"""Connections to a real server whose statements a test executes one by one, also while another one holds a lock.

The server is asked whether a statement waits, so nothing depends on the speed of the machine.
"""

import threading
import time
from contextlib import contextmanager

import pytest

from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.managed import SERVERS
from plume_py.collect.registry import open_adapter

PATIENCE = 60.0
WAITING = {
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    "mariadb": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


class Stepped:
    """One connection. ``result`` returns the answer of a statement that waited, after the lock is released."""

    def __init__(self, server, level):
        self.server, self.connection = server, server.adapter.connect()
        self.connection.begin(level)
        self._thread, self._answer = None, None

    def __call__(self, statement):
        """Execute a statement that does not wait; return its rows, or the number of changed rows."""
        self.start(statement)
        return self.result()

    def waits(self, statement):
        """Execute a statement that has to wait."""
        self.start(statement)
        deadline = time.monotonic() + PATIENCE
        while not self.server.somebody_waits():
            assert self._thread.is_alive(), f"{statement} did not wait: {self._answer}"
            assert time.monotonic() < deadline
            time.sleep(0.15)  # InnoDB returns a cached answer within a tenth of a second

    def start(self, statement):
        assert self._thread is None
        self._thread = threading.Thread(target=self._execute, args=(statement,), daemon=True)
        self._thread.start()

    def _execute(self, statement):
        cursor = self.connection.cursor
        try:
            cursor.execute(statement)
            self._answer = [tuple(row) for row in cursor.fetchall()] if cursor.description else cursor.rowcount
        except Exception as error:
            self._answer = error

    def result(self):
        """Return the answer of the statement, or the server's error."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "it still waits"
        self._thread = None
        return self._answer

    def commit(self):
        self.connection.commit()

    def close(self):
        self.connection.close()


class Server:
    """A private server and its stepped connections."""

    def __init__(self, kind, adapter):
        self.kind, self.adapter, self.watcher = kind, adapter, adapter.connect()
        self.opened = []

    def tables(self, *statements):
        """Drop and create tables, one statement at a time."""
        engine = " ENGINE=InnoDB" if self.kind == "mariadb" else ""
        for statement in statements:
            name = statement.split()[2]
            if statement.startswith("CREATE"):
                self.adapter.ask(f"DROP TABLE IF EXISTS {name}")
                statement += engine
            self.adapter.ask(statement)

    def begin(self, level):
        self.opened.append(Stepped(self, level))
        return self.opened[-1]

    def ask(self, query):
        """Return the committed rows."""
        cursor = self.watcher.cursor
        cursor.execute(query)
        return [tuple(row) for row in cursor.fetchall()]

    def somebody_waits(self):
        return self.ask(WAITING[self.kind])[0][0] > 0

    def close_all(self):
        while self.opened:
            self.opened.pop().close()


@contextmanager
def server(kind):
    """A private server of this kind; the test is skipped where none is installed."""
    try:
        SERVERS[kind].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with SERVERS[kind]() as managed:
        made = Server(kind, open_adapter(Setup(managed.url)))
        try:
            yield made
        finally:
            made.close_all()
            made.watcher.close()
