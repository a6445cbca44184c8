"""Why a contradiction is one: the transactions that take part in it, and in the reasons of its edges."""

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

# Edges of each kind through which a shortest cycle is looked for.
STARTS = 128
# By how many edges a cycle may be longer than the shortest so far.
SLACK = 2


@dataclass(frozen=True)
class Core:
    """Why there is no commit order: transactions that contradict the level by themselves.

    The history cut down to ``transactions`` (their sessions and reads kept; a read from a transaction that is not among
    them left out) breaks the level, too. It is small, but not the smallest.
    """

    transactions: tuple[int, ...]


class Paths:
    """Shortest paths in one graph; moments of real time cost nothing."""

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
        """By node: where it stands in a topological order, if there is one. No path leads from later to earlier."""
        order = self.graph.order()
        if len(order) < self.graph.nodes:
            return None
        place = np.empty(self.graph.nodes, np.int32)
        place[order] = np.arange(self.graph.nodes)
        return place

    def rows(self, begin: int, end: int) -> list[int] | None:
        """The rows on a shortest path begin -> … -> end, or None if there is none."""
        place = self._place
        if place is None:
            outside = np.zeros(self.graph.nodes, np.int32)
        else:
            outside = ((place < place[begin]) | (place > place[end])).astype(np.int32)
        edges = self.edges(begin, end, outside, self.graph.nodes)
        return None if edges is None else [row for row in self.graph.row[edges].tolist() if row >= 0]

    def edges(self, begin: int, end: int, component: Int32s, longest: int) -> list[int] | None:
        """The edges of a shortest path inside the component of its end; None if there is none up to ``longest``."""
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
    """The rows of short cycles, the shortest first: each a shortest one through some row of one of these ``kinds``."""
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

# Of a core that is larger than this nothing can be told; then all transactions are as good.
LARGEST = 2000
# Cycles whose cores are made: the smallest is taken, and others may be told besides.
CYCLES = 16
# Steps of work that the reasons of a row count for, and how many rows are one more step.
STEPS_PER_ROW, ROWS_PER_STEP = 2_000, 4


class Derivation:
    """All rows that were ever inferred, and what was known before each round."""

    def __init__(self, layout: SolverColumns, known: ForcedEdges) -> None:
        self.layout = layout
        self.rows = np.concatenate(known.rounds)
        self.ends = np.cumsum([len(rows) for rows in known.rounds])
        self._graphs: dict[int, tuple[Paths, Paths | None, Int32s]] = {}

    @cached_property
    def _by_edge(self) -> tuple[Int64s, Int64s]:
        """The rows sorted by their edges, of equal ones the earliest first, and these edges."""
        codes = edge_codes(self.rows)
        order = np.argsort(codes, kind="stable")
        return order, codes[order]

    def first(self, a: int, b: int, relation: int) -> tuple[int, Row] | None:
        """The round in which an edge was first known, and its row then."""
        order, codes = self._by_edge
        code = edge_codes(np.array([[a, b, relation]], np.int32))[0]
        at = int(np.searchsorted(codes, code))
        if at == len(codes) or codes[at] != code:
            return None
        number = int(order[at])
        return int(np.searchsorted(self.ends, number, "right")), tuple(self.rows[number].tolist())

    def path(self, age: int, begin: int, end: int, seeing: bool) -> list[Row]:
        """By which rows, known before round ``age``, begin commits before end, or is seen by it."""
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
    """Follows the reasons of inferred rows, each in what was known before its round."""

    def __init__(self, derivation: Derivation, limits: Limits) -> None:
        """When it gets too large, the core is the whole history; at ``limits`` it ends with a LimitError."""
        self.derivation, self.layout, self.limits = derivation, derivation.layout, limits
        self.given_up = False
        self._used: set[Row] = set()
        self.transactions: set[int] = set()

    def use(self, rows: Iterable[Row], literals: Iterable[tuple[int, int]] = ()) -> None:
        """Take rows, and the reasons of those that were inferred, unless they are the sides of a choice."""
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
        """Of all version orders, only those that lists fix are known from the start without a read."""
        return row[2] == WW and row[4] < 0 and self.derivation.first(*row[:3]) == (0, row)

    def _why(self, row: Row, chosen: set[tuple[int, int]]) -> list[Row]:
        a, b, relation, _, read = row
        t1 = int(self.layout.read_source[read]) if read >= 0 else -1
        if relation == WW and (a, b) in chosen:
            return []
        if read >= 0 and (relation == RW or a == self.layout.read_txn[read]):  # b overwrites what a read
            if t1 < 0 or (t1, b) in chosen:
                return []
            begin, end, seeing = t1, b, False
        elif read >= 0:  # the reader of t1 = b sees a
            t3 = int(self.layout.read_txn[read])
            begin, end, seeing = a, t3, True
        else:
            begin, end, seeing = a, b, False
        # The same edge may have been inferred for another reason, earlier.
        first = self.derivation.first(a, b, relation)
        age = first[0] if first is not None and first[1] == row else len(self.derivation.ends)
        return self.derivation.path(age, begin, end, seeing)

    def core(self) -> Core:
        """All that was used; of a session's past, those who do not count only had a place in it."""
        participates = self.layout.reads.participates
        if self.given_up:
            return Core(tuple(np.flatnonzero(participates).tolist()))
        return Core(tuple(t for t in sorted(self.transactions) if participates[t]))


def cores_of_known(layout: SolverColumns, known: ForcedEdges, limits: Limits) -> tuple[Core, ...]:
    """Why the known rows contradict each other; the smallest first."""
    derivation = Derivation(layout, known)
    cores = []
    for rows in _contradictions(layout, known):
        reasons = Reasons(derivation, limits)
        reasons.use(tuple(row) for row in rows.tolist())
        cores.append(reasons.core())
    return tuple(sorted(cores, key=lambda core: len(core.transactions)))


def _contradictions(layout: SolverColumns, known: ForcedEdges) -> list[Int32s]:
    """Rows that cannot all hold: one that cannot by itself, or some cycles."""
    if known.stale is not None or known.graph is None:
        return [] if known.stale is None else [known.stale[None, :]]
    # Every cycle has an inferred row. Those whose reason lies in one session come first: they are soon told.
    inferred = known.rows[:, 2] >= WW
    cycles = short_cycles(layout, known.graph, inferred & _in_one_session(layout, known.rows), inferred)
    return [known.rows[rows] for rows in cycles[:CYCLES]]


def _in_one_session(layout: SolverColumns, rows: Int32s) -> Bools:
    """By row: is it known by a read of the initial state, or by who comes before whom in one session?"""
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
    """Why all choices fail."""
    reasons = Reasons(Derivation(layout, known), limits)
    used = sorted({abs(literal) for cycle in cycles for literal in cycle.literals})
    sides = [pairs.pair[v] for v in used]
    for cycle in cycles:
        reasons.use(cycle.rows, [*sides, *((b, a) for a, b in sides)])
    return reasons.core()
