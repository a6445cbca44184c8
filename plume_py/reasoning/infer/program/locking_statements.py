"""Conditions, read off the text of a program, under which a locking statement acts like one atomic look at its rows.

A statement that locks waits for rows that other transactions changed, so it may see several moments.
"""

from plume_py.reasoning.infer.program import ir

# Statements that may lock rows, and then wait for transactions that changed these rows.
Locking = ir.SelectOne | ir.SelectAll | ir.Update | ir.Delete


def locks_rows(stmt: ir.Stmt) -> bool:
    """Return whether the statement locks rows and reads them after it has the locks."""
    return isinstance(stmt, ir.Update | ir.Delete) or (isinstance(stmt, ir.SelectOne | ir.SelectAll) and stmt.lock)


def row_of(stmt: Locking) -> str:
    return stmt.row if isinstance(stmt, ir.SelectOne) else stmt.var


def locking_statements(txn: ir.TransactionProgram) -> list[Locking]:
    """Return all statements of a transaction that lock rows."""
    return [stmt for stmt in ir.statements(txn.body) if isinstance(stmt, Locking) and locks_rows(stmt)]


def locks_atomically(txn: ir.TransactionProgram, program: ir.Application) -> bool:
    """Return whether each locking statement is equivalent to one that takes all its rows at one moment."""
    return all(locks_at_one_moment(program, stmt) for stmt in locking_statements(txn))


def reuses_keys(program: ir.Application, table: str) -> bool:
    """Return whether rows of this table are both deleted and inserted, so that a key may return as another row."""
    changes = [stmt for txn in program.transactions for stmt in ir.statements(txn.body)]
    return any(isinstance(stmt, ir.Delete) and stmt.table == table for stmt in changes) and any(
        isinstance(stmt, ir.Insert) and stmt.table == table for stmt in changes
    )


def locks_at_one_moment(program: ir.Application, stmt: Locking) -> bool:
    """Return whether taking rows one after the other is equivalent to taking all of them at the last moment.

    A row by its primary key is one row. In a scan, a row that was taken is locked. A row that did not match would still
    not match later, if no transaction changes the columns that decide about the match.
    """
    table = program.table(stmt.table)
    if ir.fixes_key(stmt.where, row_of(stmt), table):
        return True
    decides = {table.name: set[str]()}
    for node in ir.walk(stmt.where):
        if isinstance(node, ir.Query) and not node.is_local:
            decides[node.source] = set(program.table(node.source).names)
        elif isinstance(node, ir.Field) and node.row == row_of(stmt):
            decides[table.name].add(node.column)
    return not any(
        _may_change_match(change, decides) for txn in program.transactions for change in ir.statements(txn.body)
    )


def _may_change_match(change: ir.Stmt, decides: dict[str, set[str]]) -> bool:
    if isinstance(change, ir.Insert | ir.Delete):
        return change.table in decides
    return isinstance(change, ir.Update) and not decides.get(change.table, set()).isdisjoint(
        column for column, _ in change.sets
    )
