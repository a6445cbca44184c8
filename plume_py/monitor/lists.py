"""What lists show beyond their last element, while they arrive: their elements, and the order of the appends.

The kernels resolve the last element like any read. The rest is done here, read by read: lists are long, so that even a
kernel would mostly wait for their elements to be made into numbers.
"""

from dataclasses import dataclass
from typing import Any

from plume_py.history.model import Int64s
from plume_py.monitor import judge_kernels as judges
from plume_py.monitor import table_kernels as tables
from plume_py.monitor.state import State

# Kinds of events that only lists have.
OWN_APPENDS_LOST, DUPLICATE, INCOMPATIBLE = 20, 21, 22


@dataclass
class ListRead:
    """A list that a committed transaction read."""

    op: int
    reader: int
    key: int
    versions: list[int]


class ListOrders:
    """All lists so far, and for each key the longest, of which all others must be a beginning."""

    def __init__(self) -> None:
        self.reads: list[ListRead] = []
        self._longest: dict[int, int] = {}
        self._waiting: dict[int, list[int]] = {}  # by element that has not arrived: the lists that show it
        self._native: Any = None
        self._missing: dict[int, int] = {}  # how many elements such a list waits for

    @property
    def waiting(self) -> int:
        """How many lists hold elements that nobody has appended yet."""
        return len(self._missing)

    def take(self, m: State, native: Any, t: int, lists: dict[int, Int64s]) -> None:
        """Transaction t has arrived, with these lists by operation; ``native`` is m for kernels."""
        self._native = native
        judges.catch_up(native)
        if m.txn[t, tables.STATUS] == tables.COMMITTED:
            for o, codes in lists.items():
                x = int(m.op[o, tables.KEY])
                versions = [int(tables.intern_version(self._native, x, int(code))) for code in codes]
                self.reads.append(ListRead(o, t, x, versions))
                self._take_list(m, len(self.reads) - 1)
        if self._waiting:
            self._serve(m, t)

    def _take_list(self, m: State, number: int) -> None:
        """A list is judged once all its elements have arrived; until then its last one waits like any read."""
        read = self.reads[number]
        for v in read.versions:
            if m.version[v, tables.SEEN_BY] < 0:
                m.version[v, tables.SEEN_BY] = read.reader
            if m.version[v, tables.SECOND] >= 0:
                judges.note(self._native, judges.AMBIGUOUS, 0, read.reader, v, -1)
        missing = {v for v in read.versions if m.version[v, tables.WRITER] < 0}
        if missing:
            self._missing[number] = len(missing)
            for v in missing:
                self._waiting.setdefault(v, []).append(number)
        else:
            self._judge(m, number)

    def _serve(self, m: State, t: int) -> None:
        """Lists that waited for what t appended."""
        for o in range(int(m.txn[t, tables.FIRST_OP]), int(m.txn[t + 1, tables.FIRST_OP])):
            v = int(m.op[o, tables.VERSION])
            if m.op_kind[o] & 1 and m.version[v, tables.WRITER] == t:
                for number in self._waiting.pop(v, ()):
                    self._missing[number] -= 1
                    if not self._missing[number]:
                        del self._missing[number]
                        self._judge(m, number)

    def _judge(self, m: State, number: int) -> None:
        read = self.reads[number]
        t, versions = read.reader, read.versions
        for v in versions[:-1]:
            self._judge_element(m, int(m.version[v, tables.WRITER]), number)
        if len(set(versions)) < len(versions):
            judges.note(self._native, DUPLICATE, 0, t, t, -2 - number)
        if _loses_own_appends(m, read):
            judges.note(self._native, OWN_APPENDS_LOST, 0, t, t, -2 - number)
        known = self._longest.get(read.key)
        best = self.reads[known] if known is not None else None
        if best is None or len(best.versions) < len(versions):
            self._longest[read.key] = number
        if best is not None and not _same_beginning(best.versions, versions):
            judges.note(self._native, INCOMPATIBLE, 0, t, best.reader, -2 - number)
        elif best is None or len(versions) > len(best.versions):
            self._link(m, number, 0 if best is None else len(best.versions) - 1)

    def _judge_element(self, m: State, writer: int, number: int) -> None:
        """An element before the last must have been appended by a transaction that did not abort."""
        if m.txn[writer, tables.STATUS] == tables.ABORTED:
            judges.note(self._native, judges.B, 0, self.reads[number].reader, writer, -2 - number)
        elif not m.txn[writer, tables.LIVE]:
            judges.activate(self._native, writer)

    def _link(self, m: State, number: int, begin: int = 0) -> None:
        """The appends that the list shows, one before the other."""
        previous = -1
        for v in self.reads[number].versions[max(0, begin) :]:
            writer = int(m.version[v, tables.WRITER])
            if writer < 0 or not m.txn[writer, tables.LIVE]:
                continue
            if previous >= 0 and previous != writer:
                for level in (judges.RC, judges.RA, judges.TCC):
                    if m.asked[level]:
                        judges.order(self._native, level, previous, writer, -2 - number)
            previous = writer


def _same_beginning(a: list[int], b: list[int]) -> bool:
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


def _loses_own_appends(m: State, read: ListRead) -> bool:
    """The list ends in an own append: then all own appends so far must be its end, in order."""
    ops = range(int(m.txn[read.reader, tables.FIRST_OP]), read.op)
    own = [int(m.op[o, tables.VERSION]) for o in ops if m.op_kind[o] & 1 and m.op[o, tables.KEY] == read.key]
    return bool(read.versions) and read.versions[-1] in own and read.versions[-len(own) :] != own
