"""The intermediate form of a database program: what both front ends make and every engine interprets.

Expressions are evaluated on a *view* of the database (what a statement sees) and a frame of arguments, locals and row
variables. All values are integers, Booleans, or texts, of which only equality is known. There is no NULL.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

Sort = Literal["int", "id", "bool", "text"]
Value = int | bool | str

AGGREGATES = ("exists", "forall", "count", "sum", "min", "max")


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
    """``+ - * neg < <= = <> and or not ite``."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Same(Expr):
    """Do two row variables stand for the same row?"""

    left: str
    right: str


@dataclass(frozen=True)
class Query(Expr):
    """An aggregate over the rows of a table, or of a set that ``SelectAll`` made, which satisfy ``where``.

    ``sum``, ``min`` and ``max`` are of ``value``; the latter two give ``default`` where there is no row.
    ``forall`` says that ``value`` holds for all of them.
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
    """A statement; ``line`` is where the user wrote it."""

    line: int


@dataclass(frozen=True)
class SelectOne(Stmt):
    """Bind ``row`` to the row of ``table`` that satisfies ``where``; if there is none, the transaction rolls back.

    ``lock`` is FOR UPDATE: the row is looked up as an UPDATE would, and locked as if it had been written.
    """

    row: str
    table: str
    where: Expr
    lock: bool = False
    within: str = ""


@dataclass(frozen=True)
class SelectAll(Stmt):
    """Bind ``rows`` to the set of rows that satisfy ``where``; ``newest``: of now, also where there is a snapshot."""

    rows: str
    table: str
    var: str
    where: Expr
    lock: bool = False
    within: str = ""
    newest: bool = False


@dataclass(frozen=True)
class Let(Stmt):
    """Bind locals to values, all at once; reads the database where a value has a query."""

    names: tuple[str, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Insert(Stmt):
    """A new row; ``values`` in the order of the table's columns."""

    table: str
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Update(Stmt):
    """Change the rows that satisfy ``where``. ``within``: only those of this set (see ``levels.find_then_lock``)."""

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
    """A choice."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class ForEach(Stmt):
    """Once for each row of a set of ``SelectAll`` or for each element of a list argument.

    ``backwards``: the argument that says whether it begins with the last, where that may matter.
    """

    var: str
    source: str
    body: tuple[Stmt, ...]
    backwards: str = ""


@dataclass(frozen=True)
class Param:
    """An argument; a list argument has ``fields``, and its elements are used like rows."""

    name: str
    sort: Sort
    fields: tuple[tuple[str, Sort], ...] = ()


@dataclass(frozen=True)
class TransactionProgram:
    """A named transaction. ``assume`` says which arguments its callers promise."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    assume: tuple[Expr, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Table:
    """Columns and, where the database enforces one, a primary key; a table without has hidden row numbers."""

    name: str
    columns: tuple[tuple[str, Sort], ...]
    key: tuple[str, ...] = ()
    line: int = 0

    def index(self, column: str) -> int:
        """The place of a column in a row."""
        return self.names.index(column)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(name for name, _ in self.columns)

    def sort(self, column: str) -> Sort:
        """The sort of a column."""
        return dict(self.columns)[column]


@dataclass(frozen=True)
class Clause:
    """A named part of the invariant, or a constraint that the database itself enforces."""

    name: str
    condition: Expr
    line: int = 0
    words: str = ""  # what it means, for people
    ddl: tuple[tuple[str, str], ...] = ()  # of an enforced one: tables and their constraints, for CREATE TABLE


@dataclass(frozen=True)
class SmallScope:
    """Small domains: rows per table, values per ``table.column`` and per ``transaction.argument``."""

    rows: dict[str, int] = field(default_factory=dict)
    values: dict[str, tuple[Value, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Application:
    """Tables, transactions, the invariant, and what the database enforces by itself."""

    name: str
    tables: tuple[Table, ...]
    transactions: tuple[TransactionProgram, ...]
    invariant: tuple[Clause, ...]
    enforced: tuple[Clause, ...] = ()
    scope: SmallScope = field(default_factory=SmallScope)
    rows: tuple[tuple[str, tuple[Value, ...]], ...] = ()  # tables and rows to begin with, for runs on servers
    dialects: tuple[tuple[str, int], ...] = ()  # what only one database has, such as ON CONFLICT, and where
    notes: tuple[str, ...] = ()  # what was ignored in its schema

    def table(self, name: str) -> Table:
        """The table of this name."""
        return next(table for table in self.tables if table.name == name)

    def transaction(self, name: str) -> TransactionProgram:
        """The transaction of this name."""
        return next(txn for txn in self.transactions if txn.name == name)

    def only(self, clauses: tuple[str, ...]) -> "Application":
        """The same program with some clauses of its invariant."""
        return replace(self, invariant=tuple(clause for clause in self.invariant if clause.name in clauses))


def conjunction(parts: Sequence[Expr]) -> Expr:
    """All of them."""
    real = [part for part in parts if part != TRUE]
    return TRUE if not real else real[0] if len(real) == 1 else Operation("and", tuple(real))


def negation(part: Expr) -> Expr:
    """Not so."""
    return Operation("not", (part,))


def children(node: object) -> Iterator["Expr | Stmt"]:
    """The expressions and statements directly inside a node."""
    for part in fields(node):  # type: ignore[arg-type]
        value = getattr(node, part.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, tuple):  # a column and its new value
                item = item[1]
            if isinstance(item, Expr | Stmt):
                yield item


def walk(node: "Expr | Stmt") -> Iterator["Expr | Stmt"]:
    """A node and all that is in it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewritten(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with parts replaced, from the outside: where ``change`` gives nothing, it looks inside."""
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
    """The queries over tables in an expression, outer ones first."""
    return [node for node in walk(expr) if isinstance(node, Query) and not node.is_local]


def reads_database(stmt: Stmt) -> bool:
    """Does this statement look at the database, or change it? The bodies of If and ForEach count for themselves."""
    if isinstance(stmt, SelectOne | SelectAll | Insert | Update | Delete):
        return True
    if isinstance(stmt, Let):
        return any(queries(value) for value in stmt.values)
    if isinstance(stmt, If | Require):
        return bool(queries(stmt.condition))
    return False


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements, those inside If and ForEach included."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from statements(stmt.then)
            yield from statements(stmt.otherwise)
        elif isinstance(stmt, ForEach):
            yield from statements(stmt.body)


def pinned(where: Expr, var: str, table: Table) -> bool:
    """Does ``where`` fix the whole primary key, so that at most one row can match?"""
    return bool(table.key) and fixed(where, var).keys() >= set(table.key)


def fixed(where: Expr, var: str) -> dict[str, Expr]:
    """The columns of a row that a condition fixes, and to what."""
    parts = where.args if isinstance(where, Operation) and where.op == "and" else (where,)
    found: dict[str, Expr] = {}
    for part in parts:
        if isinstance(part, Operation) and part.op == "=":
            for side, other in (part.args, part.args[::-1]):
                inside = any(isinstance(node, Field) and node.row == var for node in walk(other))
                if isinstance(side, Field) and side.row == var and not inside:
                    found.setdefault(side.column, other)
    return found
