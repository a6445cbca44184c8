"""Play one session: connect, run its transactions, and record the outcome of each.

An outcome follows from these rules:

- An error before COMMIT is sent: aborted. The database was not asked to keep anything, and a connection that is closed
  takes its transaction with it.
- COMMIT is answered with success: committed.
- COMMIT is answered with an error that the adapter reports as certain (``AbortedError``): aborted.
- Anything else after COMMIT, such as a lost connection or a timeout: unknown.

An answer that no working database gives ends the run.

A transaction of unknown outcome is the last of its session, as in Jepsen. It may still be running in the server when
the client goes on, so no later transaction counts as its successor. The client continues under a new session number.

With ``--rate``, transactions are due at given times (``arrivals``). This is an open loop: they arrive whether or not
earlier ones have ended, like requests of independent users. The wait for a busy session counts towards their latency.
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
from plume_py.collect.benchmarks import BenchmarkPlan, TransactionPlan
from plume_py.collect.recorder import Recorder
from plume_py.collect.workload import Shape, Workload
from plume_py.history.throughput import STATUSES, Ended

# What Python raises if an adapter does not understand an answer.
_MISUNDERSTOOD = (ValueError, TypeError, LookupError, ArithmeticError, AssertionError, struct.error)
# Seconds between attempts to connect: the first wait, which doubles up to the longest.
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0


@dataclass(frozen=True)
class Isolation:
    """The isolation level of a transaction, the level to record for it, its share in a mix, and a remark."""

    name: str
    level: str | None
    weight: float = 1.0
    remark: str = ""


@dataclass
class RunState:
    """State and options that all clients of a run share."""

    adapter: Adapter
    shape: Shape
    workload: Workload
    isolations: list[Isolation]
    recorder: Recorder
    stop: threading.Event
    retries: int = 0
    give_up: float = 30.0
    patience: float = 11.0  # seconds after which a connection that does not answer is cut
    by_kind: Mapping[str, Isolation] = field(default_factory=dict)  # of benchmark transactions; before ``isolations``
    during: Callable[[int], str] = lambda start: ""  # the faults since a time
    began: int = 0  # start of the run, as of ``now``
    problem: str = ""  # the answer that ended the run

    def fail(self, problem: str) -> None:
        """End the run for all clients because of ``problem``."""
        self.problem = self.problem or problem
        self.stop.set()


class Client(threading.Thread):
    """Thread that plays one session."""

    def __init__(self, state: RunState, number: int) -> None:
        super().__init__(name=f"session {number}", daemon=True)
        self._state = state
        self._number = number
        self.session = number  # grows by the number of sessions after each unknown outcome
        self._rng = random.Random(f"{state.shape.seed}:{number}:client")
        self._count = 0
        self._next_value = 1 + number
        self.connection: Connection | None = None
        self.at_commit: Callable[[], None] | None = None  # called once, before the next commit is sent
        self.reasons: Counter[str] = Counter()
        self.given_up = ""
        self._ended = array("q")  # per transaction: end, duration (ns), index of status

    @property
    def ended(self) -> Iterator[Ended]:
        """End, duration and outcome of its transactions, in seconds since the start of the run."""
        found = iter(self._ended)
        for end, took, status in zip(found, found, found, strict=True):
            yield (end - self._state.began) / TICKS_PER_SECOND, took / TICKS_PER_SECOND, status

    def run(self) -> None:
        """Play the transactions, until all are done or a stop is requested."""
        try:
            plans = self._state.workload.plans(self._number)
            if not self._connected():
                return
            for _, due in zip(range(self._state.shape.transactions), self._due(), strict=False):
                if not self._play(next(plans), due):
                    return
        except AnswerError as error:
            self._state.fail(first_line(error))
        except Exception as error:  # a defect of an adapter or of isocheck: the other clients go on
            self.given_up = f"{type(error).__name__}: {error}"
        finally:
            self._disconnect()

    def _due(self) -> Iterator[int | None]:
        """Wait until the next transaction may begin, then yield its due time, or None without ``--rate``."""
        shape, stop = self._state.shape, self._state.stop
        if shape.rate:
            begin = now()  # skip the times before the connection was open
            for due in (self._state.began + after for after in arrivals(shape, self._number)):
                if due >= begin:
                    wait = (due - now()) / TICKS_PER_SECOND
                    if wait > 0:
                        stop.wait(wait)
                    yield due
        while True:
            yield None
            if shape.think:
                stop.wait(self._rng.random() * 2 * shape.think / 1000)

    def _play(self, plan: TransactionPlan, due: int | None) -> bool:
        """Run a transaction and its retries. Return False if the client must end."""
        for _ in range(1 + self._state.retries):
            if self._state.stop.is_set() or self._state.recorder.problem or not self._connected():
                return False
            if self._transact(plan, due) != "aborted":
                break
        return True

    def _transact(self, plan: TransactionPlan, due: int | None) -> str:
        isolation = self._isolation(plan)
        self._count += 1
        transaction: dict[str, Any] = {"id": f"s{self._number}.{self._count}", "session": self.session}
        if isolation.level is not None:
            transaction["level"] = isolation.level
        # ``start`` precedes the first statement and ``end`` follows the last answer: real-time order depends on both
        start = now()
        transaction |= {"isolation": isolation.name, "start": start, "ops": []}
        if due is not None:
            transaction["due"] = due
        status, reason = self._outcome(isolation.name, plan, transaction)
        end = now()
        self._ended.extend((end, end - (start if due is None else due), STATUSES.index(status)))
        during = self._state.during(start)
        if during:
            transaction["during"] = during
        if status == "unknown":
            transaction["reason"] = reason
        self._state.recorder.record({**transaction, "status": status, "end": end})
        if reason:
            self.reasons[reason] += 1
        if status == "unknown":
            self.session += self._state.shape.sessions
        return status

    def _outcome(self, isolation: str, plan: TransactionPlan, transaction: dict[str, Any]) -> tuple[str, str]:
        """Run ``plan`` and fill in ``transaction``. Return its outcome, and the error message unless it committed."""
        connection = self.connection
        assert connection is not None
        try:
            with self._waiting(connection):
                self._begin(connection, isolation, plan, transaction)
            self._operate(connection, plan, transaction["ops"])
            self._state.recorder.intend(transaction)
        except AbortedError as error:
            self._undo(connection)
            return "aborted", first_line(error)
        except AnswerError:
            self._disconnect(is_broken=True)
            raise
        except Exception as error:
            self._disconnect(is_broken=True)
            return "aborted", first_line(error)
        self._announce_commit()
        try:
            with self._waiting(connection):
                connection.commit()
        except AbortedError as error:
            self._undo(connection)
            return "aborted", first_line(error)
        except Exception as error:
            self._disconnect(is_broken=True)
            if isinstance(error, AnswerError):
                self._state.fail(first_line(error))
            return "unknown", first_line(error)
        return "committed", ""

    def _begin(
        self, connection: Connection, isolation: str, plan: TransactionPlan, transaction: dict[str, Any]
    ) -> None:
        """Begin the transaction. Record its node, and its isolation level if a replica replaced it, even on failure."""
        reads_only = all(kind == "r" for kind, _ in plan)
        try:
            (connection.begin_reading if reads_only else connection.begin)(isolation)
        finally:
            if connection.node:
                transaction["node"] = connection.node
            if connection.isolation not in ("", isolation):
                transaction["isolation"] = connection.isolation
                transaction["level"] = self._state.adapter.isolations[connection.isolation].level

    def _operate(self, connection: Connection, plan: TransactionPlan, ops: list[list[Any]]) -> None:
        lists, pause = self._state.shape.lists, self._state.shape.pause
        for i, (kind, key) in enumerate(plan):
            if pause and i:
                self._state.stop.wait(self._rng.random() * 2 * pause / 1000)
            if kind == "r":
                with self._understood(f"a read of {key}"), self._waiting(connection):
                    ops.append(["r", key, connection.read(key)])
                continue
            value = self._next_value
            self._next_value += self._state.shape.sessions
            # Record the write before it runs: if it fails halfway, other transactions may still have read it.
            ops.append(["append" if lists else "w", key, value])
            with self._understood(f"a write of {key}"), self._waiting(connection):
                (connection.append if lists else connection.write)(key, value)

    def _undo(self, connection: Connection) -> None:
        try:
            with self._waiting(connection):
                connection.rollback()
        except Exception:
            self._disconnect(is_broken=True)

    def _isolation(self, plan: TransactionPlan) -> Isolation:
        if isinstance(plan, BenchmarkPlan) and plan.kind in self._state.by_kind:
            return self._state.by_kind[plan.kind]
        choices = self._state.isolations
        return choices[0] if len(choices) == 1 else self._rng.choices(choices, [c.weight for c in choices])[0]

    def _connected(self) -> bool:
        """Connect if necessary, and return whether there is a connection.

        Retry for up to ``give_up`` seconds, because a server needs time to recover from a fault.
        """
        wait, since = FIRST_WAIT, time.monotonic()
        while self.connection is None:
            try:
                self.connection = self._state.adapter.connect_session(self._number)
            except Exception as error:
                if time.monotonic() - since > self._state.give_up:
                    self.given_up = f"no connection for {self._state.give_up:.0f} s: {first_line(error)}"
                    return False
                if self._state.stop.wait(wait):
                    return False
                wait = min(2 * wait, LONGEST_WAIT)
        return True

    def _disconnect(self, is_broken: bool = False) -> None:
        """Close the connection. Cut a broken one first, so that the driver sends no farewell message."""
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
        """Return a context manager that guards a wait for this connection."""
        return self._state.adapter.setup.guard.wait(self._state.patience, connection.abandon, connection.fileno)

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        """Raise AnswerError if the adapter does not understand the answer to ``what``."""
        try:
            yield
        except AnswerError as error:
            raise AnswerError(f"{what}: {first_line(error)}") from None
        except _MISUNDERSTOOD as error:
            raise AnswerError(f"the answer to {what} is not understood ({type(error).__name__})") from None

    def _announce_commit(self) -> None:
        callback, self.at_commit = self.at_commit, None
        if callback is not None:
            callback()


# The wall clock may be set back during a run, which would change the order of events. So it is read only once.
_EPOCH = time.time_ns() - time.monotonic_ns()

TICKS_PER_SECOND = 10**9


def now() -> int:
    """Return the monotonic time in nanoseconds, shifted to count from 1970. All sessions share this clock."""
    return _EPOCH + time.monotonic_ns()


ARRIVALS = ("poisson", "fixed")


def arrivals(shape: Shape, session: int) -> Iterator[int]:
    """Yield the due times of a session's transactions, in nanoseconds since the start of the run, without end.

    All sessions together reach ``shape.rate`` transactions per second.
    """
    assert shape.rate
    if shape.arrivals == "fixed":
        for number in count(session, shape.sessions):
            yield round(number * TICKS_PER_SECOND / shape.rate)
    rng = random.Random(f"{shape.seed}:{session}:arrivals")
    at = 0.0
    while True:
        at += rng.expovariate(shape.rate / shape.sessions)
        yield round(at * TICKS_PER_SECOND)
