"""What is to be sent: the statements of each session, and what each read should see.

A script comes from a history, most often a predicted one: whom each of its reads saw, they should see again. What the
transactions did after the boundary of a prediction (``Rest``) is sent, too, as the program would. A written value
stands for its write: it is an integer of its own, the recorded one where that will do.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from plume_py.base.errors import InputError
from plume_py.checking.graph.reads import Reads, resolve_reads
from plume_py.history.model import COMMITTED, INITIAL, History
from plume_py.levels.patterns import BASE, TAPS
from plume_py.reasoning.predict.predictor.prediction import Run

# Transaction's id -> its statements after those that the history has: ("w" or "append", key, value), ("r", key), or
# ("r", key, id of whom it should read from if that can be done, None for the initial state).
Rest = Mapping[str, Sequence[Sequence[Any]]]

# What an adapter stores: a value that is no integer of this size, and not above the initial 0, gets a number instead.
LARGEST = 1 << 62

# Orders are looked for among all pairs of writers; and what has more transactions is no prediction.
MAX_TRANSACTIONS = 2_000

# Keys that every database tells apart as we do.
_PLAIN = re.compile(r"[!-~](?:[ -~]{0,98}[!-~])?")


@dataclass(frozen=True)
class Statement:
    """One statement: a read of a key, or a write (or append) of ``value``."""

    kind: str  # "r", "w" or "append"
    key: str
    value: int = 0


@dataclass(frozen=True)
class Expected:
    """What a read should see: the last write of this transaction, or INITIAL; ``firm``: the prediction says so."""

    source: int
    firm: bool = True


@dataclass
class ScriptedTransaction:
    """A transaction of the script; ``expected``: by the number of its read among its statements."""

    id: str
    session: int
    statements: list[Statement] = field(default_factory=list)
    is_late: bool = False  # it may do more than is known, so it goes on when the others cannot
    expected: dict[int, Expected] = field(default_factory=dict)

    @property
    def first_read(self) -> int | None:
        """The number of its first read."""
        return next((number for number, statement in enumerate(self.statements) if statement.kind == "r"), None)

    @cached_property
    def writes(self) -> dict[str, int]:
        """Key -> the number of the first statement that changes it."""
        found: dict[str, int] = {}
        for number, statement in enumerate(self.statements):
            if statement.kind != "r":
                found.setdefault(statement.key, number)
        return found


@dataclass
class Script:
    """Transactions, numbered session by session; ``sessions`` has their numbers."""

    transactions: list[ScriptedTransaction]
    sessions: list[list[int]]
    lists: bool
    names: dict[Any, str]  # key of the history -> its name in the table

    @property
    def keys(self) -> list[str]:
        """Every key, as the table has it."""
        return list(self.names.values())

    def add_keys(self, keys: Iterable[Any]) -> None:
        """Have these in the table as well."""
        taken = {name.lower() for name in self.names.values()}
        for key in dict.fromkeys(keys):
            own = str(key) if _PLAIN.fullmatch(str(key)) and str(key).lower() not in taken else None
            self.names[key] = own or next(_free(taken))
            taken.add(self.names[key].lower())

    @property
    def statements(self) -> int:
        """How many there are, without BEGIN and COMMIT."""
        return sum(len(txn.statements) for txn in self.transactions)

    @cached_property
    def writers(self) -> dict[str, list[int]]:
        """Key -> the transactions that change it, if any do."""
        found: dict[str, list[int]] = {}
        for number, txn in enumerate(self.transactions):
            for key in txn.writes:
                found.setdefault(key, []).append(number)
        return found


def script(
    history: History,
    rest: Rest | None = None,
    *,
    lists: bool = False,
    keys: Iterable[Any] = (),
    late: Collection[str] = (),
) -> Script:
    """What to send to have ``history`` happen.

    ``lists``: its writes were appends, which it says no more. ``keys`` are to be in the table, too. ``late``: the ids
    of those that read something else than they did when they were observed.
    """
    resolved = resolve_reads(history)
    wrong = [pattern for pattern in resolved.counts if pattern in BASE]
    if wrong:
        raise InputError(
            f"a read of this history is wrong in itself ({TAPS[min(wrong)].name})",
            hint="no order of statements can make it happen; isocheck check shows it",
        )
    live = int(resolved.participates.sum())
    if not 0 < live <= MAX_TRANSACTIONS:
        raise InputError(
            f"{live:,} transactions to send", hint=f"confirm takes from 1 to {MAX_TRANSACTIONS:,} that have committed"
        )
    made = _Builder(history, resolved, rest or {}, lists or history.lists is not None).built(keys)
    for txn in made.transactions:
        txn.is_late = txn.id in late
    return made


class _Builder:
    """Transactions of a history become those of a script."""

    def __init__(self, history: History, resolved: Reads, rest: Rest, lists: bool) -> None:
        self._history, self._resolved, self._rest, self._lists = history, resolved, rest, lists
        self._live = [t for t in range(history.transactions) if resolved.participates[t]]
        self._number = {t: number for number, t in enumerate(self._live)}
        self._by_id = {str(history.txn_label[t]): t for t in self._live}
        self._ops = {t: list(self._operations(t)) for t in self._live}
        written = {(t, i): value for t in self._live for i, (kind, _, value) in enumerate(self._ops[t]) if kind != "r"}
        if history.lists is not None and any(self._ops[t][i][0] == "w" for t, i in written):
            raise InputError("a history with lists and registers", hint="a table has only one of them")
        self._values = _values(written)

    def _operations(self, t: int) -> Iterator[tuple[str, Any, Any]]:
        for o in range(int(self._history.txn_start[t]), int(self._history.txn_start[t + 1])):
            yield self._history.op(o)
        for kind, key, *value in self._rest.get(str(self._history.txn_label[t]), ()):
            yield kind, key, value[0] if value and kind != "r" else None

    def built(self, keys: Iterable[Any]) -> Script:
        """The whole script; sessions without a transaction go."""
        names = _names((*(key for ops in self._ops.values() for _, key, _ in ops), *keys))
        transactions = [self._transaction(t, names) for t in self._live]
        sessions: dict[int, list[int]] = {}
        for t, number in self._number.items():
            sessions.setdefault(int(self._history.txn_session[t]), []).append(number)
        return Script(transactions, list(sessions.values()), self._lists, names)

    def _transaction(self, t: int, names: dict[Any, str]) -> ScriptedTransaction:
        history = self._history
        made = ScriptedTransaction(str(history.txn_label[t]), int(history.txn_session[t]))
        change = "append" if self._lists else "w"
        for i, (kind, key, _) in enumerate(self._ops[t]):
            made.statements.append(Statement("r" if kind == "r" else change, names[key], self._values.get((t, i), 0)))
        if history.txn_status[t] == COMMITTED:
            own = self._own_reads(t)
            made.expected = {i: source for i, source in self._expected(t) if i not in own}
        return made

    def _expected(self, t: int) -> Iterator[tuple[int, Expected]]:
        """(number of a statement, what it should see)."""
        resolved, first = self._resolved, int(self._history.txn_start[t])
        for i in range(int(resolved.read_start[t]), int(resolved.read_start[t + 1])):
            source = int(resolved.read_source[i])
            yield int(resolved.read_op[i]) - first, Expected(INITIAL if source == INITIAL else self._number[source])
        kept = int(self._history.txn_start[t + 1]) - first
        for i, (kind, _, *writer) in enumerate(self._rest.get(str(self._history.txn_label[t]), ()), kept):
            if kind == "r" and writer and (writer[0] is None or writer[0] in self._by_id):
                source = INITIAL if writer[0] is None else self._number[self._by_id[writer[0]]]
                yield i, Expected(source, firm=False)

    def _own_reads(self, t: int) -> set[int]:
        """Statements that read what it has written itself; a list that ends in own appends is read so, too."""
        written, own = set(), set()
        for i, (kind, key, _) in enumerate(self._ops[t]):
            if kind != "r":
                written.add(key)
            elif key in written:
                own.add(i)
        return own


def _values(written: dict[tuple[int, int], Any]) -> dict[tuple[int, int], int]:
    """Of each write its integer: the recorded ones if they are integers above 0, each once."""
    recorded = list(written.values())
    if all(type(value) is int and 0 < value < LARGEST for value in recorded) and len(set(recorded)) == len(recorded):
        return written
    return {place: number for number, place in enumerate(written, 1)}


def _names(keys: Iterable[Any]) -> dict[Any, str]:
    """Of each key its name in the table: its own, unless a database might take it for another one's."""
    distinct = list(dict.fromkeys(keys))
    times = Counter(str(key).lower() for key in distinct)
    plain = {key: str(key) for key in distinct if _PLAIN.fullmatch(str(key)) and times[str(key).lower()] == 1}
    free = _free({name.lower() for name in plain.values()})
    return {key: plain.get(key) or next(free) for key in distinct}


def _free(taken: Collection[str]) -> Iterator[str]:
    """Names that are not taken."""
    return (name for number in count(1) if (name := f"k{number}") not in taken)


def rest_of(observed: History, run: Run) -> dict[str, list[list[Any]]]:
    """What the transactions of a predicted run did after its boundary, when they were observed."""
    found: dict[str, list[list[Any]]] = {}
    for t, end in run.prefix.items():
        ops = [observed.op(o) for o in range(end, int(observed.txn_start[t + 1]))]
        if ops:
            name = str(observed.txn_label[t])
            found[name] = [["r", op.key] if op.kind == "r" else [op.kind, op.key, op.value] for op in ops]
    return found


def rest_of_replay(observed: History, run: Run, replayed: History) -> dict[str, list[list[Any]]]:
    """The same for a program whose predicted run was replayed without divergence: what it did then."""
    kept = {str(observed.txn_label[t]): end - int(observed.txn_start[t]) for t, end in run.prefix.items()}
    resolved = resolve_reads(replayed)
    source = dict(zip(resolved.read_op.tolist(), resolved.read_source.tolist(), strict=True))
    found: dict[str, list[list[Any]]] = {}
    for t in range(replayed.transactions):
        name, first = str(replayed.txn_label[t]), int(replayed.txn_start[t])
        for o in range(first + kept.get(name, 0), int(replayed.txn_start[t + 1])):
            op, writer = replayed.op(o), source.get(o)
            if op.kind != "r":
                line = [op.kind, op.key, op.value]
            elif writer is None:
                line = ["r", op.key]
            else:
                line = ["r", op.key, None if writer == INITIAL else str(replayed.txn_label[writer])]
            found.setdefault(name, []).append(line)
    return found
