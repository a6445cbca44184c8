"""Serializability mode: no invariant, but what a transaction leaves behind must be what some serial order leaves.

The commits of others keep their order; the transaction in question may come before, between or after them.
"""

from collections import Counter
from typing import Any

from plume_py.reasoning.infer.execution.bytecode import Code
from plume_py.reasoning.infer.execution.evaluate import State
from plume_py.reasoning.infer.execution.schedule import Commit, Counterexample, ReplayError, ScheduleRules, serially
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import ALONE

CLAUSE = "serial order"


def content(program: ir.Application, state: State) -> tuple[Any, ...]:
    """A state without hidden row numbers: which rows are there, and how often."""
    return tuple(frozenset(Counter(row for _, row in rows).items()) for rows in state)


def is_serial(program: ir.Application, example: Counterexample, final: State) -> bool:
    """Does some serial order of the same calls end in the same state?"""
    rules = ScheduleRules(program)
    codes = {txn.name: Code(program, txn, ALONE) for txn in program.transactions}
    others = [event for event in example.events if event is not None]
    wanted = content(program, final)
    for place in range(len(others) + 1):
        own = Commit(example.transaction, example.args)
        state = example.initial
        for number, event in enumerate([*others[:place], own, *others[place:]], 1):
            result = serially(rules, codes[event.transaction], dict(event.args), state, number)
            state = result.after if result is not None else state
        if content(program, state) == wanted:
            return True
    return False


def judged(program: ir.Application, example: Counterexample, final: State) -> list[str]:
    """For replays: what is broken at the end."""
    if is_serial(program, example, final):
        raise ReplayError("a serial order ends in the same state")
    return [CLAUSE]


def wants(program: ir.Application) -> bool:
    """Is this program being asked about serial orders?"""
    return any(clause.name == CLAUSE for clause in program.invariant)
