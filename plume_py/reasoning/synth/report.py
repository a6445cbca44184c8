"""Reports of ``synth``, ``relate``, ``hierarchy`` and of levels judged by definition: text, JSON, and verdicts."""

from collections.abc import Callable, Iterator
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display
from plume_py.checking.result import LevelVerdict
from plume_py.history.model import Transaction
from plume_py.reasoning.synth.comparison import Hierarchy
from plume_py.reasoning.synth.definition import ConcreteWitness, PartValue, sequences
from plume_py.reasoning.synth.judge import Judgement, involved
from plume_py.reasoning.synth.synthesis import SeparatingHistory, SynthesisResult
from plume_py.report.json import plain as plain_result
from plume_py.report.text import example, operation

# Printed: witnesses of at most this many transactions, and this many operations of each transaction.
MOST_TXNS, MOST_OPERATIONS = 12, 12
# The note on histories with times.
TIMES = "[begin,end] of a transaction are by one clock"
_WITNESS = {"vis": "arbitration order with a visibility", "co": "commit order", "own": "witness as it declares one"}


# -- synth -------------------------------------------------------------------------------------------------------


def title(outcome: SynthesisResult) -> str:
    parts = []
    if outcome.allow:
        parts.append(f"allowed by {', '.join(outcome.allow)}")
    if outcome.forbid:
        parts.append(f"forbidden by {', '.join(outcome.forbid)}")
    return "; ".join(parts) or "any history"


def text(outcome: SynthesisResult, style: Style = click.style, explain: bool = True) -> str:
    """Return the report of a search. With ``explain``, it includes the checker's counterexamples."""
    lines = [style(title(outcome), bold=True)]
    effort = f"{outcome.candidates} candidate{'' if outcome.candidates == 1 else 's'}, {outcome.seconds:.2f} s"
    scope = f"{'up to ' if outcome.up_to else ''}{outcome.scope}"
    if not outcome.found:
        lines.append(f"none within scope {scope} ({effort})")
        lines += list(_other_scopes(outcome))
    for number, found in enumerate(outcome.found, 1):
        concrete = found.concrete
        sizes = (len(concrete.txns), "transaction"), (concrete.operations, "operation"), (len(concrete.keys), "key")
        size = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in sizes)
        times = "; [begin,end] by one clock" if concrete.timed else ""
        lines += ["", f"history {number}: {size}{times}"]
        lines += [f"  {line}" for line in concrete.lines()]
        lines += list(_evidence(found, style, explain))
    if outcome.found:
        others = f"; there are no others{' as small' if outcome.minimal else ''}" if outcome.complete else ""
        lines += ["", f"found within scope {scope} ({effort}){others}"]
    if outcome.stopped:
        lines.append(f"undecided: are there others? {outcome.stopped}")
    return "\n".join(lines)


def _other_scopes(outcome: SynthesisResult) -> Iterator[str]:
    """Yield a scope that has such a history, or the next scope to search."""
    if outcome.smaller is not None:
        yield f"with {outcome.smaller} there is one: --txns {outcome.smaller}, or --up-to"
    elif outcome.beyond is not None:
        larger = outcome.beyond
        if larger.found is None:
            yield f"larger ones were not searched: {larger.options}"
        else:
            words = f"there is one: {larger.options}" if larger.found else "there is none, either"
            yield f"within {larger.scope} {words}"


def _evidence(found: SeparatingHistory, style: Style, explain: bool) -> Iterator[str]:
    """Yield the witnesses, the results of the re-check, and the counterexamples."""
    for witness in found.witnesses:
        yield f"  {style(witness.level, fg='green')} {witness_text(witness, found.concrete.name)}"
    for line in found.rechecked.lines:
        yield f"  re-checked: {line}"
    if explain and found.rechecked.result is not None:
        for violation in found.rechecked.result.violations:
            yield ""
            yield from example(violation, style)


def witness_text(witness: ConcreteWitness, name: Callable[[int], str]) -> str:
    """Return a witness in words; ``name`` maps transactions to names."""
    if witness.declared:
        return "; ".join(f"by {part} {_part_text(value, kind, name)}" for part, kind, value in witness.declared)
    order = " < ".join(map(name, witness.order))
    visible_to = _visible_to(witness)
    if visible_to is None:
        return f"by the commit order {order}"
    sees = [f"{name(t)} sees {' '.join(map(name, visible))}" for t, visible in visible_to.items() if visible]
    return f"by the arbitration order {order}; {', '.join(sees) or 'nobody sees anyone'}"


def _visible_to(witness: ConcreteWitness) -> dict[int, list[int]] | None:
    """Return what is visible to each transaction, or None if the witness has no visibility."""
    pairs = witness.visible_pairs
    return None if pairs is None else {t: [a for a in witness.order if (a, t) in pairs] for t in witness.order}


def _part_text(value: PartValue, kind: str, name: Callable[[int], str]) -> str:
    if isinstance(value, frozenset):
        return ", ".join(f"{name(a)} to {name(b)}" for a, b in sorted(value)) or "of nobody"
    orders = ", ".join(" < ".join(map(name, order)) for order in sequences(value, kind))
    return f"of each key {orders}" if kind == "versions" else orders


def plain(outcome: SynthesisResult, reason: str | None = None) -> dict[str, Any]:
    """Return the report for JSON. ``reason``: the limit that ended the search before any history was found."""
    beyond = outcome.beyond
    return {
        "allow": list(outcome.allow),
        "forbid": list(outcome.forbid),
        "scope": outcome.scope.plain(),
        "up_to": outcome.up_to,
        "minimal": outcome.minimal,
        "found": None if reason is not None else bool(outcome.found),
        "reason": reason or outcome.stopped,
        "complete": outcome.complete,
        "smaller": outcome.smaller,
        "next": None if beyond is None else {"scope": beyond.scope.plain(), "found": beyond.found},
        "candidates": outcome.candidates,
        "formula": {
            "variables": outcome.variables,
            "clauses": outcome.clauses,
            "initial_clauses": outcome.initial_clauses,
        },
        "seconds": round(outcome.seconds, 4),
        "histories": [
            {
                "history": native(found),
                "witnesses": [_plain_witness(found, witness) for witness in found.witnesses],
                "rechecked": list(found.rechecked.lines),
                "check": None if found.rechecked.result is None else plain_result(found.rechecked.result),
            }
            for found in outcome.found
        ],
    }


def native(found: SeparatingHistory) -> dict[str, Any]:
    concrete = found.concrete
    sessions: dict[int, list[dict[str, Any]]] = {}
    for t in concrete.by_session():
        txn: dict[str, Any] = {"id": concrete.name(t), "ops": [list(op) for op in concrete.ops(t)]}
        if concrete.txns[t].level is not None:
            txn["level"] = concrete.txns[t].level
        if (span := concrete.txns[t].span) is not None:
            txn["start"], txn["end"] = span
        sessions.setdefault(concrete.txns[t].session, []).append(txn)
    return {"initial": 0, "sessions": list(sessions.values())}


def _plain_witness(found: SeparatingHistory, witness: ConcreteWitness) -> dict[str, Any]:
    name = found.concrete.name
    if witness.declared:
        return {"level": witness.level, "witness": witness_text(witness, name)}
    data: dict[str, Any] = {"level": witness.level, "order": [name(t) for t in witness.order]}
    visible_to = _visible_to(witness)
    if visible_to is not None:
        data["sees"] = {name(t): list(map(name, visible)) for t, visible in visible_to.items()}
    return data


# -- hierarchy ---------------------------------------------------------------------------------------------------


def hierarchy_lines(hierarchy: Hierarchy) -> Iterator[str]:
    """Yield a hierarchy as text: a line per class, then a line per step."""
    for number in reversed(range(len(hierarchy.classes))):
        below = sorted(step.below for step in hierarchy.steps if step.above == number)
        direct = ", ".join(hierarchy.name(b) for b in below)
        yield f"{hierarchy.name(number)}{f'  above  {direct}' if direct else ''}"
    yield ""
    for step in hierarchy.steps:
        short = step.separation.found[0].concrete.short()
        yield f"{hierarchy.name(step.below)} < {hierarchy.name(step.above)}:  {short}"
    yield ""
    yield f"compared on all histories of up to {hierarchy.scope}{f'; {TIMES}' if hierarchy.timed else ''}"


def hierarchy_plain(hierarchy: Hierarchy) -> dict[str, Any]:
    return {
        "scope": hierarchy.scope.plain(),
        "classes": [list(names) for names in hierarchy.classes],
        "steps": [
            {
                "below": list(hierarchy.classes[step.below]),
                "above": list(hierarchy.classes[step.above]),
                "history": native(step.separation.found[0]),
            }
            for step in hierarchy.steps
        ],
    }


# -- a history judged by a definition ----------------------------------------------------------------------------


def verdict(judged: Judgement) -> LevelVerdict:
    """Return a judgement as a verdict of ``check``; the explanation becomes its ``because``."""
    if judged.ok is None:
        return LevelVerdict(None, reason=judged.why, order=judged.order)
    if judged.flaws:
        reason = "a read is wrong by itself, which every level rules out"
        return LevelVerdict(False, judged.flaws, reason=reason, order=judged.order)
    if judged.ok:
        return LevelVerdict(True, order=judged.order, because=tuple(_witness_lines(judged)))
    if judged.why:
        return LevelVerdict(False, reason=judged.why, order=judged.order)
    reason = f"no {witness_kind(judged)} keeps all of this"
    if judged.form == "history":
        reason = "what it asks of the history cannot be true"
    return LevelVerdict(False, reason=reason, order=judged.order, because=tuple(_argument_lines(judged)))


def witness_kind(judged: Judgement) -> str:
    return _WITNESS.get(judged.form, "witness")


def _witness_lines(judged: Judgement) -> Iterator[str]:
    """Yield the witness if the level has one and it is short."""
    witness = judged.witness if judged.form != "history" else None
    if judged.history is not None and witness is not None and len(witness.order) <= MOST_TXNS:
        yield witness_text(witness, judged.history.txn)


def _argument_lines(judged: Judgement) -> Iterator[str]:
    """Yield the involved transactions, then the reasons that contradict each other."""
    if judged.history is not None:
        for t in involved(judged.reasons):
            yield f"{judged.history.txn(t)} {_txn_text(judged.history.txns[t])}"
    for number, reason in enumerate(judged.reasons, 1):
        yield f"{number}. {reason.words}"


def _txn_text(txn: Transaction) -> str:
    ops = " ".join(map(operation, txn.ops[:MOST_OPERATIONS]))
    more = len(txn.ops) - MOST_OPERATIONS
    return f"[session {display(txn.session)}] {ops}" + (f" (and {more} more)" if more > 0 else "")
