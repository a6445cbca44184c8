"""Unbounded proofs: any number of rows, any number of commits of others between any two statements.

The transaction reads states about which we assume the invariant (others keep it, each at its own level), the frame of
the program (what nobody ever does) and what the level forbids others. Its writes are laid over the state at commit, and
each clause of the invariant must follow there. A solver that finds no countermodel has proved it; anything else, a
countermodel included, only means that it is not proved: a countermodel may be a state that cannot be reached.
"""

from dataclasses import dataclass

import z3

from plume_py.base.limits import Limits
from plume_py.reasoning.infer.bounded.terms import Term, not_, or_, solve
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.conflicts import Locking, locking, locks_rows, replaced, takes_rows_at_once
from plume_py.reasoning.infer.proof.abstract import AbstractState, Base, arity, formula, fresh
from plume_py.reasoning.infer.proof.effects import Effects, Element, Lock, New, OutOfReach
from plume_py.reasoning.infer.statement_models import LevelModel, under


@dataclass
class InvariantProof:
    """Which clauses were proved."""

    proved: tuple[str, ...]
    open: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """All of them?"""
        return not self.open


def prove(
    program: ir.Application, name: str, level: LevelModel, seconds: float = 10.0, limits: Limits | None = None
) -> InvariantProof:
    """Try to prove each clause of the invariant for a transaction at a level, each part of it in so many seconds.

    LimitError when the limits end it.
    """
    limits = limits or Limits()
    if not _sees_one_moment(program, program.transaction(name), level):
        return InvariantProof((), tuple(clause.name for clause in program.invariant))
    prover = _Prover(program, under(program.transaction(name), level, program), level)
    proved, left = list[str](), list[str]()
    try:
        prover.run()
    except OutOfReach:
        return InvariantProof((), tuple(clause.name for clause in program.invariant))
    for clause in program.invariant:
        limits.check()
        (proved if prover.follows(clause, seconds, limits) else left).append(clause.name)
    return InvariantProof(tuple(proved), tuple(left))


def _sees_one_moment(program: ir.Application, txn: ir.TransactionProgram, level: LevelModel) -> bool:
    """Do all statements look at one moment each, as the proof has it?

    Where rows are found first, or taken one after the other, a scan may see two, and a row that was deleted meanwhile
    is missed even if there is another one with its key.
    """
    if level.find_then_lock and any(replaced(program, stmt.table) for stmt in locking(txn)):
        return False
    if (level.write == "snapshot" or level.late_snapshot) and _sees_old_rows(program, level, txn.body, set()):
        return False
    return not (level.find_then_lock or level.row_by_row) or takes_rows_at_once(txn, program)


def _sees_old_rows(program: ir.Application, level: LevelModel, body: tuple[ir.Stmt, ...], written: set[str]) -> bool:
    """May a snapshot show more of these tables than what the transaction has ``written``?

    PostgreSQL shows a row that is gone beside the one that was inserted with its key; InnoDB shows an old version in
    place of one that an UPDATE has left as it was.
    """
    for stmt in body:
        if isinstance(stmt, ir.If):
            before = set(written)
            if _sees_old_rows(program, level, stmt.then, written) or _sees_old_rows(
                program, level, stmt.otherwise, before
            ):
                return True
            written |= before
        elif isinstance(stmt, ir.ForEach) and any(
            _sees_old_rows(program, level, stmt.body, written)
            for _ in range(2)  # a round comes after another
        ):
            return True
        looked_at = {query.source for query in _asked(stmt)}
        if isinstance(stmt, Locking) and not (level.late_snapshot and locks_rows(stmt)):
            looked_at.add(stmt.table)
        if looked_at & written:
            return True
        if isinstance(stmt, ir.Update) and level.late_snapshot:
            written.add(stmt.table)
        elif isinstance(stmt, ir.Insert) and not level.late_snapshot:
            written |= {stmt.table} if program.table(stmt.table).key and replaced(program, stmt.table) else set()
    return False


def _asked(stmt: ir.Stmt) -> list[ir.Query]:
    """The queries of a statement itself, not of those in it."""
    inner = {id(node) for part in ir.statements((stmt,)) if part is not stmt for node in ir.walk(part)}
    return [node for node in ir.walk(stmt) if isinstance(node, ir.Query) and id(node) not in inner]


class _Prover(Effects):
    """The verification conditions of one transaction at one level."""

    def run(self) -> None:
        """Execute the transaction, then relate the states."""
        for param in self.txn.params:
            size = fresh(f"size of {param.name}", "int")
            self.frame[param.name] = Element(size) if param.fields else fresh(param.name, param.sort)
            self.add(size >= 0)
        for condition in self.txn.assume:
            self.add(self.evaluate(condition, None, self.frame))
        self.block(self.txn.body, True)
        if not self.level.is_serial:
            self.states.append(self._state())  # at commit
            for earlier, later in zip(self.states, self.states[1:], strict=False):
                self._interference(earlier, later)
            self._isolation()
        end = self.states[-1]
        self.add(self.live)
        for new in self.inserted:
            # A primary key is free when the row is installed, perhaps because the transaction itself has deleted it;
            # a hidden number was never used before.
            views = [self._overlaid(end, new.after)] if new.table.key else self.states
            for view in views:
                self._absent(new, view)
        self.final = self._overlaid(end, len(self.changes))
        for clause in self.program.enforced:
            self.add(self._clause(clause, self.final))

    def _absent(self, new: New, view: AbstractState) -> None:
        absent = or_(not_(new.guard), not_(view.present(new.table, new.row)))
        self.add(z3.ForAll(list(new.row), absent) if new.is_many else absent)

    def _interference(self, earlier: Base, later: Base) -> None:
        """What others can have done from one state to the next: anything within the frame."""
        for table in self.program.tables:
            frame = frames(self.program)[table.name]
            row = tuple(fresh("r", "int") for _ in range(arity(table)))
            was, now = earlier.present(table, row), later.present(table, row)
            if not frame.deletes:
                self.add(z3.ForAll(list(row), z3.Implies(was, now)))
            if not frame.inserts:
                self.add(z3.ForAll(list(row), z3.Implies(now, was)))
            # A hidden number is never used again, but a primary key may be, by another row.
            if not frame.keeps_rows and table.key:
                continue
            for column in table.names:
                before, after = earlier.column(table, row, column), later.column(table, row, column)
                if column in table.key:
                    continue
                if column not in frame.changed:
                    self.add(z3.ForAll(list(row), z3.Implies(z3.And(was, now), before == after)))
                elif column in frame.growing:
                    self.add(z3.ForAll(list(row), z3.Implies(z3.And(was, now), before <= after)))

    def _isolation(self) -> None:
        """What the level forbids others: to change what is locked, or, with first-committer-wins, what was written."""
        for lock in self.locks:
            begin = 0 if self.level.first_committer_wins and lock.is_write else lock.state
            for j in range(begin, len(self.states) - 1):
                self._unchanged(lock, self.states[j], self.states[j + 1])

    def _unchanged(self, lock: Lock, earlier: Base, later: Base) -> None:
        table = lock.table
        row = tuple(fresh("r", "int") for _ in range(arity(table)))
        equal = [earlier.present(table, row) == later.present(table, row)]
        equal += [
            earlier.column(table, row, c) == later.column(table, row, c) for c in table.names if c not in table.key
        ]
        self.add(z3.ForAll(list(row), z3.Implies(formula(lock.rows(row)), z3.And(*equal))))

    def follows(self, clause: ir.Clause, seconds: float, limits: Limits) -> bool:
        """Does the clause hold at the end?"""
        goal = self._clause(clause, self.final)
        # Parts of a conjunction are easier one by one.
        parts = goal.children() if z3.is_and(goal) else [goal]
        return all(self._valid(part, limits.at_most(seconds)) for part in parts)

    def _valid(self, goal: Term, limits: Limits) -> bool:
        if isinstance(goal, bool):
            return goal
        solver = z3.Solver()
        solver.add(*self.facts, *(axiom for state in self.states for axiom in state.axioms))
        solver.add(z3.Not(goal))
        return bool(solve(solver, limits) == z3.unsat)


__all__ = ["InvariantProof", "prove"]


# From invariant_frame.py: What no transaction of a program ever does: the frame within which others can interfere,
# derived from their text.
@dataclass(frozen=True)
class TableFrame:
    """May rows appear or disappear, which columns may change, and which only grow?"""

    inserts: bool
    deletes: bool
    changed: frozenset[str]
    growing: frozenset[str]

    @property
    def keeps_rows(self) -> bool:
        """Is a row that is there twice there in between, so that it is the same row?"""
        return not (self.inserts and self.deletes)


def frames(program: ir.Application) -> dict[str, TableFrame]:
    """The frame of each table."""
    return {table.name: _frame(program, table) for table in program.tables}


def _frame(program: ir.Application, table: ir.Table) -> TableFrame:
    inserts = deletes = False
    changed: set[str] = set()
    shrinking: set[str] = set()
    for txn in program.transactions:
        for stmt in ir.statements(txn.body):
            if getattr(stmt, "table", None) != table.name:
                continue
            inserts |= isinstance(stmt, ir.Insert)
            deletes |= isinstance(stmt, ir.Delete)
            for column, value in stmt.sets if isinstance(stmt, ir.Update) else ():
                changed.add(column)
                if not _grows(column, value, stmt, txn):  # type: ignore[arg-type]
                    shrinking.add(column)
    return TableFrame(inserts, deletes, frozenset(changed), frozenset(changed - shrinking))


def _grows(column: str, value: ir.Expr, stmt: ir.Update, txn: ir.TransactionProgram) -> bool:
    """Is it ``column + something that is not negative``?"""
    own = ir.Field(stmt.var, column)
    if not (isinstance(value, ir.Operation) and value.op == "+" and own in value.args):
        return False
    other = value.args[1] if value.args[0] == own else value.args[0]
    if isinstance(other, ir.Const):
        return isinstance(other.value, int) and other.value >= 0
    return any(_not_negative(part, other) for part in txn.assume)


def _not_negative(promise: ir.Expr, value: ir.Expr) -> bool:
    """Does a promise of the callers say that the value is at least 0?"""
    if isinstance(promise, ir.Operation) and promise.op == "and":
        return any(_not_negative(part, value) for part in promise.args)
    if not (isinstance(promise, ir.Operation) and promise.op in ("<", "<=")):
        return False
    low, high = promise.args
    return high == value and isinstance(low, ir.Const) and isinstance(low.value, int) and low.value >= 0
