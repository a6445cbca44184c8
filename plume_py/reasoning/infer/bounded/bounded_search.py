"""Bounded symbolic search: at most ``rows`` rows per table at the start, at most ``steps`` commits of others.

The database goes through states D0, D1, … Dsteps, where each step is the commit of some transaction with some
arguments, or nothing. The transaction in question does not change them before it commits; each of its statements
is evaluated on one of them, later ones on later ones. So one formula covers all schedules.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import z3

from plume_py.base.limits import Limits
from plume_py.reasoning.infer.bounded.models import ModelValues, either, same_state, state_either
from plume_py.reasoning.infer.bounded.partners import PartnerCommit, Partners
from plume_py.reasoning.infer.bounded.slots import layout
from plume_py.reasoning.infer.bounded.solving import solve
from plume_py.reasoning.infer.bounded.symbolic import (
    LIST,
    Evaluator,
    Execution,
    Frame,
    Point,
    Set,
    Slot,
    Snapshot,
    State,
    SymbolicRow,
    overlay,
)
from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, equal, not_, or_
from plume_py.reasoning.infer.execution.evaluate import TableShape
from plume_py.reasoning.infer.execution.schedule import Commit, Counterexample
from plume_py.reasoning.infer.execution.serial import CLAUSE
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel, under

SMALL = 3  # counterexamples prefer numbers up to this
FOR_SMALL = 2.0  # seconds that they may take

VIOLATED, NONE, UNKNOWN = "violated", "none", "unknown"


@dataclass
class ClauseAnswer:
    """What the solver said about one clause."""

    outcome: str
    example: Counterexample | None = None
    reason: str = ""


class Bounded(Partners):
    """The formula for one transaction at one level; clauses are asked one by one, for up to ``seconds`` each."""

    def __init__(
        self,
        program: ir.Application,
        name: str,
        level: LevelModel,
        rows: int = 2,
        steps: int = 2,
        seconds: float = 60.0,
        limits: Limits | None = None,
        partners: dict[str, LevelModel] | None = None,
    ) -> None:
        self.program, self.level, self.rows = program, level, rows
        self.seconds, self.limits = seconds, limits or Limits()
        self.steps = 0 if level.is_serial else steps
        self.txn = under(program.transaction(name), level, program)
        self.partners = partners or {}
        self.texts = Texts()
        self.solver = z3.Solver()
        self._number = 0
        self.is_short = False
        self._numbers: list[Any] = []
        bodies = [txn.body for txn in program.transactions]
        self.slots = layout(program, self.txn, bodies, rows, self.steps)
        self.states = [self._initial()]
        self.others_so_far: list[PartnerCommit] = []
        for j in range(self.steps):
            self.others_so_far.append(self._other(j))
        self.others = self.others_so_far
        self._target()

    def _fresh(self, stem: str, sort: str) -> Any:
        self._number += 1
        name = f"{stem}!{self._number}"
        if sort == "bool":
            return z3.Bool(name)
        term = z3.Int(name)
        if stem != "moment":
            self._numbers.append(term)
        return term

    def _initial(self) -> State:
        tables = []
        for table, size in zip(self.program.tables, self.slots.sizes, strict=True):
            slots = []
            for number in range(size):
                here = number < self.rows
                present = self._fresh(f"{table.name}{number}", "bool") if here else False
                blank = [False if sort == "bool" else 0 for _, sort in table.columns]
                columns = [self._fresh(f"{table.name}{number}.{c}", s) for c, s in table.columns] if here else blank
                slots.append(Slot(present, tuple(columns)))
            self._ordered(table, slots)
            tables.append(tuple(slots))
        state = tuple(tables)
        for clause in (*self.program.invariant, *self.program.enforced):
            self._add(self._clause(clause, state))
        return state

    def _ordered(self, table: ir.Table, slots: list[Slot]) -> None:
        """Rows fill slots from the left, and keys grow: otherwise each state would be there many times over."""
        for left, right in pairwise(slots[: self.rows]):
            self._add(or_(not_(right.present), left.present))
            if table.key:
                keys = [(left.columns[table.index(c)], right.columns[table.index(c)]) for c in table.key]
                smaller: Term = False
                for a, b in reversed(keys):
                    less = and_(not_(a), b) if z3.is_bool(a) else a < b
                    smaller = or_(less, and_(a == b, smaller))
                self._add(or_(not_(right.present), smaller))

    def _clause(self, clause: ir.Clause, state: State) -> Term:
        return Evaluator(TableShape(self.program).of_expression(clause.condition), self.texts)(
            clause.condition, state, {}
        )

    def _add(self, condition: Term) -> None:
        self.limits.check()  # large formulas take their time
        if condition is not True:
            self.solver.add(condition)

    def _arguments(self, txn: ir.TransactionProgram, shape: TableShape) -> Frame:
        frame: Frame = {}
        for param in txn.params:
            if not param.fields:
                frame[param.name] = self._fresh(f"{txn.name}.{param.name}", param.sort)
                continue
            members, before = [], None
            for number in range(LIST):
                there = self._fresh(f"{txn.name}.{param.name}{number}", "bool")
                if before is not None:
                    self._add(z3.Implies(there, before))
                columns = tuple(self._fresh(f"{txn.name}.{param.name}{number}.{n}", s) for n, s in param.fields)
                members.append((there, SymbolicRow(number, columns)))
                before = there
            frame[param.name] = Set(tuple(members))
        return frame

    def _assumed(self, txn: ir.TransactionProgram, shape: TableShape, frame: Frame) -> Term:
        evaluate = Evaluator(shape, self.texts)
        return and_(*(evaluate(condition, (), frame) for condition in txn.assume))

    def _other(self, j: int) -> PartnerCommit:
        """State j + 1: a transaction of the program ran alone in state j, or nothing happened."""
        before = self.states[-1]
        choice = z3.Int(f"step{j}")
        self._add(and_(choice >= 0, choice <= len(self.program.transactions)))
        frames, changes, runs, writes = [], [], [], dict[tuple[int, int], Term]()
        for number, txn in enumerate(self.program.transactions, 1):
            level = self.partners.get(txn.name)
            txn = under(txn, level, self.program) if level else txn
            shape = TableShape(self.program).of_transaction(txn)
            frame = self._arguments(txn, shape)
            base = self._moments(level, j) if level and not level.is_serial else (lambda *_, j=j: (before, j))
            how = level or ALONE
            run = Execution(
                Evaluator(shape, self.texts), self.program, frame, base, self.slots.steps[j],
                how.locks_reads, how.write == "snapshot", how.late_snapshot,
            )  # fmt: skip
            run.block(txn.body, True)
            runs.append(run)
            after = overlay(before, run.writes)
            chosen = equal(choice, number)
            enforced = and_(*(self._clause(clause, after) for clause in self.program.enforced))
            goes = and_(self._assumed(txn, shape, frame), run.live, enforced)
            if level and not level.is_serial:
                goes = and_(goes, self._isolated(run, level, j))
            self._add(or_(not_(chosen), goes))
            frames.append(frame)
            changes.append((chosen, run.writes))
            for place, write in run.writes.items():
                writes[place] = or_(writes.get(place, False), and_(chosen, write.happened))
        after = before
        for chosen, made in changes:
            after = tuple(
                tuple(
                    either(and_(chosen, made[t, n].happened), made[t, n].after, slot) if (t, n) in made else slot
                    for n, slot in enumerate(slots)
                )
                for t, slots in enumerate(after)
            )
        self.states.append(after)
        if self.partners:  # who breaks it first is judged by itself
            for clause in self.program.invariant:
                self._add(self._clause(clause, after))
        return PartnerCommit(choice, frames, writes, after, runs, self._locked(choice, runs))

    def _locked(self, choice: Any, runs: list[Execution]) -> dict[tuple[int, int], Term]:
        """The rows that a step locks by FOR UPDATE."""
        found: dict[tuple[int, int], Term] = {}
        for number, run in enumerate(runs, 1):
            for point in run.points:
                for place, seen in point.reads.items() if getattr(point.stmt, "lock", False) else ():
                    took = and_(equal(choice, number), point.guard, seen)
                    found[place] = or_(found.get(place, False), took)
        return found

    def _at(self, moment: Any, last: int) -> State:
        """The state after ``moment`` commits, a symbolic number of at most ``last``."""
        self.limits.check()
        if isinstance(moment, int):
            return self.states[moment]
        result = self.states[last]
        for j in range(last - 1, -1, -1):
            result = tuple(
                tuple(either(moment == j, old, new) for old, new in zip(olds, news, strict=True))
                for olds, news in zip(self.states[j], result, strict=True)
            )
        return result

    def _target(self) -> None:
        """The transaction in question: each statement at its moment, and the commit after the last step."""
        shape = TableShape(self.program).of_transaction(self.txn)
        self.frame = self._arguments(self.txn, shape)
        self._add(self._assumed(self.txn, shape, self.frame))
        # Partners at their own levels may have begun before it; others come and go, and before it they change nothing.
        self.begin: Any = self._moment(0, self.steps) if self.partners and self.steps else 0
        last: list[Any] = [self.begin]

        snapshot = Snapshot(self._fresh("moment", "int"), self._add)

        def late(guard: Term) -> tuple[State, Any]:
            if snapshot.taken is not True and run.points:
                last[0] = self._moment(last[0], self.steps)
            return self._at(snapshot.look(last[0], guard), self.steps), last[0]

        def base(writing: bool, guard: Term, newest: bool) -> tuple[State, Any]:
            if self.level.late_snapshot and not writing and not newest and self.steps:
                return late(guard)
            which = "current" if newest else self.level.write if writing else self.level.select
            # A lock is taken now, even if what is seen is the snapshot.
            takes_lock = writing and which == "snapshot"
            if self.steps and (takes_lock or (which == "current" and run.points)):
                last[0] = self._moment(last[0], self.steps)
            return self._at(self.begin if which == "snapshot" else last[0], self.steps), last[0]

        run = Execution(
            Evaluator(shape, self.texts),
            self.program,
            self.frame,
            base,
            self.slots.own,
            self.level.locks_reads,
            self.level.write == "snapshot",
            self.level.late_snapshot,
        )
        run.block(self.txn.body, True)
        self.run = run
        end = self.states[self.steps]
        self._add(run.live)
        self._locks(run)
        self._commit(run, end)
        self.final = overlay(end, run.writes)
        for clause in self.program.enforced:
            self._add(self._clause(clause, self.final))

    def _locks(self, run: Execution) -> None:
        """A commit must not write what the transaction in question has locked before it."""
        for j, step in enumerate(self.others):
            for point in run.points:
                before = point.moment <= j
                if self.level.locks_writes:
                    for (table, number), (happened, after) in point.writes.items():
                        clash = self._clash(run, table, number, after, step)
                        taken = or_(clash, step.locks.get((table, number), False))
                        self._add(not_(and_(before, happened, taken)))
                if self.level.locks_reads or getattr(point.stmt, "lock", False):
                    for place, seen in point.reads.items():
                        self._add(not_(and_(before, point.guard, seen, step.claims(place))))

    def _commit(self, run: Execution, end: State) -> None:
        since = [(self.begin <= j, step) for j, step in enumerate(self.others)]
        if self.level.among_themselves:
            for meanwhile, step in since:
                self._add(not_(and_(meanwhile, self._is_watched(step))))
        if self.level.first_committer_wins:
            for (table, number), write in run.writes.items():
                for meanwhile, step in since if (table, number) not in run.inserted else ():
                    clash = self._clash(run, table, number, write.after, step)
                    self._add(not_(and_(meanwhile, write.happened, clash)))
            for point in run.points:
                if getattr(point.stmt, "lock", False):
                    for place, seen in point.reads.items():
                        changed = or_(*(and_(now, step.writes.get(place, False)) for now, step in since))
                        self._add(not_(and_(point.guard, seen, changed)))
        self._add(self._keys_are_free(run, end))
        if run.looks_back and not self.level.locks_writes:  # with locks, a key that is free at the end was free before
            for point in run.points:
                if isinstance(point.stmt, ir.Insert):
                    self._add(self._keys_are_free(run, self._at(point.moment, self.steps), point))

    def _serial(self) -> Term:
        """Does some serial order of the same calls end in the same state?"""
        txn = self.program.transaction(self.txn.name)
        found = []
        for place in range(self.steps + 1):
            state = self._alone(txn, self.frame, self.states[place], self.slots.own)
            for j in range(place, self.steps):
                step = self.others[j]
                for number, other in enumerate(self.program.transactions, 1):
                    after = self._alone(other, step.frames[number - 1], state, self.slots.steps[j])
                    state = state_either(equal(step.choice, number), after, state)
            found.append(same_state(state, self.final))
        return or_(*found)

    def _alone(self, txn: ir.TransactionProgram, frame: Frame, before: State, slots: dict[int, list[int]]) -> State:
        """The state after a transaction ran alone; unchanged where it rolls back."""
        shape = TableShape(self.program).of_transaction(txn)
        run = Execution(Evaluator(shape, self.texts), self.program, frame, lambda *_: (before, 0), slots, False)
        run.block(txn.body, True)
        self.is_short |= run.is_short
        after = overlay(before, run.writes)
        goes = and_(run.live, *(self._clause(clause, after) for clause in self.program.enforced))
        return state_either(goes, after, before)

    def ask(self, clause: ir.Clause) -> ClauseAnswer:
        """Can the clause be broken?"""
        broken = not_(self._serial() if clause.name == CLAUSE else self._clause(clause, self.final))
        if self.is_short:
            return ClauseAnswer(UNKNOWN, reason="in another order, a loop inserts more rows than were set aside")
        if broken is False:
            return ClauseAnswer(NONE)
        self.solver.push()
        self.solver.add(broken if broken is not True else z3.BoolVal(True))
        result = solve(self.solver, self.limits.at_most(self.seconds))
        answer = ClauseAnswer(NONE)
        if result == z3.sat:
            model = self.solver.model()
            # Small numbers are easier to read, if they will do.
            self.solver.push()
            self.solver.add(*(z3.And(term >= 0, term <= SMALL) for term in self._numbers))
            if solve(self.solver, self.limits.at_most(FOR_SMALL)) == z3.sat:
                model = self.solver.model()
            self.solver.pop()
            answer = ClauseAnswer(VIOLATED, self._decoded(model, clause.name))
        elif result == z3.unknown:
            answer = ClauseAnswer(UNKNOWN, reason=self.solver.reason_unknown())
        self.solver.pop()
        return answer

    def _decoded(self, model: z3.ModelRef, clause: str) -> Counterexample:
        """The model as a counterexample."""
        value = ModelValues(model, self.texts)
        initial = []
        for table, slots in zip(self.program.tables, self.states[0], strict=True):
            rows = []
            for number, slot in enumerate(slots[: self.rows], 1):
                if value.of(slot.present, "bool"):
                    row = tuple(value.of(c, s) for c, (_, s) in zip(slot.columns, table.columns, strict=True))
                    rows.append((tuple(row[table.index(c)] for c in table.key) if table.key else number, row))
            initial.append(tuple(sorted(rows)))
        events: list[Commit | None] = []
        done = 0
        for point in self.run.points:
            if value.of(point.guard, "bool"):
                moment = value.of(point.moment, "int")
                events += self._commits(value, done, moment)
                done = max(done, moment)
                events.append(None)
        events += self._commits(value, done, self.steps)
        args = tuple(value.arguments(self.txn, self.frame).items())
        begun = self._real(value, value.of(self.begin, "int"))
        return Counterexample(self.txn.name, self.level, args, tuple(initial), tuple(events), clause, begun)

    def _real(self, value: "ModelValues", moment: int) -> int:
        """A moment in numbers of real commits: steps in which nothing happened do not count."""
        return sum(1 for step in self.others[:moment] if value.of(step.choice, "int"))

    def _commits(self, value: "ModelValues", begin: int, end: int) -> list[Commit]:
        found = []
        for step in self.others[begin:end]:
            number = value.of(step.choice, "int")
            if number:
                txn = self.program.transactions[number - 1]
                args = tuple(value.arguments(txn, step.frames[number - 1]).items())
                level = self.partners.get(txn.name)
                points = [point for point in step.runs[number - 1].points if value.of(point.guard, "bool")]
                if level is None or level.is_serial:
                    found.append(Commit(txn.name, args))
                else:
                    moments = tuple(self._real(value, value.of(point.moment, "int")) for point in points)
                    found.append(Commit(txn.name, args, level, moments))
        return found


__all__ = ["NONE", "UNKNOWN", "VIOLATED", "Bounded", "ClauseAnswer", "Point"]
