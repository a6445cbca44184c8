"""Read and write sets of all instances of a workload, as arrays by instance; the rules are computed from them.

- ``reads``: external reads. A read of a cell that the instance itself surely wrote before is left out.
- ``how``: the kind of each read. IN_UPDATE: only by update statements. ONCE: by one statement that only reads. AGAIN:
  by more than one statement. HELD: by a statement that locks the row and does not change it.
- ``may``: possible writes; ``must``: certain writes.
- ``many``: cells that represent more than one row. They are never written for certain, nor held, nor read as one row.
- ``fleeting``: cells of rows that come and go. Of two writes, the later one may not have seen the earlier one, at any
  level.
"""

from dataclasses import dataclass

import numpy as np

from plume_py.history.model import Bools, Int8s, Int32s
from plume_py.reasoning.allocate.workload import UPDATE, Access, Instance, Workload

IN_UPDATE, ONCE, AGAIN, HELD = range(4)


@dataclass
class Rows:
    """Lists of cells in one array; instance i has ``cell[start[i]:start[i + 1]]``."""

    start: Int32s
    cell: Int32s

    def of(self, i: int) -> set[int]:
        """Return the cells of instance ``i``."""
        return set(self.cell[self.start[i] : self.start[i + 1]].tolist())

    def turned(self, cells: int) -> tuple[Int32s, Int32s, Int32s]:
        """Return the inverse: starts by cell, instances in ascending order, and their indices in ``cell``."""
        place = np.argsort(self.cell, kind="stable").astype(np.int32)
        owner = np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))
        start = np.zeros(cells + 1, np.int32)
        np.cumsum(np.bincount(self.cell, minlength=cells), out=start[1:])
        return start, owner[place], place


@dataclass
class Sets:
    """All read and write sets of a workload."""

    names: list[str]  # of cells
    reads: Rows
    how: Int8s  # of each entry of reads
    may: Rows
    must: Rows
    many: Bools  # of a cell: whether it represents more than one row
    fleeting: Bools  # of a cell: whether its row comes and goes
    session: Int32s
    place: Int32s  # of an instance: its position within the session
    follows: Bools  # of an instance: whether another may precede it in its session

    @property
    def instances(self) -> int:
        return len(self.session)

    @property
    def cells(self) -> int:
        return len(self.names)


def gather(workload: Workload) -> Sets:
    numbers: dict[str, int] = {}
    names: list[str] = []
    for instance in workload.instances:
        for access in instance.accesses:
            if access.identity not in numbers:
                numbers[access.identity] = len(numbers)
                names.append(access.cell)
    spread = _spread(workload.instances, names)
    lists: list[list[list[int]]] = [[], [], []]
    how: list[int] = []
    for instance in workload.instances:
        reads, may, must = _sets(instance, numbers, spread)
        for rows, cells in zip(lists, (list(reads), list(may), list(must)), strict=True):
            rows.append(cells)
        how += reads.values()
    reads_rows, may_rows, must_rows = map(_rows, lists)
    session, place = _sessions(workload)
    many = np.zeros(len(names), np.bool_)
    many[[numbers[identity] for identity in spread]] = True
    fleeting = np.zeros(len(names), np.bool_)
    fleeting[[numbers[a.identity] for i in workload.instances for a in i.accesses if a.fleeting]] = True
    how_read = np.array(how, np.uint8)
    return Sets(names, reads_rows, how_read, may_rows, must_rows, many, fleeting, session, place, place > 0)


def _sets(
    instance: Instance, numbers: dict[str, int], spread: dict[str, list[int]]
) -> tuple[dict[int, int], dict[int, None], dict[int, None]]:
    """Return the external reads (cell -> kind), possible writes and certain writes of one instance."""
    reads: dict[int, int] = {}
    may: dict[int, None] = {}
    must: dict[int, None] = {}
    for access in instance.accesses:
        cells = spread.get(access.identity) or (numbers[access.identity],)
        certain = not access.conditional and access.identity not in spread
        for cell in cells:
            if access.reads and cell not in must:
                reads[cell] = _how(reads.get(cell), access)
            if access.writes:
                may[cell] = None
                if certain:
                    must[cell] = None
    return reads, may, must


def _how(before: int | None, access: Access) -> int:
    """Return the kind of a read, given the kind of the earlier read of the cell.

    A row that is surely held does not change.
    """
    if before == HELD:
        return HELD
    if before is not None:
        return AGAIN
    if access.kind == UPDATE:
        return IN_UPDATE
    return HELD if access.locks and not access.conditional and not access.whole_table else ONCE


def _spread(instances: list[Instance], names: list[str]) -> dict[str, list[int]]:
    """Return, for each access to all rows, the cells that it may access.

    Its own cell is one of them and represents the rows that no other access names.
    """
    whole = {access.identity: access for i in instances for access in i.accesses if access.whole_table}
    return {cell: [n for n, name in enumerate(names) if _covers(access, name)] for cell, access in whole.items()}


def _covers(access: Access, name: str) -> bool:
    known = [access.table, *access.key[: access.key.index("*")]]
    prefix = "_".join(known)
    return name == prefix or name.startswith(prefix + "_")


def _rows(lists: list[list[int]]) -> Rows:
    start = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(row) for row in lists], out=start[1:])
    return Rows(start, np.array([cell for row in lists for cell in row], np.int32))


def _sessions(workload: Workload) -> tuple[Int32s, Int32s]:
    numbers: dict[int, int] = {}
    count: dict[int, int] = {}
    session, place = [], []
    for s in workload.session:
        session.append(numbers.setdefault(s, len(numbers)))
        place.append(count.get(s, 0))
        count[s] = count.get(s, 0) + 1
    return np.array(session, np.int32), np.array(place, np.int32)
