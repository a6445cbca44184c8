"""Text for people: short when all is well, otherwise the verdicts and one worked example per pattern."""

from collections.abc import Callable, Iterator

import click

from plume_py.base.text import one_line, shown, wrapped
from plume_py.checking.result import INITIAL, Result, ShownTransaction, Step, Violation
from plume_py.levels.patterns import PATTERNS, STRONG
from plume_py.report.aliases import bracketed
from plume_py.report.wording import forbidden

Style = Callable[..., str]


def render(result: Result, style: Style = click.style, verbose: bool = False) -> str:
    """One history's result."""
    return "\n".join(_lines(result, style, verbose))


def _lines(result: Result, style: Style, verbose: bool) -> Iterator[str]:
    if result.error is not None:
        return
    size = f"{result.transactions:,} transactions, {result.operations:,} operations, {result.sessions:,} sessions"
    yield f"{style(one_line(result.history), bold=True)}: {size}"
    for note in result.notes:
        yield f"  note: {one_line(note)}"
    for name, verdict in result.levels.items():
        if verdict.ok is None:
            yield f"  {name:<4} {style('undecided', fg='yellow')}: {verdict.reason}"
        elif verdict.ok:
            yield f"  {name:<4} {style('absent' if name.startswith('TAP-') else 'holds', fg='green')}"
        else:
            taps = ", ".join(_tap(tap, result) for tap in verdict.taps)
            verb = "found" if name.startswith("TAP-") else "violated"
            yield from wrapped(f"  {name:<4} {style(verb, fg='red', bold=True)}: ", taps, "       ")
    for violation in result.violations:
        yield ""
        yield from example(violation, style)
    if verbose:
        yield "  " + ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in result.seconds.items())


def _tap(tap: str, result: Result) -> str:
    count = result.counts.get(tap, 0)
    at_least = "" if result.counts_exact else "at least "
    label = f"TAP-{tap}" if len(tap) == 1 else tap
    return f"{label} {PATTERNS[tap].name} ({at_least}{count:,})"


def example(violation: Violation, style: Style = click.style) -> Iterator[str]:
    """One counterexample, line by line: who takes part, and the argument."""
    tap = PATTERNS[violation.tap]
    label = f"TAP-{tap.id} {tap.name}" if len(tap.id) == 1 else tap.name
    yield from wrapped(f"  {style(label, fg='red', bold=True)}{bracketed(violation)}: ", tap.description, "  ")
    yield f"  {forbidden(violation)}"
    for transaction in violation.transactions:
        yield from _transaction(transaction)
    told: set[tuple[object, ...]] = set()
    for number, step in enumerate(violation.steps, 1):
        yield from _step(f"{number}", step, "    ", told)
    if violation.tap in STRONG:
        yield from wrapped("    ", f"That is, {violation.explanation}.", "    ")
    elif _is_cycle(violation):
        yield f"    Hence {shown(violation.steps[0].source)} would have to come before itself: a contradiction."
    elif violation.explanation != "; ".join(step.because for step in violation.steps):
        yield from wrapped("    ", f"{violation.explanation}.", "    ")
    yield from wrapped("    ", f"Usual cause: {tap.cause}.", "    ")


def _is_cycle(violation: Violation) -> bool:
    steps = violation.steps
    return bool(steps) and steps[-1].target == steps[0].source and steps[-1].target != INITIAL


def _transaction(transaction: ShownTransaction) -> Iterator[str]:
    ops = " ".join(operation(op) for op in transaction.ops)
    hidden = f" (and {transaction.hidden_ops} more)" if transaction.hidden_ops else ""
    place = f"session {shown(transaction.session)}, {transaction.place}"
    level = f" at {transaction.level}" if transaction.level else ""
    yield from wrapped(f"    {shown(transaction.id)}{level}  [{place}]  ", f"{ops}{hidden}", "        ")


def operation(op: tuple[object, ...]) -> str:
    """r(x, 1), w(x, 1), append(x, 1) or r(x, [1 2])."""
    kind, key, value = op
    if isinstance(value, tuple | list):
        return f"{kind}({shown(key)}, [{shown(' '.join(map(str, value)))}])"
    return f"{kind}({shown(key)}, {shown(value)})"


def _step(number: str, step: Step, indent: str, told: set[tuple[object, ...]]) -> Iterator[str]:
    arrow = f"{shown(step.source)} -{step.relation}-> {shown(step.target)}"
    yield from wrapped(f"{indent}{number}. {arrow}: ", step.because, f"{indent}   ")
    for place, inner in enumerate(_reasons(step, told)):
        yield from _step(f"{number}{chr(ord('a') + place % 26)}", inner, f"{indent}   ", told)


def _reasons(step: Step, told: set[tuple[object, ...]]) -> list[Step]:
    """What a step of a strong level rests on, as far as its own words leave it open: each once."""
    if step.relation == "RW":
        open_ones = [inner for inner in step.evidence[1:] if _needs_proof(inner) or inner.reader is not None]
        return [inner for inner in open_ones if inner.is_proved or _is_new(inner, told)]
    return [inner for inner in step.evidence if not inner.assumed] if _needs_proof(step) and _is_new(step, told) else []


def _needs_proof(step: Step) -> bool:
    """Is this an order whose opposite fails for more than causality?"""
    others = [inner for inner in step.evidence if not inner.assumed]
    return step.is_proved and any(inner.relation not in ("SO", "WR") for inner in others)


def _is_new(step: Step, told: set[tuple[object, ...]]) -> bool:
    what = step.source, step.target, step.relation, step.key
    new = what not in told
    told.add(what)
    return new
