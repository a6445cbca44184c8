"""A whole run: table, clients, faults, an orderly end under all circumstances, and the audit."""

import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.files import is_standard_output, is_stream
from plume_py.base.passwords import without_password
from plume_py.base.version import __version__
from plume_py.collect.adapter import INITIAL_REGISTER, Adapter, first_line
from plume_py.collect.audit import Audit, audit
from plume_py.collect.client import TICKS_PER_SECOND, Client, Isolation, Task, now
from plume_py.collect.faults import Fault, Faults, Servers, reject_impossible
from plume_py.collect.recorder import Recorder
from plume_py.collect.table import remove, setting_up
from plume_py.collect.workload import Shape, Workload
from plume_py.history.speed import Disturbance, Speed, speed

# Beyond the timeout of a statement, which the server keeps: then the connection is cut off from outside.
GRACE = 1.0
# How often the main thread looks around.
LOOK = 0.1


@dataclass(frozen=True)
class Plan:
    """Everything about a run but the database."""

    shape: Shape
    isolations: list[Isolation]
    out: str
    retries: int = 0
    seconds: float | None = None
    faults: Sequence[str] = ()
    fault_interval: float = 1.0
    timeout: float = 10.0
    keep_table: bool = False
    by_kind: Mapping[str, Isolation] = field(default_factory=dict)  # of a mix: kinds with an isolation of their own
    force: bool = False  # may ``out`` be a history that was recorded before?


@dataclass
class Collected:
    """What a run came to."""

    path: str
    database: str
    counts: dict[str, int]
    seconds: float
    interrupted: bool = False
    audit: Audit | None = None
    audit_problem: str = ""
    faults: Counter[str] = field(default_factory=Counter)
    timeline: list[Fault] = field(default_factory=list)
    begin: int = 0  # when the clients began, in the time of the history
    fault_problem: str = ""
    reasons: Counter[str] = field(default_factory=Counter)
    given_up: list[str] = field(default_factory=list)  # sessions that ended before their time
    notes: list[str] = field(default_factory=list)
    speed: Speed | None = None

    @property
    def transactions(self) -> int:
        """All that were recorded."""
        return sum(self.counts.values())


def collect(
    adapter: Adapter, plan: Plan, server: Servers | None = None, tick: Callable[[int], None] = lambda recorded: None
) -> Collected:
    """Run ``plan`` against the database of ``adapter`` and record it; Ctrl-C ends it early, and in good order.

    ``server`` is for faults, if it is one of ours; ``tick`` is told now and then how much has been recorded.
    """
    reject_impossible(plan.faults, adapter, server)
    workload = Workload(plan.shape)
    with setting_up(adapter):
        version = adapter.version()  # by which some adapters learn their name
        database = f"{adapter.name} {version}"
    try:
        with setting_up(adapter):
            adapter.create(workload.keys)
            header = _header(adapter, plan)
        collected = _record(adapter, plan, server, Recorder(plan.out, header, force=plan.force), workload, tick)
    except BaseException:
        if server is None and not plan.keep_table:
            remove(adapter)
        raise
    collected.database = database
    _finish(adapter, plan, collected)
    return collected


def _record(
    adapter: Adapter,
    plan: Plan,
    server: Servers | None,
    recorder: Recorder,
    workload: Workload,
    tick: Callable[[int], None],
) -> Collected:
    """Let the clients play, and close the history whatever happens."""
    begin, began = time.monotonic(), now()
    try:
        stop = threading.Event()
        how: dict[str, Any] = {"retries": plan.retries, "by_kind": plan.by_kind, "began": began}
        task = Task(adapter, plan.shape, workload, plan.isolations, recorder, stop, **how)
        clients = [Client(task, number) for number in range(plan.shape.sessions)]
        faults = _faults(plan, adapter, server, clients)
        if faults is not None:
            task.during = faults.since
        interrupted = _run(clients, stop, plan, faults, lambda: tick(sum(recorder.counts.values())))
    finally:
        recorder.close()
    if recorder.problem:
        raise IsocheckError(recorder.problem)
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
        Disturbance(str(fault), _after(collected, fault.start), _after(collected, fault.end or now()))
        for fault in collected.timeline
    ]
    return speed(ended, collected.seconds, plan.shape.rate, disturbances)


def _after(collected: Collected, moment: int) -> float:
    """In seconds from the beginning of the run."""
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


def _faults(plan: Plan, adapter: Adapter, server: Servers | None, clients: list[Client]) -> Faults | None:
    if not plan.faults:
        return None
    how: dict[str, Any] = {"interval": plan.fault_interval, "timeout": plan.timeout, "seed": plan.shape.seed}
    return Faults(plan.faults, adapter, server, clients, **how)


def _run(
    clients: list[Client], stop: threading.Event, plan: Plan, faults: Faults | None, tick: Callable[[], None]
) -> bool:
    """Let the clients play; True if the user cut it short."""
    interrupted = False
    patience = plan.timeout + GRACE
    over = None if plan.seconds is None else time.monotonic() + plan.seconds
    try:
        for client in clients:
            client.start()
        if faults is not None:
            faults.start()
        _look_after(clients, patience, over, tick)
    except KeyboardInterrupt:
        interrupted = True
    stop.set()
    if faults is not None:
        faults.finish()
    # They end by themselves: each after its current transaction, of which every statement has a limit of time.
    _look_after(clients, patience, time.monotonic() + 3 * patience + 5, tick)
    for client in clients:
        if client.is_alive() and client.connection is not None:
            client.connection.abandon()
    for client in clients:
        if client.is_alive():
            client.join(GRACE)
    return interrupted


def _look_after(clients: list[Client], patience: float, over: float | None, tick: Callable[[], None]) -> None:
    """Wait for the clients; a connection that has not answered for too long is cut off, which wakes its client."""
    while over is None or time.monotonic() < over:
        tick()
        alive = [client for client in clients if client.is_alive()]
        if not alive:
            return
        now = time.monotonic()
        for client in alive:
            since, connection = client.waiting_since, client.connection
            if since is not None and connection is not None and now - since > patience:
                connection.abandon()
        alive[0].join(LOOK)


def _finish(adapter: Adapter, plan: Plan, collected: Collected) -> None:
    """The audit, and the table goes."""
    try:
        adapter.settle()
        if is_stream(plan.out):
            where = "standard output" if is_standard_output(plan.out) else f"{plan.out}, which is no file to read again"
            collected.audit_problem = f"the history went to {where}"
        else:
            collected.audit = audit(plan.out, adapter.contents())
            for problem in adapter.disagreements():
                collected.audit.problem(problem)
    except IsocheckError:
        raise
    except Exception as error:
        collected.audit_problem = first_line(error)
    if plan.keep_table:
        return
    try:
        adapter.drop()
    except Exception as error:
        collected.notes.append(f"the table {adapter.setup.table} is still there: {first_line(error)}")
