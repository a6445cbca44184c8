"""Find unsatisfiable cores: the transactions in a contradiction, and in the reasons of its inferred edges.

``engine`` calls ``cores_of_known`` if forced edges contradict each other, and ``core_of_search`` if all choices fail.
Shorter paths give smaller cores and shorter explanations.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plume_py.base.kernels import dispatch
from plume_py.base.limits import Limits
from plume_py.checking.strong.solver import saturation_kernels
from plume_py.checking.strong.solver.candidate_order import CommitCycle, WriterPairs
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import (
    RW,
    SO,
    WR,
    WW,
    CommitGraph,
    ForcedEdges,
    commit_graph,
    edge_codes,
    visibility_graph,
)
from plume_py.history.model import Bools, Int32s, Int64s

# Maximum number of edges of each kind through which cycles are searched.
STARTS = 128
# A cycle may have this many edges more than the shortest one so far.
SLACK = 2


@dataclass(frozen=True)
class Core:
    """Transactions that violate the level on their own.

    The history restricted to ``transactions`` (with their sessions and reads, without reads from others) violates the
    level. A core is small, but not minimal.
    """

    transactions: tuple[int, ...]


class Paths:
    """Shortest paths in one graph; auxiliary nodes of real time cost nothing."""

    def __init__(self, layout: SolverColumns, graph: CommitGraph) -> None:
        self.graph = graph
        dispatch.prepare(graph.nodes + len(graph.target), saturation_kernels)
        moments = layout.analysis.given.transactions
        costs_nothing = (graph.target >= moments) & (graph.target < layout.transactions)
        self._weight = np.where(costs_nothing, 0, 1).astype(np.uint8)
        self._distance = np.full(graph.nodes, -1, np.int32)
        self._parent, self._touched = np.empty(graph.nodes, np.int32), np.empty(graph.nodes, np.int32)
        self._deque = np.empty(2 * len(graph.source) + 4, np.int32)

    @cached_property
    def _place(self) -> Int32s | None:
        """By node: its position in a topological order, or None if the graph is cyclic."""
        order = self.graph.order()
        if len(order) < self.graph.nodes:
            return None
        place = np.empty(self.graph.nodes, np.int32)
        place[order] = np.arange(self.graph.nodes)
        return place

    def rows(self, begin: int, end: int) -> list[int] | None:
        """Return the rows on a shortest path begin -> … -> end, or None."""
        place = self._place
        if place is None:
            outside = np.zeros(self.graph.nodes, np.int32)
        else:
            outside = ((place < place[begin]) | (place > place[end])).astype(np.int32)
        edges = self.edges(begin, end, outside, self.graph.nodes)
        return None if edges is None else [row for row in self.graph.row[edges].tolist() if row >= 0]

    def edges(self, begin: int, end: int, component: Int32s, longest: int) -> list[int] | None:
        """Return the edges of a shortest path inside the component of ``end``, or None if longer than ``longest``."""
        graph = self.graph
        found = saturation_kernels.cheapest_path(
            begin, end, component, graph.start, graph.edges, graph.target, self._weight, longest, self._distance,
            self._parent, self._touched, self._deque,
        )  # fmt: skip
        if found < 0:
            return None
        path: list[int] = []
        while end != begin:
            path.append(int(self._parent[end]))
            end = int(graph.source[path[-1]])
        return path[::-1]


def short_cycles(layout: SolverColumns, graph: CommitGraph, *kinds: Bools) -> list[list[int]]:
    """Return the rows of short cycles, the shortest first: each is a shortest one through some row of ``kinds``."""
    component = graph.components()
    on_cycle = (component[graph.source] == component[graph.target]) & (graph.row >= 0)
    paths = Paths(layout, graph)
    longest, found = graph.nodes, []
    for kind in kinds:
        candidates = np.flatnonzero(on_cycle & kind[graph.row])
        for edge in candidates[:: 1 + len(candidates) // STARTS].tolist():
            back = paths.edges(int(graph.target[edge]), int(graph.source[edge]), component, longest)
            if back is not None:
                longest = min(longest, len(back) + SLACK)
                found.append([row for row in graph.row[[edge, *back]].tolist() if row >= 0])
    return sorted(found, key=len)


Row = tuple[int, ...]  # (a, b, relation, key, read)

# Larger cores cannot be explained; then the core is all transactions.
LARGEST = 2000
# Maximum number of cycles whose cores are computed. The smallest core comes first; further ones may be reported too.
CYCLES = 16
# Steps of work per row examined, and rows per further step.
STEPS_PER_ROW, ROWS_PER_STEP = 2_000, 4


class Derivation:
    """All rows ever inferred, with their rounds."""

    def __init__(self, layout: SolverColumns, known: ForcedEdges) -> None:
        self.layout = layout
        self.rows = np.concatenate(known.rounds)
        self.ends = np.cumsum([len(rows) for rows in known.rounds])
        self._graphs: dict[int, tuple[Paths, Paths | None, Int32s]] = {}

    @cached_property
    def _by_edge(self) -> tuple[Int64s, Int64s]:
        """The rows sorted by edge, equal ones by round, and their edge codes."""
        codes = edge_codes(self.rows)
        order = np.argsort(codes, kind="stable")
        return order, codes[order]

    def first(self, a: int, b: int, relation: int) -> tuple[int, Row] | None:
        """Return the round in which an edge was first inferred, and its row then."""
        order, codes = self._by_edge
        code = edge_codes(np.array([[a, b, relation]], np.int32))[0]
        at = int(np.searchsorted(codes, code))
        if at == len(codes) or codes[at] != code:
            return None
        number = int(order[at])
        return int(np.searchsorted(self.ends, number, "right")), tuple(self.rows[number].tolist())

    def path(self, age: int, begin: int, end: int, seeing: bool) -> list[Row]:
        """Return rows, known before round ``age``, by which begin commits before end.

        If ``seeing``, they make begin visible to end.
        """
        if age == 0:  # a direct premise (RC, RA)
            direct = [self.first(begin, end, relation) for relation in (WR, SO)]
            return [found[1] for found in direct if found is not None][:1]
        commits, visible, rows = self._graphs_before(age)
        path = visible.rows(begin, end) if seeing and visible is not None else None
        if path is None:
            path = commits.rows(begin, int(self.layout.snapshot_node[end]) if seeing else end)
        return [tuple(row) for row in rows[path or []].tolist()]

    def _graphs_before(self, age: int) -> tuple[Paths, Paths | None, Int32s]:
        if age not in self._graphs:
            rows = self.rows[: self.ends[age - 1]]
            rows = rows[rows[:, 1] >= 0]
            visible = Paths(self.layout, visibility_graph(self.layout, rows)) if self.layout.by_session else None
            self._graphs[age] = Paths(self.layout, commit_graph(self.layout, rows)), visible, rows
        return self._graphs[age]


class Reasons:
    """Collects the reasons of inferred rows, each from what was known before its round."""

    def __init__(self, derivation: Derivation, limits: Limits) -> None:
        """If it collects too many transactions, the core is the whole history. Raise LimitError at ``limits``."""
        self.derivation, self.layout, self.limits = derivation, derivation.layout, limits
        self.given_up = False
        self._used: set[Row] = set()
        self.transactions: set[int] = set()

    def use(self, rows: Iterable[Row], literals: Iterable[tuple[int, int]] = ()) -> None:
        """Add rows and the reasons of inferred ones, except rows that are sides of the choices ``literals``."""
        chosen = set(literals)
        todo = deque(rows)
        while todo and not self.given_up:
            self.given_up = len(self.transactions) > LARGEST
            self.limits.check()
            self.limits.spend(STEPS_PER_ROW + len(self.derivation.rows) // ROWS_PER_STEP)
            row = todo.popleft()
            if row in self._used:
                continue
            self._used.add(row)
            a, b, relation, _, read = row
            self.transactions |= {t for t in (a, b) if t >= 0}
            if read >= 0:
                self.transactions.add(int(self.layout.read_txn[read]))
                if self.layout.read_source[read] >= 0:
                    self.transactions.add(int(self.layout.read_source[read]))
            if relation in (WW, RW) and not self._fixed_by_list(row):
                todo.extend(self._why(row, chosen))

    def _fixed_by_list(self, row: Row) -> bool:
        """Return whether a list shows the row: only such version orders are known initially without a read."""
        return row[2] == WW and row[4] < 0 and self.derivation.first(*row[:3]) == (0, row)

    def _why(self, row: Row, chosen: set[tuple[int, int]]) -> list[Row]:
        a, b, relation, _, read = row
        t1 = int(self.layout.read_source[read]) if read >= 0 else -1
        if relation == WW and (a, b) in chosen:
            return []
        if read >= 0 and (relation == RW or a == self.layout.read_txn[read]):  # b overwrites the version that a read
            if t1 < 0 or (t1, b) in chosen:
                return []
            begin, end, seeing = t1, b, False
        elif read >= 0:  # a is visible to the reader of t1 = b
            t3 = int(self.layout.read_txn[read])
            begin, end, seeing = a, t3, True
        else:
            begin, end, seeing = a, b, False
        # An earlier round may have inferred the same edge for another reason.
        first = self.derivation.first(a, b, relation)
        age = first[0] if first is not None and first[1] == row else len(self.derivation.ends)
        return self.derivation.path(age, begin, end, seeing)

    def core(self) -> Core:
        """Return the participating transactions used. Others only have a position in a session."""
        participates = self.layout.reads.participates
        if self.given_up:
            return Core(tuple(np.flatnonzero(participates).tolist()))
        return Core(tuple(t for t in sorted(self.transactions) if participates[t]))


def cores_of_known(layout: SolverColumns, known: ForcedEdges, limits: Limits) -> tuple[Core, ...]:
    """Return cores of contradictory forced rows, the smallest first."""
    derivation = Derivation(layout, known)
    cores = []
    for rows in _contradictions(layout, known):
        reasons = Reasons(derivation, limits)
        reasons.use(tuple(row) for row in rows.tolist())
        cores.append(reasons.core())
    return tuple(sorted(cores, key=lambda core: len(core.transactions)))


def _contradictions(layout: SolverColumns, known: ForcedEdges) -> list[Int32s]:
    """Return rows that contradict each other: one impossible row, or some cycles."""
    if known.stale is not None or known.graph is None:
        return [] if known.stale is None else [known.stale[None, :]]
    # Every cycle has an inferred row. Those with a reason inside one session come first: their explanation is short.
    inferred = known.rows[:, 2] >= WW
    cycles = short_cycles(layout, known.graph, inferred & _in_one_session(layout, known.rows), inferred)
    return [known.rows[rows] for rows in cycles[:CYCLES]]


def _in_one_session(layout: SolverColumns, rows: Int32s) -> Bools:
    """Return, by row, whether it follows from a read of the initial state or from an order inside one session."""
    easy = np.zeros(len(rows), np.bool_)
    at = np.flatnonzero(rows[:, 4] >= 0)
    a, b, relation, _, read = rows[at].T
    t1, t3 = layout.read_source[read], layout.read_txn[read]
    overwrites = (relation == RW) | (a == t3)  # see Reasons._why
    begin, end = np.where(overwrites, t1, a), np.where(overwrites, b, t3)
    easy[at] = (begin < 0) | layout.analysis.in_one_session(begin, end)
    return easy


def core_of_search(
    layout: SolverColumns, known: ForcedEdges, pairs: WriterPairs, cycles: list[CommitCycle], limits: Limits
) -> Core:
    """Return the core of a search in which all choices fail."""
    reasons = Reasons(Derivation(layout, known), limits)
    used = sorted({abs(literal) for cycle in cycles for literal in cycle.literals})
    sides = [pairs.pair[v] for v in used]
    for cycle in cycles:
        reasons.use(cycle.rows, [*sides, *((b, a) for a, b in sides)])
    return reasons.core()
