"""What a synthesis found, for people and for programs."""

from collections.abc import Callable, Iterator
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.reasoning.synth.problem import ConcreteWitness
from plume_py.reasoning.synth.structures import Value, orders
from plume_py.reasoning.synth.synthesis import SeparatingHistory, SynthesisResult
from plume_py.report.json import plain as plain_result
from plume_py.report.text import example


def title(outcome: SynthesisResult) -> str:
    """The problem in words."""
    parts = []
    if outcome.allow:
        parts.append(f"allowed by {', '.join(outcome.allow)}")
    if outcome.forbid:
        parts.append(f"forbidden by {', '.join(outcome.forbid)}")
    return "; ".join(parts) or "any history"


def text(outcome: SynthesisResult, style: Style = click.style, explain: bool = True) -> str:
    """All that was found, or that there is nothing within the scope."""
    lines = [style(title(outcome), bold=True)]
    effort = f"{outcome.candidates} candidate{'' if outcome.candidates == 1 else 's'}, {outcome.seconds:.2f} s"
    scope = f"{'up to ' if outcome.up_to else ''}{outcome.scope}"
    if not outcome.found:
        lines.append(f"none within scope {scope} ({effort})")
        lines += list(_elsewhere(outcome))
    for place, found in enumerate(outcome.found, 1):
        concrete = found.concrete
        sizes = (len(concrete.txns), "transaction"), (concrete.operations, "operation"), (len(concrete.keys), "key")
        size = ", ".join(f"{number} {what}{'' if number == 1 else 's'}" for number, what in sizes)
        times = "; [begin,end] by one clock" if concrete.timed else ""
        lines += ["", f"history {place}: {size}{times}"]
        lines += [f"  {line}" for line in concrete.lines()]
        lines += list(_reasons(found, outcome, style, explain))
    if outcome.found:
        others = f"; there are no others{' as small' if outcome.minimal else ''}" if outcome.complete else ""
        lines += ["", f"found within scope {scope} ({effort}){others}"]
    if outcome.stopped:
        lines.append(f"undecided: are there others? {outcome.stopped}")
    return "\n".join(lines)


def _elsewhere(outcome: SynthesisResult) -> Iterator[str]:
    """Where there is one, if not where it was looked for; or where to look next."""
    if outcome.smaller is not None:
        yield f"with {outcome.smaller} there is one: --txns {outcome.smaller}, or --up-to"
    elif outcome.beyond is not None:
        larger = outcome.beyond
        if larger.found is None:
            yield f"larger ones were not searched: {larger.options}"
        else:
            words = f"there is one: {larger.options}" if larger.found else "there is none, either"
            yield f"within {larger.scope} {words}"


def _reasons(separating: SeparatingHistory, outcome: SynthesisResult, style: Style, explain: bool) -> Iterator[str]:
    for shown in separating.witnesses:
        yield f"  {style(shown.level, fg='green')} {_order(separating, shown)}"
    for line in separating.rechecked.lines:
        yield f"  re-checked: {line}"
    if explain and separating.rechecked.result is not None:
        for violation in separating.rechecked.result.violations:
            yield ""
            yield from example(violation, style)


def _order(separating: SeparatingHistory, witness: ConcreteWitness) -> str:
    return order_of(witness, separating.concrete.name)


def order_of(witness: ConcreteWitness, name: Callable[[int], str]) -> str:
    """A witness in words."""
    if witness.declared:
        return "; ".join(f"by {part} {_declared(value, kind, name)}" for part, kind, value in witness.declared)
    order = " < ".join(map(name, witness.order))
    if witness.sees is None:
        return f"by the commit order {order}"
    sees = []
    for t in witness.order:
        seen = [name(a) for a in witness.order if (a, t) in witness.sees]
        if seen:
            sees.append(f"{name(t)} sees {' '.join(seen)}")
    return f"by the arbitration order {order}; {', '.join(sees) or 'nobody sees anyone'}"


def _declared(value: Value, kind: str, name: Callable[[int], str]) -> str:
    if isinstance(value, frozenset):
        return ", ".join(f"{name(a)} to {name(b)}" for a, b in sorted(value)) or "of nobody"
    found = ", ".join(" < ".join(map(name, order)) for order in orders(value, kind))
    return f"of each key {found}" if kind == "versions" else found


def native(separating: SeparatingHistory) -> dict[str, Any]:
    """The history as a native document."""
    concrete = separating.concrete
    sessions: dict[int, list[dict[str, Any]]] = {}
    for t in concrete.by_session():
        txn: dict[str, Any] = {"id": concrete.name(t), "ops": [list(op) for op in concrete.ops(t)]}
        if concrete.txns[t].level is not None:
            txn["level"] = concrete.txns[t].level
        if (span := concrete.txns[t].span) is not None:
            txn["start"], txn["end"] = span
        sessions.setdefault(concrete.txns[t].session, []).append(txn)
    return {"initial": 0, "sessions": list(sessions.values())}


def _witness(separating: SeparatingHistory, witness: ConcreteWitness) -> dict[str, Any]:
    name = separating.concrete.name
    told: dict[str, Any] = {"level": witness.level, "order": [name(t) for t in witness.order]}
    if witness.declared:
        return {"level": witness.level, "witness": order_of(witness, name)}
    if witness.sees is not None:
        told["sees"] = {name(t): [name(a) for a in witness.order if (a, t) in witness.sees] for t in witness.order}
    return told


def plain(outcome: SynthesisResult, reason: str | None = None) -> dict[str, Any]:
    """For programs; ``found`` is null if the search was cut short before anything was found, for this ``reason``."""
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
        "next": None
        if outcome.beyond is None
        else {"scope": outcome.beyond.scope.plain(), "found": outcome.beyond.found},
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
                "witnesses": [_witness(found, shown) for shown in found.witnesses],
                "rechecked": list(found.rechecked.lines),
                "check": None if found.rechecked.result is None else plain_result(found.rechecked.result),
            }
            for found in outcome.found
        ],
    }
