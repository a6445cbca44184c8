"""A client of a real server: it calls transactions of a program, one statement after the other, and notes what came."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plume_py.collect.adapter import AbortedError, first_line
from plume_py.collect.adapters.sql import SqlAdapter
from plume_py.reasoning.infer.execution.bytecode import Code
from plume_py.reasoning.infer.execution.domains import Domains
from plume_py.reasoning.infer.execution.evaluate import Frame, TableShape
from plume_py.reasoning.infer.execution.interpreter import Machine, RollbackSignal
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.to_sql import values_in
from plume_py.reasoning.infer.statement_models import STORES


@dataclass(frozen=True)
class Load:
    """How many clients, for how long, and how long a client thinks between statements, at most."""

    clients: int = 6
    seconds: float = 1.0
    round: float = 0.25  # after this many seconds the rows are those of the beginning again
    pause: float = 0.002
    seed: int = 0


@dataclass(frozen=True)
class Executed:
    """A statement that a server has executed."""

    asked: float  # when it was sent, and when the answer came
    answered: float
    stmt: ir.Stmt | None  # None: the commit
    frame: Frame  # arguments and what was read before
    shape: TableShape
    result: Any = None  # what was read, or how many rows were changed


@dataclass
class Called:
    """A transaction that a client has called and that has committed."""

    client: int
    transaction: str
    level: str
    args: tuple[tuple[str, Any], ...]
    statements: list[Executed] = field(default_factory=list)


# The server does the isolation, so any model will do for the flat code.
_PLAIN = STORES["ansi"].levels[0]


class Client:
    """One connection, one transaction after the other; ``spelled`` are the settings of the transactions."""

    def __init__(
        self, program: ir.Application, adapter: SqlAdapter, spelled: dict[str, str], load: Load, number: int
    ) -> None:
        self.adapter, self.load, self.number = adapter, load, number
        self.spelled = spelled
        self.connection = adapter.connect()
        self.random = random.Random(f"{load.seed} {number}")
        self.counts: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.called: list[Called] = []  # since the rows were those of the beginning
        domains = Domains(program, 2)
        self.codes = [Code(program, txn, _PLAIN) for txn in program.transactions]
        self.arguments = [domains.arguments(code) for code in self.codes]

    def work(self, deadline: float, calls: int | None = None) -> None:
        """One call after the other until the time is up, or so many."""
        self.called = []
        while time.monotonic() < deadline and (calls is None or calls > 0):
            place = self.random.randrange(len(self.codes))
            self._call(self.codes[place], self.random.choice(self.arguments[place]))
            calls = None if calls is None else calls - 1

    def _call(self, code: Code, args: dict[str, Any]) -> None:
        level = self.spelled[code.txn.name]
        called = Called(self.number, code.txn.name, level, tuple(args.items()))
        try:
            self.connection.begin(level)
            machine = Machine(code, args)
            while not machine.is_done:
                self._think()
                called.statements.append(execute(machine, self.connection.cursor))
            self._think()
            asked = time.monotonic()
            self.connection.commit()
            called.statements.append(Executed(asked, time.monotonic(), None, {}, code.shape))
            self.called.append(called)
            self.counts["commit"] += 1
        except RollbackSignal:
            self.connection.rollback()
            self.counts["rollback"] += 1
        except Exception as error:
            self._failed(error)

    def _think(self) -> None:
        if self.load.pause:
            time.sleep(self.random.random() * self.load.pause)

    def _failed(self, error: Exception) -> None:
        """Serialization failures, deadlocks and constraints are part of the game; anything else is told."""
        if isinstance(error, AbortedError) or self.adapter.is_rejection(error):
            self.counts["refused"] += 1
        else:
            self.problems[first_line(error)[:200]] += 1
        try:
            self.connection.rollback()
        except Exception as second:
            self.problems[first_line(second)[:200]] += 1


def execute(machine: Machine, cursor: Any) -> Executed:
    """Execute the next statement of a transaction on a server, and what follows locally."""
    instruction = machine.next
    stmt, frame, shape = instruction.stmt, machine.frame, machine.code.shape
    before, asked = dict(frame), time.monotonic()
    machine.pc += 1
    result = _execute(machine, stmt, cursor)
    answered = time.monotonic()
    if isinstance(stmt, ir.Require) and not result:
        raise RollbackSignal("a required condition does not hold")
    if isinstance(stmt, ir.If) and not result:
        machine.pc = instruction.target
    machine._advance()
    return Executed(asked, answered, stmt, before, shape, result)


def _execute(machine: Machine, stmt: ir.Stmt, cursor: Any) -> Any:
    """The answer, which is also put where later statements look for it."""
    frame, shape = machine.frame, machine.code.shape
    render = values_in(shape, frame, server=True)
    if isinstance(stmt, ir.If | ir.Require):
        cursor.execute(f"SELECT {render.expr(stmt.condition, {})}")
        return bool(cursor.fetchone()[0])
    cursor.execute(render.statement(stmt))
    if isinstance(stmt, ir.Let):
        values = [_whole(value) for value in cursor.fetchone()]
        frame.update(zip(stmt.names, values, strict=True))
        return values
    if isinstance(stmt, ir.SelectOne | ir.SelectAll):
        rows = tuple(row_of(shape.program.table(stmt.table), found) for found in cursor.fetchall())
        if isinstance(stmt, ir.SelectAll):
            frame[stmt.rows] = rows
        elif not rows:
            raise RollbackSignal(f"no such row in {stmt.table}")
        else:
            frame[stmt.row] = rows[0]
        return rows
    return cursor.rowcount


def row_of(table: ir.Table, fields: Sequence[Any]) -> tuple[Any, tuple[ir.Value, ...]]:
    """A row as the explorer has it; the last field is the hidden number of one without primary key."""
    row = tuple(bool(v) if sort == "bool" else _whole(v) for v, (_, sort) in zip(fields, table.columns, strict=False))
    return (tuple(row[table.index(c)] for c in table.key) if table.key else fields[-1]), row


def _whole(value: Any) -> ir.Value:
    """Sums come as decimals."""
    return value if isinstance(value, bool | int | str) else int(value)
