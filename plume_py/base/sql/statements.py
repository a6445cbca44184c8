"""Read single statements: SELECT … INTO, INSERT, UPDATE, DELETE, assignments.

``blocks`` calls this module for each statement. A clause that the model cannot express is an error.
"""

from typing import Any

from plume_py.base.sql.model import Assign, Change, Conflict, Delete, Insert, Select, Statement, Update
from plume_py.base.sql.syntax import condition, engine, origin_of, statement, wrong

# Clauses that the model cannot express.
_UNREAD = {"limit": "LIMIT", "order": "ORDER BY", "exists": "WHERE EXISTS", "partition": "PARTITION"}
_UNREAD |= {"overwrite": "OVERWRITE", "by_name": "BY NAME", "alternative": "OR …", "stored": "STORED"}
# An INSERT converts values to these types anyway, so a cast to one of them can be removed.
_AS_INSERTED = ("INT", "BIGINT", "SMALLINT", "DECIMAL", "VARCHAR", "TEXT", "UUID", "DATE", "TIMESTAMP", "BOOLEAN")
_OF_NEW_TABLE = ("temp", "temporary", "unlogged", "table")
_WORDS = ("INSERT", "UPDATE", "DELETE")
_QUERY_HINT = "read what is needed with SELECT … INTO, and use the variables"


def read_statement(tokens: list[Any], text: str, line: int, any_query: bool = False) -> tuple[Statement, ...]:
    """Return the statements of these tokens; ``text`` is their text. ``any_query``: see ``read_select``."""
    word = next((token.text.upper() for token in tokens if token.text != "(" or not any_query), "(")
    if word in ("SELECT", "PERFORM") or (word == "WITH" and not any(t.text.upper() in _WORDS for t in tokens)):
        return (read_select(tokens, text, line, any_query),)
    if word == "SET" or _assigns(tokens):
        return _assignments(tokens, text, line)
    if word not in _WORDS:
        hint = "use SELECT … INTO, INSERT, UPDATE, DELETE, IF, FOR … IN SELECT, SET, ROLLBACK"
        raise wrong(f"{word:.40} is not supported in a transaction", line, hint)
    plain, into = _without_into(tokens, text, line, after="RETURNING")
    tree = statement(plain, line)
    for part, what in _UNREAD.items():
        if tree.args.get(part):
            raise wrong(f"{word} with {what} is not supported", line, "choose the rows by a condition")
    if tree.args.get("with_") or tree.args.get("with"):
        raise wrong(f"{word} with WITH is not supported", line, _QUERY_HINT)
    if not isinstance(tree, engine().exp.Expression) or not isinstance(tree.this, engine().exp.Expression):
        raise wrong(f"{word} of no table", line)
    found = {"INSERT": _insert, "UPDATE": _update, "DELETE": _delete}[word](tree, text, line, into)
    if into and len(into) != len(found.returning) and not _is_record(found.returning, into):
        raise wrong(f"RETURNING gives {len(found.returning)} values to {len(into)} variables", line)
    if not any_query:
        _exactly(found, line)
    return (found,)


def _exactly(stmt: Change, line: int) -> None:
    """Raise an error for clauses that only an analysis of conflicts can use, because it over-approximates them."""
    if isinstance(stmt, Delete) and stmt.others:
        raise wrong("DELETE … USING is not supported", line, "use WHERE EXISTS (SELECT …)")


def initial_rows(text: str, line: int) -> Insert:
    """Read an INSERT among the tables: rows of constants."""
    found = _insert(statement(text, line), text, line, ())
    if found.query is not None or found.conflict is not None or found.returning:
        raise wrong("an INSERT beside the tables can have constants only", line)
    return found


def into_names(stmt: Statement) -> tuple[str, ...]:
    """Return the variables that a statement sets."""
    if isinstance(stmt, Select | Change):
        return stmt.into
    return (stmt.name,) if isinstance(stmt, Assign) and stmt.name else ()


def read_select(tokens: list[Any], text: str, line: int, any_query: bool = False) -> Select:
    """Read SELECT … INTO a, b FROM table WHERE …, with or without FOR UPDATE.

    ``any_query``: also allow joins, grouping, UNION, WITH and a SELECT in FROM, for an analysis that only needs the
    tables that are read.
    """
    plain, into = _without_into(tokens, text, line)
    if tokens[0].text.upper() == "PERFORM":
        plain = "SELECT" + plain[len("PERFORM") :]
    tree = statement(plain, line)
    exp = engine().exp
    any_query = any_query or not into  # without INTO, the rows are not used
    if not isinstance(tree, exp.Select | exp.SetOperation if any_query else exp.Select):
        raise wrong("UNION, INTERSECT and EXCEPT are not supported", line)
    if tree.find(exp.Insert, exp.Update, exp.Delete):
        raise wrong("a SELECT that writes is not supported", line, "write two statements")
    table = "" if any_query or tree.args.get("joins") else source(tree, line)
    if into and len(into) != len(tree.selects) and not _is_record(tree.selects, into):
        raise wrong(f"SELECT gives {len(tree.selects)} values to {len(into)} variables", line)
    if not any_query and origin_of(tree) is None:
        raise wrong("SELECT without FROM is not supported", line, "use SET variable = value")
    return Select(line, text, tree, into, table, _lock(tree))


def _is_record(values: Any, into: tuple[str, ...]) -> bool:
    """Return whether one variable gets a whole row."""
    return len(into) == 1 and len(values) == 1 and bool(values[0].is_star)


def _lock(tree: Any) -> str:
    """Return the weakest lock of a query: "skip" skips locked rows, "share" allows other locks."""
    kinds = set()
    for lock in tree.find_all(engine().exp.Lock):
        skips = lock.args.get("wait") is False
        kinds.add("skip" if skips else "update" if lock.args.get("update") else "share")
    return next((kind for kind in ("skip", "share", "update") if kind in kinds), "")


def _without_into(tokens: list[Any], text: str, line: int, after: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the text with "INTO a, b" replaced by blanks and line ends, and the names."""
    base, depth, begin, armed = tokens[0].start, 0, -1, not after
    for i, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        armed = armed or token.text.upper() == after
        if armed and depth == 0 and token.text.upper() == "INTO":
            begin = i
            break
    if begin < 0:
        return text, ()
    names, at = [], begin + 1
    while at < len(tokens):
        while at < len(tokens) and (tokens[at].text in ("@", ":") or tokens[at].text.upper() == "STRICT"):
            at += 1
        if at == len(tokens):
            break
        names.append(str(tokens[at].text).lower())
        at += 1
        if at == len(tokens) or tokens[at].text != ",":
            break
        at += 1
    if names[:1] and names[0] in _OF_NEW_TABLE and at < len(tokens) and tokens[at].text.upper() != "FROM":
        raise wrong("SELECT … INTO a new table is not supported", line, _QUERY_HINT)
    cut = tokens[at].start - base if at < len(tokens) else len(text)
    start = tokens[begin].start - base
    return text[:start] + "\n" * text[start:cut].count("\n") + " " + text[cut:], tuple(names)


def source(tree: Any, line: int) -> str:
    """Return the only table that a SELECT reads; raise an error for clauses that are not supported."""
    exp = engine().exp
    if tree.args.get("joins"):
        raise wrong("joins are not supported", line, "write WHERE EXISTS (SELECT …), or two SELECTs")
    for part, what in (
        ("group", "GROUP BY"),
        ("having", "HAVING"),
        ("distinct", "DISTINCT"),
        ("with_", "WITH"),
        ("with", "WITH"),
        ("windows", "WINDOW"),
        ("offset", "OFFSET"),
    ):
        if tree.args.get(part):
            raise wrong(
                f"{what} is not supported", line, "write it with EXISTS, COUNT, SUM, MIN or MAX over a condition"
            )
    origin = tree.args.get("from_") or tree.args.get("from")
    if origin is None:
        raise wrong("SELECT without FROM is not supported", line, "use SET variable = value")
    if not isinstance(origin.this, exp.Table):
        raise wrong("a SELECT in FROM is not supported", line)
    return str(origin.this.name).lower()


def _assigns(tokens: list[Any]) -> bool:
    texts = [token.text for token in tokens[:3]]
    return texts[1:2] == [":="] or texts[1:3] == [":", "="] or texts[1:2] == ["="]


def _assignments(tokens: list[Any], text: str, line: int) -> tuple[Statement, ...]:
    """SET a = 1, b = 2; or a := 1."""
    parts: list[list[Any]] = [[]]
    depth = 0
    for token in tokens[1:] if tokens[0].text.upper() == "SET" else tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    base = tokens[0].start
    return tuple(
        _assignment(text[part[0].start - base : part[-1].end + 1 - base] if part else "", line) for part in parts
    )


def _assignment(text: str, line: int) -> Assign:
    name, _, value = text.partition("=")
    name = name.rstrip(": ").lstrip("@: ").lower()
    if not name.isidentifier() or not value.strip():
        raise wrong("cannot read this assignment", line, "write SET variable = value")
    return Assign(line, text, name, condition(value.strip(), line))


def _returning(tree: Any) -> tuple[Any, ...]:
    part = tree.args.get("returning")
    return tuple(part.expressions) if part else ()


def _insert(tree: Any, text: str, line: int, into: tuple[str, ...]) -> Insert:
    exp = engine().exp
    if not isinstance(tree, exp.Insert):
        raise wrong("cannot read this INSERT", line)
    target = tree.this
    columns = tuple(part.name.lower() for part in target.expressions) if isinstance(target, exp.Schema) else ()
    name = (target.this if isinstance(target, exp.Schema) else target).name.lower()
    rows: tuple[tuple[Any, ...], ...] = ()
    query = None
    if tree.args.get("default"):
        rows = ((),)
    elif isinstance(tree.expression, exp.Values):
        rows = tuple(
            tuple(row.expressions) if isinstance(row, exp.Tuple) else (row,) for row in tree.expression.expressions
        )
    else:
        query = tree.expression.unnest() if tree.expression is not None else None
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise wrong("INSERT without VALUES or SELECT", line)
        if (listed := _listed_rows(query)) is not None:
            rows, query = listed, None
    conflict = _conflict(tree, line)
    return Insert(line, text, name, tree, _returning(tree), into, columns, rows, query, conflict)


def _listed_rows(query: Any) -> tuple[tuple[Any, ...], ...] | None:
    """Return the rows of SELECT a FROM (VALUES (…), …) AS v(a, b) ORDER BY b, as SQLAlchemy inserts many at once."""
    exp = engine().exp
    origin = origin_of(query)
    if not isinstance(query, exp.Select) or origin is None or not isinstance(origin.this, exp.Values):
        return None
    alias = origin.this.args.get("alias")
    names = [str(column.name).lower() for column in alias.columns] if alias is not None else []
    if any(
        value and part not in ("expressions", "from_", "from", "order", "kind") for part, value in query.args.items()
    ):
        return None
    places = []
    for part in query.expressions:
        plain = part.this if isinstance(part, exp.Cast) and part.to.sql(dialect="").upper() in _AS_INSERTED else part
        if not isinstance(plain, exp.Column) or plain.name.lower() not in names:
            return None
        places.append(names.index(plain.name.lower()))
    rows = [tuple(row.expressions) for row in origin.this.expressions if isinstance(row, exp.Tuple)]
    if len(rows) < len(origin.this.expressions) or any(len(row) != len(names) for row in rows):
        return None
    return tuple(tuple(row[place] for place in places) for row in rows)


def _conflict(tree: Any, line: int) -> Conflict | None:
    exp = engine().exp
    part = tree.args.get("conflict")
    if part is None:
        return Conflict((), (), None, "INSERT IGNORE") if tree.args.get("ignore") else None
    action = str(part.args.get("action") or "").upper()
    keys = part.args.get("conflict_keys") or ()
    if part.args.get("constraint") is not None:
        raise wrong("ON CONFLICT ON CONSTRAINT is not supported", line, "name its columns: ON CONFLICT (column, …)")
    if any(not isinstance(key.unalias(), exp.Column | exp.Identifier | exp.Ordered) for key in keys):
        raise wrong("ON CONFLICT of an expression is not supported", line, "name columns: ON CONFLICT (column, …)")
    target = tuple(str((key.this if isinstance(key, exp.Ordered) else key).name).lower() for key in keys)
    where = part.args.get("where")
    spelled = "ON DUPLICATE KEY" if part.args.get("duplicate") else "ON CONFLICT"
    return Conflict(target, _sets(part, line) if "UPDATE" in action else (), where.this if where else None, spelled)


def _sets(tree: Any, line: int) -> tuple[tuple[str, Any], ...]:
    exp = engine().exp
    sets: list[tuple[str, Any]] = []
    for part in tree.expressions:
        pairs = [(part.this, part.expression)] if isinstance(part, exp.EQ) else []
        if pairs and isinstance(part.this, exp.Tuple) and isinstance(part.expression, exp.Tuple):
            pairs = list(zip(part.this.expressions, part.expression.expressions, strict=False))
            if len(part.this.expressions) != len(part.expression.expressions):
                pairs = []
        if not pairs or not all(isinstance(column, exp.Column) for column, _ in pairs):
            raise wrong("only SET column = value is supported", line)
        for column, value in pairs:
            if column.name.lower() in dict(sets):
                raise wrong(f"UPDATE sets {column.name} twice", line)
            sets.append((column.name.lower(), value))
    return tuple(sets)


def _update(tree: Any, text: str, line: int, into: tuple[str, ...]) -> Update:
    origin = tree.args.get("from_") or tree.args.get("from")
    joined = tuple(tree.this.args.get("joins") or ())
    others = (origin.this, *(origin.this.args.get("joins") or ())) if origin else joined
    name = tree.this.name.lower()
    own = {name, str(tree.this.alias_or_name).lower()}
    for part in tree.expressions if joined else ():
        if part.this.name and str(part.this.table).lower() not in own:
            hint = f"write {tree.this.alias_or_name}.column, and one statement for each table that is written"
            raise wrong("UPDATE of several tables", line, hint)
    where = tree.args.get("where")
    return Update(
        line, text, name, tree, _returning(tree), into, _sets(tree, line), where.this if where else None, tuple(others)
    )


def _delete(tree: Any, text: str, line: int, into: tuple[str, ...]) -> Delete:
    others = (*(tree.args.get("using") or ()), *(tree.this.args.get("joins") or ()))
    named = [table.name.lower() for table in tree.args.get("tables") or ()]
    if named not in ([], [tree.this.name.lower()], [str(tree.this.alias_or_name).lower()]):
        raise wrong("DELETE of several tables is not supported", line, "write one statement for each")
    where = tree.args.get("where")
    return Delete(
        line, text, tree.this.name.lower(), tree, _returning(tree), into, where.this if where else None, others
    )
