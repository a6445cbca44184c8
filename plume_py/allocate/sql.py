"""Transactions written in SQL, as programs with cells.

A cell is a column of a row. A row that is named by its whole primary key gives a cell with that key; whatever a
condition leaves open is taken as every row, which is safe and told. The values of a key are arguments, constants, or
variables that are set once; each is a parameter of the program, since two runs may or may not agree on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from plume_py.allocate.workload import EVERY, READ, UPDATE, WRITE, Access, Program
from plume_py.errors import InputError
from plume_py.sql import Assign, File, If, Loop, Rollback, Select, SqlTransaction, Statement, access
from plume_py.sql.files import load

# The cell that says whether a row is there.
ROW = "(row)"


def load_sql(path: str, schema: str | None = None) -> list[Program]:
    """The programs of a file; the tables may be in another one."""
    file = load(path)
    if schema is not None:
        file = replace(file, tables=(*load(schema).tables, *file.tables))
    if not file.transactions:
        raise InputError(
            "no transactions", hint="begin each with a line `-- transaction: name(argument, …)`"
        ).in_source(path)
    try:
        return programs(file)
    except InputError as error:
        raise error.in_source(path) from None


def programs(file: File) -> list[Program]:
    """One for each transaction."""
    growing = {a.table.lower() for t in file.transactions for a in _all(t.body, file) if a.kind in ("insert", "delete")}
    return [_Translation(file, transaction, growing).program() for transaction in file.transactions]


def _all(body: Sequence[Statement], file: File) -> Iterator[access.Access]:
    for stmt in body:
        yield from access.accesses(stmt, file)


class _Translation:
    """One transaction."""

    def __init__(self, file: File, transaction: SqlTransaction, growing: set[str]) -> None:
        self.file, self.transaction, self.growing = file, transaction, growing
        self.params: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        arguments = {param.name.lower() for param in transaction.params}
        counts = list(_assigned(transaction.body))
        # what has one value throughout the transaction
        self.steady = arguments - set(counts) | {name for name in counts if counts.count(name) == 1} - arguments

    def program(self) -> Program:
        accesses = tuple(self._block(self.transaction.body))
        return Program(self.transaction.name, tuple(self.params), accesses, notes=tuple(self.notes))

    def _block(self, body: Sequence[Statement]) -> Iterator[Access]:
        for stmt in body:
            if isinstance(stmt, If):
                yield from self._if(stmt)
            elif isinstance(stmt, Loop):
                yield from self._cells(stmt.query)
                hidden = {stmt.row.lower()}
                self.steady -= hidden
                yield from _maybe(list(self._block(stmt.body)))
            else:
                yield from self._cells(stmt)

    def _if(self, stmt: If) -> Iterator[Access]:
        """What both branches do is certain; a branch that rolls back is no part of a committed run."""
        yield from self._cells(Assign(stmt.line, stmt.text, "", stmt.condition.tree))
        then, otherwise = list(self._block(stmt.then)), list(self._block(stmt.otherwise))
        if _rolls_back(stmt.then):
            yield from otherwise
        elif _rolls_back(stmt.otherwise):
            yield from then
        else:
            certain = {_effect(a) for a in then if not a.conditional} & {
                _effect(a) for a in otherwise if not a.conditional
            }
            for branch in (then, otherwise):
                yield from (replace(a, conditional=a.conditional or _effect(a) not in certain) for a in branch)

    def _cells(self, stmt: Statement) -> Iterator[Access]:
        """The accesses of one statement that is no block; a column that an UPDATE also reads is updated in place."""
        found = access.accesses(stmt, self.file)
        written = {(a.table, a.equal, c) for a in found if a.kind == "update" for c in a.columns}
        for a in found:
            table = a.table.lower()
            if self.file.table(table) is None:
                raise InputError(
                    f"no table {a.table}", where=f"line {a.line}", hint="give its CREATE TABLE with --schema"
                )
            key = self._key(a)
            whole = EVERY in key
            if whole and a.kind != "insert":
                self.notes[f"line {a.line}: {a.table} is not accessed by its whole primary key: every row counts"] = (
                    None
                )
            if a.kind == "read":
                own = [c for c in a.columns if (a.table, a.equal, c) not in written]
                yield from self._reads(table, key, own, a, whole)
            elif a.kind == "update":
                in_place = {c for b in found if b.kind == "read" and b.equal == a.equal for c in b.columns}
                yield from self._update(table, key, a, in_place, whole)
            else:
                if a.kind == "delete":
                    yield from self._reads(table, key, (), a, whole)
                sure = not whole and (a.kind == "insert" or table not in self.growing)
                for column in (ROW, *a.columns):
                    yield Access(WRITE, f"{table}.{column}", key, not sure)

    def _reads(
        self, table: str, key: tuple[str, ...], columns: Sequence[str], a: access.Access, whole: bool
    ) -> Iterator[Access]:
        """The columns, and whether the row is there; a condition on other columns reads those, too."""
        tested = a.tested if whole else [c for c in a.tested if c not in dict(a.equal)]
        for column in dict.fromkeys([ROW, *tested, *columns]):
            yield Access(READ, f"{table}.{column}", key)

    def _update(
        self, table: str, key: tuple[str, ...], a: access.Access, in_place: set[str], whole: bool
    ) -> Iterator[Access]:
        yield from self._reads(table, key, (), a, whole)
        more = [c for c in a.tested if c not in dict(a.equal)]
        sure = not whole and not more and table not in self.growing
        if not whole and table not in self.growing:
            self.notes[f"the rows of {table} that are updated by key are assumed to exist"] = None
        for column in a.columns:
            yield Access(UPDATE if column in in_place else WRITE, f"{table}.{column}", key, not sure)

    def _key(self, a: access.Access) -> tuple[str, ...]:
        """The values of the primary key, EVERY where the condition leaves one open."""
        table = self.file.table(a.table)
        assert table is not None
        if not table.primary_key:
            return (EVERY,)
        fixed = dict(a.equal)
        return tuple(self._value(fixed.get(column)) for column in table.primary_key)

    def _value(self, text: str | None) -> str:
        if text is None:
            return EVERY
        plain = text.strip().lstrip(":@").lower()
        if plain.lstrip("-").isdigit() or (plain[:1] == "'" and plain[-1:] == "'"):
            return plain
        if plain not in self.steady:
            return EVERY
        self.params[plain] = None
        return plain


def _assigned(body: Sequence[Statement]) -> Iterator[str]:
    """The variables that are set, each as often as it is; in a loop, twice."""
    for stmt in body:
        if isinstance(stmt, Select):
            yield from (name.lower() for name in stmt.into)
        elif isinstance(stmt, Assign):
            yield stmt.name.lower()
        elif isinstance(stmt, If):
            yield from _assigned((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop):
            yield from 2 * [stmt.row.lower(), *_assigned(stmt.body)]


def _maybe(accesses: list[Access]) -> list[Access]:
    return [replace(a, conditional=True) for a in accesses]


def _effect(a: Access) -> tuple[str, str]:
    """Two accesses with the same effect stand for each other: what is written, or read."""
    return ("write" if a.writes else "read", a.cell)


def _rolls_back(body: Sequence[Statement]) -> bool:
    return any(isinstance(stmt, Rollback) for stmt in body)
