"""Small domains for the explorer: all states of a few rows that satisfy the invariant, and all small arguments."""

from collections.abc import Iterable, Iterator
from itertools import combinations, combinations_with_replacement, islice, product
from typing import Any, TypeVar

from plume_py.reasoning.infer.execution.bytecode import FlatCode
from plume_py.reasoning.infer.execution.evaluate import Evaluate, Frame, Row, State, TableShape, compiled
from plume_py.reasoning.infer.program import ir

# At most this many possible rows of a table, contents of a table, and argument choices of a transaction are tried.
MOST_ROWS, MOST_CONTENTS, MOST_CALLS = 2_000, 20_000, 2_000

# Both engines try list arguments of at most this many elements.
MOST_ELEMENTS = 2


T = TypeVar("T")


class Domains:
    """Values of columns and arguments, and the number of rows per table."""

    def __init__(self, program: ir.Application, rows: int) -> None:
        self.program, self.rows = program, rows
        self.was_cut = False  # whether a bound cut off some choices

    def values(self, owner: str, name: str, sort: ir.Sort) -> tuple[ir.Value, ...]:
        given = self.program.scope.values.get(f"{owner}.{name}")
        if given is not None:
            return given
        if sort == "id":
            return tuple(range(1, self.rows + 1))
        return {"bool": (False, True), "text": ("a", "b")}.get(sort, (0, 1, 2))  # type: ignore[return-value]

    def contents(self, table: ir.Table) -> list[tuple[Row, ...]]:
        """Return every small content of a table."""
        most = min(self.program.scope.rows.get(table.name, self.rows), 99)
        places = [table.index(column) for column in table.key]
        every = self.first_of(
            product(*(self.values(table.name, name, sort) for name, sort in table.columns)), MOST_ROWS
        )
        if not places:
            chosen = (rows for n in range(most + 1) for rows in combinations_with_replacement(every, n))
            return [tuple(enumerate(rows, 1)) for rows in self.first_of(chosen, MOST_CONTENTS)]
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in every:
            key = tuple(row[i] for i in places)
            groups.setdefault(key, []).append((key, row))
        keyed = (
            rows
            for n in range(most + 1)
            for keys in combinations(groups, n)
            for rows in product(*(groups[key] for key in keys))
        )
        return [tuple(sorted(rows)) for rows in self.first_of(keyed, MOST_CONTENTS)]

    def first_of(self, items: Iterable[T], most: int) -> list[T]:
        """Return the first ``most`` items; set ``was_cut`` if there are more."""
        found = list(islice(items, most + 1))
        self.was_cut |= len(found) > most
        return found[:most]

    def states(self) -> Iterator[State]:
        """Yield every small state that satisfies the invariant and the enforced constraints."""
        tables = self.program.tables
        waiting: list[list[Evaluate]] = [[] for _ in tables]
        for clause in (*self.program.invariant, *self.program.enforced):
            used = [self.index(query.source) for query in ir.queries(clause.condition)]
            waiting[max(used, default=0)].append(
                compiled(clause.condition, TableShape(self.program).of_expression(clause.condition))
            )
        contents = [self.contents(table) for table in tables]
        empty: tuple[Row, ...] = ()

        def fill(chosen: tuple[tuple[Row, ...], ...]) -> Iterator[State]:
            at = len(chosen)
            if at == len(tables):
                yield chosen
                return
            for rows in contents[at]:
                state = (*chosen, rows, *(empty for _ in tables[at + 1 :]))
                if all(clause(state, {}) for clause in waiting[at]):
                    yield from fill((*chosen, rows))

        return fill(())

    def index(self, table: str) -> int:
        return [t.name for t in self.program.tables].index(table)

    def arguments(self, code: FlatCode) -> list[Frame]:
        """Return every choice of arguments that satisfies the transaction's assumption."""
        txn, names = code.txn, list[str]()
        choices: list[list[Any]] = []
        for param in txn.params:
            names.append(param.name)
            if param.fields:
                records = self.first_of(
                    product(*(self.values(txn.name, f"{param.name}.{n}", s) for n, s in param.fields)), 50
                )
                lists = (rows for n in range(MOST_ELEMENTS + 1) for rows in combinations(records, n))
                choices.append([tuple(enumerate(rows, 1)) for rows in lists])
            else:
                choices.append(list(self.values(txn.name, param.name, param.sort)))
        frames = [dict(zip(names, chosen, strict=True)) for chosen in self.first_of(product(*choices), MOST_CALLS)]
        return [frame for frame in frames if all(condition((), frame) for condition in code.assume)]
