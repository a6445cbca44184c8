"""A critical cycle as people read it: P1 -> P2 -RW-> P3 and a way back that avoids P2."""

from collections import deque
from dataclasses import dataclass, replace

from plume_py.history.model import Int32s
from plume_py.levels import visibility_bits
from plume_py.levels.table import WRITERS
from plume_py.reasoning.allocate.pivot_kernels import RW, SO, WR, WW
from plume_py.reasoning.allocate.read_write_sets import Sets
from plume_py.reasoning.allocate.rules import Refined

RELATIONS = {RW: "RW", WW: "WW", WR: "WR", SO: "SO"}


@dataclass(frozen=True)
class Edge:
    """A possible dependency between two instances."""

    source: int
    target: int
    relation: str  # SO, WR, WW, RW, or session: against session order
    cell: str = ""

    def label(self) -> str:
        """Its relation and cell."""
        return f"{self.relation}({self.cell})" if self.cell else self.relation


@dataclass(frozen=True)
class Cycle:
    """P1 -> P2 -> P3 first, then the way back from P3 to P1."""

    edges: tuple[Edge, ...]

    @property
    def pivot(self) -> int:
        """P2: the instance whose level lets the cycle happen."""
        return self.edges[0].target

    @property
    def members(self) -> list[int]:
        """Each instance once, from P1 on."""
        return [edge.source for edge in self.edges]

    def renumbered(self, members: list[int]) -> "Cycle":
        """With places in ``members`` instead of numbers."""
        place = {member: at for at, member in enumerate(members)}
        return Cycle(tuple(replace(e, source=place[e.source], target=place[e.target]) for e in self.edges))


def pivot_cycles(rules: Refined, pivot: int, level: str) -> list[Cycle]:
    """The cycle that ``rules.cycle`` speaks of; before it, one of two edges if P3 can be P1 as well."""
    sets = rules.sets
    p1, relation, x, p3, y = rules.cycle.tolist()
    second = Edge(pivot, p3, "RW", sets.names[y])
    first = Edge(p1, pivot, RELATIONS[relation], sets.names[x] if x >= 0 else "")
    whole = Cycle((first, second, *way_back(rules, p3, p1, pivot)))
    short = _back_at_once(sets, p3, pivot, level)
    return [whole] if short is None else [Cycle((short, second)), whole]


def _back_at_once(sets: Sets, p3: int, pivot: int, level: str) -> Edge | None:
    """An edge from P3 to the pivot that the level does not rule out; P3 is in another session and not in conflict
    where that matters."""
    written = sets.may.of(pivot)
    ways = [("RW", written & sets.reads.of(p3))]
    if not visibility_bits(level) & WRITERS:
        ways.append(("WW", written & sets.may.of(p3)))
    for relation, cells in ways:
        if cells:
            return Edge(p3, pivot, relation, sets.names[min(cells)])
    return None


def way_back(rules: Refined, start: int, end: int, without: int) -> list[Edge]:
    """A shortest path from ``start`` to ``end`` that avoids one instance, by breadth-first search over cells."""
    if start == end:
        return []
    search = _Search(rules)
    came: dict[int, Edge] = {start: Edge(start, start, "SO")}
    queue = deque([start])
    while queue:
        for edge in search.edges(queue.popleft()):
            if edge.target == without or edge.target in came:
                continue
            came[edge.target] = edge
            if edge.target == end:
                return _traced(came, start, end)
            queue.append(edge.target)
    raise AssertionError("the two ends of a critical cycle are not connected")


def _traced(came: dict[int, Edge], start: int, end: int) -> list[Edge]:
    edges = []
    while end != start:
        edges.append(came[end])
        end = came[end].source
    return edges[::-1]


class _Search:
    """The dependencies out of an instance, through cells that were not looked at yet."""

    def __init__(self, rules: Refined) -> None:
        self.sets, self.graph = rules.sets, rules.graph
        self._written, self._read, self._sessions = set[int](), set[int](), set[int]()

    def edges(self, a: int) -> list[Edge]:
        """Those that may lead somewhere new."""
        found: list[Edge] = []
        for x in sorted(self.sets.may.of(a) - self._written):
            found += self._to(a, "WR", x, self.graph.kr_start, self.graph.kr)
            found += self._to(a, "WW", x, self.graph.kw_start, self.graph.kw)
            self._written.add(x)
        for x in sorted(self.sets.reads.of(a) - self._written - self._read):
            found += self._to(a, "RW", x, self.graph.kw_start, self.graph.kw)
            self._read.add(x)
        return found + self._in_session(a)

    def _to(self, a: int, relation: str, x: int, start: Int32s, member: Int32s) -> list[Edge]:
        name = self.sets.names[x]
        return [Edge(a, b, relation, name) for b in member[start[x] : start[x + 1]].tolist() if b != a]

    def _in_session(self, a: int) -> list[Edge]:
        """The rest of the session. The rules do not ask which way session order runs; a cycle that needs it backwards
        is none that can happen, only one that they cannot exclude."""
        s = int(self.sets.session[a])
        if s in self._sessions:
            return []
        self._sessions.add(s)
        place, same = self.sets.place, (self.sets.session == s).nonzero()[0].tolist()
        return [Edge(a, b, "SO" if place[a] < place[b] else "session") for b in same if b != a]
