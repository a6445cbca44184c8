"""What a SQL file says, as plain data. Expressions are sqlglot trees, each with its text and line."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """An expression: a sqlglot tree, its text, and the line it begins at."""

    tree: Any
    text: str
    line: int


@dataclass(frozen=True)
class SqlColumn:
    """A column; ``type`` is int, bool or text. ``generated``: the database numbers its rows, as of SERIAL."""

    name: str
    type: str
    line: int
    nullable: bool = False
    generated: bool = False
    default: Any | None = None
    touched: bool = False  # set by every UPDATE, as with ON UPDATE CURRENT_TIMESTAMP


@dataclass(frozen=True)
class ForeignKey:
    """``columns`` of this table refer to ``to`` of ``table``."""

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...]
    line: int
    cascades: str = ""  # ON DELETE or ON UPDATE with an effect on this table, as written


@dataclass(frozen=True)
class Unseen:
    """A trigger, a rule or a policy: it reads and writes beside the statements of a transaction."""

    what: str
    line: int
    of_reads: bool  # reads of the table start it, not only writes


@dataclass(frozen=True)
class SqlTable:
    """CREATE TABLE. ``partly_unique``: an index of expressions or of some rows, or EXCLUDE, also forbids rows."""

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    foreign_keys: tuple[ForeignKey, ...]
    checks: tuple[Condition, ...]
    line: int
    unseen: "Unseen | None" = None
    partly_unique: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Statement:
    """A statement: the line it begins at and its text."""

    line: int
    text: str


@dataclass(frozen=True)
class Select(Statement):
    """SELECT values INTO variables FROM table WHERE …; without INTO nothing is kept.

    ``table`` is empty where queries of any form are read. ``lock`` is "", "update", "share" or "skip".
    """

    tree: Any
    into: tuple[str, ...]
    table: str
    lock: str = ""


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT (target) DO UPDATE SET sets WHERE where, or DO NOTHING without ``sets``; those of MySQL, too."""

    target: tuple[str, ...]
    sets: tuple[tuple[str, Any], ...]
    where: Any | None
    spelled: str = "ON CONFLICT"


@dataclass(frozen=True)
class Change(Statement):
    """A statement that writes to one table. ``tree`` is all of it; ``returning`` goes into the variables ``into``."""

    table: str
    tree: Any
    returning: tuple[Any, ...] = ()
    into: tuple[str, ...] = ()


@dataclass(frozen=True)
class Insert(Change):
    """INSERT INTO table (columns) VALUES (values), once for each row; or the rows of ``query``."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    query: Any | None = None
    conflict: Conflict | None = None


@dataclass(frozen=True)
class Update(Change):
    """UPDATE table SET column = value … WHERE where. ``others``: tables in FROM, or joined."""

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
    """The transaction gives up."""


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
    """WHILE condition, or a loop over numbers: any number of times, ``name`` having another value each time."""

    condition: Any | None
    body: tuple[Statement, ...]
    name: str = ""


@dataclass(frozen=True)
class Attempt(Statement):
    """BEGIN … EXCEPTION WHEN … END: if something in ``body`` fails, it is undone and ``otherwise`` is done."""

    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class End(Statement):
    """Where a transaction ends without giving up: ``text`` is COMMIT or RETURN."""


@dataclass(frozen=True)
class Param:
    """An argument; ``type`` as of a column, ``declared`` the type as written, in one spelling; empty without one."""

    name: str
    type: str
    declared: str = ""


@dataclass(frozen=True)
class SqlTransaction:
    """A transaction with what its header says."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    assume: tuple[Condition, ...]
    line: int
    placeholders: frozenset[str] = frozenset()  # the names that are written with a colon somewhere in it
    variables: frozenset[str] = frozenset()  # declared ones


@dataclass(frozen=True)
class Assertion:
    """A named condition on the whole database."""

    name: str
    condition: Condition


@dataclass(frozen=True)
class File:
    """A whole file."""

    name: str
    tables: tuple[SqlTable, ...]
    transactions: tuple[SqlTransaction, ...]
    invariants: tuple[Assertion, ...]
    rows: tuple[Insert, ...] = ()  # INSERT statements beside the tables: what the database holds at first
    notes: tuple[str, ...] = ()  # what was ignored in the schema
    enums: frozenset[str] = frozenset()  # types whose values are a list of texts

    def table(self, name: str) -> SqlTable | None:
        """The table of this name, in any case."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)
