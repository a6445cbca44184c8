"""Run a script on a real database, one statement at a time in a given order, and record the history.

A statement that waits for a lock is left waiting while other sessions continue. So an order that leads to a deadlock
causes one, and the database ends it. If the database rejects a statement, the transaction ends there. A program may
execute more statements than planned, or fewer; additional ones run before its COMMIT.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import AbortedError, Adapter, Value, first_line
from plume_py.collect.client import now
from plume_py.collect.recorder import Recorder
from plume_py.reasoning.predict.confirm.interleaving import COMMITS, Step
from plume_py.reasoning.predict.confirm.script import Script, ScriptedTransaction
from plume_py.reasoning.predict.confirm.session import (
    CHANGE,
    COMMIT,
    READ,
    ROLLBACK,
    Body,
    Message,
    Session,
    StatementRequest,
    StatementResult,
    Statements,
)
from plume_py.reasoning.predict.store.store import Rollback

# Seconds. LOOK: between queries whether a pending statement waits for a lock; InnoDB returns a cached answer within a
# tenth of a second. PATIENCE: if the database does not answer, a statement counts as waiting after this time. GRACE:
# added to the database's own time limit, after which the run fails.
LOOK, PATIENCE, GRACE = 0.15, 3.0, 5.0


@dataclass(frozen=True)
class Refusal:
    """A statement that the database rejected."""

    txn: int
    statement: str
    error: str


@dataclass(frozen=True)
class DoneStatement:
    """A completed statement: the value that it read, or wrote."""

    what: str
    key: str
    value: Value


@dataclass
class ExecutionRecord:
    """What happened in one execution of a script."""

    done: dict[int, list[DoneStatement]] = field(default_factory=dict)  # transaction -> its statements
    refusals: list[Refusal] = field(default_factory=list)
    gave_up: list[tuple[int, str]] = field(default_factory=list)  # transactions that rolled back, with reasons
    failures: list[str] = field(default_factory=list)  # assertions of the program
    committed: list[str] = field(default_factory=list)  # ids, in the order of their commits
    waited: list[int] = field(default_factory=list)  # transactions that waited for a lock
    writer: dict[int, int] = field(default_factory=dict)  # value -> the transaction that wrote it


class ScriptedBody(Body):
    """A transaction that executes its scripted statements."""

    def __init__(self, txn: ScriptedTransaction) -> None:
        self._txn = txn

    def __call__(self, statements: Statements) -> None:
        for statement in self._txn.statements:
            if statement.kind == "r":
                statements.read(statement.key)
            else:
                statements.change(statement.key, statement.value)


class Conductor:
    """Executes the steps of one order."""

    def __init__(
        self,
        adapter: Adapter,
        script: Script,
        isolation: str,
        recorder: Recorder,
        bodies: "dict[int, Body] | None" = None,
    ) -> None:
        """``bodies``: by transaction. A transaction without one executes its scripted statements."""
        self._adapter, self._script, self._isolation, self._recorder = adapter, script, isolation, recorder
        self._bodies = bodies or {}
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._sessions: list[Session] = []
        self._session_of = {t: s for s, members in enumerate(script.sessions) for t in members}
        self._current: dict[int, int] = {}  # session -> its running transaction
        self._requested: dict[int, str] = {}  # session -> its next kind of statement
        self._working: set[int] = set()  # sessions with a pending statement
        self._lines: dict[int, dict[str, Any]] = {}  # transaction that has begun -> its record
        self.played = ExecutionRecord()

    def play(self, steps: Sequence[Step]) -> ExecutionRecord:
        """Execute the steps, and record every transaction."""
        try:
            for number in range(len(self._script.sessions)):
                self._sessions.append(self._connected(number))
                self._sessions[-1].start()
            pending = list(steps)
            while pending or self._current:
                step = next((step for step in pending if self._session_of[step.txn] not in self._working), None)
                if step is None:
                    self._take(self._next(self._patience))
                elif self._advance(step):
                    pending.remove(step)
        finally:
            self._end()
        return self.played

    def _connected(self, number: int) -> Session:
        try:
            return Session(self._adapter, number, self._isolation, self._messages.put)
        except Exception as error:
            raise self._failure(first_line(error)) from None

    @property
    def _patience(self) -> float:
        return self._adapter.setup.timeout + GRACE

    def _advance(self, step: Step) -> bool:
        """Let the step's session continue by one statement; return whether the step is done."""
        session = self._session_of[step.txn]
        if step.txn not in self._lines:
            self._begin(step.txn, session)
        elif self._current.get(session) == step.txn and session not in self._requested:
            self._await_request(session)  # its statement waited for a lock; it may need time for the next one
        if self._current.get(session) != step.txn or session in self._working:
            return self._current.get(session) != step.txn
        is_last = self._requested[session] in (COMMIT, ROLLBACK)
        if step.statement != COMMITS and is_last:
            return True  # fewer statements than planned: it ends at its COMMIT step
        self._permit_next(session)
        return step.statement != COMMITS or is_last

    def _begin(self, t: int, session: int) -> None:
        txn = self._script.transactions[t]
        line: dict[str, Any] = {"id": txn.id, "session": txn.session}
        level = self._adapter.isolations[self._isolation].level
        if level is not None:
            line["level"] = level
        self._lines[t] = {**line, "isolation": self._isolation, "start": now(), "ops": []}
        self.played.done[t] = []
        self._current[session] = t
        self._sessions[session].perform(self._bodies.get(t) or ScriptedBody(txn))
        self._await_request(session)
        self._permit_next(session)  # BEGIN

    def _permit_next(self, session: int) -> None:
        if session in self._requested:
            del self._requested[session]
            self._working.add(session)
            self._sessions[session].permit()
        self._await_request(session)

    def _await_request(self, session: int) -> None:
        """Wait until the session's next statement, the end of its transaction, or a lock that it waits for."""
        since = time.monotonic()
        while session in self._current and session not in self._requested:
            try:
                self._take(self._messages.get(timeout=LOOK))
                continue
            except Empty:
                passed = time.monotonic() - since
            if session in self._working and self._waits(session, passed):
                self.played.waited.append(self._current[session])
                return
            if passed > self._patience:
                raise self._failure(f"no answer for {passed:.0f} s")

    def _waits(self, session: int, passed: float) -> bool:
        waits = None
        with suppress(Exception):  # the user may lack the privilege
            waits = self._adapter.is_waiting(self._sessions[session].connection)
        return passed > PATIENCE if waits is None else waits

    def _next(self, patience: float) -> Message:
        try:
            return self._messages.get(timeout=patience)
        except Empty:
            raise self._failure(f"no answer for {patience:.0f} s") from None

    def _failure(self, problem: str) -> InputError:
        return InputError(
            f"the run could not be brought to its end: {problem}", hint="is the server still there?"
        ).in_source(without_password(self._adapter.setup.url))

    def _take(self, message: Message) -> None:
        if isinstance(message, StatementRequest):
            self._requested[message.session] = message.what
            return
        self._working.discard(message.session)
        t = self._current[message.session]
        if message.what in (READ, CHANGE):
            self._take_statement(t, message)
        if message.what == ROLLBACK:
            self._take_rollback(t, message)
        elif isinstance(message.answer, Exception):
            self._take_refusal(t, message, message.answer)
        elif message.what == COMMIT:
            self._is_over(message.session, "committed")

    def _take_statement(self, t: int, message: StatementResult) -> None:
        """Record a statement. A failed write is recorded, too, because others may have read it."""
        ops = self._lines[t]["ops"]
        if message.what == CHANGE:
            self.played.writer[message.value] = t
            ops.append(["append" if self._script.lists else "w", message.key, message.value])
        elif not isinstance(message.answer, Exception):
            ops.append(["r", message.key, message.answer])
        if not isinstance(message.answer, Exception):
            value = message.answer if message.what == READ else message.value
            self.played.done[t].append(DoneStatement(message.what, message.key, value))

    def _take_refusal(self, t: int, message: StatementResult, error: Exception) -> None:
        if not isinstance(error, AbortedError):
            raise self._failure(first_line(error))
        shown = {READ: f"r({message.key})", CHANGE: f"w({message.key}, {message.value})"}
        what = shown.get(message.what, message.what.upper())
        self.played.refusals.append(Refusal(t, what, first_line(error)))
        self._is_over(message.session, "aborted")

    def _take_rollback(self, t: int, message: StatementResult) -> None:
        """Record that the transaction rolled back, or raise the error of a defective program."""
        reason, name = message.answer, self._script.transactions[t].id
        if isinstance(reason, AssertionError):
            self.played.failures.append(f"{name}: {reason}")
        elif isinstance(reason, Rollback):
            self.played.gave_up.append((t, str(reason)))
        elif isinstance(reason, IsocheckError):
            raise reason
        else:
            raise IsocheckError(f"{name} fails: {type(reason).__name__}: {first_line(reason)}")
        self._is_over(message.session, "aborted")

    def _is_over(self, session: int, status: str) -> None:
        t = self._current.pop(session)
        self._requested.pop(session, None)
        if status == "committed":
            self.played.committed.append(self._script.transactions[t].id)
        self._recorder.record({**self._lines[t], "status": status, "end": now()})

    def _end(self) -> None:
        """End all threads and connections."""
        for number, session in enumerate(self._sessions):
            if number in self._working:
                session.connection.abandon()
            session.end()
        for session in self._sessions:
            session.join(GRACE)
