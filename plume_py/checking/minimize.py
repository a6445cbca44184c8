"""A smallest sub-history that still breaks a level in the same way.

It begins with the transactions and keys of a counterexample, which mostly show the violation alone, and then leaves out
transactions, and after that operations, as long as it fails in the same way: a weak pattern stays, and no other one
appears; a strong level is broken by a pattern of the same level. Declared levels only have to stay broken: patterns are
called after the weakest level around, which may go.
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
from plume_py.checking.graph.subhistory import SubHistory, build, list_writers, without_values, written_by_others
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
    """The small history and the pattern it shows; ``complete`` unless a limit ended the search for a smaller one."""

    history: History
    tap: str
    complete: bool = True


_Smaller = Callable[[list[SubHistory]], Iterator[list[SubHistory]]]
_Still = Callable[[list[SubHistory]], bool]


def minimize(
    history: History,
    level: str,
    *,
    assume: str | None = None,
    level_map: LevelMap | None = None,
    order: str = DEFAULT_ORDER,
    limits: Limits | None = None,
) -> Minimal | None:
    """The smallest sub-history found that breaks ``level``; None if ``history`` keeps it or that is undecided.

    For declared levels each of its transactions carries its own. When ``limits`` are reached, it may be larger.
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
        history, smallest, levels, _Ways(history, level, order, smallest, result.levels[level].taps, limits)
    )
    for smaller in (_without_many, _without_a_transaction, _without_an_operation):
        parts, complete = _shrink(parts, smaller, still, limits)
    small = build(history, parts)
    return Minimal(small, _name(small, level, order, smallest), complete)


def _name(small: History, level: str, order: str, violation: Violation) -> str:
    """What a weak pattern was called, it is called still; a strong one may have got a better name."""
    if level != DECLARED and violation.tap not in STRONG:
        return violation.tap
    return verdict(small, level, order=order).taps[0]


@dataclass(frozen=True)
class _Ways:
    """In which way a part of the history may fail: as the violation does, or nearly so."""

    history: History
    level: str
    order: str
    violation: Violation
    taps: tuple[str, ...]  # of the whole history
    limits: Limits

    def of_a_part(self) -> list[_Still]:
        """The same way first."""
        if self.level == DECLARED:
            return [self.broken]
        return (
            [self.same_name, self.same_level] if self.violation.tap in STRONG else [self.same_pattern, self.with_echoes]
        )

    def broken(self, parts: list[SubHistory]) -> bool:
        """Is the level broken at all?"""
        return self._verdict(parts).ok is False

    def same_pattern(self, parts: list[SubHistory]) -> bool:
        """Is the pattern there, and no other one that was not there before?"""
        taps = self._verdict(parts).taps
        return self.violation.tap in taps and set(taps) <= set(self.taps)

    def with_echoes(self, parts: list[SubHistory]) -> bool:
        """The same, where what only echoed another read may count by itself, as that one is gone."""
        taps = self._verdict(parts).taps
        return self.violation.tap in taps and set(taps) <= {*self.taps, "i", "l", "n"}

    def same_name(self, parts: list[SubHistory]) -> bool:
        """As ``same_level``, by the same name; whatever had none may get one: its readers write nothing any more."""
        found = self._strong(parts)
        return self._is_same_level(found) and self.violation.tap in (CYCLE, found and found.tap)

    def same_level(self, parts: list[SubHistory]) -> bool:
        """Is the weakest level that breaks the same?"""
        return self._is_same_level(self._strong(parts))

    def _is_same_level(self, violation: Violation | None) -> bool:
        return violation is not None and violation.level == self.violation.level

    def _verdict(self, parts: list[SubHistory]) -> LevelVerdict:
        made = build(self.history, parts)
        return verdict(made, self.level, order=self.order, limits=self.limits)

    def _strong(self, parts: list[SubHistory]) -> Violation | None:
        analysis, base = (
            Analysis(build(self.history, parts), order=self.order),
            strongest_weak_level_below([self.level]),
        )
        return first_violation(analysis, self.level, self.limits) if WeakLevels(analysis).holds(base) else None


def _start(
    history: History, violation: Violation, levels: Int8s | None, ways: _Ways
) -> tuple[_Still, list[SubHistory]]:
    """The counterexample alone, if it fails alone, or as little more as possible; and the way in which it fails."""
    numbers = _participants(history, violation)
    # A list from which elements are missing may say something else, and an unknown outcome counts only if it is seen.
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
    """By transaction: a read from each of these whose outcome is unknown, and the write that it saw."""
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
    """The transactions of a counterexample."""
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
) -> list[SubHistory]:
    """These transactions (and an explicit initial one), with their operations on the keys of ``violation``.

    Some keep other operations ``also``; those that do not take part in the violation keep only these.
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
        parts.append(SubHistory(int(history.txn_session[t]), txn))
    return parts


def _shrink(
    parts: list[SubHistory], smaller: _Smaller, still: Callable[[list[SubHistory]], bool], limits: Limits
) -> tuple[list[SubHistory], bool]:
    """Leave out one thing after the other; return what remains, and whether nothing more can go."""
    try:
        while not limits.reached():
            found = next((candidate for candidate in smaller(parts) if still(candidate)), None)
            if found is None:
                return parts, True
            parts = found
    except LimitError:
        pass
    return parts, False


def _without_many(parts: list[SubHistory]) -> Iterator[list[SubHistory]]:
    """Without half of the transactions, a quarter, and so on."""
    size = len(parts) // 2
    while size > 1:
        for i in range(0, len(parts), size):
            writes = [op for part in parts[i : i + size] for op in part.txn.ops if op.kind != "r"]
            yield _without_reads_of(parts[:i] + parts[i + size :], writes)
        size //= 2


def _without_a_transaction(parts: list[SubHistory]) -> Iterator[list[SubHistory]]:
    for i in range(len(parts)):
        rest = parts[:i] + parts[i + 1 :]
        yield _without_reads_of(rest, [op for op in parts[i].txn.ops if op.kind != "r"])


def _without_an_operation(parts: list[SubHistory]) -> Iterator[list[SubHistory]]:
    for i, part in enumerate(parts):
        for at, op in enumerate(part.txn.ops):
            rest = [*parts[:i], part.without(at), *parts[i + 1 :]]
            yield rest if op.kind == "r" else _without_reads_of(rest, [op])


def _without_reads_of(parts: list[SubHistory], writes: list[Op]) -> list[SubHistory]:
    left = {(op.key, op.value) for part in parts for op in part.txn.ops if op.kind != "r"}
    gone = {(op.key, op.value) for op in writes} - left
    return [replace(part, txn=part.txn._replace(ops=tuple(without_values(part.txn.ops, gone)))) for part in parts]
