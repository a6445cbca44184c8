"""One session of a replay: a connection and a thread, in which the bodies of transactions run.

A body asks for each of its statements, and gets it when it is allowed to; so its order among those of the others is for
somebody else to say (``execution``). What a recorded transaction does is fixed; a program's depends on what it reads.
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
    """The transaction is over, by no wish of its own; nothing that a body catches."""


@dataclass(frozen=True)
class Asks:
    """What a session wants to do next."""

    session: int
    what: str


@dataclass(frozen=True)
class Did:
    """What it did, and what came of it: what was read, or what went wrong."""

    session: int
    what: str
    key: str = ""
    value: int = 0  # written
    answer: Any = None


Message = Asks | Did


class Body:
    """What a transaction does; ``key`` and ``value`` are those of the table."""

    def __call__(self, statements: "Statements") -> None:
        """Do it; Rollback if it does not want to commit."""
        raise NotImplementedError


class Statements:
    """What a body may do: each call comes back when it was done."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def read(self, key: str) -> Value:
        """What the database shows."""
        value: Value = self._session.do(READ, key)
        return value

    def change(self, key: str, value: int) -> None:
        """Write it, or append it."""
        self._session.do(CHANGE, key, value)


class Session(threading.Thread):
    """A connection; it says what it wants, waits until it may, and says what came of it."""

    def __init__(self, adapter: Adapter, number: int, isolation: str, tell: Callable[[Message], None]) -> None:
        super().__init__(name=f"session {number}", daemon=True)
        self._number, self._isolation, self._tell = number, isolation, tell
        self._lists = adapter.setup.lists
        self.connection: Connection = adapter.connect()
        self._bodies: SimpleQueue[Body | None] = SimpleQueue()
        self._gate: SimpleQueue[bool] = SimpleQueue()

    def perform(self, body: Body) -> None:
        """Begin with this transaction."""
        self._bodies.put(body)

    def go_on(self) -> None:
        """It may do what it asked for."""
        self._gate.put(True)

    def end(self) -> None:
        """Whatever it is waiting for."""
        self._gate.put(False)
        self._bodies.put(None)

    def run(self) -> None:
        """One transaction after the other."""
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
        except Exception as error:  # of a program
            self._tell(Did(self._number, ROLLBACK, answer=error))

    def do(self, what: str, key: str = "", value: int = 0, reason: Exception | None = None) -> Any:
        """Ask, wait, do it, tell; a refusal ends the transaction."""
        self._tell(Asks(self._number, what))
        if not self._gate.get():
            raise _UndoneError
        try:
            answer = self._call(what, key, value)
        except Exception as error:  # told to the one who conducts, and to be judged there
            if isinstance(error, AbortedError):
                with suppress(Exception):
                    self.connection.rollback()
            self._tell(Did(self._number, what, key, value, error))
            raise _UndoneError from None
        self._tell(Did(self._number, what, key, value, reason or answer))
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
