"""Replay a counterexample statement by statement, and decide whether it is one.

Every engine's counterexamples pass through ``replay`` before they are reported.
"""

from dataclasses import dataclass
from typing import Any

from plume_py.reasoning.infer.execution.bytecode import Code
from plume_py.reasoning.infer.execution.evaluate import State
from plume_py.reasoning.infer.execution.interpreter import Machine, RollbackSignal
from plume_py.reasoning.infer.execution.schedule import (
    CLAUSE,
    Commit,
    Counterexample,
    Effect,
    Moment,
    ReplayError,
    ScheduleRules,
    first_snapshot,
    installed,
    is_serial,
    may_commit_between,
    outcome,
)
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE


@dataclass
class Replay:
    """The replayed schedule: its lines, the final state, and the violated clauses."""

    moments: list[Moment]
    final: State
    broken: list[str]


def replay(program: ir.Application, example: Counterexample) -> Replay:
    """Execute a counterexample. Raise ReplayError if its schedule is impossible or violates nothing."""
    rules = ScheduleRules(program)
    wrong = rules.broken(example.initial) + rules.refused(example.initial)
    if wrong:
        raise ReplayError(f"the initial rows break {wrong[0]} already")
    code = Code(program, program.transaction(example.transaction), example.level)
    serial = {txn.name: Code(program, txn, ALONE) for txn in program.transactions}
    args = dict(example.args)
    if not all(condition((), args) for condition in code.assume):
        raise ReplayError(f"the arguments of {example.transaction} are not those its callers promise")
    past = _Past([example.initial], [], [])
    now, dirty, commits = example.initial, frozenset[tuple[int, Any]](), 0
    moments: list[Moment] = []
    try:
        machine = Machine(code, args)
        if not example.begun:
            machine.snapshot = first_snapshot(example.level, example.initial)
        for event in example.events:
            if event is None:
                if machine.is_done or commits < example.begun:
                    raise ReplayError(f"{example.transaction} has no statement left, or has not begun")
                stmt, frame = machine.next.stmt, dict(machine.frame)
                machine.step(now)
                moments.append(Moment(stmt, machine.log, frame, code.shape))
                continue
            commits += 1
            if event.level is None:
                done, moment = _other(rules, serial[event.transaction], event, now, commits, machine)
            else:
                done, moment = _weak(rules, event, past, machine)
            now = done.after
            past.note(done, event)
            machine.meanwhile(done.deleted)
            dirty = dirty.union(done.writes) if commits > example.begun else dirty
            if commits == example.begun:
                machine.snapshot = first_snapshot(example.level, now)
            moments.append(moment)
    except RollbackSignal as reason:
        raise ReplayError(f"{example.transaction} rolls back: {reason}") from None
    final = _committed(rules, machine, now, dirty, commits + 1, example)
    moments.append(Moment(None, None, {}))
    broken = rules.broken(final)
    if example.clause == CLAUSE:
        if is_serial(program, example, final):
            raise ReplayError("a serial order ends in the same state")
        broken.append(CLAUSE)
    if example.clause not in broken:
        raise ReplayError(f"{example.clause} holds at the end")
    return Replay(moments, final, broken)


def _committed(
    rules: ScheduleRules,
    machine: Machine,
    now: State,
    dirty: frozenset[tuple[int, Any]],
    number: int,
    example: Counterexample,
) -> State:
    if not machine.is_done:
        raise ReplayError(f"{example.transaction} has not reached its end")
    if example.level.among_themselves and any(_watched(event) for event in example.events[example.begun :]):
        raise ReplayError("two serializable transactions overlap")
    if example.level.is_serial and any(event is not None for event in example.events):
        raise ReplayError("nothing can commit in the middle of a serializable transaction")
    final = outcome(rules, machine, now, dirty, number)
    if final is None:
        raise ReplayError(f"{example.transaction} cannot commit")
    return final


def _other(
    rules: ScheduleRules, code: Code, event: Commit, now: State, number: int, machine: Machine
) -> tuple[Effect, Moment]:
    """Run another transaction alone; return its effect and its lines."""
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
    effect = Effect(after, writes, other.locked, other.deleted())
    return effect, Moment(None, None, {}, code.shape, event, inner)


@dataclass
class _Past:
    """The states so far and the effect of each commit."""

    states: list[State]
    effects: list[Effect]
    events: list[Commit]

    def note(self, effect: Effect, event: Commit) -> None:
        """Append a commit."""
        self.states.append(effect.after)
        self.effects.append(effect)
        self.events.append(event)


def _watched(event: Commit | None) -> bool:
    return event is not None and event.level is not None and event.level.among_themselves


def _weak(rules: ScheduleRules, event: Commit, past: _Past, machine: Machine) -> tuple[Effect, Moment]:
    """Run a partner at its own level: each statement reads the state of its moment, and now the partner commits."""
    assert event.level is not None
    code = Code(rules.program, rules.program.transaction(event.transaction), event.level)
    args, inner, commits, reached = dict(event.args), [], len(past.effects), 0
    if not all(condition((), args) for condition in code.assume):
        raise ReplayError(f"the arguments of {event.transaction} are not those its callers promise")
    other = Machine(code, args)
    locked: dict[tuple[int, Any], int] = {}
    for moment in event.moments:
        if other.is_done or not 0 <= moment <= commits:
            raise ReplayError(f"{event.transaction} has no statement left")
        stmt, frame = other.next.stmt, dict(other.frame)
        for effect in past.effects[reached:moment]:
            other.meanwhile(effect.deleted)
        reached = max(reached, moment)
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
            for place in past.effects[i].writes
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
    effect = Effect(after, writes, other.locked, other.deleted())
    return effect, Moment(None, None, {}, code.shape, event, inner)
