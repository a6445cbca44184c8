"""What an isolation level lets a transaction see and what it forbids to others, and which levels a store has.

A transaction runs statement by statement; between its statements other transactions commit. Its own writes stay with it
until it commits, and it sees them. A level says on which state a SELECT and an UPDATE or DELETE are evaluated, whether
rows that were written (or read) are locked until the end, and what must still be so at commit.
"""

from dataclasses import dataclass, replace

from plume_py.infer.language import ir


@dataclass(frozen=True)
class Level:
    """A level as a model.

    ``select`` and ``write`` are "current" or "snapshot": the state at the first statement, or, with ``late_snapshot``,
    at the first that is a SELECT without FOR UPDATE.
    """

    name: str
    title: str
    select: str = "current"
    write: str = "current"
    locks_writes: bool = True
    locks_reads: bool = False
    first_committer_wins: bool = False
    is_serial: bool = False
    find_then_lock: bool = False
    late_snapshot: bool = False
    among_themselves: bool = False  # serializable against others of this level only


RC = Level("RC", "read committed, with write locks")
RC_PG = replace(RC, title="read committed as in PostgreSQL: UPDATE finds rows, then locks those", find_then_lock=True)
RR_INNODB = Level(
    "RR",
    "repeatable read as in InnoDB: SELECT sees a snapshot, UPDATE the present",
    select="snapshot",
    late_snapshot=True,
)
RR_ANSI = Level("RR", "repeatable read as in ANSI SQL: what was read is locked, phantoms happen", locks_reads=True)
SI = Level("SI", "snapshot isolation", select="snapshot", write="snapshot", first_committer_wins=True)
SER = Level("SER", "serializable", is_serial=True)

# What PostgreSQL's SERIALIZABLE is among transactions of which some run at weaker levels: it watches its own kind only.
SER_MIXED = replace(SI, name="SER", title="serializable among its own kind, snapshot isolation", among_themselves=True)

# The specifications as the paper prints them: no write locks, and an UPDATE installs whole rows computed earlier.
RC_LITERAL = Level("RC0", "read committed as printed: (true, true)", locks_writes=False)
RR_LITERAL = Level(
    "RRf", "repeatable read as printed: (snapshot, true)", select="snapshot", write="snapshot", locks_writes=False
)
RR_I = replace(RR_INNODB, name="RRi")


@dataclass(frozen=True)
class Store:
    """A database: its levels, in the order in which one would prefer them, and what it calls them."""

    name: str
    levels: tuple[Level, ...]
    says: dict[str, str]
    mixed_serializable: Level = SER

    def mixed(self, level: Level) -> Level:
        """The level where partners run at weaker ones."""
        return self.mixed_serializable if level.is_serial else level


STORES = {
    "postgresql": Store(
        "postgresql",
        (RC_PG, SI, SER),
        {"RC": "READ COMMITTED", "SI": "REPEATABLE READ", "SER": "SERIALIZABLE"},
        SER_MIXED,
    ),
    "mysql": Store(
        "mysql",
        (RC, RR_INNODB, SER),
        {"RC": "READ COMMITTED", "RR": "REPEATABLE READ", "SER": "SERIALIZABLE"},
    ),
    "ansi": Store(
        "ansi",
        (RC, RR_ANSI, SER),
        {"RC": "READ COMMITTED", "RR": "REPEATABLE READ", "SER": "SERIALIZABLE"},
    ),
    "mixiso-levels": Store("mixiso-levels", (RC, SI, SER), {"RC": "RC", "SI": "SI", "SER": "SER"}),
    "literal": Store(
        "literal",
        (RC_LITERAL, RC, RR_LITERAL, RR_I, SI, SER),
        {name: name for name in ("RC0", "RC", "RRf", "RRi", "SI", "SER")},
    ),
}


def under(txn: ir.Transaction, level: Level, program: ir.Program) -> ir.Transaction:
    """The transaction as the level runs it.

    PostgreSQL's UPDATE first finds rows, then locks those of them that still match; others may commit in between. Where
    the condition fixes the primary key that is the same as an UPDATE when it finds, so only others are split. Its
    subqueries are not asked again.
    """
    if not level.find_then_lock:
        return txn
    return replace(txn, body=_split(txn.body, program))


def _split(body: tuple[ir.Stmt, ...], program: ir.Program) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Update | ir.Delete):
            asked, stmt = _asked_before(stmt)
            out += asked
            if ir.pinned(stmt.where, stmt.var, program.table(stmt.table)):
                out.append(stmt)
                continue
            found = f"found_{stmt.var}"
            out.append(ir.SelectAll(stmt.line, found, stmt.table, stmt.var, stmt.where))
            out.append(replace(stmt, within=found))
        elif isinstance(stmt, ir.If):
            out.append(replace(stmt, then=_split(stmt.then, program), otherwise=_split(stmt.otherwise, program)))
        elif isinstance(stmt, ir.ForEach):
            out.append(replace(stmt, body=_split(stmt.body, program)))
        else:
            out.append(stmt)
    return tuple(out)


def _asked_before(stmt: ir.Update | ir.Delete) -> tuple[list[ir.Stmt], ir.Update | ir.Delete]:
    """The subqueries of an UPDATE or DELETE as a statement before it, and what is left.

    One that speaks of the row to be changed stays, unless the condition says what it would see there.
    """
    known = {column: value for column, value in ir.fixed(stmt.where, stmt.var).items() if not ir.queries(value)}
    names: dict[ir.Expr, str] = {}

    def column(part: ir.Expr) -> ir.Expr | None:
        return known.get(part.column) if isinstance(part, ir.Field) and part.row == stmt.var else None

    def ask(part: ir.Expr) -> ir.Expr | None:
        if not isinstance(part, ir.Query) or part.is_local:
            return None
        query = ir.rewritten(part, column)
        if any(isinstance(node, ir.Field | ir.Same) and stmt.var in _rows(node) for node in ir.walk(query)):
            return part
        return ir.Local(names.setdefault(query, f"asked_{stmt.var}{len(names) + 1}"))

    changed = replace(stmt, where=ir.rewritten(stmt.where, ask))
    if isinstance(changed, ir.Update):
        changed = replace(changed, sets=tuple((name, ir.rewritten(value, ask)) for name, value in changed.sets))
    return ([ir.Let(stmt.line, tuple(names.values()), tuple(names))] if names else []), changed


def _rows(node: ir.Field | ir.Same) -> tuple[str, ...]:
    return (node.row,) if isinstance(node, ir.Field) else (node.left, node.right)
