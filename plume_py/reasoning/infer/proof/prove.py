"""Prove that a transaction at a level keeps the invariant: any number of rows, any number of commits of others.

The transaction reads abstract states. Each is assumed to satisfy the invariant, because the other transactions keep it,
each at its own level. Successive states differ only within the frame of the program (``TableFrame``) and by commits
that the level permits. The writes are applied to the state at commit, and each clause must follow there.

A clause is proved if z3 finds no countermodel. A countermodel proves nothing: its states may be unreachable.
"""

from dataclasses import dataclass

import z3

from plume_py.base.limits import Limits
from plume_py.reasoning.infer.bounded.terms import Term, not_, or_, solve
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.locking_statements import (
    Locking,
    locking_statements,
    locks_atomically,
    locks_rows,
    reuses_keys,
)
from plume_py.reasoning.infer.proof.abstract import AbstractState, BaseState, arity, formula, fresh
from plume_py.reasoning.infer.proof.effects import AbstractList, NewRow, OutOfReach, RowLock, TransactionEffects
from plume_py.reasoning.infer.statement_models import LevelModel, as_executed


@dataclass
class InvariantProof:
    """The clauses that were proved, and the open ones."""

    proved: tuple[str, ...]
    open: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        return not self.open


def prove(
    program: ir.Application, name: str, level: LevelModel, seconds: float = 10.0, limits: Limits | None = None
) -> InvariantProof:
    """Try to prove each clause of the invariant for a transaction at a level, for ``seconds`` per part of a clause.

    Raise LimitError when ``limits`` end the proof.
    """
    limits = limits or Limits()
    if not _sees_one_moment(program, program.transaction(name), level):
        return InvariantProof((), tuple(clause.name for clause in program.invariant))
    prover = _Prover(program, as_executed(program.transaction(name), level, program), level)
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
    """Return whether each statement reads at one moment, as the proof assumes.

    A scan that finds rows first, or that locks one row after the other, may see several moments. It also misses a row
    that was deleted and inserted again with the same key.
    """
    if level.find_then_lock and any(reuses_keys(program, stmt.table) for stmt in locking_statements(txn)):
        return False
    if (level.write == "snapshot" or level.late_snapshot) and _sees_old_rows(program, level, txn.body, set()):
        return False
    return not (level.find_then_lock or level.row_by_row) or locks_atomically(txn, program)


def _sees_old_rows(program: ir.Application, level: LevelModel, body: tuple[ir.Stmt, ...], written: set[str]) -> bool:
    """Return whether a read may see rows of its snapshot of a table that the transaction has ``written``.

    PostgreSQL shows a deleted row of the snapshot beside the new row with its key. InnoDB shows an old version of a row
    that an UPDATE left unchanged.
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
            for _ in range(2)  # a second round sees the writes of the first
        ):
            return True
        looked_at = {query.source for query in _own_queries(stmt)}
        if isinstance(stmt, Locking) and not (level.late_snapshot and locks_rows(stmt)):
            looked_at.add(stmt.table)
        if looked_at & written:
            return True
        if isinstance(stmt, ir.Update) and level.late_snapshot:
            written.add(stmt.table)
        elif isinstance(stmt, ir.Insert) and not level.late_snapshot:
            written |= {stmt.table} if program.table(stmt.table).key and reuses_keys(program, stmt.table) else set()
    return False


def _own_queries(stmt: ir.Stmt) -> list[ir.Query]:
    """Return the queries of a statement, without the queries of statements inside it."""
    inner = {id(node) for part in ir.statements((stmt,)) if part is not stmt for node in ir.walk(part)}
    return [node for node in ir.walk(stmt) if isinstance(node, ir.Query) and id(node) not in inner]


class _Prover(TransactionEffects):
    """The verification conditions of one transaction at one level."""

    def run(self) -> None:
        """Execute the transaction, then relate its states to each other."""
        for param in self.txn.params:
            size = fresh(f"size of {param.name}", "int")
            self.frame[param.name] = AbstractList(size) if param.fields else fresh(param.name, param.sort)
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
            # A primary key is free just before the row is added: the transaction may have deleted the old row itself.
            # A hidden number was never used before.
            views = [self._overlaid(end, new.after)] if new.table.key else self.states
            for view in views:
                self._absent(new, view)
        self.final = self._overlaid(end, len(self.changes))
        for clause in self.program.enforced:
            self.add(self._clause(clause, self.final))

    def _absent(self, new: NewRow, view: AbstractState) -> None:
        absent = or_(not_(new.guard), not_(view.present(new.table, new.row)))
        self.add(z3.ForAll(list(new.row), absent) if new.is_many else absent)

    def _interference(self, earlier: BaseState, later: BaseState) -> None:
        """Assume that other transactions change the state only within the frame of the program."""
        for table in self.program.tables:
            frame = table_frames(self.program)[table.name]
            row = tuple(fresh("r", "int") for _ in range(arity(table)))
            was, now = earlier.present(table, row), later.present(table, row)
            if not frame.deletes:
                self.add(z3.ForAll(list(row), z3.Implies(was, now)))
            if not frame.inserts:
                self.add(z3.ForAll(list(row), z3.Implies(now, was)))
            # Another row may reuse a primary key, but never a hidden number.
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
        """Assume that locked rows do not change and, with first-committer-wins, that written rows do not."""
        for lock in self.locks:
            begin = 0 if self.level.first_committer_wins and lock.is_write else lock.state
            for j in range(begin, len(self.states) - 1):
                self._unchanged(lock, self.states[j], self.states[j + 1])

    def _unchanged(self, lock: RowLock, earlier: BaseState, later: BaseState) -> None:
        table = lock.table
        row = tuple(fresh("r", "int") for _ in range(arity(table)))
        equal = [earlier.present(table, row) == later.present(table, row)]
        equal += [
            earlier.column(table, row, c) == later.column(table, row, c) for c in table.names if c not in table.key
        ]
        self.add(z3.ForAll(list(row), z3.Implies(formula(lock.rows(row)), z3.And(*equal))))

    def follows(self, clause: ir.Clause, seconds: float, limits: Limits) -> bool:
        goal = self._clause(clause, self.final)
        # z3 proves the parts of a conjunction more easily one by one.
        parts = goal.children() if z3.is_and(goal) else [goal]
        return all(self._valid(part, limits.at_most(seconds)) for part in parts)

    def _valid(self, goal: Term, limits: Limits) -> bool:
        if isinstance(goal, bool):
            return goal
        solver = z3.Solver()
        solver.add(*self.facts, *(axiom for state in self.states for axiom in state.axioms))
        solver.add(z3.Not(goal))
        return bool(solve(solver, limits) == z3.unsat)


@dataclass(frozen=True)
class TableFrame:
    """What the transactions of a program can do to a table, read off their text.

    ``inserts`` and ``deletes`` state whether rows may appear and disappear. ``changed`` holds the columns that may
    change, ``growing`` the columns among them that never decrease.
    """

    inserts: bool
    deletes: bool
    changed: frozenset[str]
    growing: frozenset[str]

    @property
    def keeps_rows(self) -> bool:
        """Whether a row that is present at two moments is the same row, and present in between."""
        return not (self.inserts and self.deletes)


def table_frames(program: ir.Application) -> dict[str, TableFrame]:
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
    """Return whether ``value`` is ``column`` plus a term that is not negative."""
    own = ir.Field(stmt.var, column)
    if not (isinstance(value, ir.Operation) and value.op == "+" and own in value.args):
        return False
    other = value.args[1] if value.args[0] == own else value.args[0]
    if isinstance(other, ir.Const):
        return isinstance(other.value, int) and other.value >= 0
    return any(_not_negative(part, other) for part in txn.assume)


def _not_negative(promise: ir.Expr, value: ir.Expr) -> bool:
    """Return whether the callers guarantee, by the condition ``promise``, that the value is at least 0."""
    if isinstance(promise, ir.Operation) and promise.op == "and":
        return any(_not_negative(part, value) for part in promise.args)
    if not (isinstance(promise, ir.Operation) and promise.op in ("<", "<=")):
        return False
    low, high = promise.args
    return high == value and isinstance(low, ir.Const) and isinstance(low.value, int) and low.value >= 0
