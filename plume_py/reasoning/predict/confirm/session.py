"""One session of an execution: a connection, and a thread that runs the transactions' code.

The code of a transaction (Body) requests each statement and blocks until it is permitted, so module execution
determines the order across sessions. A recorded transaction has fixed statements; the statements of a program depend on
what it reads.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from plume_py.collect.adapter import AbortedError, Adapter, Connection, Value
from plume_py.reasoning.predict.store.store import Rollback

BEGIN, READ, CHANGE, COMMIT, ROLLBACK = "begin", "read", "change", "commit", "rollback"


class _UndoneError(BaseException):
    """The database ended the transaction. Derived from BaseException, so that program code does not catch it."""


@dataclass(frozen=True)
class StatementRequest:
    """A message: the session requests permission for its next kind of statement."""

    session: int
    what: str


@dataclass(frozen=True)
class StatementResult:
    """A message: a statement with its result, which is the value read or an exception."""

    session: int
    what: str
    key: str = ""
    value: int = 0  # that was written
    answer: Any = None


Message = StatementRequest | StatementResult


class Body:
    """The code of a transaction, with the table's keys and values."""

    def __call__(self, statements: "Statements") -> None:
        """Execute the transaction. Raise Rollback in order not to commit."""
        raise NotImplementedError


class Statements:
    """The statements that a Body may execute. Each call returns when the statement is done."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def read(self, key: str) -> Value:
        value: Value = self._session.do(READ, key)
        return value

    def change(self, key: str, value: int) -> None:
        """Write the value, or append it."""
        self._session.do(CHANGE, key, value)


class Session(threading.Thread):
    """A connection with a thread: it requests a statement, waits for permission, and reports the result."""

    def __init__(self, adapter: Adapter, number: int, isolation: str, send: Callable[[Message], None]) -> None:
        super().__init__(name=f"session {number}", daemon=True)
        self._number, self._isolation, self._send = number, isolation, send
        self._lists = adapter.setup.lists
        self.connection: Connection = adapter.connect()
        self._bodies: SimpleQueue[Body | None] = SimpleQueue()
        self._gate: SimpleQueue[bool] = SimpleQueue()

    def perform(self, body: Body) -> None:
        """Start this transaction."""
        self._bodies.put(body)

    def permit(self) -> None:
        """Permit the requested statement."""
        self._gate.put(True)

    def end(self) -> None:
        """End the thread, whatever it waits for."""
        self._gate.put(False)
        self._bodies.put(None)

    def run(self) -> None:
        try:
            while (body := self._bodies.get()) is not None:
                self._transact(body)
        finally:
            with suppress(Exception):
                self.connection.close()

    def _transact(self, body: Body) -> None:
        try:
            self.do(BEGIN)
            try:
                body(Statements(self))
            except (Rollback, AssertionError) as reason:
                self.do(ROLLBACK, reason=reason)
            else:
                self.do(COMMIT)
        except _UndoneError:
            pass
        except Exception as error:  # of the program
            self._send(StatementResult(self._number, ROLLBACK, answer=error))

    def do(self, what: str, key: str = "", value: int = 0, reason: Exception | None = None) -> Any:
        """Request the statement, wait, execute it, and report the result. An error ends the transaction."""
        self._send(StatementRequest(self._number, what))
        if not self._gate.get():
            raise _UndoneError
        try:
            answer = self._call(what, key, value)
        except Exception as error:  # the receiver of messages decides what it means
            if isinstance(error, AbortedError):
                with suppress(Exception):
                    self.connection.rollback()
            self._send(StatementResult(self._number, what, key, value, error))
            raise _UndoneError from None
        self._send(StatementResult(self._number, what, key, value, reason or answer))
        return answer

    def _call(self, what: str, key: str, value: int) -> Any:
        connection = self.connection
        if what == BEGIN:
            return connection.begin(self._isolation)
        if what == READ:
            return connection.read(key)
        if what == CHANGE:
            return (connection.append if self._lists else connection.write)(key, value)
        return connection.commit() if what == COMMIT else connection.rollback()
