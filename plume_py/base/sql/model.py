"""Plain data of a SQL file: tables, transactions, statements, assertions. Expressions are sqlglot trees."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """An expression: a sqlglot tree, its text, and the line it starts at."""

    tree: Any
    text: str
    line: int


@dataclass(frozen=True)
class SqlColumn:
    """A column; ``type`` is int, bool or text. ``generated``: the database numbers its rows, as for SERIAL."""

    name: str
    type: str
    line: int
    nullable: bool = False
    generated: bool = False
    default: Any | None = None
    touched: bool = False  # set by every UPDATE, as with ON UPDATE CURRENT_TIMESTAMP


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key: ``columns`` of this table refer to the columns ``to`` of ``table``."""

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...]
    line: int
    cascades: str = ""  # the ON DELETE and ON UPDATE actions that change this table, as written


@dataclass(frozen=True)
class SideEffect:
    """A trigger, rule, policy or function that reads and writes in addition to the statements of a transaction."""

    what: str
    line: int
    of_reads: bool  # reads of the table trigger it, not only writes


@dataclass(frozen=True)
class SqlTable:
    """A table. ``partly_unique``: an index of expressions or of some rows, or EXCLUDE, also rejects rows."""

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    foreign_keys: tuple[ForeignKey, ...]
    checks: tuple[Condition, ...]
    line: int
    side_effect: SideEffect | None = None
    partly_unique: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Statement:
    """A statement: the line it starts at and its text."""

    line: int
    text: str


@dataclass(frozen=True)
class Select(Statement):
    """SELECT values INTO variables FROM table WHERE …; ``into`` may be empty.

    ``table`` is empty if queries of any form are allowed, or for a join. ``lock`` is "", "update", "share" or "skip".
    """

    tree: Any
    into: tuple[str, ...]
    table: str
    lock: str = ""


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT (target) DO UPDATE SET sets WHERE where; DO NOTHING if ``sets`` is empty; also MySQL's forms."""

    target: tuple[str, ...]
    sets: tuple[tuple[str, Any], ...]
    where: Any | None
    spelled: str = "ON CONFLICT"


@dataclass(frozen=True)
class Change(Statement):
    """A statement that writes to one table. ``tree`` is the whole; variables ``into`` get the values ``returning``."""

    table: str
    tree: Any
    returning: tuple[Any, ...] = ()
    into: tuple[str, ...] = ()


@dataclass(frozen=True)
class Insert(Change):
    """INSERT INTO table (columns) VALUES rows, or the rows of ``query``."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    query: Any | None = None
    conflict: Conflict | None = None


@dataclass(frozen=True)
class Update(Change):
    """UPDATE table SET sets WHERE where. ``others``: tables in FROM, or joined."""

    sets: tuple[tuple[str, Any], ...] = ()
    where: Any | None = None
    others: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Delete(Change):
    """DELETE FROM table WHERE where. ``others``: tables in USING, or joined."""

    where: Any | None = None
    others: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Assign(Statement):
    """variable := value."""

    name: str
    value: Any


@dataclass(frozen=True)
class RollbackStatement(Statement):
    """The transaction rolls back."""


@dataclass(frozen=True)
class If(Statement):
    """IF condition THEN … ELSE … END IF."""

    condition: Condition
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class Loop(Statement):
    """FOR row IN SELECT … LOOP … END LOOP."""

    row: str
    query: Select
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Repeat(Statement):
    """WHILE condition, or a loop over numbers: it runs any number of times, with a new value of ``name`` each time."""

    condition: Any | None
    body: tuple[Statement, ...]
    name: str = ""


@dataclass(frozen=True)
class Attempt(Statement):
    """BEGIN … EXCEPTION WHEN … END: if ``body`` fails, it is undone and ``otherwise`` runs."""

    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class End(Statement):
    """The end of a transaction without rollback: ``text`` is COMMIT or RETURN."""


@dataclass(frozen=True)
class Param:
    """An argument; ``type`` as of a column, ``declared`` is its SQL type in one spelling, or empty."""

    name: str
    type: str
    declared: str = ""


@dataclass(frozen=True)
class SqlTransaction:
    """A transaction with the content of its header."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    assume: tuple[Condition, ...]
    line: int
    placeholders: frozenset[str] = frozenset()  # names that occur with a colon
    variables: frozenset[str] = frozenset()  # declared variables


@dataclass(frozen=True)
class Assertion:
    """A named condition on the whole database."""

    name: str
    condition: Condition


@dataclass(frozen=True)
class File:
    """The content of a file."""

    name: str
    tables: tuple[SqlTable, ...]
    transactions: tuple[SqlTransaction, ...]
    invariants: tuple[Assertion, ...]
    rows: tuple[Insert, ...] = ()  # INSERT statements among the tables: the initial content of the database
    notes: tuple[str, ...] = ()  # what was ignored in the schema
    enums: frozenset[str] = frozenset()  # types with a list of texts as values

    def table(self, name: str) -> SqlTable | None:
        """Return the table of this name, ignoring case, or None."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)


def all_statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield all statements, also those inside other statements."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from all_statements((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop | Repeat):
            yield from all_statements(stmt.body)
        elif isinstance(stmt, Attempt):
            yield from all_statements((*stmt.body, *stmt.otherwise))
