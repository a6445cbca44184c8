"""The tables of a statement by the names they have in it, and which of their columns its conditions fix."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from plume_py.base.sql.model import File, SqlTable
from plume_py.base.sql.syntax import engine

Scope = dict[str, SqlTable]  # by alias


def origin_of(tree: Any) -> Any:
    """The FROM of a statement."""
    return tree.args.get("from_") or tree.args.get("from")


def conjuncts(where: Any) -> list[Any]:
    """The parts of a condition that must all hold."""
    parts = where.flatten() if isinstance(where, engine().exp.And) else (where,)
    return [] if where is None else [part.unnest() for part in parts]


def is_plain(node: Any) -> bool:
    """A table by its name, and nothing more."""
    exp = engine().exp
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("joins")


def joined(joins: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """The tables of inner joins, and the conditions that tie them; None for joins of other kinds."""
    exp = engine().exp
    tables, conditions = [], []
    for join in joins:
        if not isinstance(join, exp.Join):
            tables.append(join)
            continue
        if (
            join.args.get("side")
            or join.args.get("method")
            or str(join.args.get("kind") or "INNER") not in ("INNER", "CROSS")
        ):
            return None
        tables.append(join.this)
        conditions += conjuncts(join.args.get("on"))
        if join.args.get("using"):
            conditions += [exp.EQ(this=exp.column(c.name), expression=exp.column(c.name)) for c in join.args["using"]]
    return (tables, conditions) if all(is_plain(table) for table in tables) else None


def around(tree: Any, file: File) -> set[str]:
    """The columns of the statements around a subquery, which its condition may mean."""
    exp = engine().exp
    query = None if tree is None else tree if isinstance(tree, exp.Select) else tree.find_ancestor(exp.Select)
    outer = None if query is None else query.parent
    while outer is not None:
        if isinstance(outer, exp.Select | exp.Update | exp.Delete):
            # of every table: a name too many only makes the answer more careful
            return {name for table in file.tables for name in table.names}
        outer = outer.parent
    return set()


class Fixed:
    """What conditions fix, also by way of other columns: with ``a.x = :v AND b.y = a.x``, both."""

    def __init__(self, conditions: Sequence[Any], scope: Scope, outside: Collection[str]) -> None:
        self.scope, self.outside = scope, outside
        self.columns = {name for table in scope.values() for name in table.names}
        self.values: dict[tuple[str, str], list[str]] = {}
        pairs: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for part in conditions:
            if isinstance(part, engine().exp.EQ):
                self._equality(part, pairs)
        for _ in pairs:  # as far as it goes
            for left, right in pairs:
                for one, other in ((left, right), (right, left)):
                    known = self.values.setdefault(one, [])
                    known += [text for text in self.values.get(other, ()) if text not in known]

    def _equality(self, part: Any, pairs: list[tuple[tuple[str, str], tuple[str, str]]]) -> None:
        sides = [self._place(side) for side in (part.this, part.expression)]
        for place, other in zip(sides, (part.expression, part.this), strict=True):
            if place is not None and self._is_constant(other):
                self.values.setdefault(place, []).append(other.sql())
        left, right = sides
        if left is not None and right is not None and self._type(left) == self._type(right):
            pairs.append((left, right))

    def _place(self, node: Any) -> tuple[str, str] | None:
        """The table, by its alias, and the column that a node is; None if it is none, or may be of several."""
        if not isinstance(node, engine().exp.Column):
            return None
        name, owner = str(node.name).lower(), str(node.table).lower()
        owners = [alias for alias, table in self.scope.items() if name in table.names and owner in ("", alias)]
        return (owners[0], name) if len(owners) == 1 else None

    def _type(self, place: tuple[str, str]) -> str:
        return next(column.type for column in self.scope[place[0]].columns if column.name == place[1])

    def _is_constant(self, node: Any) -> bool:
        exp = engine().exp
        names = [column.name.lower() for column in node.find_all(exp.Column)]
        return node.find(exp.Select) is None and not any(name in self.columns or name in self.outside for name in names)

    def of(self, alias: str) -> tuple[tuple[str, str], ...]:
        """The columns of a table that are fixed, each with the text of its value."""
        return tuple(
            (column, text) for (owner, column), texts in self.values.items() if owner == alias for text in texts
        )


def mentioned(trees: Sequence[Any], table: SqlTable) -> tuple[str, ...]:
    """The columns of this table that expressions mention, also in subqueries, which may mean the row outside."""
    exp = engine().exp
    names = [node.name.lower() for tree in trees if tree is not None for node in tree.find_all(exp.Column)]
    return tuple(dict.fromkeys(name for name in names if name in table.names))


def outermost(tree: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """The nodes of these kinds that are in no other such."""
    if isinstance(tree, kinds):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from outermost(child, kinds)
