"""Find cycles of SO, RT, WR, WW and RW edges that the levels of a few transactions forbid.

``a -WW(x)-> b``: b's version of x is newer. ``t -RW(x)-> b``: t read a version of x that b overwrote, so b is not
visible to t. The bits of t's level (levels.table) determine what follows from that:

- EVERYTHING: t comes before b.
- PREFIX: all transactions visible to t come before b: those it read from, the past of its session, and with WRITERS the
earlier writers of its keys.
- Otherwise it is a contradiction if b is visible to t: directly (with WRITERS also as an earlier writer of t's keys),
  with
TRANSITIVE also through another transaction, and without AT_COMMIT only if t had read from b before.

A search goes backwards from t, along visibility and precedence, and looks for t itself or for b.
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

# State of the backward search: the node comes BEFORE the start; it MISSED its successor on the path, so what it sees
# comes before; or it is SEEN by the start.
BEFORE, MISSED, SEEN = range(3)

CAUSAL = ("SO", "RT", "WR")


class ProofEdge(NamedTuple):
    """A dependency between two transactions, numbered as in ``Facts``."""

    source: int
    target: int
    relation: str  # SO RT WR WW RW, or CM: a supposed commit order
    key: int = -1
    reason: "Reason" = None
    via: int = INITIAL  # RW: the writer that the source read from
    newer: "ProofEdge | None" = None  # RW: the WW edge to the target's version, unless the initial state was read


@dataclass(frozen=True)
class Proof:
    """A forbidden cycle. Its WW edges are supposed, shown by lists, or proved by a contradiction of their opposite."""

    cycle: tuple[ProofEdge, ...]

    @cached_property
    def size(self) -> int:
        """Number of edges, with the edges of inner proofs, each time one is used."""
        return sum(_size(link) for link in self.cycle)

    def within(self) -> "Iterator[Proof]":
        """Yield the proof and its inner proofs, each once."""
        seen, todo = {id(self)}, [self]
        while todo:
            proof = todo.pop()
            yield proof
            for link in proof.cycle:
                for inner in (link.reason, link.newer.reason if link.newer else None):
                    if isinstance(inner, Proof) and id(inner) not in seen:
                        seen.add(id(inner))
                        todo.append(inner)


# The reason of a WW or CM edge: None if it is supposed, the operation whose list shows it, or a proof that refutes its
# opposite.
Reason = Proof | int | None


def _size(link: ProofEdge) -> int:
    inner = link.reason.size if isinstance(link.reason, Proof) else 0
    return 1 + inner + (_size(link.newer) - 1 if link.newer else 0)


@dataclass
class Assumptions:
    """Known and supposed orders of writers, as edges by target."""

    facts: Facts
    into: list[list[ProofEdge]] = field(default_factory=list)
    ordered: dict[tuple[int, int, int], ProofEdge] = field(default_factory=dict)  # (key, earlier, later)
    missed: list[ProofEdge] = field(default_factory=list)  # RW edges from transactions without PREFIX

    @classmethod
    def of(cls, facts: Facts, listed_order: Iterable[tuple[int, int, int, int]] = ()) -> "Assumptions":
        """Return the orders that the history shows.

        ``listed_order`` has rows (earlier, later, key, operation) from lists.
        """
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
        """Return a copy, to be extended by another supposition."""
        return Assumptions(self.facts, [list(links) for links in self.into], dict(self.ordered), list(self.missed))

    def order(self, x: int, a: int, b: int, reason: Reason) -> None:
        """Add that a's version of x is older than b's."""
        link = ProofEdge(a, b, "WW", x, reason)
        self.ordered[x, a, b] = link
        self.into[b].append(link)
        self._overwritten(x, a, self.facts.readers[x].get(a, []), [b], link)

    def commit(self, a: int, b: int, reason: Reason) -> None:
        """Add that a commits before b."""
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
        """Yield (key, a, b) for all pairs of writers without a known order."""
        for x, writers in enumerate(self.facts.writers):
            for i, a in enumerate(writers):
                for b in writers[i + 1 :]:
                    if (x, a, b) not in self.ordered and (x, b, a) not in self.ordered:
                        yield x, a, b

    def contradiction(self, at: Iterable[int] | None = None) -> Proof | None:
        """Return a shortest forbidden cycle, or None.

        ``at``: only cycles through these transactions, or through what a reader sees, need be found.
        """
        best: list[ProofEdge] | None = None
        for t in range(self.facts.count) if at is None else at:
            best = _shorter(best, self._back(t, BEFORE, t))
        for link in self.missed:
            best = _shorter(best, self._seen_after_all(link))
        return None if best is None else Proof(tuple(best))

    def _seen_after_all(self, link: ProofEdge) -> list[ProofEdge] | None:
        """Return a path by which the target of ``link``, which its source missed, is visible to it after all."""
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
        """Return a shortest path goal -> … -> start.

        By the path, goal comes before start (BEFORE) or is visible to it (SEEN).
        """
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
    """Yield pairs of transactions without any known order, for cases that the orders of writers do not decide."""
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
