"""A smallest sub-history that still breaks a level in the same way.

It begins with the transactions and keys of a counterexample, which mostly show the violation alone, and then leaves out
transactions, and after that operations, as long as the same pattern stays and no other one appears. Declared levels
only have to stay broken: patterns are called after the weakest level around, which may go.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from plume_py.checking import check
from plume_py.graph.lists import DUPLICATE, INCOMPATIBLE, TORN
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import NOBODY, History, Int8s, Op, Transaction
from plume_py.levels import NAMES
from plume_py.report.verdict import Violation
from plume_py.strong.explain import DECLARED
from plume_py.strong.limits import Limits
from plume_py.strong.mixed import LevelMap, transaction_levels


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


def minimize(
    history: History,
    level: str,
    *,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    limits: Limits | None = None,
) -> Minimal | None:
    """The smallest sub-history found that breaks ``level``; None if ``history`` keeps it or that is undecided.

    For declared levels each of its transactions carries its own. When ``limits`` are reached, it may be larger.
    """
    limits = limits or Limits()
    result = check(history, level, max_examples=4, assume=assume, level_map=level_map)
    if not result.violations:
        return None
    smallest = min(result.violations, key=lambda v: (len(v.transactions), sum(len(t.ops) for t in v.transactions)))
    levels = transaction_levels(history, level_map, assume) if level == DECLARED else None
    allowed = set(result.levels[level].taps)

    def still(candidate: list[_Part]) -> bool:
        verdict = check(_build(history, candidate), level, max_examples=0, limits=limits).levels[level]
        if level == DECLARED:
            # what it is called depends on the weakest level around
            return verdict.ok is False
        return smallest.tap in verdict.taps and set(verdict.taps) <= allowed

    parts = _start(history, smallest, levels, still)
    for smaller in (_without_many, _without_a_transaction, _without_an_operation):
        parts = _shrink(parts, smaller, still, limits)
    small = _build(history, parts)
    tap = smallest.tap if level != DECLARED else check(small, level, max_examples=0).levels[level].taps[0]
    return Minimal(small, tap)


def _start(
    history: History, violation: Violation, levels: Int8s | None, still: Callable[[list[_Part]], bool]
) -> list[_Part]:
    """The counterexample alone, if it says the same alone: a list from which elements are missing may not."""
    numbers = _participants(history, violation)
    for chosen in (numbers, {w for t in numbers for w in (t, *_shown_writers(history, t))}):
        parts = _parts(history, chosen, levels, violation)
        if still(parts):
            return parts
    return _parts(history, range(history.transactions), levels)


def _participants(history: History, violation: Violation) -> set[int]:
    """The transactions of a counterexample."""
    places = {(shown.id, shown.place) for shown in violation.transactions}
    numbers = {t for t in range(history.transactions) if (history.txn_label[t], history.place(t)) in places}
    if violation.tap in (DUPLICATE, INCOMPATIBLE, TORN):
        numbers |= {w for t in numbers for w in _shown_writers(history, t)}
    return numbers


def _parts(
    history: History, numbers: Collection[int], levels: Int8s | None, violation: Violation | None = None
) -> list[_Part]:
    """These transactions (and an explicit initial one), with their operations on the keys of ``violation``."""
    present = {*numbers, history.init_txn} - {NOBODY}
    parts = []
    for t in sorted(present):
        txn = history.transaction(t)
        if violation is not None:
            txn = txn._replace(ops=_on_keys(history, t, violation, present))
        if levels is not None and levels[t]:
            txn = txn._replace(level=NAMES[int(levels[t]) - 1])
        parts.append(_Part(int(history.txn_session[t]), txn))
    return parts


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


def _on_keys(history: History, t: int, violation: Violation, present: set[int]) -> tuple[Op, ...]:
    """What ``t`` does, without other keys, and without reads of what nobody present wrote (as if from thin air)."""
    gone = set()
    span = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
    for version in history.op_version[span].tolist() + _list_items(history, t):
        writer = int(history.version_writer[version])
        if writer != NOBODY and writer not in present:
            gone.add((history.key(int(history.version_key[version])), history.value(version)))
    return tuple(_kept(tuple(op for op in history.transaction(t).ops if op.key in violation.keys), gone))


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


def _shrink(parts: list[_Part], smaller: _Smaller, still: Callable[[list[_Part]], bool], limits: Limits) -> list[_Part]:
    """Leave out one thing after the other until nothing more can go."""
    while not limits.reached():
        found = next((candidate for candidate in smaller(parts) if still(candidate)), None)
        if found is None:
            return parts
        parts = found
    return parts


def _without_many(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Without half of the transactions, a quarter, and so on."""
    size = len(parts) // 2
    while size > 1:
        for i in range(0, len(parts), size):
            writes = [op for part in parts[i : i + size] for op in part.txn.ops if op.kind != "r"]
            yield _without_reads_of(parts[:i] + parts[i + size :], writes)
        size //= 2


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
