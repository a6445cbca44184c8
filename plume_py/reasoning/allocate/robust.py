"""Decide whether every run of a workload at given levels is serializable.

1. If the rules find no critical cycle, the workload is robust.
2. For each cycle that they find, search a history of its instances. A history proves that the workload is not robust.
3. If no cycle has a history, search all instances together if the workload is small; otherwise the answer is undecided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plume_py.base.limits import Limits
from plume_py.history.model import History
from plume_py.levels import WEAKEST
from plume_py.reasoning.allocate.critical_cycle import CriticalCycle, critical_cycle, search_history
from plume_py.reasoning.allocate.refute import exhaustive
from plume_py.reasoning.allocate.search_space import Space, WorkloadCase

# Number of cycles whose instances are searched for a history.
MOST_CYCLES = 50
UNORDERED = (
    "a critical cycle cannot be excluded, and READ COMMITTED alone would let it happen; whether an engine does depends"
    " on the order of the statements, which is not looked at"
)


@dataclass(frozen=True)
class Robustness:
    """The answer; ``ok`` is None if undecided.

    ``because`` is the argument; ``critical`` is a cycle that the rules could not exclude.
    """

    ok: bool | None
    because: str
    critical: CriticalCycle | None = None
    history: History | None = None


def robust(space: Space, levels: Sequence[str], limits: Limits | None = None) -> Robustness:
    """Decide robustness of the groups of ``space`` at ``levels``.

    Raise LimitError if the limits end the search for a history.
    """
    limits = limits or Limits()
    first: CriticalCycle | None = None
    for number, (case, pivot) in enumerate(_pivots(space, levels)):
        if number == MOST_CYCLES:
            break
        by_instance = [levels[g] for g in case.group]
        found = critical_cycle(case, pivot, by_instance[pivot], by_instance, limits)
        first = first or found
        if found.history is not None and WEAKEST in found.levels:
            return Robustness(None, UNORDERED, found, found.history)
        if found.history is not None:
            return Robustness(False, "a critical cycle happens", found, found.history)
    if first is None:
        return Robustness(True, "no instance can be the pivot of a critical cycle")
    return _whole(space, levels, first, limits)


def _pivots(space: Space, levels: Sequence[str]) -> Iterator[tuple[WorkloadCase, int]]:
    for case in space.cases:
        guarded = case.guards(levels)
        for p in case.judged:
            if case.pivot(p, levels[case.group[p]], guarded):
                yield case, p


def _whole(space: Space, levels: Sequence[str], first: CriticalCycle, limits: Limits) -> Robustness:
    """Search the whole workload, because the instances of single cycles have no history."""
    case = space.cases[0]
    by_instance = [levels[g] for g in case.group]
    if space.of_workload and exhaustive(case.workload, by_instance):
        history, decided = search_history(case.workload, by_instance, limits)
        if history is not None:
            return Robustness(False, "all instances together make it happen", first, history)
        if decided:
            return Robustness(True, "every run was searched through; the rules alone could not tell", first)
    return Robustness(
        None, "the rules cannot exclude a critical cycle, and no history of its instances was found", first
    )
