"""Slots for new rows: every INSERT that the symbolic search executes has one of its own, so that none is missing."""

from dataclasses import dataclass

from plume_py.reasoning.infer.bounded.symbolic import LIST
from plume_py.reasoning.infer.program import ir

Room = dict[str, int]  # table -> slots


def inserts(body: tuple[ir.Stmt, ...], room: Room) -> Room:
    """How many slots a transaction needs in each table, if its tables have ``room`` slots when it begins.

    Both sides of a choice are executed, each with slots of its own; a loop goes once over every slot of its table.
    """
    return _Count(room).block(body)


class _Count:
    def __init__(self, room: Room) -> None:
        self.room = dict(room)
        self.sets: dict[str, int] = {}

    def block(self, body: tuple[ir.Stmt, ...]) -> Room:
        counts: Room = {}
        for stmt in body:
            for table, n in self.statement(stmt).items():
                counts[table] = counts.get(table, 0) + n
        return counts

    def statement(self, stmt: ir.Stmt) -> Room:
        if isinstance(stmt, ir.Insert):
            self.room[stmt.table] = self.room.get(stmt.table, 0) + 1
            return {stmt.table: 1}
        if isinstance(stmt, ir.SelectAll):
            self.sets[stmt.rows] = self.room.get(stmt.table, 0)
        if isinstance(stmt, ir.If):
            return self.block((*stmt.then, *stmt.otherwise))
        if isinstance(stmt, ir.ForEach):
            return self.block(stmt.body * self.sets.get(stmt.source, LIST))
        return {}


@dataclass
class SlotLayout:
    """Slots of each table: those of the start, then those of each step, then those of the transaction in question."""

    steps: list[dict[int, list[int]]]
    own: dict[int, list[int]]
    sizes: list[int]


def layout(
    program: ir.Application, txn: ir.TransactionProgram, bodies: list[tuple[ir.Stmt, ...]], rows: int, steps: int
) -> SlotLayout:
    """The slots for a search of at most ``rows`` rows at the start and ``steps`` commits of ``bodies``."""
    room: Room = {table.name: rows for table in program.tables}
    found = []
    for _ in range(steps):
        needed = [inserts(body, room) for body in bodies]
        found.append(_take(program, room, {t: max(n.get(t, 0) for n in needed) for t in room}))
    own = _take(program, room, inserts(txn.body, room))
    return SlotLayout(found, own, [room[table.name] for table in program.tables])


def _take(program: ir.Application, room: Room, needed: Room) -> dict[int, list[int]]:
    taken = {}
    for i, table in enumerate(program.tables):
        begin = room[table.name]
        room[table.name] = begin + needed.get(table.name, 0)
        taken[i] = list(range(begin, room[table.name]))
    return taken
