"""Search a commit order: take a greedy order, check it by the axioms, and turn its violations into choices and clauses.

The order of two writers becomes a variable only if a greedy order was wrong about it. A SAT solver chooses sides.
Cycles of the chosen sides become clauses. Each round adds a variable or a clause, so the search ends, with a commit
order or with clauses that contradict each other. ``engine`` runs it after the inference.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.base.limits import Limits
from plume_py.base.logic.sat import Solver
from plume_py.checking.graph.causal import predecessors
from plume_py.checking.strong.solver import greedy_order_kernels, saturation_kernels
from plume_py.checking.strong.solver.candidate_order import CandidateOrder, CommitCycle, WriterPairs
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import RW, SO, WR, WW, Inference
from plume_py.history.model import Int32s
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS


class ChainLink(NamedTuple):
    """a is visible to b: a row (a, b, relation, key, read)."""

    a: int
    b: int
    relation: int
    key: int
    read: int


class Chains:
    """Reasons of visibility in one commit order."""

    def __init__(self, layout: SolverColumns, order: Int32s) -> None:
        self.layout = layout
        self.place = np.full(layout.transactions, -1, np.int64)
        self.place[order] = np.arange(len(order))

    def chain(self, t2: int, t3: int) -> list[ChainLink]:
        """Return a shortest chain of links by which t2 is visible to t3.

        The first link may start after t2, at the end of a prefix that contains t2.
        """
        sees = self.layout.sees
        parent: dict[int, ChainLink] = {}
        queue = deque([t3])
        while queue:
            b = queue.popleft()
            for link in self._links(b, int(self.place[t2])):
                prefix = sees[b] & (PREFIX | EVERYTHING) == PREFIX or sees[link.a] & EVERYTHING
                if link.a == t2 or prefix:
                    return self._followed(link, t3, parent)
                if link.a not in parent and link.a != t3:
                    parent[link.a] = link
                    queue.append(link.a)
        return []

    def _followed(self, link: ChainLink, t3: int, parent: dict[int, ChainLink]) -> list[ChainLink]:
        links = [link]
        while links[-1].b != t3:
            links.append(parent[links[-1].b])
        return links

    def _links(self, b: int, earliest: int) -> list[ChainLink]:
        """Return the links to transactions directly visible to b, from position ``earliest`` on."""
        layout, place = self.layout, self.place
        found = []
        previous = layout.analysis.previous_in_session(b)
        while previous >= 0 and not layout.reads.participates[previous]:
            previous = layout.analysis.previous_in_session(previous)
        if previous >= 0:
            found.append(ChainLink(previous, b, SO, -1, -1))
        if layout.analysis.real_time is not None:
            ended = layout.analysis.real_time.before(b)
            found += [ChainLink(a, b, SO, -1, -1) for a in ended[place[ended] >= earliest].tolist()]
        for r in range(layout.reads.read_start[b], layout.reads.read_start[b + 1]):
            if layout.read_source[r] >= 0:
                found.append(ChainLink(int(layout.read_source[r]), b, WR, int(layout.read_key[r]), r))
        if layout.sees[b] & (WRITERS | EVERYTHING) == WRITERS:
            start, key, _ = layout.writes
            for x in key[start[b] : start[b + 1]].tolist():
                writers = layout.key_writers[layout.key_start[x] : layout.key_start[x + 1]]
                earlier = writers[(place[writers] >= earliest) & (place[writers] < place[b])]
                found += [ChainLink(a, b, WW, x, -1) for a in earlier.tolist()]
        return [link for link in found if place[link.a] >= earliest]


# Slices of solver work to spend on a smaller core.
CORE_SLICES = 10

# Steps of work per round and edge of the graph.
STEPS_PER_EDGE = 30

# Maximum number of violations of a greedy order that are examined.
LOOKED_AT = 2000


@dataclass
class OrderOrCycles:
    """A commit order, or cycles that together exclude every choice."""

    order: Int32s | None
    cycles: list[CommitCycle]


class Search:
    """The search for one history and level, after inference found no contradiction."""

    def __init__(self, layout: SolverColumns, inference: Inference, limits: Limits) -> None:
        known = inference.known
        assert known.graph is not None
        self.layout, self.limits, self.inference = layout, limits, inference
        self.known, self.base = known.rows, known.graph
        self.pairs = WriterPairs(layout)
        self.clauses: dict[frozenset[int], CommitCycle] = {}
        self.rounds = 0
        self._solver: Solver | None = None

    def run(self, rounds: int = 1 << 62) -> OrderOrCycles | None:
        """Search until an order is found or excluded; return None after ``rounds`` in all. It can be called again."""
        while self.rounds < rounds:
            self.limits.check(self.progress)
            self.rounds += 1
            candidate = CandidateOrder(self.layout, self.known, self.base, self.pairs, self.pairs.chosen())
            self.limits.spend(STEPS_PER_EDGE * (candidate.graph.nodes + len(candidate.graph.target)))
            order = candidate.greedy_order()
            if order is None:
                self._add_clauses(list(candidate.cycles()))
            else:
                wrong = self.axiom_violations(order)
                if not len(wrong):
                    return OrderOrCycles(order, [])
                self._learn(wrong, order)
            if not self._solve():
                return OrderOrCycles(None, self._core())
        return None

    def axiom_violations(self, order: Int32s) -> Int32s:
        """Return the violations of the axioms by ``order``: rows (t1, t2, t3, read)."""
        layout, history, analysis = self.layout, self.layout.history, self.layout.analysis
        graph = predecessors(history, layout.reads, analysis.time_predecessors)
        dispatch.prepare(8 * (len(order) + len(layout.read_key)), saturation_kernels, greedy_order_kernels)
        shape = (layout.transactions, history.sessions) if layout.by_session else (0, 0)
        self.limits.reserve(4 * shape[0] * shape[1], self.progress)
        rows: Int32s = greedy_order_kernels.axiom_violations(
            order, layout.arrays, graph, analysis.spans, history.session_start, layout.keys, np.zeros(shape, np.int32)
        )
        return rows

    def progress(self) -> str:
        return (
            f"{len(self.pairs):,} pairs of writers were open, {len(self.clauses):,} cycles excluded"
            f" in {self.rounds:,} rounds, largest component {self.largest_component():,} transactions"
        )

    def largest_component(self) -> int:
        """Return the largest component of forced edges and both sides of every choice, in transactions."""
        both = [side * v for v in range(1, len(self.pairs) + 1) for side in (1, -1)]
        return CandidateOrder(self.layout, self.known, self.base, self.pairs, both).largest_component() if both else 0

    def _learn(self, wrong: Int32s, order: Int32s) -> None:
        """Add a variable for each violation without one, or forbid the choices that caused it."""
        chains = Chains(self.layout, order)
        old, before = len(self.pairs), len(self.pairs) + len(self.clauses)
        for t1, t2, t3, r in wrong[:LOOKED_AT].tolist():
            if t1 >= 0 and not self._decided(t1, t2):
                # t2 lies between t1 and t3: let it go to the nearer side
                near = chains.place[t2] - chains.place[t1] < chains.place[t3] - chains.place[t2]
                self.pairs.add(*((t2, t1) if near else (t1, t2)))
            elif t1 < 0 or abs(self.pairs.literal(t1, t2)) <= old:
                self._learn_chain(t1, t2, t3, r, chains, old)
        assert len(self.pairs) + len(self.clauses) > before, "a round taught nothing"

    def _learn_chain(self, t1: int, t2: int, t3: int, r: int, chains: Chains, old: int) -> None:
        """Forbid the choices that make t2 visible to t3, or add a variable for an order that they need.

        Only the first ``old`` variables were part of the order; later rounds examine newer ones.
        """
        links = chains.chain(t2, t3)
        literals: set[int] = set()
        for link in links:
            if link.relation <= WR or self._known_before(link.a, link.b):
                continue
            literal = self.pairs.literal(link.a, link.b)
            if not literal:
                self.pairs.add(link.b, link.a)
                return
            if abs(literal) > old:
                return
            literals.add(literal)
        assert links and links[0].a == t2, "the order does not extend its edges"
        if t1 >= 0 and self.pairs.literal(t1, t2):
            literals.add(self.pairs.literal(t1, t2))
        overwrites = (t3, t2, RW, int(self.layout.read_key[r]), r)
        rows = (*(tuple(link) for link in links), overwrites)
        self._add_clauses([CommitCycle(rows, frozenset(literals))])

    def _decided(self, a: int, b: int) -> bool:
        return bool(self.pairs.literal(a, b)) or self._known_before(a, b) or self._known_before(b, a)

    def _known_before(self, a: int, b: int) -> bool:
        """Return whether a is known to commit before b."""
        history = self.layout.history
        if not self.inference.whole:
            return False
        s = int(history.txn_session[a])
        return bool(self.inference.clock[b, s] > a - int(history.session_start[s]))

    def _add_clauses(self, cycles: list[CommitCycle]) -> None:
        for cycle in cycles:
            if cycle.literals not in self.clauses:
                self.clauses[cycle.literals] = cycle
                if self._solver is None:
                    self._solver = Solver()
                self._solver.add([-literal for literal in cycle.literals])

    def _solve(self) -> bool:
        """Let the solver choose sides; return False if none are left."""
        if self._solver is None or not len(self.pairs):
            return frozenset() not in self.clauses
        self._solver.prefer(self.pairs.chosen())
        if not self._solver.solve(self.limits, progress=self.progress):
            return False
        for literal in self._solver.model():
            if abs(literal) <= len(self.pairs):
                self.pairs.phase[abs(literal)] = literal > 0
        return True

    def _core(self) -> list[CommitCycle]:
        """Return cycles that exclude every choice.

        Each clause gets a switch, and the solver reports the switches that it needs.
        """
        if frozenset() in self.clauses:
            return [self.clauses[frozenset()]]
        cycles = list(self.clauses.values())
        switches = {len(self.pairs) + 1 + i: cycle for i, cycle in enumerate(cycles)}
        while True:
            solver = Solver()
            for switch, cycle in switches.items():
                solver.add([-switch, *(-literal for literal in cycle.literals)])
            answer = solver.attempt(self.limits.whole, list(switches), CORE_SLICES)
            needed = solver.core() if answer is False else frozenset()
            solver.close()
            if answer is None:  # too hard to reduce
                return list(switches.values())
            assert answer is False
            core = {switch: cycle for switch, cycle in switches.items() if switch in needed}
            if len(core) >= 0.9 * len(switches):
                return list(core.values())
            switches = core

    def close(self) -> None:
        if self._solver is not None:
            self._solver.close()
            self._solver = None
