"""What came of a program on a real server, as text and as JSON data."""

from collections.abc import Iterator
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display, wrapped
from plume_py.reasoning.infer.execution.client import Called, Executed
from plume_py.reasoning.infer.execution.server import OPEN, SAFE, UNSAFE, Schedule, ServerRun, initial_state
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.to_sql import literal, values_in
from plume_py.reasoning.infer.report import arguments_data, call, meaning, row_text, rows_text, state_data

Runs = list[tuple[ServerRun, str]]

# A schedule of more calls than this is not told whole.
MOST_CALLS = 12


def run_line(outcome: ServerRun, standing: str) -> str:
    """One assignment of levels on a server."""
    levels = " ".join(f"{display(name)}={level}" for name, level in outcome.levels.items())
    verdict = f"broken: {', '.join(map(display, outcome.broken))}" if outcome.broken else "holds"
    counts = f"{outcome.commits} commits, {outcome.rollbacks} rollbacks, {outcome.refused} refused"
    trouble = "".join(f"; {count} times: {display(text, 120)}" for text, count in outcome.problems.items())
    return f"  {levels}  [{standing}]  {verdict}  ({counts}{trouble})"


def run_summary(version: str, runs: Runs) -> str:
    """All assignments of levels on a server."""
    told = {kind: [outcome for outcome, standing in runs if standing == kind] for kind in (SAFE, UNSAFE, OPEN)}
    broken = {kind: sum(bool(outcome.broken) for outcome in outcomes) for kind, outcomes in told.items()}
    undecided = f"; of {len(told[OPEN])} undecided ones, {broken[OPEN]} did" if told[OPEN] else ""
    return (
        f"{display(version)}: {len(runs)} assignments of levels; of {len(told[SAFE])} where every transaction is at a "
        f"level found safe, {broken[SAFE]} broke the invariant; of the {len(told[UNSAFE])} others, {broken[UNSAFE]} "
        f"did{undecided}"
    )


def disproved(runs: Runs) -> list[ServerRun]:
    """The assignments that were found safe and have broken the invariant on the server."""
    return [outcome for outcome, standing in runs if standing == SAFE and outcome.broken]


def schedule_text(program: ir.Application, outcome: ServerRun, style: Style = click.style) -> Iterator[str]:
    """How the server came to break the invariant at levels that were found safe."""
    schedule = outcome.schedule
    assert schedule is not None
    levels = " ".join(f"{display(name)}={level}" for name, level in outcome.levels.items())
    clauses = ", ".join(map(display, schedule.broken))
    yield ""
    yield "  " + style(f"found safe, but the server breaks {clauses} at {levels}", fg="red", bold=True)
    yield from wrapped("    first:  ", rows_text(program, initial_state(program)), "            ", 100)
    shown = schedule.called[:MOST_CALLS]
    number = {id(called): n for n, called in enumerate(shown, 1)}
    for called in shown:
        yield f"    {number[id(called)]}  {call(called.transaction, called.args)} at {display(called.level)}"
    if len(shown) < len(schedule.called):
        yield f"    and {len(schedule.called) - len(shown)} more calls, which are not shown"
    for _, called, step in _in_order(shown):
        lead = f"    {number[id(called)]:<3} "
        yield from wrapped(lead, _step_text(program, step), " " * 12, 100)
    yield from wrapped("    last:   ", rows_text(program, schedule.final), "            ", 100)
    for clause in program.invariant:
        if clause.name in schedule.broken:
            yield from wrapped(f"    broken: {display(clause.name)}: ", meaning(program, clause), " " * 12, 100)


def _in_order(calls: list[Called]) -> list[tuple[float, Called, Executed]]:
    """The statements in the order in which they were answered."""
    steps = [(step.answered, called, step) for called in calls for step in called.statements]
    return sorted(steps, key=lambda item: item[0])


def _step_text(program: ir.Application, step: Executed) -> str:
    if step.stmt is None:
        return "COMMIT"
    return f"{_statement(step)}  →  {_outcome(program, step)}"


def _statement(step: Executed) -> str:
    assert step.stmt is not None
    return display(values_in(step.shape, step.frame).statement(step.stmt), 400)


def _outcome(program: ir.Application, step: Executed) -> str:
    if isinstance(step.stmt, ir.SelectOne | ir.SelectAll):
        table = program.table(step.stmt.table)
        return ", ".join(row_text(table, row) for _, row in step.result) or "no row"
    if isinstance(step.stmt, ir.Insert | ir.Update | ir.Delete):
        return f"{step.result} row{'' if step.result == 1 else 's'}"
    return ", ".join(literal(value) for value in (step.result if isinstance(step.result, list) else [step.result]))


def run_data(program: ir.Application, version: str, runs: Runs) -> dict[str, Any]:
    """The same as plain data."""
    return {"server": version, "vectors": [_vector(program, outcome, standing) for outcome, standing in runs]}


def _vector(program: ir.Application, outcome: ServerRun, standing: str) -> dict[str, Any]:
    data = {
        "levels": outcome.levels,
        "found safe": standing == SAFE,
        "standing": standing,
        "broken": outcome.broken,
        "commits": outcome.commits,
        "rollbacks": outcome.rollbacks,
        "refused": outcome.refused,
        "problems": dict(outcome.problems),
    }
    if standing == SAFE and outcome.schedule is not None:
        data["schedule"] = _schedule_data(program, outcome.schedule)
    return data


def _schedule_data(program: ir.Application, schedule: Schedule) -> dict[str, Any]:
    number = {id(called): n for n, called in enumerate(schedule.called, 1)}
    return {
        "broken": schedule.broken,
        "initial": state_data(program, initial_state(program)),
        "calls": [
            {"by": called.transaction, "level": called.level, "arguments": arguments_data(called.args)}
            for called in schedule.called
        ],
        "statements": [
            {
                "call": number[id(called)],
                "statement": "COMMIT" if step.stmt is None else _statement(step),
                "result": "" if step.stmt is None else _outcome(program, step),
            }
            for _, called, step in _in_order(schedule.called)
        ],
        "final": state_data(program, schedule.final),
    }
