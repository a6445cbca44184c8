"""Search for a violation with z3: up to ``rows`` initial rows per table, up to ``steps`` commits of others.

The database passes through states D0, D1, … Dsteps. Each step is the commit of some transaction with some arguments, or
nothing. The analysed transaction writes only when it commits, after the last step. Each of its statements is evaluated
on one of these states, a later statement on the same state or a later one. So one formula covers all schedules within
the bounds.

A step runs alone between two states, or, with ``partners``, at its own level: then its statements may read earlier
states. A model of the formula is decoded to a counterexample, which ``execution/replay.py`` checks.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import z3

from plume_py.base.limits import Limits
from plume_py.reasoning.infer.bounded.symbolic import (
    ChooseState,
    Evaluator,
    Execution,
    Frame,
    Slot,
    Snapshot,
    SymbolicRow,
    SymbolicRowSet,
    SymbolicState,
    SymbolicStatement,
    overlay,
)
from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, equal, ite, not_, or_, solve
from plume_py.reasoning.infer.execution.domains import MOST_ELEMENTS
from plume_py.reasoning.infer.execution.evaluate import TableShape
from plume_py.reasoning.infer.execution.schedule import CLAUSE, Commit, Counterexample
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel, as_executed

SMALL = 3  # prefer counterexamples with numbers from 0 to this
FOR_SMALL = 2.0  # seconds for the search for small numbers

VIOLATED, NONE, UNKNOWN = "violated", "none", "unknown"


@dataclass
class ClauseAnswer:
    """The solver's answer about one clause: the counterexample, or the reason why it is unknown."""

    outcome: str
    example: Counterexample | None = None
    reason: str = ""


@dataclass
class PartnerCommit:
    """The commit of another transaction in one step: its number (``choice``, 0 for none), arguments and writes."""

    choice: Any
    frames: list[Frame]
    writes: dict[tuple[int, int], Term]
    after: SymbolicState
    runs: list[Execution]
    locks: dict[tuple[int, int], Term]

    def claims(self, place: tuple[int, int]) -> Term:
        """Return the condition that the step writes or locks this row."""
        return or_(self.writes.get(place, False), self.locks.get(place, False))


class BoundedSearch:
    """The formula for one transaction at one level. ``ask`` checks one clause for up to ``seconds``."""

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
        self.txn = as_executed(program.transaction(name), level, program)
        self.partners = partners or {}
        self.texts = Texts()
        self.solver = z3.Solver()
        self._number = 0
        self.is_short = False
        self._numbers: list[Any] = []
        bodies = [txn.body for txn in program.transactions]
        self.slots = slot_layout(program, self.txn, bodies, rows, self.steps)
        self.states = [self._initial()]
        self.others: list[PartnerCommit] = []
        for j in range(self.steps):
            self.others.append(self._add_step(j))
        self._execute_analysed()

    def _fresh(self, stem: str, sort: str) -> Any:
        self._number += 1
        name = f"{stem}!{self._number}"
        if sort == "bool":
            return z3.Bool(name)
        term = z3.Int(name)
        if stem != "moment":
            self._numbers.append(term)
        return term

    def _initial(self) -> SymbolicState:
        tables = []
        for table, size in zip(self.program.tables, self.slots.sizes, strict=True):
            slots = []
            for number in range(size):
                here = number < self.rows
                present = self._fresh(f"{table.name}{number}", "bool") if here else False
                blank = [False if sort == "bool" else 0 for _, sort in table.columns]
                columns = [self._fresh(f"{table.name}{number}.{c}", s) for c, s in table.columns] if here else blank
                slots.append(Slot(present, tuple(columns)))
            self._require_row_order(table, slots)
            tables.append(tuple(slots))
        state = tuple(tables)
        for clause in (*self.program.invariant, *self.program.enforced):
            self._add(self._clause(clause, state))
        return state

    def _require_row_order(self, table: ir.Table, slots: list[Slot]) -> None:
        """Require that rows fill slots from the left in ascending order of keys: one representation per state."""
        for left, right in pairwise(slots[: self.rows]):
            self._add(or_(not_(right.present), left.present))
            if table.key:
                keys = [(left.columns[table.index(c)], right.columns[table.index(c)]) for c in table.key]
                smaller: Term = False
                for a, b in reversed(keys):
                    less = and_(not_(a), b) if z3.is_bool(a) else a < b
                    smaller = or_(less, and_(a == b, smaller))
                self._add(or_(not_(right.present), smaller))

    def _clause(self, clause: ir.Clause, state: SymbolicState) -> Term:
        return Evaluator(TableShape(self.program).of_expression(clause.condition), self.texts)(
            clause.condition, state, {}
        )

    def _add(self, condition: Term) -> None:
        self.limits.check()  # building a large formula takes long
        if condition is not True:
            self.solver.add(condition)

    def _arguments(self, txn: ir.TransactionProgram, shape: TableShape) -> Frame:
        frame: Frame = {}
        for param in txn.params:
            if not param.fields:
                frame[param.name] = self._fresh(f"{txn.name}.{param.name}", param.sort)
                continue
            members, before = [], None
            for number in range(MOST_ELEMENTS):
                there = self._fresh(f"{txn.name}.{param.name}{number}", "bool")
                if before is not None:
                    self._add(z3.Implies(there, before))
                columns = tuple(self._fresh(f"{txn.name}.{param.name}{number}.{n}", s) for n, s in param.fields)
                members.append((there, SymbolicRow(number, columns)))
                before = there
            frame[param.name] = SymbolicRowSet(tuple(members))
        return frame

    def _assumed(self, txn: ir.TransactionProgram, shape: TableShape, frame: Frame) -> Term:
        evaluate = Evaluator(shape, self.texts)
        return and_(*(evaluate(condition, (), frame) for condition in txn.assume))

    def _add_step(self, j: int) -> PartnerCommit:
        """Add state j + 1: some transaction of the program ran in step j, or nothing happened."""
        before = self.states[-1]
        choice = z3.Int(f"step{j}")
        self._add(and_(choice >= 0, choice <= len(self.program.transactions)))
        frames, changes, runs, writes = [], [], [], dict[tuple[int, int], Term]()
        for number, txn in enumerate(self.program.transactions, 1):
            level = self.partners.get(txn.name)
            txn = as_executed(txn, level, self.program) if level else txn
            shape = TableShape(self.program).of_transaction(txn)
            frame = self._arguments(txn, shape)
            base = self._partner_states(level, j) if level and not level.is_serial else (lambda *_, j=j: (before, j))
            run = Execution(Evaluator(shape, self.texts), frame, base, self.slots.steps[j], level or ALONE)
            run.block(txn.body, True)
            runs.append(run)
            after = overlay(before, run.writes)
            chosen = equal(choice, number)
            enforced = and_(*(self._clause(clause, after) for clause in self.program.enforced))
            goes = and_(self._assumed(txn, shape, frame), run.live, enforced)
            if level and not level.is_serial:
                goes = and_(goes, self._isolation(run, level, j))
            self._add(or_(not_(chosen), goes))
            frames.append(frame)
            changes.append((chosen, run.writes))
            for place, write in run.writes.items():
                writes[place] = or_(writes.get(place, False), and_(chosen, write.happened))
        after = before
        for chosen, made in changes:
            after = tuple(
                tuple(
                    slot_either(and_(chosen, made[t, n].happened), made[t, n].after, slot) if (t, n) in made else slot
                    for n, slot in enumerate(slots)
                )
                for t, slots in enumerate(after)
            )
        self.states.append(after)
        if self.partners:  # the first violation is that of the analysed transaction
            for clause in self.program.invariant:
                self._add(self._clause(clause, after))
        return PartnerCommit(choice, frames, writes, after, runs, self._locked(choice, runs))

    def _locked(self, choice: Any, runs: list[Execution]) -> dict[tuple[int, int], Term]:
        """Return the rows that a step locks by FOR UPDATE, with conditions."""
        found: dict[tuple[int, int], Term] = {}
        for number, run in enumerate(runs, 1):
            for point in run.points:
                for place, seen in point.reads.items() if getattr(point.stmt, "lock", False) else ():
                    took = and_(equal(choice, number), point.guard, seen)
                    found[place] = or_(found.get(place, False), took)
        return found

    def _partner_states(self, level: LevelModel, j: int) -> ChooseState:
        """Return the states that a partner's statements read if it commits as step j: up to j, in ascending order."""
        first: list[Any] = []
        last: list[Any] = [0]

        snapshot = Snapshot(self._fresh("moment", "int"), self._add)

        def late(guard: Term) -> tuple[SymbolicState, Any]:
            if snapshot.taken is not True:
                last[0] = self._new_moment(last[0], j)
            return self._state_after(snapshot.moment_seen(last[0], guard), j), last[0]

        def base(writing: bool, guard: Term, newest: bool) -> tuple[SymbolicState, Any]:
            if level.late_snapshot and not writing and not newest:
                return late(guard)
            which = "current" if newest else level.write if writing else level.select
            if not first or which == "current" or writing:
                last[0] = self._new_moment(last[0], j)
                first.append(last[0])
            moment = first[0] if which == "snapshot" else last[0]
            # The statement executes now, even if it sees the snapshot.
            return self._state_after(moment, j), last[0]

        return base

    def _new_moment(self, earliest: Any, latest: int) -> Any:
        """Return a new moment between two others. A moment counts the commits before it."""
        moment = self._fresh("moment", "int")
        self._add(and_(moment >= earliest, moment <= latest))
        return moment

    def _isolation(self, run: Execution, level: LevelModel, j: int) -> Term:
        """Return the conditions that a partner's level imposes on the commits since its statements."""
        parts: list[Term] = []
        begin = run.points[0].moment if run.points else j
        for i, step in enumerate(self.others):
            since = begin <= i
            for point in run.points:
                for (table, number), (happened, after) in point.writes.items():
                    clash = self._clash(run, table, number, after, step)
                    if level.locks_writes:
                        taken = or_(clash, step.locks.get((table, number), False))
                        parts.append(not_(and_(happened, point.moment <= i, taken)))
                    if level.first_committer_wins and (table, number) not in run.inserted:
                        parts.append(not_(and_(happened, since, clash)))
                if level.locks_reads or getattr(point.stmt, "lock", False):
                    for place, seen in point.reads.items():
                        parts.append(not_(and_(point.moment <= i, point.guard, seen, step.claims(place))))
            if level.among_themselves:
                parts.append(not_(and_(since, self._is_watched(step))))
        return and_(*parts, self._keys_are_free(run, self.states[j]))

    def _clash(self, run: Execution, table: int, number: int, row: Slot, step: PartnerCommit) -> Term:
        """Return the condition that a step wrote this row. Rows with equal primary keys are the same row."""
        parts = [step.writes.get((table, number), False)]
        if self.program.tables[table].key:
            for (other, place), wrote in step.writes.items():
                if other == table and place != number:
                    parts.append(and_(wrote, run.key_equal(table, row.columns, step.after[table][place].columns)))
        return or_(*parts)

    def _keys_are_free(self, run: Execution, before: SymbolicState, point: SymbolicStatement | None = None) -> Term:
        """Return the condition that each inserted primary key is free in ``before``.

        Rows that the transaction deleted before its insertion do not occupy a key. With ``point``, only the rows that
        this statement inserted are checked.
        """
        parts: list[Term] = []
        for (table, number), happened in run.inserted.items():
            if self.program.tables[table].key and (point is None or (table, number) in point.writes):
                row = run.writes[table, number].after.columns
                for place, slot in enumerate(overlay(before, run.before[table, number])[table]):
                    if (table, place) not in run.inserted:
                        parts.append(not_(and_(happened, slot.present, run.key_equal(table, row, slot.columns))))
        return and_(*parts)

    def _is_watched(self, step: PartnerCommit) -> Term:
        """Return the condition that the step runs a partner that is serializable only among its own kind."""
        numbers = [
            number
            for number, txn in enumerate(self.program.transactions, 1)
            if txn.name in self.partners and self.partners[txn.name].among_themselves
        ]
        return or_(*(equal(step.choice, number) for number in numbers))

    def _state_after(self, moment: Any, last: int) -> SymbolicState:
        """Return the state after ``moment`` commits, a symbolic number of at most ``last``."""
        self.limits.check()
        if isinstance(moment, int):
            return self.states[moment]
        result = self.states[last]
        for j in range(last - 1, -1, -1):
            result = tuple(
                tuple(slot_either(moment == j, old, new) for old, new in zip(olds, news, strict=True))
                for olds, news in zip(self.states[j], result, strict=True)
            )
        return result

    def _execute_analysed(self) -> None:
        """Execute the analysed transaction: each statement at its moment, and the commit after the last step."""
        shape = TableShape(self.program).of_transaction(self.txn)
        self.frame = self._arguments(self.txn, shape)
        self._add(self._assumed(self.txn, shape, self.frame))
        # Only a partner at its own level can overlap the begin. Other commits before it would only lead to another
        # initial state.
        self.begin: Any = self._new_moment(0, self.steps) if self.partners and self.steps else 0
        last: list[Any] = [self.begin]

        snapshot = Snapshot(self._fresh("moment", "int"), self._add)

        def late(guard: Term) -> tuple[SymbolicState, Any]:
            if snapshot.taken is not True and run.points:
                last[0] = self._new_moment(last[0], self.steps)
            return self._state_after(snapshot.moment_seen(last[0], guard), self.steps), last[0]

        def base(writing: bool, guard: Term, newest: bool) -> tuple[SymbolicState, Any]:
            if self.level.late_snapshot and not writing and not newest and self.steps:
                return late(guard)
            which = "current" if newest else self.level.write if writing else self.level.select
            # A lock is taken now, even if the statement sees the snapshot.
            takes_lock = writing and which == "snapshot"
            if self.steps and (takes_lock or (which == "current" and run.points)):
                last[0] = self._new_moment(last[0], self.steps)
            return self._state_after(self.begin if which == "snapshot" else last[0], self.steps), last[0]

        run = Execution(Evaluator(shape, self.texts), self.frame, base, self.slots.own, self.level)
        run.block(self.txn.body, True)
        self.run = run
        end = self.states[self.steps]
        self._add(run.live)
        self._require_locks(run)
        self._require_commit(run, end)
        self.final = overlay(end, run.writes)
        for clause in self.program.enforced:
            self._add(self._clause(clause, self.final))

    def _require_locks(self, run: Execution) -> None:
        """Require that no step writes rows that the analysed transaction locked before the step."""
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

    def _require_commit(self, run: Execution, end: SymbolicState) -> None:
        """Require the conditions that the level checks at commit."""
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
        if run.looks_back and not self.level.locks_writes:  # with locks, a key that is free at commit was always free
            for point in run.points:
                if isinstance(point.stmt, ir.Insert):
                    self._add(self._keys_are_free(run, self._state_after(point.moment, self.steps), point))

    def _is_serial(self) -> Term:
        """Return the condition that some serial order of the same calls ends in the same state."""
        txn = self.program.transaction(self.txn.name)
        found = []
        for place in range(self.steps + 1):
            state = self._after_running_alone(txn, self.frame, self.states[place], self.slots.own)
            for j in range(place, self.steps):
                step = self.others[j]
                for number, other in enumerate(self.program.transactions, 1):
                    after = self._after_running_alone(other, step.frames[number - 1], state, self.slots.steps[j])
                    state = state_either(equal(step.choice, number), after, state)
            found.append(same_state(state, self.final))
        return or_(*found)

    def _after_running_alone(
        self, txn: ir.TransactionProgram, frame: Frame, before: SymbolicState, slots: dict[int, list[int]]
    ) -> SymbolicState:
        """Return the state after a transaction ran alone, unchanged where it rolls back."""
        shape = TableShape(self.program).of_transaction(txn)
        run = Execution(Evaluator(shape, self.texts), frame, lambda *_: (before, 0), slots, ALONE)
        run.block(txn.body, True)
        self.is_short |= run.is_short
        after = overlay(before, run.writes)
        goes = and_(run.live, *(self._clause(clause, after) for clause in self.program.enforced))
        return state_either(goes, after, before)

    def search(self, clause: ir.Clause) -> ClauseAnswer:
        """Search for a violation of the clause."""
        broken = not_(self._is_serial() if clause.name == CLAUSE else self._clause(clause, self.final))
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
            # Prefer a counterexample with small numbers: it is easier to read.
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
        """Return the counterexample that a model describes."""
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
        begun = self._commits_before(value, value.of(self.begin, "int"))
        return Counterexample(self.txn.name, self.level, args, tuple(initial), tuple(events), clause, begun)

    def _commits_before(self, value: "ModelValues", moment: int) -> int:
        """Return the number of commits up to a moment, without steps in which nothing happened."""
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
                    moments = tuple(self._commits_before(value, value.of(point.moment, "int")) for point in points)
                    found.append(Commit(txn.name, args, level, moments))
        return found


def state_either(test: Term, then: SymbolicState, other: SymbolicState) -> SymbolicState:
    return tuple(
        tuple(slot_either(test, a, b) for a, b in zip(slots, others, strict=True))
        for slots, others in zip(then, other, strict=True)
    )


def same_state(left: SymbolicState, right: SymbolicState) -> Term:
    """Return the condition that two states are equal slot by slot. An INSERT uses the same slot in any serial order."""
    parts = []
    for slots, others in zip(left, right, strict=True):
        for a, b in zip(slots, others, strict=True):
            columns = and_(*(equal(x, y) for x, y in zip(a.columns, b.columns, strict=True)))
            parts += [equal(a.present, b.present), or_(not_(a.present), columns)]
    return and_(*parts)


def slot_either(test: Term, then: Slot, other: Slot) -> Slot:
    if then is other:
        return then
    columns = tuple(ite(test, a, b) for a, b in zip(then.columns, other.columns, strict=True))
    return Slot(ite(test, then.present, other.present), columns)


class ModelValues:
    """Values of terms in a model of the solver."""

    def __init__(self, model: z3.ModelRef, texts: Texts) -> None:
        self.model, self.texts = model, texts

    def of(self, term: Term, sort: str) -> Any:
        if z3.is_expr(term):
            found = self.model.eval(term, model_completion=True)
            term = z3.is_true(found) if z3.is_bool(found) else found.as_long()
        return self.texts.text(term) if sort == "text" and not isinstance(term, str) else term

    def arguments(self, txn: ir.TransactionProgram, frame: Frame) -> dict[str, Any]:
        """Return the arguments of a call by name; the elements of a list argument are numbered from 1."""
        found: dict[str, Any] = {}
        for param in txn.params:
            if param.fields:
                members = [bound for there, bound in frame[param.name].members if self.of(there, "bool")]
                found[param.name] = tuple(
                    (n, tuple(self.of(c, s) for c, (_, s) in zip(bound.columns, param.fields, strict=True)))
                    for n, bound in enumerate(members, 1)
                )
            else:
                found[param.name] = self.of(frame[param.name], param.sort)
        return found


Room = dict[str, int]  # table -> number of slots


def slots_needed(body: tuple[ir.Stmt, ...], room: Room) -> Room:
    """Return how many new slots a transaction needs per table if the tables have ``room`` slots when it begins.

    Both branches of an ``If`` are executed, each with its own slots. A loop runs once per slot of its table.
    """
    return _SlotCounter(room).block(body)


class _SlotCounter:
    def __init__(self, room: Room) -> None:
        self.room = dict(room)
        self.sets: dict[str, int] = {}

    def block(self, body: tuple[ir.Stmt, ...]) -> Room:
        counts: Room = {}
        for stmt in body:
            for table, n in self.statement(stmt).items():
                counts[table] = counts.get(table, 0) + n
        return counts

    def statement(self, stmt: ir.Stmt) -> Room:
        if isinstance(stmt, ir.Insert):
            self.room[stmt.table] = self.room.get(stmt.table, 0) + 1
            return {stmt.table: 1}
        if isinstance(stmt, ir.SelectAll):
            self.sets[stmt.rows] = self.room.get(stmt.table, 0)
        if isinstance(stmt, ir.If):
            return self.block((*stmt.then, *stmt.otherwise))
        if isinstance(stmt, ir.ForEach):
            return self.block(stmt.body * self.sets.get(stmt.source, MOST_ELEMENTS))
        return {}


@dataclass
class SlotLayout:
    """Slots for new rows, as table index -> slot numbers: ``steps`` per step, ``own`` of the analysed transaction.

    ``sizes`` are the slots per table in all. The slots of the initial rows come first.
    """

    steps: list[dict[int, list[int]]]
    own: dict[int, list[int]]
    sizes: list[int]


def slot_layout(
    program: ir.Application, txn: ir.TransactionProgram, bodies: list[tuple[ir.Stmt, ...]], rows: int, steps: int
) -> SlotLayout:
    """Return the slots for a search with ``rows`` initial rows and ``steps`` commits of any of ``bodies``."""
    room: Room = {table.name: rows for table in program.tables}
    found = []
    for _ in range(steps):
        needed = [slots_needed(body, room) for body in bodies]
        found.append(_take(program, room, {t: max(n.get(t, 0) for n in needed) for t in room}))
    own = _take(program, room, slots_needed(txn.body, room))
    return SlotLayout(found, own, [room[table.name] for table in program.tables])


def _take(program: ir.Application, room: Room, needed: Room) -> dict[int, list[int]]:
    taken = {}
    for i, table in enumerate(program.tables):
        begin = room[table.name]
        room[table.name] = begin + needed.get(table.name, 0)
        taken[i] = list(range(begin, room[table.name]))
    return taken
