"""What the transactions of a program may do to the rows that a statement looks for, read off their text."""

from plume_py.reasoning.infer.program import ir

# Statements that wait for rows which others have changed.
Locking = ir.SelectOne | ir.SelectAll | ir.Update | ir.Delete


def locks_rows(stmt: ir.Stmt) -> bool:
    """Does it wait for rows, and look at them once it has them?"""
    return isinstance(stmt, ir.Update | ir.Delete) or (isinstance(stmt, ir.SelectOne | ir.SelectAll) and stmt.lock)


def row_of(stmt: Locking) -> str:
    """The name that its condition has for a row."""
    return stmt.row if isinstance(stmt, ir.SelectOne) else stmt.var


def locking(txn: ir.TransactionProgram) -> list[Locking]:
    """All such statements of a transaction."""
    return [stmt for stmt in ir.statements(txn.body) if isinstance(stmt, Locking) and locks_rows(stmt)]


def takes_rows_at_once(txn: ir.TransactionProgram, program: ir.Application) -> bool:
    """Is each statement that locks the same as one that takes all its rows at one moment?"""
    return all(is_one_look(program, stmt) for stmt in locking(txn))


def replaced(program: ir.Application, table: str) -> bool:
    """Do rows of this table come and go, so that a deleted one may be there again, as another row?"""
    changes = [stmt for txn in program.transactions for stmt in ir.statements(txn.body)]
    return any(isinstance(stmt, ir.Delete) and stmt.table == table for stmt in changes) and any(
        isinstance(stmt, ir.Insert) and stmt.table == table for stmt in changes
    )


def is_one_look(program: ir.Application, stmt: Locking) -> bool:
    """Is a statement that takes its rows one after the other the same as one that takes them all at the last moment?

    A row by its key is one row. Of a scan, a row that was taken stays as it is, and a row that was left aside would be
    left aside later, too, if nobody changes what decides about it.
    """
    table = program.table(stmt.table)
    if ir.pinned(stmt.where, row_of(stmt), table):
        return True
    decides = {table.name: set[str]()}
    for node in ir.walk(stmt.where):
        if isinstance(node, ir.Query) and not node.is_local:
            decides[node.source] = set(program.table(node.source).names)
        elif isinstance(node, ir.Field) and node.row == row_of(stmt):
            decides[table.name].add(node.column)
    return not any(_touches(change, decides) for txn in program.transactions for change in ir.statements(txn.body))


def _touches(change: ir.Stmt, decides: dict[str, set[str]]) -> bool:
    if isinstance(change, ir.Insert | ir.Delete):
        return change.table in decides
    return isinstance(change, ir.Update) and not decides.get(change.table, set()).isdisjoint(
        column for column, _ in change.sets
    )
