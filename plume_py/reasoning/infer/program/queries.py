"""What a statement takes of several rows or tables: one of them (LIMIT 1), locks, INSERT … SELECT, UPDATE … FROM.

Some become several statements: between them others may commit, so more can happen than with one, never less.
"""

from typing import Any, Protocol

from plume_py.base import sql
from plume_py.base.sql.access import conjuncts, joined
from plume_py.base.sql.model import all_statements
from plume_py.base.sql.syntax import engine, wrong
from plume_py.base.text import nearest
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.inserts import Around, Inserting
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation
from plume_py.reasoning.infer.program.sql_expressions import Aggregates, Translator, is_aggregate, takes_one


class Body(Around, Protocol):
    """The transaction that a statement is in, and what it knows of loops."""

    file: sql.File
    in_loop: bool

    def sets(self, stmt: sql.Update, inside: Translator, table: sql.SqlTable) -> tuple[tuple[str, Expr], ...]:
        """The new values of an UPDATE."""


def rows_meant(body: Around, at: Translator, tree: Any, line: int) -> tuple[Translator, Aggregates]:
    """The rows of a SELECT. Of those that LIMIT 1 leaves, any one: its key is a value that the database chooses.

    That is more than the first in some order, and more than those that nobody has locked.
    """
    if not takes_one(tree) or is_aggregate(tree):
        return at.inner(tree)
    plain = tree.copy()
    plain.set("limit", None)
    plain.set("order", None)
    below, rows = at.inner(plain)
    table = body.table(rows.table, line)
    if not table.primary_key:
        raise wrong("LIMIT 1 of a table without primary key is not supported", line, "give it one")
    order = tree.args.get("order")
    for column in order.find_all(engine().exp.Column) if order else ():
        if column.name.lower() not in table.names:
            raise wrong(f"{table.name} has no column {column.name:.60}", line, nearest(column.name, table.names))
    kinds = {column.name: column.type for column in table.columns}
    chosen = [
        Operation("=", (Field(rows.var, name), body.unknown(f"any_{name}", _key_sort(kinds[name]), line)))
        for name in table.primary_key
    ]
    return below, Aggregates(rows.table, rows.var, ir.conjunction([*chosen, rows.where]))


def _key_sort(kind: str) -> ir.Sort:
    return "text" if kind == "text" else "bool" if kind == "bool" else "id"


def locks(tree: Any, table: str, line: int, file: sql.File) -> bool:
    """Does a SELECT lock its rows? FOR SHARE of one row counts as reading it, which keeps nobody away."""
    found = False
    for lock in tree.args.get("locks") or ():
        if lock.args.get("update") and lock.args.get("key"):
            raise wrong("FOR NO KEY UPDATE is not supported", line, "use FOR UPDATE")
        if lock.args.get("wait") is False and not (takes_one(tree) and lock.args.get("update")):
            raise wrong("SKIP LOCKED is not supported here", line, "use FOR UPDATE alone, or with LIMIT 1")
        # NOWAIT gives up where FOR UPDATE waits: what it does otherwise is the same
        if is_aggregate(tree):
            raise wrong("an aggregate cannot be FOR UPDATE", line, "lock the rows with a SELECT of their columns")
        if not lock.args.get("update") and _comes_and_goes(table, file):
            said = f"FOR SHARE is not supported where rows of {table} are deleted and inserted"
            raise wrong(said, line, "use FOR UPDATE")
        found = found or bool(lock.args.get("update"))
    return found


def chosen_row(body: Body, select: Any, line: int) -> tuple[list[ir.Stmt], set[str], tuple[Expr, Expr]]:
    """A subquery of one row, read before its statement: how, into which variables, is there a row, and its value."""
    at = body.at(line)
    below, rows = rows_meant(body, at, select, line)
    lock = locks(select, rows.table, line, body.file)
    if select.args.get("locks") and not lock:
        raise wrong("FOR SHARE in a subquery is not supported", line, "use FOR UPDATE")
    found, count, value = (at.fresh(stem) for stem in ("rows", "row_count", "selected"))
    number = ir.Query("count", found, at.fresh("row"), ir.TRUE, is_local=True)
    read = below.of_the_row(select.expressions[0].unalias(), found, rows.var)
    first: list[ir.Stmt] = [
        ir.SelectAll(line, found, rows.table, rows.var, rows.where, lock),
        ir.Let(line, (count, value), (number, read)),
    ]
    return first, {count, value}, (Operation("<", (Const(0), ir.Local(count))), ir.Local(value))


def require_one_row(stmt: sql.Select, where: Expr, var: str, table: ir.Table) -> None:
    """FOR SHARE of several rows is no look at one moment."""
    if stmt.lock == "share" and not ir.pinned(where, var, table):
        raise wrong("FOR SHARE needs a row by its primary key", stmt.line, "use FOR UPDATE")


def _comes_and_goes(table: str, file: sql.File) -> bool:
    changes = [stmt for txn in file.transactions for stmt in all_statements(txn.body) if isinstance(stmt, sql.Change)]
    own = [stmt for stmt in changes if stmt.table == table]
    return any(isinstance(s, sql.Delete) for s in own) and any(isinstance(s, sql.Insert) for s in own)


def insert_select(body: Body, stmt: sql.Insert) -> list[ir.Stmt]:
    """INSERT … SELECT: the rows are read, and then inserted one after the other."""
    if stmt.conflict is not None or stmt.returning or takes_one(stmt.query):
        raise wrong(
            "this INSERT … SELECT is not supported", stmt.line, "use FOR row IN SELECT … LOOP INSERT … END LOOP"
        )
    inserting = Inserting(body, stmt)
    query: Any = stmt.query
    below, rows = body.at(stmt.line).inner(query)
    given = list(query.expressions)
    if any(part.is_star for part in given):
        raise wrong("INSERT … SELECT * is not supported", stmt.line, "list the columns")
    inserting.fits(given)
    if _is_one_row(given):
        below.aggregates = rows
        names = tuple(below.fresh("selected") for _ in given)
        body.learn(names, stmt.line)
        read: ir.Stmt = ir.Let(stmt.line, names, tuple(below.expr(part.unalias()) for part in given))
        local = [engine().exp.column(name) for name in names]
        return [read, *inserting.row(inserting.values(dict(zip(inserting.columns, local, strict=True))))]
    found, var = below.fresh("rows"), below.fresh(rows.table[:1])
    alias, table, _ = below.scopes[-1]
    inserting.scopes = [(alias, table, var)]
    inside, body.in_loop = body.in_loop, True
    values = inserting.values(dict(zip(inserting.columns, (part.unalias() for part in given), strict=True)))
    body.in_loop = inside
    return [
        ir.SelectAll(stmt.line, found, rows.table, rows.var, rows.where),
        ir.ForEach(stmt.line, var, found, tuple(inserting.row(values))),
    ]


def _is_one_row(values: list[Any]) -> bool:
    """Aggregates, and what is no column beside them."""
    exp = engine().exp
    columns = [column for value in values for column in value.find_all(exp.Column)]
    inside = [column for column in columns if column.find_ancestor(exp.AggFunc)]
    return any(value.find(exp.AggFunc) for value in values) and len(inside) == len(columns)


_FROM = "fix the other table's row by its whole primary key, or read the value first"


def update_from(body: Body, stmt: sql.Update, alias: str) -> list[ir.Stmt]:
    """UPDATE … FROM one row of another table, which is read first, by its key; that is not asked again."""
    line = stmt.line
    ties = joined(stmt.others)
    if ties is None or len(ties[0]) != 1 or stmt.returning:
        raise wrong("this UPDATE … FROM is not supported", line, _FROM)
    (node,), conditions = ties
    table, other = body.table(stmt.table, line), body.table(str(node.name), line)
    names = body.at(line)
    var, row, found, count = (names.fresh(stem) for stem in (table.name[:1], other.name[:1], "rows", "row_count"))
    inside = body.at(line, [(alias, table, var), (str(node.alias or "").lower(), other, row)])
    parts = [inside.expr(part) for part in (*conditions, *conjuncts(stmt.where))]
    own = ir.fixed(ir.conjunction([part for part in parts if not _mentions(part, row)]), var)

    def known(part: Expr) -> Expr | None:
        return own.get(part.column) if isinstance(part, Field) and part.row == var else None

    asked = [ir.rewritten(part, known) for part in parts if _mentions(part, row)]
    about = ir.conjunction([part for part in asked if not _mentions(part, var)])
    if not ir.pinned(about, row, names.ir_table(other)):
        raise wrong("this UPDATE … FROM is not supported", line, _FROM)
    texts = {column.name for column in other.columns if column.type == "text"}

    def read(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.row != row:
            return None
        if part.column in texts:
            raise wrong(f"{part.column} is a text, which UPDATE … FROM cannot take", line, "read the value first")
        each = names.fresh("row")
        return ir.Query("max", found, each, ir.TRUE, Field(each, part.column), Const(0), is_local=True)

    number = ir.Query("count", found, names.fresh("row"), ir.TRUE, is_local=True)
    some = Operation("<", (Const(0), ir.Local(count)))
    where = ir.conjunction([*(ir.rewritten(part, read) for part in parts), some])
    sets = tuple((column, ir.rewritten(value, read)) for column, value in body.sets(stmt, inside, table))
    return [
        ir.SelectAll(line, found, other.name, row, about),
        ir.Let(line, (count,), (number,)),
        ir.Update(line, table.name, var, where, sets),
    ]


def _mentions(part: Expr, row: str) -> bool:
    return any(isinstance(node, Field) and node.row == row for node in ir.walk(part))


def arguments_of(kind: str, txn: sql.SqlTransaction, file: sql.File) -> set[str]:
    """The arguments that are put into columns of this type, or compared with them: so they have it, too."""
    exp = engine().exp
    named = {column.name for table in file.tables for column in table.columns if column.type == kind}
    found: set[str] = set()
    for stmt in all_statements(txn.body):
        pairs: list[tuple[str, Any]] = []
        if isinstance(stmt, sql.Insert) and (table := file.table(stmt.table)) is not None:
            kinds = {column.name: column.type for column in table.columns}
            for values in stmt.rows:
                given = zip(stmt.columns or table.names, values, strict=False)
                pairs += [(name, value) for name, value in given if kinds.get(name) == kind]
        if isinstance(stmt, sql.Update):
            pairs += [(name, value) for name, value in stmt.sets if name in named]
        pairs += _compared(stmt, named)
        found |= {str(v.name).lower() for _, v in pairs if isinstance(v, exp.Placeholder | exp.Parameter | exp.Column)}
    return found


def _compared(stmt: sql.Statement, named: set[str]) -> list[tuple[str, Any]]:
    """The values that a statement compares with these columns."""
    exp = engine().exp
    trees = [stmt.tree] if isinstance(stmt, sql.Select | sql.Change) else []
    found = []
    for node in (node for tree in trees for node in tree.find_all(exp.EQ, exp.NEQ)):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(one, exp.Column) and one.name.lower() in named and not isinstance(other, exp.Column):
                found.append((one.name.lower(), other))
    for node in (node for tree in trees for node in tree.find_all(exp.In)):
        if isinstance(node.this, exp.Column) and node.this.name.lower() in named:
            found += [(node.this.name.lower(), value) for value in node.expressions]
    return found


def is_more(tree: Any) -> bool:
    """Is a query more than rows of one table under a condition, or aggregates over them?"""
    exp = engine().exp
    parts = ("joins", "group", "having", "distinct", "with_", "with", "windows", "offset", "order", "limit", "laterals")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in parts):
        return True
    origin = tree.args.get("from_") or tree.args.get("from")
    return origin is None or not isinstance(origin.this, exp.Table)


def asks_for_count(stmt: sql.Statement) -> bool:
    """Does a statement begin with a look at FOUND or ROW_COUNT?"""
    exp = engine().exp
    tree = stmt.condition.tree if isinstance(stmt, sql.If) else stmt.value if isinstance(stmt, sql.Assign) else None
    if tree is None:
        return False
    called = [str(node.name).lower() for node in tree.find_all(exp.Anonymous)]
    return "row_count" in called or any(c.name.lower() == "found" and not c.table for c in tree.find_all(exp.Column))


def dialects(file: sql.File) -> tuple[tuple[str, int], ...]:
    """What only one database has, or does in its own way, and where."""
    found = []
    for stmt in (stmt for txn in file.transactions for stmt in all_statements(txn.body)):
        if isinstance(stmt, sql.Insert) and stmt.conflict is not None:
            found.append((stmt.conflict.spelled, stmt.line))
        elif isinstance(stmt, sql.Insert) and stmt.query is not None:
            found.append(("INSERT … SELECT", stmt.line))
        elif isinstance(stmt, sql.Update) and stmt.others:
            found.append(("UPDATE … FROM", stmt.line))
        elif isinstance(stmt, sql.Select) and stmt.lock == "share":
            found.append(("FOR SHARE", stmt.line))
    return tuple(found)
