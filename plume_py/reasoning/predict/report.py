"""Report predictions and confirmations as text and as plain data for JSON.

Across several predictions it also summarizes the dangerous reads and the safe levels.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import counted, display, key_text, one_line, txn_text, wrapped
from plume_py.history.model import INITIAL, NOBODY, History
from plume_py.levels import weaker_levels
from plume_py.reasoning.predict import LEVELS
from plume_py.reasoning.predict.confirm.confirmation import CONFIRMED, DIVERGED, REFUSED, Attempt, Confirmation
from plume_py.reasoning.predict.predictor.prediction import Prediction, PredictionResult, ReadChange
from plume_py.reasoning.predict.store.replay import Validation
from plume_py.report.json import plain
from plume_py.report.text import render as render_result

# Number of deviations, and of failed assertions, in a text report.
MAX_DETAILS = 5

# Ids have a position or number next to the name of a program, if any: "s2.1 Balance", "transfer-7", "T12".
_PLACE = re.compile(r"^[A-Za-z]{0,2}[0-9]++([.,:][0-9]++)*+(\s++|$)")

_DIGITS, _BEFORE_A_NUMBER = "0123456789", " \t\r\n._#:/-"


def strategy(outcome: PredictionResult) -> str:
    """Return the paper's name of the strategy."""
    return f"{'exact' if outcome.exact else 'approximate'}-{outcome.boundary}"


def headline(outcome: PredictionResult) -> str:
    """Return the answer in one line."""
    what = f"from {outcome.level} to {outcome.target} ({strategy(outcome)}"
    what += ")" if outcome.window is None else f", {outcome.window} transactions in a row)"
    if outcome.predictions:
        found = len(outcome.predictions)
        rest = "there is no other" if outcome.complete else "there may be more"
        return f"{what}: {found} predicted; {outcome.reason or rest}"
    if outcome.ok:
        return f"{what}: none predicted" + ("" if outcome.exact else ", by a sufficient condition")
    return f"{what}: undecided: {outcome.reason}"


def render(
    name: str,
    observed: History,
    outcome: PredictionResult,
    validations: list[Validation],
    confirmations: Sequence[Confirmation] = (),
    style: Style = click.style,
) -> Iterator[str]:
    """Yield the lines of the report about one history."""
    yield f"{style(one_line(name), bold=True)}: {observed.transactions:,} transactions observed"
    for note in outcome.notes:
        yield f"  note: {note}"
    if outcome.unconfirmed:
        yield f"  note: {outcome.unconfirmed} predicted within windows, but not so in the whole run"
    yield f"  {headline(outcome)}"
    for number, prediction in enumerate(outcome.predictions, 1):
        yield ""
        yield from _prediction(number, observed, outcome, prediction, style)
        if number <= len(validations):
            yield from _validation(validations[number - 1], style)
        if number <= len(confirmations):
            yield ""
            yield from render_confirmation(f"prediction {number}", confirmations[number - 1], style)
    reads = dangerous_reads(observed, outcome.predictions)
    if reads:
        yield ""
        yield f"Dangerous reads at {outcome.level}:"
    for read in reads:
        times = f"in {read.times} of {len(outcome.predictions)}"
        yield from wrapped(
            f"  {txn_text(read.who)} reads {key_text(read.key)}: ",
            f"{times}, {', '.join(sorted(read.anomalies))}",
            "      ",
        )


def _prediction(
    number: int, observed: History, outcome: PredictionResult, prediction: Prediction, style: Style
) -> Iterator[str]:
    yield style(f"Prediction {number}: {prediction.violation.name}", fg="red", bold=True)
    if not prediction.changes:
        yield "  no read changes: the observed run shows it"
    for change in prediction.changes:
        yield from wrapped("  ", describe_change(observed, change), "      ")
    yield from boundaries(observed, prediction)
    yield from wrapped("  assumed: ", assumption(observed, outcome, prediction), "      ")
    yield ""
    yield render_result(prediction.result, style)


def describe_change(observed: History, change: ReadChange) -> str:
    """Return for example "T7's read of x: T5 instead of T6"."""
    before = "what it saw, which is not known" if change.observed is None else _writer(observed, change.observed)
    return (
        f"{txn_text(observed.txn_label[change.txn])}'s read of {key_text(observed.key(change.key))}: "
        f"{_writer(observed, change.predicted)} instead of {before}"
    )


def _writer(observed: History, txn: int) -> str:
    return "the initial state" if txn == INITIAL else txn_text(observed.txn_label[txn])


def boundaries(observed: History, prediction: Prediction) -> Iterator[str]:
    """Yield one line per session: where it ends."""
    run = prediction.run
    for s in range(observed.sessions):
        members = range(int(observed.session_start[s]), int(observed.session_start[s + 1]))
        committed = [t for t in members if observed.txn_status[t] == 0 and t != observed.init_txn]
        kept = [t for t in members if t in run.prefix]
        name = f"  session {display(observed.session_label[s])}"
        if run.ends[s] != NOBODY and kept and run.ends[s] < run.prefix[kept[-1]]:
            yield from wrapped(f"{name} ends ", _end(observed, prediction, kept[-1], run.ends[s]), "      ")
        elif len(kept) < len(committed):
            first = next(t for t in committed if t not in run.prefix)
            yield from wrapped(f"{name} ends ", f"before {txn_text(observed.txn_label[first])}", "      ")
        elif committed:
            yield f"{name} runs to its end"


def _end(observed: History, prediction: Prediction, t: int, op: int) -> str:
    if prediction.run.boundary == "relaxed":
        return f"with {txn_text(observed.txn_label[t])}"
    return f"at {txn_text(observed.txn_label[t])}'s read of {key_text(observed.key(int(observed.op_key[op])))}"


def assumption(observed: History, outcome: PredictionResult, prediction: Prediction) -> str:
    """Return what must be true of the program for the prediction to come true."""
    changed = sorted({change.txn for change in prediction.changes})
    if not changed:
        return "nothing: every read sees what it saw"
    names = " and ".join(txn_text(observed.txn_label[t]) for t in changed)
    commits = f"{names} still {'commit' if len(changed) > 1 else 'commits'}, though with other values read"
    if outcome.boundary == "strict":
        return f"{commits}; nothing that comes after a changed read is part of the prediction"
    return f"{commits}, and still {'read and write' if len(changed) > 1 else 'reads and writes'} the same keys"


def _validation(validation: Validation, style: Style) -> Iterator[str]:
    verdict = style("it comes true", fg="red") if validation.validated else style("it does not come true", fg="green")
    how = (
        f"the program diverges ({len(validation.divergences)})"
        if validation.diverged
        else "the program does not diverge"
    )
    yield f"  replayed: {verdict}; {how}"
    for line in validation.divergences[:MAX_DETAILS]:
        yield from wrapped("    ", one_line(line), "      ")
    for line in validation.failures[:MAX_DETAILS]:
        yield from wrapped("    assertion failed: ", one_line(line), "      ")


def as_data(
    name: str,
    observed: History,
    outcome: PredictionResult,
    validations: list[Validation],
    confirmations: Sequence[Confirmation] = (),
) -> dict[str, Any]:
    """Return the report as data for JSON."""
    return {
        "history": name,
        "level": outcome.level,
        "target": outcome.target,
        "strategy": strategy(outcome),
        "predicted": None if outcome.ok is None else not outcome.ok,
        "complete": outcome.complete,
        "window": outcome.window,
        "unconfirmed": outcome.unconfirmed,
        "reason": outcome.reason,
        "notes": outcome.notes,
        "predictions": [_plain_prediction(observed, outcome, p) for p in outcome.predictions],
        "replayed": [
            {"validated": v.validated, "divergences": v.divergences, "failures": v.failures} for v in validations
        ],
        "confirmed": [confirmation_data(f"prediction {i}", found) for i, found in enumerate(confirmations, 1)],
        "dangerous_reads": [
            {"who": r.who, "key": r.key, "times": r.times, "anomalies": sorted(r.anomalies)}
            for r in dangerous_reads(observed, outcome.predictions)
        ],
        "seconds": {phase: round(s, 4) for phase, s in outcome.seconds.items()},
        "sizes": outcome.sizes,
    }


def _plain_prediction(observed: History, outcome: PredictionResult, prediction: Prediction) -> dict[str, Any]:
    labels = observed.txn_label
    return {
        "anomaly": prediction.violation.name,
        "changes": [
            {
                "transaction": labels[c.txn],
                "key": observed.key(c.key),
                "predicted": None if c.predicted == INITIAL else labels[c.predicted],
            }
            | ({} if c.observed is None else {"observed": None if c.observed == INITIAL else labels[c.observed]})
            for c in prediction.changes
        ],
        "boundaries": [line.strip() for line in boundaries(observed, prediction)],
        "assumed": assumption(observed, outcome, prediction),
        "result": plain(prediction.result),
    }


@dataclass
class DangerousRead:
    """Reads of one key by one program (or transaction) whose changes are part of anomalies."""

    who: str
    key: str
    times: int = 0  # predictions that change such a read
    anomalies: set[str] = field(default_factory=set)


def program_of(id: str | int) -> str | None:
    """Return the name of the program in a transaction's id, or None."""
    if isinstance(id, int):
        return None
    name = _PLACE.sub("", id).strip()
    if name[-1:] in _DIGITS:
        name = name.rstrip(_DIGITS).rstrip(_BEFORE_A_NUMBER)
    return name if len(name) > 1 else None


def dangerous_reads(observed: History, predictions: Iterable[Prediction]) -> list[DangerousRead]:
    """Return the changed reads of transactions in the predicted anomalies, the most frequent first."""
    found: dict[tuple[str, str], DangerousRead] = {}
    for prediction in predictions:
        involved = {str(shown.id) for shown in prediction.violation.transactions}
        ids = ((observed.txn_label[change.txn], str(observed.key(change.key))) for change in prediction.changes)
        for where in {(program_of(id) or str(id), key) for id, key in ids if str(id) in involved}:
            read = found.setdefault(where, DangerousRead(*where))
            read.times += 1
            read.anomalies.add(prediction.violation.name)
    return sorted(found.values(), key=lambda read: (-read.times, read.who, read.key))


def comes_true(outcome: PredictionResult, validations: Sequence[Validation]) -> list[Prediction]:
    """Return the predictions that came true when replayed; without replays, all predictions."""
    if not validations:
        return outcome.predictions
    return [p for p, validation in zip(outcome.predictions, validations, strict=True) if validation.validated]


def holds(outcome: PredictionResult, validations: Sequence[Validation]) -> bool | None:
    """Return False if a prediction came true or was not replayed, True if no other exists, else None."""
    if outcome.ok is not False:
        return outcome.ok
    if comes_true(outcome, validations):
        return False
    return True if outcome.complete else None


def safe_levels(answers: Mapping[str, bool | None]) -> list[str]:
    """Return the weakest levels that hold; several if they are incomparable."""
    safe = [level for level in LEVELS if answers.get(level)]
    return [level for level in safe if not weaker_levels(level) & set(safe)]


def render_confirmation(name: str, found: Confirmation, style: Style = click.style) -> Iterator[str]:
    """Yield the lines of the report: verdict, reasons, and the counterexample that happened."""
    script, attempt = found.script, found.attempt
    size = f"{len(script.transactions):,} transactions in {counted(len(script.sessions), 'session')}"
    where = f"{found.database} at {found.isolation}"
    yield style(one_line(name), bold=True) + one_line(f": {size}, {script.statements:,} statements, on {where}")
    yield from wrapped(f"  {_verdict(found, style)}: ", one_line(confirmation_headline(found)), "      ")
    for line in _details(found):
        yield from wrapped("    ", one_line(line), "      ")
    if found.verdict == CONFIRMED:
        yield ""
        yield render_result(attempt.result, style)


def _verdict(found: Confirmation, style: Style) -> str:
    return style(found.verdict, fg="red" if found.verdict == CONFIRMED else "green", bold=True)


def confirmation_headline(found: Confirmation) -> str:
    """Return the result in one line."""
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
    yield from found.attempt.deviations[:MAX_DETAILS]
    more = len(found.attempt.deviations) - MAX_DETAILS
    if more > 0:
        yield f"and {more} more"
    yield from (f"assertion failed: {failure}" for failure in found.attempt.played.failures[:MAX_DETAILS])


def confirmation_data(name: str, found: Confirmation) -> dict[str, Any]:
    """Return the confirmation as data for JSON."""
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
    """Return the statements in the order in which they were sent."""
    lines = []
    for step in attempt.steps:
        txn = found.script.transactions[step.txn]
        what = "COMMIT" if step.statement < 0 else txn.statements[step.statement]
        lines.append(f"{txn.id}: {what if isinstance(what, str) else f'{what.kind}({what.key})'}")
    return lines
