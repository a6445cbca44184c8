"""One session at work: its connection, its transactions, and what became of each.

When is an outcome certain? Before COMMIT is sent, every error means aborted: nobody asked the database to keep
anything, and a connection that is closed takes its transaction with it. After that only an answer counts: "done" is
committed, a refusal that the adapter calls certain is aborted, and everything else (a lost connection, a timeout) is
unknown. An answer that no working database gives ends the run.

A transaction of unknown outcome is the last of its session, as in Jepsen: it may still be at work in the server when
the client goes on, so nothing that follows may be said to come after it. The client goes on under a new session number.
"""

import random
import struct
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from plume_py.collect.adapter import AbortedError, Adapter, AnswerError, Connection, first_line
from plume_py.collect.benchmarks import NamedPlan, Plan
from plume_py.collect.recorder import Recorder
from plume_py.collect.workload import Shape, Workload
from plume_py.history.throughput import STATUSES, Ended

# What Python raises where an adapter does not understand an answer.
_MISUNDERSTOOD = (ValueError, TypeError, LookupError, ArithmeticError, AssertionError, struct.error)
# Seconds between attempts to connect, from … to.
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0


@dataclass(frozen=True)
class Isolation:
    """At which isolation a transaction runs, the level that is recorded for it, and what is to be said about that."""

    name: str
    level: str | None
    weight: float = 1.0
    remark: str = ""


@dataclass
class Task:
    """What all clients of a run share."""

    adapter: Adapter
    shape: Shape
    workload: Workload
    isolations: list[Isolation]
    recorder: Recorder
    stop: threading.Event
    retries: int = 0
    give_up: float = 30.0
    patience: float = 11.0  # seconds after which a connection that does not answer is cut
    by_kind: Mapping[str, Isolation] = field(default_factory=dict)  # of transactions of a mix, before all others
    during: Callable[[int], str] = lambda start: ""  # the faults since then
    began: int = 0  # when the run did
    problem: str = ""  # an answer that ends the run

    def fail(self, problem: str) -> None:
        """End the run for all clients."""
        self.problem = self.problem or problem
        self.stop.set()


class Client(threading.Thread):
    """A thread that plays one session."""

    def __init__(self, task: Task, number: int) -> None:
        super().__init__(name=f"session {number}", daemon=True)
        self._task = task
        self._number = number
        self.session = number  # grows by the number of sessions after each unknown outcome
        self._rng = random.Random(f"{task.shape.seed}:{number}:client")
        self._count = 0
        self._next_value = 1 + number
        self.connection: Connection | None = None
        self.at_commit: Callable[[], None] | None = None  # somebody wants to know when the next commit is sent
        self.reasons: Counter[str] = Counter()
        self.given_up = ""
        self._ended = array("q")  # of each transaction: its end, how long it took, its outcome

    @property
    def ended(self) -> Iterator[Ended]:
        """What became of its transactions and when, in seconds from the beginning of the run."""
        found = iter(self._ended)
        for end, took, status in zip(found, found, found, strict=True):
            yield (end - self._task.began) / TICKS_PER_SECOND, took / TICKS_PER_SECOND, status

    def run(self) -> None:
        """Play the plans, until they are over or a stop is asked for."""
        try:
            plans = self._task.workload.plans(self._number)
            if not self._connected():
                return
            for _, due in zip(range(self._task.shape.transactions), self._due(), strict=False):
                if not self._play(next(plans), due):
                    return
        except AnswerError as error:
            self._task.fail(first_line(error))
        except Exception as error:  # a defect, of an adapter or of ours: told, and the others go on
            self.given_up = f"{type(error).__name__}: {error}"
        finally:
            self._disconnect()

    def _due(self) -> Iterator[int | None]:
        """Wait until the next transaction is to begin; and when that was, if it has a time of its own."""
        shape, stop = self._task.shape, self._task.stop
        if shape.rate:
            begin = now()  # what was due before there was a connection is nobody's
            for due in (self._task.began + after for after in arrivals(shape, self._number)):
                if due >= begin:
                    wait = (due - now()) / TICKS_PER_SECOND
                    if wait > 0:
                        stop.wait(wait)
                    yield due
        while True:
            yield None
            if shape.think:
                stop.wait(self._rng.random() * 2 * shape.think / 1000)

    def _play(self, plan: Plan, due: int | None) -> bool:
        """One transaction and its retries; False when it is time to end."""
        for _ in range(1 + self._task.retries):
            if self._task.stop.is_set() or self._task.recorder.problem or not self._connected():
                return False
            if self._transact(plan, due) != "aborted":
                break
        return True

    def _transact(self, plan: Plan, due: int | None) -> str:
        isolation = self._isolation(plan)
        self._count += 1
        transaction: dict[str, Any] = {"id": f"s{self._number}.{self._count}", "session": self.session}
        if isolation.level is not None:
            transaction["level"] = isolation.level
        # it begins before anything is sent, and ends when the answer is there: others count on both
        start = now()
        transaction |= {"isolation": isolation.name, "start": start, "ops": []}
        if due is not None:
            transaction["due"] = due
        status, reason = self._outcome(isolation.name, plan, transaction)
        end = now()
        self._ended.extend((end, end - (start if due is None else due), STATUSES.index(status)))
        during = self._task.during(start)
        if during:
            transaction["during"] = during
        if status == "unknown":
            transaction["reason"] = reason
        self._task.recorder.record({**transaction, "status": status, "end": end})
        if reason:
            self.reasons[reason] += 1
        if status == "unknown":
            self.session += self._task.shape.sessions
        return status

    def _outcome(self, isolation: str, plan: Plan, transaction: dict[str, Any]) -> tuple[str, str]:
        """Run ``plan`` and fill in what was done; the outcome, and what the database said if it is not committed."""
        connection = self.connection
        assert connection is not None
        try:
            with self._waiting(connection):
                self._begin(connection, isolation, plan, transaction)
            self._operate(connection, plan, transaction["ops"])
            self._task.recorder.intend(transaction)
        except AbortedError as error:
            self._undo(connection)
            return "aborted", first_line(error)
        except AnswerError:
            self._disconnect(is_broken=True)
            raise
        except Exception as error:
            self._disconnect(is_broken=True)
            return "aborted", first_line(error)
        self._tell_commit()
        try:
            with self._waiting(connection):
                connection.commit()
        except AbortedError as error:
            self._undo(connection)
            return "aborted", first_line(error)
        except Exception as error:
            self._disconnect(is_broken=True)
            if isinstance(error, AnswerError):
                self._task.fail(first_line(error))
            return "unknown", first_line(error)
        return "committed", ""

    def _begin(self, connection: Connection, isolation: str, plan: Plan, transaction: dict[str, Any]) -> None:
        """Begin, and fill in where and at which isolation that was, if not as asked; also if it fails."""
        reads_only = all(kind == "r" for kind, _ in plan)
        try:
            (connection.begin_reading if reads_only else connection.begin)(isolation)
        finally:
            if connection.node:
                transaction["node"] = connection.node
            if connection.isolation not in ("", isolation):
                transaction["isolation"] = connection.isolation
                transaction["level"] = self._task.adapter.isolations[connection.isolation].level

    def _operate(self, connection: Connection, plan: Plan, ops: list[list[Any]]) -> None:
        lists, pause = self._task.shape.lists, self._task.shape.pause
        for i, (kind, key) in enumerate(plan):
            if pause and i:
                self._task.stop.wait(self._rng.random() * 2 * pause / 1000)
            if kind == "r":
                with self._understood(f"a read of {key}"), self._waiting(connection):
                    ops.append(["r", key, connection.read(key)])
                continue
            value = self._next_value
            self._next_value += self._task.shape.sessions
            # Before it is done: if it fails half way, others may have seen it all the same.
            ops.append(["append" if lists else "w", key, value])
            with self._understood(f"a write of {key}"), self._waiting(connection):
                (connection.append if lists else connection.write)(key, value)

    def _undo(self, connection: Connection) -> None:
        try:
            with self._waiting(connection):
                connection.rollback()
        except Exception:
            self._disconnect(is_broken=True)

    def _isolation(self, plan: Plan) -> Isolation:
        if isinstance(plan, NamedPlan) and plan.kind in self._task.by_kind:
            return self._task.by_kind[plan.kind]
        choices = self._task.isolations
        return choices[0] if len(choices) == 1 else self._rng.choices(choices, [c.weight for c in choices])[0]

    def _connected(self) -> bool:
        """Have a connection; after a fault it may take a while until the server is there again."""
        wait, since = FIRST_WAIT, time.monotonic()
        while self.connection is None:
            try:
                self.connection = self._task.adapter.connect_session(self._number)
            except Exception as error:
                if time.monotonic() - since > self._task.give_up:
                    self.given_up = f"no connection for {self._task.give_up:.0f} s: {first_line(error)}"
                    return False
                if self._task.stop.wait(wait):
                    return False
                wait = min(2 * wait, LONGEST_WAIT)
        return True

    def _disconnect(self, is_broken: bool = False) -> None:
        """Close the connection; one that is broken is cut first, so that no farewell is sent."""
        connection, self.connection = self.connection, None
        if connection is not None:
            try:
                with self._waiting(connection):
                    if is_broken:
                        connection.abandon()
                    connection.close()
            except Exception as error:
                self.reasons[f"closing: {first_line(error)}"] += 1

    def _waiting(self, connection: Connection) -> AbstractContextManager[None]:
        """Guard a wait for this connection."""
        return self._task.adapter.setup.guard.wait(self._task.patience, connection.abandon, connection.fileno)

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        """Raise AnswerError where the adapter does not understand the answer to ``what``."""
        try:
            yield
        except AnswerError as error:
            raise AnswerError(f"{what}: {first_line(error)}") from None
        except _MISUNDERSTOOD as error:
            raise AnswerError(f"the answer to {what} is not understood ({type(error).__name__})") from None

    def _tell_commit(self) -> None:
        tell, self.at_commit = self.at_commit, None
        if tell is not None:
            tell()


# The clock of the wall may be set back while a run lasts, and who came first must not depend on that: it is asked once.
_EPOCH = time.time_ns() - time.monotonic_ns()

TICKS_PER_SECOND = 10**9


def now() -> int:
    """The time of the monotonic clock, in nanoseconds since 1970 for those who read it: one clock for all sessions."""
    return _EPOCH + time.monotonic_ns()


# From arrivals.py: When the transactions of a session are due, if they do not simply follow each other. An open
# loop: transactions arrive whether those before have ended or not, as those of people do who know nothing of each
# other. Who has to wait for a session that is busy waits longer, and that is part of what the database is measured
# by.
ARRIVALS = ("poisson", "fixed")

NANOSECONDS = 10**9


def arrivals(shape: Shape, session: int) -> Iterator[int]:
    """In nanoseconds from the beginning of the run, without end; those of all sessions together come at ``rate``."""
    assert shape.rate
    if shape.arrivals == "fixed":
        for number in count(session, shape.sessions):
            yield round(number * NANOSECONDS / shape.rate)
    rng = random.Random(f"{shape.seed}:{session}:arrivals")
    at = 0.0
    while True:
        at += rng.expovariate(shape.rate / shape.sessions)
        yield round(at * NANOSECONDS)
