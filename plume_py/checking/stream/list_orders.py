"""Check list reads while they arrive, and force the orders of writers that lists show.

``monitor`` calls ``ListOrders.take`` for each transaction. The kernels resolve the last element appended by another
transaction, like any read. This module checks the other elements:

- a list ends with all appends that its reader made before, once and in order;
- when all elements have arrived, each writer's appends are consecutive, and the list is a prefix of the longest list
  of its key, or the other way round. Usually only the new elements are examined.

Each writer in the longest list precedes the next, at every level, and all precede the writers that it does not show.
Adding the latter edges after each growth would cost a step per pair of list and writer. They are added once the list
has grown by as many writers as it does not show; ``finish`` adds the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plume_py.checking.stream import level_kernels
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.state import State
from plume_py.history.model import Int64s

# Kinds of events of lists: a wrong list, and a list that contradicts another.
WRONG_LIST, CONTRADICTING_LISTS = 20, 21

NO_CODES = np.empty(0, np.int64)

# From an element to its writer and all that this writer appended to the key, in order.
Appended = Callable[[int], "tuple[int, list[int]]"]


@dataclass
class ListRead:
    """A list that a committed transaction read."""

    op: int
    reader: int
    key: int
    codes: Int64s  # all elements
    others: Int64s  # the elements that other transactions appended
    own_appends: Int64s  # all appends of the reader, if it appended before this read
    own_fits: bool  # it ends with the reader's appends so far, and contains no other ones
    sound: bool = True  # ``own_fits``, and no element is of an aborted transaction
    correct: bool = False  # complete and correct, so it shows an order of writers
    awaited: int = 0  # number of elements that have not arrived
    blamed: set[int] = field(default_factory=set)  # the transactions that show its error

    @property
    def extent(self) -> Int64s:
        """The elements that come first in the order of the key. All appends of the reader come last."""
        return np.concatenate((self.others, self.own_appends)) if len(self.own_appends) else self.others


@dataclass
class ListTail:
    """The elements of a list behind the longest list so far: blocks of appends, one per writer."""

    writers: list[int] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)  # per element: whether it is its writer's last append
    missing: list[int] = field(default_factory=list)  # further appends of the last writer, which the list does not show
    blamed: set[int] = field(default_factory=set)  # writers with repeated, split, swapped or missing appends


@dataclass
class LongestList:
    """The longest correct list of one key, as codes of its elements. All other lists must be prefixes of it.

    It includes all appends of its reader if it shows any of them, so the reader is its last writer. Lists only grow.
    """

    number: int = -1  # of the list in ``ListOrders.reads``
    codes: Int64s = field(default_factory=lambda: NO_CODES)
    members: set[int] = field(default_factory=set)  # the same as a set
    ends: list[bool] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    writers: set[int] = field(default_factory=set)
    last: int = -1  # the last writer
    unseen: dict[int, None] = field(default_factory=dict)  # ordered set: the key's other participating writers
    new_writers: int = 0  # new last writers since all unseen writers were ordered after the last one
    shown: int = 0  # length of the prefix that reads have shown; excludes own appends of the last reader

    def agreement(self, codes: Int64s) -> int:
        """Return the length of the common prefix of ``codes`` and this list."""
        both = min(len(codes), len(self.codes))
        differ = np.flatnonzero(codes[:both] != self.codes[:both])
        return int(differ[0]) if differ.size else both

    def tail(self, codes: Int64s, appended: Appended) -> ListTail:
        """Return what ``codes``, of which this list is a prefix, contains behind it.

        Each writer's appends must be consecutive and in order. The last writer's may be incomplete (TAP-f).
        """
        tail = ListTail(missing=self.missing)
        owner = self.last
        shown: set[int] = set()
        for code in codes[len(self.codes) :].tolist():
            if tail.missing and tail.missing[0] == code:
                tail.missing = tail.missing[1:]
            else:
                writer, block = appended(code)
                if code in shown or code in self.members:
                    tail.blamed.add(writer)
                    continue
                if tail.missing:
                    tail.blamed |= {owner, writer}
                if block[0] != code:
                    tail.blamed.add(writer)
                tail.missing = block[block.index(code) + 1 :]
                tail.writers.append(writer)
                owner = writer
            shown.add(code)
            tail.ends.append(not tail.missing)
        return tail

    def grow(self, number: int, codes: Int64s, tail: ListTail) -> None:
        """Make list ``number`` with these elements the longest."""
        self.members.update(codes[len(self.codes) :].tolist())
        self.number, self.codes, self.missing = number, codes, tail.missing
        self.ends += tail.ends
        self.writers.update(tail.writers)
        self.last = tail.writers[-1] if tail.writers else self.last
        self.new_writers += len(tail.writers)
        for writer in tail.writers:
            self.unseen.pop(writer, None)


class ListOrders:
    """All list reads so far, and the longest list of each key."""

    def __init__(self) -> None:
        self.reads: list[ListRead] = []
        self.by_op: dict[int, ListRead] = {}
        self.first_list_showing: dict[int, int] = {}  # per transaction of unknown outcome: the first list that shows it
        self.waiting = 0  # number of lists with elements that have not arrived
        self._longest: dict[int, LongestList] = {}
        self._waiting: dict[int, list[int]] = {}  # per version that has not arrived: the lists that show it
        self._m: State
        self._native: Any = None

    def take(self, m: State, native: Any, t: int, lists: dict[int, Int64s]) -> None:
        """Take in transaction t with its lists by operation. ``native`` is ``m`` in the form for kernels."""
        self._m, self._native = m, native
        level_kernels.leave_commit_order(native)
        self._register_writes(t)
        if m.txn[t, tables.STATUS] == tables.COMMITTED:
            for o, codes in lists.items():
                self._take_list(self._split(o, t, codes))
        if self._waiting:
            self._deliver(t)

    def finish(self) -> None:
        """Order all writers that the longest lists do not show after the writers that they show."""
        for longest in self._longest.values():
            self._put_last(longest)

    # Appends of the reader

    def _split(self, o: int, t: int, codes: Int64s) -> ListRead:
        """Separate the elements that other transactions appended from the reader's elements."""
        x = int(self._m.op[o, tables.KEY])
        so_far, own = self._appends(t, x, o), self._appends(t, x)
        if not own:
            return ListRead(o, t, x, codes, codes, NO_CODES, own_fits=True)
        mine = np.isin(codes, own)
        begin = len(codes) - len(so_far)
        fits = begin >= 0 and codes[begin:].tolist() == so_far and not bool(np.any(mine[:begin]))
        return ListRead(o, t, x, codes, codes[~mine], np.array(own, np.int64) if so_far else NO_CODES, fits, fits)

    def _appends(self, t: int, x: int, before: int | None = None) -> list[int]:
        """Return what t appended to key x, in order; if ``before`` is given, only before that operation."""
        m = self._m
        begin, end = m.txn[t : t + 2, tables.FIRST_OP].tolist()
        ops = slice(begin, end if before is None else before)
        mine = (m.op[ops, tables.KEY] == x) & (m.op_kind[ops] & tables.WRITES != 0)
        appended: list[int] = m.version_value[m.op[ops, tables.VERSION][mine]].tolist()
        return appended

    # Elements that arrive

    def _take_list(self, read: ListRead) -> None:
        """Register a list. Check it at once if all its elements have arrived."""
        number = len(self.reads)
        self.reads.append(read)
        self.by_op[read.op] = read
        longest = self._longest.get(read.key)
        known = 0 if longest is None else min(longest.shown, longest.agreement(read.others))
        versions = dict.fromkeys(self._element(read, code) for code in read.others[known:].tolist())
        if len(read.others) < len(read.codes):
            for code in self._appends(read.reader, read.key):
                if code in read.codes:
                    self._element(read, code)
        if not read.own_fits and (not len(read.others) or self.source(read)):
            self._report(WRONG_LIST, number)  # else when the source arrives, so that the report can show it
        for v in versions:
            writer = int(self._m.version[v, tables.WRITER])
            if writer < 0:
                read.awaited += 1
                self._waiting.setdefault(v, []).append(number)
            else:
                self._check_element(writer, v, number)
        if read.awaited:
            self.waiting += 1
        else:
            self._check(number)

    def _element(self, read: ListRead, code: int) -> int:
        """Return the version of an element, and mark it as read."""
        v = int(tables.intern_version(self._native, read.key, code))
        if self._m.version[v, tables.SEEN_BY] < 0:
            self._m.version[v, tables.SEEN_BY] = read.reader
        if self._m.version[v, tables.SECOND] >= 0:
            level_kernels.report_event(self._native, level_kernels.AMBIGUOUS, 0, read.reader, v, -1, -1)
        return v

    def _deliver(self, t: int) -> None:
        """Check the lists that waited for appends of t."""
        m = self._m
        for o in range(int(m.txn[t, tables.FIRST_OP]), int(m.txn[t + 1, tables.FIRST_OP])):
            v = int(m.op[o, tables.VERSION])
            if m.op_kind[o] & tables.WRITES and m.version[v, tables.WRITER] == t:
                for number in self._waiting.pop(v, ()):
                    read = self.reads[number]
                    self._check_element(t, v, number)
                    if not read.own_fits and v == m.op[read.op, tables.VERSION]:
                        self._report(WRONG_LIST, number)
                    read.awaited -= 1
                    if not read.awaited:
                        self.waiting -= 1
                        self._check(number)

    def _check_element(self, writer: int, v: int, number: int) -> None:
        """Report an element of an aborted writer. Make a writer of unknown outcome participate."""
        m, read = self._m, self.reads[number]
        if m.txn[writer, tables.STATUS] == tables.ABORTED:
            read.sound = False
            if v != m.op[read.op, tables.VERSION]:  # else the kernels have reported it
                read.blamed = {writer}
                self._report(WRONG_LIST, number)
        elif m.txn[writer, tables.STATUS] == tables.UNKNOWN:
            self.first_list_showing.setdefault(writer, number)
            if not m.txn[writer, tables.PARTICIPATES]:
                level_kernels.activate(self._native, writer)
                self._register_writer(writer)

    # Whole lists

    def _check(self, number: int) -> None:
        """Check a complete list alone and against the longest list of its key. Extend the longest list."""
        read = self.reads[number]
        if not read.sound:
            return
        longest = self._longest.setdefault(read.key, LongestList())
        codes = read.extent
        agreed = longest.agreement(codes)
        if agreed < min(len(codes), len(longest.codes)):
            self._contradict(number, longest, agreed)
            return
        if len(codes) > len(longest.codes):
            tail = longest.tail(codes, self._appended(read.key))
            if tail.blamed:
                self._report_blamed(number, tail.blamed)
                return
            self._link(longest, tail.writers, number)
            first = longest.number < 0
            longest.grow(number, codes, tail)
            if first:
                longest.unseen = dict.fromkeys(self._participating_writers(read.key) - longest.writers)
                longest.new_writers = len(longest.unseen)
            if longest.new_writers >= len(longest.unseen):
                self._put_last(longest)
        read.correct = True
        longest.shown = max(longest.shown, len(read.others))
        if len(read.others) and not longest.ends[len(read.others) - 1] and self._seems_final(read):
            self._report(WRONG_LIST, number)

    def _seems_final(self, read: ListRead) -> bool:
        """Return whether the kernels took the last element for its writer's last append.

        They may be mistaken if the writer appended the same element twice.
        """
        return bool(self._m.version[self._m.op[read.op, tables.VERSION], tables.FINAL])

    def _contradict(self, number: int, longest: LongestList, agreed: int) -> None:
        """Report a list that disagrees with the longest one. If the list alone is wrong, report only that."""
        read = self.reads[number]
        appended = self._appended(read.key)
        blamed = LongestList().tail(read.extent, appended).blamed
        if blamed:
            self._report_blamed(number, blamed)
            return
        read.correct = True
        other = self.reads[longest.number]
        read.blamed = {appended(int(codes[agreed]))[0] for codes in (read.extent, longest.codes)}
        read.blamed |= self.source(other)
        level_kernels.report_event(self._native, CONTRADICTING_LISTS, 0, read.reader, other.reader, -1, number)

    def _report_blamed(self, number: int, transactions: set[int]) -> None:
        self.reads[number].blamed |= transactions
        self._report(WRONG_LIST, number)

    def _report(self, kind: int, number: int) -> None:
        reader = self.reads[number].reader
        level_kernels.report_event(self._native, kind, 0, reader, reader, -1, number)

    def _appended(self, x: int) -> Any:
        """Return a function from an element of x to its writer and all that this writer appended to x."""

        def of(code: int) -> tuple[int, list[int]]:
            writer = self.writer(x, code)
            return writer, self._appends(writer, x)

        return of

    def writer(self, x: int, code: int) -> int:
        """Return the transaction that appended an element to x, or -1 if it has not arrived."""
        return int(self._m.version[tables.intern_version(self._native, x, code), tables.WRITER])

    def source(self, read: ListRead) -> set[int]:
        """Return the transaction that the list was read from; empty for the initial state or if it has not arrived."""
        return {int(self._m.version[self._m.op[read.op, tables.VERSION], tables.WRITER])} - {-1}

    # Orders of writers

    def _link(self, longest: LongestList, writers: list[int], number: int) -> None:
        previous = longest.last
        for writer in writers:
            if previous >= 0:
                self._order(previous, writer, number)
            previous = writer

    def _put_last(self, longest: LongestList) -> None:
        """Order the writers that the longest list does not show after its last writer."""
        if longest.new_writers:
            for writer in longest.unseen:
                self._order(longest.last, writer, longest.number)
        longest.new_writers = 0

    def _register_writes(self, t: int) -> None:
        """Register t, and the transactions of unknown outcome it read from, as writers of keys with lists."""
        m = self._m
        if m.txn[t, tables.PARTICIPATES]:
            self._register_writer(t)
        for r in range(int(m.txn[t, tables.FIRST_READ]), int(m.txn[t + 1, tables.FIRST_READ])):
            source = int(m.read[r, tables.SOURCE])
            if source >= 0 and m.txn[source, tables.STATUS] == tables.UNKNOWN:
                self._register_writer(source)

    def _register_writer(self, u: int) -> None:
        """Order u, which participates from now on, after the longest lists that do not show it."""
        m = self._m
        ops = slice(*m.txn[u : u + 2, tables.FIRST_OP].tolist())
        for x in m.op[ops, tables.KEY][m.op_kind[ops] & tables.LAST != 0].tolist():
            longest = self._longest.get(x)
            if longest is not None and longest.last >= 0 and u not in longest.writers:
                longest.unseen[u] = None
                self._order(longest.last, u, longest.number)

    def _participating_writers(self, x: int) -> set[int]:
        m, heads = self._m, int(self._m.key[x, tables.HEADS])
        found: set[int] = set()
        if heads >= 0:
            for s in self._pooled(heads)[::2].tolist():
                slot = tables.find_slot(self._native, x, s, False)
                found.update(self._pooled(int(m.slot[slot, tables.WRITERS])).tolist())
        return found

    def _pooled(self, number: int) -> Any:
        offset, length = self._m.lists[number, [tables.OFFSET, tables.LENGTH]].tolist()
        return self._m.pool[offset : offset + length]

    def _order(self, before: int, after: int, number: int) -> None:
        for level in level_kernels.LEVELS:
            if self._m.levels[level]:
                level_kernels.add_forced_edge(self._native, level, before, after, -1, number)
