"""Load programs: built-in examples by name, Python files, SQL files, and SQL files with a log of statements.

``validate`` checks names, sorts and keys of every program. An error names the line of the first mistake.
"""

import runpy
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from plume_py.base.errors import InputError, IsocheckError, LimitError
from plume_py.reasoning.infer.embed import App
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Application

if TYPE_CHECKING:
    from plume_py.base.sql.log_programs import LogFile

BUILT_IN = (
    "courseware",
    "tpcc",
    "tpcc_lite",
    "bank",
    "withdrawal",
    "savings",
    "add_interest",
    "doctors",
    "unique_ids",
    "counters",
)


_NOT_MYSQL = {
    "ON CONFLICT": ("is not in MySQL", "write INSERT … ON DUPLICATE KEY UPDATE"),
    "UPDATE … FROM": ("is not in MySQL, whose UPDATE … JOIN is not supported", "read the value first"),
    "INSERT … SELECT": (
        "is not supported for MySQL, which reads the newest rows there and locks them",
        "use FOR row IN SELECT … FOR UPDATE LOOP INSERT … END LOOP",
    ),
    "FOR SHARE": ("is not supported for MySQL, which reads the newest row there", "use FOR UPDATE"),
}


def load_with_log(name: str, log: str) -> "tuple[Application, LogFile]":
    """Return the tables and invariant of a SQL file with the transactions of a log, and the parsed log."""
    from plume_py.base.sql.log_programs import load_log
    from plume_py.reasoning.infer.program.from_sql import translate

    if name in BUILT_IN or name.endswith(".py"):
        raise IsocheckError("--from-log adds transactions to the tables and the invariant of a SQL file")
    found = load_log(log, name)
    with found.located_errors():
        return validate(translate(found.file)), found


def load(name: str) -> Application:
    """Return a built-in application or the program of a file. A Python file is executed."""
    if name in BUILT_IN:
        from importlib import import_module

        app: App = import_module(f"plume_py.reasoning.infer.apps.{name}").app
        return validate(app.program())
    if not Path(name).exists():
        hint = f"give a file, or an example: {', '.join(BUILT_IN)}"
        raise InputError("no such file, and no example of this name", hint=hint).in_source(name)
    try:
        return validate(_python(name) if name.endswith(".py") else _sql(name))
    except InputError as error:
        raise error.in_source(name) from None
    except RecursionError:
        raise InputError("an expression is nested too deeply", hint="split it").in_source(name) from None


def require_dialect(program: Application, store: str) -> None:
    """Raise InputError for a statement that the store does not have."""
    for spelled, line in program.dialects:
        if spelled in _NOT_MYSQL and store == "mysql":
            said, hint = _NOT_MYSQL[spelled]
            raise InputError(f"{spelled} {said}", where=f"line {line}", hint=hint).in_source(program.name)


def _sql(path: str) -> Application:
    from plume_py.base.sql.files import load as load_sql
    from plume_py.reasoning.infer.program.from_sql import translate

    return translate(load_sql(path))


def _python(path: str) -> Application:
    try:
        found = runpy.run_path(path, run_name="isocheck_app")
    except (InputError, LimitError):
        raise
    except SyntaxError as error:
        raise InputError(f"not Python: {error.msg}", where=f"line {error.lineno}") from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f"line {lines[-1]}" if lines else ""
        raise InputError(f"{type(error).__name__}: {error}", where=where) from None
    apps = [value for value in found.values() if isinstance(value, App)]
    if len(apps) != 1:
        raise InputError(f"{len(apps)} applications", hint="the file should make one App, as in app = App('name')")
    return apps[0].program()


_NUMBERS = ("int", "id")
DEPTH = 150  # of an expression: every engine recurses into it


def validate(program: ir.Application) -> ir.Application:
    """Return the program, or raise InputError at the line of the first mistake."""
    if not program.transactions:
        raise InputError("the program has no transaction", hint="declare one with @app.txn, or -- transaction: in SQL")
    for clause in (*program.invariant, *program.enforced):
        _Sorts(program, clause.line).need(clause.condition, "bool", f"the invariant {clause.name}")
    for txn in program.transactions:
        _StatementChecker(program, txn).run()
    return program


def _wrong(problem: str, line: int, hint: str = "") -> InputError:
    return InputError(problem, where=f"line {line}", hint=hint)


class _Sorts:
    """Sorts of expressions. ``names`` has the sorts of arguments and locals, ``rows`` the columns of row variables."""

    def __init__(self, program: ir.Application, line: int) -> None:
        self.program, self.line = program, line
        self.depth = 0
        self.names: dict[str, str] = {}
        self.rows: dict[str, dict[str, ir.Sort]] = {}

    def table(self, name: str) -> ir.Table:
        """Return the table, or raise InputError if it does not exist."""
        if name not in [table.name for table in self.program.tables]:
            raise _wrong(
                f"there is no table {name}", self.line, f"there is {', '.join(t.name for t in self.program.tables)}"
            )
        return self.program.table(name)

    def need(self, expr: ir.Expr, sort: str, what: str) -> None:
        """Raise InputError unless the expression has this sort."""
        found = self.of(expr)
        if _sort_class(found) != _sort_class(sort):
            raise _wrong(f"{what} is {_sort_words(found)}, but should be {_sort_words(sort)}", self.line)

    def of(self, expr: ir.Expr) -> str:
        self.depth += 1
        if self.depth > DEPTH:
            raise _wrong(f"an expression is more than {DEPTH} levels deep", self.line, "split it")
        found = self._of(expr)
        self.depth -= 1
        return found

    def _of(self, expr: ir.Expr) -> str:
        if isinstance(expr, ir.Const):
            return "bool" if isinstance(expr.value, bool) else "int" if isinstance(expr.value, int) else "text"
        if isinstance(expr, ir.Arg | ir.Local):
            if expr.name not in self.names:
                raise _wrong(f"{expr.name} has no value here", self.line)
            return self.names[expr.name]
        if isinstance(expr, ir.Field):
            columns = self.rows.get(expr.row)
            if columns is None or expr.column not in columns:
                raise _wrong(f"there is no {expr.row}.{expr.column} here", self.line)
            return columns[expr.column]
        if isinstance(expr, ir.Same):
            return "bool"
        if isinstance(expr, ir.Query):
            return self._query(expr)
        assert isinstance(expr, ir.Operation)
        return self._operator(expr)

    def _query(self, query: ir.Query) -> str:
        if query.is_local:
            self.rows[query.var] = self.rows[query.source]
        else:
            self.rows[query.var] = dict(self.table(query.source).columns)
        self.need(query.where, "bool", "the condition of a query")
        if query.kind in ("exists", "count"):
            return "bool" if query.kind == "exists" else "int"
        assert query.value is not None
        if query.kind == "forall":
            self.need(query.value, "bool", "what should hold for all rows")
            return "bool"
        self.need(query.value, "int", f"what {query.kind.upper()} is of")
        return "int"

    def _operator(self, expr: ir.Operation) -> str:
        if expr.op in ("and", "or", "not"):
            for arg in expr.args:
                self.need(arg, "bool", f"a part of {expr.op.upper()}")
            return "bool"
        if expr.op == "ite":
            self.need(expr.args[0], "bool", "the condition of a choice")
            first = self.of(expr.args[1])
            self.need(expr.args[2], first, "the other side of a choice")
            return first
        if expr.op in ("=", "<>"):
            self.need(expr.args[1], self.of(expr.args[0]), f"the right side of {expr.op}")
            return "bool"
        for arg in expr.args:
            self.need(arg, "int", f"a part of {expr.op}")
        return "bool" if expr.op in ("<", "<=") else "int"


def _sort_class(sort: str) -> str:
    return "int" if sort in _NUMBERS else sort


def _sort_words(sort: str) -> str:
    return {"int": "a number", "id": "a number", "bool": "a condition", "text": "a text"}[sort]


class _StatementChecker(_Sorts):
    """Checks the statements of a transaction, in order."""

    def __init__(self, program: ir.Application, txn: ir.TransactionProgram) -> None:
        super().__init__(program, txn.line)
        self.txn = txn
        for param in txn.params:
            if param.fields:
                self.rows[param.name] = dict(param.fields)
            else:
                self.names[param.name] = param.sort

    def run(self) -> None:
        for condition in self.txn.assume:
            self.need(condition, "bool", "what callers promise")
        self.block(self.txn.body)

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            self.line = stmt.line
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.SelectOne):
            self.rows[stmt.row] = dict(self.table(stmt.table).columns)
            self.need(stmt.where, "bool", "the condition")
        elif isinstance(stmt, ir.SelectAll):
            self.rows[stmt.var] = self.rows[stmt.rows] = dict(self.table(stmt.table).columns)
            self.need(stmt.where, "bool", "the condition")
        elif isinstance(stmt, ir.Let):
            sorts = [self.of(value) for value in stmt.values]
            self.names.update(zip(stmt.names, sorts, strict=True))
        elif isinstance(stmt, ir.Require):
            self.need(stmt.condition, "bool", "what is required")
        elif isinstance(stmt, ir.If):
            self.need(stmt.condition, "bool", "the condition")
            self.block(stmt.then)
            self.block(stmt.otherwise)
        elif isinstance(stmt, ir.ForEach):
            self.rows[stmt.var] = self.rows[stmt.source]
            self.block(stmt.body)
        else:
            self.change(stmt)

    def change(self, stmt: ir.Stmt) -> None:
        assert isinstance(stmt, ir.Insert | ir.Update | ir.Delete)
        table = self.table(stmt.table)
        if isinstance(stmt, ir.Insert):
            for (column, sort), value in zip(table.columns, stmt.values, strict=True):
                self.need(value, sort, f"the value of {column}")
            return
        self.rows[stmt.var] = dict(table.columns)
        self.need(stmt.where, "bool", "the condition")
        for column, value in stmt.sets if isinstance(stmt, ir.Update) else ():
            if column in table.key:
                hint = "delete the row and insert another"
                raise _wrong(f"{column} is in the primary key of {table.name} and cannot be updated", stmt.line, hint)
            self.need(value, table.sort(column), f"the value of {column}")
