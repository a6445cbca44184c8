"""Programs on real servers: the same statements as SQL, many clients at once, the invariant evaluated afterwards."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from plume_py.base.errors import InputError, IsocheckError
from plume_py.collect.adapter import AbortedError, Setup, first_line
from plume_py.collect.adapters.sql import SqlAdapter
from plume_py.infer.language import ir
from plume_py.infer.language.to_sql import HIDDEN, Sql, literal, values_in
from plume_py.infer.run.domains import Domains
from plume_py.infer.run.machine import Code, Machine, RollbackSignal
from plume_py.infer.stores import STORES, LevelModel, StoreModel

STORE_OF = {"postgresql": "postgresql", "mariadb": "mysql"}
_TYPES = {"int": "BIGINT", "id": "BIGINT", "bool": "BOOLEAN", "text": "VARCHAR(200)"}
_HIDDEN = {
    "postgresql": f"{HIDDEN} BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "mariadb": f"{HIDDEN} BIGINT AUTO_INCREMENT PRIMARY KEY",
}
# Strict, as always; and as the standard has it, and our texts, a backslash is a backslash.
_SETTINGS = {"mariadb": {"sql_mode": "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_BACKSLASH_ESCAPES"}}


@dataclass(frozen=True)
class Load:
    """How many clients, for how long, and how long a client thinks between statements, at most."""

    clients: int = 6
    seconds: float = 1.0
    round: float = 0.25  # after this many seconds the rows are those of the beginning again
    pause: float = 0.002
    seed: int = 0


@dataclass
class ServerRun:
    """What happened at one assignment of levels."""

    levels: dict[str, str]
    broken: list[str]
    commits: int
    rollbacks: int
    refused: int  # by the server: serialization failures, deadlocks, constraints
    problems: Counter[str] = field(default_factory=Counter)


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
        from plume_py.infer.run.schedule import ScheduleRules

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
        """What the server says it is."""
        version = self.adapter.version()  # MariaDB is known by it
        return f"{self.adapter.name} {version}"

    def create(self) -> None:
        """Make the tables."""
        for table in self.program.tables:
            self.adapter.ask(self._create(table))

    def reset(self, cursor: Any) -> None:
        """Back to the rows of the beginning."""
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
        """Many clients call transactions at random, each at its level; then the invariant is evaluated."""
        connection = self.adapter.connect()
        try:
            counts: Counter[str] = Counter()
            problems: Counter[str] = Counter()
            clients = [_Client(self, levels, load, number, counts, problems) for number in range(load.clients)]
            broken: list[str] = []
            for _ in range(max(1, round(load.seconds / load.round))):
                self.reset(connection.cursor)
                deadline = time.monotonic() + load.round
                threads = [threading.Thread(target=client.work, args=(deadline,), daemon=True) for client in clients]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                broken += [name for name in self.broken(connection.cursor) if name not in broken]
            for client in clients:
                client.connection.close()
        finally:
            connection.close()
        names = {name: level.name for name, level in levels.items()}
        return ServerRun(names, broken, counts["commit"], counts["rollback"], counts["refused"], problems)

    def broken(self, cursor: Any) -> list[str]:
        """The clauses of the invariant that do not hold."""
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
    """The rows of the beginning as a state of the explorer."""
    tables = []
    for table in program.tables:
        rows = [row for name, row in program.rows if name == table.name]
        keyed = [
            (tuple(row[table.index(c)] for c in table.key) if table.key else number, row)
            for number, row in enumerate(rows, 1)
        ]
        tables.append(tuple(sorted(keyed)))
    return tuple(tables)


class _Client:
    """A client: one connection, one transaction after the other."""

    def __init__(
        self,
        server: SqlServer,
        levels: dict[str, LevelModel],
        load: Load,
        number: int,
        counts: Counter[str],
        problems: Counter[str],
    ) -> None:
        self.server, self.levels, self.load = server, levels, load
        self.connection = server.adapter.connect()
        self.random = random.Random(f"{load.seed} {number}")
        self.counts, self.problems = counts, problems
        # The server does the isolation, so any model will do for the flat code.
        domains = Domains(server.program, 2)
        self.codes = [Code(server.program, txn, _PLAIN) for txn in server.program.transactions]
        self.arguments = [domains.arguments(code) for code in self.codes]

    def work(self, deadline: float) -> None:
        """One call after the other until the time is up."""
        while time.monotonic() < deadline:
            place = self.random.randrange(len(self.codes))
            self._call(self.codes[place], self.random.choice(self.arguments[place]))

    def _call(self, code: Code, args: dict[str, Any]) -> None:
        level = self.server.store.says[self.levels[code.txn.name].name]
        try:
            self.connection.begin(level)
            machine = Machine(code, args)
            while not machine.is_done:
                if self.load.pause:
                    time.sleep(self.random.random() * self.load.pause)
                execute(machine, self.connection.cursor)
            self.connection.commit()
            self.counts["commit"] += 1
        except RollbackSignal:
            self.connection.rollback()
            self.counts["rollback"] += 1
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Serialization failures, deadlocks and constraints are part of the game; anything else is told."""
        if isinstance(error, AbortedError) or self.server.adapter.is_refusal(error):
            self.counts["refused"] += 1
        else:
            self.problems[first_line(error)[:200]] += 1
        try:
            self.connection.rollback()
        except Exception as second:
            self.problems[first_line(second)[:200]] += 1


_PLAIN = STORES["ansi"].levels[0]


def execute(machine: Machine, cursor: Any) -> None:
    """Execute the next statement of a transaction on a server, and what follows locally."""
    instruction = machine.next
    stmt, frame, shape = instruction.stmt, machine.frame, machine.code.shape
    render = values_in(shape, frame, server=True)
    machine.pc += 1
    if isinstance(stmt, ir.Let):
        cursor.execute(render.statement(stmt))
        values = cursor.fetchone()
        frame.update({name: _whole(value) for name, value in zip(stmt.names, values, strict=True)})
    elif isinstance(stmt, ir.If | ir.Require):
        cursor.execute(f"SELECT {render.expr(stmt.condition, {})}")
        holds = bool(cursor.fetchone()[0])
        if isinstance(stmt, ir.Require) and not holds:
            raise RollbackSignal("a required condition does not hold")
        if isinstance(stmt, ir.If) and not holds:
            machine.pc = instruction.target
    elif isinstance(stmt, ir.SelectOne | ir.SelectAll):
        cursor.execute(render.statement(stmt))
        table = shape.program.table(stmt.table)
        rows = tuple(_row(table, found) for found in cursor.fetchall())
        if isinstance(stmt, ir.SelectAll):
            frame[stmt.rows] = rows
        elif not rows:
            raise RollbackSignal(f"no such row in {stmt.table}")
        else:
            frame[stmt.row] = rows[0]
    else:
        cursor.execute(render.statement(stmt))
    machine._advance()


def _row(table: ir.Table, fields: tuple[Any, ...]) -> tuple[Any, tuple[ir.Value, ...]]:
    row = tuple(bool(v) if sort == "bool" else _whole(v) for v, (_, sort) in zip(fields, table.columns, strict=False))
    return (tuple(row[table.index(c)] for c in table.key) if table.key else fields[-1]), row


def _whole(value: Any) -> ir.Value:
    """Sums come as decimals."""
    return value if isinstance(value, bool | int | str) else int(value)


Safe = dict[str, set[str]]  # the names of the levels at which a transaction was not found to break the invariant


def vectors(
    store: StoreModel, names: list[str], inferred: dict[str, LevelModel], safe: Safe, every: bool
) -> Iterator[dict[str, LevelModel]]:
    """The inferred levels, then those with one transaction at a level that breaks; or all assignments there are."""
    if every:
        for chosen in product(store.levels, repeat=len(names)):
            yield dict(zip(names, chosen, strict=True))
        return
    yield dict(inferred)
    for name in names:
        for level in store.levels:
            if level.name not in safe[name]:
                yield {**inferred, name: level}


def _is_safe(store: StoreModel, levels: dict[str, LevelModel], safe: Safe) -> bool:
    """Is every transaction at a level that was found safe? Mixed, SERIALIZABLE may only be worth a weaker one."""
    if all(level.is_serial for level in levels.values()):
        return True
    return all(store.worth(level) in safe[name] for name, level in levels.items())


Report = Callable[[ServerRun, bool], None]


def sanity(
    program: ir.Application,
    kind: str,
    inferred: dict[str, LevelModel],
    safe: Safe,
    load: Load,
    every: bool,
    report: Report,
) -> tuple[str, list[tuple[ServerRun, bool]]]:
    """Run the vectors; the server's version, and each outcome with whether the inference calls it safe."""
    server = SqlServer(program, kind)
    found = []
    with server:
        version = server.version()
        names = [txn.name for txn in program.transactions]
        for levels in vectors(server.store, names, inferred, safe, every):
            outcome = server.run(levels, load)
            expected = levels == inferred or _is_safe(server.store, levels, safe)
            found.append((outcome, expected))
            report(outcome, expected)
    return version, found
