"""Random exploration: run a program repeatedly, with a random legal version for every read, and check each run."""

import time
from collections import Counter
from dataclasses import dataclass, field

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.check import check
from plume_py.checking.result import NOT_EXPLAINED, Result
from plume_py.history.model import History
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.store.application import Program
from plume_py.reasoning.predict.store.program import SeededProgram, failures, run
from plume_py.reasoning.predict.store.store import RandomLegal, ReadRequest


@dataclass
class Exploration:
    """The runs' statistics, and the first violation."""

    level: str
    target: str
    runs: int = 0
    broken: int = 0  # runs that violated the target
    undecided: int = 0
    failed: int = 0  # runs in which an assertion of the program failed
    failures: Counter[str] = field(default_factory=Counter)  # assertion -> runs in which it failed
    anomalies: Counter[str] = field(default_factory=Counter)  # name -> runs whose first counterexample it is
    first: Result | None = None
    first_history: History | None = None
    seconds: float = 0.0
    reason: str | None = None

    @property
    def per_second(self) -> float:
        """Violating runs found per second."""
        return self.broken / self.seconds if self.seconds else 0.0


def explore(
    program: Program,
    level: str,
    *,
    runs: int = 100,
    seed: int = 0,
    sessions: int = 3,
    transactions: int = 4,
    target: str = STRONGEST,
    same_plan: bool = False,
    limits: Limits | None = None,
) -> Exploration:
    """Run the program ``runs`` times, with plans of the seeds from ``seed`` on, or all with the plan of ``seed``."""
    found = Exploration(level, target)
    start = time.perf_counter()
    limits = limits or Limits()
    try:
        for number in range(seed, seed + runs):
            limits.check()
            workload = SeededProgram(program, seed if same_plan else number, sessions, transactions)
            store = run(workload, level, _Limited(number, limits), number)
            _add_result(found, store.history(), number, limits)
            failed = failures(workload, store)
            found.failed += bool(failed)
            found.failures.update(set(failed))
            found.runs += 1
    except LimitError as error:
        found.reason = str(error)
    found.seconds = time.perf_counter() - start
    return found


class _Limited(RandomLegal):
    """Random choice under limits. One run can take long: the stronger levels ask the checker about each read."""

    def __init__(self, seed: int, limits: Limits) -> None:
        super().__init__(seed)
        self._limits = limits

    def choose(self, request: ReadRequest) -> int:
        self._limits.check()
        return super().choose(request)


def _add_result(exploration: Exploration, history: History, number: int, limits: Limits) -> None:
    result = check(history, exploration.target, name=f"run {number}", limits=limits)
    if result.ok is None:
        exploration.undecided += 1
    if result.ok is False:
        exploration.broken += 1
        exploration.anomalies[result.violations[0].name if result.violations else NOT_EXPLAINED] += 1
        if exploration.first is None:
            exploration.first, exploration.first_history = result, history
