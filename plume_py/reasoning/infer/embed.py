"""Programs written in Python: the public interface for ``isocheck infer FILE.py``.

Tables are objects and transactions are functions. Each function runs once, to record its statements in the intermediate
form (``program/ir.py``). Values are symbols: they can be added and compared, and combined with ``& | ~``. Python's own
``if``, ``and`` and ``for`` cannot test them; use ``if_``, ``for_each`` and ``require``.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from linecache import getline
from types import FrameType
from typing import Any, ClassVar

from plume_py.base.errors import InputError
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation, Query

# Files of this interface. An error is reported at the innermost line outside them.
OURS = (__file__, contextmanager.__code__.co_filename)


def error_here(problem: str, hint: str = "") -> InputError:
    """Return an error at the line of the application that is being executed."""
    return InputError(problem, where=f"line {current_line()}", hint=hint)


def caller() -> FrameType:
    """Return the frame of the innermost caller outside this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in OURS:
        frame = frame.f_back
    return frame


def current_line() -> int:
    return caller().f_lineno


class Symbol:
    """A symbolic value. Operators return new symbolic values."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Expr) -> None:
        self.node = node

    def _op(self, op: str, *others: object) -> "Symbol":
        return Symbol(Operation(op, (self.node, *(expression_of(other) for other in others))))

    def __add__(self, other: object) -> "Symbol":
        return self._op("+", other)

    def __radd__(self, other: object) -> "Symbol":
        return Symbol(expression_of(other))._op("+", self)

    def __sub__(self, other: object) -> "Symbol":
        return self._op("-", other)

    def __rsub__(self, other: object) -> "Symbol":
        return Symbol(expression_of(other))._op("-", self)

    def __mul__(self, other: object) -> "Symbol":
        return self._op("*", other)

    __rmul__ = __mul__

    def __neg__(self) -> "Symbol":
        return self._op("neg")

    def __eq__(self, other: object) -> "Symbol":  # type: ignore[override]
        return self._op("=", other)

    def __ne__(self, other: object) -> "Symbol":  # type: ignore[override]
        return self._op("<>", other)

    def __lt__(self, other: object) -> "Symbol":
        return self._op("<", other)

    def __le__(self, other: object) -> "Symbol":
        return self._op("<=", other)

    def __gt__(self, other: object) -> "Symbol":
        return Symbol(expression_of(other))._op("<", self)

    def __ge__(self, other: object) -> "Symbol":
        return Symbol(expression_of(other))._op("<=", self)

    def __and__(self, other: object) -> "Symbol":
        return self._op("and", other)

    def __or__(self, other: object) -> "Symbol":
        return self._op("or", other)

    def __invert__(self) -> "Symbol":
        return self._op("not")

    def implies(self, other: object) -> "Symbol":
        return (~self) | other

    def __bool__(self) -> bool:
        raise error_here(
            "a symbolic value is neither true nor false yet", "use if_, require, & | ~ instead of if, and, or, not"
        )


def expression_of(value: object) -> Expr:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, bool | int | str):
        return Const(value)
    raise error_here(
        f"{type(value).__name__} cannot be used in an expression", "use numbers, texts, arguments and columns"
    )


def ite(condition: object, then: object, otherwise: object) -> Symbol:
    return Symbol(Operation("ite", (expression_of(condition), expression_of(then), expression_of(otherwise))))


class Row:
    """A row variable. Its columns are attributes."""

    def __init__(self, name: str, columns: tuple[str, ...], what: str) -> None:
        self._name, self._columns, self._what = name, columns, what

    def __getattr__(self, column: str) -> Symbol:
        if column.startswith("__"):
            raise AttributeError(column)
        if column not in self._columns:
            raise error_here(f"{self._what} has no column {column}", f"it has {', '.join(self._columns)}")
        return Symbol(Field(self._name, column))

    def is_(self, other: "Row") -> Symbol:
        """Return the condition that both variables are the same row, not only equal in all columns."""
        return Symbol(ir.Same(self._name, other._name))


Where = Callable[[Row], object]


def by(**equal: object) -> Where:
    """Return the condition that these columns have these values."""

    def where(row: Row) -> Symbol:
        return Symbol(
            ir.conjunction(
                [Operation("=", (getattr(row, name).node, expression_of(value))) for name, value in equal.items()]
            )
        )

    return where


Int: ir.Sort = "int"
Id: ir.Sort = "id"
Bool: ir.Sort = "bool"
Text: ir.Sort = "text"


class ListOf:
    """Sort of an argument that is a list of records: ``ListOf(item=Id, quantity=Int)``."""

    def __init__(self, **fields: ir.Sort) -> None:
        self.fields = tuple(fields.items())


class _Recorder:
    """Records the statements of one transaction. ``blocks`` holds the open blocks, the innermost last."""

    def __init__(self) -> None:
        self.blocks: list[list[ir.Stmt]] = [[]]
        self.after_if: ir.If | None = None

    def add(self, stmt: ir.Stmt) -> None:
        self.after_if = None
        self.blocks[-1].append(stmt)


class _Recording:
    """Global state while a transaction is recorded: recorder, depth of nested row conditions, names in use."""

    recorder: _Recorder | None = None
    condition_depth: int = 0
    names: ClassVar[set[str]] = set()


def _fresh_name(stem: str) -> str:
    name, number = stem, 1
    while name in _Recording.names:
        number += 1
        name = f"{stem}{number}"
    _Recording.names.add(name)
    return name


def _assigned_name() -> str:
    """Return the variable that the application assigns on the current line, so that reports use the same name."""
    frame = caller()
    matched = re.match(r"\s*([A-Za-z_]\w*)\s*=[^=]", getline(frame.f_code.co_filename, frame.f_lineno))
    return matched[1] if matched else ""


def _recorder(what: str) -> _Recorder:
    if _Recording.recorder is None or _Recording.condition_depth:
        raise error_here(
            f"{what} is a statement of a transaction", "use it in a function under @app.txn, outside conditions"
        )
    return _Recording.recorder


class Source:
    """A table, or a set of rows that was read, as a source of queries."""

    def __init__(self, name: str, columns: tuple[str, ...], is_local: bool) -> None:
        self.name, self.columns, self._is_local = name, columns, is_local

    def _row(self) -> Row:
        return Row(_fresh_name(self.name[:1]), self.columns, self.name)

    def _apply(self, row: Row, function: Where | None, equal: dict[str, object]) -> Expr:
        _Recording.condition_depth += 1
        try:
            parts = [expression_of(by(**equal)(row))] if equal else []
            return ir.conjunction([*parts, *([expression_of(function(row))] if function else [])])
        finally:
            _Recording.condition_depth -= 1

    def _query(self, kind: str, where: Where | None, equal: dict[str, object], value: Where | None = None) -> Symbol:
        row = self._row()
        condition = self._apply(row, where, equal)
        body = self._apply(row, value, {}) if value else None
        default = Const(0) if kind in ("min", "max") else None
        query = Query(kind, self.name, row._name, condition, body, default, self._is_local)
        if self._is_local or _Recording.condition_depth or _Recording.recorder is None:
            return Symbol(query)
        name = _fresh_name(_assigned_name() or kind)
        _Recording.recorder.add(ir.Let(current_line(), (name,), (query,)))
        return Symbol(ir.Local(name))

    def exists(self, where: Where | None = None, **equal: object) -> Symbol:
        """Return whether some row satisfies the condition."""
        return self._query("exists", where, equal)

    def empty(self, where: Where | None = None, **equal: object) -> Symbol:
        """Return whether no row satisfies the condition."""
        return ~self.exists(where, **equal)

    def all(self, holds: Where, where: Where | None = None, **equal: object) -> Symbol:
        """Return whether ``holds`` is true for all rows that satisfy the condition."""
        return self._query("forall", where, equal, holds)

    def count(self, where: Where | None = None, **equal: object) -> Symbol:
        """Return the number of rows that satisfy the condition."""
        return self._query("count", where, equal)

    def sum(self, value: Where, where: Where | None = None, **equal: object) -> Symbol:
        """Return the sum of ``value`` over the rows that satisfy the condition."""
        return self._query("sum", where, equal, value)

    def min(self, value: Where, where: Where | None = None, **equal: object) -> Symbol:
        """Return the least ``value`` of the rows that satisfy the condition, or 0 if there is none."""
        return self._query("min", where, equal, value)

    def max(self, value: Where, where: Where | None = None, **equal: object) -> Symbol:
        """Return the greatest ``value`` of the rows that satisfy the condition, or 0 if there is none."""
        return self._query("max", where, equal, value)

    def unique(self, *columns: str) -> Symbol:
        """Return whether no two rows agree on these columns."""

        def alone(row: Row) -> Symbol:
            return self.all(lambda other: other.is_(row), by(**{column: getattr(row, column) for column in columns}))

        return self.all(alone)


class TableOf(Source):
    """A table of the application. Its methods are the statements of a transaction."""

    def __init__(self, table: ir.Table) -> None:
        super().__init__(table.name, table.names, False)
        self.table = table

    def refers(self, column: str, other: "TableOf", to: str = "") -> Symbol:
        """Return the condition of a foreign key: every row refers to some row of ``other``."""
        target = to or other.table.key[0]
        return self.all(lambda row: other.exists(**{target: getattr(row, column)}))

    def get(self, where: Where | None = None, **equal: object) -> Row:
        """SELECT one row. If no row matches, the transaction rolls back."""
        return self._get(where, equal, lock=False)

    def get_for_update(self, where: Where | None = None, **equal: object) -> Row:
        """SELECT one row FOR UPDATE. No other transaction can change it before this one ends."""
        return self._get(where, equal, lock=True)

    def _get(self, where: Where | None, equal: dict[str, object], lock: bool) -> Row:
        recorder, row = _recorder("get"), Row(_fresh_name(_assigned_name() or self.name), self.columns, self.name)
        recorder.add(ir.SelectOne(current_line(), row._name, self.name, self._apply(row, where, equal), lock))
        return row

    def where(self, where: Where | None = None, **equal: object) -> "Source":
        """SELECT all rows that satisfy a condition."""
        recorder, row = _recorder("where"), self._row()
        name = _fresh_name(_assigned_name() or f"{self.name}_rows")
        recorder.add(ir.SelectAll(current_line(), name, self.name, row._name, self._apply(row, where, equal)))
        return Source(name, self.columns, True)

    def insert(self, **values: object) -> None:
        """INSERT a row. Every column needs a value."""
        recorder = _recorder("insert")
        unknown = [name for name in values if name not in self.columns]
        if unknown:
            raise error_here(f"{self.name} has no column {unknown[0]}", f"it has {', '.join(self.columns)}")
        missing = [name for name in self.columns if name not in values]
        if missing:
            raise error_here(f"insert into {self.name} gives no value for {missing[0]}", "give every column a value")
        recorder.add(ir.Insert(current_line(), self.name, tuple(expression_of(values[name]) for name in self.columns)))

    def update(self, where: Where | None = None, **sets: object) -> None:
        """UPDATE the rows that satisfy ``where``. A new value may be a function of the row."""
        recorder, row = _recorder("update"), self._row()
        changes = []
        for column, value in sets.items():
            if column not in self.columns:
                raise error_here(f"{self.name} has no column {column}", f"it has {', '.join(self.columns)}")
            changes.append((column, self._apply(row, value, {}) if callable(value) else expression_of(value)))
        recorder.add(ir.Update(current_line(), self.name, row._name, self._apply(row, where, {}), tuple(changes)))

    def delete(self, where: Where | None = None, **equal: object) -> None:
        """DELETE the rows that satisfy a condition."""
        recorder, row = _recorder("delete"), self._row()
        recorder.add(ir.Delete(current_line(), self.name, row._name, self._apply(row, where, equal)))


class ListArgument:
    """A list argument, as ``for_each`` takes it."""

    def __init__(self, name: str, columns: tuple[str, ...]) -> None:
        self.name, self.columns = name, columns

    @property
    def size(self) -> Symbol:
        return Symbol(Query("count", self.name, _fresh_name("x"), ir.TRUE, is_local=True))


def require(condition: object) -> None:
    """Roll back unless the condition holds."""
    _recorder("require").add(ir.Require(current_line(), expression_of(condition)))


@contextmanager
def if_(condition: object) -> Iterator[None]:
    """Execute the statements of ``with if_(condition):`` only where the condition holds."""
    recorder, line, node = _recorder("if_"), current_line(), expression_of(condition)
    recorder.blocks.append([])
    yield
    then = tuple(recorder.blocks.pop())
    stmt = ir.If(line, node, then)
    recorder.add(stmt)
    recorder.after_if = stmt


@contextmanager
def else_() -> Iterator[None]:
    """Execute the statements of ``with else_():`` where the condition of the ``if_`` directly before does not hold."""
    recorder = _recorder("else_")
    before = recorder.after_if
    if before is None:
        raise error_here("else_ without an if_ before it", "put it directly after the block of if_")
    recorder.blocks.append([])
    yield
    otherwise = tuple(recorder.blocks.pop())
    recorder.blocks[-1][-1] = ir.If(before.line, before.condition, before.then, otherwise)


@contextmanager
def for_each(rows: "Source | ListArgument") -> Iterator[Row]:
    """Execute the statements of ``with for_each(rows) as row:`` once per row, or per element of a list argument."""
    recorder, line = _recorder("for_each"), current_line()
    if isinstance(rows, TableOf):
        raise error_here(f"for_each goes over rows that were read, not over the table {rows.name}", "use where() first")
    row = Row(_fresh_name("each"), rows.columns, rows.name)
    recorder.blocks.append([])
    yield row
    body = tuple(recorder.blocks.pop())
    recorder.add(ir.ForEach(line, row._name, rows.name, body))


def _description(function: Callable[..., object]) -> str:
    return " ".join((function.__doc__ or "").split())


class App:
    """An application: tables, transactions and invariant."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tables: list[ir.Table] = []
        self.transactions: list[ir.TransactionProgram] = []
        self.clauses: list[ir.Clause] = []
        self.enforced: list[ir.Clause] = []
        self.scope = ir.SmallScope()
        self.rows: list[tuple[str, tuple[ir.Value, ...]]] = []

    def table(self, name: str, key: str | tuple[str, ...] = (), **columns: ir.Sort) -> TableOf:
        """Declare a table. The database enforces its primary key ``key``."""
        keys = (key,) if isinstance(key, str) else tuple(key)
        for column in keys:
            if column not in columns:
                raise error_here(f"the key {column} is no column of {name}", f"it has {', '.join(columns)}")
        table = ir.Table(name, tuple(columns.items()), keys, current_line())
        self.tables.append(table)
        return TableOf(table)

    def txn(
        self, assume: Callable[..., object] | None = None, /, **params: Any
    ) -> Callable[[Callable[..., None]], str]:
        """Declare a transaction: ``@app.txn(amount=Int)``. Callers guarantee ``assume``, a condition on arguments."""

        def record(function: Callable[..., None]) -> str:
            line = function.__code__.co_firstlineno
            declared = tuple(
                ir.Param(n, "int", s.fields) if isinstance(s, ListOf) else ir.Param(n, s) for n, s in params.items()
            )
            symbols = {
                p.name: ListArgument(p.name, tuple(n for n, _ in p.fields)) if p.fields else Symbol(ir.Arg(p.name))
                for p in declared
            }
            names = function.__code__.co_varnames[: function.__code__.co_argcount]
            if set(names) != set(symbols):
                raise InputError(
                    f"{function.__name__}({', '.join(names)}) and its declaration ({', '.join(symbols)}) differ",
                    where=f"line {line}",
                    hint="declare each argument in @app.txn with its sort",
                )
            condition = (expression_of(assume(**symbols)),) if assume else ()
            _Recording.recorder = _Recorder()
            _Recording.names = {*symbols, "row"}
            try:
                function(**symbols)
                body = tuple(_Recording.recorder.blocks[0])
            finally:
                _Recording.recorder = None
            self.transactions.append(ir.TransactionProgram(function.__name__, declared, body, condition, line))
            return function.__name__

        return record

    def invariant(self, function: Callable[[], object]) -> str:
        """Declare a clause of the invariant: ``@app.invariant`` above a function that returns a condition."""
        clause = ir.Clause(
            function.__name__, expression_of(function()), function.__code__.co_firstlineno, _description(function)
        )
        self.clauses.append(clause)
        return clause.name

    def enforce(self, function: Callable[[], object]) -> str:
        """Declare a constraint that the database enforces. A transaction that would violate it rolls back."""
        clause = ir.Clause(
            function.__name__, expression_of(function()), function.__code__.co_firstlineno, _description(function)
        )
        self.enforced.append(clause)
        return clause.name

    def explore(self, rows: dict[str, int] | None = None, **values: tuple[ir.Value, ...]) -> None:
        """Set small domains for the explorer: rows per table, ``table__column`` or ``transaction__argument`` values."""
        self.scope.rows.update(rows or {})
        self.scope.values.update({name.replace("__", ".", 1): tuple(given) for name, given in values.items()})

    def populate(self, **tables: list[tuple[ir.Value, ...]]) -> None:
        """Set the initial rows for runs on a server, with values in the order of the columns."""
        known = {table.name: table for table in self.tables}
        for name, rows in tables.items():
            if name not in known:
                raise error_here(f"there is no table {name}", f"there is {', '.join(known)}")
            for row in rows:
                if len(row) != len(known[name].columns):
                    raise error_here(f"a row of {name} has {len(known[name].columns)} columns, not {len(row)}")
                self.rows.append((name, tuple(row)))

    def program(self) -> ir.Application:
        return ir.Application(
            self.name,
            tuple(self.tables),
            tuple(self.transactions),
            tuple(self.clauses),
            tuple(self.enforced),
            self.scope,
            tuple(self.rows),
        )


__all__ = [
    "App",
    "Bool",
    "Id",
    "Int",
    "ListOf",
    "Text",
    "by",
    "else_",
    "for_each",
    "if_",
    "ite",
    "require",
]
