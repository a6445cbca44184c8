"""A program of one's own, by ``file.py:Class`` or ``module:Class``; what goes wrong in it is told in one line."""

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.user_modules import import_file
from plume_py.reasoning.predict.store.application import Asserting, Plan, PlannedTransaction, Program
from plume_py.reasoning.predict.store.store import Rollback, Transaction

_NEEDS = "it needs initial(key) and plan(seed, sessions, transactions)"


def own_program(where: str) -> Program:
    """The program that ``where`` names, made without arguments."""
    place, _, name = where.rpartition(":")
    by_file, by_name = partial(import_file, kind="program"), importlib.import_module
    module = _guarded(place, by_file if place.endswith(".py") else by_name, place)
    made = getattr(module, name, None)
    if not callable(made):
        raise IsocheckError(f"{place} has no class {name!r:.60}")
    found = _guarded(where, made)
    if not (callable(getattr(found, "initial", None)) and callable(getattr(found, "plan", None))):
        raise IsocheckError(f"{where} is not a program: {_NEEDS}")
    return _AssertingProgram(where, found) if isinstance(found, Asserting) else _OwnProgram(where, found)


def _guarded(where: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """What the code of others says; what it raises but does not mean to is its own defect, not ours."""
    try:
        return call(*arguments)
    except (Rollback, AssertionError, IsocheckError):
        raise
    except Exception as error:
        raise IsocheckError(f"{where}: {type(error).__name__}: {error}") from None


class _OwnProgram:
    """A program that is not ours."""

    def __init__(self, where: str, program: Any) -> None:
        self._where, self._program = where, program
        self.name = where

    def initial(self, key: str) -> Any:
        return _guarded(self._where, self._program.initial, key)

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        """The same for the same arguments: it is asked twice."""
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


class _AssertingProgram(_OwnProgram):
    """One with assertions about the end of a run."""

    def check(self, final: Callable[[str], Any], committed: Any) -> None:
        _guarded(f"{self._where}: check", partial(self._program.check, final, committed))


def _lists(where: str, plan: Any) -> list[list[Any]]:
    if not isinstance(plan, list | tuple) or not all(isinstance(steps, list | tuple) for steps in plan):
        raise IsocheckError(f"{where}: a plan is a list of PlannedTransaction for each session")
    return [list(steps) for steps in plan]
