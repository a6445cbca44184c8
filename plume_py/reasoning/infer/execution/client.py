"""Client of a real server: calls random transactions of a program and records statements, answers and errors.

``server`` runs one ``Client`` per thread.
"""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plume_py.collect.adapter import AbortedError, first_line
from plume_py.collect.adapters.sql import SqlAdapter
from plume_py.reasoning.infer.execution.bytecode import FlatCode
from plume_py.reasoning.infer.execution.domains import Domains
from plume_py.reasoning.infer.execution.evaluate import Frame, TableShape
from plume_py.reasoning.infer.execution.interpreter import Machine, RollbackSignal
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.to_sql import sql_with_values
from plume_py.reasoning.infer.statement_models import STORES


@dataclass(frozen=True)
class Load:
    """Number of clients, and seconds for the run, per round and, at most, between two statements of a client."""

    clients: int = 6
    seconds: float = 1.0
    round: float = 0.25  # the tables are reset to the initial rows after this many seconds
    pause: float = 0.002
    seed: int = 0


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement that a server has executed."""

    asked: float  # time of the request; ``answered`` is the time of the answer
    answered: float
    stmt: ir.Stmt | None  # None for the commit
    frame: Frame  # arguments and values that earlier statements read
    shape: TableShape
    result: Any = None  # the rows or values that were read, or the number of changed rows


@dataclass
class CommittedCall:
    """A committed call of a transaction."""

    client: int
    transaction: str
    level: str
    args: tuple[tuple[str, Any], ...]
    statements: list[ExecutedStatement] = field(default_factory=list)


# The server isolates the transactions, so the code may be made for any level.
_PLAIN = STORES["ansi"].levels[0]


class Client:
    """One connection that executes one transaction after the other. ``level_names`` has the level of each."""

    def __init__(
        self, program: ir.Application, adapter: SqlAdapter, level_names: dict[str, str], load: Load, number: int
    ) -> None:
        self.adapter, self.load, self.number = adapter, load, number
        self.level_names = level_names
        self.connection = adapter.connect()
        self.random = random.Random(f"{load.seed} {number}")
        self.counts: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.called: list[CommittedCall] = []  # since the tables were reset
        domains = Domains(program, 2)
        self.codes = [FlatCode(program, txn, _PLAIN) for txn in program.transactions]
        self.arguments = [domains.arguments(code) for code in self.codes]

    def work(self, deadline: float, calls: int | None = None) -> None:
        """Call transactions until the deadline, at most ``calls`` of them."""
        self.called = []
        while time.monotonic() < deadline and (calls is None or calls > 0):
            place = self.random.randrange(len(self.codes))
            self._call(self.codes[place], self.random.choice(self.arguments[place]))
            calls = None if calls is None else calls - 1

    def _call(self, code: FlatCode, args: dict[str, Any]) -> None:
        level = self.level_names[code.txn.name]
        called = CommittedCall(self.number, code.txn.name, level, tuple(args.items()))
        try:
            self.connection.begin(level)
            machine = Machine(code, args)
            while not machine.is_done:
                self._pause()
                called.statements.append(execute(machine, self.connection.cursor))
            self._pause()
            asked = time.monotonic()
            self.connection.commit()
            called.statements.append(ExecutedStatement(asked, time.monotonic(), None, {}, code.shape))
            self.called.append(called)
            self.counts["commit"] += 1
        except RollbackSignal:
            self.connection.rollback()
            self.counts["rollback"] += 1
        except Exception as error:
            self._failed(error)

    def _pause(self) -> None:
        if self.load.pause:
            time.sleep(self.random.random() * self.load.pause)

    def _failed(self, error: Exception) -> None:
        """Count an error. Serialization failures, deadlocks and constraint violations are expected, others are not."""
        if isinstance(error, AbortedError) or self.adapter.is_rejection(error):
            self.counts["refused"] += 1
        else:
            self.problems[first_line(error)[:200]] += 1
        try:
            self.connection.rollback()
        except Exception as second:
            self.problems[first_line(second)[:200]] += 1


def execute(machine: Machine, cursor: Any) -> ExecutedStatement:
    """Execute the next statement of a transaction on a server, and the local statements after it."""
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
    return ExecutedStatement(asked, answered, stmt, before, shape, result)


def _execute(machine: Machine, stmt: ir.Stmt, cursor: Any) -> Any:
    """Return the server's answer, and store it in the frame for later statements."""
    frame, shape = machine.frame, machine.code.shape
    render = sql_with_values(shape, frame, server=True)
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
    """Return a row as the explorer represents it. Without primary key, the last field is the hidden row number."""
    row = tuple(bool(v) if sort == "bool" else _whole(v) for v, (_, sort) in zip(fields, table.columns, strict=False))
    return (tuple(row[table.index(c)] for c in table.key) if table.key else fields[-1]), row


def _whole(value: Any) -> ir.Value:
    return value if isinstance(value, bool | int | str) else int(value)
