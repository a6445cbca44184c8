"""A counterexample as a schedule, and its replay: the judge of what any engine claims to have found."""

from dataclasses import dataclass, field
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.infer.language import ir
from plume_py.infer.run.evaluate import Evaluate, Frame, Shape, State, compiled
from plume_py.infer.run.machine import OWN_ROWS, Code, Machine, Rollback, Writes, overlay
from plume_py.infer.stores import SER, Level

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
    level: Level | None = None
    moments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Counterexample:
    """``events``: ``None`` is the next statement of the transaction in question; its commit comes after the last."""

    transaction: str
    level: Level
    args: tuple[tuple[str, Any], ...]
    initial: State
    events: tuple[Commit | None, ...]
    clause: str


@dataclass
class Moment:
    """One line of a replayed schedule."""

    stmt: ir.Stmt | None  # None: a commit
    result: Any
    frame: Frame  # arguments and what was read before
    shape: Shape | None = None
    call: Commit | None = None  # of another transaction: its statements are ``inner``
    inner: "list[Moment]" = field(default_factory=list)


@dataclass
class Replay:
    """What really happened."""

    moments: list[Moment]
    final: State
    broken: list[str]


class ReplayError(IsocheckError):
    """The schedule is not possible, or breaks nothing: whoever claimed it has a defect."""


class Rules:
    """The compiled clauses of a program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.invariant = [(clause.name, self._compiled(clause)) for clause in program.invariant]
        self.enforced = [(clause.name, self._compiled(clause)) for clause in program.enforced]

    def _compiled(self, clause: ir.Clause) -> Evaluate:
        return compiled(clause.condition, Shape(self.program).of_expression(clause.condition))

    def broken(self, state: State) -> list[str]:
        """The clauses of the invariant that do not hold."""
        return [name for name, holds in self.invariant if not holds(state, {})]

    def refused(self, state: State) -> list[str]:
        """The enforced constraints that do not hold."""
        return [name for name, holds in self.enforced if not holds(state, {})]


def installed(program: ir.Program, state: State, writes: Writes, number: int) -> tuple[State, Writes]:
    """The state after the ``number``-th commit, and its writes: new rows get numbers of their own."""
    renumbered: Writes = {}
    for place, ((table, key), row) in enumerate(writes.items()):
        own = not program.tables[table].key and key >= OWN_ROWS
        if not (own and row is None):
            renumbered[table, PER_COMMIT * number + place if own else key] = row
    return overlay(state, renumbered), renumbered


Places = frozenset[tuple[int, Any]]


def serially(rules: Rules, code: Code, args: Frame, state: State, number: int) -> tuple[State, Writes, Places] | None:
    """Run a transaction alone: the state after it, its writes, and the rows it locked; nothing where it rolls back."""
    try:
        machine = Machine(code, args)
        while not machine.is_done:
            machine.step(state)
    except Rollback:
        return None
    after, writes = installed(rules.program, state, machine.writes, number)
    return None if rules.refused(after) else (after, writes, machine.locked)


def first_snapshot(level: Level, initial: State) -> State | None:
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


def outcome(rules: Rules, machine: Machine, now: State, dirty: frozenset[tuple[int, Any]], number: int) -> State | None:
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


def replay(program: ir.Program, example: Counterexample) -> Replay:
    """Execute a counterexample statement by statement; an error where it is none."""
    rules = Rules(program)
    wrong = rules.broken(example.initial) + rules.refused(example.initial)
    if wrong:
        raise ReplayError(f"the initial rows break {wrong[0]} already")
    code = Code(program, program.transaction(example.transaction), example.level)
    serial = {txn.name: Code(program, txn, SER) for txn in program.transactions}
    args = dict(example.args)
    if not all(condition((), args) for condition in code.assume):
        raise ReplayError(f"the arguments of {example.transaction} are not those its callers promise")
    past = _Past([example.initial], [], [])
    now, dirty, commits = example.initial, frozenset[tuple[int, Any]](), 0
    moments: list[Moment] = []
    try:
        machine = Machine(code, args)
        machine.snapshot = first_snapshot(example.level, example.initial)
        for event in example.events:
            if event is None:
                if machine.is_done:
                    raise ReplayError(f"{example.transaction} has no statement left")
                stmt, frame = machine.next.stmt, dict(machine.frame)
                machine.step(now)
                moments.append(Moment(stmt, machine.log, frame, code.shape))
                continue
            commits += 1
            if event.level is None:
                now, writes, moment = _other(rules, serial[event.transaction], event, now, commits, machine)
            else:
                now, writes, moment = _weak(rules, event, past, machine)
            past.note(now, writes, event)
            dirty = dirty.union(writes)
            moments.append(moment)
    except Rollback as reason:
        raise ReplayError(f"{example.transaction} rolls back: {reason}") from None
    final = _committed(rules, machine, now, dirty, commits + 1, example)
    moments.append(Moment(None, None, {}))
    broken = rules.broken(final) + _not_serial(program, example, final)
    if example.clause not in broken:
        raise ReplayError(f"{example.clause} holds at the end")
    return Replay(moments, final, broken)


def _not_serial(program: ir.Program, example: Counterexample, final: State) -> list[str]:
    from plume_py.infer.run.serial import CLAUSE, judged

    return judged(program, example, final) if example.clause == CLAUSE else []


def _committed(
    rules: Rules, machine: Machine, now: State, dirty: frozenset[tuple[int, Any]], number: int, example: Counterexample
) -> State:
    if not machine.is_done:
        raise ReplayError(f"{example.transaction} has not reached its end")
    if example.level.among_themselves and any(_watched(event) for event in example.events):
        raise ReplayError("two serializable transactions overlap")
    if example.level.is_serial and any(event is not None for event in example.events):
        raise ReplayError("nothing can commit in the middle of a serializable transaction")
    final = outcome(rules, machine, now, dirty, number)
    if final is None:
        raise ReplayError(f"{example.transaction} cannot commit")
    return final


def _other(
    rules: Rules, code: Code, event: Commit, now: State, number: int, machine: Machine
) -> tuple[State, Writes, Moment]:
    """Run another transaction, alone, and note what it does."""
    args, inner = dict(event.args), []
    if not all(condition((), args) for condition in code.assume):
        raise ReplayError(f"the arguments of {event.transaction} are not those its callers promise")
    other = Machine(code, args)
    while not other.is_done:
        stmt, frame = other.next.stmt, dict(other.frame)
        other.step(now)
        inner.append(Moment(stmt, other.log, frame, code.shape))
    after, writes = installed(rules.program, now, other.writes, number)
    if rules.refused(after):
        raise ReplayError(f"{event.transaction} cannot commit")
    if not may_commit_between(machine, writes, other.locked):
        raise ReplayError(f"{event.transaction} would have to wait for a lock")
    return after, writes, Moment(None, None, {}, code.shape, event, inner)


@dataclass
class _Past:
    """The states so far, and what each commit wrote."""

    states: list[State]
    writes: list[Writes]
    events: list[Commit]

    def note(self, state: State, writes: Writes, event: Commit) -> None:
        """One more commit."""
        self.states.append(state)
        self.writes.append(writes)
        self.events.append(event)


def _watched(event: Commit | None) -> bool:
    return event is not None and event.level is not None and event.level.among_themselves


def _weak(rules: Rules, event: Commit, past: _Past, machine: Machine) -> tuple[State, Writes, Moment]:
    """A partner at its own level: its statements saw the states of their moments; now it commits."""
    assert event.level is not None
    code = Code(rules.program, rules.program.transaction(event.transaction), event.level)
    args, inner, commits = dict(event.args), [], len(past.writes)
    if not all(condition((), args) for condition in code.assume):
        raise ReplayError(f"the arguments of {event.transaction} are not those its callers promise")
    other = Machine(code, args)
    locked: dict[tuple[int, Any], int] = {}
    for moment in event.moments:
        if other.is_done or not 0 <= moment <= commits:
            raise ReplayError(f"{event.transaction} has no statement left")
        stmt, frame = other.next.stmt, dict(other.frame)
        other.step(past.states[moment])
        for place in [*other.writes, *other.locked, *other.reads]:
            locked.setdefault(place, moment)
        inner.append(Moment(stmt, other.log, frame, code.shape))
    if not other.is_done or list(event.moments) != sorted(event.moments):
        raise ReplayError(f"{event.transaction} has not reached its end")
    begin = event.moments[0] if event.moments else commits
    for i in range(begin, commits):
        wins = event.level.first_committer_wins
        if any(
            locked.get(place, commits) <= i or (wins and place in locked and place not in other.inserted)
            for place in past.writes[i]
        ):
            raise ReplayError(f"{event.transaction} would have to wait for a lock, or to roll back")
        if event.level.among_themselves and _watched(past.events[i]):
            raise ReplayError("two serializable transactions overlap")
    if any(key in dict(past.states[-1][table]) for table, key in other.inserted):
        raise ReplayError(f"{event.transaction} cannot commit")
    after, writes = installed(rules.program, past.states[-1], other.writes, commits + 1)
    if rules.refused(after):
        raise ReplayError(f"{event.transaction} cannot commit")
    if not may_commit_between(machine, writes, other.locked):
        raise ReplayError(f"{event.transaction} would have to wait for a lock")
    return after, writes, Moment(None, None, {}, code.shape, event, inner)
