"""Mixed levels on a real PostgreSQL: what a workload gets done at SERIALIZABLE, and at levels that are allocated.

The instances are those that ``isocheck allocate`` judges and ``isocheck simulate`` runs: a cell is a row, a read is a
SELECT by its key, an update is one UPDATE. A transaction is sent as one string, so that the client is no bottleneck;
``pause`` lets the server wait between statements, as for a round trip to the application. Each value is written once
and an UPDATE returns what it overwrote, so what came of a run is a history, and is checked.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from plume_py import check
from plume_py.collect.managed import ManagedPostgres
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import History
from plume_py.reasoning.allocate.catalogue import CATALOGUES, Catalogue, allocate
from plume_py.reasoning.allocate.driver import BENCHMARKS, draw
from plume_py.reasoning.allocate.search_space import of_instances
from plume_py.reasoning.allocate.trial import in_sessions
from plume_py.reasoning.allocate.workload import Access, Instance, Workload

ALLOCATIONS = ("ser", "si-ser", "allocated")


@dataclass(frozen=True)
class Trial:
    """One workload, its sessions, and how long a round trip takes."""

    benchmark: str
    largest: int
    sessions: int
    pause: float  # seconds between two statements
    each: int  # instances per session

    def workload(self, seed: int) -> Workload:
        """Drawn as for the paper's figures, and dealt out to the sessions."""
        drawn = draw(BENCHMARKS[self.benchmark], self.sessions * self.each, self.largest, seed)
        return in_sessions(drawn, self.sessions, seed)


def levels_for(workload: Workload, allocation: str) -> list[str]:
    """For each instance the cheapest level of PostgreSQL that keeps this workload serializable, of those allowed."""
    whole = CATALOGUES["postgresql"]
    least = {"ser": "SER", "si-ser": "SI", "allocated": "RC"}[allocation]
    names = list(whole.engine_names)
    allowed = {name: whole.engine_names[name] for name in names[names.index(least) :]}
    return allocate(of_instances(workload), Catalogue(whole.name, allowed, "", whole.adjustments))


@dataclass
class Outcome:
    """What came of a run; ``cpu`` are the seconds of the server's processes."""

    seconds: float
    cpu: float
    committed: int
    refused: Counter[str]  # attempts by what the server said
    history: History

    @property
    def throughput(self) -> float:
        """Transactions committed per second."""
        return self.committed / self.seconds


@dataclass
class _Session:
    """A connection that runs its instances one after the other, each until it commits."""

    connection: Any
    instances: Sequence[Instance]
    levels: Sequence[str]
    pause: float
    values: "count[int]"
    refused: Counter[str] = field(default_factory=Counter)
    done: list[tuple[Instance, str, list[tuple[str, str, int]]]] = field(default_factory=list)
    problem: Exception | None = None

    def run(self) -> None:
        try:
            for instance, level in zip(self.instances, self.levels, strict=True):
                while (ops := self._attempt(instance, level)) is None:
                    time.sleep(random.random() * 0.002)
                self.done.append((instance, level, ops))
        except Exception as error:
            self.problem = error

    def _attempt(self, instance: Instance, level: str) -> list[tuple[str, str, int]] | None:
        import psycopg

        written = {access: next(self.values) for access in instance.accesses if access.writes}
        pieces = [_statement(access, written.get(access, 0)) for access in instance.accesses]
        between = f"; SELECT pg_sleep({self.pause}); " if self.pause else "; "
        begin = f"BEGIN ISOLATION LEVEL {CATALOGUES['postgresql'].engine_names[level]}"
        try:
            cursor = self.connection.execute(between.join([begin, *pieces, "COMMIT"]))
        except psycopg.errors.OperationalError as error:
            self.refused[error.sqlstate or "lost"] += 1
            self.connection.rollback()
            return None
        return list(_operations(cursor, instance, written, bool(self.pause)))


def _statement(access: Access, value: int) -> str:
    kind = {"READ": "r", "WRITE": "w", "UPDATE": "u"}[access.kind]
    return f"EXECUTE {kind}_{access.table}('{_key(access)}'" + (f", {value})" if access.writes else ")")


def _key(access: Access) -> str:
    return "_".join(access.key)


def _operations(
    cursor: Any, instance: Instance, written: dict[Access, int], paused: bool
) -> Iterator[tuple[str, str, int]]:
    """What each statement read and wrote, from the results of the whole string."""
    seen: dict[str, int] = {}
    for access in instance.accesses:
        for _ in range(2 if paused else 1):
            cursor.nextset()
        if access.reads:
            yield ("r", access.cell, seen.get(access.cell, cursor.fetchone()[0]))
        if access.writes:
            yield ("w", access.cell, written[access])


class Server:
    """A private PostgreSQL; a context manager."""

    def __enter__(self) -> "Server":
        self.managed = ManagedPostgres()
        self.managed.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        self.managed.__exit__(*reason)

    def _connect(self) -> Any:
        import psycopg

        # A scan of the whole table, which is cheap for a small one, would count as a read of every row.
        return psycopg.connect(self.managed.url, autocommit=True, options="-c enable_seqscan=off")

    def version(self) -> str:
        """What it says it is."""
        with self._connect() as connection:
            return f"PostgreSQL {connection.execute('SHOW server_version').fetchone()[0]}"

    def load(self, workload: Workload) -> None:
        """A table for each of the templates' tables, a row for each cell that the workload touches."""
        cells: dict[str, set[str]] = {}
        for instance in workload.instances:
            for access in instance.accesses:
                cells.setdefault(access.table, set()).add(_key(access))
        with self._connect() as connection:
            for table, keys in cells.items():
                connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(f"CREATE TABLE {table} (key text PRIMARY KEY, value bigint, previous bigint)")
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    for key in sorted(keys):
                        copy.write_row((key, 0, 0))
            connection.execute("VACUUM ANALYZE")

    def run(self, workload: Workload, levels: Sequence[str], pause: float) -> Outcome:
        """All sessions at once, to the end of the last."""
        self.load(workload)
        tables = sorted({access.table for instance in workload.instances for access in instance.accesses})
        values = count(1)
        sessions = []
        for members in workload.sessions():
            connection = self._connect()
            _prepare(connection, tables)
            instances = [workload.instances[i] for i in members]
            sessions.append(_Session(connection, instances, [levels[i] for i in members], pause, values))
        backends = [session.connection.info.backend_pid for session in sessions]
        threads = [threading.Thread(target=session.run) for session in sessions]
        before, start = sum(map(_cpu, backends)), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, cpu = time.perf_counter() - start, sum(map(_cpu, backends)) - before
        for session in sessions:
            session.connection.close()
            if session.problem is not None:
                raise session.problem
        refused = sum((session.refused for session in sessions), Counter[str]())
        return Outcome(seconds, cpu, len(workload.instances), refused, _history(sessions))


def _prepare(connection: Any, tables: Sequence[str]) -> None:
    for table in tables:
        connection.execute(f"PREPARE r_{table}(text) AS SELECT value FROM {table} WHERE key = $1")  # noqa: S608
        update = f"UPDATE {table} SET previous = value, value = $2 WHERE key = $1"  # noqa: S608
        connection.execute(f"PREPARE w_{table}(text, bigint) AS {update}")
        connection.execute(f"PREPARE u_{table}(text, bigint) AS {update} RETURNING previous")


def _cpu(process: int) -> float:
    """The seconds that it has run, which the kernel counts in nanoseconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def _history(sessions: Sequence[_Session]) -> History:
    builder = HistoryBuilder(initial=0)
    for number, session in enumerate(sessions):
        for instance, level, ops in session.done:
            builder.add(number, ops, level=level, id=instance.name)
    return builder.build(init_txn="none")


def measured(trials: Sequence[Trial], runs: int) -> Iterator[dict[str, Any]]:
    """A row for each trial and allocation; the allocations take turns, and medians are told."""
    with Server() as server:
        for trial in trials:
            workload = trial.workload(1)
            levels = {allocation: levels_for(workload, allocation) for allocation in ALLOCATIONS}
            found: dict[str, list[Outcome]] = {allocation: [] for allocation in ALLOCATIONS}
            broken = Counter[str]()
            for _ in range(runs):
                for allocation in ALLOCATIONS:
                    outcome = server.run(workload, levels[allocation], trial.pause)
                    found[allocation].append(outcome)
                    broken[allocation] += check(outcome.history, "SER").ok is not True
            base = median(outcome.throughput for outcome in found["ser"])
            for allocation in ALLOCATIONS:
                yield _row(trial, allocation, levels[allocation], found[allocation], broken[allocation], base)


def _row(
    trial: Trial, allocation: str, levels: Sequence[str], found: Sequence[Outcome], broken: int, base: float
) -> dict[str, Any]:
    shares = Counter(levels)
    throughput = median(outcome.throughput for outcome in found)
    return {
        "benchmark": trial.benchmark,
        "keys": trial.largest,
        "sessions": trial.sessions,
        "pause, ms": f"{trial.pause * 1000:g}",
        "allocation": allocation,
        "levels, %": " ".join(
            f"{level} {100 * shares[level] / len(levels):.0f}" for level in ("RC", "SI", "SER") if shares[level]
        ),
        "transactions/s": round(throughput),
        "to all SER": f"{throughput / base:.2f}",
        "server CPU, us each": round(median(1e6 * outcome.cpu / outcome.committed for outcome in found)),
        "refused, %": f"{median(100 * o.refused.total() / (o.committed + o.refused.total()) for o in found):.1f}",
        "runs not serializable": f"{broken} of {len(found)}",
    }
