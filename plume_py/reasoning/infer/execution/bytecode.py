"""Compile a transaction, as a level runs it, to flat code: a list of instructions with jumps."""

from dataclasses import dataclass, replace
from typing import Any

from plume_py.reasoning.infer.execution.evaluate import TableShape, compiled
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import LevelModel, as_executed


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``touches`` marks an access to the database: other transactions may commit before it."""

    kind: str
    stmt: ir.Stmt
    touches: bool
    reads_current: bool
    locks: bool = False
    run: Any = None  # compiled expressions of the statement
    target: int = -1
    name: str = ""


class FlatCode:
    """The flat code of a transaction at a level."""

    def __init__(self, program: ir.Application, txn: ir.TransactionProgram, level: LevelModel) -> None:
        self.program, self.txn, self.level = program, txn, level
        as_run = as_executed(txn, level, program)
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
            self._set_target(at, len(self.instructions))
            self._block(stmt.otherwise)
            self._set_target(skip, len(self.instructions))
        else:
            self._set_target(at, len(self.instructions))

    def _loop(self, stmt: ir.ForEach) -> None:
        left = f"left {len(self.instructions)}"
        self.instructions.append(Instruction("loop", stmt, False, False, name=left))
        at = len(self.instructions)
        self.instructions.append(Instruction("next", stmt, False, False, name=left))
        self._block(stmt.body)
        self.instructions.append(Instruction("jump", stmt, False, False, target=at))
        self._set_target(at, len(self.instructions))

    def _set_target(self, at: int, target: int) -> None:
        self.instructions[at] = replace(self.instructions[at], target=target)


def _instruction(stmt: ir.Stmt, shape: TableShape, level: LevelModel) -> Instruction:
    touches = ir.reads_database(stmt)
    writes = isinstance(stmt, ir.Insert | ir.Update | ir.Delete) or getattr(stmt, "lock", False)
    current = touches and ((level.write if writes else level.select) == "current" or getattr(stmt, "newest", False))
    return Instruction(type(stmt).__name__, stmt, touches, current, bool(writes), _action(stmt, shape))


def _action(stmt: ir.Stmt, shape: TableShape) -> Any:
    """Return the compiled expressions of a statement."""
    if isinstance(stmt, ir.SelectOne | ir.SelectAll | ir.Delete):
        return compiled(stmt.where, shape)
    if isinstance(stmt, ir.Update):
        places = shape.program.table(stmt.table)
        sets = [(places.index(column), compiled(value, shape)) for column, value in stmt.sets]
        return compiled(stmt.where, shape), sets
    if isinstance(stmt, ir.Insert | ir.Let):
        return [compiled(value, shape) for value in stmt.values]
    assert isinstance(stmt, ir.If | ir.Require)
    return [compiled(stmt.condition, shape)]
