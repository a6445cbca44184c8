"""Concrete interpreter of flat code, one statement at a time.

A state holds a tuple of (key, row) per table. Without primary key, the key is a hidden row number. The explorer, the
replay and the client of a server all run transactions with ``Machine``.
"""

from collections.abc import Callable, Iterable
from typing import Any

from plume_py.reasoning.infer.execution.bytecode import FlatCode, Instruction
from plume_py.reasoning.infer.execution.evaluate import Evaluate, Frame, Row, RowKeys, State, Writes, compiled, overlay
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.locking_statements import Locking, row_of

# Until a transaction commits, its new rows have hidden row numbers from here on. Committed rows have smaller ones.
OWN_ROWS = 1000


class RollbackSignal(Exception):  # noqa: N818
    """The transaction rolls back: a condition failed, a row is missing, or the database rejected a statement."""


class Machine:
    """A transaction in progress. Copies are cheap, so that a search can branch."""

    __slots__ = (
        "begun", "code", "deleted_by_others", "frame", "inserted", "locked", "log", "pc", "reads", "replaced",
        "snapshot", "writes",
    )  # fmt: skip

    def __init__(self, code: FlatCode, args: Frame) -> None:
        self.code = code
        self.frame: Frame = dict(args)
        self.pc = 0
        self.writes: Writes = {}
        self.reads: RowKeys = frozenset()
        self.locked: RowKeys = frozenset()  # rows locked by FOR UPDATE
        self.inserted: RowKeys = frozenset()  # new rows of tables with a primary key
        self.replaced: RowKeys = frozenset()  # rows that it deleted and inserted again
        self.deleted_by_others: RowKeys = frozenset()  # rows that others deleted since it last found rows
        self.snapshot: State | None = None
        self.begun = False
        self.log: Any = None
        self._advance()

    def copy(self) -> "Machine":
        twin = object.__new__(Machine)
        twin.code, twin.frame, twin.pc = self.code, dict(self.frame), self.pc
        twin.writes, twin.reads, twin.inserted = dict(self.writes), self.reads, self.inserted
        twin.begun, twin.replaced, twin.deleted_by_others = self.begun, self.replaced, self.deleted_by_others
        twin.snapshot, twin.locked, twin.log = self.snapshot, self.locked, None
        return twin

    def fingerprint(self) -> tuple[Any, ...]:
        """Return the parts of the machine that determine its further execution."""
        return (
            self.pc,
            tuple(sorted(self.frame.items(), key=lambda item: item[0])),
            tuple(sorted(self.writes.items(), key=lambda item: item[0])),
            self.reads,
            self.locked,
            self.deleted_by_others,
            self.snapshot,
        )

    def deleted(self) -> RowKeys:
        """Return the rows that its commit deletes, even if other rows with their keys exist then."""
        return self.replaced | {place for place, row in self.writes.items() if row is None}

    def note_deleted(self, deleted: RowKeys) -> None:
        """Record that another transaction committed and deleted these rows."""
        self.deleted_by_others |= deleted

    @property
    def is_done(self) -> bool:
        return self.pc >= len(self.code.instructions)

    @property
    def next(self) -> Instruction:
        return self.code.instructions[self.pc]

    def step(self, now: State) -> None:
        """Execute the next statement on the database state ``now``, and all local statements after it."""
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
        """Return the state that a statement sees: the current one or the snapshot, with the transaction's writes."""
        base = now if which == "current" else self.snapshot
        assert base is not None
        seen = overlay(base, self.writes)
        old = self.old_rows() if which == "snapshot" else {}
        return tuple((*rows, *old[i]) if i in old else rows for i, rows in enumerate(seen)) if old else seen

    def old_rows(self) -> dict[int, list[Row]]:
        """Return rows of the snapshot that others deleted and whose keys the transaction inserted, by table.

        If writes are evaluated on a snapshot, statements see both rows.
        """
        found: dict[int, list[Row]] = {}
        if self.inserted and self.code.level.write == "snapshot" and self.snapshot is not None:
            for table, key in sorted(self.inserted):
                found.setdefault(table, []).extend(row for row in self.snapshot[table] if row[0] == key)
        return {table: rows for table, rows in found.items() if rows}

    def require_current(self, table: int, rows: list[Row]) -> list[Row]:
        """Return the rows to lock. Roll back if one of them was deleted since the snapshot."""
        if any(row in rows for row in self.old_rows().get(table, ())):
            raise RollbackSignal("a row was deleted since the snapshot")
        return rows

    def select_view(self, stmt: ir.SelectOne | ir.SelectAll, now: State) -> State:
        """Return the state that a SELECT sees. FOR UPDATE reads the state that an UPDATE would."""
        if getattr(stmt, "newest", False):
            return self.view(now, "current")
        return self.view(now, self.code.level.write if stmt.lock else self.code.level.select)

    def _note_reads(self, table: int, rows: Iterable[Row], lock: bool = False) -> None:
        if lock:
            self.locked |= {(table, key) for key, _ in rows}
        if self.code.level.locks_reads:
            self.reads |= {(table, key) for key, _ in rows}


def _found(machine: Machine, stmt: Locking, where: Evaluate, table: int, view: State) -> list[Row]:
    """Return the rows that match; with ``within``, only rows of that set which were not deleted since."""
    rows = _matching(machine, where, row_of(stmt), table, view)
    if not stmt.within:
        return rows
    keys = {key for key, _ in machine.frame[stmt.within] if (table, key) not in machine.deleted_by_others}
    return [row for row in rows if row[0] in keys]


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
    table, view = machine.code.shape.index[stmt.table], machine.select_view(stmt, now)
    found = _found(machine, stmt, instruction.run, table, view)
    machine.log = found[:1]
    if not found:
        raise RollbackSignal(f"no such row in {stmt.table}")
    machine._note_reads(table, machine.require_current(table, found[:1]) if stmt.lock else found[:1], stmt.lock)
    machine.frame[stmt.row] = found[0]


def _select_all(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.SelectAll)
    table, view = machine.code.shape.index[stmt.table], machine.select_view(stmt, now)
    found = _found(machine, stmt, instruction.run, table, view)
    if not stmt.lock:
        machine.deleted_by_others = frozenset()
    machine._note_reads(table, machine.require_current(table, found) if stmt.lock else found, stmt.lock)
    machine.log = found
    machine.frame[stmt.rows] = tuple(found)


def _let(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Let)
    values = _evaluate(machine, instruction, now, stmt.values)
    machine.frame.update(zip(stmt.names, values, strict=True))
    machine.log = values[0] if len(values) == 1 else values


def _choose(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.If)
    (machine.log,) = _evaluate(machine, instruction, now, (stmt.condition,))
    if not machine.log:
        machine.pc = instruction.target


def _require(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Require)
    (machine.log,) = _evaluate(machine, instruction, now, (stmt.condition,))
    if not machine.log:
        raise RollbackSignal("a required condition does not hold")


def _evaluate(machine: Machine, instruction: Instruction, now: State, exprs: tuple[ir.Expr, ...]) -> list[Any]:
    """Return the values of an instruction's expressions. Rows that match a query's condition count as read."""
    if not instruction.touches:
        return [value((), machine.frame) for value in instruction.run]
    view = machine.view(now, machine.code.level.select)
    if machine.code.level.locks_reads:
        for query in (query for expr in exprs for query in ir.queries(expr)):
            table = machine.code.shape.index[query.source]
            machine._note_reads(table, _matching_query(machine, query, table, view))
    return [value(view, machine.frame) for value in instruction.run]


def _matching_query(machine: Machine, query: ir.Query, table: int, view: State) -> list[Row]:
    where = compiled(query.where, machine.code.shape)
    try:
        return _matching(machine, where, query.var, table, view)
    except KeyError:  # a nested query whose outer row is not bound here: it locks the whole table
        return list(view[table])


def _insert(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Insert)
    shape = machine.code.shape
    index, table = shape.index[stmt.table], shape.program.table(stmt.table)
    view = machine.view(now, machine.code.level.write)
    row = tuple(value(view, machine.frame) for value in instruction.run)
    if table.key:
        key: Any = tuple(row[table.index(column)] for column in table.key)
        # Uniqueness is checked on the committed state, even if the transaction reads an older one.
        if any(other == key for other, _ in overlay(now, machine.writes)[index]):
            raise RollbackSignal(f"{stmt.table} has a row with this key")
        # A row that it deleted is visible to others until it commits, but it holds the lock.
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
    found = machine.require_current(table, _found(machine, stmt, where, table, view))
    frame, changed = dict(machine.frame), []
    for key, row in found:
        frame[stmt.var] = key, row
        new = list(row)
        for place, value in sets:
            new[place] = value(view, frame)
        changed.append((key, tuple(new)))
    # In InnoDB an UPDATE that changes no column creates no version: the row is locked, and the snapshot still shows
    # the old version.
    same = {*found} & {*changed} if machine.code.level.late_snapshot else set()
    machine.locked |= {(table, key) for key, _ in same}
    for key, row in changed:
        if (key, row) not in same:
            machine.writes[table, key] = row
    machine.log = changed


def _delete(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Delete)
    table = machine.code.shape.index[stmt.table]
    view = machine.view(now, machine.code.level.write)
    found = _found(machine, stmt, instruction.run, table, view)
    for key, _ in machine.require_current(table, found):
        machine.writes[table, key] = None
    machine.log = found


def _loop(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.ForEach)
    rows = machine.frame[stmt.source]
    machine.frame[instruction.name] = rows[::-1] if stmt.backwards and machine.frame[stmt.backwards] else rows


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
