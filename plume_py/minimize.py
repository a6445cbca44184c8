"""A smallest sub-history that still breaks a level in the same way.

It begins with the transactions and keys of a counterexample, which alone show the violation, and then leaves out
transactions, and after that operations, as long as the same pattern stays and no other one appears.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from plume_py.checking import check
from plume_py.graph.reads import DUPLICATE, INCOMPATIBLE
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import NOBODY, History, Op, Transaction
from plume_py.report.verdict import Violation


@dataclass(frozen=True)
class Minimal:
    """The small history and the pattern it shows."""

    history: History
    tap: str


@dataclass(frozen=True)
class _Part:
    """A transaction with the operations still in it, and the number of its session."""

    session: int
    txn: Transaction

    def without(self, at: int) -> "_Part":
        ops = self.txn.ops[:at] + self.txn.ops[at + 1 :]
        return replace(self, txn=self.txn._replace(ops=ops))


_Smaller = Callable[[list[_Part]], Iterator[list[_Part]]]


def minimize(history: History, level: str) -> Minimal | None:
    """The smallest sub-history found that breaks ``level``; None if ``history`` keeps it."""
    result = check(history, level, max_examples=4)
    if not result.violations:
        return None
    smallest = min(result.violations, key=lambda v: (len(v.transactions), sum(len(t.ops) for t in v.transactions)))
    allowed = set(result.levels[level].taps)
    parts = _participants(history, smallest)

    def still(candidate: list[_Part]) -> bool:
        taps = check(_build(history, candidate), level, max_examples=0).levels[level].taps
        return smallest.tap in taps and set(taps) <= allowed

    assert still(parts), "a counterexample must stand on its own"
    for smaller in (_without_a_transaction, _without_an_operation):
        parts = _shrink(parts, smaller, still)
    return Minimal(_build(history, parts), smallest.tap)


def _participants(history: History, violation: Violation) -> list[_Part]:
    """The transactions of a counterexample (and an explicit initial one), with their operations on its keys."""
    places = {(shown.id, shown.place) for shown in violation.transactions}
    numbers = [t for t in range(history.transactions) if (history.txn_label[t], history.place(t)) in places]
    if violation.tap in (DUPLICATE, INCOMPATIBLE):
        numbers = sorted({*numbers, *(w for t in numbers for w in _shown_writers(history, t))})
    if history.init_txn != NOBODY:
        numbers = sorted({history.init_txn, *numbers})
    return [_Part(int(history.txn_session[t]), _on_keys(history, t, violation, set(numbers))) for t in numbers]


def _shown_writers(history: History, t: int) -> set[int]:
    """Whose appends the lists that ``t`` read show."""
    return {int(w) for w in history.version_writer[_list_items(history, t)] if w != NOBODY}


def _list_items(history: History, t: int) -> list[int]:
    """The versions in the lists that ``t`` read."""
    if history.lists is None:
        return []
    first, last = history.lists.starts[history.lists.ops.searchsorted(history.txn_start[t : t + 2])]
    items: list[int] = history.lists.items[first:last].tolist()
    return items


def _on_keys(history: History, t: int, violation: Violation, present: set[int]) -> Transaction:
    """Transaction ``t`` without other keys, and without reads of what nobody present wrote (as if from thin air)."""
    gone = set()
    span = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
    for version in history.op_version[span].tolist() + _list_items(history, t):
        writer = int(history.version_writer[version])
        if writer != NOBODY and writer not in present:
            gone.add((history.key(int(history.version_key[version])), history.value(version)))
    txn = history.transaction(t)
    return txn._replace(ops=tuple(_kept(tuple(op for op in txn.ops if op.key in violation.keys), gone)))


def _kept(ops: tuple[Op, ...], gone: Collection[tuple[object, object]]) -> Iterator[Op]:
    for op in ops:
        if op.kind != "r":
            yield op
        elif isinstance(op.value, tuple):
            yield op._replace(value=tuple(v for v in op.value if (op.key, v) not in gone))
        elif (op.key, op.value) not in gone:
            yield op


def _build(history: History, parts: list[_Part]) -> History:
    explicit = history.init_txn != NOBODY
    builder = HistoryBuilder(history.initial_value, declared=not explicit, implicit_initial=history.initial is not None)
    for part in parts:
        txn = part.txn
        name = txn.id if txn.id != -1 else None  # Plume text calls every aborted transaction -1
        builder.add(part.session, txn.ops, status=txn.status, level=txn.level, id=name)
    return builder.build(init_txn="auto" if explicit else "none")


def _shrink(parts: list[_Part], smaller: _Smaller, still: Callable[[list[_Part]], bool]) -> list[_Part]:
    """Leave out one thing after the other until nothing more can go."""
    while True:
        found = next((candidate for candidate in smaller(parts) if still(candidate)), None)
        if found is None:
            return parts
        parts = found


def _without_a_transaction(parts: list[_Part]) -> Iterator[list[_Part]]:
    for i in range(len(parts)):
        rest = parts[:i] + parts[i + 1 :]
        yield _without_reads_of(rest, [op for op in parts[i].txn.ops if op.kind != "r"])


def _without_an_operation(parts: list[_Part]) -> Iterator[list[_Part]]:
    for i, part in enumerate(parts):
        for at, op in enumerate(part.txn.ops):
            rest = [*parts[:i], part.without(at), *parts[i + 1 :]]
            yield rest if op.kind == "r" else _without_reads_of(rest, [op])


def _without_reads_of(parts: list[_Part], writes: list[Op]) -> list[_Part]:
    left = {(op.key, op.value) for part in parts for op in part.txn.ops if op.kind != "r"}
    gone = {(op.key, op.value) for op in writes} - left
    return [replace(part, txn=part.txn._replace(ops=tuple(_kept(part.txn.ops, gone)))) for part in parts]
