"""Histories as plain data, and their terms as constants.

``ConcreteHistory`` is what the search finds: transactions with numbered keys. ``LabeledHistory`` adds the transactions
and keys of a file, so that a given history can be judged by a definition and explained in the user's words.
``ConcreteView`` presents either one to definitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, groupby, islice, permutations

from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.override import override
from plume_py.base.text import key_text, txn_text
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, History, Transaction
from plume_py.history.value_codes import Atom
from plume_py.reasoning.synth.history_terms import NO_TIMES, View
from plume_py.verify.facts import START, HistoryFacts

# The number of orders of seven transactions. In larger histories, ``canonical`` may miss that two are isomorphic.
MOST_ORDERS = 5040
KEY_NAMES = "xyzuvwabcdefghijklmnopqrst"

# Earlier and later than all times in a history.
_EVER = 1 << 62


@dataclass(frozen=True)
class ConcreteTxn:
    """A transaction: its reads from others as (key, writer) in program order, then the keys that it writes.

    ``position``: the position in its session; None if sessions follow the numbering. ``span``: begin and end time.
    """

    session: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[int, ...]
    level: str | None = None
    position: int | None = None
    span: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        return len(self.reads) + len(self.writes)


@dataclass(frozen=True)
class ConcreteHistory:
    """A history found by the search. Names of keys and values of writes are derived.

    Transactions are numbered so that writers precede their readers. Session order also follows the numbering, unless
    transactions have positions.
    """

    txns: tuple[ConcreteTxn, ...]
    names: tuple[str, ...] = ()

    @property
    def keys(self) -> list[int]:
        return sorted({x for t in self.txns for x in (*t.writes, *(key for key, _ in t.reads))})

    @property
    def operations(self) -> int:
        return sum(t.size for t in self.txns)

    @property
    def session_pairs(self) -> int:
        return sum(a.session == b.session for a, b in combinations(self.txns, 2))

    @property
    def realtime_pairs(self) -> int:
        """The number of pairs (a, b) of transactions such that a ended before b began."""
        return sum(self.ended_before(a, b) for a, b in permutations(range(len(self.txns)), 2))

    @property
    def timed(self) -> bool:
        return any(txn.span is not None for txn in self.txns)

    def precedes(self, a: int, b: int) -> bool:
        first, second = self.txns[a], self.txns[b]
        return first.session == second.session and (first.position or 0, a) < (second.position or 0, b)

    def ended_before(self, a: int, b: int) -> bool:
        """Return whether a is known to have ended before b began."""
        first, second = self.txns[a].span, self.txns[b].span
        return first is not None and second is not None and first[1] < second[0]

    def name(self, t: int) -> str:
        """Return the name that ``isocheck check`` gives t: T1 for the first transaction of the first session."""
        return self.names[t] if self.names else f"T{self.by_session().index(t) + 1}"

    def by_session(self) -> list[int]:
        """Return the transactions session by session, in session order."""
        return sorted(range(len(self.txns)), key=lambda t: (self.txns[t].session, self.txns[t].position or 0, t))

    def value(self, x: int, writer: int) -> int:
        """Return the value that ``writer`` writes to x: n for the n-th writer of x by name, 0 for INITIAL."""
        if writer == INITIAL:
            return 0
        return 1 + [t for t in self.by_session() if x in self.txns[t].writes].index(writer)

    def ops(self, t: int) -> list[tuple[str, str, int]]:
        txn = self.txns[t]
        reads = [("r", KEY_NAMES[x], self.value(x, source)) for x, source in txn.reads]
        return [*reads, *(("w", KEY_NAMES[x], self.value(x, t)) for x in txn.writes)]

    def history(self) -> History:
        builder = HistoryBuilder(initial=0)
        for t in self.by_session():
            txn, (begin, end) = self.txns[t], self.txns[t].span or (None, None)
            builder.add(txn.session, self.ops(t), level=txn.level, id=self.name(t), begin=begin, end=end)
        return builder.build(init_txn="none")

    # -- text ------------------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        lines = []
        for number, (_, group) in enumerate(groupby(self.by_session(), lambda t: self.txns[t].session)):
            for at, t in enumerate(group):
                level = f" at {self.txns[t].level}" if self.txns[t].level else ""
                lines.append(f"{f'session {number}' if at == 0 else '':<11}{self.name(t)}{level}: {self._txn_text(t)}")
        return lines

    def session_lines(self) -> list[str]:
        """Return a line of text per session, with ";" between its transactions."""
        sessions = groupby(self.by_session(), lambda t: self.txns[t].session)
        return [" ; ".join(map(self._txn_text, group)) for _, group in sessions]

    def short(self) -> str:
        """Return the history on one line: "|" between sessions, ";" between transactions."""
        return " | ".join(self.session_lines())

    def times(self, t: int) -> str:
        """Return begin and end of t as "[0,1]", or an empty string if they are unknown."""
        span = self.txns[t].span
        return "" if span is None else f"[{span[0]},{span[1]}]"

    def _txn_text(self, t: int) -> str:
        ops = " ".join(f"{kind}({x},{value})" for kind, x, value in self.ops(t))
        return f"{self.times(t)} {ops}".lstrip()

    # -- isomorphism -----------------------------------------------------------------------------------------------

    def renumbered(self, order: Sequence[int]) -> "ConcreteHistory":
        """Return the history with its transactions in another order; sessions are numbered by first appearance."""
        number = {t: at for at, t in enumerate(order)} | {INITIAL: INITIAL}
        sessions: dict[int, int] = {}
        txns = []
        for t in order:
            txn = self.txns[t]
            reads = tuple((x, number[source]) for x, source in txn.reads)
            txns.append(replace(txn, session=sessions.setdefault(txn.session, len(sessions)), reads=reads))
        return ConcreteHistory(tuple(txns))

    def with_keys(self, number: Mapping[int, int]) -> "ConcreteHistory":
        return ConcreteHistory(
            tuple(
                replace(
                    txn,
                    reads=tuple((number[x], u) for x, u in txn.reads),
                    writes=tuple(sorted(number[x] for x in txn.writes)),
                )
                for txn in self.txns
            ),
            self.names,
        )

    def forward_orders(self, most: int = MOST_ORDERS) -> list[tuple[int, ...]]:
        """Return at most ``most`` orders that contain reads-from and, unless there are positions, session order."""
        return list(islice(self._extended(()), most))

    def _extended(self, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(start) == len(self.txns):
            yield start
        for t, txn in enumerate(self.txns):
            earlier = {u for u in range(t) if txn.position is None and self.precedes(u, t)} | {u for _, u in txn.reads}
            if t not in start and earlier <= {INITIAL, *start}:
                yield from self._extended((*start, t))

    def key_uses(self) -> dict[int, tuple[object, ...]]:
        """Return for each key its uses in all transactions, which do not depend on the number of the key."""
        return {
            x: tuple((x in t.writes, tuple(sorted(u for key, u in t.reads if key == x))) for t in self.txns)
            for x in self.keys
        }

    def orders(self) -> tuple[tuple[int, int, bool], ...]:
        """Return (a, b, real time or session) for each ordered pair; empty if sessions follow the numbering."""
        if all(txn.position is None and txn.span is None for txn in self.txns):
            return ()
        pairs = list(permutations(range(len(self.txns)), 2))
        in_sessions = ((a, b, False) for a, b in pairs if self.precedes(a, b))
        return *in_sessions, *((a, b, True) for a, b in pairs if self.ended_before(a, b))

    def canonical(self) -> tuple[object, ...]:
        """Return a form that is equal for histories that differ only in names, numbers and the order of reads."""
        return min(
            (
                tuple(t.session for t in image.txns),
                tuple(t.level or "" for t in image.txns),
                tuple(sorted(image.key_uses().values(), reverse=True)),
                image.orders(),
            )
            for image in map(self.renumbered, self.forward_orders())
        )


class ConcreteView(View):
    """The terms of a given history; all literals are constants."""

    def __init__(self, formula: Formula, concrete: ConcreteHistory) -> None:
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

    @override
    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """Compare the first read of y from u with the last read of x from ``source``."""
        reads = self.concrete.txns[t].reads
        if (y, u) not in reads or (x, source) not in reads:
            return FALSE
        last = len(reads) - 1 - reads[::-1].index((x, source))
        return TRUE if reads.index((y, u)) < last else FALSE

    @override
    def at(self, t: int, level: str) -> Literal:
        return TRUE if self.concrete.txns[t].level == level else FALSE


@dataclass(frozen=True)
class LabeledHistory:
    """A concrete history with the transactions and keys that it was made from.

    It contains the committed transactions, and those with unknown outcome that a committed one read from.
    ``flaws``: the patterns of reads that definitions cannot express: flawed single reads (TAP a to f) and lists.
    ``versions``: (a, b, key) if lists show that a's append to the key precedes b's.
    """

    concrete: ConcreteHistory
    txns: tuple[Transaction, ...]
    keys: tuple[Atom, ...]
    flaws: tuple[str, ...]
    versions: frozenset[tuple[int, int, int]]

    @classmethod
    def of_history(cls, history: History) -> "LabeledHistory":
        """Return the facts of a history that definitions can ask for."""
        facts = HistoryFacts(history)
        number = {t: at for at, t in enumerate(facts.live)} | {START: INITIAL}
        keys = list(dict.fromkeys(op.key for t in facts.live for op in facts.txns[t].ops))
        key_number = {x: at for at, x in enumerate(keys)}
        txns = []
        for t in facts.live:
            txn = facts.txns[t]
            end = txn.end if txn.status == "committed" else None  # an unknown outcome may take effect at any later time
            span = (-_EVER if txn.begin is None else txn.begin, _EVER if end is None else end)
            reads = tuple((key_number[x], number[u]) for x, u in facts.reads[t])
            writes = tuple(key_number[x] for x in facts.wrote[t])
            txns.append(ConcreteTxn(facts.session[t], reads, writes, txn.level, span=span))
        flaws = {pattern for found in facts.flaws.values() for pattern, _, _ in found if pattern != "j"}
        if any(len(reads) > 1 for reads in facts.lists.orders.values()):
            flaws.add("incompatible-order")
        return cls(
            ConcreteHistory(tuple(txns), tuple(txn_text(facts.txns[t].id) for t in facts.live)),
            tuple(facts.txns[t] for t in facts.live),
            tuple(keys),
            tuple(sorted(flaws)),
            frozenset((number[a], number[b], key_number[x]) for a, b, x in _list_order(facts)),
        )

    @classmethod
    def of_concrete(cls, concrete: ConcreteHistory) -> "LabeledHistory":
        """Return a history that was found, with its derived names."""
        txns = dict(zip(concrete.by_session(), chain.from_iterable(concrete.history()), strict=True))
        everyone = range(len(concrete.txns))
        named = replace(concrete, names=tuple(map(concrete.name, everyone)))
        return cls(named, tuple(txns[t] for t in everyone), tuple(KEY_NAMES), (), frozenset())

    def txn(self, t: int) -> str:
        return "the initial state" if t == INITIAL else self.concrete.names[t]

    def key(self, x: int) -> str:
        return key_text(self.keys[x])


def _list_order(facts: HistoryFacts) -> Iterator[tuple[int, int, Atom]]:
    """Yield (a, b, key): the longest list of the key shows a before b, or shows a and not the appender b."""
    for x, reads in facts.lists.orders.items():
        shown = facts.lists.writers(reads[0])
        others = [t for t in facts.live if x in facts.lists.appends[t] and t not in shown]
        for at, a in enumerate(shown):
            yield from ((a, b, x) for b in (*shown[at + 1 :], *others))
