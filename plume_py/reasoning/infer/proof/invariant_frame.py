"""What no transaction of a program ever does: the frame within which others can interfere, derived from their text."""

from dataclasses import dataclass

from plume_py.reasoning.infer.program import ir


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
