"""Why a transaction cannot run at a weaker level: a critical cycle, and a history in which it happens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.history.model import History
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT, PREFIX, WRITERS
from plume_py.reasoning.allocate.catalogue import Catalogue
from plume_py.reasoning.allocate.cycles import Cycle, pivot_cycles
from plume_py.reasoning.allocate.refute import exhaustive, refute
from plume_py.reasoning.allocate.search_space import Space, WorkloadCase
from plume_py.reasoning.allocate.workload import Workload

# MixIso's forms of critical cycles (theorems 6.7 and 6.16), by what the level of the pivot P2 sees.
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
