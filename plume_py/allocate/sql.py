"""Transactions written in SQL, as programs with cells.

A cell is a column of a row. A row that is named by its whole primary key gives a cell with that key; whatever a
condition leaves open is taken as every row, which is safe and told. The values of a key are arguments, constants, or
variables that are set once; each is a parameter of the program, since two runs may or may not agree on it. A write is
certain where nothing but the key decides about it, the key surely has a value, and the row is there.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from plume_py.allocate.workload import EVERY, READ, UPDATE, WRITE, Access, Program
from plume_py.base.errors import InputError
from plume_py.base.sql import Assign, File, If, Loop, RollbackStatement, Select, SqlTransaction, Statement, access
from plume_py.base.sql import Update as UpdateStatement
from plume_py.base.sql.files import load
from plume_py.base.sql.syntax import engine

# The cell that says whether a row is there.
ROW = "(row)"
_LITERAL = re.compile(r"-?\d+|'(?:[^']|'')*'")


def load_sql(path: str, schema: str | None = None) -> list[Program]:
    """The programs of a file; the tables may be in another one."""
    file = load(path, any_query=True)
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
    except RecursionError:
        raise InputError("nested too deeply", hint="split it").in_source(path) from None


def programs(file: File) -> list[Program]:
    """One for each transaction."""
    by_transaction = [[a for s in t.body for a in access.accesses(s, file)] for t in file.transactions]
    found = list(chain.from_iterable(by_transaction))
    whole = _Whole(
        file,
        _come(found, file) | _go(found, file),
        _go(found, file),
        set().union(*(_come(own, file) & _go(own, file) for own in by_transaction)),
        _doubtful({text for a in found for _, text in a.equal}),
    )
    return [_Translation(whole, transaction).program() for transaction in file.transactions]


def _come(accesses: Sequence[access.TableAccess], file: File) -> set[str]:
    """The tables in which rows appear."""
    return {a.table.lower() for a in accesses if a.kind == "insert" or _moves(a, file)}


def _go(accesses: Sequence[access.TableAccess], file: File) -> set[str]:
    """The tables from which rows disappear."""
    return {a.table.lower() for a in accesses if a.kind == "delete" or _moves(a, file)}


def _moves(a: access.TableAccess, file: File) -> bool:
    """Does an update change the primary key, so that a row goes and another comes?"""
    table = file.table(a.table) if a.kind == "update" else None
    return table is not None and any(column in table.primary_key for column in a.columns)


def _doubtful(texts: set[str]) -> set[str]:
    """Constants that some collation or conversion takes for one another, as 'Bob' and 'BOB', or 7 and '07'."""
    alike: dict[str, set[str]] = {}
    for text in texts:
        if _LITERAL.fullmatch(text):
            alike.setdefault(_loosely(text), set()).add(text)
    return {text for spellings in alike.values() if len(spellings) > 1 for text in spellings}


def _loosely(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.strip("'").strip().casefold())
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    return plain.lstrip("0") or "0"


@dataclass(frozen=True)
class _Whole:
    """What there is to know about the whole file."""

    file: File
    growing: set[str]  # tables whose rows come and go
    shrinking: set[str]  # those whose rows go
    replaced: set[str]  # those of which one transaction may delete a row and insert it again
    doubtful: set[str]  # constants that are not surely different


class _Translation:
    """One transaction."""

    def __init__(self, whole: _Whole, transaction: SqlTransaction) -> None:
        self.whole, self.file, self.transaction = whole, whole.file, transaction
        self.params: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        arguments = {param.name.lower() for param in transaction.params}
        counts = list(_assigned(transaction.body))
        # what has one value throughout the transaction, once it has any
        self.steady = arguments - set(counts) | {name for name in counts if counts.count(name) == 1} - arguments
        self.known = arguments  # what surely has a value by now

    def program(self) -> Program:
        accesses = tuple(self._block(self.transaction.body))
        return Program(self.transaction.name, tuple(self.params), accesses, notes=tuple(self.notes))

    def _block(self, body: Sequence[Statement]) -> list[Access]:
        found: list[Access] = []
        for stmt in body:
            if isinstance(stmt, If):
                found += self._if(stmt)
            elif isinstance(stmt, Loop):
                found += self._loop(stmt)
            else:
                found += self._cells(stmt)
                self.known = self.known | self._sets(stmt)
        return found

    def _loop(self, stmt: Loop) -> Iterator[Access]:
        """The body happens any number of times; twice is as good as often."""
        yield from self._cells(stmt.query)
        self.steady -= {stmt.row.lower()}
        before = self.known
        body = [replace(a, conditional=True) for a in self._block(stmt.body)]
        self.known = before
        yield from body + body

    def _if(self, stmt: If) -> Iterator[Access]:
        """What both branches write is certain; a branch that rolls back is no part of a committed run."""
        yield from self._cells(Assign(stmt.line, stmt.text, "", stmt.condition.tree))
        before = self.known
        then, known_then = self._block(stmt.then), self.known
        self.known = before
        otherwise, known_otherwise = self._block(stmt.otherwise), self.known
        if _rolls_back(stmt.then):
            yield from otherwise
        elif _rolls_back(stmt.otherwise):
            self.known = known_then
            yield from then
        else:
            self.known = known_then & known_otherwise
            yield from _either(then, otherwise)

    def _sets(self, stmt: Statement) -> set[str]:
        """The variables that surely have a value after this statement."""
        if isinstance(stmt, Assign):
            exp = engine().exp
            used = {str(node.name).lower() for node in stmt.value.find_all(exp.Column, exp.Placeholder, exp.Parameter)}
            return {stmt.name.lower()} if used <= self.known and not stmt.value.find(exp.Select) else set()
        if isinstance(stmt, Select):
            rows = [a for a in access.accesses(stmt, self.file) if a.kind == "read"]
            if rows and all(a.exact and a.table.lower() not in self.whole.growing for a in rows):
                return {name.lower() for name in stmt.into}
        return set()

    def _cells(self, stmt: Statement) -> Iterator[Access]:
        """The accesses of one statement that is no block."""
        found = access.accesses(stmt, self.file)
        self._tell_unbounded(found)
        for i, a in enumerate(found):
            table = a.table.lower()
            if self.file.table(table) is None:
                raise InputError(
                    f"no table {a.table}", where=f"line {a.line}", hint="give its CREATE TABLE with --schema"
                )
            key = self._key(a)
            if EVERY in key and a.kind != "insert" and not a.unbounded:
                self.notes[f"line {a.line}: {a.table} is not accessed by its whole primary key: every row counts"] = (
                    None
                )
            if a.kind == "read":
                in_place = _in_place(stmt, found[i:])
                waits = a.for_update or (isinstance(stmt, UpdateStatement) and not _asks(stmt))
                yield from self._reads(table, key, [c for c in a.columns if c not in in_place], a, waits)
            elif a.kind == "update":
                yield from self._update(table, key, a, _in_place(stmt, found[i - 1 :]) if i else set())
            else:
                yield from self._row(table, key, a)

    def _tell_unbounded(self, accesses: Sequence[access.TableAccess]) -> None:
        for line in dict.fromkeys(a.line for a in accesses if a.unbounded):
            tables = dict.fromkeys(a.table for a in accesses if a.unbounded and a.line == line)
            self.notes[f"line {line}: this query is not looked into: every row of {', '.join(tables)} counts"] = None

    def _reads(
        self, table: str, key: tuple[str, ...], columns: Sequence[str], a: access.TableAccess, waits: bool
    ) -> Iterator[Access]:
        """The columns, and whether the row is there; a condition on other columns reads those, too.

        A statement that locks finds rows first and looks again once it has waited for them: so a scan reads twice, and
        so does a search for one row that somebody deletes and inserts again. The columns of one row are read once it is
        held; a condition may leave the row alone.
        """
        tested = self._tested(table, key, a)
        for column in dict.fromkeys([ROW, *tested, *columns]):
            looked_at = Access(READ, f"{table}.{column}", key)
            if waits and (EVERY in key or (column == ROW and table in self.whole.replaced)):
                yield looked_at
            held = waits and column not in (ROW, *tested)
            yield replace(looked_at, locks=a.for_update or held)

    def _tested(self, table: str, key: tuple[str, ...], a: access.TableAccess) -> list[str]:
        """The columns that decide whether a row is meant; those of a key that is known tell nothing more."""
        own = self.file.table(table)
        keys = () if EVERY in key or own is None else own.primary_key
        return [column for column in a.tested if column not in keys]

    def _row(self, table: str, key: tuple[str, ...], a: access.TableAccess) -> Iterator[Access]:
        """A row that comes or goes. Both look whether it is there, an INSERT at the newest version.

        Two INSERTs of a key are a conflict only as long as the row stays: whoever waited for one that is gone again
        inserts it on an old snapshot.
        """
        if a.kind == "delete":
            yield from self._reads(table, key, (), a, waits=True)
        sure = a.kind == "insert" and self._surely_there(key, a) and table not in self.whole.shrinking
        yield Access(UPDATE if a.kind == "insert" and EVERY not in key else WRITE, f"{table}.{ROW}", key, not sure)
        for column in a.columns:
            yield Access(WRITE, f"{table}.{column}", key, not sure)

    def _update(self, table: str, key: tuple[str, ...], a: access.TableAccess, in_place: set[str]) -> Iterator[Access]:
        yield from self._reads(table, key, (), a, waits=True)
        if _moves(a, self.file):
            self.notes[f"line {a.line}: the primary key of {table} is changed: every row counts"] = None
            own = self.file.table(table)
            assert own is not None
            yield from (Access(UPDATE, f"{table}.{c}", (EVERY,) * len(key), True) for c in (ROW, *own.names))
            return
        growing = table in self.whole.growing
        if EVERY not in key and not growing:
            self.notes[f"the rows of {table} that are updated by key are assumed to exist"] = None
        sure = self._surely_there(key, a) and not growing
        for column in a.columns:
            yield Access(UPDATE if column in in_place else WRITE, f"{table}.{column}", key, not sure)

    def _surely_there(self, key: tuple[str, ...], a: access.TableAccess) -> bool:
        """Is it one row, by nothing but a key that surely has a value?"""
        return a.exact and EVERY not in key and all(part in self.known for part in key if part in self.steady)

    def _key(self, a: access.TableAccess) -> tuple[str, ...]:
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
        if _LITERAL.fullmatch(text):
            if text in self.whole.doubtful:
                self.params[text] = None
            return text
        plain = text.strip().lstrip(":@").lower()
        if plain not in self.steady:
            return EVERY
        self.params[plain] = None
        return plain


def _in_place(stmt: Statement, pair: Sequence[access.TableAccess]) -> set[str]:
    """Of a read just before the write of the same row, the columns that are both read and written: an UPDATE takes
    their newest version. A subquery sees an older one."""
    if not isinstance(stmt, UpdateStatement) or len(pair) < 2 or pair[1].kind != "update" or pair[0].kind != "read":
        return set()
    if _asks(stmt):
        return set()
    return set(pair[0].columns) & set(pair[1].columns)


def _asks(stmt: UpdateStatement) -> bool:
    """Has it subqueries?"""
    trees = (*(value for _, value in stmt.sets), stmt.where)
    return any(tree is not None and tree.find(engine().exp.Select) for tree in trees)


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


def _either(then: Sequence[Access], otherwise: Sequence[Access]) -> list[Access]:
    """Two branches as one sequence, what both do only once. Reads come first, so that no write of one branch hides
    what the other reads."""
    certain = {_effect(a) for a in then if not a.conditional} & {_effect(a) for a in otherwise if not a.conditional}
    merged: dict[tuple[str, str], Access] = {}
    for branch in (then, otherwise):
        again: dict[tuple[str, str], int] = {}
        for a in branch:
            again[a.kind, a.cell] = times = again.get((a.kind, a.cell), 0) + 1
            merged[f"{a.kind} {times}", a.cell] = replace(a, conditional=_effect(a) not in certain)
    return sorted(merged.values(), key=lambda a: (READ, UPDATE, WRITE).index(a.kind))


def _effect(a: Access) -> tuple[str, str]:
    """Two accesses with the same effect stand for each other: what is written, or read."""
    return ("write" if a.writes else "read", a.cell)


def _rolls_back(body: Sequence[Statement]) -> bool:
    return any(isinstance(stmt, RollbackStatement) for stmt in body)
