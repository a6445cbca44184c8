"""Check that every name in a transaction is a column or a variable.

Analyses of conflicts call this. They count the columns that a statement mentions, so a misspelled column would silently
be missing from its reads.
"""

from collections.abc import Sequence
from typing import Any

from plume_py.base.sql.model import (
    Assign,
    Change,
    File,
    If,
    Insert,
    Loop,
    Repeat,
    Select,
    SqlTransaction,
    Statement,
    all_statements,
)
from plume_py.base.sql.statements import into_names
from plume_py.base.sql.syntax import engine, origin_of, wrong
from plume_py.base.text import nearest

# Columns of a table with unknown columns, such as a SELECT in FROM; any name may be one of them.
_ANY = None
_Names = dict[str, tuple[str, ...] | None]
# Variables that exist without declaration.
_BUILT_IN = {"found", "default"}


def resolve(transaction: SqlTransaction, file: File) -> None:
    """Raise an error at the first name that is neither a column nor a variable."""
    names = _NameChecker(transaction, file)
    for stmt in all_statements(transaction.body):
        names.statement(stmt)


def resolve_statement(stmt: Statement, transaction: SqlTransaction, file: File) -> None:
    """Do the same for one statement, without the statements inside it."""
    _NameChecker(transaction, file).statement(stmt)


class _NameChecker:
    def __init__(self, transaction: SqlTransaction, file: File) -> None:
        self.file = file
        self.line = transaction.line
        self.arguments = {param.name for param in transaction.params}
        self.variables = {*self.arguments, *transaction.variables, *_BUILT_IN}
        for stmt in all_statements(transaction.body):
            self.variables.update(into_names(stmt))
            if isinstance(stmt, Loop):
                self.variables.add(stmt.row)
            elif isinstance(stmt, Repeat) and stmt.name:
                self.variables.add(stmt.name)

    def statement(self, stmt: Statement) -> None:
        """Check the names of a statement, without the statements inside it."""
        self.line = stmt.line
        if isinstance(stmt, Change):
            self.change(stmt)
        else:
            self.trees(_trees(stmt), [])

    def change(self, stmt: Change) -> None:
        """Check a statement that writes; its table is visible by name, by alias, and as EXCLUDED."""
        target = stmt.tree.this
        target = target.this if isinstance(target, engine().exp.Schema) else target
        columns = self.columns(stmt.table)
        own: _Names = {stmt.table: columns, str(target.alias_or_name).lower(): columns}
        if isinstance(stmt, Insert):
            self.trees([value for row in stmt.rows for value in row], [])
            self.trees([stmt.query], [])
            if stmt.conflict is not None:
                scopes = [own | {"excluded": columns}]
                self.trees([*(value for _, value in stmt.conflict.sets), stmt.conflict.where], scopes)
            self.trees(stmt.returning, [own])
            return
        for node in getattr(stmt, "others", ()):
            own |= self.source(node)
        others = [node.args.get("on") for node in getattr(stmt, "others", ())]
        values = [value for _, value in getattr(stmt, "sets", ())]
        self.trees([*values, getattr(stmt, "where", None), *others, *stmt.returning], [own])

    def trees(self, trees: Sequence[Any], scopes: list[_Names]) -> None:
        for tree in trees:
            if tree is not None:
                self.tree(tree, scopes)

    def tree(self, node: Any, scopes: list[_Names]) -> None:
        """Check an expression or query; ``scopes`` has the tables around it, the innermost last."""
        exp = engine().exp
        if isinstance(node, exp.Select):
            self.select(node, scopes)
            return
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            self.column(node, scopes)
        elif isinstance(node, exp.Placeholder | exp.Parameter):
            self.placeholder(node)
        if isinstance(node, exp.Subquery | exp.SetOperation) and (node.args.get("with_") or node.args.get("with")):
            scopes = [*scopes, self.with_names(node)]
        for child in node.iter_expressions():
            self.tree(child, scopes)

    def select(self, node: Any, scopes: list[_Names]) -> None:
        """Check a SELECT; the aliases of its values are visible in the clauses that come after the values."""
        exp = engine().exp
        inner = self.select_scope(node)
        given = tuple(str(part.alias).lower() for part in node.expressions if isinstance(part, exp.Alias))
        for key, value in node.args.items():
            scope = inner | {"": given} if key in ("order", "group", "having", "qualify", "distinct") else inner
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expression):
                    self.tree(child, [*scopes, scope])

    def select_scope(self, node: Any) -> _Names:
        """Return the tables of a SELECT."""
        found = self.with_names(node)
        origin = origin_of(node)
        for part in [
            *([origin.this] if origin else []),
            *(node.args.get("joins") or ()),
            *(node.args.get("laterals") or ()),
        ]:
            found |= self.source(part, set(found))
        return found

    def with_names(self, node: Any) -> _Names:
        """Return the names of WITH name AS (…); their columns are unknown."""
        part = node.args.get("with_") or node.args.get("with")
        return {str(view.alias).lower(): _ANY for view in part.expressions} if part else {}

    def source(self, node: Any, views: set[str] = frozenset()) -> _Names:  # type: ignore[assignment]
        """Return the columns of a table, or of a query in its position."""
        exp = engine().exp
        inner: _Names = {}
        for join in node.args.get("joins") or ():
            inner |= self.source(join, views)
        node = node.this if isinstance(node, exp.Join) else node
        alias = str(node.alias_or_name).lower()
        if not isinstance(node, exp.Table) or str(node.name).lower() in views:
            return inner | {alias: _ANY}
        if any(str(view.alias).lower() == str(node.name).lower() for view in node.root().find_all(exp.CTE)):
            return inner | {alias: _ANY}
        return inner | {alias: self.columns(str(node.name))}

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of a table, or raise an error if it does not exist."""
        table = self.file.table(name)
        if table is None:
            raise wrong(f"no table {name:.60}", self.line, "give its CREATE TABLE, here or with --schema")
        return table.names

    def column(self, node: Any, scopes: list[_Names]) -> None:
        """Check a name: a column, a field of a row variable, or a variable."""
        name, owner = str(node.name).lower(), str(node.table).lower()
        for scope in reversed(scopes):
            if owner:
                if owner in scope:
                    columns = scope[owner]
                    if columns is not _ANY and name not in columns:
                        raise wrong(f"{owner} has no column {name:.60}", self.line, nearest(name, columns))
                    return
            elif any(columns is _ANY or name in columns for columns in scope.values()):
                return
        if owner in self.variables if owner else name in self.variables:
            return
        if owner:
            raise wrong(f"there is no table or row {owner:.60} here", self.line, nearest(owner, self.variables))
        known = {
            c for scope in scopes for columns in scope.values() for c in columns or ()
        } | self.variables - _BUILT_IN
        raise wrong(f"{name:.60} is neither a column nor a variable here", self.line, nearest(name, known))

    def placeholder(self, node: Any) -> None:
        """Check that :name is an argument, or a variable that is set somewhere."""
        name = str(node.name).lower()
        if name and name not in self.variables:
            hint = f"list it in the header of the transaction; {nearest(name, self.arguments)}"
            raise wrong(f":{name:.60} is no argument and no variable", self.line, hint)


def names_read(file: File) -> set[str]:
    """Return the names in all values and conditions of the file; columns that are not among them are only written."""
    exp = engine().exp
    trees: list[Any] = [item.condition.tree for item in file.invariants]
    trees += [check.tree for table in file.tables for check in table.checks]
    found = {name for table in file.tables for key in table.foreign_keys for name in (*key.columns, *key.to)}
    for transaction in file.transactions:
        trees += [item.tree for item in transaction.assume]
        for stmt in all_statements(transaction.body):
            trees += _trees(stmt)
    return found | {node.name.lower() for tree in trees for node in tree.find_all(exp.Column)}


def _trees(stmt: Statement) -> list[Any]:
    """Return the expressions that a statement reads, without the columns that it sets."""
    if isinstance(stmt, Select):
        return [stmt.tree]
    if isinstance(stmt, Loop):
        return [stmt.query.tree]
    if isinstance(stmt, Assign):
        return [stmt.value]
    if isinstance(stmt, If):
        return [stmt.condition.tree]
    if isinstance(stmt, Repeat):
        return [stmt.condition] if stmt.condition is not None else []
    if not isinstance(stmt, Change):
        return []
    found = [*stmt.returning, getattr(stmt, "where", None), *(value for _, value in getattr(stmt, "sets", ()))]
    if isinstance(stmt, Insert):
        found += [*(value for row in stmt.rows for value in row), stmt.query]
        if stmt.conflict is not None:
            found += [*(value for _, value in stmt.conflict.sets), stmt.conflict.where]
    return [tree for tree in (*found, *getattr(stmt, "others", ())) if tree is not None]
