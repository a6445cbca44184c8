"""Render results as text for people: verdicts, and for violations one worked example per pattern."""

from collections.abc import Iterator

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display, one_line, txn_text, wrapped
from plume_py.checking.result import LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.levels.patterns import LABELS, PATTERNS
from plume_py.report.wording import (
    LONG_AGO,
    bracketed,
    clock,
    evidence_sentences,
    forbidden,
    order_of,
    size_of,
    strongest_kept,
    weaker_order,
)

CULPRIT = "(!)"  # marks a wrong read


def render(result: Result, style: Style = click.style, verbose: bool = False) -> str:
    return "\n".join(_lines(result, style, verbose))


def _lines(result: Result, style: Style, verbose: bool) -> Iterator[str]:
    if result.error is not None:
        return
    size = size_of(result)
    name = style(one_line(result.history), bold=True)
    kept = strongest_kept(result)
    if kept is None:
        yield f"{name}: {size}"
    else:
        yield f"{name}: {kept}"  # on one line, so that it can be searched for
        yield f"  {size}"
    for name, words in result.run.items() if result.ok is not True else ():
        yield from wrapped(f"  {name:<10}", one_line(words), "            ")
    for note in result.notes:
        yield f"  note: {one_line(note)}"
    for levels, verdict in _equal_verdicts(result):
        yield from _verdict(levels, verdict, result, style)
    if result.evidence is not None:
        for sentence in evidence_sentences(result.evidence):
            yield from wrapped("  evidence: ", one_line(sentence), "            ")
    for violation in result.violations:
        yield ""
        yield from example(violation, style)
    if verbose:
        yield "  " + ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in result.seconds.items())


def _equal_verdicts(result: Result) -> Iterator[tuple[list[str], LevelVerdict]]:
    """Yield levels with equal verdicts together, in the order of the first of each."""
    groups: list[tuple[list[str], LevelVerdict]] = []
    for name, verdict in result.levels.items():
        for names, other in groups:
            if verdict == other and (name in LABELS) == (names[0] in LABELS):
                names.append(name)
                break
        else:
            groups.append(([name], verdict))
    yield from groups


def _verdict(names: list[str], verdict: LevelVerdict, result: Result, style: Style) -> Iterator[str]:
    lead, single = f"  {' '.join(names):<4} ", names[0] in LABELS  # the name is a pattern, not a level
    if verdict.ok is None:
        yield from wrapped(f"{lead}{style('undecided', fg='yellow')}: ", str(verdict.reason), "       ")
    elif verdict.ok:
        verb = style("absent" if single else "holds" if len(names) == 1 else "hold", fg="green")
        yield f"{lead}{verb}{order_of(names[0], verdict)}"
    else:
        taps = ", ".join(_tap(tap, result) for tap in verdict.taps) or verdict.reason or ""
        weaker = weaker_order(verdict)
        taps += f"; {weaker}" if weaker is not None else ""
        verb = style("found" if single else "violated", fg="red", bold=True)
        yield from wrapped(f"{lead}{verb}{order_of(names[0], verdict)}: ", taps, "       ")
    for words in verdict.because:
        yield from wrapped("       ", words, "          ")


def _tap(tap: str, result: Result) -> str:
    count = result.counts.get(tap, 0)
    at_least = "" if result.counts_exact else "at least "
    return f"{PATTERNS[tap].label} {PATTERNS[tap].name} ({at_least}{count:,})"


def example(violation: Violation, style: Style = click.style) -> Iterator[str]:
    """Yield the lines of one counterexample: its transactions, and the argument."""
    pattern = violation.pattern
    words = " ".join(style(word, fg="red", bold=True) for word in violation.headline.split())
    yield from wrapped("  ", words, "  ")
    yield from wrapped(f"  {pattern.title}{bracketed(violation)}, ", forbidden(violation), "  ")
    for number, transaction in enumerate(violation.transactions):
        yield from _transaction(transaction, {op for txn, op in violation.culprits if txn == number})
    printed: set[tuple[object, ...]] = set()
    for number, step in enumerate(violation.steps, 1):
        yield from _step(f"{number}", step, "    ", printed)
    yield from wrapped("    ", violation.conclusion, "    ")
    yield from wrapped("    ", f"Usual cause: {violation.cause}.", "    ")


def _transaction(transaction: ShownTransaction, culprits: set[int]) -> Iterator[str]:
    ops = " ".join(operation(op) + (CULPRIT if at in culprits else "") for at, op in enumerate(transaction.ops))
    hidden = f" (and {transaction.hidden_ops} more)" if transaction.hidden_ops else ""
    node = f" on {display(transaction.node)}" if transaction.node else ""
    place = f"session {display(transaction.session)}{node}, {transaction.place}"
    level = f" at {transaction.level}" if transaction.level else ""
    yield from wrapped(f"    {txn_text(transaction.id)}{level}  [{place}]  ", f"{ops}{hidden}", "        ")
    if transaction.start is not None and transaction.end is not None and transaction.start > LONG_AGO:
        yield f"        {clock(transaction.start)} to {clock(transaction.end)}"
    if transaction.during:
        yield from wrapped("        during ", display(transaction.during), "        ")
    for statement in transaction.sql:
        yield f"        {one_line(statement)}"


def operation(op: tuple[object, ...]) -> str:
    """Return an operation as text: r(x, 1), w(x, 1), append(x, 1) or r(x, [1 2])."""
    kind, key, value = op
    if isinstance(value, tuple | list):
        return f"{kind}({display(key)}, [{display(' '.join(map(str, value)))}])"
    return f"{kind}({display(key)}, {display(value)})"


def _step(number: str, step: Step, indent: str, printed: set[tuple[object, ...]]) -> Iterator[str]:
    arrow = f"{txn_text(step.source)} -{step.relation}-> {txn_text(step.target)}"
    yield from wrapped(f"{indent}{number}. {arrow}: ", step.because, f"{indent}   ")
    for place, inner in enumerate(_reasons(step, printed)):
        yield from _step(f"{number}{chr(ord('a') + place % 26)}", inner, f"{indent}   ", printed)


def _reasons(step: Step, printed: set[tuple[object, ...]]) -> list[Step]:
    """Return the evidence of a step that its text leaves open, without evidence printed earlier."""
    if not step.needs_proof:
        return []
    if step.relation == "RW":  # its text does not say why the version read is the older one
        return [inner for inner in step.evidence[1:] if inner.is_proved or _is_new(inner, printed)]
    return [inner for inner in step.evidence if not inner.assumed] if _is_new(step, printed) else []


def _is_new(step: Step, printed: set[tuple[object, ...]]) -> bool:
    what = step.source, step.target, step.relation, step.key
    new = what not in printed
    printed.add(what)
    return new
