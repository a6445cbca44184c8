"""Had one read seen the version before: which levels would have noticed?

A read of x from w is given what w overwrote, written by w', which stands right before it in a commit order of the
history. A level has noticed if it is broken then. That is asked of a window: w', w, the reader, and the nearest around
these, by sessions, reads and overwriting, in their part of the order. Whatever breaks a part of a history breaks the
whole, so a level notices at least what is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.evidence.version_order import Versions
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.subhistory import SubHistory, build, without_values, written_by_others
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import NOBODY, READ, READ_LIST, History, Op
from plume_py.levels import LEVELS, NAMES, strongest_weak_level_below, weaker_levels

# Transactions of a window, and how far they may stand beyond w' and the reader in the order. Compared with the whole
# history these lose one of seventy.
WINDOW, BEYOND = 150, 50


@dataclass(frozen=True)
class Stale:
    """One read that is given an older version: who takes part, and what it would have seen."""

    op: int
    reader: int
    writer: int  # of what was read
    older: int | None  # who wrote the version before; None: the initial state
    value: object  # what would have been read


def stale_reads(versions: Versions, samples: int, seed: int) -> list[Stale]:
    """Up to ``samples`` reads, drawn from those that saw a version with one before it."""
    reads = versions.analysis.reads
    candidates = np.flatnonzero(reads.read_source[: reads.read_start[-1]] >= 0)
    drawn = np.random.default_rng(seed).permutation(candidates)
    found: list[Stale] = []
    for r in drawn.tolist():
        if len(found) == samples:
            break
        one = _stale(versions, r)
        if one is not None:
            found.append(one)
    return found


def _stale(versions: Versions, r: int) -> Stale | None:
    history, reads = versions.history, versions.analysis.reads
    o, reader, writer = int(reads.read_op[r]), reads.reader(r), int(reads.read_source[r])
    if versions.place[reader] < 0 or versions.place[writer] < 0:
        return None
    if history.op_kind[o] == READ_LIST:
        return _shorter_list(history, o, reader, writer)
    if history.op_kind[o] != READ:
        return None
    before = versions.neighbour(int(history.op_version[o]), -1)
    if before is not None:
        return Stale(o, reader, writer, int(history.version_writer[before]), history.value(before))
    if history.initial is None or history.init_txn != NOBODY:
        return None
    return Stale(o, reader, writer, None, history.initial_value)


def _shorter_list(history: History, o: int, reader: int, writer: int) -> Stale | None:
    """A list without its last element, where others appended all of it."""
    assert history.lists is not None
    at = int(np.searchsorted(history.lists.ops, o))
    items = history.lists.items[history.lists.starts[at] : history.lists.starts[at + 1]]
    writers = history.version_writer[items].tolist()
    if not writers or reader in writers or writers[-1] != writer:
        return None
    older = next((w for w in reversed(writers) if w != writer), None)
    kept = next((n for n in range(len(writers), 0, -1) if writers[n - 1] != writer), 0)
    return Stale(o, reader, writer, older, tuple(map(history.value, items[:kept].tolist())))


def levels_detecting(versions: Versions, stale: Sequence[Stale], levels: Sequence[str], limits: Limits) -> Counter[str]:
    """By level: how many of these reads it would have noticed."""
    found: Counter[str] = Counter()
    for one in stale:
        limits.check()
        found.update(_broken(_window(versions, one), versions.analysis.order, levels, limits))
    return found


def _window(versions: Versions, stale: Stale) -> History:
    """Some of those between the older version and the read, with that read changed."""
    history = versions.history
    present = {stale.reader, stale.writer, *([stale.older] if stale.older is not None else [])}
    present |= set(_between(versions, stale, WINDOW - len(present)))
    parts = []
    for t in sorted({*present, history.init_txn} - {NOBODY}):
        txn = history.transaction(t)
        ops = list(txn.ops)
        if t == stale.reader:
            at = stale.op - int(history.txn_start[t])
            ops[at] = Op("r", ops[at].key, stale.value)  # type: ignore[arg-type]
        kept = without_values(tuple(ops), written_by_others(history, t, present))
        parts.append(SubHistory(int(history.txn_session[t]), txn._replace(ops=tuple(kept))))
    return as_ordinary(build(history, parts))


def _between(versions: Versions, stale: Stale, most: int) -> Iterator[int]:
    """Those nearest around the read and the version that it missed, in turns, within their part of the order."""
    place = versions.place
    low = (0 if stale.older is None else int(place[stale.older])) - BEYOND
    high = int(place[stale.reader]) + BEYOND
    seen = {stale.reader, stale.writer, stale.older}
    waves = [(versions.before, [stale.reader]), (versions.after, [stale.writer])]
    while most > 0 and any(wave for _, wave in waves):
        for i, (neighbours, wave) in enumerate(waves):
            following: list[int] = []
            for t in wave:
                for other in neighbours(t):
                    if other not in seen and max(low, 0) <= place[other] <= high and most > 0:
                        seen.add(other)
                        following.append(other)
                        most -= 1
                        yield other
            waves[i] = (neighbours, following)


def _broken(history: History, order: str, levels: Sequence[str], limits: Limits) -> Iterator[str]:
    """The levels that are broken; what breaks a weaker one breaks the stronger ones."""
    analysis = Analysis(history, order=order)
    weak = WeakLevels(analysis)
    broken: set[str] = set()
    for level in (name for name in NAMES if name in levels):
        if broken & weaker_levels(level) or not _holds(weak, level, limits):
            broken.add(level)
            yield level


def _holds(weak: WeakLevels, level: str, limits: Limits) -> bool:
    if not LEVELS[level].needs_search:
        return weak.holds(level)
    if not weak.holds(strongest_weak_level_below([level])):
        return False
    decision = StrongEngine(weak.analysis, level, limits=limits).decide()
    if decision.ok is None:
        raise LimitError(decision.reason or "stopped")
    return decision.ok
