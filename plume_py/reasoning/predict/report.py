"""Predictions for people, and as plain data."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display, key_text, one_line, txn_text, wrapped
from plume_py.history.model import INITIAL, NOBODY, History
from plume_py.reasoning.predict.confirm.confirmation import Confirmation
from plume_py.reasoning.predict.confirm.report import as_data as confirmation_data
from plume_py.reasoning.predict.confirm.report import render as render_confirmation
from plume_py.reasoning.predict.predictor.outcome import PredictionResult
from plume_py.reasoning.predict.predictor.prediction import Prediction, ReadChange
from plume_py.reasoning.predict.store.replay import Validation
from plume_py.reasoning.predict.summary import dangerous_reads
from plume_py.report.json import plain
from plume_py.report.text import render as render_result


def strategy(outcome: PredictionResult) -> str:
    """As the paper calls it."""
    return f"{'exact' if outcome.exact else 'approximate'}-{outcome.boundary}"


def headline(outcome: PredictionResult) -> str:
    """The answer in one line."""
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
    """Everything about the predictions from one history."""
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
    """T7's read of x: T5 instead of T6."""
    before = "what it saw, which is not known" if change.observed is None else _writer(observed, change.observed)
    return (
        f"{txn_text(observed.txn_label[change.txn])}'s read of {key_text(observed.key(change.key))}: "
        f"{_writer(observed, change.predicted)} instead of {before}"
    )


def _writer(observed: History, txn: int) -> str:
    return "the initial state" if txn == INITIAL else txn_text(observed.txn_label[txn])


def boundaries(observed: History, prediction: Prediction) -> Iterator[str]:
    """Where each session ends, one line each."""
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
    """What must be true of the program for the prediction to come true."""
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
    for line in validation.divergences[:5]:
        yield from wrapped("    ", one_line(line), "      ")
    for line in validation.failures[:5]:
        yield from wrapped("    assertion failed: ", one_line(line), "      ")


def as_data(
    name: str,
    observed: History,
    outcome: PredictionResult,
    validations: list[Validation],
    confirmations: Sequence[Confirmation] = (),
) -> dict[str, Any]:
    """For other programs."""
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
