"""Intermediate form of application programs. Both front ends, Python and SQL, produce it; every engine interprets it.

Expressions are evaluated on a *view* (the database as one statement sees it) and on a frame: the values of arguments,
locals and row variables. Values are integers, Booleans and texts. Texts can only be compared for equality. There is no
NULL.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

Sort = Literal["int", "id", "bool", "text"]
Value = int | bool | str


@dataclass(frozen=True)
class Expr:
    """An expression."""


@dataclass(frozen=True)
class Const(Expr):
    """A literal."""

    value: Value


@dataclass(frozen=True)
class Arg(Expr):
    """An argument of the transaction."""

    name: str


@dataclass(frozen=True)
class Local(Expr):
    """A value computed by an earlier statement."""

    name: str


@dataclass(frozen=True)
class Field(Expr):
    """A column of a row variable."""

    row: str
    column: str


@dataclass(frozen=True)
class Operation(Expr):
    """One of ``+ - * neg < <= = <> and or not ite``, applied to its arguments."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Same(Expr):
    """Whether two row variables denote the same row."""

    left: str
    right: str


@dataclass(frozen=True)
class Query(Expr):
    """An aggregate over rows that satisfy ``where``: of a table, or of a set that ``SelectAll`` read (``is_local``).

    ``sum``, ``min`` and ``max`` aggregate ``value``; ``min`` and ``max`` are ``default`` without rows. ``forall``
    is true if ``value`` holds for all of the rows.
    """

    kind: str
    source: str
    var: str
    where: Expr
    value: Expr | None = None
    default: Expr | None = None
    is_local: bool = False


TRUE = Const(True)


@dataclass(frozen=True)
class Stmt:
    """A statement, with its line in the user's file."""

    line: int


@dataclass(frozen=True)
class SelectOne(Stmt):
    """Bind ``row`` to a row of ``table`` that satisfies ``where``. If there is none, the transaction rolls back.

    ``lock`` means FOR UPDATE: the row is found on the state that an UPDATE would see, and locked until commit.
    """

    row: str
    table: str
    where: Expr
    lock: bool = False
    within: str = ""


@dataclass(frozen=True)
class SelectAll(Stmt):
    """Bind ``rows`` to the set of rows that satisfy ``where``. ``newest`` reads the newest state at every level."""

    rows: str
    table: str
    var: str
    where: Expr
    lock: bool = False
    within: str = ""
    newest: bool = False


@dataclass(frozen=True)
class Let(Stmt):
    """Bind locals to values, all at once. A value with a query reads the database."""

    names: tuple[str, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Insert(Stmt):
    """Insert a row, with ``values`` in the order of the table's columns."""

    table: str
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Update(Stmt):
    """Change the rows that satisfy ``where``; ``within`` restricts them to a set that was read before."""

    table: str
    var: str
    where: Expr
    sets: tuple[tuple[str, Expr], ...]
    within: str = ""


@dataclass(frozen=True)
class Delete(Stmt):
    """Remove the rows that satisfy ``where``."""

    table: str
    var: str
    where: Expr
    within: str = ""


@dataclass(frozen=True)
class Require(Stmt):
    """Roll back unless ``condition`` holds."""

    condition: Expr


@dataclass(frozen=True)
class If(Stmt):
    """Execute ``then`` or ``otherwise``."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class ForEach(Stmt):
    """Execute ``body`` once per row of a set that ``SelectAll`` read, or once per element of a list argument.

    ``backwards`` names a Boolean argument that reverses the order. It is empty where the order cannot matter.
    """

    var: str
    source: str
    body: tuple[Stmt, ...]
    backwards: str = ""


@dataclass(frozen=True)
class Param:
    """An argument. A list argument has ``fields``, and its elements are used like rows."""

    name: str
    sort: Sort
    fields: tuple[tuple[str, Sort], ...] = ()


@dataclass(frozen=True)
class TransactionProgram:
    """A transaction: arguments and body. Callers guarantee the conditions ``assume`` on the arguments."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    assume: tuple[Expr, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Table:
    """Columns and primary key of a table. Rows of a table without primary key have hidden row numbers."""

    name: str
    columns: tuple[tuple[str, Sort], ...]
    key: tuple[str, ...] = ()
    line: int = 0

    def index(self, column: str) -> int:
        """Return the position of a column in a row."""
        return self.names.index(column)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def sort(self, column: str) -> Sort:
        return dict(self.columns)[column]


@dataclass(frozen=True)
class Clause:
    """A named clause of the invariant, or a constraint that the database enforces."""

    name: str
    condition: Expr
    line: int = 0
    words: str = ""  # the meaning in the author's words, for reports
    ddl: tuple[tuple[str, str], ...] = ()  # of an enforced constraint: tables and texts for CREATE TABLE


@dataclass(frozen=True)
class SmallScope:
    """Small domains for the explorer: rows per table, values per ``table.column`` and per ``transaction.argument``."""

    rows: dict[str, int] = field(default_factory=dict)
    values: dict[str, tuple[Value, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Application:
    """Tables, transactions, invariant and enforced constraints of an application."""

    name: str
    tables: tuple[Table, ...]
    transactions: tuple[TransactionProgram, ...]
    invariant: tuple[Clause, ...]
    enforced: tuple[Clause, ...] = ()
    scope: SmallScope = field(default_factory=SmallScope)
    rows: tuple[tuple[str, tuple[Value, ...]], ...] = ()  # (table, row): the initial rows for runs on servers
    dialects: tuple[tuple[str, int], ...] = ()  # (construct, line): statements that some database does not have
    notes: tuple[str, ...] = ()  # the parts of its schema that are ignored

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    def transaction(self, name: str) -> TransactionProgram:
        return next(txn for txn in self.transactions if txn.name == name)

    def only(self, clauses: tuple[str, ...]) -> "Application":
        """Return the same program with the named clauses of its invariant."""
        return replace(self, invariant=tuple(clause for clause in self.invariant if clause.name in clauses))


def conjunction(parts: Sequence[Expr]) -> Expr:
    real = [part for part in parts if part != TRUE]
    return TRUE if not real else real[0] if len(real) == 1 else Operation("and", tuple(real))


def children(node: object) -> Iterator["Expr | Stmt"]:
    """Yield the expressions and statements directly inside a node."""
    for part in fields(node):  # type: ignore[arg-type]
        value = getattr(node, part.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, tuple):  # a column and its new value
                item = item[1]
            if isinstance(item, Expr | Stmt):
                yield item


def walk(node: "Expr | Stmt") -> Iterator["Expr | Stmt"]:
    """Yield a node and all nodes inside it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewritten(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return the expression with parts replaced, outermost first. ``change`` returns None to look inside a part."""
    new = change(expr)
    if new is not None:
        return new
    parts: dict[str, object] = {}
    for part in fields(expr):
        value = getattr(expr, part.name)
        if isinstance(value, Expr):
            parts[part.name] = rewritten(value, change)
        elif isinstance(value, tuple):
            parts[part.name] = tuple(rewritten(item, change) for item in value)
    return replace(expr, **parts)


def queries(expr: Expr) -> list[Query]:
    """Return the queries over tables in an expression, outer ones first."""
    return [node for node in walk(expr) if isinstance(node, Query) and not node.is_local]


def reads_database(stmt: Stmt) -> bool:
    """Return whether a statement reads or writes the database, without the bodies of If and ForEach."""
    if isinstance(stmt, SelectOne | SelectAll | Insert | Update | Delete):
        return True
    if isinstance(stmt, Let):
        return any(queries(value) for value in stmt.values)
    if isinstance(stmt, If | Require):
        return bool(queries(stmt.condition))
    return False


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield all statements, including those inside If and ForEach."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from statements(stmt.then)
            yield from statements(stmt.otherwise)
        elif isinstance(stmt, ForEach):
            yield from statements(stmt.body)


def fixes_key(where: Expr, var: str, table: Table) -> bool:
    """Return whether ``where`` fixes the whole primary key, so that at most one row matches."""
    return bool(table.key) and fixed_columns(where, var).keys() >= set(table.key)


def fixed_columns(where: Expr, var: str) -> dict[str, Expr]:
    """Return the columns that a condition fixes in a row, with their values."""
    parts = where.args if isinstance(where, Operation) and where.op == "and" else (where,)
    found: dict[str, Expr] = {}
    for part in parts:
        if isinstance(part, Operation) and part.op == "=":
            for side, other in (part.args, part.args[::-1]):
                inside = any(isinstance(node, Field) and node.row == var for node in walk(other))
                if isinstance(side, Field) and side.row == var and not inside:
                    found.setdefault(side.column, other)
    return found
