"""Concrete execution: states are tuples of rows, and transactions become flat code.

A state holds, for each table, a tuple of (key, row); the key of a table without primary key is a hidden row number.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from plume_py.infer.language import ir
from plume_py.infer.run.evaluate import Evaluate, Frame, Row, State, TableShape, Writes, compiled, overlay
from plume_py.infer.stores import LevelModel, under

# Hidden row numbers: those of the initial state and of others are below, those of the transaction at hand from here on.
OWN_ROWS = 1000


@dataclass(frozen=True)
class Instruction:
    """One step of flat code. ``touches``: it looks at the database or changes it, so others may commit before it."""

    kind: str
    stmt: ir.Stmt
    touches: bool
    reads_current: bool
    locks: bool = False
    run: Any = None  # its expressions, compiled
    target: int = -1
    name: str = ""


class Code:
    """A transaction as flat code, for one level."""

    def __init__(self, program: ir.Application, txn: ir.TransactionProgram, level: LevelModel) -> None:
        self.program, self.txn, self.level = program, txn, level
        as_run = under(txn, level, program)
        self.shape = TableShape(program).of_transaction(as_run)
        self.instructions: list[Instruction] = []
        self._block(as_run.body)
        self.assume = [compiled(condition, self.shape) for condition in txn.assume]

    def _block(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, ir.If):
                self._if(stmt)
            elif isinstance(stmt, ir.ForEach):
                self._loop(stmt)
            else:
                self.instructions.append(_instruction(stmt, self.shape, self.level))

    def _if(self, stmt: ir.If) -> None:
        at = len(self.instructions)
        self.instructions.append(_instruction(stmt, self.shape, self.level))
        self._block(stmt.then)
        if stmt.otherwise:
            skip = len(self.instructions)
            self.instructions.append(Instruction("jump", stmt, False, False))
            self._aim(at, len(self.instructions))
            self._block(stmt.otherwise)
            self._aim(skip, len(self.instructions))
        else:
            self._aim(at, len(self.instructions))

    def _loop(self, stmt: ir.ForEach) -> None:
        left = f"left {len(self.instructions)}"
        self.instructions.append(Instruction("loop", stmt, False, False, name=left))
        at = len(self.instructions)
        self.instructions.append(Instruction("next", stmt, False, False, name=left))
        self._block(stmt.body)
        self.instructions.append(Instruction("jump", stmt, False, False, target=at))
        self._aim(at, len(self.instructions))

    def _aim(self, at: int, target: int) -> None:
        old = self.instructions[at]
        self.instructions[at] = Instruction(
            old.kind, old.stmt, old.touches, old.reads_current, old.locks, old.run, target, old.name
        )


def _instruction(stmt: ir.Stmt, shape: TableShape, level: LevelModel) -> Instruction:
    touches = ir.reads_database(stmt)
    writes = isinstance(stmt, ir.Insert | ir.Update | ir.Delete) or getattr(stmt, "lock", False)
    current = touches and (level.write if writes else level.select) == "current"
    return Instruction(type(stmt).__name__, stmt, touches, current, bool(writes), _action(stmt, shape))


def _action(stmt: ir.Stmt, shape: TableShape) -> Any:
    """What the instruction needs at run time: its expressions, compiled."""
    if isinstance(stmt, ir.SelectOne | ir.SelectAll | ir.Delete):
        return compiled(stmt.where, shape)
    if isinstance(stmt, ir.Update):
        places = shape.program.table(stmt.table)
        sets = [(places.index(column), compiled(value, shape)) for column, value in stmt.sets]
        return compiled(stmt.where, shape), sets
    if isinstance(stmt, ir.Insert):
        return [compiled(value, shape) for value in stmt.values]
    if isinstance(stmt, ir.Let):
        return [compiled(value, shape) for value in stmt.values]
    assert isinstance(stmt, ir.If | ir.Require)
    return compiled(stmt.condition, shape)


class RollbackSignal(Exception):  # noqa: N818
    """The transaction gives up: a condition failed, a row is missing, or the database refused."""


class Machine:
    """A transaction in progress. Copies are cheap, so a search can branch."""

    __slots__ = (
        "begun", "code", "frame", "gone", "inserted", "locked", "log", "pc", "reads", "replaced", "snapshot", "writes"
    )  # fmt: skip

    def __init__(self, code: Code, args: Frame) -> None:
        self.code = code
        self.frame: Frame = dict(args)
        self.pc = 0
        self.writes: Writes = {}
        self.reads: frozenset[tuple[int, Any]] = frozenset()
        self.locked: frozenset[tuple[int, Any]] = frozenset()  # by FOR UPDATE
        self.inserted: frozenset[tuple[int, Any]] = frozenset()  # rows with a primary key that were not there before
        self.replaced: frozenset[tuple[int, Any]] = frozenset()  # rows that it has deleted and inserted again
        self.gone: frozenset[tuple[int, Any]] = frozenset()  # rows that others have deleted since it last found some
        self.snapshot: State | None = None
        self.begun = False
        self.log: Any = None
        self._advance()

    def copy(self) -> "Machine":
        """A machine in the same state."""
        twin = object.__new__(Machine)
        twin.code, twin.frame, twin.pc = self.code, dict(self.frame), self.pc
        twin.writes, twin.reads, twin.inserted = dict(self.writes), self.reads, self.inserted
        twin.begun, twin.replaced, twin.gone = self.begun, self.replaced, self.gone
        twin.snapshot, twin.locked, twin.log = self.snapshot, self.locked, None
        return twin

    def fingerprint(self) -> tuple[Any, ...]:
        """What decides how it goes on."""
        return (
            self.pc,
            tuple(sorted(self.frame.items(), key=lambda item: item[0])),
            tuple(sorted(self.writes.items(), key=lambda item: item[0])),
            self.reads,
            self.locked,
            self.gone,
            self.snapshot,
        )

    def deleted(self) -> frozenset[tuple[int, Any]]:
        """The rows that are gone once it has committed, even if there are others with their keys."""
        return self.replaced | {place for place, row in self.writes.items() if row is None}

    def meanwhile(self, deleted: frozenset[tuple[int, Any]]) -> None:
        """Another transaction has committed, and these rows are gone."""
        self.gone |= deleted

    @property
    def is_done(self) -> bool:
        """Is only the commit left?"""
        return self.pc >= len(self.code.instructions)

    @property
    def next(self) -> Instruction:
        """The statement it would execute next."""
        return self.code.instructions[self.pc]

    def step(self, now: State) -> None:
        """Execute the next statement while the database is in state ``now``, and all local ones after it."""
        if self.snapshot is None and not (self.code.level.late_snapshot and self.next.locks):
            self.snapshot = now
        self.begun = True
        self._execute(self.next, now)
        result = self.log
        self._advance()
        self.log = result

    def _advance(self) -> None:
        while not self.is_done and not self.next.touches:
            self._execute(self.next, ())

    def _execute(self, instruction: Instruction, now: State) -> None:
        self.pc += 1
        handler = _HANDLERS[instruction.kind]
        handler(self, instruction, now)

    def view(self, now: State, which: str) -> State:
        """What a statement sees: its base with the transaction's own writes."""
        base = now if which == "current" else self.snapshot
        assert base is not None
        return overlay(base, self.writes)

    def look_up(self, stmt: ir.SelectOne | ir.SelectAll, now: State) -> State:
        """What a SELECT sees; FOR UPDATE looks where an UPDATE would."""
        return self.view(now, self.code.level.write if stmt.lock else self.code.level.select)

    def _see(self, table: int, rows: Iterable[Row], lock: bool = False) -> None:
        if lock:
            self.locked |= {(table, key) for key, _ in rows}
        if self.code.level.locks_reads:
            self.reads |= {(table, key) for key, _ in rows}


def _matching(machine: Machine, where: Evaluate, var: str, table: int, view: State) -> list[Row]:
    frame = dict(machine.frame)
    found = []
    for row in view[table]:
        frame[var] = row
        if where(view, frame):
            found.append(row)
    return found


def _select_one(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.SelectOne)
    table = machine.code.shape.index[stmt.table]
    found = _within(
        machine, stmt.within, table, _matching(machine, instruction.run, stmt.row, table, machine.look_up(stmt, now))
    )
    machine.log = found[:1]
    if not found:
        raise RollbackSignal(f"no such row in {stmt.table}")
    machine._see(table, found[:1], stmt.lock)
    machine.frame[stmt.row] = found[0]


def _select_all(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.SelectAll)
    table = machine.code.shape.index[stmt.table]
    found = _within(
        machine, stmt.within, table, _matching(machine, instruction.run, stmt.var, table, machine.look_up(stmt, now))
    )
    if not stmt.lock:
        machine.gone = frozenset()
    machine._see(table, found, stmt.lock)
    machine.log = found
    machine.frame[stmt.rows] = tuple(found)


def _let(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Let)
    asked = [query for value in stmt.values for query in ir.queries(value)]
    values = _look(machine, instruction, now, asked)
    machine.frame.update(zip(stmt.names, values, strict=True))
    machine.log = values[0] if len(values) == 1 else values


def _look(machine: Machine, instruction: Instruction, now: State, queries: list[ir.Query]) -> Any:
    """Evaluate a value that may ask the database. Rows that a query's outer table gives count as read."""
    parts = instruction.run if isinstance(instruction.run, list) else [instruction.run]
    if not instruction.touches:
        values = [part((), machine.frame) for part in parts]
        return values if isinstance(instruction.run, list) else values[0]
    view = machine.view(now, machine.code.level.select)
    if machine.code.level.locks_reads:
        # A query locks the rows it goes through; its condition may speak of rows bound inside, so all of the table.
        for query in queries:
            table = machine.code.shape.index[query.source]
            machine._see(table, _matching_query(machine, query, table, view))
    values = [part(view, machine.frame) for part in parts]
    return values if isinstance(instruction.run, list) else values[0]


def _matching_query(machine: Machine, query: ir.Query, table: int, view: State) -> list[Row]:
    where = compiled(query.where, machine.code.shape)
    try:
        return _matching(machine, where, query.var, table, view)
    except KeyError:  # a nested query: its outer row is not bound here
        return list(view[table])


def _choose(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.If)
    machine.log = _look(machine, instruction, now, ir.queries(stmt.condition))
    if not machine.log:
        machine.pc = instruction.target


def _require(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Require)
    machine.log = _look(machine, instruction, now, ir.queries(stmt.condition))
    if not machine.log:
        raise RollbackSignal("a required condition does not hold")


def _insert(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Insert)
    shape = machine.code.shape
    index, table = shape.index[stmt.table], shape.program.table(stmt.table)
    view = machine.view(now, machine.code.level.write)
    row = tuple(value(view, machine.frame) for value in instruction.run)
    if table.key:
        key: Any = tuple(row[table.index(column)] for column in table.key)
        # Uniqueness is checked on what is committed now, whatever the transaction itself may see.
        if any(other == key for other, _ in overlay(now, machine.writes)[index]):
            raise RollbackSignal(f"{stmt.table} has a row with this key")
        # A row that it has deleted itself is still there for others, but it holds the lock.
        if (index, key) not in machine.writes:
            machine.inserted |= {(index, key)}
        elif (index, key) not in machine.inserted:
            machine.replaced |= {(index, key)}
    else:
        key = OWN_ROWS + len(machine.writes)
    machine.writes[index, key] = row
    machine.log = [(key, row)]


def _update(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Update)
    table = machine.code.shape.index[stmt.table]
    view = machine.view(now, machine.code.level.write)
    where, sets = instruction.run
    found = _within(machine, stmt.within, table, _matching(machine, where, stmt.var, table, view))
    frame, changed = dict(machine.frame), []
    for key, row in found:
        frame[stmt.var] = key, row
        new = list(row)
        for place, value in sets:
            new[place] = value(view, frame)
        changed.append((key, tuple(new)))
    for key, row in changed:
        machine.writes[table, key] = row
    machine.log = changed


def _delete(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Delete)
    table = machine.code.shape.index[stmt.table]
    view = machine.view(now, machine.code.level.write)
    found = _within(machine, stmt.within, table, _matching(machine, instruction.run, stmt.var, table, view))
    for key, _ in found:
        machine.writes[table, key] = None
    machine.log = found


def _within(machine: Machine, name: str, table: int, rows: list[Row]) -> list[Row]:
    """Of these rows those that were found before, if that was asked; one that was deleted since is another row."""
    if not name:
        return rows
    keys = {key for key, _ in machine.frame[name] if (table, key) not in machine.gone}
    return [row for row in rows if row[0] in keys]


def _loop(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.ForEach)
    machine.frame[instruction.name] = machine.frame[stmt.source]


def _next(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.ForEach)
    left = machine.frame[instruction.name]
    if left:
        machine.frame[stmt.var], machine.frame[instruction.name] = left[0], left[1:]
    else:
        machine.pc = instruction.target


def _jump(machine: Machine, instruction: Instruction, now: State) -> None:
    machine.pc = instruction.target


_HANDLERS: dict[str, Callable[[Machine, Instruction, State], None]] = {
    "SelectOne": _select_one,
    "SelectAll": _select_all,
    "Let": _let,
    "If": _choose,
    "Require": _require,
    "Insert": _insert,
    "Update": _update,
    "Delete": _delete,
    "loop": _loop,
    "next": _next,
    "jump": _jump,
}
