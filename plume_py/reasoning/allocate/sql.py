"""Translate transactions written in SQL into programs with cells.

A cell is a column of a row; a further cell (ROW) represents the existence of the row. A condition that fixes the whole
primary key gives a cell with this key. Any other condition counts as every row, which is safe, and is reported in a
note. The values of a key are arguments, constants, or variables that are set once. Each value is a parameter of the
program, because two executions may or may not use the same one.

A write is certain if nothing but the key decides about it, the key surely has a value, and the row exists.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql import (
    Assign,
    Attempt,
    Change,
    File,
    If,
    Insert,
    Loop,
    Repeat,
    RollbackStatement,
    Select,
    SqlColumn,
    SqlTransaction,
    Statement,
    Update,
    access,
)
from plume_py.base.sql.files import load
from plume_py.base.sql.log_programs import LogFile, load_log
from plume_py.base.sql.names import resolve
from plume_py.base.sql.syntax import engine
from plume_py.reasoning.allocate.control_flow import Fork, execution_paths, flat
from plume_py.reasoning.allocate.workload import EVERY, READ, UPDATE, WRITE, Access, Program, require_names

# The column name of the cell that represents the existence of a row.
ROW = "(row)"
_WHOLE = re.compile(r"-?[1-9]\d*|0")
_LITERAL = re.compile(r"-?\d+|'(?:[^']|'')*'")


def load_sql(path: str, schema: str | None = None, exclude: Sequence[str] = ()) -> list[Program]:
    """Return the programs of a file without those in ``exclude``. ``schema`` is a second file with tables."""
    file = load(path, any_query=True)
    if schema is not None:
        base = load(schema, functions=False)
        file = replace(file, tables=(*base.tables, *file.tables), notes=(*base.notes, *file.notes))
    if not file.transactions:
        raise InputError(
            "no transactions", hint="begin each with a line `-- transaction: name(argument, …)`"
        ).in_source(path)
    try:
        return programs(without(file, exclude))
    except InputError as error:
        raise error.in_source(path) from None
    except RecursionError:
        raise InputError("nested too deeply", hint="split it").in_source(path) from None


def load_sql_log(path: str, schema: str | None, exclude: Sequence[str] = ()) -> tuple[list[Program], LogFile]:
    """Return the programs of a statement log without those in ``exclude``, and the parsed log."""
    log = load_log(path, schema, any_query=True, fold=True)
    with log.located_errors():
        return programs(without(log.file, exclude)), log


def without(file: File, exclude: Sequence[str]) -> File:
    """Return the file without the transactions in ``exclude``. Raise an error for an unknown name."""
    require_names(exclude, [txn.name for txn in file.transactions])
    return replace(file, transactions=tuple(txn for txn in file.transactions if txn.name not in exclude))


def programs(file: File) -> list[Program]:
    """Return a program for each transaction of the file."""
    for transaction in file.transactions:
        resolve(transaction, file)
    by_transaction = [[a for s in t.body for a in access.accesses(s, file)] for t in file.transactions]
    found = list(chain.from_iterable(by_transaction))
    replaced = set().union(
        *(_tables_gaining_rows(own, file) & _tables_losing_rows(own, file) for own in by_transaction)
    )
    ambiguous = _ambiguous_constants({text for a in found for _, text in a.equal})
    come, go = _tables_gaining_rows(found, file), _tables_losing_rows(found, file)
    facts = _FileFacts(file, come, come | go, go, replaced, ambiguous)
    made = [_Translation(facts, transaction).program() for transaction in file.transactions]
    # Notes about ignored parts of the schema are repeated for every program.
    return [replace(program, notes=(*program.notes, *(f"schema: {note}" for note in file.notes))) for program in made]


def _tables_gaining_rows(accesses: Sequence[access.TableAccess], file: File) -> set[str]:
    """Return the tables in which rows appear."""
    return {a.table.lower() for a in accesses if a.kind == "insert" or _changes_primary_key(a, file)}


def _tables_losing_rows(accesses: Sequence[access.TableAccess], file: File) -> set[str]:
    """Return the tables from which rows disappear."""
    return {a.table.lower() for a in accesses if a.kind == "delete" or _changes_primary_key(a, file)}


def _changes_primary_key(a: access.TableAccess, file: File) -> bool:
    """Return whether this is an update of the primary key, which removes one row and creates another."""
    table = file.table(a.table) if a.kind == "update" else None
    return table is not None and any(column in table.primary_key for column in a.columns)


def _ambiguous_constants(texts: set[str]) -> set[str]:
    """Return the constants that some collation or conversion identifies, for example 'Bob' and 'BOB', or 7 and '07'."""
    alike: dict[str, set[str]] = {}
    for text in texts:
        if _LITERAL.fullmatch(text):
            alike.setdefault(_normalized(text), set()).add(text)
    return {text for spellings in alike.values() if len(spellings) > 1 for text in spellings}


def _normalized(text: str) -> str:
    """Return the constant without case, accents, punctuation and leading zeros."""
    letters = unicodedata.normalize("NFKD", text.strip("'").strip().casefold())
    plain = "".join(c for c in letters if c.isalnum())  # '{A0}' and 'a0' may be one UUID
    return plain.lstrip("0") or "0"


@dataclass(frozen=True)
class _FileFacts:
    """Facts about all transactions of a file, for the translation of each."""

    file: File
    coming: set[str]  # tables in which rows appear
    growing: set[str]  # tables in which rows appear or disappear
    shrinking: set[str]  # tables from which rows disappear
    replaced: set[str]  # tables of which one transaction may delete a row and insert it again
    ambiguous: set[str]  # constants that may be equal to another one


class _Translation:
    """The translation of one transaction."""

    def __init__(self, facts: _FileFacts, transaction: SqlTransaction) -> None:
        self.facts, self.file, self.transaction = facts, facts.file, transaction
        self.params: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        self.same: dict[str, str] = {}  # variable -> parameter of the generated key that it holds
        arguments = {param.name.lower() for param in transaction.params}
        counts = list(assignments(transaction.body))
        # names that keep one value throughout the transaction once they have a value
        self.steady = arguments - set(counts) | {name for name in counts if counts.count(name) == 1} - arguments
        self.known = arguments  # names that surely have a value at this point
        self._forked: Statement | None = None  # the last simple statement, if it was translated into a fork

    def program(self) -> Program:
        tree = self._block(self.transaction.body)
        notes = tuple(self.notes)
        return Program(
            self.transaction.name,
            tuple(self.params),
            tuple(flat(tree)),
            notes=notes,
            execution_paths=execution_paths(tree),
        )

    def _block(self, body: Sequence[Statement]) -> list[Access | Fork]:
        found: list[Access | Fork] = []
        before: Statement | None = None
        for stmt in body:
            made: list[Access | Fork]
            if isinstance(stmt, If):
                if before is not None and gives_up_unless_found(stmt, before) and self._forked is before:
                    assert isinstance(found[-1], Fork)
                    found[-1:] = found[-1].then
                made = list(self._if(stmt))
            elif isinstance(stmt, Loop):
                made = list(self._loop(stmt))
            elif isinstance(stmt, Repeat):
                made = list(self._repeat(stmt))
            elif isinstance(stmt, Attempt):
                made = list(self._attempt(stmt))
            else:
                made = list(self._cells(stmt))
                self.known = self.known | self._sets(stmt)
            found += made
            before = stmt
        return found

    def _loop(self, stmt: Loop) -> Iterator[Access | Fork]:
        """Yield the accesses of a loop. Two iterations represent any number."""
        yield from self._cells(stmt.query)
        self.steady -= {stmt.row.lower()}
        before = self.known
        body = [replace(a, conditional=True) for a in flat(self._block(stmt.body))]
        self.known = before
        yield from body + body

    def _repeat(self, stmt: Repeat) -> Iterator[Access | Fork]:
        """Yield the accesses of a loop with a condition, which is tested before, between and after two iterations."""
        test = list(self._cells(Assign(stmt.line, stmt.text, "", stmt.condition))) if stmt.condition else []
        self.steady -= {stmt.name}
        before = self.known
        body = [replace(a, conditional=True) for a in flat((*self._block(stmt.body), *test))]
        self.known = before
        yield from (*test, *body, *body)

    def _attempt(self, stmt: Attempt) -> Iterator[Access]:
        """Yield the accesses of a block and its handlers, all conditional."""
        self.notes[f"line {stmt.line}: the block may be done, or undone by its handler"] = None
        before = self.known
        body = flat(self._block(stmt.body))
        self.known = before
        otherwise = flat(self._block(stmt.otherwise))
        self.known = before
        yield from (replace(a, conditional=True) for a in (*body, *otherwise))

    def _if(self, stmt: If) -> Iterator[Access | Fork]:
        """Yield a fork. A branch that rolls back is not part of a committed execution and is left out."""
        yield from self._cells(Assign(stmt.line, stmt.text, "", stmt.condition.tree))
        before = self.known
        then, known_then = self._block(stmt.then), self.known
        self.known = before
        otherwise, known_otherwise = self._block(stmt.otherwise), self.known
        if rolls_back(stmt.then):
            yield from otherwise
        elif rolls_back(stmt.otherwise):
            self.known = known_then
            yield from then
        else:
            self.known = known_then & known_otherwise
            yield Fork(then, otherwise)

    def _sets(self, stmt: Statement) -> set[str]:
        """Return the variables that surely have a value after this statement."""
        if isinstance(stmt, Assign):
            return {stmt.name.lower()} if has_value(stmt.value, self.known) else set()
        if isinstance(stmt, Select):
            rows = [a for a in access.accesses(stmt, self.file) if a.kind == "read"]
            if rows and all(a.exact and a.table.lower() not in self.facts.growing for a in rows):
                filled = self.known | {c.name for a in rows for c in self._columns(a.table) if not c.nullable}
                values = [part.unalias() for part in stmt.tree.expressions]
                return {name for name, value in zip(stmt.into, values, strict=False) if has_value(value, filled)}
        return set()

    def _columns(self, table: str) -> Sequence[SqlColumn]:
        own = self.file.table(table)
        return own.columns if own is not None else ()

    def _cells(self, stmt: Statement) -> Iterator[Access | Fork]:
        """Yield the accesses of a simple statement, or a fork if it concerns one row, which may not exist."""
        found = access.accesses(stmt, self.file)
        self._note_unbounded(found)
        cells = list(self._each(stmt, found))
        keys = {self._key(a) for a in found}
        moves = any(_changes_primary_key(a, self.file) for a in found)
        if len(keys) == 1 and EVERY not in (key := keys.pop()) and locks_one_row(stmt, found) and not moves:
            made = list(self._found_or_not(found, key, cells))
            self._forked = stmt if isinstance(made[-1], Fork) else None
            yield from made
        else:
            yield from cells
        self._remember(stmt)

    def _found_or_not(
        self, found: Sequence[access.TableAccess], key: tuple[str, ...], cells: Sequence[Access]
    ) -> Iterator[Access | Fork]:
        """Yield a fork for a statement about one row.

        In one branch, the row exists and satisfies the condition: it is locked, then read and written. In the other,
        the statement only reads the cells that decide this.
        """
        table = found[0].table.lower()
        tested = list(dict.fromkeys(column for a in found for column in self._tested(table, key, a)))
        writes = {a.cell: a for a in cells if a.writes}
        if all(not a.conditional for a in writes.values()) and not tested and table not in self.facts.growing:
            yield from cells
            return
        then = [Access(READ, cell, key, locks=True) for cell in dict.fromkeys(a.table for a in cells if not a.writes)]
        seen = {a.table for a in then} - {f"{table}.{ROW}"}
        changed = [replace(a, kind=UPDATE if a.table in seen else a.kind, conditional=False) for a in writes.values()]
        then = [a for a in then if a.cell not in writes]
        otherwise = [replace(a, conditional=True) for a in cells if a.table in {f"{table}.{c}" for c in (ROW, *tested)}]
        missed = [a for a in otherwise if not a.writes]
        yield Fork((*then, *changed), missed, tuple(cells))

    def _each(self, stmt: Statement, found: Sequence[access.TableAccess]) -> Iterator[Access]:
        """Yield the accesses of the statement one by one, and note over-approximations."""
        for a in found:
            table = a.table.lower()
            key = self._key(a)
            if a.cascade:
                self.notes[f"line {a.line}: foreign keys reach {a.table}: every row counts"] = None
            elif EVERY in key and a.kind != "insert" and not a.unbounded:
                self.notes[f"line {a.line}: {a.table} is not accessed by its whole primary key: every row counts"] = (
                    None
                )
            if a.kind == "read":
                waits = bool(a.lock) or (isinstance(stmt, Change) and not has_subquery(stmt))
                yield from self._reads(table, key, a.columns, a, waits)
            elif a.kind == "update":
                yield from self._update(table, key, a)
            else:
                yield from self._row(table, key, a)

    def _remember(self, stmt: Statement) -> None:
        """Remember the variable that receives a key generated by the database."""
        if isinstance(stmt, Insert) and len(stmt.rows) == 1 and stmt.query is None and stmt.conflict is None:
            own = self.file.table(stmt.table)
            given = stmt.columns or (own.names if own else ())
            made = [c.name for c in self._columns(stmt.table) if c.generated and c.name not in given]
            for value, name in zip(stmt.returning, stmt.into, strict=False):
                if value.name.lower() in made and name in self.steady:
                    self.same[name] = generated_parameter(
                        f"{access.GENERATED} {stmt.line} 0 {value.name.lower()}", stmt.table
                    )

    def _note_unbounded(self, accesses: Sequence[access.TableAccess]) -> None:
        for line in dict.fromkeys(a.line for a in accesses if a.unbounded):
            tables = dict.fromkeys(a.table for a in accesses if a.unbounded and a.line == line)
            self.notes[f"line {line}: this query is not looked into: every row of {', '.join(tables)} counts"] = None

    def _reads(
        self, table: str, key: tuple[str, ...], columns: Sequence[str], a: access.TableAccess, waits: bool
    ) -> Iterator[Access]:
        """Yield reads of the columns, of the row's existence, and of other columns that the condition tests.

        A locking statement first finds rows, then reads them again after waiting for the lock. So a scan reads twice,
        and so does a search for one row that another transaction deletes and inserts again. The columns of one row are
        read once it is locked. If the condition does not match, or no row is found, no lock is held.
        """
        # A shared lock, or one that skips locked rows, does not exclude other transactions.
        weak = a.lock in ("share", "skip")
        tested = self._tested(table, key, a)
        decides = (ROW, *tested) if a.lock and (tested or table in self.facts.coming) else ()
        for column in dict.fromkeys([ROW, *tested, *columns]):
            looked_at = Access(READ, f"{table}.{column}", key, weak or column in decides)
            if waits and (EVERY in key or (column == ROW and table in self.facts.replaced)):
                yield looked_at
            held = waits and not weak and column not in (ROW, *tested)
            yield replace(looked_at, locks=bool(a.lock) or held)

    def _tested(self, table: str, key: tuple[str, ...], a: access.TableAccess) -> list[str]:
        """Return the columns that decide whether a row matches, except columns of a fixed key, which add nothing."""
        own = self.file.table(table)
        keys = () if EVERY in key or own is None else own.primary_key
        return [column for column in a.tested if column not in keys]

    def _row(self, table: str, key: tuple[str, ...], a: access.TableAccess) -> Iterator[Access]:
        """Yield the accesses of an INSERT or DELETE. Both read whether the row exists, an INSERT in the newest version.

        Two INSERTs of a key conflict only while the row exists. An INSERT that waited for a row that is gone again
        happens on an old snapshot.
        """
        if a.kind == "delete":
            yield from self._reads(table, key, (), a, waits=True)
        sure = a.kind == "insert" and self._surely_there(key, a) and table not in self.facts.shrinking
        goes = table in self.facts.shrinking
        kind = UPDATE if a.kind == "insert" and EVERY not in key else WRITE
        yield Access(kind, f"{table}.{ROW}", key, not sure, fleeting=goes)
        for column in a.columns:
            yield Access(WRITE, f"{table}.{column}", key, not sure, fleeting=goes)

    def _update(self, table: str, key: tuple[str, ...], a: access.TableAccess) -> Iterator[Access]:
        if not a.sure:
            yield from self._reads(table, key, (), a, waits=True)
        if _changes_primary_key(a, self.file):
            self.notes[f"line {a.line}: the primary key of {table} is changed: every row counts"] = None
            own = self.file.table(table)
            assert own is not None
            yield from (Access(UPDATE, f"{table}.{c}", (EVERY,) * len(key), True) for c in (ROW, *own.names))
            return
        growing = table in self.facts.growing
        if EVERY not in key and not growing:
            self.notes[f"the rows of {table} that are updated by key are assumed to exist"] = None
        # An upsert inserts a missing row. If it waited for a row that is gone again, it does so on an old snapshot.
        sure = self._surely_there(key, a) and table not in (self.facts.shrinking if a.sure else self.facts.growing)
        for column in a.columns:
            yield Access(UPDATE if column in a.in_place else WRITE, f"{table}.{column}", key, not sure)

    def _surely_there(self, key: tuple[str, ...], a: access.TableAccess) -> bool:
        """Return whether the access concerns one row, only by a key that surely has a value."""
        return a.exact and EVERY not in key and all(part in self.known for part in key if part in self.steady)

    def _key(self, a: access.TableAccess) -> tuple[str, ...]:
        """Return the values of the primary key, EVERY where the condition leaves one open."""
        table = self.file.table(a.table)
        assert table is not None
        if not table.primary_key:
            return (EVERY,)
        fixed = dict(a.equal)
        kinds = {column.name: column.type for column in table.columns}
        return tuple(self._value(fixed.get(name), a.table.lower(), kinds[name]) for name in table.primary_key)

    def _value(self, text: str | None, table: str, kind: str) -> str:
        """Return the parameter or constant for a value of a key column, or EVERY.

        ``kind`` is the type of the column. A text for a number may be converted. A number for a text may match several
        rows: in MySQL, 7 matches '7' and '07'.
        """
        if text is None:
            return EVERY
        if _LITERAL.fullmatch(text):
            is_text = text[0] == "'"
            if kind == "text" and not is_text:
                return EVERY
            if is_text and kind == "int" and _WHOLE.fullmatch(text[1:-1]):
                text = text[1:-1]
            elif text in self.facts.ambiguous or is_text != (kind == "text"):
                self.params[text] = None
            return text
        if text.startswith(f"{access.GENERATED} "):
            name = generated_parameter(text, table)
            self.known = self.known | {name}
            self.steady.add(name)
            self.params[name] = None
            return name
        plain = text.strip().lstrip(":@").lower()
        plain = self.same.get(plain, plain)
        if plain not in self.steady:
            return EVERY
        self.params[plain] = None
        return plain


def has_value(value: Any, filled: Collection[str]) -> bool:
    """Return whether an expression surely is not NULL.

    Only arithmetic over columns, parameters and literals that are not NULL is recognized. ``filled`` are the names that
    surely have a value.
    """
    exp = engine().exp
    known = (
        exp.Column | exp.Placeholder | exp.Parameter | exp.Literal | exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Paren
    )
    leaves = exp.Column | exp.Placeholder | exp.Parameter
    for node in value.walk():
        if not isinstance(node, known | exp.Identifier | exp.Var):
            return False
        if isinstance(node, leaves) and str(node.name).lower() not in filled:
            return False
    return True


def generated_parameter(text: str, table: str) -> str:
    """Return the parameter that represents a key generated by the database."""
    _, line, number, column = text.split(" ")
    return f"{table}_{column}_of_line_{line}" + (f"_{number}" if number != "0" else "")


def has_subquery(stmt: Change) -> bool:
    """Return whether the statement has subqueries."""
    return stmt.tree.find(engine().exp.Select) is not None


def assignments(body: Sequence[Statement]) -> Iterator[str]:
    """Yield the variables that are set, once per assignment; assignments in a loop twice."""
    for stmt in body:
        if isinstance(stmt, Select | Change):
            yield from (name.lower() for name in stmt.into)
        elif isinstance(stmt, Assign) and stmt.name:
            yield stmt.name.lower()
        elif isinstance(stmt, If):
            yield from assignments((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop):
            yield from 2 * [stmt.row.lower(), *assignments(stmt.body)]
        elif isinstance(stmt, Repeat):
            yield from 2 * [stmt.name.lower(), *assignments(stmt.body)]
        elif isinstance(stmt, Attempt):
            yield from assignments((*stmt.body, *stmt.otherwise))


def locks_one_row(stmt: Statement, found: Sequence[access.TableAccess]) -> bool:
    """Return whether this is an UPDATE or SELECT … FOR UPDATE of one table without subqueries."""
    if isinstance(stmt, Update):
        return all(a.kind in ("read", "update") for a in found) and not stmt.others and not has_subquery(stmt)
    return isinstance(stmt, Select) and len(found) == 1 and found[0].lock not in ("", "share", "skip")


def gives_up_unless_found(stmt: If, before: Statement | None) -> bool:
    """Return whether this is IF NOT FOUND THEN ROLLBACK: after it, the statement before has found its row."""
    condition = stmt.condition.tree.sql().upper()
    not_found = condition == "NOT FOUND" or (condition == "ROW_COUNT() = 0" and isinstance(before, Update))
    return not_found and rolls_back(stmt.then)


def rolls_back(body: Sequence[Statement]) -> bool:
    return any(isinstance(stmt, RollbackStatement) for stmt in body)
