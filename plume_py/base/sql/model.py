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
    """A column; ``type`` is int, bool or text."""

    name: str
    type: str
    line: int


@dataclass(frozen=True)
class ForeignKey:
    """``columns`` of this table refer to ``to`` of ``table``."""

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class SqlTable:
    """CREATE TABLE."""

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    foreign_keys: tuple[ForeignKey, ...]
    checks: tuple[Condition, ...]
    line: int

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

    ``table`` is empty where queries of any form are read.
    """

    tree: Any
    into: tuple[str, ...]
    table: str
    for_update: bool


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO table (columns) VALUES (values), once for each row."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE table SET column = value … WHERE where."""

    table: str
    sets: tuple[tuple[str, Any], ...]
    where: Any | None


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM table WHERE where."""

    table: str
    where: Any | None


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
class Param:
    """An argument; ``type`` as of a column."""

    name: str
    type: str


@dataclass(frozen=True)
class SqlTransaction:
    """A transaction with what its header says."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    assume: tuple[Condition, ...]
    line: int
    placeholders: frozenset[str] = frozenset()  # the names that are written with a colon somewhere in it


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

    def table(self, name: str) -> SqlTable | None:
        """The table of this name, in any case."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)
