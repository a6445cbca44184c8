"""What a history tells by itself, in plain dicts and sets. t1 -WR(x)-> t3 is a read, START the initial state."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from plume_py.history.atoms import Atom
from plume_py.history.model import History, Op, Transaction
from plume_py.text import shown

START = -1  # before every transaction


class Told:
    """What a history tells by itself: who wrote, who read what from whom, and which reads are wrong in themselves.

    Transactions are numbered as they stand. A transaction counts if it committed, or if its outcome is unknown and a
    committed one read from it; only the reads of committed ones are judged.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.txns: list[Transaction] = []
        self.session: list[int] = []
        for s, session in enumerate(history):
            self.txns += session
            self.session += [s] * len(session)
        self.initial = history.initial_value
        self.wrote = [{op.key: op.value for op in txn.ops if op.kind != "r"} for txn in self.txns]  # the last value
        self.writer = {(op.key, op.value): t for t, op in self._ops("w", "append")}
        self.live = self._live()
        self.reads: dict[int, list[tuple[Atom, int]]] = {t: [] for t in self.live}  # (x, t1) of others, program order
        self.flaws: dict[int, list[tuple[str, Atom, int | None]]] = {}  # (pattern, key, writer of what was read)
        self.lists: dict[Atom, set[tuple[Atom, ...]]] = {}
        for t in self.live:
            if self.txns[t].status == "committed":
                self._judge(t)
        self.writers: dict[Atom, dict[int, list[int]]] = {}  # key -> session -> who wrote it, in session order
        self.previous: dict[int, int] = {}
        for t in self.live:
            for x in self.wrote[t]:
                self.writers.setdefault(x, {}).setdefault(self.session[t], []).append(t)
        for a, b in pairwise(self.live):
            if self.session[a] == self.session[b]:
                self.previous[b] = a

    def _ops(self, *kinds: str) -> Iterator[tuple[int, Op]]:
        return ((t, op) for t, txn in enumerate(self.txns) for op in txn.ops if op.kind in kinds)

    def _live(self) -> list[int]:
        committed = {t for t, txn in enumerate(self.txns) if txn.status == "committed"} - {self.history.init_txn}
        read = {(op.key, v) for t, op in self._ops("r") if t in committed for v in _values(op)}
        unknown = {t for v in read if (t := self.writer.get(v, START)) != START and self.txns[t].status == "unknown"}
        return sorted(committed | unknown)

    def source(self, x: Atom, value: Atom) -> int | None:
        """Who wrote what a read saw: a transaction, START for the initial state, None for nobody."""
        t = self.writer.get((x, value))
        if t is not None:
            return START if t == self.history.init_txn else t
        return START if self.history.initial is not None and value == self.initial else None

    def _judge(self, t: int) -> None:
        """Note what t read from others, and what no level but CI allows (TAP a-f, lists), and TAP-j."""
        own: dict[Atom, list[Atom]] = {}  # what it has written so far
        found: list[tuple[str, Atom, int | None]] = []
        for op in self.txns[t].ops:
            if op.kind != "r":
                own.setdefault(op.key, []).append(op.value)  # type: ignore[arg-type]
                continue
            mine = own.get(op.key, [])
            if isinstance(op.value, tuple):
                found += [(flaw, op.key, None) for flaw in self._list_flaws(op.key, op.value, mine)]
            value = (_values(op) or (self.initial,))[-1]
            t1 = self.source(op.key, value)
            found += [(flaw, op.key, t1) for flaw in self._read_flaws(t, t1, op.key, value, mine)]
            if t1 is not None and t1 != t and (t1 == START or t1 in self.reads):
                self.reads[t].append((op.key, t1))
        sources: dict[Atom, set[int]] = {}
        for x, t1 in self.reads[t]:
            sources.setdefault(x, set()).add(t1)
        found += [("j", x, None) for x, several in sources.items() if len(several) > 1]
        if found:
            self.flaws[t] = found

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

    def _list_flaws(self, x: Atom, items: tuple[Atom, ...], mine: list[Atom]) -> Iterator[str]:
        self.lists.setdefault(x, set()).add(items)
        for t1 in {self.source(x, value) for value in items[:-1]}:  # the last is judged like any read
            if t1 is None or t1 == START:
                yield "a"
            elif self.txns[t1].status == "aborted":
                yield "b"
        if len(set(items)) < len(items):
            yield "duplicate-element"
        if items and items[-1] in mine and list(items[-len(mine) :]) != mine:
            yield "e"

    def name(self, t: int) -> str:
        """A transaction for people."""
        return "the initial state" if t == START else shown(self.txns[t].id)

    def before(self, t: int) -> set[int]:
        """The direct predecessors of t by SO and WR."""
        found = {t1 for _, t1 in self.reads[t] if t1 != START}
        return found | {self.previous[t]} if t in self.previous else found

    def lists_of(self, t: int, x: Atom) -> list[tuple[Atom, ...]]:
        """The lists that t read under key x."""
        return [op.value for op in self.txns[t].ops if op.key == x and op.kind == "r" and isinstance(op.value, tuple)]

    def appended(self, x: Atom, items: Iterable[Atom]) -> list[int]:
        """Who appended the elements of a list, as far as they count."""
        return [t for value in items if (t := self.source(x, value)) in self.reads and t is not None]

    def longest(self, x: Atom) -> tuple[Atom, ...]:
        """The longest list that was read of x, or none."""
        return max(self.lists.get(x, ()), key=lambda items: len(items), default=())

    def late_appends(self) -> Iterator[tuple[int, int]]:
        """(t1, t2): t1 made the last element of the longest list of a key, and t2's append to it is not shown."""
        for x in self.lists:
            shown_by = self.appended(x, self.longest(x))
            if shown_by:
                everyone = [t for writers in self.writers.get(x, {}).values() for t in writers]
                yield from ((shown_by[-1], t) for t in everyone if t not in shown_by)


def _values(op: Op) -> tuple[Atom, ...]:
    return op.value if isinstance(op.value, tuple) else (op.value,)


def contradict(one: tuple[Atom, ...], other: tuple[Atom, ...]) -> bool:
    """Is neither list a prefix of the other?"""
    common = min(len(one), len(other))
    return one[:common] != other[:common]
