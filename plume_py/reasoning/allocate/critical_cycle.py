"""Explain why a group cannot run at a weaker level: a critical cycle, and a history in which it happens.

``why_not_weaker`` explains a level of an allocation; ``robust`` calls ``critical_cycle`` directly. Steps: take the
pivot P2 with its edges from the rules' kernel, find a shortest path back from P3 to P1, and search a history of the
instances on the cycle (module refute).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.history.model import History, Int32s
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT, PREFIX, WRITERS
from plume_py.reasoning.allocate.catalogue import Catalogue
from plume_py.reasoning.allocate.pivot_kernels import RW, SO, WR, WW
from plume_py.reasoning.allocate.read_write_sets import Sets
from plume_py.reasoning.allocate.refute import exhaustive, refute
from plume_py.reasoning.allocate.rules import RefinedRules
from plume_py.reasoning.allocate.search_space import Space, WorkloadCase
from plume_py.reasoning.allocate.workload import Workload

# By the kernel's code.
RELATIONS = {RW: "RW", WW: "WW", WR: "WR", SO: "SO"}

# Work (see ``Limits``) for the search of one history, so that explanations do not delay the allocation.
STEPS = 1_000_000_000

# MixIso's forms of critical cycles (theorems 6.7 and 6.16), by the visibility bits of the pivot's level.
FORMS = (
    (PREFIX | WRITERS, "4", "a pivot at SI, with RW before and after it"),
    (PREFIX, "3", "a pivot at PC, with WW or RW before it and RW after it"),
    (WRITERS, "2", "a pivot at PSI, and RW after it to one that shares no written cell"),
    (AT_COMMIT, "1", "a pivot at RA or TCC, and RW after it"),
)


@dataclass(frozen=True)
class Edge:
    """A possible dependency between two instances."""

    source: int
    target: int
    relation: str  # SO, WR, WW, RW, or session (against session order)
    cell: str = ""

    def label(self) -> str:
        """Return the relation and its cell."""
        return f"{self.relation}({self.cell})" if self.cell else self.relation


@dataclass(frozen=True)
class Cycle:
    """A cycle of instances: P1 -> P2 -> P3, then the path back from P3 to P1."""

    edges: tuple[Edge, ...]

    @property
    def pivot(self) -> int:
        """The instance P2, whose level admits the cycle."""
        return self.edges[0].target

    @property
    def members(self) -> list[int]:
        """Each instance once, starting with P1."""
        return [edge.source for edge in self.edges]

    def renumbered(self, members: list[int]) -> "Cycle":
        """Return the cycle with indices into ``members`` instead of instance numbers."""
        place = {member: at for at, member in enumerate(members)}
        return Cycle(tuple(replace(e, source=place[e.source], target=place[e.target]) for e in self.edges))


@dataclass(frozen=True)
class CriticalCycle:
    """A critical cycle at ``level``, its instances, and a non-serializable run if one was found."""

    level: str
    workload: Workload  # the instances on the cycle and their session predecessors, in session order
    levels: tuple[str, ...]  # of these instances
    cycle: Cycle  # numbers are indices into ``workload``
    history: History | None
    decided: bool  # whether the search for a history covered all runs

    @property
    def form(self) -> tuple[str, str]:
        """MixIso's name and meaning: σ1 to σ4 of a workload, π1 to π4 if a history shows the cycle.

        MixIso has no name for cycles that contain session order, nor for cycles at READ COMMITTED.
        """
        if any(edge.relation in ("SO", "session") for edge in self.cycle.edges):
            return "", "session order is part of it, which these leave out"
        for bits, number, meaning in FORMS:
            if visibility_bits(self.level) & bits == bits:
                return ("σ" if self.history is None else "π") + number, meaning
        return "", "they do not have READ COMMITTED"

    def words(self) -> list[str]:
        """Return the cycle as text, an edge per line."""
        names = [instance.name for instance in self.workload.instances]
        return [f"{names[e.source]} -{e.label()}-> {names[e.target]}" for e in self.cycle.edges]


def why_not_weaker(
    space: Space, catalogue: Catalogue, group: int, levels: Sequence[str], limits: Limits
) -> CriticalCycle | None:
    """Return the critical cycle of the group at the next cheaper level.

    Levels without a cycle according to the rules are skipped. Returns None if no cheaper level has one.
    """
    offered = catalogue.levels_by_cost({})
    own = offered.index(levels[group]) if levels[group] in offered else len(offered)
    for cheaper in reversed(offered[:own]):
        lowered = [cheaper if g == group else level for g, level in enumerate(levels)]
        found = space.pivot(group, cheaper, lowered)
        if found is not None:
            case, p = found
            return critical_cycle(case, p, cheaper, [lowered[g] for g in case.group], limits)
    return None


def critical_cycle(case: WorkloadCase, pivot: int, level: str, levels: Sequence[str], limits: Limits) -> CriticalCycle:
    """Return the critical cycle that the case's rules have just found at ``pivot``.

    ``levels`` are per instance of the case. If there are several cycles, one with a history is preferred.
    """
    first: CriticalCycle | None = None
    for cycle in pivot_cycles(case.rules, pivot, level):
        members = case.run_with(cycle.members)
        on_cycle = _distinctly_named(case.workload.restricted(members))
        at = [level if member == pivot else levels[member] for member in members]
        history, decided = search_history(on_cycle, at, limits)
        found = CriticalCycle(level, on_cycle, tuple(at), cycle.renumbered(members), history, decided)
        if history is not None:
            return found
        first = first or found
    assert first is not None
    return first


def search_history(workload: Workload, levels: Sequence[str], limits: Limits) -> tuple[History | None, bool]:
    """Return a non-serializable run, if any, and whether the search covered all runs."""
    try:
        return refute(workload, levels, limits.of_work(STEPS)), exhaustive(workload, levels)
    except LimitError:
        limits.check()  # raises unless only the work for this history was used up
        return None, False


def _distinctly_named(workload: Workload) -> Workload:
    """Return the workload with numbers appended to repeated names of instances."""
    seen: dict[str, int] = {}
    instances = []
    for instance in workload.instances:
        seen[instance.name] = times = seen.get(instance.name, 0) + 1
        instances.append(replace(instance, name=f"{instance.name} #{times}") if times > 1 else instance)
    return Workload(instances, workload.session, source=workload.source)


def pivot_cycles(rules: RefinedRules, pivot: int, level: str) -> list[Cycle]:
    """Return the cycles through the pivot that the rules' last search found.

    If P3 can also be P1, the cycle of two edges comes first.
    """
    sets = rules.sets
    p1, relation, x, p3, y = rules.cycle.tolist()
    second = Edge(pivot, p3, "RW", sets.names[y])
    first = Edge(p1, pivot, RELATIONS[relation], sets.names[x] if x >= 0 else "")
    whole = Cycle((first, second, *path_back(rules, p3, p1, pivot)))
    short = _back_at_once(sets, p3, pivot, level)
    return [whole] if short is None else [Cycle((short, second)), whole]


def _back_at_once(sets: Sets, p3: int, pivot: int, level: str) -> Edge | None:
    """Return an edge from P3 to the pivot that the level does not rule out, or None.

    The kernel has checked that P3 is in another session and does not conflict where the level detects conflicts.
    """
    written = sets.may.of(pivot)
    candidates = [("RW", written & sets.reads.of(p3))]
    if not visibility_bits(level) & WRITERS:
        candidates.append(("WW", written & sets.may.of(p3)))
    for relation, cells in candidates:
        if cells:
            return Edge(p3, pivot, relation, sets.names[min(cells)])
    return None


def path_back(rules: RefinedRules, start: int, end: int, without: int) -> list[Edge]:
    """Return a shortest path from ``start`` to ``end`` that avoids one instance, by breadth-first search over cells."""
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
    """Enumerates the dependencies out of an instance, each cell and session once per search."""

    def __init__(self, rules: RefinedRules) -> None:
        self.sets, self.graph = rules.sets, rules.graph
        self._written, self._read, self._sessions = set[int](), set[int](), set[int]()

    def edges(self, a: int) -> list[Edge]:
        """Return the edges out of instance ``a`` that may lead to a new instance."""
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
        """Return edges to all other instances of the session, once per search.

        The rules ignore the direction of session order. A cycle that uses it backwards cannot happen; the rules only
        cannot exclude it.
        """
        s = int(self.sets.session[a])
        if s in self._sessions:
            return []
        self._sessions.add(s)
        place, same = self.sets.place, (self.sets.session == s).nonzero()[0].tolist()
        return [Edge(a, b, "SO" if place[a] < place[b] else "session") for b in same if b != a]
