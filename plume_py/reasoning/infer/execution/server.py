"""Run a program on a real server, and test the inferred levels (``infer --run``).

Many clients call transactions at random, each at its level. Afterwards the invariant is evaluated as SQL. If levels
that were found safe violate it, the run searches for a short schedule.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from plume_py.base.errors import InputError, IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.adapters.sql import SqlAdapter
from plume_py.reasoning.infer.driver import UNDECIDED, VIOLATED
from plume_py.reasoning.infer.execution.client import Client, CommittedCall, Load, row_of
from plume_py.reasoning.infer.execution.evaluate import State
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.to_sql import HIDDEN, Sql, literal
from plume_py.reasoning.infer.statement_models import STORES, LevelModel, StoreModel

STORE_OF = {"postgresql": "postgresql", "mariadb": "mysql"}
_TYPES = {"int": "BIGINT", "id": "BIGINT", "bool": "BOOLEAN", "text": "VARCHAR(200)"}
_HIDDEN = {
    "postgresql": f"{HIDDEN} BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "mariadb": f"{HIDDEN} BIGINT AUTO_INCREMENT PRIMARY KEY",
}
ROUND_AT_MOST = 5.0  # seconds of a round when a shorter schedule is searched for
# Strict mode, as in all runs. As in standard SQL and in our literals, a backslash is an ordinary character.
_SETTINGS = {"mariadb": {"sql_mode": "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_BACKSLASH_ESCAPES"}}


@dataclass(frozen=True)
class Schedule:
    """The calls that committed on a server since the tables were reset, and the clauses that were violated."""

    called: list[CommittedCall]
    broken: list[str]
    final: State


@dataclass
class ServerRun:
    """The result of a run at one assignment of levels."""

    levels: dict[str, str]
    broken: list[str]
    commits: int = 0
    rollbacks: int = 0
    refused: int = 0  # serialization failures, deadlocks and constraint violations
    problems: Counter[str] = field(default_factory=Counter)
    schedule: Schedule | None = None  # the shortest one that violated the invariant

    def count(self, clients: list[Client]) -> None:
        """Set the counts of commits, rollbacks and refusals, and the problems, from the clients."""
        counts = sum((client.counts for client in clients), Counter[str]())
        self.commits, self.rollbacks, self.refused = (counts[kind] for kind in ("commit", "rollback", "refused"))
        self.problems = sum((client.problems for client in clients), Counter[str]())

    def is_longer(self, called: list[CommittedCall]) -> bool:
        """Return whether the recorded schedule is longer than this one, or missing."""
        return self.schedule is None or len(called) < len(self.schedule.called)

    @property
    def has_trouble(self) -> bool:
        """Whether nothing committed, or the server reported unexpected errors."""
        return not self.commits or bool(self.problems)


class SqlServer:
    """A private server with the tables of a program."""

    def __init__(self, program: ir.Application, kind: str) -> None:
        self.program, self.kind = program, kind
        self.store: StoreModel = STORES[STORE_OF[kind]]
        if not program.rows:
            raise InputError(
                "no rows to begin with",
                hint="add app.populate(table=[…]) to a Python file, or INSERT below the tables of a SQL file",
            ).in_source(program.name)
        without = [clause.name for clause in program.enforced if not clause.ddl]
        if without:
            raise IsocheckError(f"{program.name}: {without[0]} is no constraint that a server could be told")
        self._check_rows()

    def _check_rows(self) -> None:
        from plume_py.reasoning.infer.execution.schedule import ScheduleRules

        broken = ScheduleRules(self.program).broken(initial_state(self.program))
        if broken:
            raise InputError(f"the rows to begin with break {broken[0]}").in_source(self.program.name)

    def __enter__(self) -> "SqlServer":
        from plume_py.collect.managed import SERVERS

        self.managed = SERVERS[self.kind]()
        self.managed.__enter__()
        try:
            self.adapter = _adapter(self.managed.url, _SETTINGS.get(self.kind, {}))
            self.create()
        except BaseException:
            self.managed.stop()
            raise
        return self

    def __exit__(self, *reason: Any) -> None:
        self.managed.__exit__(*reason)

    def version(self) -> str:
        version = self.adapter.version()  # sets the adapter's name: MySQL or MariaDB
        return f"{self.adapter.name} {version}"

    def create(self) -> None:
        for table in self.program.tables:
            self.adapter.ask(self._create(table))

    def reset(self, cursor: Any) -> None:
        for table in reversed(self.program.tables):
            cursor.execute(f"DELETE FROM {table.name}")
        for name, row in self.program.rows:
            table = self.program.table(name)
            values = ", ".join(literal(value) for value in row)
            cursor.execute(f"INSERT INTO {name} ({', '.join(table.names)}) VALUES ({values})")

    def _create(self, table: ir.Table) -> str:
        columns = [f"{name} {_TYPES[sort]} NOT NULL" for name, sort in table.columns]
        columns.append(f"PRIMARY KEY ({', '.join(table.key)})" if table.key else _HIDDEN[self.kind])
        columns += [text for clause in self.program.enforced for owner, text in clause.ddl if owner == table.name]
        engine = " ENGINE=InnoDB" if self.kind == "mariadb" else ""
        return f"CREATE TABLE {table.name} ({', '.join(columns)}){engine}"

    def run(self, levels: dict[str, LevelModel], load: Load) -> ServerRun:
        """Run clients at these levels, then evaluate the invariant."""
        names = {name: level.name for name, level in levels.items()}
        outcome = ServerRun(names, [])
        with self._clients(levels, load) as (clients, cursor):
            for _ in range(max(1, round(load.seconds / load.round))):
                self._round(outcome, clients, cursor, load.round)
        outcome.count(clients)
        return outcome

    def shorten(self, outcome: ServerRun, levels: dict[str, LevelModel], load: Load) -> None:
        """Search for a shorter schedule that violates the invariant, with few clients and few calls each."""
        with self._clients(levels, load) as (clients, cursor):
            for number, calls in ((2, 1), (3, 1), (3, 2), (load.clients, 1), (load.clients, 2)):
                deadline = time.monotonic() + load.seconds
                again = ServerRun(outcome.levels, [])
                while time.monotonic() < deadline and not again.broken:
                    self._round(again, clients[:number], cursor, ROUND_AT_MOST, calls)
                if again.schedule is not None and outcome.is_longer(again.schedule.called):
                    outcome.schedule = again.schedule
                    return

    @contextmanager
    def _clients(self, levels: dict[str, LevelModel], load: Load) -> Iterator[tuple[list[Client], Any]]:
        level_names = {name: self.store.setting_names[level.name] for name, level in levels.items()}
        with ExitStack() as opened:
            connection = self.adapter.connect()
            opened.callback(connection.close)
            clients = []
            for number in range(1, load.clients + 1):
                clients.append(Client(self.program, self.adapter, level_names, load, number))
                opened.callback(clients[-1].connection.close)
            yield clients, connection.cursor

    def _round(
        self, outcome: ServerRun, clients: list[Client], cursor: Any, seconds: float, calls: int | None = None
    ) -> None:
        """Reset the tables, run all clients at once, and keep the shortest schedule that violates the invariant."""
        self.reset(cursor)
        deadline = time.monotonic() + seconds
        threads = [threading.Thread(target=client.work, args=(deadline, calls), daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        broken = self.broken(cursor)
        outcome.broken += [name for name in broken if name not in outcome.broken]
        called = [call for client in clients for call in client.called]
        if broken and outcome.is_longer(called):
            outcome.schedule = Schedule(called, broken, self.rows(cursor))

    def rows(self, cursor: Any) -> State:
        """Return all rows as a state of the explorer."""
        tables = []
        for table in self.program.tables:
            names = ", ".join([*table.names, *([] if table.key else [HIDDEN])])
            cursor.execute(f"SELECT {names} FROM {table.name}")
            tables.append(tuple(sorted(row_of(table, fields) for fields in cursor.fetchall())))
        return tuple(tables)

    def broken(self, cursor: Any) -> list[str]:
        found = []
        for clause in self.program.invariant:
            cursor.execute(f"SELECT {Sql(self.program, server=True).expr(clause.condition, {})}")
            if not cursor.fetchone()[0]:
                found.append(clause.name)
        return found


def _adapter(url: str, settings: dict[str, str]) -> SqlAdapter:
    from plume_py.collect.registry import open_adapter

    adapter = open_adapter(Setup(url, session_settings=settings))
    assert isinstance(adapter, SqlAdapter)
    return adapter


def initial_state(program: ir.Application) -> Any:
    tables = []
    for table in program.tables:
        rows = [row for name, row in program.rows if name == table.name]
        keyed = [
            (tuple(row[table.index(c)] for c in table.key) if table.key else number, row)
            for number, row in enumerate(rows, 1)
        ]
        tables.append(tuple(sorted(keyed)))
    return tuple(tables)


Answers = dict[str, dict[str, str]]  # transaction -> level -> answer
SAFE, UNSAFE, OPEN = "found safe", "found unsafe", "undecided"


def level_assignments(
    store: StoreModel, names: list[str], inferred: dict[str, LevelModel], answers: Answers, every: bool
) -> Iterator[dict[str, LevelModel]]:
    """Yield the inferred levels, then those with one transaction at an unsafe level; or all assignments of levels."""
    if every:
        for chosen in product(store.levels, repeat=len(names)):
            yield dict(zip(names, chosen, strict=True))
        return
    yield dict(inferred)
    for name in names:
        for level in store.levels:
            if answers[name][level.name] == VIOLATED:
                yield {**inferred, name: level}


def expectation(store: StoreModel, levels: dict[str, LevelModel], answers: Answers) -> str:
    """Return the expectation for these levels. In a mix, SERIALIZABLE may provide only a weaker level."""
    all_serial = all(level.is_serial for level in levels.values())
    found = {
        answers[name][level.name if all_serial else store.name_beside_weaker(level)] for name, level in levels.items()
    }
    return UNSAFE if VIOLATED in found else OPEN if UNDECIDED in found else SAFE


Report = Callable[[ServerRun, str], None]


def run_assignments(
    program: ir.Application,
    kind: str,
    inferred: dict[str, LevelModel],
    answers: Answers,
    load: Load,
    every: bool,
    report: Report,
) -> tuple[str, list[tuple[ServerRun, str]]]:
    """Run each assignment of levels; return the server's version, and each run with its expectation.

    If a run contradicts the expectation "found safe", search for a short schedule.
    """
    server = SqlServer(program, kind)
    found = []
    with server:
        version = server.version()
        names = [txn.name for txn in program.transactions]
        for levels in level_assignments(server.store, names, inferred, answers, every):
            outcome = server.run(levels, load)
            expected = SAFE if levels == inferred else expectation(server.store, levels, answers)
            if outcome.broken and expected == SAFE:
                server.shorten(outcome, levels, load)
            found.append((outcome, expected))
            report(outcome, expected)
    return version, found
