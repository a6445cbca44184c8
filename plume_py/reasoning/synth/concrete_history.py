"""A history as plain data: what a search finds, and what definitions can be evaluated on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, islice, permutations
from typing import TYPE_CHECKING

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.override import override
from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.history_terms import NO_TIMES, View

if TYPE_CHECKING:
    from plume_py.history.model import History

# All orders of seven transactions; of histories with more of them, isomorphic ones may be taken for different.
MOST_ORDERS = 5040
KEYS = "xyzuvwabcdefghijklmnopqrst"


@dataclass(frozen=True)
class ConcreteTxn:
    """The reads of others, in their order, as (key, writer), then the keys that it writes.

    ``place``: its place in its session, where that is not by number. ``span``: its begin and its end, by one clock.
    """

    session: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[int, ...]
    level: str | None = None
    place: int | None = None
    span: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """Its operations."""
        return len(self.reads) + len(self.writes)


@dataclass(frozen=True)
class Concrete:
    """Transactions in an order in which reads only go forward, and sessions, too, unless places say otherwise.

    Names of keys and values follow from it.
    """

    txns: tuple[ConcreteTxn, ...]
    names: tuple[str, ...] = ()

    @property
    def keys(self) -> list[int]:
        """The keys that occur."""
        return sorted({x for t in self.txns for x in (*t.writes, *(key for key, _ in t.reads))})

    @property
    def operations(self) -> int:
        """How many there are."""
        return sum(t.size for t in self.txns)

    @property
    def session_pairs(self) -> int:
        """Pairs of transactions of one session."""
        return sum(a.session == b.session for a, b in combinations(self.txns, 2))

    @property
    def realtime_pairs(self) -> int:
        """Pairs of transactions of which one had ended before the other began."""
        return sum(self.ended_before(a, b) for a, b in permutations(range(len(self.txns)), 2))

    def precedes(self, a: int, b: int) -> bool:
        """Does a come before b in one session?"""
        first, second = self.txns[a], self.txns[b]
        return first.session == second.session and (first.place or 0, a) < (second.place or 0, b)

    def ended_before(self, a: int, b: int) -> bool:
        """Had a ended before b began? Not if nothing is known of times."""
        first, second = self.txns[a].span, self.txns[b].span
        return first is not None and second is not None and first[1] < second[0]

    def name(self, t: int) -> str:
        """T1 for the first one of the first session, and so on: as ``isocheck check`` would name it."""
        return self.names[t] if self.names else f"T{self.by_session().index(t) + 1}"

    def by_session(self) -> list[int]:
        """Transactions, session after session, sessions in the order of their numbers."""
        return sorted(range(len(self.txns)), key=lambda t: (self.txns[t].session, self.txns[t].place or 0, t))

    def value(self, x: int, writer: int) -> int:
        """What ``writer`` writes to x: 1 for the first writer by name, and so on; initially 0."""
        if writer == INITIAL:
            return 0
        return 1 + [t for t in self.by_session() if x in self.txns[t].writes].index(writer)

    def ops(self, t: int) -> list[tuple[str, str, int]]:
        """The operations of t in the form that files have."""
        txn = self.txns[t]
        seen = [("r", KEYS[x], self.value(x, source)) for x, source in txn.reads]
        return [*seen, *(("w", KEYS[x], self.value(x, t)) for x in txn.writes)]

    def history(self) -> "History":
        """As the checker takes it."""
        from plume_py.history.builder import HistoryBuilder

        builder = HistoryBuilder(initial=0)
        for t in self.by_session():
            txn, (begin, end) = self.txns[t], self.txns[t].span or (None, None)
            builder.add(txn.session, self.ops(t), level=txn.level, id=self.name(t), begin=begin, end=end)
        return builder.build(init_txn="none")

    def lines(self) -> list[str]:
        """For people: a line per transaction, grouped by session."""
        lines = []
        for number, (_, group) in enumerate(groupby(self.by_session(), lambda t: self.txns[t].session)):
            for at, t in enumerate(group):
                level = f" at {self.txns[t].level}" if self.txns[t].level else ""
                lines.append(f"{f'session {number}' if at == 0 else '':<11}{self.name(t)}{level}: {self._spelled(t)}")
        return lines

    def session_lines(self) -> list[str]:
        """A line per session, its transactions apart by ";"."""
        sessions = groupby(self.by_session(), lambda t: self.txns[t].session)
        return [" ; ".join(map(self._spelled, group)) for _, group in sessions]

    def _spelled(self, t: int) -> str:
        ops = " ".join(f"{kind}({x},{value})" for kind, x, value in self.ops(t))
        return f"{self.times(t)} {ops}".lstrip()

    @property
    def timed(self) -> bool:
        """Is it known when its transactions began and ended?"""
        return any(txn.span is not None for txn in self.txns)

    def times(self, t: int) -> str:
        """Begin and end of t as "[0,1]"; nothing if they are not known."""
        span = self.txns[t].span
        return "" if span is None else f"[{span[0]},{span[1]}]"

    def short(self) -> str:
        """On one line: sessions apart by "|", transactions of one by ";", each with [begin,end] if it has times."""
        return " | ".join(self.session_lines())

    def renumbered(self, order: Sequence[int]) -> "Concrete":
        """The same history with its transactions in another order; sessions are numbered by appearance."""
        place = {t: at for at, t in enumerate(order)} | {INITIAL: INITIAL}
        sessions: dict[int, int] = {}
        txns = []
        for t in order:
            txn = self.txns[t]
            reads = tuple((x, place[source]) for x, source in txn.reads)
            txns.append(replace(txn, session=sessions.setdefault(txn.session, len(sessions)), reads=reads))
        return Concrete(tuple(txns))

    def with_keys(self, place: Mapping[int, int]) -> "Concrete":
        """The same history with other numbers for its keys."""
        return Concrete(
            tuple(
                replace(
                    txn,
                    reads=tuple((place[x], u) for x, u in txn.reads),
                    writes=tuple(sorted(place[x] for x in txn.writes)),
                )
                for txn in self.txns
            ),
            self.names,
        )

    def forward_orders(self, most: int = MOST_ORDERS) -> "list[tuple[int, ...]]":
        """The orders in which reads only go forward, and sessions unless they have places; not more than ``most``."""
        return list(islice(self._extended(()), most))

    def _extended(self, start: tuple[int, ...]) -> "Iterator[tuple[int, ...]]":
        if len(start) == len(self.txns):
            yield start
        for t, txn in enumerate(self.txns):
            earlier = {u for u in range(t) if txn.place is None and self.precedes(u, t)} | {u for _, u in txn.reads}
            if t not in start and earlier <= {INITIAL, *start}:
                yield from self._extended((*start, t))

    def columns(self) -> "dict[int, tuple[object, ...]]":
        """What each key is used for; two histories that differ in the numbers of keys have the same ones."""
        return {
            x: tuple((x in t.writes, tuple(sorted(u for key, u in t.reads if key == x))) for t in self.txns)
            for x in self.keys
        }

    def orders(self) -> "tuple[tuple[int, int, bool], ...]":
        """Who comes before whom in a session or, as the last one says, in real time; nothing if numbers say it all."""
        if all(txn.place is None and txn.span is None for txn in self.txns):
            return ()
        pairs = list(permutations(range(len(self.txns)), 2))
        in_sessions = ((a, b, False) for a, b in pairs if self.precedes(a, b))
        return *in_sessions, *((a, b, True) for a, b in pairs if self.ended_before(a, b))

    def canonical(self) -> "tuple[object, ...]":
        """The same for histories that differ in names, numbers and the order of reads only."""
        return min(
            (
                tuple(t.session for t in image.txns),
                tuple(t.level or "" for t in image.txns),
                tuple(sorted(image.columns().values(), reverse=True)),
                image.orders(),
            )
            for image in map(self.renumbered, self.forward_orders())
        )


class ConcreteView(View):
    """A history that is known: all its literals are constants."""

    def __init__(self, formula: Formula, concrete: Concrete) -> None:
        super().__init__(formula, len(concrete.txns), 1 + max(concrete.keys, default=-1))
        self.concrete = concrete
        self._reads = {(t, x, u) for t, txn in enumerate(concrete.txns) for x, u in txn.reads}

    @override
    def writes(self, t: int, x: int) -> Literal:
        return TRUE if x in self.concrete.txns[t].writes else FALSE

    @override
    def reads(self, t: int, x: int, source: int) -> Literal:
        return TRUE if (t, x, source) in self._reads else FALSE

    @override
    def session(self, a: int, b: int) -> Literal:
        return TRUE if self.concrete.precedes(a, b) else FALSE

    @override
    def realtime(self, a: int, b: int) -> Literal:
        if self.concrete.txns[a].span is None:
            raise ValueError(NO_TIMES)
        return TRUE if self.concrete.ended_before(a, b) else FALSE

    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """By the order of the reads: the first of y from u against the last of x from ``source``."""
        reads = self.concrete.txns[t].reads
        if (y, u) not in reads or (x, source) not in reads:
            return FALSE
        last = len(reads) - 1 - reads[::-1].index((x, source))
        return TRUE if reads.index((y, u)) < last else FALSE

    @override
    def at(self, t: int, level: str) -> Literal:
        return TRUE if self.concrete.txns[t].level == level else FALSE
