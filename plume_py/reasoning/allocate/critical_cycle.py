"""Why a transaction cannot run at a weaker level: a critical cycle, and a history in which it happens."""

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
from plume_py.reasoning.allocate.rules import Refined
from plume_py.reasoning.allocate.search_space import Space, WorkloadCase
from plume_py.reasoning.allocate.workload import Workload

# MixIso's forms of critical cycles (theorems 6.7 and 6.16), by what the level of the pivot P2 sees.
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


FORMS = (
    (PREFIX | WRITERS, "4", "a pivot at SI, with RW before and after it"),
    (PREFIX, "3", "a pivot at PC, with WW or RW before it and RW after it"),
    (WRITERS, "2", "a pivot at PSI, and RW after it to one that shares no written cell"),
    (AT_COMMIT, "1", "a pivot at RA or TCC, and RW after it"),
)

# Work (see ``Limits``) for the search of one history; the allocation itself does not wait for more.
STEPS = 1_000_000_000


@dataclass(frozen=True)
class CriticalCycle:
    """A critical cycle at ``level``, the instances on it, and a run that is not serializable, if one was found."""

    level: str
    workload: Workload  # the instances on the cycle and those that have to run before them, in session order
    levels: tuple[str, ...]  # of these instances
    cycle: Cycle  # numbers are those of ``workload``
    history: History | None
    decided: bool  # did the search for a history go through all runs?

    @property
    def form(self) -> tuple[str, str]:
        """What MixIso calls it, and what that says: σ1 to σ4 of a workload, π1 to π4 where a history shows it.

        It has no name for cycles with session order in them, nor at READ COMMITTED.
        """
        if any(edge.relation in ("SO", "session") for edge in self.cycle.edges):
            return "", "session order is part of it, which these leave out"
        for bits, number, meaning in FORMS:
            if visibility_bits(self.level) & bits == bits:
                return ("σ" if self.history is None else "π") + number, meaning
        return "", "they do not have READ COMMITTED"

    def words(self) -> list[str]:
        """The cycle, an edge per line."""
        names = [instance.name for instance in self.workload.instances]
        return [f"{names[e.source]} -{e.label()}-> {names[e.target]}" for e in self.cycle.edges]


def critical_cycle(case: WorkloadCase, pivot: int, level: str, levels: Sequence[str], limits: Limits) -> CriticalCycle:
    """The critical cycle that the case's rules have just found at ``pivot``; ``levels`` are those of its instances.

    Of several cycles, one that happens is told.
    """
    told: CriticalCycle | None = None
    for cycle in pivot_cycles(case.rules, pivot, level):
        members = case.run_with(cycle.members)
        on_cycle = _distinctly_named(case.workload.restricted(members))
        at = [level if member == pivot else levels[member] for member in members]
        history, decided = search_history(on_cycle, at, limits)
        found = CriticalCycle(level, on_cycle, tuple(at), cycle.renumbered(members), history, decided)
        if history is not None:
            return found
        told = told or found
    assert told is not None
    return told


def search_history(workload: Workload, levels: Sequence[str], limits: Limits) -> tuple[History | None, bool]:
    """A run that is not serializable, if there is one, and whether the search went through all runs."""
    try:
        return refute(workload, levels, limits.of_work(STEPS)), exhaustive(workload, levels)
    except LimitError:
        limits.check()  # else the work for this history was used up
        return None, False


def _distinctly_named(workload: Workload) -> Workload:
    """Two instances of a program with the same parameters get a number."""
    seen: dict[str, int] = {}
    instances = []
    for instance in workload.instances:
        seen[instance.name] = times = seen.get(instance.name, 0) + 1
        instances.append(replace(instance, name=f"{instance.name} #{times}") if times > 1 else instance)
    return Workload(instances, workload.session, source=workload.source)


def why_not_weaker(
    space: Space, catalogue: Catalogue, group: int, levels: Sequence[str], limits: Limits
) -> CriticalCycle | None:
    """What happens at the next cheaper level; None if there is no cheaper one, or the rules know no cycle there."""
    levels_by_cost = catalogue.levels_by_cost({})
    own = levels_by_cost.index(levels[group]) if levels[group] in levels_by_cost else len(levels_by_cost)
    for cheaper in reversed(levels_by_cost[:own]):
        lowered = [cheaper if g == group else level for g, level in enumerate(levels)]
        found = space.pivot(group, cheaper, lowered)
        if found is not None:
            case, p = found
            return critical_cycle(case, p, cheaper, [lowered[g] for g in case.group], limits)
    return None
