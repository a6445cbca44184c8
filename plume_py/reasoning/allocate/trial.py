"""Run a workload on a simulated protocol under several allocations, and check each run.

The command ``simulate`` calls it. A run is checked for the levels that its transactions declare; with a safe allocation
also for serializability.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plume_py.base.limits import Limits
from plume_py.checking.check import check
from plume_py.checking.result import Result
from plume_py.levels import STRONGEST, levels_that_see
from plume_py.levels.table import PREFIX, WRITERS
from plume_py.reasoning.allocate.catalogue import Catalogue, allocate
from plume_py.reasoning.allocate.protocols import PROTOCOLS
from plume_py.reasoning.allocate.search_space import of_instances
from plume_py.reasoning.allocate.simulate import DEFAULT_COST_MODEL, CostModel, SimulatedRun, Simulation
from plume_py.reasoning.allocate.workload import Workload

ALLOCATIONS = ("weakest", "si-ser", "ser", "random")


@dataclass(frozen=True)
class Trial:
    """One run and the checker's verdicts on it."""

    outcome: SimulatedRun
    levels: list[str]
    result: Result


def in_sessions(workload: Workload, sessions: int, seed: int) -> Workload:
    """Return the instances in random order, dealt out to ``sessions`` sessions."""
    order = list(range(len(workload.instances)))
    random.Random(seed).shuffle(order)
    dealt = [i % sessions for i in range(len(order))]
    return Workload([workload.instances[i] for i in order], dealt, workload.programs, workload.source)


def levels_for(workload: Workload, protocol: str, allocation: str, seed: int = 0) -> list[str]:
    """Return the level of each instance under an allocation.

    ``ser``: all at SER. ``si-ser``: the weakest safe level of SI and SER. ``weakest``: the weakest safe level of the
    protocol. ``random``: any level of the protocol.
    """
    own = PROTOCOLS[protocol].levels
    if allocation == "ser":
        return [STRONGEST] * len(workload.instances)
    if allocation == "random":
        rng = random.Random(seed)
        return [rng.choice(own) for _ in workload.instances]
    engine_names = {
        level: level for level in own if allocation == "weakest" or level in levels_that_see(PREFIX | WRITERS)
    }
    return allocate(of_instances(workload), Catalogue(protocol, engine_names, ""))


def trials(
    workload: Workload,
    protocol: str,
    allocation: str,
    runs: int,
    *,
    seed: int = 0,
    bug: str = "",
    costs: CostModel = DEFAULT_COST_MODEL,
    limits: Limits | None = None,
) -> Iterator[Trial]:
    """Yield ``runs`` runs with seeds from ``seed`` on. Raise LimitError if the limits are reached."""
    limits = limits or Limits()
    wanted: Sequence[str] = ["declared"] if allocation == "random" else ["declared", STRONGEST]
    for run in range(runs):
        limits.check()
        levels = levels_for(workload, protocol, allocation, seed + run)
        outcome = Simulation(protocol, levels, workload, seed + run, bug, costs).run()
        name = f"{protocol}, seed {seed + run}"
        yield Trial(outcome, levels, check(outcome.history, wanted, name=name, limits=limits))


@dataclass(frozen=True)
class TrialSummary:
    """Medians over the runs. ``broken`` counts violating runs by level, ``undecided`` runs without a verdict."""

    runs: int
    throughput: float
    latency: float
    aborted: float
    broken: dict[str, int]
    undecided: int


def summarize(tried: Sequence[Trial]) -> TrialSummary:
    """Return medians and counts over these runs."""
    broken: dict[str, int] = {}
    for trial in tried:
        for level, verdict in trial.result.levels.items():
            broken[level] = broken.get(level, 0) + (verdict.ok is False)
    return TrialSummary(
        len(tried),
        median(trial.outcome.throughput for trial in tried),
        median(trial.outcome.latency for trial in tried),
        median(trial.outcome.aborted for trial in tried),
        broken,
        sum(trial.result.ok is None for trial in tried),
    )
