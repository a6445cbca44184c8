"""Concrete execution: states are tuples of rows, expressions become Python functions, transactions become flat code.

A state holds, for each table, a tuple of (key, row); the key of a table without primary key is a hidden row number.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from plume_py.infer import language as ir
from plume_py.infer.levels import Level, under

Row = tuple[Any, tuple[ir.Value, ...]]
State = tuple[tuple[Row, ...], ...]
Frame = dict[str, Any]
Writes = dict[tuple[int, Any], tuple[ir.Value, ...] | None]  # (table, key) -> new row, or None where deleted
Evaluate = Callable[[State, Frame], Any]

# Hidden row numbers: those of the initial state and of others are below, those of the transaction at hand from here on.
OWN_ROWS = 1000


class Shape:
    """Which columns each row variable and each row set has."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.columns: dict[str, tuple[str, ...]] = {}
        self.index = {table.name: i for i, table in enumerate(program.tables)}

    def of_transaction(self, txn: ir.Transaction) -> "Shape":
        """Learn the variables of a transaction."""
        for param in txn.params:
            if param.fields:
                self.columns[param.name] = tuple(name for name, _ in param.fields)
        for stmt in ir.statements(txn.body):
            if isinstance(stmt, ir.SelectOne):
                self.columns[stmt.row] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.SelectAll):
                self.columns[stmt.var] = self.columns[stmt.rows] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.Update | ir.Delete):
                self.columns[stmt.var] = self.program.table(stmt.table).names
            elif isinstance(stmt, ir.ForEach):
                self.columns[stmt.var] = self.columns[stmt.source]
            for node in ir.walk(stmt):
                if isinstance(node, ir.Expr):
                    self.of_expression(node)
        return self

    def of_expression(self, expr: ir.Expr) -> "Shape":
        """Learn the variables of queries."""
        for node in ir.walk(expr):
            if isinstance(node, ir.Query):
                local = node.is_local
                self.columns[node.var] = self.columns[node.source] if local else self.program.table(node.source).names
        return self


_OPS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "not": lambda a: not a,
}


def compiled(expr: ir.Expr, shape: Shape) -> Evaluate:
    """The expression as a function of a view and a frame."""
    if isinstance(expr, ir.Const):
        value = expr.value
        return lambda view, frame: value
    if isinstance(expr, ir.Arg | ir.Local):
        name = expr.name
        return lambda view, frame: frame[name]
    if isinstance(expr, ir.Field):
        row, place = expr.row, shape.columns[expr.row].index(expr.column)
        return lambda view, frame: frame[row][1][place]
    if isinstance(expr, ir.Same):
        left, right = expr.left, expr.right
        return lambda view, frame: frame[left][0] == frame[right][0]
    if isinstance(expr, ir.Query):
        return _query(expr, shape)
    assert isinstance(expr, ir.Op)
    return _operator(expr, [compiled(arg, shape) for arg in expr.args])


def _operator(expr: ir.Op, args: list[Evaluate]) -> Evaluate:
    if expr.op == "and":
        return lambda view, frame: all(arg(view, frame) for arg in args)
    if expr.op == "or":
        return lambda view, frame: any(arg(view, frame) for arg in args)
    if expr.op == "ite":
        test, then, other = args
        return lambda view, frame: then(view, frame) if test(view, frame) else other(view, frame)
    function = _OPS[expr.op]
    if len(args) == 1:
        (only,) = args
        return lambda view, frame: function(only(view, frame))
    left, right = args
    return lambda view, frame: function(left(view, frame), right(view, frame))


def _query(query: ir.Query, shape: Shape) -> Evaluate:
    where = compiled(query.where, shape)
    value = compiled(query.value, shape) if query.value is not None else None
    default = compiled(query.default, shape) if query.default is not None else None
    var, kind, source = query.var, query.kind, query.source
    table = -1 if query.is_local else shape.index[source]

    def chosen(view: State, frame: Frame) -> Iterable[Frame]:
        inner = dict(frame)
        for row in frame[source] if table < 0 else view[table]:
            inner[var] = row
            if where(view, inner):
                yield inner

    if kind == "exists":
        return lambda view, frame: any(True for _ in chosen(view, frame))
    if kind == "count":
        return lambda view, frame: sum(1 for _ in chosen(view, frame))
    assert value is not None
    if kind == "forall":
        return lambda view, frame: all(value(view, inner) for inner in chosen(view, frame))
    if kind == "sum":
        return lambda view, frame: sum(value(view, inner) for inner in chosen(view, frame))
    pick, nothing = (min if kind == "min" else max), default
    assert nothing is not None

    def extreme(view: State, frame: Frame) -> Any:
        values = [value(view, inner) for inner in chosen(view, frame)]
        return pick(values) if values else nothing(view, frame)

    return extreme


@dataclass(frozen=True)
class Instruction:
    """One step of flat code. ``touches``: it looks at the database or changes it, so others may commit before it."""

    kind: str
    stmt: ir.Stmt
    touches: bool
    reads_current: bool
    run: Any = None  # its expressions, compiled
    target: int = -1
    name: str = ""


class Code:
    """A transaction as flat code, for one level."""

    def __init__(self, program: ir.Program, txn: ir.Transaction, level: Level) -> None:
        self.program, self.txn, self.level = program, txn, level
        self.shape = Shape(program).of_transaction(under(txn, level, program))
        self.instructions: list[Instruction] = []
        self._block(under(txn, level, program).body)
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
            old.kind, old.stmt, old.touches, old.reads_current, old.run, target, old.name
        )


def _instruction(stmt: ir.Stmt, shape: Shape, level: Level) -> Instruction:
    touches = ir.reads_database(stmt)
    writes = isinstance(stmt, ir.Insert | ir.Update | ir.Delete)
    current = touches and (level.write if writes else level.select) == "current"
    return Instruction(type(stmt).__name__, stmt, touches, current, _action(stmt, shape))


def _action(stmt: ir.Stmt, shape: Shape) -> Any:
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
        return compiled(stmt.value, shape)
    assert isinstance(stmt, ir.If | ir.Require)
    return compiled(stmt.condition, shape)


def overlay(base: State, writes: Writes) -> State:
    """The state with the writes in it."""
    if not writes:
        return base
    touched = {table for table, _ in writes}
    return tuple(_overlaid(i, rows, writes) if i in touched else rows for i, rows in enumerate(base))


def _overlaid(table: int, rows: tuple[Row, ...], writes: Writes) -> tuple[Row, ...]:
    merged: dict[Any, Any] = dict(rows)
    for (i, key), row in writes.items():
        if i == table:
            if row is None:
                merged.pop(key, None)
            else:
                merged[key] = row
    return tuple(sorted(merged.items()))


class Rollback(Exception):  # noqa: N818
    """The transaction gives up: a condition failed, a row is missing, or the database refused."""


class Machine:
    """A transaction in progress. Copies are cheap, so a search can branch."""

    __slots__ = ("code", "frame", "inserted", "log", "pc", "reads", "snapshot", "writes")

    def __init__(self, code: Code, args: Frame) -> None:
        self.code = code
        self.frame: Frame = dict(args)
        self.pc = 0
        self.writes: Writes = {}
        self.reads: frozenset[tuple[int, Any]] = frozenset()
        self.inserted: frozenset[tuple[int, Any]] = frozenset()  # rows with a primary key that were not there before
        self.snapshot: State | None = None
        self.log: Any = None
        self._advance()

    def copy(self) -> "Machine":
        """A machine in the same state."""
        twin = object.__new__(Machine)
        twin.code, twin.frame, twin.pc = self.code, dict(self.frame), self.pc
        twin.writes, twin.reads, twin.inserted = dict(self.writes), self.reads, self.inserted
        twin.snapshot, twin.log = self.snapshot, None
        return twin

    def fingerprint(self) -> tuple[Any, ...]:
        """What decides how it goes on."""
        return (
            self.pc,
            tuple(sorted(self.frame.items(), key=lambda item: item[0])),
            tuple(sorted(self.writes.items(), key=lambda item: item[0])),
            self.reads,
            self.snapshot,
        )

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
        if self.snapshot is None:
            self.snapshot = now
        self._execute(self.next, now)
        self._advance()

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

    def _see(self, table: int, rows: Iterable[Row]) -> None:
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
    found = _matching(machine, instruction.run, stmt.row, table, machine.view(now, machine.code.level.select))
    machine.log = found[:1]
    if not found:
        raise Rollback(f"no such row in {stmt.table}")
    machine._see(table, found[:1])
    machine.frame[stmt.row] = found[0]


def _select_all(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.SelectAll)
    table = machine.code.shape.index[stmt.table]
    found = _matching(machine, instruction.run, stmt.var, table, machine.view(now, machine.code.level.select))
    machine._see(table, found)
    machine.log = found
    machine.frame[stmt.rows] = tuple(found)


def _let(machine: Machine, instruction: Instruction, now: State) -> None:
    stmt = instruction.stmt
    assert isinstance(stmt, ir.Let)
    value = _look(machine, instruction, now, ir.queries(stmt.value))
    machine.log = machine.frame[stmt.name] = value


def _look(machine: Machine, instruction: Instruction, now: State, queries: list[ir.Query]) -> Any:
    """Evaluate a value that may ask the database. Rows that a query's outer table gives count as read."""
    if not instruction.touches:
        return instruction.run((), machine.frame)
    view = machine.view(now, machine.code.level.select)
    if machine.code.level.locks_reads:
        # A query locks the rows it goes through; its condition may speak of rows bound inside, so all of the table.
        for query in queries:
            table = machine.code.shape.index[query.source]
            machine._see(table, _matching_query(machine, query, table, view))
    return instruction.run(view, machine.frame)


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
        raise Rollback("a required condition does not hold")


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
            raise Rollback(f"{stmt.table} has a row with this key")
        machine.inserted |= {(index, key)}
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
    found = _within(machine, stmt.within, _matching(machine, where, stmt.var, table, view))
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
    found = _within(machine, stmt.within, _matching(machine, instruction.run, stmt.var, table, view))
    for key, _ in found:
        machine.writes[table, key] = None
    machine.log = found


def _within(machine: Machine, name: str, found: list[Row]) -> list[Row]:
    if not name:
        return found
    keys = {key for key, _ in machine.frame[name]}
    return [row for row in found if row[0] in keys]


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
