"""Estimate how much a passing check says about the database (``check --evidence``; always in ``test``).

A run without conflicts satisfies every level and proves little. For the levels that hold, this module computes:

1. Detection rate (``stale_read_mutants``): how often a level is violated after one sampled read is made stale.
2. Conflicts: pairs of committed transactions that overlapped in time and accessed the same key, at least one writing
   it.
Needs times.
3. Impossible anomalies, which no history of this shape can show, with advice on the workload.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from plume_py.base.limits import Limits
from plume_py.checking.evidence.stale_read_mutants import Versions, levels_detecting, stale_reads
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import Evidence, LevelVerdict
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import ABORTED, COMMITTED, History, Int32s, Int64s
from plume_py.history.times import NO_TIME
from plume_py.levels import LEVELS, NAMES, STRONGEST_FIRST, WEAK, weaker_levels
from plume_py.levels.orders import DEFAULT_ORDER

# Number of reads to change: between FEWEST and SAMPLES, one per EACH operations.
FEWEST, SAMPLES, EACH = 20, 100, 500

# Maximum number of accesses examined, and of pairs counted; beyond that the count is a lower bound.
ACCESSES = 200_000
PAIRS = 200_000

# Bits of a pair: the first transaction read a key that the second wrote; the reverse; both wrote one key; both read and
# wrote one key.
READ_WRITTEN, WRITTEN_READ, BOTH_WROTE, BOTH_UPDATED = 1, 2, 4, 8


@dataclass
class Conflicts:
    """The pairs (t, u), t < u, with their bits. ``is_all`` is False if a bound cut the search short."""

    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    is_all: bool = True

    @property
    def updates(self) -> bool:
        """Whether two transactions read and wrote one key. Without such a pair no update can be lost."""
        return any(bits & BOTH_UPDATED for bits in self.pairs.values())

    @property
    def skews(self) -> bool:
        """Whether two transactions each read what the other wrote, with no key written by both.

        A write skew is possible.
        """
        both = READ_WRITTEN | WRITTEN_READ
        return any(bits & both == both and not bits & BOTH_WROTE for bits in self.pairs.values())


def evidence_of(
    history: History,
    verdicts: dict[str, LevelVerdict],
    *,
    order: str = DEFAULT_ORDER,
    samples: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
) -> Evidence | None:
    """Return the evidence behind the verdicts of ``check``, or None if no level holds for which it can be computed."""
    limits = limits or Limits()
    kept = _kept(verdicts, order)
    if not kept:  # a history checked in real time may lack times
        return None
    weak = WeakLevels(Analysis(history, order=order))
    commit_order = _commit_order(weak, kept, limits)
    if commit_order is None:
        return None
    versions = Versions(weak.analysis, commit_order)
    if samples is None:
        samples = min(max(history.operations // EACH, FEWEST), SAMPLES)
    stale = stale_reads(versions, samples, seed)
    found = levels_detecting(versions, stale, kept, limits)
    pairs = conflicts(history)
    return Evidence(
        len(stale),
        {level: found[level] for level in kept},
        seed,
        None if pairs is None else len(pairs.pairs),
        pairs is None or pairs.is_all,
        tuple(_unseen(history, pairs)),
    )


def _kept(verdicts: dict[str, LevelVerdict], order: str) -> list[str]:
    """Return the levels that hold in this order, and the weaker levels that follow."""
    holding = {name for name in NAMES if name in verdicts and verdicts[name].ok and verdicts[name].order == order}
    below = {weaker for name in holding for weaker in weaker_levels(name)}
    return [name for name in NAMES if name in holding | below]


def _commit_order(weak: WeakLevels, kept: Iterable[str], limits: Limits) -> Int32s | None:
    """Return a commit order that shows the strongest level in ``kept``, or None."""
    strongest = next((name for name in STRONGEST_FIRST if name in kept), None)
    if strongest is None:
        return None
    if strongest in WEAK:
        return weak.witness(strongest)
    assert LEVELS[strongest].needs_search
    return StrongEngine(weak.analysis, strongest, limits=limits).decide().order


def _unseen(history: History, pairs: Conflicts | None) -> Iterator[tuple[str, str]]:
    """Yield each anomaly that no history of this shape can show, with advice for the workload."""
    owner = np.repeat(np.arange(history.transactions), np.diff(history.txn_start))
    writes = (history.op_kind & 1) == 1
    if not (writes & (history.txn_status[owner] == ABORTED)).any():
        yield "aborted read", "roll back some transactions after they wrote"
    if not _twice(history, owner, writes):
        yield "intermediate read", "write a key twice in some transactions"
    if not _twice(history, owner, ~writes):
        yield "non-repeatable read", "read a key twice in some transactions"
    if _most_keys(history, owner, writes) < 2 or _most_keys(history, owner, ~writes) < 2:
        yield "fractured read", "let transactions write, and others read, two keys or more"
    if history.transactions and int(np.diff(history.session_start).max()) < 2:
        yield "stale session", "let sessions run more than one transaction"
    if history.sessions < 2:
        yield "anything between sessions", "run several sessions"
    if pairs is not None and pairs.is_all:
        if not pairs.updates:
            yield "lost update", "let transactions that overlap read and write the same key: more sessions, fewer keys"
        if not pairs.skews:
            yield "write skew", "let transactions that overlap read what the other one writes: fewer keys"


def _twice(history: History, owner: Int64s, chosen: np.ndarray) -> bool:
    """Return whether some transaction accesses a key twice among the chosen operations."""
    pair = owner[chosen] * len(history.key_code) + history.op_key[chosen]
    return len(np.unique(pair)) < len(pair)


def _most_keys(history: History, owner: Int64s, chosen: np.ndarray) -> int:
    """Return the largest number of keys that a transaction accesses among the chosen operations."""
    pair = np.unique(owner[chosen] * len(history.key_code) + history.op_key[chosen])
    return int(np.bincount(pair // len(history.key_code)).max()) if len(pair) else 0


# Conflicts


def conflicts(history: History) -> Conflicts | None:
    """Return the pairs of committed transactions of different sessions that overlapped; None if times are unknown."""
    if history.times is None:
        return None
    begin, end = history.times.begin, history.times.end
    timed = (history.txn_status == COMMITTED) & (begin != NO_TIME) & (end != NO_TIME)
    if not timed.any():
        return None
    txn, key, bits, is_all = _accesses(history, timed)
    found = Conflicts(is_all=is_all)
    order = np.lexsort((begin[txn], key))
    bounds = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
    columns = txn[order].tolist(), bits[order].tolist()
    first, last = begin.tolist(), end.tolist()
    session = history.txn_session.tolist()
    for low, high in pairwise(bounds.tolist()):
        if not _of_a_key(columns, low, high, (first, last, session), found):
            found.is_all = False
            break
    return found


def _accesses(history: History, timed: np.ndarray) -> tuple[Int64s, Int64s, Int64s, bool]:
    """Return, for each pair of transaction and key, bits for a read (1) and a write (2).

    And whether that is all of them.
    """
    sizes = np.diff(history.txn_start)
    owner = np.repeat(np.arange(history.transactions), sizes)
    chosen = np.flatnonzero(timed[owner])
    is_all = len(chosen) <= ACCESSES
    chosen = chosen[:ACCESSES]
    pair = owner[chosen] * len(history.key_code) + history.op_key[chosen]
    names, where = np.unique(pair, return_inverse=True)
    bits = np.zeros(len(names), np.int64)
    np.bitwise_or.at(bits, where, np.where(history.op_kind[chosen] & 1, 2, 1))
    return names // len(history.key_code), names % len(history.key_code), bits, is_all


def _of_a_key(
    columns: tuple[list[int], list[int]],
    low: int,
    high: int,
    when: tuple[list[int], list[int], list[int]],
    found: Conflicts,
) -> bool:
    """Add the overlapping pairs of one key, sweeping by start time. Return False once enough pairs are found."""
    txns, bits = columns
    begin, end, session = when
    running: list[int] = []
    for i in range(low, high):
        t = txns[i]
        running = [j for j in running if end[txns[j]] >= begin[t]]
        for j in running:
            u = txns[j]
            if session[u] == session[t] or not (bits[i] | bits[j]) & 2:
                continue
            mine, theirs = (bits[i], bits[j]) if t < u else (bits[j], bits[i])
            pair = (min(t, u), max(t, u))
            found.pairs[pair] = found.pairs.get(pair, 0) | _did(mine, theirs)
            if len(found.pairs) >= PAIRS:
                return False
        running.append(i)
    return True


def _did(mine: int, theirs: int) -> int:
    return (
        (READ_WRITTEN if mine & 1 and theirs & 2 else 0)
        | (WRITTEN_READ if mine & 2 and theirs & 1 else 0)
        | (BOTH_WROTE if mine & 2 and theirs & 2 else 0)
        | (BOTH_UPDATED if mine == theirs == 3 else 0)
    )
