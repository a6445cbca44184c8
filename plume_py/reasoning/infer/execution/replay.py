"""Replay a counterexample statement by statement, and decide whether it is one.

Every engine's counterexamples pass through ``replay`` before they are reported.
"""

from dataclasses import dataclass
from typing import Any

from plume_py.reasoning.infer.execution.bytecode import FlatCode
from plume_py.reasoning.infer.execution.evaluate import RowKeys, State
from plume_py.reasoning.infer.execution.interpreter import Machine, RollbackSignal
from plume_py.reasoning.infer.execution.schedule import (
    CLAUSE,
    Commit,
    CommitEffect,
    Counterexample,
    ReplayError,
    ScheduleLine,
    ScheduleRules,
    first_snapshot,
    install,
    is_serial,
    may_commit_between,
    state_after_commit,
)
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE


@dataclass
class Replay:
    """The replayed schedule: its lines, the final state, and the violated clauses."""

    lines: list[ScheduleLine]
    final: State
    broken: list[str]


def replay(program: ir.Application, example: Counterexample) -> Replay:
    """Execute a counterexample. Raise ReplayError if its schedule is impossible or violates nothing."""
    rules = ScheduleRules(program)
    wrong = rules.broken(example.initial) + rules.violated_constraints(example.initial)
    if wrong:
        raise ReplayError(f"the initial rows break {wrong[0]} already")
    code = FlatCode(program, program.transaction(example.transaction), example.level)
    serial = {txn.name: FlatCode(program, txn, ALONE) for txn in program.transactions}
    past = _Past([example.initial], [], [])
    now, dirty, commits = example.initial, RowKeys(), 0
    lines: list[ScheduleLine] = []
    try:
        machine = _started(code, example.args)
        if not example.begun:
            machine.snapshot = first_snapshot(example.level, example.initial)
        for event in example.events:
            if event is None:
                if machine.is_done or commits < example.begun:
                    raise ReplayError(f"{example.transaction} has no statement left, or has not begun")
                lines.append(_executed(machine, now))
                continue
            commits += 1
            if event.level is None:
                done, line = _run_partner_alone(rules, serial[event.transaction], event, past, machine)
            else:
                done, line = _run_partner_at_its_level(rules, event, past, machine)
            now = done.after
            past.note(done, event)
            machine.note_deleted(done.deleted)
            dirty = dirty.union(done.writes) if commits > example.begun else dirty
            if commits == example.begun:
                machine.snapshot = first_snapshot(example.level, now)
            lines.append(line)
    except RollbackSignal as reason:
        raise ReplayError(f"{example.transaction} rolls back: {reason}") from None
    final = _committed(rules, machine, now, dirty, commits + 1, example)
    lines.append(ScheduleLine(None, None, {}))
    broken = rules.broken(final)
    if example.clause == CLAUSE:
        if is_serial(program, example, final):
            raise ReplayError("a serial order ends in the same state")
        broken.append(CLAUSE)
    if example.clause not in broken:
        raise ReplayError(f"{example.clause} holds at the end")
    return Replay(lines, final, broken)


def _committed(
    rules: ScheduleRules,
    machine: Machine,
    now: State,
    dirty: RowKeys,
    number: int,
    example: Counterexample,
) -> State:
    if not machine.is_done:
        raise ReplayError(f"{example.transaction} has not reached its end")
    if example.level.among_themselves and any(_is_watched(event) for event in example.events[example.begun :]):
        raise ReplayError("two serializable transactions overlap")
    if example.level.is_serial and any(event is not None for event in example.events):
        raise ReplayError("nothing can commit in the middle of a serializable transaction")
    final = state_after_commit(rules, machine, now, dirty, number)
    if final is None:
        raise ReplayError(f"{example.transaction} cannot commit")
    return final


@dataclass
class _Past:
    """The states so far and the effect of each commit."""

    states: list[State]
    effects: list[CommitEffect]
    events: list[Commit]

    def note(self, effect: CommitEffect, event: Commit) -> None:
        self.states.append(effect.after)
        self.effects.append(effect)
        self.events.append(event)


def _is_watched(event: Commit | None) -> bool:
    return event is not None and event.level is not None and event.level.among_themselves


def _started(code: FlatCode, args: tuple[tuple[str, Any], ...]) -> Machine:
    """Return a machine for a call. Raise ReplayError if its arguments violate the transaction's assumption."""
    frame = dict(args)
    if not all(condition((), frame) for condition in code.assume):
        raise ReplayError(f"the arguments of {code.txn.name} are not those its callers promise")
    return Machine(code, frame)


def _executed(machine: Machine, now: State) -> ScheduleLine:
    """Execute the next statement on the state ``now``; return its line."""
    stmt, frame = machine.next.stmt, dict(machine.frame)
    machine.step(now)
    return ScheduleLine(stmt, machine.log, frame, machine.code.shape)


def _run_partner_alone(
    rules: ScheduleRules, code: FlatCode, event: Commit, past: _Past, machine: Machine
) -> tuple[CommitEffect, ScheduleLine]:
    """Run another transaction alone; return its effect and its lines."""
    other, inner = _started(code, event.args), []
    while not other.is_done:
        inner.append(_executed(other, past.states[-1]))
    return _commit_partner(rules, other, event, past, machine), ScheduleLine(None, None, {}, code.shape, event, inner)


def _run_partner_at_its_level(
    rules: ScheduleRules, event: Commit, past: _Past, machine: Machine
) -> tuple[CommitEffect, ScheduleLine]:
    """Run a partner at its own level: each statement reads the state of its moment, and now the partner commits."""
    assert event.level is not None
    code = FlatCode(rules.program, rules.program.transaction(event.transaction), event.level)
    inner, commits, reached = list[ScheduleLine](), len(past.effects), 0
    other = _started(code, event.args)
    locked: dict[tuple[int, Any], int] = {}
    for moment in event.moments:
        if other.is_done or not 0 <= moment <= commits:
            raise ReplayError(f"{event.transaction} has no statement left")
        for effect in past.effects[reached:moment]:
            other.note_deleted(effect.deleted)
        reached = max(reached, moment)
        inner.append(_executed(other, past.states[moment]))
        for place in [*other.writes, *other.locked, *other.reads]:
            locked.setdefault(place, moment)
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
        if event.level.among_themselves and _is_watched(past.events[i]):
            raise ReplayError("two serializable transactions overlap")
    if any(key in dict(past.states[-1][table]) for table, key in other.inserted):
        raise ReplayError(f"{event.transaction} cannot commit")
    return _commit_partner(rules, other, event, past, machine), ScheduleLine(None, None, {}, code.shape, event, inner)


def _commit_partner(rules: ScheduleRules, other: Machine, event: Commit, past: _Past, machine: Machine) -> CommitEffect:
    """Return the effect of a partner's commit. Raise ReplayError if a constraint or a lock prevents it."""
    after, writes = install(rules.program, past.states[-1], other.writes, len(past.effects) + 1)
    if rules.violated_constraints(after):
        raise ReplayError(f"{event.transaction} cannot commit")
    if not may_commit_between(machine, writes, other.locked):
        raise ReplayError(f"{event.transaction} would have to wait for a lock")
    return CommitEffect(after, writes, other.locked, other.deleted())
