"""Synthesis without a solver: every history of a scope, one after the other, each judged by all its witnesses.

The baseline that a search has to beat, and a second opinion on its answers. Judged by ``tests/oracles/oracle.py``,
which tries every commit order and shares no code with isocheck.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from pathlib import Path

from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn
from plume_py.reasoning.synth.scope import Scope

ORACLES = Path(__file__).resolve().parent.parent / "tests" / "oracles"
Reads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Enumerated:
    """What came of it: a history or none, or undecided if time ran out; how many were looked at, and CPU seconds."""

    verdict: str
    histories: int
    seconds: float


def enumerate_for(allow: str, forbid: str, scope: Scope, seconds: float) -> Enumerated:
    """The first history that one level allows and the other forbids, or that there is none."""
    if str(ORACLES) not in sys.path:
        sys.path.insert(0, str(ORACLES))
    import oracle

    start, seen = time.process_time(), 0
    for concrete in histories(scope):
        if time.process_time() - start > seconds:
            return Enumerated("undecided", seen, time.process_time() - start)
        seen += 1
        found = oracle.verdicts(_plain(concrete))
        if found[allow] and not found[forbid]:
            return Enumerated("SAT", seen, time.process_time() - start)
    return Enumerated("UNSAT", seen, time.process_time() - start)


def count(scope: Scope) -> int:
    """How many there are, by how many choices the reads leave, without making them."""
    return sum(_ways_to_read(writes, scope) for writes in _all_writes(scope)) * len(_all_sessions(scope.txns))


def histories(scope: Scope) -> Iterator[ConcreteHistory]:
    """All of exactly so many transactions, none of them empty, numbered so that reads and sessions go forward."""
    for sessions in _all_sessions(scope.txns):
        for writes in _all_writes(scope):
            for reads in product(*(_reads(t, writes, scope) for t in range(scope.txns))):
                if all(r or w for r, w in zip(reads, writes, strict=True)):
                    yield ConcreteHistory(tuple(map(ConcreteTxn, sessions, reads, writes)))


def _all_sessions(txns: int) -> list[tuple[int, ...]]:
    """Who is in which session, each new one by the next number."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(txns):
        found = [(*some, new) for some in found for new in range(max(some, default=-1) + 2)]
    return found


def _all_writes(scope: Scope) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Who writes which keys; a key has a value for each of its writers, and one initially."""
    keys = range(scope.keys)
    sets = list(chain.from_iterable(combinations(keys, size) for size in range(scope.keys + 1)))
    for writes in product(sets, repeat=scope.txns):
        if all(sum(x in mine for mine in writes) < scope.values for x in keys):
            yield writes


def _sources(t: int, x: int, writes: Sequence[tuple[int, ...]]) -> list[int | None]:
    return [None, INITIAL, *(u for u in range(t) if x in writes[u])]


def _reads(t: int, writes: Sequence[tuple[int, ...]], scope: Scope) -> list[Reads]:
    choices = product(*(_sources(t, x, writes) for x in range(scope.keys)))
    return [tuple((x, u) for x, u in enumerate(choice) if u is not None) for choice in choices]


def _ways_to_read(writes: Sequence[tuple[int, ...]], scope: Scope) -> int:
    ways = 1
    for t, mine in enumerate(writes):
        mine_alone = 1
        for x in range(scope.keys):
            mine_alone *= len(_sources(t, x, writes))
        ways *= mine_alone - (not mine)  # who writes nothing must read something
    return ways


def _plain(concrete: ConcreteHistory) -> list[list[tuple[str, list[tuple[str, str, int]]]]]:
    """As the oracle takes it."""
    sessions: dict[int, list[tuple[str, list[tuple[str, str, int]]]]] = {}
    for t in concrete.by_session():
        sessions.setdefault(concrete.txns[t].session, []).append(("committed", concrete.ops(t)))
    return list(sessions.values())
