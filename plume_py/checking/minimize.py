"""Reduce a violated history to a small one that still violates the level in the same way (``check --minimize``).

The search starts with the transactions and keys of one counterexample, which usually violate the level alone. It then
removes transactions, and after that operations, while the violation stays the same:

- weak pattern: the pattern remains, and no new pattern appears;
- strong level: the weakest level that is violated remains the same;
- declared levels: they remain violated. Patterns are named after the weakest level involved, which may disappear.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.check import check, verdict
from plume_py.checking.declared import DECLARED, LevelMap, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.reads import resolve_reads
from plume_py.checking.graph.subhistory import (
    KeptTransaction,
    SubHistory,
    build,
    list_writers,
    without_values,
    written_by_others,
)
from plume_py.checking.result import LevelVerdict, Violation
from plume_py.checking.strong.verdicts import first_violation
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import NOBODY, UNKNOWN, History, Int8s, Op
from plume_py.levels import NAMES, strongest_weak_level_below
from plume_py.levels.orders import DEFAULT_ORDER, level_request
from plume_py.levels.patterns import CYCLE, DUPLICATE, INCOMPATIBLE, STRONG, TORN


@dataclass(frozen=True)
class Minimal:
    """The small history and its pattern. ``complete`` is False if a limit ended the search for a smaller one."""

    history: History
    tap: str
    complete: bool = True


_Smaller = Callable[[SubHistory], Iterator[SubHistory]]
_Still = Callable[[SubHistory], bool]


def minimize(
    history: History,
    level: str,
    *,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    order: str = DEFAULT_ORDER,
    limits: Limits | None = None,
) -> Minimal | None:
    """Return the smallest sub-history found that violates ``level``, or None if ``level`` holds or is undecided.

    For declared levels, each transaction of the sub-history carries its own level. If a limit is reached, the
    sub-history may be larger than necessary.
    """
    limits = limits or Limits()
    meant = level_request(level, order)
    level, order = (meant.level, meant.order) if meant is not None else (level, order)
    history = as_ordinary(history, level == DECLARED)
    result = check(history, level, order=order, max_examples=4, assume=assume, level_map=level_map)
    if not result.violations:
        return None
    smallest = min(result.violations, key=lambda v: (len(v.transactions), sum(len(t.ops) for t in v.transactions)))
    levels = transaction_levels(history, level_map, assume) if level == DECLARED else None
    still, parts = _start(
        history, smallest, levels, _SameViolation(history, level, order, smallest, result.levels[level].taps, limits)
    )
    for smaller in (_without_many, _without_a_transaction, _without_an_operation):
        parts, complete = _shrink(parts, smaller, still, limits)
    small = build(history, parts)
    return Minimal(small, _name(small, level, order, smallest), complete)


def _name(small: History, level: str, order: str, violation: Violation) -> str:
    """Return the pattern of the small history.

    A weak pattern keeps its name; a strong one may have a more specific name now.
    """
    if level != DECLARED and violation.tap not in STRONG:
        return violation.tap
    return verdict(small, level, order=order).taps[0]


@dataclass(frozen=True)
class _SameViolation:
    """Tests whether a sub-history fails as the given violation does, from the strictest test to a laxer one."""

    history: History
    level: str
    order: str
    violation: Violation
    taps: tuple[str, ...]  # patterns of the whole history
    limits: Limits

    def of_a_part(self) -> list[_Still]:
        """Return the tests to try, the strictest first."""
        if self.level == DECLARED:
            return [self.broken]
        return (
            [self.same_name, self.same_level] if self.violation.tap in STRONG else [self.same_pattern, self.with_echoes]
        )

    def broken(self, parts: SubHistory) -> bool:
        return self._verdict(parts).ok is False

    def same_pattern(self, parts: SubHistory) -> bool:
        """Return whether the pattern is present, and no pattern that the whole history does not show."""
        taps = self._verdict(parts).taps
        return self.violation.tap in taps and set(taps) <= set(self.taps)

    def with_echoes(self, parts: SubHistory) -> bool:
        """Like ``same_pattern``, but allow i, l and n.

        In the whole history such a triple may be an echo of another read, which was removed.
        """
        taps = self._verdict(parts).taps
        return self.violation.tap in taps and set(taps) <= {*self.taps, "i", "l", "n"}

    def same_name(self, parts: SubHistory) -> bool:
        """Like ``same_level``, with the same pattern name.

        A cycle without a name may get one: its readers may write nothing now.
        """
        found = self._strong(parts)
        return self._is_same_level(found) and self.violation.tap in (CYCLE, found and found.tap)

    def same_level(self, parts: SubHistory) -> bool:
        """Return whether the weakest violated level is the same."""
        return self._is_same_level(self._strong(parts))

    def _is_same_level(self, violation: Violation | None) -> bool:
        return violation is not None and violation.level == self.violation.level

    def _verdict(self, parts: SubHistory) -> LevelVerdict:
        made = build(self.history, parts)
        return verdict(made, self.level, order=self.order, limits=self.limits)

    def _strong(self, parts: SubHistory) -> Violation | None:
        analysis, base = (
            Analysis(build(self.history, parts), order=self.order),
            strongest_weak_level_below([self.level]),
        )
        return first_violation(analysis, self.level, self.limits) if WeakLevels(analysis).holds(base) else None


def _start(
    history: History, violation: Violation, levels: Int8s | None, ways: _SameViolation
) -> tuple[_Still, SubHistory]:
    """Return the counterexample alone, or with as few additions as possible, and the test by which it fails."""
    numbers = _participants(history, violation)
    # A list without some elements may mean something else, and an unknown outcome counts as committed only if it is
    # read.
    with_lists = {w for t in numbers for w in (t, *list_writers(history, t))}
    seen = _seen(history, numbers)
    starts = [(numbers, None), (with_lists, None), *([({*numbers, *seen}, seen)] if seen else [])]
    for chosen, also in starts:
        parts = _parts(history, chosen, levels, violation, also)
        for still in ways.of_a_part():
            if still(parts):
                return still, parts
    whole = _parts(history, range(history.transactions), levels)
    return next((still for still in ways.of_a_part() if still(whole)), ways.broken), whole


def _seen(history: History, numbers: set[int]) -> dict[int, set[Op]]:
    """Return, by transaction, the operations that make an unknown outcome count.

    For each transaction in ``numbers`` of unknown outcome: one read from it, and the write that it returned.
    """
    found: dict[int, set[Op]] = {}
    reads = resolve_reads(history)
    for t in (t for t in numbers if history.txn_status[t] == UNKNOWN):
        for r in np.flatnonzero(reads.read_source == t)[:1].tolist():
            o = int(reads.read_op[r])
            span = range(int(history.txn_start[t]), int(history.txn_start[t + 1]))
            wrote = {history.op(w) for w in span if history.op_version[w] == history.op_version[o]}
            found[t] = found.get(t, set()) | wrote
            found.setdefault(reads.reader(r), set()).add(history.op(o))
    return found


def _participants(history: History, violation: Violation) -> set[int]:
    """Return the numbers of the transactions of a counterexample."""
    places = {(shown.id, shown.place) for shown in violation.transactions}
    numbers = {t for t in range(history.transactions) if (history.txn_label[t], history.place(t)) in places}
    if violation.tap in (DUPLICATE, INCOMPATIBLE, TORN):
        numbers |= {w for t in numbers for w in list_writers(history, t)}
    return numbers


def _parts(
    history: History,
    numbers: Collection[int],
    levels: Int8s | None,
    violation: Violation | None = None,
    also: Mapping[int, set[Op]] | None = None,
) -> SubHistory:
    """Return these transactions, and an explicit initial one, with their operations on the keys of ``violation``.

    ``also`` maps transactions to further operations that they keep. Transactions outside the violation keep only those.
    """
    present = {*numbers, history.init_txn} - {NOBODY}
    members = _participants(history, violation) if violation is not None and also else present
    parts = []
    for t in sorted(present):
        txn = history.transaction(t)
        if violation is not None:
            keys = violation.keys if t in members or t == history.init_txn else ()
            kept = (also or {}).get(t, set())
            ops = tuple(op for op in txn.ops if op.key in keys or op in kept)
            txn = txn._replace(ops=tuple(without_values(ops, written_by_others(history, t, present))))
        if levels is not None and levels[t]:
            txn = txn._replace(level=NAMES[int(levels[t]) - 1])
        parts.append(KeptTransaction(int(history.txn_session[t]), txn))
    return parts


def _shrink(
    parts: SubHistory, smaller: _Smaller, still: Callable[[SubHistory], bool], limits: Limits
) -> tuple[SubHistory, bool]:
    """Remove parts while ``still`` accepts what remains.

    Return the remaining parts, and whether nothing more can go.
    """
    try:
        while not limits.reached():
            found = next((candidate for candidate in smaller(parts) if still(candidate)), None)
            if found is None:
                return parts, True
            parts = found
    except LimitError:
        pass
    return parts, False


def _without_many(parts: SubHistory) -> Iterator[SubHistory]:
    """Yield the parts without half of the transactions, a quarter, and so on."""
    size = len(parts) // 2
    while size > 1:
        for i in range(0, len(parts), size):
            writes = [op for part in parts[i : i + size] for op in part.txn.ops if op.kind != "r"]
            yield _without_reads_of(parts[:i] + parts[i + size :], writes)
        size //= 2


def _without_a_transaction(parts: SubHistory) -> Iterator[SubHistory]:
    for i in range(len(parts)):
        rest = parts[:i] + parts[i + 1 :]
        yield _without_reads_of(rest, [op for op in parts[i].txn.ops if op.kind != "r"])


def _without_an_operation(parts: SubHistory) -> Iterator[SubHistory]:
    for i, part in enumerate(parts):
        for at, op in enumerate(part.txn.ops):
            rest = [*parts[:i], part.without(at), *parts[i + 1 :]]
            yield rest if op.kind == "r" else _without_reads_of(rest, [op])


def _without_reads_of(parts: SubHistory, writes: list[Op]) -> SubHistory:
    left = {(op.key, op.value) for part in parts for op in part.txn.ops if op.kind != "r"}
    gone = {(op.key, op.value) for op in writes} - left
    return [replace(part, txn=part.txn._replace(ops=tuple(without_values(part.txn.ops, gone)))) for part in parts]
