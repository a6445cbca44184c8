"""Is a program well formed? Names, sorts and keys, with the line of what is wrong."""

from plume_py.base.errors import InputError
from plume_py.reasoning.infer.program import ir

_NUMBERS = ("int", "id")
DEPTH = 150  # of an expression: every engine follows it by recursion


def validate(program: ir.Application) -> ir.Application:
    """The program itself, or an error at the line of the first mistake."""
    if not program.transactions:
        raise InputError("the program has no transaction", hint="declare one with @app.txn, or -- transaction: in SQL")
    for clause in (*program.invariant, *program.enforced):
        _Sorts(program, clause.line).need(clause.condition, "bool", f"the invariant {clause.name}")
    for txn in program.transactions:
        _Checker(program, txn).run()
    return program


def _wrong(problem: str, line: int, hint: str = "") -> InputError:
    return InputError(problem, where=f"line {line}", hint=hint)


class _Sorts:
    """The sorts of expressions."""

    def __init__(self, program: ir.Application, line: int) -> None:
        self.program, self.line = program, line
        self.depth = 0
        self.names: dict[str, str] = {}
        self.rows: dict[str, dict[str, ir.Sort]] = {}

    def table(self, name: str) -> ir.Table:
        """A table that exists."""
        if name not in [table.name for table in self.program.tables]:
            raise _wrong(
                f"there is no table {name}", self.line, f"there is {', '.join(t.name for t in self.program.tables)}"
            )
        return self.program.table(name)

    def need(self, expr: ir.Expr, sort: str, what: str) -> None:
        """An error unless the expression has this sort."""
        found = self.of(expr)
        if _class(found) != _class(sort):
            raise _wrong(f"{what} is {_spoken(found)}, but should be {_spoken(sort)}", self.line)

    def of(self, expr: ir.Expr) -> str:
        """The sort of an expression."""
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


def _class(sort: str) -> str:
    return "int" if sort in _NUMBERS else sort


def _spoken(sort: str) -> str:
    return {"int": "a number", "id": "a number", "bool": "a condition", "text": "a text"}[sort]


class _Checker(_Sorts):
    """The statements of a transaction, in order."""

    def __init__(self, program: ir.Application, txn: ir.TransactionProgram) -> None:
        super().__init__(program, txn.line)
        self.txn = txn
        for param in txn.params:
            if param.fields:
                self.rows[param.name] = dict(param.fields)
            else:
                self.names[param.name] = param.sort

    def run(self) -> None:
        """Check it all."""
        for condition in self.txn.assume:
            self.need(condition, "bool", "what callers promise")
        self.block(self.txn.body)

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        """Check statements."""
        for stmt in body:
            self.line = stmt.line
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        """Check one statement."""
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
        """INSERT, UPDATE, DELETE."""
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
