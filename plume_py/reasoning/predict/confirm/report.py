"""What came of a confirmation, for people and as plain data."""

from collections.abc import Iterator
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import counted, one_line, wrapped
from plume_py.reasoning.predict.confirm.confirmation import CONFIRMED, DIVERGED, REFUSED, Attempt, Confirmation
from plume_py.report.json import plain
from plume_py.report.text import render as render_result

# Deviations and the like that are told, at most.
TOLD = 5


def render(name: str, found: Confirmation, style: Style = click.style) -> Iterator[str]:
    """The verdict, why, and the counterexample that happened."""
    script, attempt = found.script, found.attempt
    size = f"{len(script.transactions):,} transactions in {counted(len(script.sessions), 'session')}"
    where = f"{found.database} at {found.isolation}"
    yield style(one_line(name), bold=True) + one_line(f": {size}, {script.statements:,} statements, on {where}")
    yield from wrapped(f"  {_verdict(found, style)}: ", one_line(headline(found)), "      ")
    for line in _details(found):
        yield from wrapped("    ", one_line(line), "      ")
    if found.verdict == CONFIRMED:
        yield ""
        yield render_result(attempt.result, style)


def _verdict(found: Confirmation, style: Style) -> str:
    return style(found.verdict, fg="red" if found.verdict == CONFIRMED else "green", bold=True)


def headline(found: Confirmation) -> str:
    """In one line."""
    attempt, tried = found.attempt, len(found.attempts)
    orders = "in the first order of the statements" if tried == 1 else f"in {tried} orders of the statements"
    if found.verdict == CONFIRMED:
        how = "as predicted" if found.as_predicted else "though not quite as predicted"
        tries = "" if tried == 1 else f", in the {tried}th order tried"
        return f"the database breaks {found.target}, {how}{tries} ({found.seconds:.1f} s)"
    if found.verdict == REFUSED:
        refusal = attempt.played.refusals[0]
        who = found.script.transactions[refusal.txn].id
        return f"the database refuses {refusal.statement} of {who}: {refusal.error} ({orders}, {found.seconds:.1f} s)"
    if found.verdict == DIVERGED:
        return f"nothing was refused, and {found.target} is kept ({orders}, {found.seconds:.1f} s)"
    return f"{attempt.result.levels[found.target].reason}"


def _details(found: Confirmation) -> Iterator[str]:
    if not found.fits:
        yield f"no order of the statements does it, as far as {found.isolation} is known; this one came nearest"
    yield from found.attempt.deviations[:TOLD]
    more = len(found.attempt.deviations) - TOLD
    if more > 0:
        yield f"and {more} more"
    yield from (f"assertion failed: {failure}" for failure in found.attempt.played.failures[:TOLD])


def as_data(name: str, found: Confirmation) -> dict[str, Any]:
    """For other programs."""
    attempt = found.attempt
    return {
        "prediction": name,
        "database": found.database,
        "isolation": found.isolation,
        "target": found.target,
        "verdict": found.verdict,
        "as_predicted": found.as_predicted,
        "fits": found.fits,
        "unsatisfied": found.unsatisfied,
        "attempts": len(found.attempts),
        "refusals": [
            {"transaction": found.script.transactions[r.txn].id, "statement": r.statement, "error": r.error}
            for r in attempt.played.refusals
        ],
        "deviations": attempt.deviations,
        "failures": attempt.played.failures,
        "order": _order(found, attempt),
        "seconds": round(found.seconds, 4),
        "result": plain(attempt.result),
    }


def _order(found: Confirmation, attempt: Attempt) -> list[str]:
    """The statements in the order in which they were sent."""
    lines = []
    for step in attempt.steps:
        txn = found.script.transactions[step.txn]
        what = "COMMIT" if step.statement < 0 else txn.statements[step.statement]
        lines.append(f"{txn.id}: {what if isinstance(what, str) else f'{what.kind}({what.key})'}")
    return lines
