"""Programs with a seed: load them, run their plan on the store, and evaluate their assertions.

A program is built in (``store.programs``) or user code, as ``file.py:Class`` or ``module:Class``. Errors in user code
are reported in one line.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.user_modules import import_file
from plume_py.history.model import History
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.store.application import Asserting, Plan, PlannedTransaction, Program
from plume_py.reasoning.predict.store.store import Latest, Policy, Rollback, Store, Transaction

PROGRAMS = ("smallbank", "voter", "tpcc", "wikipedia")

_NEEDS = "it needs initial(key) and plan(seed, sessions, transactions)"


def program(name: str) -> Program:
    """Return a program of PROGRAMS, or user code as ``file.py:Class`` or ``module:Class``."""
    if ":" in name:
        return user_program(name)
    if name not in PROGRAMS:
        raise IsocheckError(f"not a program: {name!r:.60}; use {', '.join(PROGRAMS)}, or your own as file.py:Class")
    found: Program = import_module(f"plume_py.reasoning.predict.store.programs.{name}").PROGRAM
    return found


@dataclass(frozen=True)
class SeededProgram:
    """A program with its seed and size, which determine its plan."""

    program: Program
    seed: int
    sessions: int = 3
    transactions: int = 4

    def plan(self) -> Plan:
        """Return the transactions of each session."""
        return self.program.plan(self.seed, self.sessions, self.transactions)

    def store(self, level: str, policy: Policy) -> Store:
        """Return a store in the program's initial state."""
        return Store(level, policy, self.program.initial)


def assertions(workload: SeededProgram, committed: Sequence[str], final: Callable[[str], Any]) -> list[str]:
    """Return the program's failed assertions about the end of a run in which these transactions committed."""
    if not isinstance(workload.program, Asserting):
        return []
    steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
    try:
        workload.program.check(final, [steps[name] for name in committed])
    except AssertionError as failure:
        return [str(failure) or "an assertion without words"]
    return []


def step_id(session: int, index: int, step: PlannedTransaction) -> str:
    """Return the id of a transaction in histories: its position in the plan, and its name."""
    return f"s{session + 1}.{index + 1} {step.name}"


def run(
    workload: SeededProgram, level: str = STRONGEST, policy: Policy | None = None, seed: int | None = None
) -> Store:
    """Run the whole plan on a store. Sessions interleave at random, by ``seed`` or else by the workload's seed."""
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
    """Return the assertions that failed in a run, in its transactions and about its end."""
    return [*store.failures, *assertions(workload, [record.id for record in store.records], store.final)]


def observed_run(workload: SeededProgram) -> History:
    """Return a serial run: every read returns the newest version. Raise an error if an assertion fails in it."""
    store = run(workload)
    failed = failures(workload, store)
    if failed:
        raise IsocheckError(f"{workload.program.name}: an assertion fails in a serial run already: {failed[0]}")
    return store.history()


def user_program(where: str) -> Program:
    """Return the program of user code, constructed without arguments."""
    place, _, name = where.rpartition(":")
    by_file = partial(import_file, kind="program")
    module = _guarded(place, by_file if place.endswith(".py") else import_module, place)
    made = getattr(module, name, None)
    if not callable(made):
        raise IsocheckError(f"{place} has no class {name!r:.60}")
    found = _guarded(where, made)
    if not (callable(getattr(found, "initial", None)) and callable(getattr(found, "plan", None))):
        raise IsocheckError(f"{where} is not a program: {_NEEDS}")
    return _AssertingProgram(where, found) if isinstance(found, Asserting) else _UserProgram(where, found)


def _guarded(where: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call user code. Report its unexpected exceptions as errors of that code."""
    try:
        return call(*arguments)
    except (Rollback, AssertionError, IsocheckError):
        raise
    except Exception as error:
        raise IsocheckError(f"{where}: {type(error).__name__}: {error}") from None


class _UserProgram:
    """A user's program, whose plan and values are verified."""

    def __init__(self, where: str, program: Any) -> None:
        self._where, self._program = where, program
        self.name = where

    def initial(self, key: str) -> Any:
        return _guarded(self._where, self._program.initial, key)

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        """Return the plan. It is computed twice, to verify that it is deterministic."""
        first, again = (_guarded(self._where, self._program.plan, seed, sessions, transactions) for _ in range(2))
        for made in (first, again):
            if not all(isinstance(step, PlannedTransaction) for steps in _lists(self._where, made) for step in steps):
                raise IsocheckError(f"{self._where}: a plan is a list of PlannedTransaction for each session")
        if [[step.name for step in steps] for steps in first] != [[step.name for step in steps] for steps in again]:
            raise IsocheckError(f"{self._where}: the plan of a seed is another one each time; draw from Random(seed)")
        return [[self._guarded_step(step) for step in steps] for steps in first]

    def _guarded_step(self, step: PlannedTransaction) -> PlannedTransaction:
        def body(txn: Transaction) -> None:
            _guarded(f"{self._where}: {step.name}", step.body, txn)

        return PlannedTransaction(step.name, body, step.parameters)


class _AssertingProgram(_UserProgram):
    """A user's program with assertions about the end of a run."""

    def check(self, final: Callable[[str], Any], committed: Any) -> None:
        _guarded(f"{self._where}: check", partial(self._program.check, final, committed))


def _lists(where: str, plan: Any) -> list[list[Any]]:
    if not isinstance(plan, list | tuple) or not all(isinstance(steps, list | tuple) for steps in plan):
        raise IsocheckError(f"{where}: a plan is a list of PlannedTransaction for each session")
    return [list(steps) for steps in plan]
