"""The facts that a history states, in plain dicts and sets: writers, reads-from, flawed reads, orders of lists.

Transactions are numbered in the order of the history; ``START`` is the initial state. t1 -WR(x)-> t3
means that t3 reads key x from t1; t2 is another writer of x.

Reads of lists: transaction t reads list L of key x. ``mine`` is what t itself appended to x before. The external part P
is L without the elements of t. P is read from the appender of its last element, or from the initial state if empty.
Each transaction that appended an element of P must appear in P with all its appends to x, together and in order.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from plume_py.base.text import txn_text
from plume_py.history.model import History, Op, Transaction
from plume_py.history.value_codes import Atom

START = -1  # the initial state, before every transaction
TORN, DUPLICATE = "torn-append", "duplicate-element"

List = tuple[Atom, ...]


class HistoryFacts:
    """The facts of a history under one order between transactions (none, session, realtime, realtime-per-key).

    ``live`` are the committed transactions, and those with unknown outcome that a committed one read from. Only reads
    of committed transactions are examined. With the order "none", each transaction is a session.

    ``reads[t]``: (key, writer) of t's reads from other live transactions or START, in program order.
    ``wrote[t]``: the last value that t wrote, by key.
    ``values_read``: (t, key, writer, value) of these reads.
    ``flaws[t]``: (pattern, key, writer or None) of reads that no commit order allows (TAP a to f, lists), and of TAP j.
    ``writers[x][session]``: the live writers of x in session order.
    ``ended[session]``: the committed transactions with an end time, in session order; empty without real time.
    """

    def __init__(self, history: History, order: str = "session") -> None:
        self.history, self.order = history, order
        self.txns: list[Transaction] = []
        self.session: list[int] = []
        for s, session in enumerate(history):
            self.txns += session
            self.session += [s] * len(session)
        if order == "none":
            self.session = list(range(len(self.txns)))
        self.by_id: dict[str | int, list[int]] = {}  # ids need not be unique
        for t, txn in enumerate(self.txns):
            self.by_id.setdefault(txn.id, []).append(t)
        self.initial, self.initials = history.initial_value, history.initial_values
        self.wrote = [{op.key: op.value for op in txn.ops if op.kind != "r"} for txn in self.txns]
        self.writer = {(op.key, op.value): t for t, op in self._ops("w", "append")}
        self.live = self._live()
        self.reads: dict[int, list[tuple[Atom, int]]] = {t: [] for t in self.live}
        self.values_read: set[tuple[int, Atom, int, Atom]] = set()
        self.flaws: dict[int, list[tuple[str, Atom, int | None]]] = {}
        self.lists = Lists([_appends(txn) for txn in self.txns], self.writer, self.reads.keys())  # type: ignore[arg-type]
        for t in self.live:
            if self.txns[t].status == "committed":
                self._examine_reads(t)
        self.lists.examine()
        for read in self.lists.reads:
            for pattern, t1 in read.flaws:
                self.flaws.setdefault(read.reader, []).append((pattern, read.key, t1))
        self.writers: dict[Atom, dict[int, list[int]]] = {}
        for t in self.live:
            for x in self.wrote[t]:
                self.writers.setdefault(x, {}).setdefault(self.session[t], []).append(t)
        self.previous = {b: a for a, b in pairwise(self.live) if self.session[a] == self.session[b]}
        self.ended = self._ended() if order.startswith("realtime") else {}
        self.keys = {t: {op.key for op in self.txns[t].ops} for t in self.live} if order == "realtime-per-key" else {}

    def name(self, t: int) -> str:
        return "the initial state" if t == START else txn_text(self.txns[t].id)

    # -- transactions and reads ------------------------------------------------------------------------------------

    def _ops(self, *kinds: str) -> Iterator[tuple[int, Op]]:
        return ((t, op) for t, txn in enumerate(self.txns) for op in txn.ops if op.kind in kinds)

    def _live(self) -> list[int]:
        committed = {t for t, txn in enumerate(self.txns) if txn.status == "committed"} - {self.history.init_txn}
        unknown = {t for t, txn in enumerate(self.txns) if txn.status == "unknown"}
        if unknown:
            versions = ((op.key, v) for t, op in self._ops("r") if t in committed for v in _values(op))
            unknown &= {self.writer.get(version, START) for version in versions}
        return sorted(committed | unknown)

    def source(self, x: Atom, value: Atom) -> int | None:
        """Return the writer of this value of x: a transaction, START for the initial state, or None."""
        t = self.writer.get((x, value))
        if t is not None:
            return START if t == self.history.init_txn else t
        if x in self.initials:
            return START if value == self.initials[x] else None
        return START if self.history.initial is not None and value == self.initial else None

    def _examine_reads(self, t: int) -> None:
        """Record the reads of t, and the flaws of reads of single values."""
        own: dict[Atom, list[Atom]] = {}  # the values that t has written so far
        found: list[tuple[str, Atom, int | None]] = []
        for op in self.txns[t].ops:
            x, value = op.key, op.value
            if isinstance(value, tuple):
                read = self.lists.add(t, x, value, tuple(own.get(x, ())))
                self._record(t, x, read.source, read.external[-1] if read.external else self.initial)
            elif op.kind != "r":
                own.setdefault(x, []).append(value)
            else:
                t1 = self.source(x, value)
                found += [(flaw, x, t1) for flaw in self._read_flaws(t, t1, x, value, own.get(x, []))]
                self._record(t, x, t1, value)
        sources: dict[Atom, set[int]] = {}
        for x, t1 in self.reads[t]:
            sources.setdefault(x, set()).add(t1)
        found += [("j", x, None) for x, several in sources.items() if len(several) > 1]
        if found:
            self.flaws[t] = found

    def _record(self, t: int, x: Atom, t1: int | None, value: Atom) -> None:
        """Record the read unless its writer is unknown, not live, or t itself."""
        if t1 is not None and t1 != t and (t1 == START or t1 in self.reads):
            self.reads[t].append((x, t1))
            self.values_read.add((t, x, t1, value))

    def _read_flaws(self, t: int, t1: int | None, x: Atom, value: Atom, own: list[Atom]) -> Iterator[str]:
        if t1 is None:
            yield "a"
        elif t1 == t:
            if value not in own:
                yield "c"
            elif value != own[-1]:
                yield "e"
        elif t1 != START and self.txns[t1].status == "aborted":
            yield "b"
        else:
            if own:
                yield "d"
            if t1 != START and self.wrote[t1][x] != value:
                yield "f"

    # -- order -----------------------------------------------------------------------------------------------------

    def predecessors(self, t: int) -> set[int]:
        """Return enough predecessors of t: their closure over all transactions is SO, WR and real time."""
        found = {t1 for _, t1 in self.reads[t] if t1 != START} | self.ended_before(t)
        return found | {self.previous[t]} if t in self.previous else found

    def _ended(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for t in self.live:
            if self.txns[t].end is not None and self.txns[t].status == "committed":
                found.setdefault(self.session[t], []).append(t)
        return found

    def precedes_in_real_time(self, a: int, b: int) -> bool:
        """Return whether the order includes real time, a ended before b began, and they share a key if required."""
        end, begin = self.txns[a].end, self.txns[b].begin
        is_early = end is not None and begin is not None and end < begin and self.txns[a].status == "committed"
        if not self.ended or a == self.history.init_txn:
            return False
        return is_early and (self.order == "realtime" or not self.keys[a].isdisjoint(self.keys[b]))

    def ended_before(self, t: int, only: set[int] | None = None) -> set[int]:
        """Return transactions that precede t in real time, among ``only`` if given.

        For "realtime", the last one of each session is enough, because session order implies the others. For
        "realtime-per-key" all are returned, because the others of a session may have other keys.
        """
        begin = self.txns[t].begin
        if begin is None:
            return set()
        found: set[int] = set()
        for several in self.ended.values():
            at = bisect_left(several, begin, key=self._end)
            if self.keys:
                early = (a for a in several[:at] if only is None or a in only)
                found.update(a for a in early if self.precedes_in_real_time(a, t))
            else:
                last = next((i for i in range(at - 1, -1, -1) if only is None or several[i] in only), None)
                found.update(() if last is None else (several[last],))
        return found - {t}

    def ended_writers(self, x: Atom, t: int) -> list[int]:
        """Return the last writer of x in each session that precedes t in real time."""
        found = (
            [w for w in writers if w != t and self.precedes_in_real_time(w, t)]
            for writers in self.writers.get(x, {}).values()
        )
        return [several[-1] for several in found if several]

    def _end(self, t: int) -> int:
        return self.txns[t].end or 0


def _appends(txn: Transaction) -> dict[Atom, List]:
    """Return what the transaction appends to each key, in program order."""
    found: dict[Atom, list[Atom]] = {}
    for op in txn.ops:
        if op.kind == "append":
            found.setdefault(op.key, []).append(op.value)  # type: ignore[arg-type]
    return {x: tuple(values) for x, values in found.items()}


def _values(op: Op) -> List:
    return op.value if isinstance(op.value, tuple) else (op.value,)


# -- reads of lists ----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class ListRead:
    """One read of a list by a committed transaction.

    ``source``: the live appender of the last external element, START if there is none, None if it is not live.
    ``flaws``: (pattern, appender of the wrong elements or None).
    """

    reader: int
    key: Atom
    items: List
    mine: List
    external: List
    source: int | None
    flaws: list[tuple[str, int | None]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether the read shows an order of appends. It does if only last appends are missing (TAP f)."""
        return all(pattern == "f" for pattern, _ in self.flaws)


class Lists:
    """All reads of lists. ``add`` splits each read; ``examine`` then compares them with each other.

    ``appends[u][x]``: what u appends to x, in program order. ``writer``: the transaction that appended (key, element).
    ``orders[x]``: the clean read with the longest order of x, then all clean reads that contradict it.
    """

    def __init__(
        self, appends: Sequence[Mapping[Atom, List]], writer: Mapping[tuple[Atom, Atom], int], live: Set[int]
    ) -> None:
        self.appends, self.writer, self.live = appends, writer, live
        self.reads: list[ListRead] = []
        self.read_by: defaultdict[tuple[int, Atom], list[ListRead]] = defaultdict(list)
        self.orders: dict[Atom, list[ListRead]] = {}

    def add(self, t: int, x: Atom, items: List, mine: List) -> ListRead:
        """Record a read and its flaws c, d and e: the reader's own elements must be ``mine``, at the end."""
        so_far = set(mine)
        later = set(self.appends[t].get(x, ())) - so_far
        present = tuple(v for v in items if v not in later) if later else items
        external = tuple(v for v in present if v not in so_far) if mine else present
        source = self._live_writer(x, external[-1]) if external else START
        read = ListRead(t, x, items, mine, external, source)
        if len(present) < len(items):
            read.flaws.append(("c", source))
        if mine and present != external + mine:
            read.flaws.append(("e" if present and present[-1] in so_far else "d", source))
        self.reads.append(read)
        self.read_by[t, x].append(read)
        return read

    def examine(self) -> None:
        """Record the flaws of external parts, and the orders that clean reads show.

        Reads are examined from the longest to the shortest: a prefix of a sound list is sound.
        """
        sound: dict[Atom, List] = {}
        for read in sorted(self.reads, key=lambda read: -len(read.external)):
            part = read.external
            if part != sound.get(read.key, ())[: len(part)]:
                part = self._without_repetitions(read)
                found = [*self._unreadable(read), *self._duplicates(read), *self._torn(read.key, part)]
                read.flaws += dict.fromkeys(found)
                if not found:
                    sound.setdefault(read.key, part)
            read.flaws += [("f", u) for u in self._cut_short(read.key, part) if (TORN, u) not in read.flaws]
        clean = [(self.extension(read), read) for read in self.reads if read.clean]
        longest: dict[Atom, List] = {}
        for order, read in sorted(clean, key=lambda pair: -len(pair[0])):
            first = longest.setdefault(read.key, order)
            if order is first or contradict(order, first):
                self.orders.setdefault(read.key, []).append(read)

    def extension(self, read: ListRead) -> List:
        """Return the order of elements that a clean read implies; after own appends, the reader's others follow."""
        return read.external + self.appends[read.reader][read.key] if read.mine else read.external

    def writers(self, read: ListRead) -> list[int]:
        """Return the order of appenders that a clean read implies."""
        others = dict.fromkeys(self.writer[read.key, value] for value in read.external)
        return [*others, read.reader] if read.mine else [*others]

    def clean_reads(self, t: int, x: Atom) -> list[ListRead]:
        return [read for read in self.read_by.get((t, x), ()) if read.clean]

    def _live_writer(self, x: Atom, value: Atom) -> int | None:
        t = self.writer.get((x, value))
        return t if t in self.live else None

    def _unreadable(self, read: ListRead) -> Iterator[tuple[str, int | None]]:
        """Yield elements without an appender (TAP a), or of a transaction that is not live (TAP b)."""
        for t in {self.writer.get((read.key, value)) for value in read.external} - self.live:
            yield ("a", None) if t is None else ("b", t)

    def _duplicates(self, read: ListRead) -> Iterator[tuple[str, int | None]]:
        """Yield elements that occur more often than they were appended."""
        times = Counter(read.external)
        if len(times) < len(read.external):
            for value, shown in times.items():
                if shown > 1 and shown > self._times_appended(read.key, value):
                    yield DUPLICATE, self.writer.get((read.key, value))

    def _times_appended(self, x: Atom, value: Atom) -> int:
        u = self.writer.get((x, value))
        return 1 if u is None else self.appends[u][x].count(value)

    def _torn(self, x: Atom, items: List) -> Iterator[tuple[str, int]]:
        """Yield live transactions whose appends are not complete, together and in order (at the end: a prefix)."""
        at = 0
        while at < len(items):
            u = self._live_writer(x, items[at])
            block = self.appends[u][x] if u is not None else items[at : at + 1]
            there = items[at : at + len(block)]
            if u is not None and there != block[: len(there)]:
                yield TORN, u
                at += 1
            else:
                at += len(there)

    def _without_repetitions(self, read: ListRead) -> List:
        """Return P without duplicates, which are a flaw of another kind and do not tear appends."""
        if len(set(read.external)) == len(read.external):
            return read.external
        times: Counter[Atom] = Counter()
        kept = []
        for value in read.external:
            times[value] += 1
            if times[value] == 1 or times[value] <= self._times_appended(read.key, value):
                kept.append(value)
        return tuple(kept)

    def _cut_short(self, x: Atom, items: List) -> Iterator[int]:
        """Yield the last appender if the list ends in a proper prefix of its appends (TAP f)."""
        u = self._live_writer(x, items[-1]) if items else None
        if u is not None:
            block = self.appends[u][x]
            prefixes = (block[:n] for n, value in enumerate(block, 1) if value == items[-1])
            if items[-len(block) :] != block and any(items[-len(part) :] == part for part in prefixes):
                yield u

    def mismatches(self, order: Iterable[int]) -> Iterator[tuple[ListRead, str]]:
        """Yield the reads that differ from a replay of the appends in a commit order, each with the problem.

        Every version of x is a prefix of one sequence, all appends to x in the order. Versions are therefore compared
        by length, and only lists that were read are compared by element.
        """
        made: defaultdict[Atom, list[Atom]] = defaultdict(list)
        span: dict[tuple[int, Atom], tuple[int, int]] = {}
        for u in order:
            for x, block in self.appends[u].items():
                before = len(made[x])
                made[x] += block
                span[u, x] = before, len(made[x])
        sequence = {x: tuple(elements) for x, elements in made.items()}
        for read in self.reads:
            if read.source is not None:
                size = 0 if read.source == START else span[read.source, read.key][1]
                fits = len(read.items) == size + len(read.mine)
                if not fits or read.items != sequence.get(read.key, ())[:size] + read.mine:
                    yield read, "is not what the order makes of it"
                elif read.mine and span[read.reader, read.key][0] != size:
                    yield read, "lacks what comes just before its own appends in the order"


def contradict(one: List, other: List) -> bool:
    common = min(len(one), len(other))
    return one[:common] != other[:common]
