"""Facts: a small history as plain Python lists, its participating transactions numbered from 0.

``search``, ``saturation`` and ``forbidden_cycles`` work on them instead of on arrays.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from plume_py.base.bits import bits
from plume_py.checking.graph.reads import Reads, resolve_reads
from plume_py.checking.graph.realtime import RealTime
from plume_py.history.model import INITIAL, History
from plume_py.levels import visibility_bits
from plume_py.levels.patterns import BASE
from plume_py.levels.table import AT_COMMIT


@dataclass
class Facts:
    """A small history. Sets of transactions are bit sets, see ``base.bits``."""

    number: list[int]  # number in the history
    level: list[str]
    session_of: list[int]
    sees: list[int] = field(init=False)  # visibility bits of each level, see levels.table
    key_number: list[int] = field(default_factory=list)  # number of each key in the history
    broken: bool = False  # a single read or list is wrong: no order exists
    sessions: list[list[int]] = field(default_factory=list)
    reads: list[list[tuple[int, int]]] = field(default_factory=list)  # (key, writer) in program order
    writes: list[list[int]] = field(default_factory=list)  # keys
    writers: list[list[int]] = field(default_factory=list)  # of each key
    readers: list[dict[int, list[int]]] = field(default_factory=list)  # of each key, by writer
    versions: list[tuple[int, int]] = field(default_factory=list)  # (earlier, later), as lists show
    ended: list[int] = field(default_factory=list)  # transactions that had ended before, in real time
    direct: list[int] = field(default_factory=list)  # earlier in session or real time, or read from
    conflicts: list[int] = field(default_factory=list)  # transactions that write a common key

    def __post_init__(self) -> None:
        self.sees = [visibility_bits(level) for level in self.level]

    @property
    def count(self) -> int:
        return len(self.number)

    @property
    def keys(self) -> int:
        return len(self.key_number)


def gather(
    history: History,
    level: str | Mapping[int, str],
    reads: Reads | None = None,
    only: Iterable[int] | None = None,
    real_time: RealTime | None = None,
) -> Facts:
    """Return the facts of ``history`` with each transaction at its ``level``, and with ``real_time`` if given.

    With ``only``, the facts contain these transactions, as far as they participate; reads from others are left out.
    """
    reads = reads or resolve_reads(history)
    only = None if only is None else [t for t in sorted(only) if reads.participates[t]]
    number = np.flatnonzero(reads.participates).tolist() if only is None else only
    facts = Facts(
        number=number,
        level=[level if isinstance(level, str) else level[t] for t in number],
        session_of=[int(history.txn_session[t]) for t in number],
        broken=not set(BASE).isdisjoint(reads.counts),
    )
    index = {t: i for i, t in enumerate(number)} | {INITIAL: INITIAL}
    keys: dict[int, int] = {}
    for i, t in enumerate(number):
        facts.writes.append([keys.setdefault(x, len(keys)) for x in _written(history, t)])
        found = [(keys.setdefault(x, len(keys)), index[t1]) for x, t1 in _read(history, reads, t) if t1 in index]
        # Each read once. At levels without AT_COMMIT, the reads so far determine visibility, so repeated reads remain.
        facts.reads.append(list(dict.fromkeys(found)) if facts.sees[i] & AT_COMMIT else found)
    facts.key_number = list(keys)
    facts.versions = [(index[a], index[b]) for a, b in _version_order(history, reads, only) if a != b]
    for b in number:
        earlier = () if real_time is None else (i for i, a in enumerate(number) if real_time.precedes(a, b))
        facts.ended.append(bits(earlier))
    _relate(facts)
    return facts


def _written(history: History, t: int) -> list[int]:
    ops = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
    keys: list[int] = history.op_key[ops][history.op_kind[ops] & 1 == 1].tolist()
    return list(dict.fromkeys(keys))


def _read(history: History, reads: Reads, t: int) -> Iterable[tuple[int, int]]:
    span = slice(int(reads.read_start[t]), int(reads.read_start[t + 1]))
    return zip(history.op_key[reads.read_op[span]].tolist(), reads.read_source[span].tolist(), strict=True)


def _version_order(history: History, reads: Reads, only: Iterable[int] | None) -> list[tuple[int, int]]:
    """Return (earlier, later) as lists show it; with ``only``, also if other writers were in between."""
    if only is None or history.lists is None:
        return [(a, b) for a, b, _, _ in reads.version_order.tolist()]
    return [(a, b) for a, b, _, _ in fixed_versions(history, reads, set(only))]


def fixed_versions(history: History, reads: Reads, only: set[int]) -> list[tuple[int, int, int, int]]:
    """Return rows (earlier, later, key, operation) of the writers in ``only``: neighbours in the longest list of a key.

    Writers that the list does not show come after all that it shows.
    """
    lists = history.lists
    if lists is None:
        return []
    writers_of: dict[int, list[int]] = {}
    for t in sorted(only):
        for x in _written(history, t):
            writers_of.setdefault(x, []).append(t)
    found = []
    for x, mine in sorted(writers_of.items()):
        longest = int(reads.list_reference[x])
        if longest >= 0:
            writers = history.version_writer[lists.items[lists.starts[longest] : lists.starts[longest + 1]]].tolist()
            kept = [t for t in writers if t in only]
            found += [(a, b, x, int(lists.ops[longest])) for a, b in pairwise(kept) if a != b]
            if kept:
                found += [(kept[-1], t, x, int(lists.ops[longest])) for t in mine if t not in set(kept)]
    return found


def _relate(facts: Facts) -> None:
    facts.writers = [[] for _ in range(facts.keys)]
    facts.readers = [{} for _ in range(facts.keys)]
    for t in range(facts.count):
        for x in facts.writes[t]:
            facts.writers[x].append(t)
        for x, t1 in facts.reads[t]:
            facts.readers[x].setdefault(t1, []).append(t)
    by_session: dict[int, list[int]] = {}
    earlier: dict[int, int] = {}  # transactions of each session so far, as bits
    for t, s in enumerate(facts.session_of):
        by_session.setdefault(s, []).append(t)
        facts.direct.append(earlier.get(s, 0) | facts.ended[t] | bits(t1 for _, t1 in facts.reads[t] if t1 != INITIAL))
        earlier[s] = earlier.get(s, 0) | 1 << t
        facts.conflicts.append(bits(w for x in facts.writes[t] for w in facts.writers[x]) & ~(1 << t))
    facts.sessions = list(by_session.values())
