"""Contradictions among a few transactions: cycles of SO, RT, WR, WW and RW that their levels do not allow.

``a -WW(x)-> b``: b's version of x is newer. ``t -RW(x)-> b``: t read a version of x that b overwrote, so it did not see
b. What a level adds is when t's not having seen b says something about the order; by its bits (levels.table):

- EVERYTHING: t comes before b.
- PREFIX: all that t saw comes before b. It saw whom it read from and its session's past, and with WRITERS also all
  earlier writers of what it writes.
- Else it is a contradiction if t saw b after all: directly (with WRITERS also as an earlier writer of what it writes)
  or, if TRANSITIVE, through someone it saw; if not even AT_COMMIT, only if t had read from b before.

A search goes backwards from t, through whom it sees or who comes before it, and looks for t itself or for b.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from plume_py.base.bits import members
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.history.model import INITIAL
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.levels.visibility import reads_from_snapshot

# How a node was reached, going backwards: it comes BEFORE the start; it MISSED the next one, so what it saw counts;
# or it is SEEN by the start.
BEFORE, MISSED, SEEN = range(3)

CAUSAL = ("SO", "RT", "WR")


class ProofEdge(NamedTuple):
    """A dependency between two transactions; numbers are those of ``Facts``."""

    source: int
    target: int
    relation: str  # SO RT WR WW RW, or CM: a commit order that is supposed
    key: int = -1
    reason: "Reason" = None
    via: int = INITIAL  # RW: whose version the source read
    newer: "ProofEdge | None" = (
        None  # RW: the WW that makes the target's version newer, unless the initial one was read
    )


@dataclass(frozen=True)
class Proof:
    """A cycle; its WW links are supposed, shown by lists, or proved in turn by a contradiction of the opposite."""

    cycle: tuple[ProofEdge, ...]

    @cached_property
    def size(self) -> int:
        """How many links there are, those of all proofs within included, each as often as it is needed."""
        return sum(_size(link) for link in self.cycle)

    def within(self) -> "Iterator[Proof]":
        """The proofs on which this one rests, itself included, each once."""
        seen, todo = {id(self)}, [self]
        while todo:
            proof = todo.pop()
            yield proof
            for link in proof.cycle:
                for inner in (link.reason, link.newer.reason if link.newer else None):
                    if isinstance(inner, Proof) and id(inner) not in seen:
                        seen.add(id(inner))
                        todo.append(inner)


# Of a WW or CM link: None if it is only supposed; the operation whose list shows it; or why its opposite fails.
Reason = Proof | int | None


def _size(link: ProofEdge) -> int:
    inner = link.reason.size if isinstance(link.reason, Proof) else 0
    return 1 + inner + (_size(link.newer) - 1 if link.newer else 0)


@dataclass
class Assumptions:
    """What is known or supposed about the order of the writers."""

    facts: Facts
    into: list[list[ProofEdge]] = field(default_factory=list)  # links by their target
    ordered: dict[tuple[int, int, int], ProofEdge] = field(default_factory=dict)  # (key, earlier, later)
    missed: list[ProofEdge] = field(default_factory=list)  # RW links of those whose view is no prefix

    @classmethod
    def of(cls, facts: Facts, listed_order: Iterable[tuple[int, int, int, int]] = ()) -> "Assumptions":
        """What the history says itself; ``listed_order`` is what lists show: (earlier, later, key, operation)."""
        case = cls(facts, [[] for _ in range(facts.count)])
        for t in range(facts.count):
            for x, t1 in facts.reads[t]:
                if t1 == INITIAL:
                    case._overwritten(x, INITIAL, [t], facts.writers[x], None)
                else:
                    case.into[t].append(ProofEdge(t1, t, "WR", x))
        for session in facts.sessions:
            for earlier, t in combinations(session, 2):
                case.into[t].append(ProofEdge(earlier, t, "SO"))
        for t, ended in enumerate(facts.ended):
            for earlier in members(ended):
                case.into[t].append(ProofEdge(earlier, t, "RT"))
        for a, b, x, operation in listed_order:
            case.order(x, a, b, operation)
        return case

    def copy(self) -> "Assumptions":
        """The same, to be continued in another way."""
        return Assumptions(self.facts, [list(links) for links in self.into], dict(self.ordered), list(self.missed))

    def order(self, x: int, a: int, b: int, reason: Reason) -> None:
        """a's version of x is older than b's."""
        link = ProofEdge(a, b, "WW", x, reason)
        self.ordered[x, a, b] = link
        self.into[b].append(link)
        self._overwritten(x, a, self.facts.readers[x].get(a, []), [b], link)

    def commit(self, a: int, b: int, reason: Reason) -> None:
        """a commits before b, whatever they write."""
        link = ProofEdge(a, b, "CM", -1, reason)
        self.ordered[-1, a, b] = link
        self.into[b].append(link)

    def _overwritten(self, x: int, t1: int, readers: list[int], writers: list[int], newer: ProofEdge | None) -> None:
        for t in dict.fromkeys(readers):
            for b in writers:
                if b not in (t, t1):
                    link = ProofEdge(t, b, "RW", x, None, t1, newer)
                    self.into[b].append(link)
                    if not self.facts.sees[t] & PREFIX:
                        self.missed.append(link)

    def open_pairs(self) -> Iterator[tuple[int, int, int]]:
        """(key, a, b) for all writers whose order is not known."""
        for x, writers in enumerate(self.facts.writers):
            for i, a in enumerate(writers):
                for b in writers[i + 1 :]:
                    if (x, a, b) not in self.ordered and (x, b, a) not in self.ordered:
                        yield x, a, b

    def contradiction(self, at: Iterable[int] | None = None) -> Proof | None:
        """A shortest cycle; ``at``: it is enough to look for those through these transactions (or a reader's view)."""
        best: list[ProofEdge] | None = None
        for t in range(self.facts.count) if at is None else at:
            best = _shorter(best, self._back(t, BEFORE, t))
        for link in self.missed:
            best = _shorter(best, self._seen_after_all(link))
        return None if best is None else Proof(tuple(best))

    def _seen_after_all(self, link: ProofEdge) -> list[ProofEdge] | None:
        """Does the reader see, as its level has it, whom it missed?"""
        t, b = link.source, link.target
        sees = self.facts.sees[t]
        if sees & TRANSITIVE:
            path = self._back(t, SEEN, b)
            return None if path is None else [*path, link]
        if sees & AT_COMMIT:
            direct = [seen for seen in self.into[t] if seen.source == b and seen.relation in CAUSAL]
            return [direct[0], link] if direct else None
        reads = self.facts.reads[t]
        last = max(i for i, read in enumerate(reads) if read == (link.key, link.via))
        earlier = [x for x, source in reads[:last] if source == b]
        return [ProofEdge(b, t, "WR", earlier[0]), link] if earlier else None

    def _back(self, start: int, how: int, goal: int) -> list[ProofEdge] | None:
        """A shortest path goal -> … -> start by which goal comes before start (BEFORE) or is seen by it (SEEN)."""
        came: dict[tuple[int, int], tuple[ProofEdge, tuple[int, int]] | None] = {(start, how): None}
        queue = deque([(start, how)])
        while queue:
            state = queue.popleft()
            for link, then in self._leads_to(*state):
                reached = link.source, then
                if link.source == goal and then != MISSED:
                    path = [link]
                    at: tuple[int, int] = state
                    while (step := came[at]) is not None:
                        path.append(step[0])
                        at = step[1]
                    return path
                if reached not in came:
                    came[reached] = link, state
                    queue.append(reached)
        return None

    def _leads_to(self, t: int, how: int) -> Iterator[tuple[ProofEdge, int]]:
        """The links by which one goes on, and how their sources are reached."""
        sees = self.facts.sees
        if how == SEEN and sees[t] & PREFIX:
            how = MISSED if reads_from_snapshot(sees[t]) else BEFORE
        for link in self.into[t]:
            direct = link.relation in CAUSAL or (link.relation == "WW" and sees[t] & WRITERS)
            if how == SEEN:
                if direct:
                    yield link, SEEN
            elif how == MISSED:
                if direct:
                    yield link, BEFORE
            elif link.relation != "RW" or sees[link.source] & EVERYTHING:
                yield link, BEFORE
            elif sees[link.source] & PREFIX:
                yield link, MISSED


def _shorter(a: list[ProofEdge] | None, b: list[ProofEdge] | None) -> list[ProofEdge] | None:
    if a is None or b is None:
        return a or b
    return a if len(a) <= len(b) else b


def unordered(case: Assumptions) -> Iterator[tuple[int, int]]:
    """Pairs of transactions that nothing orders yet, for when the order of writers alone does not decide."""
    before = [0] * case.facts.count
    changed = True
    while changed:
        changed = False
        for t, links in enumerate(case.into):
            known = before[t]
            for link in links:
                if link.relation != "RW" or case.facts.sees[link.source] & EVERYTHING:
                    known |= before[link.source] | 1 << link.source
            if known != before[t]:
                before[t], changed = known, True
    for a in range(case.facts.count):
        after_or_before = before[a] | 1 << a
        for b in members(~after_or_before & ((1 << case.facts.count) - 1)):
            if b > a and not before[b] >> a & 1:
                yield a, b
