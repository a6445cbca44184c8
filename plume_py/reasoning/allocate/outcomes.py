"""A workload in which every instance goes one way, once for each way that it may go.

In a run an instance goes one of its ways, so the run is one of some of these; whoever is no pivot among all of them is
none in the run. Where each instance has one way only, there is nothing to tell apart.
"""

from dataclasses import replace
from itertools import product

from plume_py.reasoning.allocate.control_flow import MOST_WAYS
from plume_py.reasoning.allocate.workload import Access, Instance, Workload

# A workload that would have more instances than this is not taken apart.
MOST_INSTANCES = 100_000


def outcomes(workload: Workload) -> tuple[Workload, list[int]] | None:
    """All ways of all instances, and whose they are; None if there is nothing to be gained, or too much to do."""
    by_instance = [_ways(instance) for instance in workload.instances]
    total = sum(map(len, by_instance))
    if total == len(workload.instances) or total > MOST_INSTANCES:
        return None
    owner = [i for i, ways in enumerate(by_instance) for _ in ways]
    instances = [replace(workload.instances[i], accesses=way) for i, ways in enumerate(by_instance) for way in ways]
    return Workload(instances, [workload.session[i] for i in owner], source=workload.source), owner


def _ways(instance: Instance) -> tuple[tuple[Access, ...], ...]:
    """Those of its program; or else each conditional access happens or not."""
    if instance.ways:
        return instance.ways
    doubtful = sum(access.conditional for access in instance.accesses)
    if not doubtful or 2**doubtful > MOST_WAYS:
        return (instance.accesses,)
    choices = [(None, replace(a, conditional=False)) if a.conditional else (a,) for a in instance.accesses]
    return tuple(dict.fromkeys(tuple(a for a in way if a is not None) for way in product(*choices)))
