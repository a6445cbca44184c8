"""Why a contradiction is one: the transactions that take part in it, and in the reasons of its edges."""

from collections import deque
from collections.abc import Iterable

import numpy as np

from plume_py.base.limits import Limits
from plume_py.checking.strong.decide.answer import Core
from plume_py.checking.strong.decide.candidate import CommitCycle
from plume_py.checking.strong.decide.columns import Layout
from plume_py.checking.strong.decide.inference import (
    RW,
    SO,
    WR,
    WW,
    CommitGraph,
    Known,
    commit_graph,
    visibility_graph,
)
from plume_py.checking.strong.decide.pairs import Pairs

Row = tuple[int, ...]  # (a, b, relation, key, read)

# Of a core that is larger than this nothing can be told; then all transactions are as good.
LARGEST = 2000


class Reasons:
    """Follows the reasons of inferred rows, each in what was known before its round."""

    def __init__(self, layout: Layout, known: Known, limits: Limits) -> None:
        """At ``limits``, or when it gets too large, the core is the whole history."""
        self.layout, self.known, self.limits = layout, known, limits
        self.given_up = False
        self._round: dict[tuple[int, int, int], int] = {}
        self._row: dict[tuple[int, int, int], Row] = {}
        for number, rows in enumerate(known.rounds):
            for row in rows.tolist():
                key = (row[0], row[1], row[2])
                if key not in self._round:
                    self._round[key], self._row[key] = number, tuple(row)
        self._graphs: dict[int, tuple[CommitGraph, CommitGraph | None, list[Row]]] = {}
        self._used: set[Row] = set()
        self.transactions: set[int] = set()

    def use(self, rows: Iterable[Row], literals: Iterable[tuple[int, int]] = ()) -> None:
        """Take rows, and the reasons of those that were inferred, unless they are the sides of a choice."""
        chosen = set(literals)
        todo = deque(rows)
        while todo and not self.given_up:
            self.given_up = len(self.transactions) > LARGEST or self.limits.reached()
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
        key = (row[0], row[1], row[2])
        return row[2] == WW and row[4] < 0 and self._round.get(key) == 0 and self._row[key] == row

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
        same = self._row.get((a, b, relation)) == row
        age = self._round[a, b, relation] if same else len(self.known.rounds)
        return self._path(age, begin, end, seeing)

    def _path(self, age: int, begin: int, end: int, seeing: bool) -> list[Row]:
        """By which rows, known before round ``age``, begin commits before end, or is seen by it."""
        if age == 0:  # a direct premise (RC, RA)
            keys = ((begin, end, WR), (begin, end, SO))
            return [self._row[key] for key in keys if key in self._row][:1]
        commits, visible, rows = self._graphs_before(age)
        if seeing and visible is not None:
            path = _shortest(visible, begin, end)
            if path is not None:
                return [rows[i] for i in path if i >= 0]
        goal = int(self.layout.view[end]) if seeing else end
        path = _shortest(commits, begin, goal)
        return [rows[i] for i in path if i >= 0] if path is not None else []

    def _graphs_before(self, age: int) -> tuple[CommitGraph, CommitGraph | None, list[Row]]:
        if age not in self._graphs:
            rows = np.concatenate(self.known.rounds[:age])
            rows = rows[rows[:, 1] >= 0]
            visible = visibility_graph(self.layout, rows) if self.layout.by_session else None
            self._graphs[age] = commit_graph(self.layout, rows), visible, [tuple(row) for row in rows.tolist()]
        return self._graphs[age]

    def core(self) -> Core:
        """All that was used; of a session's past, those who do not count only had a place in it."""
        live = self.layout.reads.live
        if self.given_up:
            return Core(tuple(np.flatnonzero(live).tolist()))
        return Core(tuple(t for t in sorted(self.transactions) if live[t]))


def core_of_known(layout: Layout, known: Known, cycle: CommitCycle | None, limits: Limits) -> Core:
    """Why the known rows contradict each other."""
    reasons = Reasons(layout, known, limits)
    if known.stale is not None:
        reasons.use([tuple(known.stale.tolist())])
    if cycle is not None:
        reasons.use(cycle.rows)
    return reasons.core()


def core_of_search(layout: Layout, known: Known, pairs: Pairs, cycles: list[CommitCycle], limits: Limits) -> Core:
    """Why all choices fail."""
    reasons = Reasons(layout, known, limits)
    used = sorted({abs(literal) for cycle in cycles for literal in cycle.literals})
    sides = [pairs.pair[v] for v in used]
    for cycle in cycles:
        reasons.use(cycle.rows, [*sides, *((b, a) for a, b in sides)])
    return reasons.core()


def _shortest(graph: CommitGraph, begin: int, end: int) -> list[int] | None:
    """The rows on a shortest path begin -> … -> end of at least one edge, or None."""
    parent: dict[int, tuple[int, int]] = {}
    queue = deque([begin])
    while queue:
        v = queue.popleft()
        for e in graph.edges[graph.start[v] : graph.start[v + 1]].tolist():
            w = int(graph.target[e])
            if w in parent:
                continue
            parent[w] = (v, int(graph.row[e]))
            if w == end:
                path = []
                while True:
                    v, row = parent[w]
                    path.append(row)
                    if v == begin:
                        return path[::-1]
                    w = v
            queue.append(w)
    return None
