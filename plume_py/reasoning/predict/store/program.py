"""Applications that can be run again: a plan of transactions, fixed by a seed, and runs of it on the store."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.history.model import History
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.store.application import Asserting, Plan, PlannedTransaction, Program
from plume_py.reasoning.predict.store.store import Latest, Policy, Store

PROGRAMS = ("smallbank", "voter", "tpcc", "wikipedia")


def program(name: str) -> Program:
    """One of PROGRAMS, or one's own, as ``file.py:Class`` or ``module:Class``."""
    if ":" in name:
        from plume_py.reasoning.predict.store.own_program import own_program

        return own_program(name)
    if name not in PROGRAMS:
        raise IsocheckError(f"not a program: {name!r:.60}; use {', '.join(PROGRAMS)}, or your own as file.py:Class")
    found: Program = import_module(f"plume_py.reasoning.predict.store.programs.{name}").PROGRAM
    return found


@dataclass(frozen=True)
class SeededProgram:
    """A program with its seed and size: everything that a run needs."""

    program: Program
    seed: int
    sessions: int = 3
    transactions: int = 4

    def plan(self) -> Plan:
        """The transactions of each session."""
        return self.program.plan(self.seed, self.sessions, self.transactions)

    def store(self, level: str, policy: Policy) -> Store:
        """A store in the program's initial state."""
        return Store(level, policy, self.program.initial)


def assertions(workload: SeededProgram, committed: Sequence[str], final: Callable[[str], Any]) -> list[str]:
    """What fails of the program's own assertions, after a run in which these transactions committed."""
    if not isinstance(workload.program, Asserting):
        return []
    steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
    try:
        workload.program.check(final, [steps[name] for name in committed])
    except AssertionError as failure:
        return [str(failure) or "an assertion without words"]
    return []


def step_id(session: int, index: int, step: PlannedTransaction) -> str:
    """The id of a transaction in histories: where it stands in the plan, and what it is."""
    return f"s{session + 1}.{index + 1} {step.name}"


def run(
    workload: SeededProgram, level: str = STRONGEST, policy: Policy | None = None, seed: int | None = None
) -> Store:
    """Run the whole plan, sessions interleaved at random (by ``seed``, else that of the workload)."""
    plan = workload.plan()
    store = workload.store(level, policy or Latest())
    order = [s for s, steps in enumerate(plan) for _ in steps]
    random.Random(f"order {workload.seed if seed is None else seed}").shuffle(order)
    done = [0] * len(plan)
    for s in order:
        step = plan[s][done[s]]
        store.run(s + 1, step.body, step_id(s, done[s], step))
        done[s] += 1
    return store


def failures(workload: SeededProgram, store: Store) -> list[str]:
    """Assertions that failed in a run: of its transactions, and of the program about the end."""
    return [*store.failures, *assertions(workload, [record.id for record in store.records], store.final)]


def observed_run(workload: SeededProgram) -> History:
    """A serial run: every read sees the newest version. No assertion may fail in it."""
    store = run(workload)
    failed = failures(workload, store)
    if failed:
        raise IsocheckError(f"{workload.program.name}: an assertion fails in a serial run already: {failed[0]}")
    return store.history()
