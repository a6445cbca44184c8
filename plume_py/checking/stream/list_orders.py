"""What lists show beyond the last element that others appended, while they arrive.

That last element is resolved by the kernels like any read. The rest is done here, read by read: what a list shows of
its reader's own appends, and, as soon as all its elements have arrived, whether every writer stands in it as a whole,
and how it goes together with the longest list of its key. Mostly it is a beginning of that one, or adds a few elements
to it, and then only these are looked at.

From the longest list the order of the writers follows, at every level: each one in it comes before the next, and
whoever is not in it comes after all that are. The latter changes when the list grows; so that this does not cost a step
for each pair of a list and a writer that it does not show, those writers wait until the list has grown by as many as
they are. ``finish`` makes up for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plume_py.checking.stream import level_kernels as forcing
from plume_py.checking.stream import level_kernels as judges
from plume_py.checking.stream import table_kernels as tables
from plume_py.checking.stream.state import State
from plume_py.history.model import Int64s

# Kinds of events that only lists have: one that is wrong by itself, and one that contradicts another.
WRONG_LIST, CONTRADICTING_LISTS = 20, 21

NO_CODES = np.empty(0, np.int64)

# Who appended an element, and all that this transaction appended to the key, in its order.
Appended = Callable[[int], "tuple[int, list[int]]"]


@dataclass
class ListRead:
    """A list that a committed transaction read."""

    op: int
    reader: int
    key: int
    codes: Int64s  # its elements
    part: Int64s  # those that others appended
    own: Int64s  # if its reader had appended to it before: all that it ever appends
    own_fits: bool  # it shows the appends that its reader had made, at the end, and no others of its own
    sound: bool = True  # so it does, and none of an aborted transaction
    clean: bool = False  # it is complete and right by itself, so that it fixes an order of writers
    missing: int = 0  # how many of its elements have not arrived
    blamed: set[int] = field(default_factory=set)  # transactions that show what is wrong with it

    @property
    def extent(self) -> Int64s:
        """All that must come first in the order of the key."""
        return np.concatenate((self.part, self.own)) if len(self.own) else self.part


@dataclass
class Tail:
    """What stands in a list behind a reference: blocks of appends, one for each writer."""

    writers: list[int] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)  # by element: is it its writer's last append?
    due: list[int] = field(default_factory=list)  # what the last writer appended besides, and is not there
    blamed: set[int] = field(default_factory=set)  # whose appends are repeated, split, swapped or missing


@dataclass
class Reference:
    """The longest list of one key that is right by itself, as codes of its elements."""

    number: int = -1  # of the list
    codes: Int64s = field(default_factory=lambda: NO_CODES)
    members: set[int] = field(default_factory=set)  # the same
    ends: list[bool] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    writers: set[int] = field(default_factory=set)
    last: int = -1  # the last of them
    unseen: dict[int, None] = field(default_factory=dict)  # a set: other live writers of the key
    behind: int = 0  # so many writers became the last one since all of the unseen were put after it
    read: int = 0  # so many elements have been shown to somebody; its reader's own may still wait for that

    def agreement(self, codes: Int64s) -> int:
        """How many elements ``codes`` has in common with the reference, from the start."""
        both = min(len(codes), len(self.codes))
        differ = np.flatnonzero(codes[:both] != self.codes[:both])
        return int(differ[0]) if differ.size else both

    def tail(self, codes: Int64s, appended: Appended) -> Tail:
        """What ``codes``, of which the reference is a beginning, has behind it.

        Each writer's appends must stand together and in order; the last one's may be incomplete (TAP-f).
        """
        tail = Tail(due=self.due)
        owner = self.last
        shown: set[int] = set()
        for code in codes[len(self.codes) :].tolist():
            if tail.due and tail.due[0] == code:
                tail.due = tail.due[1:]
            else:
                writer, block = appended(code)
                if code in shown or code in self.members:
                    tail.blamed.add(writer)
                    continue
                if tail.due:
                    tail.blamed |= {owner, writer}
                if block[0] != code:
                    tail.blamed.add(writer)
                tail.due = block[block.index(code) + 1 :]
                tail.writers.append(writer)
                owner = writer
            shown.add(code)
            tail.ends.append(not tail.due)
        return tail

    def grow(self, number: int, codes: Int64s, tail: Tail) -> None:
        """List ``number``, with these elements, is the longest now."""
        self.members.update(codes[len(self.codes) :].tolist())
        self.number, self.codes, self.due = number, codes, tail.due
        self.ends += tail.ends
        self.writers.update(tail.writers)
        self.last = tail.writers[-1] if tail.writers else self.last
        self.behind += len(tail.writers)
        for writer in tail.writers:
            self.unseen.pop(writer, None)


class ListOrders:
    """All lists so far, and for each key the longest, of which all others must be a beginning."""

    def __init__(self) -> None:
        self.reads: list[ListRead] = []
        self.by_op: dict[int, ListRead] = {}
        self.shown_by: dict[int, int] = {}  # of unknown outcome, and counted because some list shows it: that list
        self.waiting = 0  # how many lists hold elements that nobody has appended yet
        self._references: dict[int, Reference] = {}
        self._waiting: dict[int, list[int]] = {}  # by element that has not arrived: the lists that show it
        self._m: State
        self._native: Any = None

    def take(self, m: State, native: Any, t: int, lists: dict[int, Int64s]) -> None:
        """Transaction t has arrived, with these lists by operation; ``native`` is m for kernels."""
        self._m, self._native = m, native
        judges.catch_up(native)
        self._count_live(t)
        if m.txn[t, tables.STATUS] == tables.COMMITTED:
            for o, codes in lists.items():
                self._take_list(self._split(o, t, codes))
        if self._waiting:
            self._serve(t)

    def finish(self) -> None:
        """Nothing more is to come, for now: put all that no list shows behind the lists."""
        for reference in self._references.values():
            self._put_last(reference)

    # the reader's own appends

    def _split(self, o: int, t: int, codes: Int64s) -> ListRead:
        """A list as what others appended and what its reader did, which must stand at the end, once and so far."""
        x = int(self._m.op[o, tables.KEY])
        so_far, own = self._appends(t, x, o), self._appends(t, x)
        if not own:
            return ListRead(o, t, x, codes, codes, NO_CODES, own_fits=True)
        mine = np.isin(codes, own)
        begin = len(codes) - len(so_far)
        fits = begin >= 0 and codes[begin:].tolist() == so_far and not bool(np.any(mine[:begin]))
        return ListRead(o, t, x, codes, codes[~mine], np.array(own, np.int64) if so_far else NO_CODES, fits, fits)

    def _appends(self, t: int, x: int, before: int | None = None) -> list[int]:
        """What t appended to x, in its order; if ``before`` is given, only before that operation."""
        m = self._m
        begin, end = m.txn[t : t + 2, tables.FIRST_OP].tolist()
        ops = slice(begin, end if before is None else before)
        mine = (m.op[ops, tables.KEY] == x) & (m.op_kind[ops] & tables.WRITES != 0)
        appended: list[int] = m.version_value[m.op[ops, tables.VERSION][mine]].tolist()
        return appended

    # elements that arrive

    def _take_list(self, read: ListRead) -> None:
        """A list is judged once all its elements have arrived; until then its last one waits like any read."""
        number = len(self.reads)
        self.reads.append(read)
        self.by_op[read.op] = read
        reference = self._references.get(read.key)
        known = 0 if reference is None else min(reference.read, reference.agreement(read.part))
        versions = dict.fromkeys(self._element(read, code) for code in read.part[known:].tolist())
        if len(read.part) < len(read.codes):
            for code in self._appends(read.reader, read.key):
                if code in read.codes:
                    self._element(read, code)
        if not read.own_fits and (not len(read.part) or self.source(read)):
            self._note(WRONG_LIST, number)  # else when that has arrived, so that it can be shown
        for v in versions:
            writer = int(self._m.version[v, tables.WRITER])
            if writer < 0:
                read.missing += 1
                self._waiting.setdefault(v, []).append(number)
            else:
                self._judge_element(writer, v, number)
        if read.missing:
            self.waiting += 1
        else:
            self._judge(number)

    def _element(self, read: ListRead, code: int) -> int:
        """The version of an element, which somebody has seen now."""
        v = int(tables.intern_version(self._native, read.key, code))
        if self._m.version[v, tables.SEEN_BY] < 0:
            self._m.version[v, tables.SEEN_BY] = read.reader
        if self._m.version[v, tables.SECOND] >= 0:
            forcing.note(self._native, forcing.AMBIGUOUS, 0, read.reader, v, -1, -1)
        return v

    def _serve(self, t: int) -> None:
        """Lists that waited for what t appended."""
        m = self._m
        for o in range(int(m.txn[t, tables.FIRST_OP]), int(m.txn[t + 1, tables.FIRST_OP])):
            v = int(m.op[o, tables.VERSION])
            if m.op_kind[o] & tables.WRITES and m.version[v, tables.WRITER] == t:
                for number in self._waiting.pop(v, ()):
                    read = self.reads[number]
                    self._judge_element(t, v, number)
                    if not read.own_fits and v == m.op[read.op, tables.VERSION]:
                        self._note(WRONG_LIST, number)
                    read.missing -= 1
                    if not read.missing:
                        self.waiting -= 1
                        self._judge(number)

    def _judge_element(self, writer: int, v: int, number: int) -> None:
        """Whoever appended an element must not have aborted; an unknown outcome counts from now on."""
        m, read = self._m, self.reads[number]
        if m.txn[writer, tables.STATUS] == tables.ABORTED:
            read.sound = False
            if v != m.op[read.op, tables.VERSION]:  # else the kernels have noted it
                read.blamed = {writer}
                self._note(WRONG_LIST, number)
        elif m.txn[writer, tables.STATUS] == tables.UNKNOWN:
            self.shown_by.setdefault(writer, number)
            if not m.txn[writer, tables.LIVE]:
                judges.activate(self._native, writer)
                self._append(writer)

    # whole lists

    def _judge(self, number: int) -> None:
        """All elements are there: is the list right by itself, and does it go together with the longest one?"""
        read = self.reads[number]
        if not read.sound:
            return
        reference = self._references.setdefault(read.key, Reference())
        codes = read.extent
        agreed = reference.agreement(codes)
        if agreed < min(len(codes), len(reference.codes)):
            self._contradict(number, reference, agreed)
            return
        if len(codes) > len(reference.codes):
            tail = reference.tail(codes, self._appended(read.key))
            if tail.blamed:
                self._blame(number, tail.blamed)
                return
            self._link(reference, tail.writers, number)
            first = reference.number < 0
            reference.grow(number, codes, tail)
            if first:
                reference.unseen = dict.fromkeys(self._live_writers(read.key) - reference.writers)
                reference.behind = len(reference.unseen)
            if reference.behind >= len(reference.unseen):
                self._put_last(reference)
        read.clean = True
        reference.read = max(reference.read, len(read.part))
        if len(read.part) and not reference.ends[len(read.part) - 1] and self._seems_final(read):
            self._note(WRONG_LIST, number)

    def _seems_final(self, read: ListRead) -> bool:
        """Did the kernels take the last element for its writer's last append? It may have appended the same twice."""
        return bool(self._m.version[self._m.op[read.op, tables.VERSION], tables.FINAL])

    def _contradict(self, number: int, reference: Reference, agreed: int) -> None:
        """The list is no beginning of the reference, nor the other way round: either it is wrong by itself, or both."""
        read = self.reads[number]
        appended = self._appended(read.key)
        blamed = Reference().tail(read.extent, appended).blamed
        if blamed:
            self._blame(number, blamed)
            return
        read.clean = True
        other = self.reads[reference.number]
        read.blamed = {appended(int(codes[agreed]))[0] for codes in (read.extent, reference.codes)}
        read.blamed |= self.source(other)
        forcing.note(self._native, CONTRADICTING_LISTS, 0, read.reader, other.reader, -1, number)

    def _blame(self, number: int, transactions: set[int]) -> None:
        self.reads[number].blamed |= transactions
        self._note(WRONG_LIST, number)

    def _note(self, kind: int, number: int) -> None:
        reader = self.reads[number].reader
        forcing.note(self._native, kind, 0, reader, reader, -1, number)

    def _appended(self, x: int) -> Any:
        """Who appended an element of x, and all that this transaction appended to x."""

        def of(code: int) -> tuple[int, list[int]]:
            writer = self.writer(x, code)
            return writer, self._appends(writer, x)

        return of

    def writer(self, x: int, code: int) -> int:
        """Who appended an element that has arrived, or -1."""
        return int(self._m.version[tables.intern_version(self._native, x, code), tables.WRITER])

    def source(self, read: ListRead) -> set[int]:
        """Whom the list was read from; nobody, if that is the initial state or has not arrived."""
        return {int(self._m.version[self._m.op[read.op, tables.VERSION], tables.WRITER])} - {-1}

    # orders of writers

    def _link(self, reference: Reference, writers: list[int], number: int) -> None:
        """One writer after the other, as the list shows them."""
        previous = reference.last
        for writer in writers:
            if previous >= 0:
                self._order(previous, writer, number)
            previous = writer

    def _put_last(self, reference: Reference) -> None:
        """Whoever the reference does not show comes after all that it shows."""
        if reference.behind:
            for writer in reference.unseen:
                self._order(reference.last, writer, reference.number)
        reference.behind = 0

    def _count_live(self, t: int) -> None:
        """t has arrived: it may write what some list does not show, and so may those from whom it read."""
        m = self._m
        if m.txn[t, tables.LIVE]:
            self._append(t)
        for r in range(int(m.txn[t, tables.FIRST_READ]), int(m.txn[t + 1, tables.FIRST_READ])):
            source = int(m.read[r, tables.SOURCE])
            if source >= 0 and m.txn[source, tables.STATUS] == tables.UNKNOWN:
                self._append(source)

    def _append(self, u: int) -> None:
        """The writes of u count from now on."""
        m = self._m
        ops = slice(*m.txn[u : u + 2, tables.FIRST_OP].tolist())
        for x in m.op[ops, tables.KEY][m.op_kind[ops] & tables.LAST != 0].tolist():
            reference = self._references.get(x)
            if reference is not None and reference.last >= 0 and u not in reference.writers:
                reference.unseen[u] = None
                self._order(reference.last, u, reference.number)

    def _live_writers(self, x: int) -> set[int]:
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
        for level in judges.LEVELS:
            if self._m.levels[level]:
                forcing.order(self._native, level, before, after, -1, number)
