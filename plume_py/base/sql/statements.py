"""Single statements: SELECT … INTO, INSERT, UPDATE, DELETE, assignments."""

from typing import Any

from plume_py.base.sql.model import Assign, Delete, Insert, Select, Statement, Update
from plume_py.base.sql.syntax import condition, engine, statement, wrong

# Parts of an UPDATE or DELETE that would be lost.
_UNREAD = {"with_": "WITH", "with": "WITH", "returning": "RETURNING", "conflict": "ON CONFLICT"}
_UNREAD |= {"limit": "LIMIT", "order": "ORDER BY"}


def simple(tokens: list[Any], text: str, line: int, any_query: bool = False) -> Statement:
    """The statement that these tokens are; ``text`` is the same, as written. ``any_query``: as of ``select``."""
    word = tokens[0].text.upper()
    if word == "SELECT" or (any_query and word == "WITH"):
        return select(tokens, text, line, any_query)
    if (
        word == "SET"
        or (len(tokens) > 2 and tokens[1].text == ":" and tokens[2].text == "=")
        or (len(tokens) > 1 and tokens[1].text == ":=")
    ):
        return _assignment(text, line)
    if word not in ("INSERT", "UPDATE", "DELETE"):
        hint = "use SELECT … INTO, INSERT, UPDATE, DELETE, IF, FOR … IN SELECT, SET, ROLLBACK"
        raise wrong(f"{word} is not supported in a transaction", line, hint)
    tree = statement(text, line)
    for part, what in _UNREAD.items():
        if tree.args.get(part):
            raise wrong(f"{word} with {what} is not supported", line)
    if not isinstance(tree.this, engine().exp.Expression):
        raise wrong(f"{word} of no table", line)
    if tree.this.args.get("joins"):
        raise wrong(f"{word} of several tables is not supported", line, "write one statement for each")
    return {"INSERT": _insert, "UPDATE": _update, "DELETE": _delete}[word](tree, text, line)


def first_rows(text: str, line: int) -> Insert:
    """An INSERT among the tables."""
    return _insert(statement(text, line), text, line)


def select(tokens: list[Any], text: str, line: int, any_query: bool = False) -> Select:
    """SELECT … INTO a, b FROM table WHERE …, with or without FOR UPDATE.

    ``any_query``: for who only asks which tables are read, also joins, grouping, UNION, WITH and a SELECT in FROM.
    """
    base = tokens[0].start
    plain, into = text, ()
    places = [i for i, token in enumerate(tokens) if token.text.upper() == "INTO"]
    if places:
        begin = end = places[0]
        while end < len(tokens) and tokens[end].text.upper() != "FROM":
            end += 1
        names = [
            t.text for t in tokens[begin + 1 : end] if t.text not in (",", "@", ":") and t.text.upper() != "STRICT"
        ]
        into = tuple(name.lower() for name in names)
        cut = tokens[end].start - base if end < len(tokens) else len(text)
        removed = text[tokens[begin].start - base : cut]
        # Blank it out, so that the lines of what follows stay what they are.
        plain = text[: tokens[begin].start - base] + "\n" * removed.count("\n") + " " + text[cut:]
    tree = statement(plain, line)
    exp = engine().exp
    if not isinstance(tree, exp.Select | exp.SetOperation if any_query else exp.Select):
        raise wrong("UNION, INTERSECT and EXCEPT are not supported", line)
    if tree.find(exp.Insert, exp.Update, exp.Delete):
        raise wrong("a SELECT that writes is not supported", line)
    table = "" if any_query else source(tree, line)
    if into and len(into) != len(tree.selects):
        raise wrong(f"SELECT gives {len(tree.selects)} values to {len(into)} variables", line)
    return Select(line, text, tree, into, table, bool(tree.args.get("locks")))


def source(tree: Any, line: int) -> str:
    """The one table that a SELECT is from; an error where it does more than we understand."""
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


def _assignment(text: str, line: int) -> Assign:
    body = text[3:].lstrip() if text[:3].upper() == "SET" else text
    name, _, value = body.partition("=")
    name = name.rstrip(": ").lstrip("@ ").lower()
    if not name.isidentifier() or not value.strip():
        raise wrong("cannot read this assignment", line, "write SET variable = value")
    return Assign(line, text, name, condition(value.strip(), line))


def _insert(tree: Any, text: str, line: int) -> Insert:
    exp = engine().exp
    if not isinstance(tree.expression, exp.Values):
        raise wrong("INSERT … SELECT is not supported", line, "use FOR row IN SELECT … LOOP INSERT … END LOOP")
    target = tree.this
    columns = tuple(part.name.lower() for part in target.expressions) if isinstance(target, exp.Schema) else ()
    name = (target.this if isinstance(target, exp.Schema) else target).name.lower()
    rows = tuple(tuple(row.expressions) for row in tree.expression.expressions)
    return Insert(line, text, name, columns, rows)


def _update(tree: Any, text: str, line: int) -> Update:
    exp = engine().exp
    if tree.args.get("from_") or tree.args.get("from"):
        raise wrong("UPDATE … FROM is not supported", line, "read the value first, or use a subquery")
    sets: list[tuple[str, Any]] = []
    for part in tree.expressions:
        if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
            raise wrong("only SET column = value is supported", line)
        if part.this.name.lower() in dict(sets):
            raise wrong(f"UPDATE sets {part.this.name} twice", line)
        sets.append((part.this.name.lower(), part.expression))
    where = tree.args.get("where")
    return Update(line, text, tree.this.name.lower(), tuple(sets), where.this if where else None)


def _delete(tree: Any, text: str, line: int) -> Delete:
    if tree.args.get("using"):
        raise wrong("DELETE … USING is not supported", line, "use WHERE EXISTS (SELECT …)")
    where = tree.args.get("where")
    return Delete(line, text, tree.this.name.lower(), where.this if where else None)
