"""How far a search has to go to meet what a program counts: its bounds follow the program's own constants."""

from collections.abc import Iterator

from plume_py.reasoning.infer.program import ir

# Rows per table at the start, at least, and at most unless more are asked for.
FEWEST, MOST = 3, 8
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")


def rows_for(program: ir.Application) -> int:
    """So many rows that every number of rows that the program or its invariant asks about can be there."""
    return min(max(FEWEST, most_counted(program)), MOST)


def most_counted(program: ir.Application) -> int:
    """The largest constant that a number of rows is compared with."""
    clauses = [clause.condition for clause in (*program.invariant, *program.enforced)]
    found = [0, *(c for clause in clauses for c in _counted(clause, set()))]
    for txn in program.transactions:
        body = list(ir.statements(txn.body))
        counts = _names_of_counts(body)
        found += (c for stmt in body for c in _counted(stmt, counts))
    return max(found)


def _names_of_counts(body: list[ir.Stmt]) -> set[str]:
    """The variables that depend on how many rows there were."""
    names: set[str] = set()
    while True:
        more = {
            name
            for stmt in body
            if isinstance(stmt, ir.Let)
            for name, value in zip(stmt.names, stmt.values, strict=True)
            if _is_count(value, names)
        }
        if more <= names:
            return names
        names |= more


def _is_count(expr: ir.Expr | ir.Stmt, counts: set[str]) -> bool:
    return any(
        (isinstance(node, ir.Query) and node.kind == "count") or (isinstance(node, ir.Local) and node.name in counts)
        for node in ir.walk(expr)
    )


def _counted(node: ir.Expr | ir.Stmt, counts: set[str]) -> Iterator[int]:
    for part in ir.walk(node):
        if isinstance(part, ir.Operation) and part.op in _COMPARISONS and _is_count(part, counts):
            for constant in ir.walk(part):
                if isinstance(constant, ir.Const) and type(constant.value) is int:
                    yield abs(constant.value)
