"""A counterexample as a schedule, and the rules by which its statements and commits run."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.reasoning.infer.execution.bytecode import Code
from plume_py.reasoning.infer.execution.evaluate import Evaluate, Frame, State, TableShape, Writes, compiled, overlay
from plume_py.reasoning.infer.execution.interpreter import OWN_ROWS, Machine, RollbackSignal
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel

# Hidden row numbers of what the n-th commit inserts begin at n times this, so that no number is used twice.
PER_COMMIT = 100


@dataclass(frozen=True)
class Commit:
    """Another transaction, which commits between two statements of the one in question.

    It was executed from beginning to end just there, or, with a ``level``, its n-th statement when ``moments[n]``
    commits had happened.
    """

    transaction: str
    args: tuple[tuple[str, Any], ...]
    level: LevelModel | None = None
    moments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Counterexample:
    """``events``: ``None`` is the next statement of the transaction in question; its commit comes after the last.

    It begins after the first ``begun`` commits; only partners that had begun before, and commit later, can tell.
    """

    transaction: str
    level: LevelModel
    args: tuple[tuple[str, Any], ...]
    initial: State
    events: tuple[Commit | None, ...]
    clause: str
    begun: int = 0


@dataclass
class Moment:
    """One line of a replayed schedule."""

    stmt: ir.Stmt | None  # None: a commit
    result: Any
    frame: Frame  # arguments and what was read before
    shape: TableShape | None = None
    call: Commit | None = None  # of another transaction: its statements are ``inner``
    inner: "list[Moment]" = field(default_factory=list)


class ReplayError(IsocheckError):
    """The schedule is not possible, or breaks nothing: whoever claimed it has a defect."""


class ScheduleRules:
    """The compiled clauses of a program."""

    def __init__(self, program: ir.Application) -> None:
        self.program = program
        self.invariant = [(clause.name, self._compiled(clause)) for clause in program.invariant]
        self.enforced = [(clause.name, self._compiled(clause)) for clause in program.enforced]

    def _compiled(self, clause: ir.Clause) -> Evaluate:
        return compiled(clause.condition, TableShape(self.program).of_expression(clause.condition))

    def broken(self, state: State) -> list[str]:
        """The clauses of the invariant that do not hold."""
        return [name for name, holds in self.invariant if not holds(state, {})]

    def refused(self, state: State) -> list[str]:
        """The enforced constraints that do not hold."""
        return [name for name, holds in self.enforced if not holds(state, {})]


def installed(program: ir.Application, state: State, writes: Writes, number: int) -> tuple[State, Writes]:
    """The state after the ``number``-th commit, and its writes: new rows get numbers of their own."""
    renumbered: Writes = {}
    for place, ((table, key), row) in enumerate(writes.items()):
        own = not program.tables[table].key and key >= OWN_ROWS
        if not (own and row is None):
            renumbered[table, PER_COMMIT * number + place if own else key] = row
    return overlay(state, renumbered), renumbered


Places = frozenset[tuple[int, Any]]


@dataclass(frozen=True)
class Effect:
    """What a transaction has done: the state after it, its writes, and the rows that it locked and deleted."""

    after: State
    writes: Writes
    locked: Places
    deleted: Places


def serially(rules: ScheduleRules, code: Code, args: Frame, state: State, number: int) -> Effect | None:
    """Run a transaction alone; nothing where it rolls back."""
    try:
        machine = Machine(code, args)
        while not machine.is_done:
            machine.step(state)
    except RollbackSignal:
        return None
    after, writes = installed(rules.program, state, machine.writes, number)
    return None if rules.refused(after) else Effect(after, writes, machine.locked, machine.deleted())


def first_snapshot(level: LevelModel, initial: State) -> State | None:
    """What a transaction has seen before its first statement, if the level takes its snapshot then."""
    return initial if level.select == "snapshot" and not level.late_snapshot else None


def may_commit_between(machine: Machine, writes: Writes, locked: Places) -> bool:
    """Do the locks of the transaction in progress let another one commit these writes, and take these locks?"""
    level = machine.code.level
    claimed = locked.union(writes)
    if not machine.locked.isdisjoint(claimed):
        return False
    if level.locks_writes and not machine.writes.keys().isdisjoint(claimed):
        return False
    return not level.locks_reads or machine.reads.isdisjoint(claimed)


def outcome(
    rules: ScheduleRules, machine: Machine, now: State, dirty: frozenset[tuple[int, Any]], number: int
) -> State | None:
    """The state after the transaction's commit; nothing where it has to roll back."""
    # A new row is no version of one that somebody deleted; whether its key is free is asked below.
    versions = machine.writes.keys() - machine.inserted
    if machine.code.level.first_committer_wins and not (
        dirty.isdisjoint(versions) and dirty.isdisjoint(machine.locked)
    ):
        return None
    if any(key in dict(now[table]) for table, key in machine.inserted):
        return None
    after, _ = installed(rules.program, now, machine.writes, number)
    return None if rules.refused(after) else after


# From serial.py: Serializability mode: no invariant, but what a transaction leaves behind must be what some serial
# order leaves. The commits of others keep their order; the transaction in question may come before, between or
# after them.
CLAUSE = "serial order"


def content(program: ir.Application, state: State) -> tuple[Any, ...]:
    """A state without hidden row numbers: which rows are there, and how often."""
    return tuple(frozenset(Counter(row for _, row in rows).items()) for rows in state)


def is_serial(program: ir.Application, example: Counterexample, final: State) -> bool:
    """Does some serial order of the same calls end in the same state?"""
    rules = ScheduleRules(program)
    codes = {txn.name: Code(program, txn, ALONE) for txn in program.transactions}
    others = [event for event in example.events if event is not None]
    wanted = content(program, final)
    for place in range(len(others) + 1):
        own = Commit(example.transaction, example.args)
        state = example.initial
        for number, event in enumerate([*others[:place], own, *others[place:]], 1):
            result = serially(rules, codes[event.transaction], dict(event.args), state, number)
            state = result.after if result is not None else state
        if content(program, state) == wanted:
            return True
    return False


def judged(program: ir.Application, example: Counterexample, final: State) -> list[str]:
    """For replays: what is broken at the end."""
    if is_serial(program, example, final):
        raise ReplayError("a serial order ends in the same state")
    return [CLAUSE]


def wants(program: ir.Application) -> bool:
    """Is this program being asked about serial orders?"""
    return any(clause.name == CLAUSE for clause in program.invariant)
