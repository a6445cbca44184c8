"""Bounded symbolic search: at most ``rows`` rows per table at the start, at most ``steps`` commits of others.

The database goes through states D0, D1, … Dsteps, where each step is the commit of some transaction with some
arguments, or nothing. The transaction in question does not change them before it commits; each of its statements is evaluated
on one of them, later ones on later ones. So one formula covers all schedules.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import z3

from plume_py.infer import language as ir
from plume_py.infer.levels import Level, under
from plume_py.infer.machine import Shape
from plume_py.infer.schedule import Commit, Counterexample
from plume_py.infer.symbolic import (
    LIST,
    Bound,
    Evaluator,
    Execution,
    Frame,
    Point,
    Set,
    Slot,
    State,
    Term,
    Texts,
    and_,
    equal,
    ite,
    not_,
    or_,
    overlay,
)

VIOLATED, NONE, UNKNOWN = "violated", "none", "unknown"


@dataclass
class Answer:
    """What the solver said about one clause."""

    outcome: str
    example: Counterexample | None = None
    reason: str = ""


@dataclass
class Step:
    """The commit of another transaction: which one, with what arguments, and what it wrote."""

    choice: Any
    frames: list[Frame]
    writes: dict[tuple[int, int], Term]
    after: State


def inserts(body: tuple[ir.Stmt, ...], rows: int) -> dict[str, int]:
    """How many rows a transaction can insert into each table, its loops being unrolled."""
    counts: dict[str, int] = {}
    for stmt in body:
        found: dict[str, int] = {}
        if isinstance(stmt, ir.Insert):
            found = {stmt.table: 1}
        elif isinstance(stmt, ir.If):
            both = inserts(stmt.then, rows), inserts(stmt.otherwise, rows)
            found = {table: max(side.get(table, 0) for side in both) for table in {*both[0], *both[1]}}
        elif isinstance(stmt, ir.ForEach):
            found = {table: n * max(rows, LIST) for table, n in inserts(stmt.body, rows).items()}
        for table, n in found.items():
            counts[table] = counts.get(table, 0) + n
    return counts


class Bounded:
    """The formula for one transaction at one level; clauses are asked one by one."""

    def __init__(
        self, program: ir.Program, name: str, level: Level, rows: int = 2, steps: int = 2, milliseconds: int = 60_000
    ) -> None:
        self.program, self.level, self.rows = program, level, rows
        self.steps = 0 if level.is_serial else steps
        self.txn = under(program.transaction(name), level, program)
        self.texts = Texts()
        self.solver = z3.Solver()
        self.solver.set("timeout", milliseconds)
        self._number = 0
        self._layout()
        self.states = [self._initial()]
        self.others = [self._other(j) for j in range(self.steps)]
        self._target()

    def _layout(self) -> None:
        """Slots: those of the start, then those of each step, then those of the transaction in question."""
        most: dict[str, int] = {}
        for txn in self.program.transactions:
            for name, n in inserts(txn.body, self.rows).items():
                most[name] = max(most.get(name, 0), n)
        own = inserts(self.txn.body, self.rows)
        self.step_slots: list[dict[int, list[int]]] = []
        self.own_slots: dict[int, list[int]] = {}
        self.sizes = []
        for j in range(self.steps):
            self.step_slots.append(
                {
                    i: list(range(self.rows + j * most.get(t.name, 0), self.rows + (j + 1) * most.get(t.name, 0)))
                    for i, t in enumerate(self.program.tables)
                }
            )
        for i, table in enumerate(self.program.tables):
            begin = self.rows + self.steps * most.get(table.name, 0)
            self.own_slots[i] = list(range(begin, begin + own.get(table.name, 0)))
            self.sizes.append(begin + own.get(table.name, 0))

    def _fresh(self, stem: str, sort: str) -> Any:
        self._number += 1
        name = f"{stem}!{self._number}"
        return z3.Bool(name) if sort == "bool" else z3.Int(name)

    def _initial(self) -> State:
        tables = []
        for table, size in zip(self.program.tables, self.sizes, strict=True):
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
        return Evaluator(Shape(self.program).of_expression(clause.condition), self.texts)(clause.condition, state, {})

    def _add(self, condition: Term) -> None:
        if condition is not True:
            self.solver.add(condition)

    def _arguments(self, txn: ir.Transaction, shape: Shape) -> Frame:
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
                members.append((there, Bound(number, columns)))
                before = there
            frame[param.name] = Set(tuple(members))
        return frame

    def _assumed(self, txn: ir.Transaction, shape: Shape, frame: Frame) -> Term:
        evaluate = Evaluator(shape, self.texts)
        return and_(*(evaluate(condition, (), frame) for condition in txn.assume))

    def _other(self, j: int) -> Step:
        """State j + 1: a transaction of the program ran alone in state j, or nothing happened."""
        before = self.states[-1]
        choice = z3.Int(f"step{j}")
        self._add(and_(choice >= 0, choice <= len(self.program.transactions)))
        frames, changes, writes = [], [], dict[tuple[int, int], Term]()
        for number, txn in enumerate(self.program.transactions, 1):
            shape = Shape(self.program).of_transaction(txn)
            frame = self._arguments(txn, shape)
            run = Execution(
                Evaluator(shape, self.texts), self.program, frame, lambda _: (before, 0), self.step_slots[j], False
            )
            run.block(txn.body, True)
            after = overlay(before, run.writes)
            chosen = equal(choice, number)
            enforced = and_(*(self._clause(clause, after) for clause in self.program.enforced))
            goes = and_(self._assumed(txn, shape, frame), run.live, not_(run.short), enforced)
            self._add(or_(not_(chosen), goes))
            frames.append(frame)
            changes.append((chosen, run.writes))
            for place, write in run.writes.items():
                writes[place] = or_(writes.get(place, False), and_(chosen, write.happened))
        after = before
        for chosen, made in changes:
            after = tuple(
                tuple(
                    _either(and_(chosen, made[t, n].happened), made[t, n].after, slot) if (t, n) in made else slot
                    for n, slot in enumerate(slots)
                )
                for t, slots in enumerate(after)
            )
        self.states.append(after)
        return Step(choice, frames, writes, after)

    def _at(self, moment: Any) -> State:
        """The state after ``moment`` commits, a symbolic number."""
        if isinstance(moment, int):
            return self.states[moment]
        result = self.states[self.steps]
        for j in range(self.steps - 1, -1, -1):
            result = tuple(
                tuple(_either(moment == j, old, new) for old, new in zip(olds, news, strict=True))
                for olds, news in zip(self.states[j], result, strict=True)
            )
        return result

    def _target(self) -> None:
        """The transaction in question: each statement at its moment, and the commit after the last step."""
        shape = Shape(self.program).of_transaction(self.txn)
        self.frame = self._arguments(self.txn, shape)
        self._add(self._assumed(self.txn, shape, self.frame))
        last: list[Any] = [0]

        def base(writing: bool) -> tuple[State, Any]:
            which = self.level.write if writing else self.level.select
            if which == "snapshot" or self.steps == 0 or not run.points:
                return self.states[0], last[0]
            moment = self._fresh("moment", "int")
            self._add(and_(moment >= last[0], moment <= self.steps))
            last[0] = moment
            return self._at(moment), moment

        run = Execution(
            Evaluator(shape, self.texts), self.program, self.frame, base, self.own_slots, self.level.locks_reads
        )
        run.block(self.txn.body, True)
        self.run = run
        end = self.states[self.steps]
        self._add(run.live)
        self._add(not_(run.short))
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
                        self._add(not_(and_(before, happened, clash)))
                if self.level.locks_reads:
                    for place, seen in point.reads.items():
                        self._add(not_(and_(before, point.guard, seen, step.writes.get(place, False))))

    def _clash(self, run: Execution, table: int, number: int, row: Slot, step: Step) -> Term:
        """Did a step write this row? Rows with equal primary keys are the same row."""
        parts = [step.writes.get((table, number), False)]
        if self.program.tables[table].key:
            for (other, place), wrote in step.writes.items():
                if other == table and place != number:
                    parts.append(and_(wrote, run.key_equal(table, row.columns, step.after[table][place].columns)))
        return or_(*parts)

    def _commit(self, run: Execution, end: State) -> None:
        if self.level.first_committer_wins:
            for (table, number), write in run.writes.items():
                for step in self.others:
                    self._add(not_(and_(write.happened, self._clash(run, table, number, write.after, step))))
        for (table, number), happened in run.inserted.items():
            if self.program.tables[table].key:
                row = run.writes[table, number].after.columns
                for slot in end[table]:
                    self._add(not_(and_(happened, slot.present, run.key_equal(table, row, slot.columns))))

    def ask(self, clause: ir.Clause) -> Answer:
        """Can the clause be broken?"""
        broken = not_(self._clause(clause, self.final))
        if broken is False:
            return Answer(NONE)
        self.solver.push()
        self.solver.add(broken if broken is not True else z3.BoolVal(True))
        result = self.solver.check()
        answer = Answer(NONE)
        if result == z3.sat:
            answer = Answer(VIOLATED, self._decoded(self.solver.model(), clause.name))
        elif result == z3.unknown:
            answer = Answer(UNKNOWN, reason=self.solver.reason_unknown())
        self.solver.pop()
        return answer

    def _decoded(self, model: z3.ModelRef, clause: str) -> Counterexample:
        """The model as a counterexample."""
        value = _Values(model, self.texts)
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
        return Counterexample(self.txn.name, self.level, args, tuple(initial), tuple(events), clause)

    def _commits(self, value: "_Values", begin: int, end: int) -> list[Commit]:
        found = []
        for step in self.others[begin:end]:
            number = value.of(step.choice, "int")
            if number:
                txn = self.program.transactions[number - 1]
                found.append(Commit(txn.name, tuple(value.arguments(txn, step.frames[number - 1]).items())))
        return found


def _either(test: Term, then: Slot, other: Slot) -> Slot:
    if then is other:
        return then
    columns = tuple(ite(test, a, b) for a, b in zip(then.columns, other.columns, strict=True))
    return Slot(ite(test, then.present, other.present), columns)


class _Values:
    """Values of terms in a model."""

    def __init__(self, model: z3.ModelRef, texts: Texts) -> None:
        self.model, self.texts = model, texts

    def of(self, term: Term, sort: str) -> Any:
        """The value of a term."""
        if z3.is_expr(term):
            found = self.model.eval(term, model_completion=True)
            term = z3.is_true(found) if z3.is_bool(found) else found.as_long()
        return self.texts.text(term) if sort == "text" and not isinstance(term, str) else term

    def arguments(self, txn: ir.Transaction, frame: Frame) -> dict[str, Any]:
        """The arguments of a call."""
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


__all__ = ["NONE", "UNKNOWN", "VIOLATED", "Answer", "Bounded", "Point"]
