"""Run a whole collection: create the table, run clients and faults, compare the table, remove it.

``isocheck collect`` and ``isocheck test`` call ``collect``. The history is closed properly on every path, including
errors, Ctrl-C and time limits. ``Schedule`` has a deadline for each phase; with ``--seconds`` all phases share one time
limit.
"""

import math
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from plume_py.base.atomic_files import is_standard_output, is_stream
from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_password
from plume_py.base.version import __version__
from plume_py.collect.adapter import GRACE, INITIAL_REGISTER, Adapter, Value, first_line
from plume_py.collect.audit import Audit, audit
from plume_py.collect.client import TICKS_PER_SECOND, Client, Isolation, RunState, now
from plume_py.collect.deadline import in_time
from plume_py.collect.faults import Fault, Faults, PrivateServers, reject_impossible
from plume_py.collect.recorder import Recorder
from plume_py.collect.table_setup import BEAT, claim, clean, remove, remove_in_time, setting_up
from plume_py.collect.workload import Shape, Workload
from plume_py.history.throughput import Disturbance, Speed, speed

# Seconds between two polls of the main thread.
POLL_INTERVAL = 0.1
# Without --seconds: limits in seconds for creating the table, for a fault, and for each of comparison and removal.
SET_UP, FAULT, FINISHED = 600.0, 60.0, 120.0
# Share of the time for creating the table in which tables of abandoned runs may be removed first.
CLEANED = 0.6
# With --seconds: extra seconds for the whole run, and how many of them are reserved for after the clients' deadline.
EXTRA, AFTER_CLIENTS = 7.0, 4.0
# Shares of the remaining time: until connections of clients are cut, until clients are abandoned, and until the
# comparison must be over. The removal of the table gets the remainder.
CUT, LEFT, COMPARED = 0.3, 0.4, 0.7
# Seconds from Ctrl-C to the end of the run. Everything may take two; `test` needs the remainder for its check.
AFTER_INTERRUPT = 0.9


@dataclass(frozen=True)
class Plan:
    """All options of a run except the database."""

    shape: Shape
    isolations: list[Isolation]
    out: str
    retries: int = 0
    seconds: float | None = None
    faults: Sequence[str] = ()
    fault_interval: float = 1.0
    timeout: float = 10.0
    keep_table: bool = False
    by_kind: Mapping[str, Isolation] = field(default_factory=dict)  # of kinds of benchmark transactions
    force: bool = False  # overwrite an existing history at ``out``
    max_memory: int | None = None  # bytes of this process


class Schedule:
    """Deadlines of the phases of a run, on the monotonic clock."""

    def __init__(self, seconds: float | None, is_private: bool = False) -> None:
        """Create the schedule. Private servers have no common deadline: they need time to recover from faults."""
        self._begin, self._seconds = time.monotonic(), seconds
        # One deadline for the whole run, instead of a limit for each phase.
        self.is_short = seconds is not None and not is_private
        self.last = self._begin + (seconds or 0.0) + EXTRA if self.is_short else math.inf

    @property
    def set_up(self) -> float:
        """Deadline for creating the table."""
        return min(self._begin + SET_UP, self.last - AFTER_CLIENTS)

    @property
    def cleaned(self) -> float:
        """Deadline for removing tables of abandoned runs; a later run removes the others."""
        return self._begin + CLEANED * (self.set_up - self._begin)

    def clients(self) -> float:
        """Return the time after which clients begin no more transactions. Call this when they start."""
        return math.inf if self._seconds is None else min(time.monotonic() + self._seconds, self.last - AFTER_CLIENTS)

    def interrupt(self) -> None:
        """Shorten the schedule, after Ctrl-C or a failure."""
        self.last, self.is_short = time.monotonic() + AFTER_INTERRUPT, True

    def end(self, share: float, otherwise: float) -> float:
        """Return the deadline of a phase: after ``share`` of the remaining common time, or in ``otherwise`` seconds."""
        now = time.monotonic()
        if not self.is_short:
            return now + otherwise
        return now + share * max(0.0, min(self.last - now, AFTER_CLIENTS))


@dataclass
class Collected:
    """Result of a run."""

    path: str
    database: str
    counts: dict[str, int]
    seconds: float
    interrupted: bool = False
    audit: Audit | None = None
    audit_problem: str = ""
    faults: Counter[str] = field(default_factory=Counter)
    timeline: list[Fault] = field(default_factory=list)
    begin: int = 0  # when the clients started, on the clock of the history
    fault_problem: str = ""
    reasons: Counter[str] = field(default_factory=Counter)
    given_up: list[str] = field(default_factory=list)  # sessions that ended early
    notes: list[str] = field(default_factory=list)
    speed: Speed | None = None

    @property
    def transactions(self) -> int:
        """Number of recorded transactions."""
        return sum(self.counts.values())


def collect(
    adapter: Adapter,
    plan: Plan,
    server: PrivateServers | None = None,
    tick: Callable[[int], None] = lambda recorded: None,
) -> Collected:
    """Run ``plan`` on the database of ``adapter`` and record the history. Ctrl-C ends the run early, but in order.

    ``server`` is the private server or cluster, if there is one; faults need it. ``tick`` is called regularly with the
    number of recorded transactions.
    """
    reject_impossible(plan.faults, adapter, server)
    workload, schedule, guard = Workload(plan.shape), Schedule(plan.seconds, server is not None), adapter.setup.guard
    guard.max_memory = plan.max_memory
    guard.end_by(schedule.set_up)
    with setting_up(adapter):
        version = in_time(schedule.set_up, adapter.version)  # some adapters learn their name here
        database = f"{adapter.name} {version}"
    notes = [] if server is not None else _remove_abandoned(adapter, schedule)
    try:
        with setting_up(adapter):
            header = in_time(schedule.set_up, lambda: _set_up(adapter, plan, workload))
        guard.end_by(schedule.last)
        recorder = Recorder(plan.out, header, force=plan.force)
        with _beating(adapter):
            collected = _record(adapter, plan, server, recorder, workload, tick, schedule)
    except BaseException as error:
        guard.end_by(math.inf)
        if server is None and not plan.keep_table:
            remove(adapter, error)
        raise
    if collected.interrupted and server is not None:
        for member in server.members.values():
            member.kill_at_stop = True
    collected.database = database
    collected.notes += notes
    _finish(adapter, plan, collected, schedule, is_private=server is not None)
    return collected


def _set_up(adapter: Adapter, plan: Plan, workload: Workload) -> dict[str, Any]:
    claim(adapter)
    adapter.create(workload.keys)
    return _header(adapter, plan)


def _remove_abandoned(adapter: Adapter, schedule: Schedule) -> list[str]:
    """Remove the tables of abandoned runs, and return a note for each. Ignore failures."""
    guard, until = adapter.setup.guard, schedule.cleaned
    guard.end_by(until)
    try:
        removed = in_time(until, lambda: clean(adapter, until)).removed
    except Exception:
        guard.cut_all()  # the abandoned thread shares the admin connection
        return []
    finally:
        guard.end_by(schedule.set_up)
    return [f"removed {table}, which an abandoned run had left" for table in removed]


@contextmanager
def _beating(adapter: Adapter) -> Iterator[None]:
    """Show the database regularly that the run is alive."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT):
            with suppress(Exception):  # the server may be unavailable for a while
                adapter.beat()

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def _record(
    adapter: Adapter,
    plan: Plan,
    server: PrivateServers | None,
    recorder: Recorder,
    workload: Workload,
    tick: Callable[[int], None],
    schedule: Schedule,
) -> Collected:
    """Run the clients, and close the history on every path."""
    begin, began = time.monotonic(), now()
    try:
        stop = threading.Event()
        how: dict[str, Any] = {"retries": plan.retries, "by_kind": plan.by_kind, "began": began}
        how["patience"] = plan.timeout + GRACE
        state = RunState(adapter, plan.shape, workload, plan.isolations, recorder, stop, **how)
        clients = [Client(state, number) for number in range(plan.shape.sessions)]
        faults = _faults(plan, adapter, server, clients)
        if faults is not None:
            state.during = faults.since
        interrupted = _run(clients, state, schedule, faults, lambda: tick(sum(recorder.counts.values())))
    finally:
        recorder.close()
    if recorder.problem:
        raise IsocheckError(recorder.problem)
    if adapter.setup.guard.problem is not None:
        raise adapter.setup.guard.problem
    if state.problem:
        problem = InputError(state.problem, hint="check what answers at this address")
        raise problem.in_source(without_password(adapter.setup.url))
    collected = Collected(plan.out, "", recorder.counts, time.monotonic() - begin, interrupted, begin=began)
    for client in clients:
        collected.reasons += client.reasons
        collected.given_up += [f"{client.name}: {client.given_up}"] if client.given_up else []
    if faults is not None:
        collected.faults, collected.fault_problem = faults.done, faults.problem
        collected.timeline = faults.timeline
    collected.speed = _speed(collected, clients, plan)
    return collected


def _speed(collected: Collected, clients: list[Client], plan: Plan) -> Speed:
    ended = (each for client in clients for each in client.ended)
    disturbances = [
        Disturbance(
            str(fault),
            _seconds_since_start(collected, fault.start),
            _seconds_since_start(collected, fault.end or now()),
        )
        for fault in collected.timeline
    ]
    return speed(ended, collected.seconds, plan.shape.rate, disturbances)


def _seconds_since_start(collected: Collected, moment: int) -> float:
    """Return a time of the history in seconds since the start of the run."""
    return (moment - collected.begin) / TICKS_PER_SECOND


def _header(adapter: Adapter, plan: Plan) -> dict[str, Any]:
    about: dict[str, Any] = {
        "database": adapter.name,
        "version": adapter.version(),
        "url": without_password(adapter.setup.url),
        "settings": {**adapter.settings(), **adapter.setup.session_settings},
        "isolation": [isolation.name for isolation in plan.isolations],
        "workload": plan.shape.described(),
        "retries": plan.retries,
        "timeout": plan.timeout,
        "faults": list(plan.faults),
        "sql": adapter.statements(),
        "node": platform.node(),
        "begin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "by": f"isocheck {__version__}",
    }
    if adapter.nodes():
        about["nodes"] = {name: without_password(url) for name, url in adapter.nodes().items()}
    if len(plan.isolations) > 1:
        about["mix"] = {isolation.name: isolation.weight for isolation in plan.isolations}
    if plan.by_kind:
        about["levels"] = {kind: isolation.name for kind, isolation in plan.by_kind.items()}
    initial: Any = [] if plan.shape.lists else INITIAL_REGISTER
    return {"initial": initial, "ticks_per_second": TICKS_PER_SECOND, "collected": about}


def _faults(plan: Plan, adapter: Adapter, server: PrivateServers | None, clients: list[Client]) -> Faults | None:
    if not plan.faults:
        return None
    how: dict[str, Any] = {"interval": plan.fault_interval, "timeout": plan.timeout, "seed": plan.shape.seed}
    return Faults(plan.faults, adapter, server, clients, **how)


def _run(
    clients: list[Client], state: RunState, schedule: Schedule, faults: Faults | None, tick: Callable[[], None]
) -> bool:
    """Run the clients to their end. Return whether the user interrupted them."""
    interrupted, guard = False, state.adapter.setup.guard
    try:
        for client in clients:
            client.start()
        if faults is not None:
            faults.start()
        _wait_for_clients(clients, schedule.clients(), tick, lambda: _has_failed(state))
    except KeyboardInterrupt:
        interrupted = True
        schedule.interrupt()
    state.stop.set()
    if _has_failed(state):
        schedule.interrupt()
    cut, left = schedule.end(CUT, 3 * state.patience), schedule.end(LEFT, 4 * state.patience)
    if faults is not None:
        faults.finish(schedule.end(LEFT, max(FAULT, 3 * state.patience)))
    # If the database answers, each client ends after its current transaction.
    guard.end_by(cut)
    _wait_for_clients(clients, left, tick)
    guard.end_by(math.inf)
    return interrupted


def _has_failed(state: RunState) -> bool:
    return bool(state.problem) or state.adapter.setup.guard.problem is not None


def _wait_for_clients(
    clients: list[Client], until: float, tick: Callable[[], None], is_over: Callable[[], bool] = lambda: False
) -> None:
    """Wait until the clients have ended, but not beyond ``until`` or ``is_over``."""
    while time.monotonic() < until and not is_over():
        tick()
        alive = [client for client in clients if client.is_alive()]
        if not alive:
            return
        alive[0].join(max(0.0, min(POLL_INTERVAL, until - time.monotonic())))


def _finish(adapter: Adapter, plan: Plan, collected: Collected, schedule: Schedule, is_private: bool) -> None:
    """Compare the table with the history, then remove the table unless it is to be kept."""
    guard = adapter.setup.guard
    try:
        if is_stream(plan.out):
            where = "standard output" if is_standard_output(plan.out) else f"{plan.out}, which is no file to read again"
            collected.audit_problem = f"the history went to {where}"
        else:
            compared = schedule.end(COMPARED, FINISHED)
            guard.end_by(compared)
            table = in_time(compared, lambda: _contents(adapter))
            collected.audit = audit(plan.out, table)
            for problem in adapter.disagreements():
                collected.audit.add_problem(problem)
    except IsocheckError:
        raise
    except Exception as error:
        collected.audit_problem = first_line(error)
    if plan.keep_table:
        return
    remaining = remove_in_time(adapter, schedule.end(1.0, FINISHED))
    if remaining and not is_private:
        collected.notes.append(remaining)


def _contents(adapter: Adapter) -> dict[str, Value]:
    adapter.settle()
    return adapter.contents()
