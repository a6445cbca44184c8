"""What a history tells by itself, in plain dicts and sets. t1 -WR(x)-> t3 is a read, START the initial state."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from plume_py.base.text import txn_text
from plume_py.history.model import History, Op, Transaction
from plume_py.history.value_codes import Atom


class HistoryFacts:
    """What a history tells by itself: who wrote, who read what from whom, and which reads are wrong in themselves.

    Transactions are numbered as they stand. A transaction counts if it committed, or if its outcome is unknown and a
    committed one read from it; only the reads of committed ones are judged. ``order`` is which order between them
    counts: none (then each has a session of its own), session, or with real time, realtime and realtime-per-key.
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
        self.called: dict[str | int, list[int]] = {}  # by id, which need not be unique
        for t, txn in enumerate(self.txns):
            self.called.setdefault(txn.id, []).append(t)
        self.initial = history.initial_value
        self.initials = history.initial_values
        self.wrote = [{op.key: op.value for op in txn.ops if op.kind != "r"} for txn in self.txns]  # the last value
        self.writer = {(op.key, op.value): t for t, op in self._ops("w", "append")}
        self.live = self._live()
        self.reads: dict[int, list[tuple[Atom, int]]] = {t: [] for t in self.live}  # (x, t1) of others, program order
        self.saw: set[tuple[int, Atom, int, Atom]] = set()  # (t, x, t1, value): such a read, and what it showed
        self.flaws: dict[int, list[tuple[str, Atom, int | None]]] = {}  # (pattern, key, writer of what was read)
        self.lists = Lists([_appends(txn) for txn in self.txns], self.writer, self.reads.keys())  # type: ignore[arg-type]
        for t in self.live:
            if self.txns[t].status == "committed":
                self._judge(t)
        self.lists.judge()
        for read in self.lists.reads:
            for pattern, t1 in read.flaws:
                self.flaws.setdefault(read.reader, []).append((pattern, read.key, t1))
        self.writers: dict[Atom, dict[int, list[int]]] = {}  # key -> session -> who wrote it, in session order
        self.previous: dict[int, int] = {}
        for t in self.live:
            for x in self.wrote[t]:
                self.writers.setdefault(x, {}).setdefault(self.session[t], []).append(t)
        for a, b in pairwise(self.live):
            if self.session[a] == self.session[b]:
                self.previous[b] = a
        self.ended = self._ended() if order.startswith("realtime") else {}  # by session: who has an end, in order
        self.keys = {t: {op.key for op in self.txns[t].ops} for t in self.live} if order == "realtime-per-key" else {}

    def _ops(self, *kinds: str) -> Iterator[tuple[int, Op]]:
        return ((t, op) for t, txn in enumerate(self.txns) for op in txn.ops if op.kind in kinds)

    def _live(self) -> list[int]:
        committed = {t for t, txn in enumerate(self.txns) if txn.status == "committed"} - {self.history.init_txn}
        unknown = {t for t, txn in enumerate(self.txns) if txn.status == "unknown"}
        if unknown:
            shown_values = ((op.key, v) for t, op in self._ops("r") if t in committed for v in _values(op))
            unknown &= {self.writer.get(version, START) for version in shown_values}
        return sorted(committed | unknown)

    def source(self, x: Atom, value: Atom) -> int | None:
        """Who wrote what a read saw: a transaction, START for the initial state, None for nobody."""
        t = self.writer.get((x, value))
        if t is not None:
            return START if t == self.history.init_txn else t
        if x in self.initials:
            return START if value == self.initials[x] else None
        return START if self.history.initial is not None and value == self.initial else None

    def _judge(self, t: int) -> None:
        """Note what t read from others, and what no level but CI allows (TAP a-f, lists), and TAP-j."""
        own: dict[Atom, list[Atom]] = {}  # what it has written so far
        found: list[tuple[str, Atom, int | None]] = []
        for op in self.txns[t].ops:
            x, value = op.key, op.value
            if isinstance(value, tuple):
                read = self.lists.take_apart(t, x, value, tuple(own.get(x, ())))
                self._note(t, x, read.source, read.external[-1] if read.external else self.initial)
            elif op.kind != "r":
                own.setdefault(x, []).append(value)
            else:
                t1 = self.source(x, value)
                found += [(flaw, x, t1) for flaw in self._read_flaws(t, t1, x, value, own.get(x, []))]
                self._note(t, x, t1, value)
        sources: dict[Atom, set[int]] = {}
        for x, t1 in self.reads[t]:
            sources.setdefault(x, set()).add(t1)
        found += [("j", x, None) for x, several in sources.items() if len(several) > 1]
        if found:
            self.flaws[t] = found

    def _note(self, t: int, x: Atom, t1: int | None, value: Atom) -> None:
        """t read x from t1, if that is another who counts."""
        if t1 is not None and t1 != t and (t1 == START or t1 in self.reads):
            self.reads[t].append((x, t1))
            self.saw.add((t, x, t1, value))

    def _read_flaws(self, t: int, t1: int | None, x: Atom, value: Atom, mine: list[Atom]) -> Iterator[str]:
        if t1 is None:
            yield "a"
        elif t1 == t:
            if value not in mine:
                yield "c"
            elif value != mine[-1]:
                yield "e"
        elif t1 != START and self.txns[t1].status == "aborted":
            yield "b"
        else:
            if mine:
                yield "d"
            if t1 != START and self.wrote[t1][x] != value:
                yield "f"

    def name(self, t: int) -> str:
        """A transaction for people."""
        return "the initial state" if t == START else txn_text(self.txns[t].id)

    def before(self, t: int) -> set[int]:
        """The direct predecessors of t by SO, WR and real time, or such that these follow."""
        found = {t1 for _, t1 in self.reads[t] if t1 != START} | self.ended_before(t)
        return found | {self.previous[t]} if t in self.previous else found

    def _ended(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for t in self.live:
            if self.txns[t].end is not None and self.txns[t].status == "committed":
                found.setdefault(self.session[t], []).append(t)
        return found

    def in_time(self, a: int, b: int) -> bool:
        """Does real time count, and had a ended before b began?"""
        end, begin = self.txns[a].end, self.txns[b].begin
        is_early = end is not None and begin is not None and end < begin and self.txns[a].status == "committed"
        if not self.ended or a == self.history.init_txn:
            return False
        return is_early and (self.order == "realtime" or not self.keys[a].isdisjoint(self.keys[b]))

    def ended_before(self, t: int, only: set[int] | None = None) -> set[int]:
        """Of each session the last that had ended before t began, since session order says the rest; or all of them.

        Those that need a common key are all there, since others of their session may have none. ``only``: among these.
        """
        begin = self.txns[t].begin
        if begin is None:
            return set()
        found: set[int] = set()
        for several in self.ended.values():
            at = bisect_left(several, begin, key=self._end)
            if self.keys:
                found.update(a for a in several[:at] if (only is None or a in only) and self.in_time(a, t))
            else:
                last = next((i for i in range(at - 1, -1, -1) if only is None or several[i] in only), None)
                found.update(() if last is None else (several[last],))
        return found - {t}

    def ended_writers(self, x: Atom, t: int) -> list[int]:
        """The writers of x that had ended before t began, as far as others of their session do not stand for them."""
        found = ([w for w in writers if w != t and self.in_time(w, t)] for writers in self.writers.get(x, {}).values())
        return [several[-1] for several in found if several]

    def _end(self, t: int) -> int:
        return self.txns[t].end or 0


def _appends(txn: Transaction) -> dict[Atom, tuple[Atom, ...]]:
    """What it appends to each list, in program order."""
    found: dict[Atom, list[Atom]] = {}
    for op in txn.ops:
        if op.kind == "append":
            found.setdefault(op.key, []).append(op.value)  # type: ignore[arg-type]
    return {x: tuple(values) for x, values in found.items()}


def _values(op: Op) -> tuple[Atom, ...]:
    return op.value if isinstance(op.value, tuple) else (op.value,)


START = -1  # the initial state, before every transaction
TORN, DUPLICATE = "torn-append", "duplicate-element"

List = tuple[Atom, ...]


@dataclass(slots=True, eq=False)
class ListRead:
    """One read of a list by a committed transaction."""

    reader: int
    key: Atom
    items: List  # L
    mine: List  # what the reader had appended so far
    external: List  # P
    source: int | None  # the writer of P's last element, START if P is empty, None if that element does not count
    flaws: list[tuple[str, int | None]] = field(default_factory=list)  # (pattern, who appended what is wrong)

    @property
    def clean(self) -> bool:
        """Does it tell an order? If only last appends are missing (TAP-f) the order of the others is still told."""
        return all(pattern == "f" for pattern, _ in self.flaws)


class Lists:
    """All reads of lists: first each is taken apart, then they are judged together."""

    def __init__(
        self, appends: Sequence[Mapping[Atom, List]], writer: Mapping[tuple[Atom, Atom], int], live: Set[int]
    ) -> None:
        """A_u(x) is ``appends[u][x]``; ``writer`` knows who appended an element, ``live`` who counts."""
        self.appends, self.writer, self.live = appends, writer, live
        self.reads: list[ListRead] = []
        self.read_by: defaultdict[tuple[int, Atom], list[ListRead]] = defaultdict(list)
        self.orders: dict[Atom, list[ListRead]] = {}  # which reads tell the longest order of a key, and its rivals

    def take_apart(self, t: int, x: Atom, items: List, mine: List) -> ListRead:
        """The own part must be the end, and nothing of the reader's may stand elsewhere (TAP c, d, e)."""
        so_far = set(mine)
        later = set(self.appends[t].get(x, ())) - so_far
        present = tuple(v for v in items if v not in later) if later else items
        external = tuple(v for v in present if v not in so_far) if mine else present
        source = self._who(x, external[-1]) if external else START
        read = ListRead(t, x, items, mine, external, source)
        if len(present) < len(items):
            read.flaws.append(("c", source))
        if mine and present != external + mine:
            read.flaws.append(("e" if present and present[-1] in so_far else "d", source))
        self.reads.append(read)
        self.read_by[t, x].append(read)
        return read

    def judge(self) -> None:
        """Note what is wrong with external parts, and the orders that clean lists tell.

        The longest come first: what is a beginning of a sound list needs no second look.
        """
        sound: dict[Atom, List] = {}
        for read in sorted(self.reads, key=lambda read: -len(read.external)):
            part = read.external
            if part != sound.get(read.key, ())[: len(part)]:
                part = self._unrepeated(read)
                found = [*self._strangers(read), *self._repeated(read), *self._torn(read.key, part)]
                read.flaws += dict.fromkeys(found)
                if not found:
                    sound.setdefault(read.key, part)
            read.flaws += [("f", u) for u in self._cut_short(read.key, part) if (TORN, u) not in read.flaws]
        clean = [(self.extension(read), read) for read in self.reads if read.clean]
        longest: dict[Atom, List] = {}
        for facts, read in sorted(clean, key=lambda pair: -len(pair[0])):
            first = longest.setdefault(read.key, facts)
            if facts is first or contradict(facts, first):
                self.orders.setdefault(read.key, []).append(read)

    def extension(self, read: ListRead) -> List:
        """The order that a clean list tells: if it shows own appends, all of the reader's follow at once."""
        return read.external + self.appends[read.reader][read.key] if read.mine else read.external

    def writers(self, read: ListRead) -> list[int]:
        """Who comes one after the other, as a clean list tells."""
        others = dict.fromkeys(self.writer[read.key, value] for value in read.external)
        return [*others, read.reader] if read.mine else [*others]

    def clean_reads(self, t: int, x: Atom) -> list[ListRead]:
        """The clean lists that t read under key x."""
        return [read for read in self.read_by.get((t, x), ()) if read.clean]

    def _who(self, x: Atom, value: Atom) -> int | None:
        t = self.writer.get((x, value))
        return t if t in self.live else None

    def _strangers(self, read: ListRead) -> Iterator[tuple[str, int | None]]:
        """Elements that nobody appended, or only one that aborted (TAP a, b)."""
        for t in {self.writer.get((read.key, value)) for value in read.external} - self.live:
            yield ("a", None) if t is None else ("b", t)

    def _repeated(self, read: ListRead) -> Iterator[tuple[str, int | None]]:
        """Elements that are shown more often than they were appended."""
        times = Counter(read.external)
        if len(times) < len(read.external):
            for value, shown in times.items():
                if shown > 1 and shown > self._times_appended(read.key, value):
                    yield DUPLICATE, self.writer.get((read.key, value))

    def _times_appended(self, x: Atom, value: Atom) -> int:
        u = self.writer.get((x, value))
        return 1 if u is None else self.appends[u][x].count(value)

    def _torn(self, x: Atom, items: List) -> Iterator[tuple[str, int]]:
        """Who counts and is not there whole, together and in order; at the end, a beginning is enough."""
        at = 0
        while at < len(items):
            u = self._who(x, items[at])
            block = self.appends[u][x] if u is not None else items[at : at + 1]
            there = items[at : at + len(block)]
            if u is not None and there != block[: len(there)]:
                yield TORN, u
                at += 1
            else:
                at += len(there)

    def _unrepeated(self, read: ListRead) -> List:
        """P without repetitions: they are a flaw of their own, and tear nobody's appends apart."""
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
        """The last writer, if the list ends in a beginning of its appends, and not in all of them (TAP-f)."""
        u = self._who(x, items[-1]) if items else None
        if u is not None:
            block = self.appends[u][x]
            beginnings = (block[:n] for n, value in enumerate(block, 1) if value == items[-1])
            if items[-len(block) :] != block and any(items[-len(part) :] == part for part in beginnings):
                yield u

    def misread(self, order: Iterable[int]) -> Iterator[tuple[ListRead, str]]:
        """Replay: the lists that those who commit in this ``order`` make, against what was read; and what is wrong.

        A version of x is a beginning of one sequence, all appends to x in the order: versions are compared by their
        length, and only what was read is compared element by element.
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
    """Is neither list a beginning of the other?"""
    common = min(len(one), len(other))
    return one[:common] != other[:common]
