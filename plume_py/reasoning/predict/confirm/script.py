"""Scripts: the statements that reproduce a history on a database, and the version that each read should return.

A script is built from a history, usually a predicted one. The operations of its transactions after the boundary
(``Rest``) are added, because the program would execute them, too. Each write gets a unique integer as its value;
recorded values are kept if they are such integers.
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

# Transaction's id -> its statements after the history's: ("w" or "append", key, value), ("r", key), or
# ("r", key, id of the preferred writer). The writer is None for the initial state.
Rest = Mapping[str, Sequence[Sequence[Any]]]

# Adapters store integers above the initial 0 and below this. Any other value is replaced by a number.
LARGEST = 1 << 62

# The solver considers all pairs of writers. Predictions have far fewer transactions.
MAX_TRANSACTIONS = 2_000

# Keys that every database distinguishes as we do.
_PLAIN = re.compile(r"[!-~](?:[ -~]{0,98}[!-~])?")


@dataclass(frozen=True)
class Statement:
    """A read of a key, or a write (or append) of ``value``."""

    kind: str  # "r", "w" or "append"
    key: str
    value: int = 0


@dataclass(frozen=True)
class Expected:
    """The version that a read should return: the last write of transaction ``source``, or INITIAL.

    ``firm``: the prediction requires it.
    """

    source: int
    firm: bool = True


@dataclass
class ScriptedTransaction:
    """A transaction of the script. ``expected`` is by statement number."""

    id: str
    session: int
    statements: list[Statement] = field(default_factory=list)
    is_late: bool = False  # it may execute unknown statements, so it continues only when the others cannot
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
        """Every key, by its name in the table."""
        return list(self.names.values())

    def add_keys(self, keys: Iterable[Any]) -> None:
        """Add keys to the table."""
        taken = {name.lower() for name in self.names.values()}
        for key in dict.fromkeys(keys):
            own = str(key) if _PLAIN.fullmatch(str(key)) and str(key).lower() not in taken else None
            self.names[key] = own or next(_free(taken))
            taken.add(self.names[key].lower())

    @property
    def statements(self) -> int:
        """The number of statements without BEGIN and COMMIT."""
        return sum(len(txn.statements) for txn in self.transactions)

    @cached_property
    def writers(self) -> dict[str, list[int]]:
        """Key -> the transactions that change it."""
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
    """Return the statements that reproduce ``history`` on a database.

    ``lists``: its writes were appends, which a predicted history no longer shows. ``keys``: further keys for the table.
    ``late``: ids of transactions with changed reads.
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
    """Converts the transactions of a history into a script."""

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
        """Return the script. Sessions without a transaction are left out."""
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
        """Yield statement numbers with the expected version."""
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
        """Return the statements that read an own write. A list that ends in own appends counts as such."""
        written, own = set(), set()
        for i, (kind, key, _) in enumerate(self._ops[t]):
            if kind != "r":
                written.add(key)
            elif key in written:
                own.add(i)
        return own


def _values(written: dict[tuple[int, int], Any]) -> dict[tuple[int, int], int]:
    """Return an integer for each write: the recorded values if these are unique integers from 1 to LARGEST."""
    recorded = list(written.values())
    if all(type(value) is int and 0 < value < LARGEST for value in recorded) and len(set(recorded)) == len(recorded):
        return written
    return {place: number for number, place in enumerate(written, 1)}


def _names(keys: Iterable[Any]) -> dict[Any, str]:
    """Return a table name for each key: its text, unless a database might confuse it with another key."""
    distinct = list(dict.fromkeys(keys))
    times = Counter(str(key).lower() for key in distinct)
    plain = {key: str(key) for key in distinct if _PLAIN.fullmatch(str(key)) and times[str(key).lower()] == 1}
    free = _free({name.lower() for name in plain.values()})
    return {key: plain.get(key) or next(free) for key in distinct}


def _free(taken: Collection[str]) -> Iterator[str]:
    """Yield names that are not taken."""
    return (name for number in count(1) if (name := f"k{number}") not in taken)


def rest_of(observed: History, run: Run) -> dict[str, list[list[Any]]]:
    """Return the operations of the run's transactions after the boundary, as observed."""
    found: dict[str, list[list[Any]]] = {}
    for t, end in run.prefix.items():
        ops = [observed.op(o) for o in range(end, int(observed.txn_start[t + 1]))]
        if ops:
            name = str(observed.txn_label[t])
            found[name] = [["r", op.key] if op.kind == "r" else [op.kind, op.key, op.value] for op in ops]
    return found


def rest_of_replay(observed: History, run: Run, replayed: History) -> dict[str, list[list[Any]]]:
    """Return the operations after the boundary in a replay without divergence."""
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
