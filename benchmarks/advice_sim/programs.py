"""Small SQL programs as trees: how they read in SQL, and how they run on whatever executes their statements.

An expression is an int, None (NULL), or a tuple: ("var", name), ("col", name), ("+" or "-", a, b), a comparison,
("and" or "or", a, b), ("not", a), or ("agg", function, column, table, where), a subquery with one aggregate.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from operator import add, eq, ge, gt, le, lt, ne, sub
from typing import Any

NOTHING = "nothing"
OPERATORS = {"+": add, "-": sub, "=": eq, "<>": ne, "<": lt, ">": gt, "<=": le, ">=": ge}


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[str, ...]
    key: str | None = None

    def ddl(self, nullable=True):
        other = "" if nullable else " NOT NULL"
        columns = [f"{c} INT{' PRIMARY KEY' if c == self.key else other}" for c in self.columns]
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


@dataclass(frozen=True)
class Select:
    """One row by its key, or aggregates."""

    into: tuple[str, ...]
    what: tuple[Any, ...]
    table: str
    where: Any = None
    lock: bool = False


@dataclass(frozen=True)
class Insert:
    table: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Update:
    table: str
    sets: tuple[tuple[str, Any], ...]
    where: Any = None


@dataclass(frozen=True)
class Delete:
    table: str
    where: Any = None


@dataclass(frozen=True)
class Scan:
    """All rows that match, as FOR … IN SELECT asks for them."""

    columns: tuple[str, ...]
    table: str
    where: Any = None
    lock: bool = False


@dataclass(frozen=True)
class For:
    row: str
    scan: Scan
    body: tuple[Any, ...]


@dataclass(frozen=True)
class If:
    condition: Any
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Let:
    name: str
    value: Any


@dataclass(frozen=True)
class Rollback:
    pass


@dataclass(frozen=True)
class Transaction:
    name: str
    params: tuple[str, ...]
    body: tuple[Any, ...]
    assume: Any = None


@dataclass(frozen=True)
class App:
    tables: tuple[Table, ...]
    transactions: tuple[Transaction, ...]
    invariants: tuple[tuple[str, Any], ...] = ()
    missing: str = "rollback"  # what a SELECT … INTO without a row does: it rolls back, or gives NULL

    def table(self, name):
        return next(t for t in self.tables if t.name == name)

    def sql(self, invariants=True):
        lines = [f"{t.ddl(nullable=self.missing == 'null')};" for t in self.tables]
        for txn in self.transactions:
            lines.append(f"-- transaction: {txn.name}({', '.join(txn.params)})")
            if txn.assume is not None:
                lines.append(f"-- assume: {sql(txn.assume, bare=True)}")
            lines += [line for stmt in txn.body for line in statement_lines(stmt)]
        if invariants:
            for name, condition in self.invariants:
                lines += [f"-- invariant: {name}", f"{sql(condition)};"]
        return "\n".join(lines) + "\n"


class GaveUpError(Exception):
    """The program itself rolls back."""


def columns_of(expr):
    """The columns that it speaks of, outside of subqueries."""
    if isinstance(expr, tuple):
        if expr[0] == "col":
            yield expr[1]
        elif expr[0] not in ("var", "agg"):
            for part in expr[1:]:
                yield from columns_of(part)


def value(expr, env, row=None, ask=None):
    """The value of an expression; ``ask`` answers subqueries."""
    if not isinstance(expr, tuple):
        return expr
    head = expr[0]
    if head == "var":
        return env[expr[1]]
    if head == "col":
        return row[expr[1]]
    if head == "agg":
        return ask(expr)
    if head == "isnull":
        return value(expr[1], env, row, ask) is None
    if head == "not":
        inner = value(expr[1], env, row, ask)
        return None if inner is None else not inner
    left, right = value(expr[1], env, row, ask), value(expr[2], env, row, ask)
    if head == "and":
        if left is False or right is False:
            return False
        return None if left is None or right is None else True
    if head == "or":
        if left is True or right is True:
            return True
        return None if left is None or right is None else False
    if left is None or right is None:
        return None
    return OPERATORS[head](left, right)


def aggregate(function, column, rows):
    """COUNT, or SUM and MAX with 0 for no rows."""
    if function == "COUNT":
        return len(rows)
    numbers = [row[column] for row in rows if row[column] is not None]
    return (sum(numbers) if function == "SUM" else max(numbers)) if numbers else 0


def in_order(rows):
    """Rows in an order that is always the same, NULLs among them."""
    return sorted(rows, key=lambda row: [(cell is None, cell or 0) for cell in row])


def bound(node, env):
    """A statement or expression with its variables replaced by their values."""
    if isinstance(node, tuple):
        if node and node[0] == "var":
            return env[node[1]]
        return tuple(bound(part, env) for part in node)
    if isinstance(node, Select | Insert | Update | Delete | Scan):
        return replace(node, **{name: bound(part, env) for name, part in vars(node).items() if name != "into"})
    return node


def pinned(where, key):
    """The value of the key that a condition asks for, if it does; NOTHING if that is NULL."""
    if not isinstance(where, tuple):
        return None
    if where[0] == "=" and where[1] == ("col", key) and not isinstance(where[2], tuple):
        return NOTHING if where[2] is None else where[2]
    if where[0] == "and":
        return pinned(where[1], key) if pinned(where[1], key) is not None else pinned(where[2], key)
    return None


def interpret(body, env, missing="rollback") -> Generator[Any, Any, None]:
    """Run a body: gives statements with their values filled in, and is sent what each returned."""
    for stmt in body:
        if isinstance(stmt, Select):
            rows = yield bound(stmt, env)
            if not rows and missing == "rollback":
                raise GaveUpError
            env.update(zip(stmt.into, rows[0] if rows else [None] * len(stmt.into), strict=True))
        elif isinstance(stmt, Insert | Update | Delete):
            yield bound(stmt, env)
        elif isinstance(stmt, Let):
            env[stmt.name] = value(stmt.value, env)
        elif isinstance(stmt, If):
            chosen = value(stmt.condition, env) is True
            yield from interpret(stmt.then if chosen else stmt.otherwise, env, missing)
        elif isinstance(stmt, For):
            rows = yield bound(stmt.scan, env)
            for row in in_order(rows):
                env.update({f"{stmt.row}.{c}": v for c, v in zip(stmt.scan.columns, row, strict=True)})
                yield from interpret(stmt.body, env, missing)
        else:
            raise GaveUpError


def sql(expr, bare=False):
    """An expression as SQL; ``bare``: arguments without a colon."""
    if expr is None:
        return "NULL"
    if not isinstance(expr, tuple):
        return str(expr)
    head = expr[0]
    if head == "var":
        return expr[1] if bare or "." in expr[1] else f":{expr[1]}"
    if head == "col":
        return expr[1]
    if head == "agg":
        return f"(SELECT {aggregate_sql(expr)} FROM {expr[3]}{where_sql(expr[4])})"
    if head == "isnull":
        return f"{sql(expr[1], bare)} IS NULL"
    if head == "not":
        return f"NOT ({sql(expr[1], bare)})"
    joined = f"{sql(expr[1], bare)} {head.upper()} {sql(expr[2], bare)}"
    return f"({joined})" if head in ("and", "or", "+", "-") else joined


def aggregate_sql(expr):
    _, function, column, *_ = expr
    if function == "COUNT":
        return "COUNT(*)"
    return f"COALESCE({function}({column}), 0)"


def where_sql(where):
    return "" if where is None else f" WHERE {sql(where)}"


def statement_sql(stmt, into=True):
    """One statement; without ``into`` as a client sends it."""
    if isinstance(stmt, Select):
        what = ", ".join(aggregate_sql(w) if isinstance(w, tuple) and w[0] == "agg" else sql(w) for w in stmt.what)
        names = f" INTO {', '.join(stmt.into)}" if into else ""
        return f"SELECT {what}{names} FROM {stmt.table}{where_sql(stmt.where)}{' FOR UPDATE' if stmt.lock else ''}"
    if isinstance(stmt, Scan):
        lock = " FOR UPDATE" if stmt.lock else ""
        return f"SELECT {', '.join(stmt.columns)} FROM {stmt.table}{where_sql(stmt.where)}{lock}"
    if isinstance(stmt, Insert):
        return f"INSERT INTO {stmt.table} VALUES ({', '.join(map(sql, stmt.values))})"
    if isinstance(stmt, Update):
        sets = ", ".join(f"{name} = {sql(expr)}" for name, expr in stmt.sets)
        return f"UPDATE {stmt.table} SET {sets}{where_sql(stmt.where)}"
    return f"DELETE FROM {stmt.table}{where_sql(stmt.where)}"


def statement_lines(stmt) -> Iterator[str]:
    """A statement of a program as lines of SQL."""
    if isinstance(stmt, If):
        yield f"IF {sql(stmt.condition)} THEN"
        yield from ("  " + line for inner in stmt.then for line in statement_lines(inner))
        if stmt.otherwise:
            yield "ELSE"
            yield from ("  " + line for inner in stmt.otherwise for line in statement_lines(inner))
        yield "END IF;"
    elif isinstance(stmt, For):
        yield f"FOR {stmt.row} IN {statement_sql(stmt.scan)} LOOP"
        yield from ("  " + line for inner in stmt.body for line in statement_lines(inner))
        yield "END LOOP;"
    elif isinstance(stmt, Let):
        yield f"SET {stmt.name} = {sql(stmt.value)};"
    elif isinstance(stmt, Rollback):
        yield "ROLLBACK;"
    else:
        yield f"{statement_sql(stmt)};"
