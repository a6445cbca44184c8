"""Explicit-state search for violations: all small initial states, arguments, and positions for the commits of others.

The engine of ``infer --engine explore``, and the default without z3. It shares its rules with the replay
(``schedule.py``). Results are memoized per machine state.
"""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.infer.execution.bytecode import FlatCode
from plume_py.reasoning.infer.execution.domains import Domains
from plume_py.reasoning.infer.execution.evaluate import RowKeys, State
from plume_py.reasoning.infer.execution.interpreter import Machine, RollbackSignal
from plume_py.reasoning.infer.execution.schedule import (
    CLAUSE,
    Commit,
    CommitEffect,
    Counterexample,
    ScheduleRules,
    first_snapshot,
    is_serial,
    may_commit_between,
    run_alone,
    state_after_commit,
)
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel

MOST_STATES = 20_000

# A path is a linked list of events: (first event, remaining path).
Path = tuple[Commit | None, Any] | None
Found = dict[str, Path]
END: Path = None


@dataclass
class StateExploration:
    """The counterexamples of one transaction at one level, one per clause, and the number of explored states."""

    examples: dict[str, Counterexample] = field(default_factory=dict)
    states: int = 0
    complete: bool = True


class Explorer:
    """Searches the small states of a program. The effects of other transactions are shared between levels.

    Each search may take ``seconds``, and no longer than ``limits`` leave.
    """

    def __init__(
        self,
        program: ir.Application,
        rows: int = 2,
        steps: int = 2,
        seconds: float = 60.0,
        limits: Limits | None = None,
    ) -> None:
        self.program, self.steps = program, steps
        self.seconds, self.limits = seconds, limits or Limits()
        self.rules = ScheduleRules(program)
        self.domains = Domains(program, rows)
        self.serial = {txn.name: FlatCode(program, txn, ALONE) for txn in program.transactions}
        self.calls = [(code, args) for code in self.serial.values() for args in self.domains.arguments(code)]
        everything = (stmt for txn in program.transactions for stmt in ir.statements(txn.body))
        self.has_locks = any(getattr(stmt, "lock", False) for stmt in everything)
        self._states: list[State] | None = None
        self._others: dict[tuple[State, int], list[tuple[Commit, CommitEffect]]] = {}
        self._broken: dict[State, list[str]] = {}

    @property
    def states(self) -> list[State]:
        if self._states is None:
            self._states = self.domains.first_of(self.domains.states(), MOST_STATES)
        return self._states

    def others(self, state: State, number: int) -> list[tuple[Commit, CommitEffect]]:
        """Return one commit per distinct effect that some other transaction has in this state."""
        known = self._others.get((state, number))
        if known is not None:
            return known
        found: dict[Any, tuple[Commit, CommitEffect]] = {}
        for code, args in self.calls:
            result = run_alone(self.rules, code, args, state, number)
            if result is not None and result.writes:
                effect = result.after, frozenset(result.writes), result.locked, result.deleted
                found.setdefault(effect, (Commit(code.txn.name, tuple(args.items())), result))
        self._others[state, number] = list(found.values())
        return self._others[state, number]

    def explore(self, name: str, level: LevelModel, clauses: tuple[str, ...] = ()) -> StateExploration:
        """Search for a violation of each clause, or of the whole invariant if none is named, until time is up."""
        wanted = set(clauses) or {clause.name for clause in self.program.invariant}
        search = _Search(self, FlatCode(self.program, self.program.transaction(name), level), wanted)
        try:
            return search.run(monotonic() + (self.limits.at_most(self.seconds).seconds_left or 0.0))
        except LimitError:  # violations found before the limit remain valid
            search.result.complete = False
            return search.result


class _Search:
    """The search for one transaction at one level."""

    def __init__(self, explorer: Explorer, code: FlatCode, clauses: set[str]) -> None:
        self.explorer, self.code, self.clauses = explorer, code, clauses
        self.level = code.level
        self.steps = 0 if code.level.is_serial else explorer.steps
        self.memo: dict[Any, Found] = {}
        self.result = StateExploration()
        # Only the clause about serial orders depends on how a state was reached.
        self.asks_order = CLAUSE in clauses
        self.past: tuple[Commit, ...] = ()
        self.initial: State = ()

    def run(self, deadline: float) -> StateExploration:
        arguments = self.explorer.domains.arguments(self.code)
        for state in self.explorer.states:
            for args in arguments:
                if not self.clauses:
                    return self.result
                if monotonic() > deadline:
                    self.result.complete = False
                    return self.result
                self._explore_from(state, args)
            self.result.states += 1
        self.result.complete = not self.explorer.domains.was_cut
        return self.result

    def _explore_from(self, state: State, args: dict[str, Any]) -> None:
        machine = Machine(self.code, args)
        machine.snapshot = first_snapshot(self.level, state)
        self.initial = state
        found = self._memoized(machine, state, 0, frozenset())
        for clause, path in found.items():
            if clause in self.clauses:
                self.clauses.discard(clause)
                events = []
                while path is not None:
                    events.append(path[0])
                    path = path[1]
                self.result.examples[clause] = Counterexample(
                    self.code.txn.name, self.level, tuple(args.items()), state, tuple(events), clause
                )

    def _memoized(self, machine: Machine, now: State, used: int, dirty: RowKeys) -> Found:
        mark = machine.fingerprint(), now, used, dirty, self.past, self.initial if self.asks_order else ()
        found = self.memo.get(mark)
        if found is None:
            found = self.memo[mark] = self._search(machine, now, used, dirty)
        return found

    def _search(self, machine: Machine, now: State, used: int, dirty: RowKeys) -> Found:
        go_on = self._end if machine.is_done else self._step
        found = go_on(machine, now, used, dirty)
        if used < self.steps and self._others_may_commit(machine) and not self.clauses <= found.keys():
            for commit, other in self.explorer.others(now, used + 1):
                if may_commit_between(machine, other.writes, other.locked):
                    seen = dirty.union(other.writes) if self.level.first_committer_wins else dirty
                    self.past = (*self.past, commit) if self.asks_order else ()
                    left = machine.copy()
                    left.note_deleted(other.deleted)
                    for clause, path in self._memoized(left, other.after, used + 1, seen).items():
                        found.setdefault(clause, (commit, path))
                    self.past = self.past[:-1]
        return found

    def _others_may_commit(self, machine: Machine) -> bool:
        """Return whether other transactions may commit at this point of the search.

        They matter only where the next statement reads the current state or takes a lock that they may want; elsewhere
        they may as well commit later. Before the first statement, they matter only to a lock on rows that the snapshot
        shows.
        """
        if machine.is_done:
            return machine.begun
        locks = self.explorer.has_locks and machine.next.locks
        if not machine.begun:
            return locks and self.level.write == "snapshot"
        takes_snapshot = self.level.late_snapshot and machine.snapshot is None
        asks_for_key = isinstance(machine.next.stmt, ir.Insert) and self.level.write == "snapshot"
        return machine.next.reads_current or locks or takes_snapshot or asks_for_key

    def _step(self, machine: Machine, now: State, used: int, dirty: RowKeys) -> Found:
        moved = machine.copy()
        try:
            moved.step(now)
        except RollbackSignal:
            return {}
        return {clause: (None, path) for clause, path in self._memoized(moved, now, used, dirty).items()}

    def _end(self, machine: Machine, now: State, used: int, dirty: RowKeys) -> Found:
        after = state_after_commit(self.explorer.rules, machine, now, dirty, used + 1)
        if after is None:
            return {}
        broken = self.explorer._broken.get(after)
        if broken is None:
            broken = self.explorer._broken[after] = self.explorer.rules.broken(after)
        found: Found = {clause: END for clause in broken if clause in self.clauses}
        if self.asks_order and CLAUSE in self.clauses and machine.begun and not self._is_serial(machine, after):
            found[CLAUSE] = END
        return found

    def _is_serial(self, machine: Machine, final: State) -> bool:
        args = tuple((param.name, machine.frame[param.name]) for param in self.code.txn.params)
        example = Counterexample(self.code.txn.name, self.level, args, self.initial, self.past, CLAUSE)
        return is_serial(self.explorer.program, example, final)
