"""The same runs on real servers: connections that are moved on by hand, one statement at a time.

Whether one waits is asked of the server, so nothing here depends on how fast the machine is.
"""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from plume_py.collect.adapter import Setup
from plume_py.collect.managed import SERVERS
from plume_py.collect.registry import open_adapter

from .programs import GaveUpError, Scan, Select, in_order, interpret, sql, statement_sql
from .serial import frozen

PATIENCE = 30.0
KINDS = {"postgresql": "postgresql", "mysql": "mariadb"}
SPELLED = {
    "RC": "READ COMMITTED",
    "RR": "REPEATABLE READ",
    "SI": "REPEATABLE READ",
    "SER": "SERIALIZABLE",
}
# How many wait: PostgreSQL by its locks, InnoDB by a counter, which unlike its tables is always of now.
WAITING = {
    "postgresql": "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
    "mysql": "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
}


class Client:
    """A connection with a thread that executes what it is told."""

    def __init__(self, adapter):
        self.connection = adapter.connect()
        self.told, self.answered = threading.Event(), threading.Event()
        self.statement, self.answer, self.is_busy, self.ends = "", None, False, False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            self.told.wait()
            self.told.clear()
            if self.ends:
                return
            try:
                self.answer = self.statement(self.connection)
            except Exception as error:  # the server's answer, whatever it is
                self.answer = error
            self.answered.set()

    def start(self, action):
        self.statement, self.is_busy = action, True
        self.answered.clear()
        self.told.set()

    def close(self):
        self.ends = True
        self.told.set()
        self.thread.join(PATIENCE)
        self.connection.close()


def execute(query):
    def action(connection):
        cursor = connection.cursor
        cursor.execute(query)
        return [tuple(map(_number, row)) for row in cursor.fetchall()] if cursor.description else cursor.rowcount

    return action


def _number(cell):
    return None if cell is None else int(cell)


@dataclass(eq=False)
class Call:
    """One transaction on a client."""

    number: int
    session: int
    level: str
    program: Any
    status: str = "new"
    answer: Any = None
    log: list = field(default_factory=list)
    stmt: Any = None
    said: str = ""

    @property
    def is_over(self):
        return self.status in ("committed", "aborted", "gave up")


class RealRun:
    """Calls on a server, one statement at a time."""

    def __init__(self, server, app, levels, setting):
        self.server, self.app, self.waits = server, app, 0
        server.fill(app, setting.state)
        self.calls = [
            Call(i, session, levels[name], interpret(body, dict(args), app.missing))
            for i, ((session, body, args), (_, name, _)) in enumerate(
                zip(setting.bodies(app), setting.calls, strict=True)
            )
        ]

    def client(self, call):
        return self.server.clients[call.session]

    def step(self, number):
        """The next statement of this call, or its end; nothing if its session is not there yet, or it waits."""
        call = self.calls[number]
        if call.is_over or self.client(call).is_busy:
            return
        if any(not c.is_over for c in self.calls[:number] if c.session == call.session):
            return
        if call.status == "new":
            call.status = "running"
            self.client(call).connection.begin(SPELLED[call.level])
        try:
            call.stmt = call.program.send(call.answer)
            action = execute(statement_sql(call.stmt, into=False))
        except StopIteration:
            call.stmt, action = None, lambda connection: connection.commit()
        except GaveUpError:
            self.client(call).connection.cursor.execute("ROLLBACK")
            call.status = "gave up"
            self.settle()
            return
        self.client(call).start(action)
        self.settle()

    def settle(self):
        """Wait until everybody has an answer or waits for somebody."""
        deadline = time.monotonic() + PATIENCE
        while True:
            busy = [c for c in self.calls if not c.is_over and self.client(c).is_busy and c.status == "running"]
            for call in busy:
                client = self.client(call)
                if client.answered.wait(0.002):
                    client.is_busy = False
                    self.answered(call, client.answer)
                    break
            else:
                waits = not busy or (self.others_can_go_on(busy) and self.server.waiting() >= len(busy))
                # those that seemed to wait may have been answered since
                if waits and not any(self.client(c).answered.is_set() for c in busy):
                    self.waits += bool(busy)
                    return
                if time.monotonic() > deadline:
                    raise TimeoutError("somebody neither waits nor answers")

    def others_can_go_on(self, busy):
        """If not, they wait for each other, and the server has to end one of them."""
        sessions = {call.session for call in busy}
        return any(call.session not in sessions for call in self.calls if not call.is_over)

    def answered(self, call, answer):
        if isinstance(answer, Exception):
            self.client(call).connection.cursor.execute("ROLLBACK")
            call.status, call.said = "aborted", str(answer)
        elif call.stmt is None:
            call.status = "committed"
        else:
            call.answer = answer
            if isinstance(call.stmt, Select | Scan):
                call.log.append(tuple(in_order(answer)))

    def drive(self, order):
        """In this order, then one after the other to the end."""
        for number in order:
            self.step(number)
        while not all(call.is_over for call in self.calls):
            for call in self.calls:
                self.step(call.number)

    def outcome(self):
        kept = [call for call in self.calls if call.status == "committed"]
        return kept, tuple(tuple(call.log) for call in kept)

    def ends(self):
        return frozen(self.server.contents(self.app))


class Server:
    """A private server and its clients."""

    def __init__(self, store, adapter, clients=3):
        self.store, self.adapter = store, adapter
        self.watcher = adapter.connect()
        self.clients = [Client(adapter) for _ in range(clients)]
        self.tables = set()
        if store == "mysql":
            self.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 0")

    def ask(self, query):
        cursor = self.watcher.cursor
        cursor.execute(query)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def waiting(self):
        return int(self.ask(WAITING[self.store])[0][-1])

    def fill(self, app, state):
        for table in app.tables:
            if table.name not in self.tables:
                self.tables.add(table.name)
                self.ask(table.ddl() + (" ENGINE=InnoDB" if self.store == "mysql" else ""))
            self.ask(f"DELETE FROM {table.name}")
            if state[table.name]:
                rows = ", ".join(f"({', '.join(sql(row[c]) for c in table.columns)})" for row in state[table.name])
                self.ask(f"INSERT INTO {table.name} VALUES {rows}")

    def contents(self, app):
        return {
            table.name: [
                dict(zip(table.columns, map(_number, row), strict=True))
                for row in self.ask(f"SELECT {', '.join(table.columns)} FROM {table.name}")
            ]
            for table in app.tables
        }

    def close(self):
        for client in self.clients:
            client.close()
        self.watcher.close()


@contextmanager
def served(store):
    with SERVERS[KINDS[store]]() as managed:
        # statements that cost next to nothing need no compiler
        own = {"jit": "off", "enable_seqscan": "on"} if store == "postgresql" else {}
        server = Server(store, open_adapter(Setup(managed.url, session_settings=own)))
        try:
            yield server
        finally:
            server.close()
