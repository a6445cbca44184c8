"""Schedules of counterexamples, the rules for statements and commits, and the test for serial orders.

A schedule interleaves the statements of the analysed transaction with commits of other transactions. The explorer and
the replay share these rules. With ``--serializability`` the checked clause is that the final state equals that of some
serial order. In it the other transactions keep their order, and the analysed one takes any position.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.reasoning.infer.execution.bytecode import FlatCode
from plume_py.reasoning.infer.execution.evaluate import (
    Evaluate,
    Frame,
    RowKeys,
    State,
    TableShape,
    Writes,
    compiled,
    overlay,
)
from plume_py.reasoning.infer.execution.interpreter import OWN_ROWS, Machine, RollbackSignal
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel

# The hidden row numbers of the n-th commit begin at n times this, so that no number is used twice.
PER_COMMIT = 100


@dataclass(frozen=True)
class Commit:
    """The commit of another transaction between two statements of the analysed one.

    Without ``level`` it runs alone at this point. With a level, its n-th statement reads the state after ``moments[n]``
    commits.
    """

    transaction: str
    args: tuple[tuple[str, Any], ...]
    level: LevelModel | None = None
    moments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Counterexample:
    """A schedule that violates ``clause``. In ``events``, None is the next statement of the analysed transaction.

    The analysed transaction commits after the last event and begins after the first ``begun`` commits. Earlier commits
    matter only to partners that overlap its begin.
    """

    transaction: str
    level: LevelModel
    args: tuple[tuple[str, Any], ...]
    initial: State
    events: tuple[Commit | None, ...]
    clause: str
    begun: int = 0


@dataclass
class ScheduleLine:
    """One line of a replayed schedule: a statement, a commit, or another transaction's call with its own lines."""

    stmt: ir.Stmt | None  # None for a commit or a call
    result: Any
    frame: Frame  # arguments and values that earlier statements read
    shape: TableShape | None = None
    call: Commit | None = None  # the other transaction, with its statements in ``inner``
    inner: "list[ScheduleLine]" = field(default_factory=list)


class ReplayError(IsocheckError):
    """The schedule is impossible or violates nothing: the engine that claimed it has a defect."""


class ScheduleRules:
    """The compiled clauses of a program."""

    def __init__(self, program: ir.Application) -> None:
        self.program = program
        self.invariant = [(clause.name, self._compiled(clause)) for clause in program.invariant]
        self.enforced = [(clause.name, self._compiled(clause)) for clause in program.enforced]

    def _compiled(self, clause: ir.Clause) -> Evaluate:
        return compiled(clause.condition, TableShape(self.program).of_expression(clause.condition))

    def broken(self, state: State) -> list[str]:
        return [name for name, holds in self.invariant if not holds(state, {})]

    def violated_constraints(self, state: State) -> list[str]:
        """Return the violated constraints that the database enforces."""
        return [name for name, holds in self.enforced if not holds(state, {})]


def install(program: ir.Application, state: State, writes: Writes, number: int) -> tuple[State, Writes]:
    """Return the state after the ``number``-th commit, and its writes with final hidden row numbers."""
    renumbered: Writes = {}
    for place, ((table, key), row) in enumerate(writes.items()):
        own = not program.tables[table].key and key >= OWN_ROWS
        if not (own and row is None):
            renumbered[table, PER_COMMIT * number + place if own else key] = row
    return overlay(state, renumbered), renumbered


@dataclass(frozen=True)
class CommitEffect:
    """The effect of a commit: the state after it, its writes, and the rows that it locked and deleted."""

    after: State
    writes: Writes
    locked: RowKeys
    deleted: RowKeys


def run_alone(rules: ScheduleRules, code: FlatCode, args: Frame, state: State, number: int) -> CommitEffect | None:
    """Run a transaction alone; return its effect, or None if it rolls back."""
    try:
        machine = Machine(code, args)
        while not machine.is_done:
            machine.step(state)
    except RollbackSignal:
        return None
    after, writes = install(rules.program, state, machine.writes, number)
    return None if rules.violated_constraints(after) else CommitEffect(after, writes, machine.locked, machine.deleted())


def first_snapshot(level: LevelModel, initial: State) -> State | None:
    """Return the snapshot of a transaction before its first statement, if the level takes it at begin."""
    return initial if level.select == "snapshot" and not level.late_snapshot else None


def may_commit_between(machine: Machine, writes: Writes, locked: RowKeys) -> bool:
    """Return whether the locks of the transaction in progress permit another one to commit these writes and locks."""
    level = machine.code.level
    claimed = locked.union(writes)
    if not machine.locked.isdisjoint(claimed):
        return False
    if level.locks_writes and not machine.writes.keys().isdisjoint(claimed):
        return False
    return not level.locks_reads or machine.reads.isdisjoint(claimed)


def state_after_commit(rules: ScheduleRules, machine: Machine, now: State, dirty: RowKeys, number: int) -> State | None:
    """Return the state after the transaction's commit, or None if it must roll back."""
    # A new row does not conflict with the deletion of an old one. Its key is checked below.
    versions = machine.writes.keys() - machine.inserted
    if machine.code.level.first_committer_wins and not (
        dirty.isdisjoint(versions) and dirty.isdisjoint(machine.locked)
    ):
        return None
    if any(key in dict(now[table]) for table, key in machine.inserted):
        return None
    after, _ = install(rules.program, now, machine.writes, number)
    return None if rules.violated_constraints(after) else after


# Name of the clause for serializability.
CLAUSE = "serial order"


def content(program: ir.Application, state: State) -> tuple[Any, ...]:
    """Return the rows of each table with their multiplicity, without hidden row numbers."""
    return tuple(frozenset(Counter(row for _, row in rows).items()) for rows in state)


def is_serial(program: ir.Application, example: Counterexample, final: State) -> bool:
    """Return whether some serial order of the same calls ends in the same state."""
    rules = ScheduleRules(program)
    codes = {txn.name: FlatCode(program, txn, ALONE) for txn in program.transactions}
    others = [event for event in example.events if event is not None]
    wanted = content(program, final)
    for place in range(len(others) + 1):
        own = Commit(example.transaction, example.args)
        state = example.initial
        for number, event in enumerate([*others[:place], own, *others[place:]], 1):
            result = run_alone(rules, codes[event.transaction], dict(event.args), state, number)
            state = result.after if result is not None else state
        if content(program, state) == wanted:
            return True
    return False
