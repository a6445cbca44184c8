"""Reads of lists, taken apart, judged and replayed.

t reads the list L of x. Its own part is what t itself has appended to x so far; its external part P is all of L that is
not t's. P is read from the writer of its last element, or from the initial state if it is empty. A_u(x) are all appends
of u to x, in program order: every u that P shows must be there whole, together and in order.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from plume_py.history.value_codes import Atom

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
