"""Pairs of transactions that ran at the same time and touched the same key: without them nothing can go wrong."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from plume_py.history.model import COMMITTED, History, Int64s
from plume_py.history.times import NO_TIME

# Accesses that are looked at, and pairs: beyond that "at least".
ACCESSES = 200_000
PAIRS = 200_000

# What two of them did to each other: the first read a key that the second wrote; the other way round; both wrote one
# key; both read and wrote one key.
READ_WRITTEN, WRITTEN_READ, BOTH_WROTE, BOTH_UPDATED = 1, 2, 4, 8


@dataclass
class Conflicts:
    """The pairs (t, u), t < u, with what they did to each other as bits; is that all of them?"""

    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    is_all: bool = True

    @property
    def updates(self) -> bool:
        """Did two read and overwrite one key? Else no update can be lost."""
        return any(bits & BOTH_UPDATED for bits in self.pairs.values())

    @property
    def skews(self) -> bool:
        """Did each of two read what the other wrote, and no key was written by both? Else no write skew can be."""
        both = READ_WRITTEN | WRITTEN_READ
        return any(bits & both == both and not bits & BOTH_WROTE for bits in self.pairs.values())


def conflicts(history: History) -> Conflicts | None:
    """Of committed transactions of different sessions that overlapped in time; None if times are not known."""
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
    """Transaction, key and whether it read (1) and wrote (2) it, each pair once."""
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
    """Sweep over the accesses to one key by their beginnings; False: enough pairs were found."""
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
